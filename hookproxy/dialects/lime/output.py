"""What a Lime hook says by its exit code, standard output and standard error, as a verdict.

Total: whatever a hook prints, nonsense is named as trouble, and never taken for consent (law 3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ...policy import matchers
from ..dialect import Effect
from ..shared import output as shared_output

DENIES: Final = 2
"""The exit code that denies, "even with no stdout"."""

_DECIDING: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
"""The events at which there is a call to deny; at others exit code 2 is one more failure."""

_NOTHING: Final = msgspec.Raw(b"")
_PERMISSIONS: Final = {"allow": Permission.ALLOW, "ask": Permission.ASK, "deny": Permission.DENY}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict, null is absent; others, `hookEventName` among them, are ignored."""

    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    additionalContext: str | None = None
    updatedInput: msgspec.Raw = _NOTHING
    updatedPermissions: tuple[str, ...] | None = None
    interrupt: bool | None = None


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON."""

    hookSpecificOutput: _Specific | None = None
    interrupt: bool | None = None
    goes_on: bool | None = msgspec.field(default=None, name="continue")
    decision: Literal["block"] | None = None
    systemMessage: str | None = None
    reason: str | None = None

    @property
    def specific(self) -> _Specific:
        return self.hookSpecificOutput or _ABSENT


FIELDS: Final = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.updatedPermissions": Effect.ALLOWS_FOR_SESSION,
    "hookSpecificOutput.interrupt": Effect.DENIES_AND_STOPS,
    "interrupt": Effect.DENIES_AND_STOPS,
    "continue": Effect.DENIES_AND_STOPS,
    "decision": Effect.DECIDES,
    "systemMessage": Effect.TELLS_PERSON,
    "reason": Effect.REASON,
}
"""What each member of an answer does here."""

_DECODER: Final = msgspec.json.Decoder(_Answer)
_ABSENT: Final = _Specific()
_PARTS: Final[shared_output.DecidingMembers] = {
    "hookSpecificOutput.permissionDecision": ("allow", "deny", "ask"),
    "hookSpecificOutput.permissionDecisionReason": shared_output.ANY_TEXT,
    "hookSpecificOutput.interrupt": (True, False),
    "interrupt": (True, False),
    "continue": (True, False),
    "decision": ("block",),
    "reason": shared_output.ANY_TEXT,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said."""
    return shared_output.background_verdict(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    said, complaint = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    denies = result.code == DENIES and spec.event in _DECIDING
    if result.code and not denies:
        return Verdict(
            failure=f"exited with status {result.code}" + shared_output.explanation(complaint),
            messages=("printed JSON, which does not count with this exit status, as documented",) * _is_object(said),
        )
    try:
        answer = _answer(said, result)
    except shared_output.InvalidOutput as problem:
        verdict = shared_output.invalid_output_verdict(
            _verdict(spec, shared_output.keep_deciding_members(result, _PARTS)), str(problem)
        )
        return replace(verdict, reason=shared_output.truncate(said)) if denies and not verdict.reason else verdict
    if answer is None:
        return _unanswered(said, complaint, denies)
    verdict = _on_call(spec.event, answer) if spec.event in _DECIDING else _aside(spec.event, answer)
    return _denied(answer, verdict, complaint) if denies else verdict


def _answer(said: str, result: HookResult) -> _Answer | None:
    """The JSON that was printed; None: plain text, or none. Raises InvalidOutput."""
    answer = shared_output.parse_json_object(result.stdout, _DECODER)
    if answer is None and said.startswith("{"):  # what is lost may have been a denial
        lost = "printed more than is kept, so its JSON is lost"
        raise shared_output.InvalidOutput(lost if result.cut else "printed what begins as JSON and does not end so")
    return answer


def _unanswered(said: str, complaint: str, denies: bool) -> Verdict:
    """Plain text says nothing, but may be the reason that goes with exit code 2."""
    if denies:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(complaint or said))
    if '"hookSpecificOutput"' in said:
        return Verdict(messages=("printed JSON among other text, which makes it plain text, as documented",))
    return Verdict()


