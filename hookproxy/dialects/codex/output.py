"""Reads the exit code, standard output and standard error of a Codex hook into a verdict.

Codex is strict: one member that it does not know, or that it reserves, makes the whole run a failure, and the call
proceeds. It never raises, and what is invalid never counts as an approval (law 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeVar

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookRun, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import output as shared_output
from ..shared.events import BEFORE_CALL
from ..shared.output import BLOCKS
from ..shared.settle import joined_replacements, only_first_reason

_STOPPED: Final = "PostToolUse hook stopped execution"
"""What the model reads if a hook gives no reason, as in Codex."""

_EventName = Literal[
    "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact", "SessionStart", "SessionEnd",
    "UserPromptSubmit", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
]  # fmt: skip


class _Common(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members that each event's output may have."""

    continues: bool = msgspec.field(default=True, name="continue")
    stopReason: str | None = None
    suppressOutput: bool = False
    systemMessage: str | None = None


class _Context(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hookEventName: _EventName
    additionalContext: str | None = None


class _OnCall(_Context, frozen=True, kw_only=True, forbid_unknown_fields=True):
    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    updatedInput: msgspec.Raw = shared_output.NO_JSON


class _OnResult(_Context, frozen=True, kw_only=True, forbid_unknown_fields=True):
    updatedMCPToolOutput: msgspec.Raw = shared_output.NO_JSON
    updatedToolOutput: msgspec.Raw = shared_output.NO_JSON


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    behavior: Literal["allow", "deny"]
    message: str | None = None
    updatedInput: msgspec.Raw = shared_output.NO_JSON
    updatedPermissions: msgspec.Raw = shared_output.NO_JSON
    interrupt: bool = False


class _OnRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hookEventName: _EventName
    decision: _Request | None = None


class _CallOutput(_Common, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    hookSpecificOutput: _OnCall | None = None


class _ResultOutput(_Common, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decision: Literal["block"] | None = None
    reason: str | None = None
    hookSpecificOutput: _OnResult | None = None


class _RequestOutput(_Common, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hookSpecificOutput: _OnRequest | None = None


class _StartOutput(_Common, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hookSpecificOutput: _Context | None = None


FIELDS: Final = for_names({
    Effect.DECIDES: "hookSpecificOutput.permissionDecision decision hookSpecificOutput.decision.behavior",
    Effect.REASON: (
        "hookSpecificOutput.permissionDecisionReason hookSpecificOutput.decision.message reason stopReason"
    ),
    Effect.REWRITES: "hookSpecificOutput.updatedInput",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext",
    Effect.REPLACES: "continue",
    Effect.TELLS_PERSON: "systemMessage",
})  # fmt: skip
"""What each member of the output does here. Other members, and reserved ones, are failures."""

_CALL: Final = msgspec.json.Decoder(_CallOutput)
_RESULT: Final = msgspec.json.Decoder(_ResultOutput)
_REQUEST: Final = msgspec.json.Decoder(_RequestOutput)
_START: Final = msgspec.json.Decoder(_StartOutput)
_END: Final = msgspec.json.Decoder(_Common)

T = TypeVar("T")


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    if not (result.stdout or result.code):
        return NO_VERDICT
    try:
        verdict = _verdict(spec.event, result)
    except shared_output.InvalidOutput as error:
        # "fail closed": a decision about a permission that is discarded must not become an approval
        verdict = Verdict(failure=str(error), fails_closed=spec.event is Event.PERMISSION_REQUEST and not result.code)
    return shared_output.background_verdict(spec, verdict)


def settle(hook_runs: Sequence[HookRun]) -> list[HookRun]:
    """The first denial in the file gives the reason, and a result is replaced by the feedback of all hooks."""
    return joined_replacements(only_first_reason(hook_runs), "\n\n")


def _verdict(event: Event, result: HookResult) -> Verdict:
    """The verdict of a run that exited. Raises InvalidOutput."""
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    if result.code:
        return _of_exit_code(event, result.code, stderr)
    if not stdout.startswith(("{", "[")):
        if event is Event.SESSION_START:
            return Verdict(feedback=shared_output.nonempty(stdout))
        return Verdict(messages=(shared_output.JSON_IN_TEXT,) if '"hookSpecificOutput"' in stdout else ())
    match event:
        case Event.PRE_TOOL_USE:
            return _on_call(_parse(result, _CALL))
        case Event.POST_TOOL_USE:
            return _on_result(_parse(result, _RESULT))
        case Event.PERMISSION_REQUEST:
            return _on_request(_parse(result, _REQUEST))
        case Event.SESSION_START:
            start = _parse(result, _START)
            context = start.hookSpecificOutput.additionalContext if start.hookSpecificOutput else None
            return Verdict(feedback=shared_output.nonempty(context or ""), messages=_messages(start))
        case _:
            return Verdict(messages=_messages(_parse(result, _END)))


def _of_exit_code(event: Event, code: int, stderr: str) -> Verdict:
    """Exit code 2 blocks only with a reason on standard error. Any other code is a failure."""
    if code == BLOCKS and stderr:
        if event in BEFORE_CALL:
            return Verdict(permission=Permission.DENY, reason=shared_output.truncate(stderr))
        if event is Event.POST_TOOL_USE:
            return Verdict(replacement=_replacement(stderr))
    if code == BLOCKS and not stderr:
        raise shared_output.InvalidOutput("exited with status 2 without a reason on standard error")
    raise shared_output.InvalidOutput(shared_output.exit_failure(code, stderr))


def _parse(result: HookResult, decoder: msgspec.json.Decoder[T]) -> T:
    output = shared_output.parse_json_object(result.stdout, decoder)
    if output is None:
        raise shared_output.InvalidOutput(
            shared_output.CUT_JSON if result.cut else "printed JSON that is incomplete, or no object"
        )
    return output


def _on_call(output: _CallOutput) -> Verdict:
    _refuse_reserved(
        {
            "continue": not output.continues,
            "stopReason": output.stopReason is not None,
            "suppressOutput": output.suppressOutput,
        }
    )
    specific = output.hookSpecificOutput
    arguments = shared_output.given(specific.updatedInput) if specific else b""
    decision, reason = output.decision, output.reason
    if specific and (specific.permissionDecision or specific.permissionDecisionReason is not None or arguments):
        decision, reason = _specific_decision(specific, arguments), specific.permissionDecisionReason
    if decision == "approve":
        raise _not_supported('"decision": "approve"')
    if decision is None and reason is not None and not arguments:
        raise shared_output.InvalidOutput("gave a reason without a decision")
    if decision == "block" and not (reason or "").strip():
        raise shared_output.InvalidOutput("denied without a reason, which Codex demands")
    return Verdict(
        permission=Permission.DENY if decision == "block" else None,
        reason=shared_output.truncate((reason or "").strip()) if decision == "block" else "",
        arguments=arguments or None,
        feedback=shared_output.nonempty((specific and specific.additionalContext) or ""),
        messages=_messages(output),
    )


def _specific_decision(specific: _OnCall, arguments: bytes) -> Literal["block"] | None:
    """The decision in Codex's older words. Raises InvalidOutput."""
    if arguments and specific.permissionDecision != "allow":
        raise shared_output.InvalidOutput('gave updatedInput without "permissionDecision": "allow"')
    if specific.permissionDecision == "ask":
        raise _not_supported('"permissionDecision": "ask"')
    if specific.permissionDecision == "allow" and not arguments:
        raise _not_supported('"permissionDecision": "allow" without updatedInput')
    if arguments and not arguments.startswith(b"{"):
        raise shared_output.InvalidOutput("gave an updatedInput that is not an object")
    return "block" if specific.permissionDecision == "deny" else None


def _on_result(output: _ResultOutput) -> Verdict:
    """The verdict after a call. `continue` counts also beside what makes the output invalid, but no context does."""
    specific = output.hookSpecificOutput
    context = (specific and specific.additionalContext) or ""
    try:
        _check_result(output)
    except shared_output.InvalidOutput:
        if output.continues:
            raise
        context = ""
    replacement = (output.reason or "").strip()
    if not output.continues:
        replacement = replacement or (output.stopReason or "").strip() or _STOPPED
    return Verdict(
        replacement=_replacement(replacement) if replacement else None,
        feedback=shared_output.nonempty(context),
        messages=_messages(output),
    )


def _check_result(output: _ResultOutput) -> None:
    """Raise InvalidOutput for what Codex does not accept after a call."""
    specific = output.hookSpecificOutput
    _refuse_reserved(
        {
            "suppressOutput": output.suppressOutput,
            "updatedMCPToolOutput": specific and shared_output.given(specific.updatedMCPToolOutput),
            "updatedToolOutput": specific and shared_output.given(specific.updatedToolOutput),
        }
    )
    if output.decision and not (output.reason or "").strip():
        raise shared_output.InvalidOutput("blocked without a reason, which Codex demands")
    if output.continues and not output.decision and output.reason is not None:
        raise shared_output.InvalidOutput("gave a reason without a decision")


def _on_request(output: _RequestOutput) -> Verdict:
    decision = output.hookSpecificOutput.decision if output.hookSpecificOutput else None
    _refuse_reserved(
        {
            "continue": not output.continues,
            "stopReason": output.stopReason is not None,
            "suppressOutput": output.suppressOutput,
            "updatedInput": decision and shared_output.given(decision.updatedInput),
            "updatedPermissions": decision and shared_output.given(decision.updatedPermissions),
            "interrupt": decision and decision.interrupt,
        }
    )
    if decision is None:
        return Verdict(messages=_messages(output))
    denies = decision.behavior == "deny"
    return Verdict(
        permission=Permission.DENY if denies else Permission.ALLOW,
        reason=shared_output.truncate((decision.message or "").strip()) if denies else "",
        messages=_messages(output),
    )


def _replacement(text: str) -> bytes:
    return raw_json.encode(shared_output.truncate(text))


def _messages(output: _Common) -> tuple[str, ...]:
    return shared_output.nonempty(output.systemMessage or "")


def _refuse_reserved(members: dict[str, object]) -> None:
    """Raise InvalidOutput for the first of these members that the output has."""
    given = next((name for name, has in members.items() if has), "")
    if given:
        raise _not_supported(given)


def _not_supported(what: str) -> shared_output.InvalidOutput:
    return shared_output.InvalidOutput(f"gave {what}, which Codex does not accept, so its output does not count")
