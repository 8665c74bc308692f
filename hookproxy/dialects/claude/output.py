"""Reads the exit code, standard output and standard error of a Claude Code hook into a verdict.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

from math import inf
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import claude_envelope as envelope
from ..shared import output as shared_output
from ..shared.events import AFTER_CALL
from ..shared.output import BLOCKS

_ELICITATION_EVENTS: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_BLOCKABLE: Final = (Event.PRE_TOOL_USE, *AFTER_CALL, *_ELICITATION_EVENTS)
"""The events at which exit code 2 blocks. At other events it is a failure."""


class _Specific(envelope.Specific, frozen=True, kw_only=True):
    """`hookSpecificOutput`: the event's name may not be absent."""

    hookEventName: str
    permissionDecision: Literal["allow", "deny", "ask", "defer"] | msgspec.UnsetType = msgspec.UNSET


_NO_SPECIFIC: Final = _Specific(hookEventName="")
"""For output without `hookSpecificOutput`. Only there may the event's name be absent."""


class _JsonOutput(envelope.Output, frozen=True, kw_only=True):
    decision: Literal["approve", "block"] | msgspec.UnsetType = msgspec.UNSET
    hookSpecificOutput: _Specific = _NO_SPECIFIC


FIELDS: Final = for_names({
    Effect.DECIDES: "hookSpecificOutput.permissionDecision decision hookSpecificOutput.decision.behavior",
    Effect.REASON: (
        "hookSpecificOutput.permissionDecisionReason hookSpecificOutput.decision.message reason stopReason"
    ),
    Effect.REWRITES: "hookSpecificOutput.updatedInput hookSpecificOutput.decision.updatedInput",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext",
    Effect.REPLACES: "hookSpecificOutput.updatedToolOutput hookSpecificOutput.updatedMCPToolOutput",
    Effect.TELLS_PERSON: "systemMessage",
    Effect.DENIES_AND_STOPS: "continue hookSpecificOutput.decision.interrupt",
    Effect.ALLOWS_FOR_SESSION: "hookSpecificOutput.decision.updatedPermissions",
    Effect.ANSWERS_ELICITATION: "hookSpecificOutput.action hookSpecificOutput.content",
    # `classifierContext`: for the agent's own permission classifier
    Effect.NONE: (
        "hookSpecificOutput.classifierContext hookSpecificOutput.initialUserMessage hookSpecificOutput.reloadSkills"
        " hookSpecificOutput.sessionTitle hookSpecificOutput.watchPaths suppressOutput terminalSequence"
    ),
})  # fmt: skip

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_MEMBERS: Final = frozenset(_JsonOutput.__struct_encode_fields__)


class _AsyncOutput(msgspec.Struct, frozen=True):
    """The first line of a hook that goes on in the background (the Agent SDK's AsyncHookJSONOutput)."""

    asynchronous: bool = msgspec.field(default=False, name="async")
    asyncTimeout: float | None = None
    """Milliseconds."""


_ASYNC_DECODER: Final = msgspec.json.Decoder(_AsyncOutput)


def detach_time(line: bytes) -> float | None:
    """The seconds for which a hook goes on in the background, if this first line of its output asks for that.

    No document says what holds without `asyncTimeout`: then it is the hook's own timeout alone.
    """
    if b'"async"' not in line:
        return None
    try:
        output = _ASYNC_DECODER.decode(shared_output.normalise(line))
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    if not output.asynchronous:
        return None
    return inf if output.asyncTimeout is None else max(output.asyncTimeout, 0.0) / 1000


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook's run."""
    if not (result.stdout or result.stderr or result.code) and result.ended in (Ended.EXITED, Ended.DETACHED):
        return NO_VERDICT
    if spec.detaches is not None and b'"async"' in result.stdout:
        line, _, rest = result.stdout.partition(b"\n")
        if spec.detaches(line) is not None:
            later = replace(result, stdout=_later_output(rest))
            if result.code == BLOCKS and not spec.background:  # it has ended at once: it is not work for the background
                return _verdict(spec, later)
            return _background_verdict(spec, later)
    return _background_verdict(spec, result) if spec.background else _verdict(spec, result)


