"""What a claw-code hook says: by its exit code and plain text, and to `claw@current` by JSON as well.

Total: whatever a hook prints, nonsense is named as trouble, and never taken for consent (law 3).
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
from ..dialect import Effect
from ..shared import output as shared_output

DENIES: Final = 2
"""The exit code that denies, whatever is printed."""

_FEEDBACK: Final = "Hook feedback"
_DENIED: Final = "Hook feedback (denied)"
_ERROR: Final = "Hook feedback (error)"

_DECIDES: Final = re.compile(r'"(?:hookSpecificOutput|decision)"\s*:|"continue"\s*:\s*false')
"""What in a JSON answer decides something."""


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said, as the hooks page has it: standard output is the message, whatever it looks like."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    said, complaint = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    if result.code == DENIES:
        return _denial(spec, said or complaint, _DENIED)
    if result.code:
        return Verdict(failure=_status(result, complaint or said))
    return Verdict(feedback=_labelled(_FEEDBACK, said), messages=shared_output.nonempty(_remark(said)))


def _remark(said: str) -> str:
    """Who prints such an answer may think that it blocks something."""
    is_json = said.startswith("{") and said.endswith("}")
    decides = is_json and _DECIDES.search(said)
    return "printed JSON, which decides nothing here: claw@current reads it" if decides else ""


def _denial(spec: HookSpec, reason: str, label: str) -> Verdict:
    """Before a call it is refused; after it, its result is an error, and the model is told why."""
    if spec.event is Event.PRE_TOOL_USE:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason))
    reason = reason or f"The {spec.event_name} hook {spec.label} denied this result and gave no reason."
    return Verdict(permission=Permission.DENY, feedback=_labelled(label, reason))


def _labelled(label: str, said: str) -> tuple[str, ...]:
    return (f"{label}:\n{shared_output.truncate(said)}",) if said else ()


def _status(result: HookResult, explanation: str) -> str:
    return f"exited with status {result.code}" + shared_output.explanation(explanation)


# --- claw@current ---

FIELDS: Final = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "decision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "reason": Effect.REASON,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
    "systemMessage": Effect.TELLS_PERSON,
    "continue": Effect.DENIES_AND_STOPS,
    "hookSpecificOutput.hookEventName": Effect.NONE,
}
"""What each member of an answer does here."""

_PERMISSIONS: Final = {"allow": Permission.ALLOW, "ask": Permission.ASK, "deny": Permission.DENY}
_NULL: Final = b"null"
"""A member that is null counts as absent."""

_PREVIEW: Final = 160
"""Characters of what claw-code quotes in a message about unreadable JSON."""


class _Said(Struct, frozen=True):
    """What standard output says, before the exit code is looked at."""

    texts: tuple[str, ...] = ()
    """For the model."""
    person: str = ""
    denies: bool = False
    stops: bool = False
    permission: Permission | None = None
    reason: str = ""
    """Of `permission`."""
    arguments: bytes = b""
    nonsense: str = ""

    @property
    def message(self) -> str:
        """All texts, joined as claw-code joins them."""
        return "\n".join(self.texts)


def read_output_current(spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said, as the program reads it: JSON on every exit code, and any failure denies a call."""
    if result.ended is not Ended.EXITED:
        said, failure = _Said(), shared_output.describe_end(spec, result)
    else:
        text, complaint = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
        said = _said(spec, text, complaint, result.cut)
        failure = "" if result.code in (0, DENIES) else _status(result, complaint or text)
        if result.code == DENIES:
            said = replace(said, denies=True, texts=said.texts or shared_output.nonempty(complaint))
    return _on_call(said, failure) if spec.event is Event.PRE_TOOL_USE else _on_result(spec, said, failure)


def _on_call(said: _Said, failure: str) -> Verdict:
    problem = failure or said.nonsense
    permission = Permission.DENY if said.denies else said.permission
    if problem and permission is Permission.ALLOW:
        permission = None
    denies = permission is Permission.DENY
    label = _ERROR if denies or failure else _FEEDBACK
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(said.message if said.denies else said.reason),
        arguments=None if denies or problem else said.arguments or None,
        feedback=() if said.denies else _labelled(label, said.message),
        messages=shared_output.nonempty(said.person),
        stop=said.stops,
        fails_closed=bool(failure),
        failure=problem,
    )


