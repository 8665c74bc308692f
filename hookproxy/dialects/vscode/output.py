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
"""VS Code's own reason where a hook gives none."""

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
        return _rejected(spec, shared_output.truncate(stderr or _NO_REASON))
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


def _rejected(spec: HookSpec, reason: str) -> Verdict:
    """A call that is denied, or a result that the model must not build on."""
    if spec.event is Event.SESSION_START:
        return Verdict(failure=f"exited with status {BLOCKS}: {reason.partition(chr(10))[0]}"[:300])
    return Verdict(permission=Permission.DENY, reason=reason)


def _of_json(spec: HookSpec, output: _JsonOutput) -> Verdict:
    """The verdict of JSON output. What names another event is dropped, as in VS Code, except a denial."""
    specific = output.hookSpecificOutput or _NO_SPECIFIC
    names = {output.hookEventName, specific.hookEventName} - {None, spec.event.value, spec.event_name}
    stop, reason = output.continues is False, output.stopReason or ""
    context = (specific.additionalContext or "", output.additionalContext or "")
    verdict = Verdict(
        stop=stop,
        reason=shared_output.truncate(reason),
        feedback=shared_output.nonempty(*dict.fromkeys(context)),
        messages=shared_output.nonempty(output.systemMessage or ""),
    )
    if spec.event is Event.PRE_TOOL_USE:
        verdict = _before_call(verdict, specific)
    elif output.decision and spec.event is Event.POST_TOOL_USE:
        verdict = replace(verdict, permission=Permission.DENY, reason=shared_output.truncate(output.reason or reason))
    if not names or verdict.permission is Permission.DENY or stop:
        return verdict
    return Verdict(failure=f"answered for the event {sorted(map(str, names))[0][:40]!r}, so its output is dropped")


def _before_call(verdict: Verdict, specific: _Specific) -> Verdict:
    permission = _PERMISSIONS[specific.permissionDecision] if specific.permissionDecision else None
    reason = shared_output.truncate(specific.permissionDecisionReason or verdict.reason)
    arguments = shared_output.one_line(specific.updatedInput)
    if permission is Permission.DENY or arguments in (b"", b"null"):
        return replace(verdict, permission=permission, reason=reason)
    if not arguments.startswith(b"{"):
        return Verdict(failure="gave an updatedInput that is not an object")
    return replace(verdict, permission=permission, reason=reason, arguments=arguments)
