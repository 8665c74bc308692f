"""Reads the exit code and the text of a claw-code hook into a verdict; `claw@current` also reads JSON.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import output as shared_output
from ..shared.output import BLOCKS

_FEEDBACK: Final = "Hook feedback"
_DENIED: Final = "Hook feedback (denied)"
_ERROR: Final = "Hook feedback (error)"

_DECIDES: Final = re.compile(r'"(?:hookSpecificOutput|decision)"\s*:|"continue"\s*:\s*false')
"""Members of JSON output that decide something in other dialects."""


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict as the hooks page has it: standard output is the message, whatever it looks like."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    if result.code == BLOCKS:
        return _denial(spec, stdout or stderr, _DENIED)
    if result.code:
        return Verdict(failure=shared_output.exit_failure(result.code, stderr or stdout))
    return Verdict(feedback=_labelled(_FEEDBACK, stdout), messages=shared_output.nonempty(_json_note(stdout)))


def _json_note(stdout: str) -> str:
    """A note on JSON that decides something in other dialects: its author may expect it to block."""
    is_json = stdout.startswith("{") and stdout.endswith("}")
    decides = is_json and _DECIDES.search(stdout)
    return "printed JSON, which decides nothing in the dialect claw: claw@current reads it" if decides else ""


def _denial(spec: HookSpec, reason: str, label: str) -> Verdict:
    """Before a call: the call is refused. After a call: its result becomes an error, and the model gets the reason."""
    if spec.event is Event.PRE_TOOL_USE:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason))
    reason = reason or f"The {spec.event_name} hook {spec.label} denied this result and gave no reason."
    return Verdict(permission=Permission.DENY, feedback=_labelled(label, reason))


def _labelled(label: str, text: str) -> tuple[str, ...]:
    return (f"{label}:\n{shared_output.truncate(text)}",) if text else ()


# --- claw@current ---

FIELDS: Final = for_names({
    Effect.DECIDES: "hookSpecificOutput.permissionDecision decision",
    Effect.REASON: "hookSpecificOutput.permissionDecisionReason reason",
    Effect.REWRITES: "hookSpecificOutput.updatedInput",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext",
    Effect.TELLS_PERSON: "systemMessage",
    Effect.DENIES_AND_STOPS: "continue",
    Effect.NONE: "hookSpecificOutput.hookEventName",
})  # fmt: skip

_PERMISSIONS: Final = ("allow", "ask", "deny")
_NULL: Final = b"null"
"""A member that is null counts as absent."""

_PREVIEW: Final = 160
"""Characters that claw-code quotes in a message about unreadable JSON."""


class _ParsedOutput(Struct, frozen=True):
    """What standard output means, apart from the exit code."""

    texts: tuple[str, ...] = ()
    """For the model."""
    message: str = ""
    """For the person."""
    denies: bool = False
    stops: bool = False
    permission: Permission | None = None
    reason: str = ""
    """The reason for `permission`."""
    arguments: bytes = b""
    error: str = ""
    """Why the output is invalid; empty: it is valid."""

    @property
    def text(self) -> str:
        """All texts for the model, joined as claw-code joins them."""
        return "\n".join(self.texts)


def read_output_current(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict as the program has it: JSON counts with every exit code, and any failure denies a call."""
    if result.ended is not Ended.EXITED:
        output, failure = _ParsedOutput(), shared_output.describe_end(spec, result)
    else:
        stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
        output = _parse(spec, stdout, stderr, result.cut)
        failure = "" if result.code in (0, BLOCKS) else shared_output.exit_failure(result.code, stderr or stdout)
        if result.code == BLOCKS:
            output = replace(output, denies=True, texts=output.texts or shared_output.nonempty(stderr))
    return _before_call(output, failure) if spec.event is Event.PRE_TOOL_USE else _after_call(spec, output, failure)


def _before_call(output: _ParsedOutput, failure: str) -> Verdict:
    """The verdict of a PreToolUse hook: a hook that fails neither allows nor rewrites."""
    failure_or_error = failure or output.error
    permission = Permission.DENY if output.denies else output.permission
    if failure_or_error and permission is Permission.ALLOW:
        permission = None
    denies = permission is Permission.DENY
    label = _ERROR if denies or failure else _FEEDBACK
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(output.text if output.denies else output.reason),
        arguments=None if denies or failure_or_error else output.arguments or None,
        feedback=() if output.denies else _labelled(label, output.text),
        messages=shared_output.nonempty(output.message),
        stop=output.stops,
        fails_closed=bool(failure),
        failure=failure_or_error,
    )


def _after_call(spec: HookSpec, output: _ParsedOutput, failure: str) -> Verdict:
    """The verdict of a hook after the call: a denial or a failure marks the result as an error."""
    if not (output.denies or failure):
        verdict = Verdict(feedback=_labelled(_FEEDBACK, output.text))
    else:
        explanation = f"The {spec.event_name} hook {spec.label} {failure}" if failure else ""
        verdict = _denial(spec, output.text or explanation, _ERROR)
    return replace(
        verdict, messages=shared_output.nonempty(output.message), stop=output.stops, failure=failure or output.error
    )