def _denied(answer: _Answer, verdict: Verdict, complaint: str) -> Verdict:
    """The same with exit code 2: nothing that would let a call pass counts."""
    word = answer.specific.permissionDecision
    own = verdict.reason if word in (None, "deny") else answer.reason
    return replace(
        verdict,
        permission=Permission.DENY,
        reason=shared_output.truncate(own or complaint),
        arguments=None,
        allows=(),
        failure="",
    )


def _on_call(event: Event, answer: _Answer) -> Verdict:
    """An answer about a call that has not run."""
    specific = answer.specific
    permission, reason = _decided(answer)
    arguments = shared_output.one_line(specific.updatedInput)
    if permission is Permission.DENY or arguments == b"null":
        arguments = b""
    failure = _misplaced(event, arguments)
    if permission is Permission.ASK and event is Event.PERMISSION_REQUEST:
        permission = None  # that is what happens next
    if permission is Permission.ALLOW and failure:
        permission = None  # what it allows is another call than the one that would run
    rules, unusable = _rules(() if failure else specific.updatedPermissions or ())
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason),
        arguments=arguments if arguments and not failure else None,
        feedback=shared_output.nonempty(specific.additionalContext or ""),
        messages=shared_output.nonempty(answer.systemMessage or "", answer.reason or "", *unusable),
        stop=_stops(answer),
        allows=rules,
        failure=failure,
    )


def _decided(answer: _Answer) -> tuple[Permission | None, str]:
    """What an answer wants for the call, and the reason that belongs to it."""
    specific = answer.specific
    permission = _PERMISSIONS[specific.permissionDecision] if specific.permissionDecision else None
    general = answer.reason or ""
    own = specific.permissionDecisionReason or general
    denied = _stops(answer) or answer.decision == "block"
    if permission is Permission.DENY or not denied:
        return permission, own
    return Permission.DENY, own if permission is None else general


def _misplaced(event: Event, arguments: bytes) -> str:
    """What is wrong with the arguments that a hook gave; empty: nothing is."""
    if arguments[:1] not in (b"", b"{"):
        return "gave an updatedInput that is no object"
    if arguments and event is not Event.PRE_TOOL_USE:
        return f"gave an updatedInput on {event}, when it is too late for that"
    return ""


def _rules(written: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """The permission rules that can be used, and a sentence about each of the others.

    A rule counts for its tool's name in small letters as well: `Bash(git push:*)` is about the tool `bash`.
    """
    rules: dict[str, None] = {}
    unusable = []
    for rule in written:
        try:
            matchers.allow_rule(rule)
        except (ValueError, OverflowError, RecursionError):
            unusable.append(
                f"gave {shared_output.truncate(repr(rule), shared_output.MAX_EXPLANATION)}, which is no permission rule"
            )
            continue
        name, bracket, rest = rule.partition("(")
        rules |= dict.fromkeys((rule, name.lower() + bracket + rest))
    return tuple(rules), unusable


def _aside(event: Event, answer: _Answer) -> Verdict:
    """An answer at an event where nothing is decided."""
    denied, _ = _decided(answer)
    note = f"wants a call denied, but on {event} there is none to deny" if denied is Permission.DENY else ""
    context = answer.specific.additionalContext or ""
    return Verdict(
        feedback=() if event is Event.SESSION_END else shared_output.nonempty(context),
        messages=shared_output.nonempty(answer.systemMessage or "", answer.reason or "", note),
        stop=_stops(answer),
    )


def _stops(answer: _Answer) -> bool:
    return bool(answer.interrupt or answer.specific.interrupt or answer.goes_on is False)


def _is_object(said: str) -> bool:
    return said.startswith("{") and said.endswith("}")
