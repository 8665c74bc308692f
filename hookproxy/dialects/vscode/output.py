"""Reads the exit status and output of a hook of VS Code's local agent into a verdict.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect
from ..shared import output as shared_output

BLOCKS: Final = 2
"""The exit status that denies a call, or rejects its result; standard error is the reason."""

_NO_REASON: Final = "an unexpected error occurred"
_NO_BLOCK_REASON: Final = "Hook blocked tool result"
"""VS Code's own reasons where a hook gives none: with the exit status, and as JSON."""

_BLOCKED: Final = "The PostToolUse hook blocked this tool result. Reason: "
"""What VS Code puts before the reason of a hook that blocks a result. The result itself stays (`appendHookContext`)."""

_NO_JSON: Final = msgspec.Raw(b"")
_PERMISSIONS: Final = {"allow": Permission.ALLOW, "ask": Permission.ASK, "deny": Permission.DENY}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict, null counts as absent, other members are ignored."""

    hookEventName: str | None = None
    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    updatedInput: msgspec.Raw = _NO_JSON
    additionalContext: str | None = None


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON."""

    hookEventName: str | None = None
    continues: bool | None = msgspec.field(default=None, name="continue")
    stopReason: str | None = None
    systemMessage: str | None = None
    decision: Literal["block"] | None = None
    reason: str | None = None
    additionalContext: str | None = None
    hookSpecificOutput: _Specific | None = None


FIELDS: Final = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "decision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "reason": Effect.REASON,
    "stopReason": Effect.REASON,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
    "additionalContext": Effect.TELLS_MODEL,
    "systemMessage": Effect.TELLS_PERSON,
    "continue": Effect.DENIES_AND_STOPS,
}
"""What each member of the JSON output does here. `decision` is read after a call only."""

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_NO_SPECIFIC: Final = _Specific()
_DECIDING_MEMBERS: Final[shared_output.DecidingMembers] = {
    "continue": (True, False),
    "stopReason": shared_output.ANY_TEXT,
    "decision": ("block",),
    "reason": shared_output.ANY_TEXT,
    "hookSpecificOutput.permissionDecision": tuple(_PERMISSIONS),
    "hookSpecificOutput.permissionDecisionReason": shared_output.ANY_TEXT,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run: exit status 0 has JSON read, 2 denies, every other one is a failure."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stderr = shared_output.decode(result.stderr)
    if result.code == BLOCKS:
        return _rejected(spec, stderr)
    if result.code:
        return Verdict(failure=shared_output.exit_failure(result.code, stderr))
    try:
        output = shared_output.parse_json_object(result.stdout, _DECODER)
    except shared_output.InvalidOutput as error:
        kept = shared_output.keep_deciding_members(result, _DECIDING_MEMBERS)
        deciding = shared_output.parse_json_object(kept.stdout, _DECODER)
        return shared_output.invalid_output_verdict(_of_json(spec, deciding) if deciding else Verdict(), str(error))
    if output is not None:
        return _of_json(spec, output)
    text = shared_output.decode(result.stdout)
    if text.startswith("{"):  # the lost part may have denied
        return Verdict(failure=shared_output.CUT_JSON if result.cut else shared_output.INCOMPLETE_JSON)
    return Verdict(messages=("printed plain text, which VS Code ignores",)) if text else NO_VERDICT


def _rejected(spec: HookSpec, stderr: str) -> Verdict:
    """The verdict on an exit status that denies the call, or objects to its result."""
    reason = shared_output.truncate(stderr or _NO_REASON)
    if spec.event is Event.SESSION_START:
        return Verdict(failure=f"exited with status {BLOCKS}: {reason.partition(chr(10))[0]}"[:300])
    if spec.event is Event.PRE_TOOL_USE:
        return Verdict(permission=Permission.DENY, reason=reason)
    return Verdict(feedback=(_BLOCKED + reason,))


def _of_json(spec: HookSpec, output: _JsonOutput) -> Verdict:
    """The verdict of JSON output. Output that names another event is dropped, which is a failure."""
    if _is_for_another(spec, output.hookEventName):
        return Verdict(failure=_dropped("its output", output.hookEventName))
    specific, dropped = output.hookSpecificOutput or _NO_SPECIFIC, ""
    if _is_for_another(spec, specific.hookEventName):
        specific, dropped = _NO_SPECIFIC, _dropped("its hookSpecificOutput", specific.hookEventName)
    stop, reason = output.continues is False or output.stopReason is not None, output.stopReason or ""
    context = (specific.additionalContext or "", output.additionalContext or "")
    verdict = Verdict(
        stop=stop,
        reason=shared_output.truncate(reason),
        feedback=shared_output.nonempty(*dict.fromkeys(context)),
        messages=shared_output.nonempty(output.systemMessage or ""),
    )
    if spec.event is Event.PRE_TOOL_USE:
        verdict = _before_call(verdict, specific)
    elif spec.event is not Event.SESSION_START:
        objection = _objection(output, reason if stop else "")
        verdict = replace(verdict, feedback=shared_output.nonempty(objection, *verdict.feedback))
    return replace(verdict, failure=verdict.failure or dropped)


def _is_for_another(spec: HookSpec, event_name: str | None) -> bool:
    """Whether output is for another event than the hook ran on, by VS Code's own name for it."""
    own = Event.POST_TOOL_USE if spec.event is Event.POST_TOOL_USE_FAILURE else spec.event
    return event_name is not None and event_name != own.value


def _dropped(what: str, event_name: str | None) -> str:
    printed = shared_output.truncate(repr(event_name), shared_output.MAX_EXPLANATION)
    return f"answered for the event {printed}, so {what} is dropped"


def _objection(output: _JsonOutput, stop_reason: str) -> str:
    """What the model reads if a hook blocks a result, or stops the agent after it; empty: it does neither."""
    if output.decision:
        return _BLOCKED + shared_output.truncate(output.reason or stop_reason or _NO_BLOCK_REASON)
    return shared_output.truncate(stop_reason)


def _before_call(verdict: Verdict, specific: _Specific) -> Verdict:
    permission = _PERMISSIONS[specific.permissionDecision] if specific.permissionDecision else None
    reason = shared_output.truncate(specific.permissionDecisionReason or verdict.reason)
    arguments = shared_output.one_line(specific.updatedInput)
    if permission is Permission.DENY or arguments in (b"", b"null"):
        return replace(verdict, permission=permission, reason=reason)
    if not arguments.startswith(b"{"):
        return Verdict(failure="gave an updatedInput that is not an object")
    return replace(verdict, permission=permission, reason=reason, arguments=arguments)
