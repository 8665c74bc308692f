"""Reads the exit code, standard output and standard error of a Qwen Code hook into a verdict; it never raises."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import HookResult, HookSpec, Verdict
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
    if b'"tool_input"' in result.stdout + result.stderr and _gives_tool_input(result):
        return replace(verdict, messages=(*verdict.messages, TOOL_INPUT_IGNORED))
    return verdict


def _gives_tool_input(result: HookResult) -> bool:
    text = _output_text(result.code, shared_output.decode(result.stdout), shared_output.decode(result.stderr))
    try:
        specific = raw_json.fields(text.encode()).get("hookSpecificOutput", b"")
        return "tool_input" in raw_json.fields(bytes(specific))
    except (raw_json.Unreadable, raw_json.DuplicateKeys):  # the verdict is about that
        return False
