"""Reads the exit code, standard output and standard error of a Qwen Code hook into a verdict; it never raises."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect
from ..shared import claude_envelope as envelope
from ..shared import output as shared_output
from ..shared.output import BLOCKS

FIELDS: Final = {**envelope.FIELDS, "hookSpecificOutput.tool_input": Effect.NONE}
"""What each member of the JSON output does here."""

TOOL_INPUT_IGNORED: Final = (
    "gave hookSpecificOutput.tool_input, which is not read: to rewrite arguments, give hookSpecificOutput.updatedInput"
)
"""Qwen Code shows these arguments to the next hook of a sequence, and calls the tool with others: a guard would judge
what does not happen."""

_NO_REASON: Final = "No reason provided"
"""Qwen Code's own (`getEffectiveReason`)."""


def _output_text(code: int, stdout: str, stderr: str) -> str:
    """The stream that Qwen Code reads; if that one is empty, the other.

    With exit code 2, newer versions read standard error alone, and whether they block if it is empty is in doubt. The
    examples of the page print the reason on standard output: it is read.
    """
    text = stderr or stdout if code == BLOCKS else stdout or stderr
    if text.startswith('"') and (inner := raw_json.text(text.encode())):  # JSON as a JSON string
        return inner.strip()
    return text


_RULES: Final = envelope.Rules(output_text=_output_text, any_exit_code=True, shows_text=True)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    verdict = envelope.read_output(_RULES, spec, result)
    if verdict.stop and spec.event is Event.POST_TOOL_USE:
        verdict = _without_result(verdict, result)
    if b'"tool_input"' in result.stdout + result.stderr and "tool_input" in _members(result, "hookSpecificOutput"):
        return replace(verdict, messages=(*verdict.messages, TOOL_INPUT_IGNORED))
    return verdict


def _without_result(verdict: Verdict, result: HookResult) -> Verdict:
    """A hook that stops the agent after a call puts its reason in the place of the result and of all feedback."""
    members = _members(result)
    texts = (raw_json.text(members[name]) for name in ("stopReason", "reason") if name in members)
    reason = shared_output.truncate(next(filter(None, texts), _NO_REASON))
    return replace(verdict, permission=Permission.DENY, reason=reason, replacement=raw_json.encode(reason), feedback=())


def _members(result: HookResult, name: str = "") -> dict[str, bytes]:
    """The members of what a hook printed, or of its member of this name; none if they cannot be read."""
    text = _output_text(result.code, shared_output.decode(result.stdout), shared_output.decode(result.stderr))
    try:
        members = raw_json.fields(text.encode())
        members = raw_json.fields(bytes(members.get(name, b""))) if name else members
    except (raw_json.Unreadable, raw_json.DuplicateKeys):  # the verdict is about that
        return {}
    return {key: bytes(value) for key, value in members.items()}
