"""What a Docker Agent hook says by its exit code, standard output and standard error, as a verdict.

Total: whatever a hook prints, nonsense is named as trouble, and never taken for consent (law 3).
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..shared import output as shared_output

BLOCKS: Final = 2
"""The exit code that blocks, whatever is printed."""

STRICT: Final = "strict"
"""The mark of a hook with `strict_output`: what it prints is one JSON object of known members, or nothing."""
PREEMPTS: Final = "preempts"
"""The mark of a pre_tool_use hook with `preempt_yolo`: it judges, and rewrites nothing."""

_USUAL_NAMES: Final = {
    Event.PRE_TOOL_USE: "pre_tool_use",
    Event.POST_TOOL_USE: "post_tool_use",
    Event.POST_TOOL_USE_FAILURE: "post_tool_use",
    Event.PERMISSION_REQUEST: "permission_request",
    Event.SESSION_START: "session_start",
    Event.SESSION_END: "session_end",
    Event.USER_INPUT: "on_user_input",
}
_CALL: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
_RESULT: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_SESSION: Final = (Event.SESSION_START, Event.SESSION_END)

_NOTHING: Final = msgspec.Raw(b"")
_PERMISSIONS: Final = {
    "allow": Permission.ALLOW,
    "ask": Permission.ASK,
    "deny": Permission.DENY,
    "block": Permission.DENY,
}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hook_specific_output`. Types are strict, null is absent as in Go, unknown members are ignored."""

    hook_event_name: str | None = None  # some ported hooks name another system's event, and mean what they say
    permission_decision: str | None = None
    permission_decision_reason: str | None = None
    updated_input: msgspec.Raw = _NOTHING
    additional_context: str | None = None
    updated_tool_response: str | None = None
    metadata: dict[str, str] | None = None  # for Docker Agent's own confirmation dialog
    summary: str | None = None  # of compactions


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON."""

    goes_on: bool | None = msgspec.field(default=None, name="continue")
    stop_reason: str | None = None
    suppress_output: bool | None = None  # what a hook prints is in no transcript here anyway
    system_message: str | None = None
    decision: str | None = None
    reason: str | None = None
    hook_specific_output: _Specific | None = None


class Edition(Struct, frozen=True):
    """What the hooks page of March 2026 and the newer one, with its code, know differently about answers."""

    decisions: tuple[str, ...]
    """The words for `decision`."""
    blocking: frozenset[str]
    """The events that a hook may block."""
    stopping: frozenset[str]
    """The events at which `continue: false` ends the run."""
    closed: frozenset[str] = frozenset()
    """The events at which every failure of a hook blocks."""
    merges: bool = False
    """`updated_input` has only the arguments that change."""
    starts_with_context: bool = False
    """A session_start hook's `additional_context`, or its plain text, is for the model."""
    block_stops: bool = False
    """A block after the call ends the run."""


DOCUMENTED: Final = Edition(
    decisions=("allow", "block"),
    blocking=frozenset({"pre_tool_use"}),
    stopping=frozenset({"pre_tool_use", "post_tool_use", "session_start", "session_end", "on_user_input"}),
)
_MAY_BLOCK: Final = ("pre_tool_use", "tool_input_transform", "tool_guard", "permission_request", "post_tool_use")
CURRENT: Final = Edition(
    decisions=("block",),
    blocking=frozenset(_MAY_BLOCK),
    stopping=frozenset(_MAY_BLOCK),
    closed=frozenset({"pre_tool_use", "tool_guard"}),
    merges=True,
    starts_with_context=True,
    block_stops=True,
)

_DECODER: Final = msgspec.json.Decoder(_Answer)
_PARTS: Final[shared_output.DecidingMembers] = {
    "continue": (True, False),
    "stop_reason": shared_output.ANY_TEXT,
    "reason": shared_output.ANY_TEXT,
    "hook_specific_output.permission_decision": ("allow", "ask", "deny"),
    "hook_specific_output.permission_decision_reason": shared_output.ANY_TEXT,
}
_MEMBERS: Final = frozenset(_Answer.__struct_encode_fields__)
_SPECIFIC_MEMBERS: Final = frozenset(_Specific.__struct_encode_fields__)
_ABSENT: Final = _Specific()
_REWRITING: Final = ("pre_tool_use", "tool_input_transform")
_MEMBERS_OF_AN_ANSWER: Final = ('"decision"', '"continue"', '"hook_specific_output"')


