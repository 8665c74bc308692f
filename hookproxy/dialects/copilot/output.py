"""What a Copilot CLI hook says by its exit code and its output, in two editions of the reference, as a verdict.

Total: whatever a hook prints, nonsense is named as trouble, and never taken for consent (law 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from ...jsonrpc import normalize
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect
from ..shared import output as shared_output
from ..shared.output import InvalidOutput

SPEAKS: Final = 2
"""The exit code that says something at some events; every other but 0 is a failure."""

ERRORED: Final = "Denied by preToolUse hook (hook errored)"
"""Copilot CLI's own words."""

_DECIDING: Final = (b'"permissionDecision"', b'"behavior"')
_COMMENTING: Final = (b'"modifiedResult"', b'"additionalContext"')
_NOTHING: Final = msgspec.Raw(b"")
_NULL: Final = b"null"

T = TypeVar("T")


class _OnCall(msgspec.Struct, frozen=True, kw_only=True):
    """`preToolUse decision control`. Types are strict, null counts as absent, unknown members are ignored."""

    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    modifiedArgs: msgspec.Raw = _NOTHING


class _OnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`permissionRequest decision control`."""

    behavior: Literal["allow", "deny"] | None = None
    message: str | None = None
    interrupt: bool | None = None


class _Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a notification hook and a postToolUseFailure hook have to say."""

    additionalContext: str | None = None


