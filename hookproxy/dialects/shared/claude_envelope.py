"""The output of Claude Code's hooks, which other systems have too: the shape of its JSON, and what its members decide.

`on_call`, `on_result`, `on_request` and `on_session` return the verdict on output of this shape. `read_output` is for
systems that accept it in any form; it never raises, and invalid output never counts as an approval (law 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from . import output as shared_output
from .events import AFTER_CALL, BEFORE_CALL
from .output import BLOCKS, NO_JSON

_AGENT_CHANGES: Final = ("setMode", "addDirectories", "removeDirectories")
"""The permission changes that only concern the agent."""


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    toolName: str
    ruleContent: str = ""

    @property
    def text(self) -> str:
        """The rule as in settings files: `Tool` or `Tool(content)`."""
        return f"{self.toolName}({self.ruleContent})" if self.ruleContent else self.toolName


class _PermissionChange(msgspec.Struct, frozen=True):
    type: str
    behavior: str = ""
    rules: tuple[_Rule, ...] = ()


class RequestDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The `decision` of a PermissionRequest hook."""

    behavior: Literal["allow", "deny"]
    updatedInput: msgspec.Raw = NO_JSON
    updatedPermissions: tuple[_PermissionChange, ...] = ()
    message: str = ""
    interrupt: bool = False


def request_verdict(decision: RequestDecision) -> Verdict:
    """The verdict of a decision. A decision that cannot be followed completely is a failure, and allows nothing."""
    if decision.behavior == "deny":
        return Verdict(
            permission=Permission.DENY, reason=shared_output.truncate(decision.message), stop=decision.interrupt
        )
    rules, failure, messages = _permission_rules(decision.updatedPermissions)
    failure = failure or shared_output.rules_error(rules)
    arguments = shared_output.one_line(decision.updatedInput)
    if arguments[:1] not in (b"", b"{"):  # running the call unchanged would not be what the hook allowed
        failure = "gave an updatedInput that is not an object"
    return Verdict(
        permission=Permission.ALLOW,
        arguments=arguments if arguments and not failure else None,
        allows=() if failure else rules,
        messages=messages,
        failure=failure,
    )


def _permission_rules(changes: tuple[_PermissionChange, ...]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The rules that allow calls from now on, what is wrong with a change, and messages on changes without effect.

    Wherever Claude Code would save a change, here it is valid for the session. No change that restricts is ignored.
    """
    rules: list[str] = []
    messages: list[str] = []
    for change in changes:
        if change.type in _AGENT_CHANGES:
            messages.append(f"gave an updatedPermissions entry that has no effect behind MCP: {change.type}")
        elif (change.type, change.behavior) == ("addRules", "allow"):
            rules += [rule.text for rule in change.rules]
        else:
            quoted = shared_output.truncate(f"{change.type} {change.behavior}".strip(), shared_output.MAX_EXPLANATION)
            return (), f"gave an updatedPermissions entry that is not supported: {quoted}", tuple(messages)
    return tuple(rules), "", tuple(messages)


PERMISSIONS: Final = {
    **shared_output.PERMISSIONS,
    "defer": Permission.ASK,  # a person decides when the session is resumed: impossible behind MCP
}


class Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict. Unknown members are ignored. A dialect says which words are decisions."""

    hookEventName: str = ""
    permissionDecision: str | msgspec.UnsetType = msgspec.UNSET
    permissionDecisionReason: str = ""
    updatedInput: msgspec.Raw = NO_JSON
    additionalContext: str = ""
    updatedToolOutput: msgspec.Raw = NO_JSON
    updatedMCPToolOutput: msgspec.Raw = NO_JSON
    decision: RequestDecision | msgspec.UnsetType = msgspec.UNSET
    action: Literal["accept", "decline", "cancel"] | msgspec.UnsetType = msgspec.UNSET
    content: msgspec.Raw = NO_JSON


NO_SPECIFIC: Final = Specific()
"""For output without `hookSpecificOutput`."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON that a hook prints."""

    continues: bool = msgspec.field(default=True, name="continue")
    stopReason: str = ""
    suppressOutput: bool = False  # accepted, without effect, as documented
    systemMessage: str = ""
    terminalSequence: str = ""  # for the agent's terminal, which an MCP server cannot write to
    decision: str | msgspec.UnsetType = msgspec.UNSET
    reason: str = ""
    hookSpecificOutput: Specific = NO_SPECIFIC


def on_call(output: Output, stderr: str, blocks: bool) -> Verdict:
    """The verdict before a call; `blocks`: the exit code denies, with the reason in `stderr`."""
    specific = output.hookSpecificOutput
    decisions = [
        (PERMISSIONS[word], reason)
        for word, reason in (
            (specific.permissionDecision, specific.permissionDecisionReason or output.reason),
            (output.decision, output.reason),  # deprecated, but still supported
        )
        if word is not msgspec.UNSET
    ]
    permission, reason = max(decisions, key=lambda decision: decision[0], default=(None, ""))
    if blocks or not output.continues:
        stop_reason = "" if output.continues else output.stopReason
        denial_reason = reason if permission is Permission.DENY else ""
        permission, reason = Permission.DENY, stop_reason or denial_reason or stderr
    if permission is Permission.DENY:
        reason = reason or output.systemMessage  # the model must learn why, and there is no other text
    arguments = shared_output.one_line(specific.updatedInput)
    if permission is Permission.DENY or specific.permissionDecision == "defer":
        arguments = b""
    is_object = arguments[:1] in (b"", b"{")
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason),
        arguments=arguments if is_object and arguments else None,
        feedback=shared_output.nonempty(specific.additionalContext),
        failure="" if is_object else "gave an updatedInput that is not an object",
    )