def event_name(spec: HookSpec) -> str:
    """Docker Agent's name of the event that a hook is for."""
    return spec.event_name or _USUAL_NAMES.get(spec.event, spec.event.value)


def read_output(edition: Edition, spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said."""
    verdict = _verdict(edition, spec, result)
    closed = bool(verdict.failure) and event_name(spec) in edition.closed
    return shared_output.background_verdict(spec, replace(verdict, fails_closed=closed))


def _verdict(edition: Edition, spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    complaint = shared_output.decode(result.stderr)
    if result.code not in (0, BLOCKS):
        return Verdict(failure=f"exited with status {result.code}" + shared_output.explanation(complaint))
    said = shared_output.decode(result.stdout)
    try:
        answer = _answer(edition, spec, said, result)
    except shared_output.InvalidOutput as problem:
        part = shared_output.keep_deciding_members(result, {**_PARTS, "decision": edition.decisions})
        return shared_output.invalid_output_verdict(_verdict(edition, spec, part), str(problem))
    if result.code == BLOCKS:
        verdict = _blocked(edition, spec, answer or _Answer(), complaint)
    else:
        verdict = _heard(edition, spec, answer or _Answer(), said if answer is None else "")
    told = (answer.system_message or "") if answer else ""
    if answer is None and any(member in said for member in _MEMBERS_OF_AN_ANSWER):
        told = "printed JSON among other text, which makes it plain text"
    return replace(verdict, messages=shared_output.nonempty(*verdict.messages, told))


def _answer(edition: Edition, spec: HookSpec, said: str, result: HookResult) -> _Answer | None:
    """The JSON that was printed; None: plain text, or none. Raises InvalidOutput."""
    if said.startswith("{") and not said.endswith("}"):
        lost = "printed more than is kept, so its JSON is lost"
        raise shared_output.InvalidOutput(
            lost if result.cut else "printed JSON without an end, or with other text after it"
        )
    answer = shared_output.parse_json_object(result.stdout, _DECODER)
    if answer is None:
        if said and STRICT in spec.traits:
            raise shared_output.InvalidOutput("printed text, where strict_output asks for one JSON object")
        return None
    _check_words(edition, answer)
    if STRICT in spec.traits:
        _check_strictly(spec, said, answer)
    return answer


def _check_words(edition: Edition, answer: _Answer) -> None:
    specific = answer.hook_specific_output or _ABSENT
    for member, word, known in (
        ("decision", answer.decision, edition.decisions),
        ("permission_decision", specific.permission_decision, ("allow", "deny", "ask")),
    ):
        if word and word not in known:
            shown = shared_output.truncate(repr(word), shared_output.MAX_EXPLANATION)
            raise shared_output.InvalidOutput(f"gave the {member} {shown}, which is not {' or '.join(known)}")


def _check_strictly(spec: HookSpec, said: str, answer: _Answer) -> None:
    """With `strict_output` a member that nobody knows, or an answer to another event, is an error."""
    members = raw_json.fields(shared_output.normalise(said.encode()))
    specific = members.get("hook_specific_output", msgspec.Raw(b"null"))
    inner = raw_json.fields(bytes(specific)) if answer.hook_specific_output else {}
    unknown = [*(members.keys() - _MEMBERS), *(inner.keys() - _SPECIFIC_MEMBERS)]
    if unknown:
        shown = shared_output.truncate(repr(min(unknown)), shared_output.MAX_EXPLANATION)
        raise shared_output.InvalidOutput(f"printed the member {shown}, which strict_output does not allow")
    name = (answer.hook_specific_output or _ABSENT).hook_event_name
    if name and name != event_name(spec):
        other = shared_output.truncate(repr(name), shared_output.MAX_EXPLANATION)
        raise shared_output.InvalidOutput(f"printed an answer to {other}, but was asked on {event_name(spec)}")
    if answer.suppress_output:
        raise shared_output.InvalidOutput("printed suppress_output, which strict_output does not allow")


def _blocked(edition: Edition, spec: HookSpec, answer: _Answer, complaint: str) -> Verdict:
    """Exit code 2; the JSON's reason is used, else standard error (design section 11)."""
    stops = answer.goes_on is False and event_name(spec) in edition.stopping
    permission, reason = _judgement(answer, event_name(spec))
    if permission in (Permission.ALLOW, Permission.ASK):
        reason = ""  # it explains the contrary
    reason = _stop_reason(answer) or reason or complaint
    if spec.event in _CALL:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason), stop=stops)
    if event_name(spec) == "post_tool_use":
        return Verdict(feedback=shared_output.nonempty(reason), stop=stops or edition.block_stops)
    failure = f"exited with status {BLOCKS}, which cannot block {event_name(spec)}"
    return Verdict(stop=stops, failure=failure + shared_output.explanation(reason))