def _background_verdict(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook that nothing waits for: it decides nothing, and people learn how it failed.

    "systemMessage and additionalContext are delivered on the next conversation turn": here with the next result.
    """
    verdict = _verdict(spec, result)
    output, _ = _parse(spec.event, shared_output.decode(result.stdout), result.cut)
    context = output.hookSpecificOutput.additionalContext if output and result.ended is Ended.EXITED else ""
    return Verdict(feedback=shared_output.nonempty(context), messages=verdict.messages, failure=verdict.failure)


def _later_output(output: bytes) -> bytes:
    """The first line with JSON among what else such a hook prints, for example the log of an installation."""
    if output.lstrip().startswith(b"{"):
        return output
    return next((line for line in output.split(b"\n") if line.startswith(b"{") and line.rstrip().endswith(b"}")), b"")


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    output, error = _parse(spec.event, stdout, result.cut)
    blocks = result.code == BLOCKS and spec.event in _BLOCKABLE
    if output is None and not blocks:
        read = _last_members(spec.event, stdout) if error else None
        verdict = _verdict(spec, replace(result, stdout=read)) if read else Verdict()
        if verdict.permission is Permission.DENY or verdict.stop:  # to Claude Code, this is a denial
            return shared_output.invalid_output_verdict(verdict, error)
        return _without_json(spec.event, result.code, stdout, stderr, error)
    output = output or _JsonOutput()
    if spec.event is Event.PRE_TOOL_USE:
        verdict = envelope.on_call(output, stderr if blocks else "", blocks)
    elif spec.event in AFTER_CALL:
        verdict = envelope.on_result(spec.event, output, stderr if blocks else "")
    elif spec.event is Event.PERMISSION_REQUEST:
        verdict = envelope.on_request(output)
    elif spec.event in _ELICITATION_EVENTS:
        verdict = _on_elicitation(output, stderr if blocks else "", blocks)
    else:
        verdict = envelope.on_session(spec.event, output, stderr if result.code == BLOCKS else "")
    return replace(
        verdict,
        messages=shared_output.nonempty(*verdict.messages, output.systemMessage, error),
        stop=verdict.stop or not output.continues,
    )


def _parse(event: Event, stdout: str, cut: bool) -> tuple[_JsonOutput | None, str]:
    """The printed JSON, or None and what is wrong with it. For plain text, None and an empty string."""
    if not (stdout.startswith("{") and stdout.endswith("}")):
        return None, shared_output.CUT_JSON if cut and stdout.startswith("{") else ""
    try:
        output = _DECODER.decode(shared_output.normalise(stdout.encode()))
    except (ValueError, msgspec.MsgspecError, RecursionError) as problem:
        return None, "" if _are_json_lines(stdout) else shared_output.unreadable_json(problem, _DECODER)
    specific = output.hookSpecificOutput
    if specific is not _NO_SPECIFIC and specific.hookEventName != event:
        printed = shared_output.truncate(repr(specific.hookEventName), shared_output.MAX_EXPLANATION)
        return None, f"printed output for {printed}, but ran on {event}"
    return output, ""


def _last_members(event: Event, stdout: str) -> bytes | None:
    """The output as JSON.parse reads it, if it is output then: of two members of the same name the last one counts."""
    try:
        read = shared_output.last_members(stdout)
    except (ValueError, RecursionError):
        return None
    output, _ = _parse(event, read.decode(), cut=False)
    return read if output else None


def _are_json_lines(stdout: str) -> bool:
    """Whether each of several lines is JSON, and none is hook output. That is plain text, as documented."""
    lines = [line for line in stdout.split("\n") if line.strip()]
    try:
        values: list[object] = [msgspec.json.decode(line) for line in lines]
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return False
    return len(lines) > 1 and not any(isinstance(value, dict) and _MEMBERS & value.keys() for value in values)


def _without_json(event: Event, code: int, stdout: str, stderr: str, error: str) -> Verdict:
    """The verdict on plain text, on no output, or on JSON that cannot be read."""
    if code:
        return Verdict(failure=shared_output.exit_failure(code, stderr))
    if error:
        return Verdict(failure=error)
    if event is Event.SESSION_START:
        return Verdict(feedback=shared_output.nonempty(stdout))
    if '"hookSpecificOutput"' in stdout:
        return Verdict(messages=(shared_output.JSON_IN_TEXT,))
    return Verdict()


def _on_elicitation(output: _JsonOutput, stderr: str, blocks: bool) -> Verdict:
    """The hook answers the server's elicitation. A hook that blocks, or stops everything, declines."""
    specific = output.hookSpecificOutput
    action = "" if specific.action is msgspec.UNSET else specific.action
    if blocks or not output.continues or output.decision == "block":
        stop_reason = "" if output.continues else output.stopReason
        reason = stop_reason or (output.reason if output.decision == "block" else "") or stderr
        return Verdict(action="decline", reason=shared_output.truncate(reason), messages=(reason,))
    content = shared_output.one_line(specific.content) if action == "accept" else b""
    is_object = content[:1] in (b"", b"{")
    return Verdict(
        action=action,
        content=content if is_object and content else None,
        failure="" if is_object else "gave content that is not an object",
    )