def on_result(event: Event, output: Output, stderr: str) -> Verdict:
    """The verdict after a call; `stderr` is for the model if the exit code says so, else empty."""
    specific = output.hookSpecificOutput
    reason = (output.reason or stderr or output.systemMessage) if output.decision == "block" else stderr
    stop_reason = "" if output.continues else output.stopReason
    replacement = shared_output.one_line(specific.updatedToolOutput) or shared_output.one_line(
        specific.updatedMCPToolOutput
    )
    if event is not Event.POST_TOOL_USE:
        replacement = b""
    is_output = replacement[:1] in (b"", b"[", b"{", b'"')
    return Verdict(
        feedback=shared_output.nonempty(reason, specific.additionalContext, stop_reason),
        replacement=replacement if is_output and replacement else None,
        failure="" if is_output else "gave a tool output that is not an array, a string or an object",
    )


def on_request(output: Output) -> Verdict:
    """The hook decides about a call in place of the person. Exit code 2 has no effect here, as documented."""
    decision = output.hookSpecificOutput.decision
    if not output.continues:
        message = decision.message if decision and decision.behavior == "deny" else ""
        reason = output.stopReason or message or output.systemMessage
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason))
    if not decision:
        return Verdict()
    verdict = request_verdict(decision)
    if decision.behavior == "deny" and not verdict.reason:
        return replace(verdict, reason=shared_output.truncate(output.systemMessage))
    return verdict


def on_session(event: Event, output: Output, stderr: str) -> Verdict:
    """The verdict on an event that decides nothing; `stderr` is for the person."""
    starting = event is Event.SESSION_START
    return Verdict(
        feedback=shared_output.nonempty(output.hookSpecificOutput.additionalContext) if starting else (),
        messages=("" if output.continues else output.stopReason, stderr),
    )


# --- systems that accept it in any form ---

_Decision = Literal["allow", "approve", "ask", "deny", "block"] | msgspec.UnsetType


class _AnySpecific(Specific, frozen=True, kw_only=True):
    permissionDecision: _Decision = msgspec.UNSET


_NOTHING_SPECIFIC: Final = _AnySpecific()


class _AnyOutput(Output, frozen=True, kw_only=True):
    decision: _Decision = msgspec.UNSET
    hookSpecificOutput: _AnySpecific = _NOTHING_SPECIFIC


_DECODER: Final = msgspec.json.Decoder(_AnyOutput)
_DENYING: Final = ("deny", "block")
FIELDS: Final = for_names({
    Effect.DECIDES: "hookSpecificOutput.permissionDecision decision",
    Effect.REASON: "hookSpecificOutput.permissionDecisionReason reason stopReason",
    Effect.REWRITES: "hookSpecificOutput.updatedInput",
    Effect.TELLS_MODEL: "hookSpecificOutput.additionalContext",
    Effect.TELLS_PERSON: "systemMessage",
    Effect.DENIES_AND_STOPS: "continue",
    Effect.NONE: "suppressOutput",
})  # fmt: skip
"""What each member of the output does in a system that has this base alone."""

_DECIDING_MEMBERS: Final = {
    **shared_output.deciding_members(
        FIELDS, {"hookSpecificOutput.permissionDecision": _DENYING, "decision": _DENYING, "continue": (False,)}
    ),
    "hookSpecificOutput.hookEventName": shared_output.ANY_TEXT,
}


