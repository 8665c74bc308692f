"""Reads what a hook of Gemini CLI prints into a verdict: JSON counts with any exit status, as in its source.

It never raises: invalid output is a failure or a denial that names what is wrong, and never an approval (law 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookRun, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import output as shared_output
from ..shared.events import AFTER_CALL
from ..shared.settle import joined_replacements

WARNS: Final = 1
"""The exit status with which plain text is a warning. With any other but 0, it is the reason of a denial."""


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. `hookEventName` is not checked, as in Gemini CLI."""

    tool_input: msgspec.Raw = shared_output.NO_JSON
    additionalContext: str | None = None
    tailToolCallRequest: msgspec.Raw = shared_output.NO_JSON
    clearContext: bool | None = None


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON. Types are strict, null counts as absent, other members are ignored."""

    continues: bool | None = msgspec.field(default=None, name="continue")
    stopReason: str | None = None
    suppressOutput: bool | None = None
    systemMessage: str | None = None
    decision: Literal["allow", "approve", "ask", "deny", "block"] | None = None
    reason: str | None = None
    hookSpecificOutput: _Specific | None = None


FIELDS: Final = for_names({
    Effect.DECIDES: "decision",
    Effect.REASON: "reason stopReason",
    Effect.REWRITES: "hookSpecificOutput.tool_input",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext",
    Effect.TELLS_PERSON: "systemMessage",
    Effect.DENIES_AND_STOPS: "continue",
    # `tailToolCallRequest`: the agent would call another tool by itself
    # `clearContext`: for the agent's conversation
    Effect.NONE: "hookSpecificOutput.tailToolCallRequest hookSpecificOutput.clearContext suppressOutput",
})  # fmt: skip

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_TEXT_DECODER: Final = msgspec.json.Decoder(str)
_NO_SPECIFIC: Final = _Specific()
_DECIDING_MEMBERS: Final = shared_output.deciding_members(FIELDS, {"decision": tuple(shared_output.PERMISSIONS)})


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run: of standard output, or of standard error if there is no standard output."""
    if result.ended is Ended.SIGNALLED:  # Gemini CLI reads what was printed before; here only a denial counts
        verdict = read_output(spec, replace(result, ended=Ended.EXITED, code=0))
        return shared_output.invalid_output_verdict(verdict, shared_output.describe_end(spec, result))
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    printed = result.stdout if shared_output.decode(result.stdout) else result.stderr
    text = shared_output.decode(printed)
    if not text:
        return _silent(result)
    shown = replace(result, stdout=_unquoted(printed))
    try:
        output = shared_output.parse_json_object(shown.stdout, _DECODER)
    except shared_output.InvalidOutput as error:
        kept = shared_output.keep_deciding_members(shown, _DECIDING_MEMBERS)
        deciding = shared_output.parse_json_object(kept.stdout, _DECODER)
        verdict = _of_json(spec, deciding) if deciding else Verdict()
        return _at_least_denied(result, shared_output.invalid_output_verdict(verdict, str(error)), text)
    if output is not None:
        return _of_json(spec, output)
    if text.startswith("{") and not result.code:  # the lost part may have denied
        return Verdict(failure=shared_output.CUT_JSON if result.cut else shared_output.INCOMPLETE_JSON)
    return _of_text(spec, result, text)


def settle(hook_runs: Sequence[HookRun]) -> list[HookRun]:
    """The reasons of all hooks that reject a result take its place (`mergeWithOrDecision`)."""
    return joined_replacements(hook_runs, "\n")


def _silent(result: HookResult) -> Verdict:
    """Without any output the call goes on, whatever the exit status: that is a failure of the hook."""
    return Verdict(failure=f"exited with status {result.code}, and gave no reason") if result.code else NO_VERDICT


def _unquoted(printed: bytes) -> bytes:
    """A JSON string is parsed once more, as in Gemini CLI."""
    text = shared_output.decode(printed)
    if not text.startswith('"'):
        return printed
    try:
        return _TEXT_DECODER.decode(text.encode()).encode(errors="replace")
    except (msgspec.MsgspecError, ValueError):
        return printed


def _of_text(spec: HookSpec, result: HookResult, text: str) -> Verdict:
    text = shared_output.truncate(text)
    if result.code == WARNS:
        return Verdict(failure="exited with status 1" + shared_output.explanation(text))
    if result.code:
        return _denied(spec, text)
    return Verdict(messages=(text,))


def _denied(spec: HookSpec, reason: str) -> Verdict:
    """A denial: of the call, or of its result, whose place the reason takes. Other events have nothing to deny."""
    if spec.event is Event.PRE_TOOL_USE:
        return Verdict(permission=Permission.DENY, reason=reason)
    if spec.event in AFTER_CALL:
        sentence = reason or f"The hook {spec.label} rejects this result."
        return Verdict(permission=Permission.DENY, reason=reason, replacement=raw_json.encode(sentence))
    return Verdict(messages=(reason,) if reason else ())


def _at_least_denied(result: HookResult, verdict: Verdict, text: str) -> Verdict:
    """With an exit status that denies, output that cannot be read denies, too."""
    if result.code in (0, WARNS) or verdict.permission is Permission.DENY or verdict.stop:
        return verdict
    return Verdict(permission=Permission.DENY, reason=shared_output.truncate(text), messages=(verdict.failure,))


def _of_json(spec: HookSpec, output: _JsonOutput) -> Verdict:
    specific = output.hookSpecificOutput or _NO_SPECIFIC
    permission = shared_output.PERMISSIONS[output.decision] if output.decision else None
    stop, reason = output.continues is False, output.reason or ""
    messages = shared_output.nonempty(output.systemMessage or "")
    if specific.tailToolCallRequest:
        messages += ("asked for another tool call (tailToolCallRequest), which nobody here can make",)
    context = shared_output.nonempty(specific.additionalContext or "")
    if stop:
        reason = output.stopReason or reason
    reason = shared_output.truncate(reason)
    if spec.event is Event.PRE_TOOL_USE:
        verdict = _before_call(specific, permission, reason)
    elif permission is Permission.DENY or (stop and spec.event in AFTER_CALL):
        verdict = _denied(spec, reason or (f"The hook {spec.label} stops the agent here." if stop else ""))
    else:
        verdict = Verdict(reason=reason)
    return replace(verdict, stop=stop, feedback=context, messages=(*messages, *verdict.messages))


def _before_call(specific: _Specific, permission: Permission | None, reason: str) -> Verdict:
    """Changed arguments replace all others, as `scheduler/hook-utils.ts` does."""
    arguments = shared_output.given(specific.tool_input)
    if permission is Permission.DENY or not arguments:
        return Verdict(permission=permission, reason=reason)
    if not arguments.startswith(b"{"):
        return Verdict(failure="gave a tool_input that is not an object")
    return Verdict(permission=permission, reason=reason, arguments=arguments)
