"""Reads the exit code and output of a Copilot CLI hook into a verdict, by two editions of the reference.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from ...jsonrpc import normalize
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import output as shared_output
from ..shared.output import BLOCKS, InvalidOutput

DENIED_BY_FAILURE: Final = "Denied by preToolUse hook (hook errored)"
"""The reason that Copilot CLI itself gives."""

MAX_JOINED_CONTEXT: Final = 10 * 1024
"""Characters: additionalContext of several postToolUse hooks is "joined with blank lines" and "capped at 10 KB"."""

_DECISION_KEYS: Final = (b'"permissionDecision"', b'"behavior"')
_FEEDBACK_KEYS: Final = (b'"modifiedResult"', b'"additionalContext"')

T = TypeVar("T")


class _CallDecision(msgspec.Struct, frozen=True, kw_only=True):
    """`preToolUse decision control`. Types are strict. null counts as absent. Unknown members are ignored."""

    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    modifiedArgs: msgspec.Raw = shared_output.NO_JSON


class _RequestDecision(msgspec.Struct, frozen=True, kw_only=True):
    behavior: Literal["allow", "deny"] | None = None
    message: str | None = None
    interrupt: bool | None = None


class _AdditionalContext(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a notification hook and of a postToolUseFailure hook."""

    additionalContext: str | None = None


class _ModifiedResult(msgspec.Struct, frozen=True, kw_only=True):
    textResultForLlm: str
    resultType: Literal["success", "failure", "denied", "error"] | None = None


class _ResultOutput(msgspec.Struct, frozen=True, kw_only=True):
    modifiedResult: _ModifiedResult | None = None
    additionalContext: str | None = None


class _MetaOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a preMcpToolCall hook (PreMcpToolCallHookOutput of the SDKs)."""

    metaToUse: msgspec.Raw = shared_output.NO_JSON


class _Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A line that shows people the progress of the hook."""

    type: Literal["progress"]


_CALL_DECODER: Final = msgspec.json.Decoder(_CallDecision)
_REQUEST_DECODER: Final = msgspec.json.Decoder(_RequestDecision)
_CONTEXT_DECODER: Final = msgspec.json.Decoder(_AdditionalContext)
_RESULT_DECODER: Final = msgspec.json.Decoder(_ResultOutput)
_META_DECODER: Final = msgspec.json.Decoder(_MetaOutput)
_PROGRESS_DECODER: Final = msgspec.json.Decoder(_Progress)

FIELDS: Final = for_names({
    Effect.DECIDES: "permissionDecision behavior",
    Effect.REASON: "permissionDecisionReason message",
    Effect.REWRITES: "modifiedArgs",
    Effect.TELLS_MODEL: "additionalContext",
    Effect.DENIES_AND_STOPS: "interrupt",
    Effect.REWRITES_META: "metaToUse",
    # `decision`: for agentStop and subagentStop, which cannot occur behind MCP
    Effect.NONE: "decision reason",
})  # fmt: skip

_DECIDING_MEMBERS: Final = shared_output.deciding_members(
    FIELDS, {"permissionDecision": ("allow", "deny", "ask"), "behavior": ("allow", "deny")}
)