def _heard(edition: Edition, spec: HookSpec, answer: _Answer, plain: str) -> Verdict:
    """Exit code 0."""
    stops = answer.goes_on is False and event_name(spec) in edition.stopping
    if spec.event in _CALL:
        return _on_call(edition, spec, answer, stops)
    blocks = answer.decision == "block"
    reason = (answer.reason or "") if blocks else ""
    if event_name(spec) == "post_tool_use":
        said = shared_output.nonempty(_stop_reason(answer), reason)
        return Verdict(feedback=said, stop=stops or (blocks and edition.block_stops))
    specific = answer.hook_specific_output or _ABSENT
    if spec.event in _RESULT:
        rewritten = specific.updated_tool_response
        replacement = None if rewritten is None else raw_json.encode(rewritten)
        return Verdict(replacement=replacement, messages=(_stop_reason(answer), reason))
    context = ""
    if edition.starts_with_context and spec.event is Event.SESSION_START:
        context = specific.additional_context or plain
    idle = f"continue: false stops nothing at {event_name(spec)}, when no call is held"
    told = (_stop_reason(answer), reason, idle if answer.goes_on is False and spec.event in _SESSION else "")
    return Verdict(feedback=shared_output.nonempty(context), messages=told, stop=stops)


def _on_call(edition: Edition, spec: HookSpec, answer: _Answer, stops: bool) -> Verdict:
    permission, reason = _judgement(answer, event_name(spec))
    if answer.goes_on is False:
        own = "" if permission in (Permission.ALLOW, Permission.ASK) else reason
        permission, reason = Permission.DENY, _stop_reason(answer) or own
    if spec.event is Event.PERMISSION_REQUEST and permission is Permission.ASK:
        permission = None  # a person is asked anyway
    arguments = b""
    if event_name(spec) in _REWRITING and PREEMPTS not in spec.traits and permission is not Permission.DENY:
        arguments = shared_output.one_line((answer.hook_specific_output or _ABSENT).updated_input)
    if arguments == b"null":
        arguments = b""
    fits = arguments[:1] in (b"", b"{")
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason) if permission else "",
        arguments=arguments if fits and arguments else None,
        merges=edition.merges and fits and bool(arguments),
        stop=stops,
        failure="" if fits else "gave an updated_input that is no object",
    )


def _judgement(answer: _Answer, name: str) -> tuple[Permission | None, str]:
    """The graver one of the two that an answer may hold, and its reason; without any, a reason alone."""
    specific = answer.hook_specific_output or _ABSENT
    decides = name != "tool_input_transform"  # there permission_decision has no effect, as documented
    own = specific.permission_decision_reason or answer.reason or ""
    judgements = [
        (_PERMISSIONS[word], reason)
        for word, reason in (
            (specific.permission_decision if decides else None, own),
            (answer.decision, answer.reason or own),
        )
        if word
    ]
    return max(judgements, key=lambda one: one[0], default=(None, own))


def _stop_reason(answer: _Answer) -> str:
    return (answer.stop_reason or "") if answer.goes_on is False else ""