class _Modified(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result in Copilot CLI's words."""

    textResultForLlm: str
    resultType: Literal["success", "failure", "denied", "error"] | None = None


class _OnResult(msgspec.Struct, frozen=True, kw_only=True):
    """`postToolUse output`, of the current edition."""

    modifiedResult: _Modified | None = None
    additionalContext: str | None = None


class _Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A line for people that watch the hook at work."""

    type: Literal["progress"]


_ON_CALL: Final = msgspec.json.Decoder(_OnCall)
_ON_REQUEST: Final = msgspec.json.Decoder(_OnRequest)
_CONTEXT: Final = msgspec.json.Decoder(_Context)
_ON_RESULT: Final = msgspec.json.Decoder(_OnResult)
_PROGRESS: Final = msgspec.json.Decoder(_Progress)

_PARTS: Final[shared_output.DecidingMembers] = {
    "permissionDecision": ("allow", "deny", "ask"),
    "permissionDecisionReason": shared_output.ANY_TEXT,
    "behavior": ("allow", "deny"),
    "message": shared_output.ANY_TEXT,
    "interrupt": (True, False),
}

FIELDS: Final = {
    "permissionDecision": Effect.DECIDES,
    "behavior": Effect.DECIDES,
    "permissionDecisionReason": Effect.REASON,
    "message": Effect.REASON,
    "modifiedArgs": Effect.REWRITES,
    "additionalContext": Effect.TELLS_MODEL,
    "interrupt": Effect.DENIES_AND_STOPS,
    "decision": Effect.NONE,  # of agentStop and subagentStop, which cannot occur
    "reason": Effect.NONE,
}
"""What each member of an answer does here."""

CURRENT_FIELDS: Final = FIELDS | {
    "modifiedResult.textResultForLlm": Effect.REPLACES,
    "modifiedResult.resultType": Effect.REPLACES,
    "modifiedPrompt": Effect.NONE,
    "modifiedTransformedPrompt": Effect.NONE,
    "modifiedResponse": Effect.NONE,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said: "Hook failures (non-zero exit codes or timeouts) are logged and skipped"."""
    verdict = _verdict(spec, result, _ANSWERS)
    unheard = spec.event in _CURRENT_ANSWERS and spec.event not in _ANSWERS
    if unheard and not verdict.failure and any(name in result.stdout for name in _COMMENTING):
        verdict = replace(
            verdict, messages=(f"printed an answer that {spec.event} hooks have in copilot@current only",)
        )
    return shared_output.background_verdict(spec, verdict)


def read_output_current(spec: HookSpec, result: HookResult) -> Verdict:
    """The same in the current edition, where failures of preToolUse commands deny.

    "Timeouts are always fail-open", and HTTP hooks are so too: their failure "falls through".
    """
    result = replace(result, stdout=_without_progress(result.stdout))
    exited = result.ended is Ended.EXITED
    if exited and result.code == SPEAKS and spec.event is Event.PRE_TOOL_USE:
        return shared_output.background_verdict(spec, _refused_call(result))
    if exited and result.code == SPEAKS and spec.event is Event.POST_TOOL_USE_FAILURE:
        return shared_output.background_verdict(spec, _recovery(result))
    verdict = _verdict(spec, result, _CURRENT_ANSWERS)
    errored = result.ended in (Ended.SIGNALLED, Ended.NOT_STARTED, Ended.FAILED) or (exited and result.code)
    if errored and spec.event is Event.PRE_TOOL_USE and spec.type != "http":
        verdict = replace(verdict, failure=f"{ERRORED}: {verdict.failure}", fails_closed=True)
    return shared_output.background_verdict(spec, verdict)


_Answers = Mapping[Event, Callable[[HookResult], Verdict]]


def _verdict(spec: HookSpec, result: HookResult, answers: _Answers) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    if result.code == SPEAKS and spec.event is Event.PERMISSION_REQUEST:
        return _refused_request(result)
    complaint = shared_output.decode(result.stderr)
    if result.code == SPEAKS and spec.event is Event.POST_TOOL_USE_FAILURE:
        return Verdict(feedback=shared_output.nonempty(complaint))
    if result.code:
        return Verdict(failure=f"exited with status {result.code}" + shared_output.explanation(complaint))
    if spec.event not in answers:
        return Verdict()
    heard = answers[spec.event]
    try:
        return heard(result)
    except InvalidOutput as nonsense:
        return shared_output.invalid_output_verdict(
            heard(shared_output.keep_deciding_members(result, _PARTS)), str(nonsense)
        )


def _answer(result: HookResult, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The JSON that was printed; None: nothing, or plain text. Raises InvalidOutput."""
    answer = shared_output.parse_json_object(result.stdout, decoder)
    said = shared_output.decode(result.stdout)
    if answer is None and said.startswith("{"):
        raise InvalidOutput(
            f"printed {'more than is kept, so its JSON is lost' if result.cut else 'JSON without its end'}"
        )
    if answer is None and any(name in result.stdout for name in (*_DECIDING, *_COMMENTING)):
        raise InvalidOutput("printed JSON among other text, which makes it no answer")
    return answer


def _heard(result: HookResult, decoder: msgspec.json.Decoder[T], nothing: T) -> tuple[T, tuple[str, ...]]:
    """The same where the exit code has decided already: nonsense is for people to know."""
    try:
        return _answer(result, decoder) or nothing, ()
    except InvalidOutput as nonsense:
        return _answer(shared_output.keep_deciding_members(result, _PARTS), decoder) or nothing, (str(nonsense),)


def _on_call(result: HookResult) -> Verdict:
    answer = _answer(result, _ON_CALL) or _OnCall()
    permission = Permission[answer.permissionDecision.upper()] if answer.permissionDecision else None
    arguments = shared_output.one_line(answer.modifiedArgs)
    if permission is Permission.DENY or arguments == _NULL:
        arguments = b""
    failure = _problem_with(arguments) if arguments else ""
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(answer.permissionDecisionReason or ""),
        arguments=arguments if arguments and not failure else None,
        failure=failure,
    )


def _problem_with(arguments: bytes) -> str:
    if arguments[:1] != b"{":
        return "gave modifiedArgs that are no object"
    try:
        normalize.normalize(arguments)  # later hooks must be able to read them
    except ValueError as problem:
        return "gave modifiedArgs that cannot be read" + shared_output.explanation(str(problem))
    return ""


def _refused_call(result: HookResult) -> Verdict:
    """A denial, with which "any stdout JSON is merged", and what that allows does not count."""
    answer, nonsense = _heard(result, _ON_CALL, _OnCall())
    own = answer.permissionDecisionReason if answer.permissionDecision != "allow" else ""
    reason = own or shared_output.decode(result.stderr)
    return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason), messages=nonsense)


def _on_request(result: HookResult) -> Verdict:
    answer = _answer(result, _ON_REQUEST) or _OnRequest()
    permission = Permission[answer.behavior.upper()] if answer.behavior else None
    stop = bool(answer.interrupt) and permission is not Permission.ALLOW  # `interrupt` alone denies (design section 11)
    return Verdict(
        permission=Permission.DENY if stop else permission,
        reason=shared_output.truncate(answer.message or ""),
        stop=stop,
    )


def _refused_request(result: HookResult) -> Verdict:
    """A denial: "stdout JSON (if any) is merged with {"behavior":"deny"}, and stderr is ignored"."""
    answer, nonsense = _heard(result, _ON_REQUEST, _OnRequest())
    reason = shared_output.truncate(answer.message or "")
    return Verdict(permission=Permission.DENY, reason=reason, stop=bool(answer.interrupt), messages=nonsense)


def _context(result: HookResult) -> Verdict:
    answer = _answer(result, _CONTEXT) or _Context()
    return Verdict(feedback=shared_output.nonempty(answer.additionalContext or ""))


def _recovery(result: HookResult) -> Verdict:
    """Both outputs: the current edition names standard output, where the older one named standard error."""
    answer, nonsense = _heard(result, _CONTEXT, _Context())
    said = shared_output.decode(result.stdout)
    context = answer.additionalContext or ("" if said.startswith("{") else said)
    return Verdict(feedback=shared_output.nonempty(shared_output.decode(result.stderr), context), messages=nonsense)


def _on_result(result: HookResult) -> Verdict:
    answer = _answer(result, _ON_RESULT) or _OnResult()
    modified = answer.modifiedResult
    failed = modified is not None and modified.resultType not in (None, "success")
    return Verdict(
        permission=Permission.DENY if failed else None,
        replacement=msgspec.json.encode(modified.textResultForLlm) if modified else None,
        feedback=shared_output.nonempty(answer.additionalContext or ""),
    )


def _without_progress(output: bytes) -> bytes:
    """The output without its progress lines: "every other line is preserved verbatim"."""
    if b'"progress"' not in output:
        return output
    return b"\n".join(line for line in output.split(b"\n") if not _is_progress(line.strip()))


def _is_progress(line: bytes) -> bool:
    try:
        return line[:1] == b"{" and bool(_PROGRESS.decode(line))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


_ANSWERS: Final[_Answers] = {
    Event.PRE_TOOL_USE: _on_call,
    Event.PERMISSION_REQUEST: _on_request,
    Event.POST_TOOL_USE_FAILURE: _context,
    Event.NOTIFICATION: _context,
}
"""The events whose hooks are heard: of the others "Output processed" is "No", or "SDK programmatic hooks only"."""

_CURRENT_ANSWERS: Final[_Answers] = {**_ANSWERS, Event.POST_TOOL_USE: _on_result, Event.SESSION_START: _context}