CURRENT_FIELDS: Final = FIELDS | {
    "modifiedResult.textResultForLlm": Effect.REPLACES,
    "modifiedResult.resultType": Effect.REPLACES,
    "modifiedPrompt": Effect.NONE,
    "modifiedTransformedPrompt": Effect.NONE,
    "modifiedResponse": Effect.NONE,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a run: "Hook failures (non-zero exit codes or timeouts) are logged and skipped"."""
    verdict = _verdict(spec, result, _READERS)
    only_current = spec.event in _CURRENT_READERS and spec.event not in _READERS
    if only_current and not verdict.failure and any(name in result.stdout for name in _FEEDBACK_KEYS):
        verdict = replace(
            verdict, messages=(f"printed output that only copilot@current reads from {spec.event} hooks",)
        )
    return shared_output.background_verdict(spec, verdict)


def read_output_current(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict by the current edition, in which failures of preToolUse commands deny.

    "Timeouts are always fail-open", and so are HTTP hooks: their failure "falls through".
    """
    result = replace(result, stdout=without_progress(result.stdout))
    exited = result.ended is Ended.EXITED
    if exited and result.code == BLOCKS and spec.event is Event.PRE_TOOL_USE:
        return shared_output.background_verdict(spec, _refused_call(result))
    if exited and result.code == BLOCKS and spec.event is Event.POST_TOOL_USE_FAILURE:
        return shared_output.background_verdict(spec, _recovery(result))
    verdict = _verdict(spec, result, _CURRENT_READERS)
    failed = result.ended in (Ended.SIGNALLED, Ended.NOT_STARTED, Ended.FAILED) or (exited and result.code)
    if failed and spec.event is Event.PRE_TOOL_USE and spec.type != "http":
        verdict = replace(verdict, failure=f"{DENIED_BY_FAILURE}: {verdict.failure}", fails_closed=True)
    return shared_output.background_verdict(spec, verdict)


_Readers = Mapping[Event, Callable[[HookResult], Verdict]]


def _verdict(spec: HookSpec, result: HookResult, readers: _Readers) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    if result.code == BLOCKS and spec.event is Event.PERMISSION_REQUEST:
        return _refused_request(result)
    stderr = shared_output.decode(result.stderr)
    if result.code == BLOCKS and spec.event is Event.POST_TOOL_USE_FAILURE:
        return Verdict(feedback=shared_output.nonempty(stderr))
    if result.code:
        return Verdict(failure=shared_output.exit_failure(result.code, stderr))
    if spec.event not in readers:
        return Verdict()
    reader = readers[spec.event]
    try:
        return reader(result)
    except InvalidOutput as error:
        return shared_output.invalid_output_verdict(
            reader(shared_output.keep_deciding_members(result, _DECIDING_MEMBERS)), str(error)
        )


def _parse(result: HookResult, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The printed JSON. None for plain text or no output. Raises InvalidOutput."""
    output = shared_output.parse_output(result, decoder)
    if output is None and any(name in result.stdout for name in (*_DECISION_KEYS, *_FEEDBACK_KEYS)):
        raise InvalidOutput("printed JSON among other text, so it is not read as JSON")
    return output


def _parse_leniently(result: HookResult, decoder: msgspec.json.Decoder[T], default: T) -> tuple[T, tuple[str, ...]]:
    """The printed JSON if the exit code has already decided: invalid output only becomes a message to people."""
    try:
        return _parse(result, decoder) or default, ()
    except InvalidOutput as error:
        return _parse(shared_output.keep_deciding_members(result, _DECIDING_MEMBERS), decoder) or default, (str(error),)


def _on_call(result: HookResult) -> Verdict:
    output = _parse(result, _CALL_DECODER) or _CallDecision()
    permission = Permission[output.permissionDecision.upper()] if output.permissionDecision else None
    arguments = b"" if permission is Permission.DENY else shared_output.given(output.modifiedArgs)
    failure = _arguments_error(arguments) if arguments else ""
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(output.permissionDecisionReason or ""),
        arguments=arguments if arguments and not failure else None,
        failure=failure,
    )


def _arguments_error(arguments: bytes) -> str:
    if arguments[:1] != b"{":
        return "gave modifiedArgs that are not an object"
    try:
        normalize.normalize(arguments)  # later hooks must be able to read them
    except ValueError as problem:
        return "gave modifiedArgs that cannot be read" + shared_output.explanation(str(problem))
    return ""


def _refused_call(result: HookResult) -> Verdict:
    """A denial with which "any stdout JSON is merged". An approval in that JSON does not count."""
    output, messages = _parse_leniently(result, _CALL_DECODER, _CallDecision())
    json_reason = output.permissionDecisionReason if output.permissionDecision != "allow" else ""
    reason = json_reason or shared_output.decode(result.stderr)
    return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason), messages=messages)


def _on_request(result: HookResult) -> Verdict:
    output = _parse(result, _REQUEST_DECODER) or _RequestDecision()
    permission = Permission[output.behavior.upper()] if output.behavior else None
    stop = bool(output.interrupt) and permission is not Permission.ALLOW  # `interrupt` alone denies
    return Verdict(
        permission=Permission.DENY if stop else permission,
        reason=shared_output.truncate(output.message or ""),
        stop=stop,
    )


def _refused_request(result: HookResult) -> Verdict:
    """A denial: "stdout JSON (if any) is merged with {"behavior":"deny"}, and stderr is ignored"."""
    output, messages = _parse_leniently(result, _REQUEST_DECODER, _RequestDecision())
    reason = shared_output.truncate(output.message or "")
    return Verdict(permission=Permission.DENY, reason=reason, stop=bool(output.interrupt), messages=messages)


def _context(result: HookResult) -> Verdict:
    output = _parse(result, _CONTEXT_DECODER) or _AdditionalContext()
    return Verdict(feedback=shared_output.nonempty(output.additionalContext or ""))


def _recovery(result: HookResult) -> Verdict:
    """Feedback from both outputs: the current edition names standard output, the older one named standard error."""
    output, messages = _parse_leniently(result, _CONTEXT_DECODER, _AdditionalContext())
    stdout = shared_output.decode(result.stdout)
    context = output.additionalContext or ("" if stdout.startswith("{") else stdout)
    return Verdict(feedback=shared_output.nonempty(shared_output.decode(result.stderr), context), messages=messages)


def _on_result(result: HookResult) -> Verdict:
    output = _parse(result, _RESULT_DECODER) or _ResultOutput()
    modified = output.modifiedResult
    failed = modified is not None and modified.resultType not in (None, "success")
    return Verdict(
        permission=Permission.DENY if failed else None,
        replacement=msgspec.json.encode(modified.textResultForLlm) if modified else None,
        feedback=shared_output.nonempty(output.additionalContext or ""),
    )


def _on_mcp_call(result: HookResult) -> Verdict:
    """The `_meta` to send: an object replaces it, null removes it, and without the member it is kept."""
    output = _parse(result, _META_DECODER) or _MetaOutput()
    meta = shared_output.one_line(output.metaToUse)
    if not meta:
        return Verdict()
    if meta != b"null" and meta[:1] != b"{":
        return Verdict(failure="gave a metaToUse that is neither an object nor null")
    try:
        normalize.normalize(meta)  # the server must read what later hooks read
    except ValueError as problem:
        return Verdict(failure="gave a metaToUse that cannot be read" + shared_output.explanation(str(problem)))
    return Verdict(meta=meta)


def without_progress(output: bytes) -> bytes:
    """The output without its progress lines: "every other line is preserved verbatim"."""
    if b'"progress"' not in output:
        return output
    return b"\n".join(line for line in output.split(b"\n") if not _is_progress(line.strip()))


def _is_progress(line: bytes) -> bool:
    try:
        return line[:1] == b"{" and bool(_PROGRESS_DECODER.decode(line))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


_READERS: Final[_Readers] = {
    Event.PRE_TOOL_USE: _on_call,
    Event.PRE_MCP_TOOL_CALL: _on_mcp_call,
    Event.PERMISSION_REQUEST: _on_request,
    Event.POST_TOOL_USE_FAILURE: _context,
    Event.NOTIFICATION: _context,
}
"""The events whose output is read. For the others, "Output processed" is "No" or "SDK programmatic hooks only"."""

_CURRENT_READERS: Final[_Readers] = {**_READERS, Event.POST_TOOL_USE: _on_result, Event.SESSION_START: _context}