def _parse(spec: HookSpec, stdout: str, stderr: str, cut: bool) -> _ParsedOutput:
    """Parse standard output, which is empty, plain text, a JSON object, or invalid JSON."""
    if not stdout:
        return _ParsedOutput()
    if not stdout.startswith(("{", "[")) and not _is_json(stdout):
        return _ParsedOutput(texts=(stdout,))
    try:
        members = _object(stdout)
    except (ValueError, msgspec.MsgspecError, RecursionError) as problem:
        unreadable = "printed JSON that cannot be read" + shared_output.explanation(str(problem))
        error = shared_output.CUT_JSON if cut else unreadable
        read = _last_members(stdout)
        if read.denies or read.permission is Permission.DENY:
            return replace(read, error=error)
        return _ParsedOutput(texts=(_invalid_json_text(spec, str(problem), stdout, stderr),), error=error)
    return _parse_members(members, stdout)


def _last_members(text: str) -> _ParsedOutput:
    """The output as serde_json reads it: of two members of the same name the last one counts."""
    try:
        return _parse_members(_object(shared_output.last_members(text).decode()), text)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return _ParsedOutput()


def _is_json(text: str) -> bool:
    """Whether the text is JSON, a lone number or word of JSON included."""
    try:
        msgspec.json.decode(text.encode())
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return False
    return True


def _object(text: str) -> Mapping[str, bytes]:
    """The members of a JSON object. Raises ValueError, MsgspecError, RecursionError."""
    raw = shared_output.normalise(text.encode())
    if not raw.startswith(b"{"):
        types = {b"[": "array", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
        raise ValueError(f"expected top-level JSON object, got {types.get(raw[:1], 'number')}")
    return {key: bytes(value) for key, value in raw_json.fields(raw).items()}


def _parse_members(members: Mapping[str, bytes], stdout: str) -> _ParsedOutput:
    """Parse a JSON object. A member of the wrong type counts as absent, as in claw-code, but is reported."""
    problems: list[str] = []

    def string(owner: Mapping[str, bytes], key: str) -> str:
        value = owner.get(key, _NULL)
        text = raw_json.text(value)
        if text is None and value != _NULL:
            problems.append(f"{key} is not a string")
        return text or ""

    specific = _specific(members.get("hookSpecificOutput", _NULL), problems)
    message, decision = string(members, "systemMessage"), string(members, "decision")
    texts = shared_output.nonempty(string(members, "reason"), string(specific, "additionalContext"))
    wanted, reason = string(specific, "permissionDecision"), string(specific, "permissionDecisionReason")
    if wanted and wanted not in _PERMISSIONS:
        problems.append(f"permissionDecision {shared_output.truncate(repr(wanted), 40)} is not one of allow, ask, deny")
    continues, arguments = members.get("continue", _NULL), specific.get("updatedInput", _NULL)
    if continues not in (b"true", b"false", _NULL):
        problems.append("continue is neither true nor false")
    if arguments != _NULL and not arguments.startswith(b"{"):
        problems.append("updatedInput is not an object")
    return _ParsedOutput(
        texts=texts if texts or message else (stdout,),  # without any text, the JSON itself is the message
        message=message,
        denies=continues == b"false" or decision == "block",
        stops=continues == b"false",
        permission=shared_output.PERMISSIONS[wanted] if wanted in _PERMISSIONS else None,
        reason=reason,
        arguments=shared_output.one_line(msgspec.Raw(arguments)) if arguments.startswith(b"{") else b"",
        error="printed JSON that cannot be read: " + "; ".join(problems) if problems else "",
    )


def _specific(raw: bytes, problems: list[str]) -> Mapping[str, bytes]:
    if raw.startswith(b"{"):
        return {key: bytes(value) for key, value in raw_json.fields(raw).items()}
    if raw != _NULL:
        problems.append("hookSpecificOutput is not an object")
    return {}


def _invalid_json_text(spec: HookSpec, detail: str, stdout: str, stderr: str) -> str:
    """claw-code's text for the model, without the tool's name, which the model knows."""
    previews = f"stdout_preview={_preview(stdout)} stderr_preview={_preview(stderr)}"
    return (
        f"hook_invalid_json: phase={spec.event_name} command={_preview(spec.shell)} "
        f"detail={shared_output.truncate(detail, shared_output.MAX_EXPLANATION)} {previews}"
    )


_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _preview(text: str) -> str:
    text = text.strip()
    shown = "".join(
        _SHORT_ESCAPES.get(character, f"\\u{{{ord(character):x}}}") if _is_control(character) else character
        for character in text[:_PREVIEW]
    )
    return shown + ("…" if len(text) > _PREVIEW else "") or "<empty>"


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"