class Rules(Struct, frozen=True):
    """How one such system differs from the others."""

    output_text: Callable[[int, str, str], str] = lambda _code, stdout, _stderr: stdout
    """The text that is the hook's output, from its exit code, its standard output and its standard error."""
    checks_event: bool = False
    """A `hookSpecificOutput` for another event is discarded."""
    any_exit_code: bool = False
    """The JSON counts whatever the exit code is. Otherwise, only a denial counts with codes other than 0 and BLOCKS."""
    shows_text: bool = False
    """Plain text is for the person. Otherwise it is for the model when a session starts, and ignored elsewhere."""
    merges: bool = False
    """`updatedInput` has only the arguments that change."""
    denies_only: bool = False
    """Nothing counts but a denial before a call."""
    replaces: bool = False
    """`updatedToolOutput` and `updatedMCPToolOutput` replace the result of a call."""


def read_output(rules: Rules, spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    if not (result.stdout or result.stderr or result.code):
        return NO_VERDICT
    verdict = shared_output.background_verdict(spec, _verdict(rules, spec, result))
    if not rules.denies_only:
        return verdict
    denies = spec.event is Event.PRE_TOOL_USE and verdict.permission is Permission.DENY
    kept = Verdict(messages=verdict.messages, failure=verdict.failure)
    return replace(kept, permission=Permission.DENY, reason=verdict.reason) if denies else kept


def _verdict(rules: Rules, spec: HookSpec, result: HookResult) -> Verdict:
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    shown = rules.output_text(result.code, stdout, stderr)
    blocks = result.code == BLOCKS and spec.event in (*BEFORE_CALL, *AFTER_CALL)
    try:
        output = shared_output.parse_output(replace(result, stdout=shown.encode()), _DECODER)
    except shared_output.InvalidOutput as error:
        kept = shared_output.keep_deciding_members(replace(result, stdout=shown.encode()), _DECIDING_MEMBERS)
        deciding = shared_output.parse_json_object(kept.stdout, _DECODER) or _AnyOutput()
        verdict = _of_output(rules, spec.event, deciding, stderr if blocks else "", blocks)
        return shared_output.invalid_output_verdict(verdict, str(error))
    if output is None and not blocks:
        return _of_text(rules, spec.event, result.code, shown, stderr)
    reason = next((text for text in (stderr, stdout) if text and (output is None or text != shown)), "")
    verdict = _of_output(rules, spec.event, output or _AnyOutput(), reason if blocks else "", blocks)
    if result.code in (0, BLOCKS) or rules.any_exit_code:
        return verdict
    return shared_output.invalid_output_verdict(verdict, shared_output.exit_failure(result.code, stderr))


def _of_text(rules: Rules, event: Event, code: int, text: str, stderr: str) -> Verdict:
    if code:
        return Verdict(failure=shared_output.exit_failure(code, stderr or text))
    if rules.shows_text:
        return Verdict(messages=shared_output.nonempty(text))
    if event is Event.SESSION_START:
        return Verdict(feedback=shared_output.nonempty(text))
    return Verdict(messages=(shared_output.JSON_IN_TEXT,)) if '"hookSpecificOutput"' in text else NO_VERDICT


def _of_output(rules: Rules, event: Event, output: _AnyOutput, reason: str, blocks: bool) -> Verdict:
    specific, discarded = output.hookSpecificOutput, ""
    if rules.checks_event and specific.hookEventName not in ("", event):
        printed = shared_output.truncate(repr(specific.hookEventName), shared_output.MAX_EXPLANATION)
        discarded = f"printed output for {printed}, but ran on {event}"
        output = replace(output, hookSpecificOutput=_NOTHING_SPECIFIC)
    verdict = _on_event(event, output, reason, blocks)
    verdict = replace(
        verdict,
        merges=rules.merges and verdict.arguments is not None,
        replacement=verdict.replacement if rules.replaces else None,
        messages=shared_output.nonempty(*verdict.messages, output.systemMessage),
        stop=verdict.stop or not output.continues,
    )
    return shared_output.invalid_output_verdict(verdict, discarded) if discarded else verdict


def _on_event(event: Event, output: _AnyOutput, reason: str, blocks: bool) -> Verdict:
    if event is Event.PRE_TOOL_USE:
        return on_call(output, reason, blocks)
    if event in AFTER_CALL:
        return on_result(event, output, reason)
    if event is not Event.PERMISSION_REQUEST:
        return on_session(event, output, reason)
    verdict = on_request(output)
    if verdict.permission is not Permission.DENY and (blocks or output.decision in _DENYING):
        reason = (output.reason if output.decision in _DENYING else "") or reason
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason))
    return replace(verdict, permission=None) if verdict.failure else verdict