def _on_result(spec: HookSpec, said: _Said, failure: str) -> Verdict:
    """The tool has run: to deny or to fail is to mark its result as an error."""
    if not (said.denies or failure):
        verdict = Verdict(feedback=_labelled(_FEEDBACK, said.message))
    else:
        told = f"The {spec.event_name} hook {spec.label} {failure}" if failure else ""
        verdict = _denial(spec, said.message or told, _ERROR)
    return replace(
        verdict, messages=shared_output.nonempty(said.person), stop=said.stops, failure=failure or said.nonsense
    )


def _said(spec: HookSpec, text: str, complaint: str, cut: bool) -> _Said:
    """Standard output: nothing, plain text, an answer, or JSON that is none."""
    if not text:
        return _Said()
    if not text.startswith(("{", "[")) and not _is_json(text):
        return _Said(texts=(text,))
    try:
        members = _object(text)
    except (ValueError, msgspec.MsgspecError, RecursionError) as problem:
        lost = "printed more than is kept, so its JSON is lost"
        nonsense = lost if cut else "printed JSON that cannot be read" + shared_output.explanation(str(problem))
        return _Said(texts=(_unreadable(spec, str(problem), text, complaint),), nonsense=nonsense)
    return _answer(members, text)


def _is_json(text: str) -> bool:
    """True for a JSON text, a number or a word that stands alone."""
    try:
        msgspec.json.decode(text.encode())
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return False
    return True


def _object(text: str) -> Mapping[str, bytes]:
    """The members of a JSON object. Raises ValueError, MsgspecError, RecursionError."""
    raw = shared_output.normalise(text.encode())
    if not raw.startswith(b"{"):
        kinds = {b"[": "array", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
        raise ValueError(f"expected top-level JSON object, got {kinds.get(raw[:1], 'number')}")
    return {key: bytes(value) for key, value in raw_json.fields(raw).items()}


def _answer(members: Mapping[str, bytes], text: str) -> _Said:
    """What the members say. One of another type counts as absent, as in claw-code, but is told of."""
    wrong: list[str] = []

    def string(owner: Mapping[str, bytes], key: str) -> str:
        value = owner.get(key, _NULL)
        said = raw_json.text(value)
        if said is None and value != _NULL:
            wrong.append(f"{key} is no string")
        return said or ""

    specific = _specific(members.get("hookSpecificOutput", _NULL), wrong)
    person, decision = string(members, "systemMessage"), string(members, "decision")
    texts = shared_output.nonempty(string(members, "reason"), string(specific, "additionalContext"))
    word, reason = string(specific, "permissionDecision"), string(specific, "permissionDecisionReason")
    if word and word not in _PERMISSIONS:
        wrong.append(f"permissionDecision {shared_output.truncate(repr(word), 40)} is none of allow, ask, deny")
    goes_on, arguments = members.get("continue", _NULL), specific.get("updatedInput", _NULL)
    if goes_on not in (b"true", b"false", _NULL):
        wrong.append("continue is neither true nor false")
    if arguments != _NULL and not arguments.startswith(b"{"):
        wrong.append("updatedInput is no object")
    return _Said(
        texts=texts if texts or person else (text,),  # an answer without any text is itself the message
        person=person,
        denies=goes_on == b"false" or decision == "block",
        stops=goes_on == b"false",
        permission=_PERMISSIONS.get(word),
        reason=reason,
        arguments=shared_output.one_line(msgspec.Raw(arguments)) if arguments.startswith(b"{") else b"",
        nonsense="printed JSON that cannot be read: " + "; ".join(wrong) if wrong else "",
    )


def _specific(raw: bytes, wrong: list[str]) -> Mapping[str, bytes]:
    """The members of `hookSpecificOutput`."""
    if raw.startswith(b"{"):
        return {key: bytes(value) for key, value in raw_json.fields(raw).items()}
    if raw != _NULL:
        wrong.append("hookSpecificOutput is no object")
    return {}


def _unreadable(spec: HookSpec, detail: str, text: str, complaint: str) -> str:
    """claw-code's sentence for the model; it has the tool's name as well, which the model knows."""
    previews = f"stdout_preview={_preview(text)} stderr_preview={_preview(complaint)}"
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
