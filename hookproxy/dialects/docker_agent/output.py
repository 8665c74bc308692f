"""Reads the exit code, standard output and standard error of a Docker Agent hook into a verdict.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect, for_names
from ..shared import output as shared_output
from ..shared.events import AFTER_CALL, BEFORE_CALL
from ..shared.output import BLOCKS

STRICT: Final = "strict"
"""The trait of a hook with `strict_output`: it prints one JSON object of known members, or nothing."""
PREEMPTS: Final = "preempts"
"""The trait of a pre_tool_use hook with `preempt_yolo`: it decides, but does not rewrite."""

_EVENT_NAMES: Final = {
    Event.PRE_TOOL_USE: "pre_tool_use",
    Event.POST_TOOL_USE: "post_tool_use",
    Event.POST_TOOL_USE_FAILURE: "post_tool_use",
    Event.PERMISSION_REQUEST: "permission_request",
    Event.SESSION_START: "session_start",
    Event.SESSION_END: "session_end",
    Event.USER_INPUT: "on_user_input",
}
_SESSION: Final = (Event.SESSION_START, Event.SESSION_END)


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hook_specific_output`. Types are strict, null counts as absent as in Go, unknown members are ignored."""

    hook_event_name: str | None = None  # ported hooks may name another system's event; their output counts nevertheless
    permission_decision: str | None = None
    permission_decision_reason: str | None = None
    updated_input: msgspec.Raw = shared_output.NO_JSON
    additional_context: str | None = None
    updated_tool_response: str | None = None
    metadata: dict[str, str] | None = None  # for Docker Agent's own confirmation dialog
    summary: str | None = None  # of compactions


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    continues: bool | None = msgspec.field(default=None, name="continue")
    stop_reason: str | None = None
    suppress_output: bool | None = None  # no transcript here shows what a hook prints
    system_message: str | None = None
    decision: str | None = None
    reason: str | None = None
    hook_specific_output: _Specific | None = None


FIELDS: Final = for_names({
    Effect.DENIES_AND_STOPS: "continue",
    Effect.REASON: "stop_reason reason hook_specific_output.permission_decision_reason",
    Effect.NONE: "suppress_output hook_specific_output.hook_event_name",
    Effect.TELLS_PERSON: "system_message",
    Effect.DECIDES: "decision hook_specific_output.permission_decision",
    Effect.REWRITES: "hook_specific_output.updated_input",
})  # fmt: skip

CURRENT_FIELDS: Final[Mapping[str, Effect]] = {
    **FIELDS,
    "hook_specific_output.additional_context": Effect.TELLS_MODEL,
    "hook_specific_output.updated_tool_response": Effect.REPLACES,
    "hook_specific_output.metadata": Effect.NONE,
    "hook_specific_output.summary": Effect.NONE,
}


class OutputRules(Struct, frozen=True):
    """The rules for output that differ between the two dialects."""

    decisions: tuple[str, ...]
    """The values of `decision`."""
    blocking: frozenset[str]
    """The events that a hook may block."""
    stopping: frozenset[str]
    """The events on which `continue: false` ends the run."""
    failing_closed: frozenset[str] = frozenset()
    """The events on which every failure of a hook blocks."""
    merges: bool = False
    """`updated_input` has only the arguments that change; the others stay."""
    starts_with_context: bool = False
    """The `additional_context` or plain text of a session_start hook is for the model."""
    block_stops: bool = False
    """A block after the call ends the run."""


DOCUMENTED: Final = OutputRules(
    decisions=("allow", "block"),
    blocking=frozenset({"pre_tool_use"}),
    stopping=frozenset({"pre_tool_use", "post_tool_use", "session_start", "session_end", "on_user_input"}),
)
_BLOCKING_EVENTS: Final = ("pre_tool_use", "tool_input_transform", "tool_guard", "permission_request", "post_tool_use")
CURRENT: Final = OutputRules(
    decisions=("block",),
    blocking=frozenset(_BLOCKING_EVENTS),
    stopping=frozenset(_BLOCKING_EVENTS),
    failing_closed=frozenset({"pre_tool_use", "tool_guard"}),
    merges=True,
    starts_with_context=True,
    block_stops=True,
)

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_DECIDING_MEMBERS: Final = shared_output.deciding_members(
    FIELDS, {"hook_specific_output.permission_decision": ("allow", "ask", "deny")}
)
_MEMBERS: Final = frozenset(_JsonOutput.__struct_encode_fields__)
_SPECIFIC_MEMBERS: Final = frozenset(_Specific.__struct_encode_fields__)
_NO_SPECIFIC: Final = _Specific()
_REWRITING: Final = ("pre_tool_use", "tool_input_transform")
_TYPICAL_MEMBERS: Final = ('"decision"', '"continue"', '"hook_specific_output"')


def event_name(spec: HookSpec) -> str:
    """Docker Agent's name for the hook's event."""
    return spec.event_name or _EVENT_NAMES.get(spec.event, spec.event.value)


def read_output(rules: OutputRules, spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    verdict = _verdict(rules, spec, result)
    fails_closed = bool(verdict.failure) and event_name(spec) in rules.failing_closed
    return shared_output.background_verdict(spec, replace(verdict, fails_closed=fails_closed))


def _verdict(rules: OutputRules, spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stderr = shared_output.decode(result.stderr)
    if result.code not in (0, BLOCKS):
        return Verdict(failure=shared_output.exit_failure(result.code, stderr))
    stdout = shared_output.decode(result.stdout)
    try:
        output = _parse(rules, spec, stdout, result)
    except shared_output.InvalidOutput as error:
        part = shared_output.keep_deciding_members(result, {**_DECIDING_MEMBERS, "decision": rules.decisions})
        return shared_output.invalid_output_verdict(_verdict(rules, spec, part), str(error))
    if result.code == 0 and output is not None and (denial := _denial_in_any_case(rules, spec, result)):
        return denial
    if result.code == BLOCKS:
        verdict = _on_exit_2(rules, spec, output or _JsonOutput(), stderr)
    else:
        verdict = _on_exit_0(rules, spec, output or _JsonOutput(), stdout if output is None else "")
    message = (output.system_message or "") if output else ""
    if output is None and any(member in stdout for member in _TYPICAL_MEMBERS):
        message = shared_output.JSON_IN_TEXT
    return replace(verdict, messages=shared_output.nonempty(*verdict.messages, message))


def _denial_in_any_case(rules: OutputRules, spec: HookSpec, result: HookResult) -> Verdict | None:
    """A denial that is spelled in upper case, as Go reads names; None: there is none that is not read anyway."""
    members = {**_DECIDING_MEMBERS, "decision": rules.decisions}
    kept = shared_output.keep_deciding_members(result, members, any_case=True)
    exact = shared_output.keep_deciding_members(result, members)
    if kept.stdout == exact.stdout:
        return None
    output = shared_output.parse_json_object(kept.stdout, _DECODER) or _JsonOutput()
    verdict = _on_exit_0(rules, spec, output, "")
    return verdict if verdict.permission is Permission.DENY else None


def _parse(rules: OutputRules, spec: HookSpec, stdout: str, result: HookResult) -> _JsonOutput | None:
    """The JSON that was printed; None: plain text, or nothing. Raises InvalidOutput."""
    output = shared_output.parse_output(result, _DECODER)
    if output is None:
        if stdout and STRICT in spec.traits:
            raise shared_output.InvalidOutput("printed text, but strict_output requires one JSON object")
        return None
    _check_decisions(rules, output)
    if STRICT in spec.traits:
        _check_strictly(spec, stdout, output)
    return output


def _check_decisions(rules: OutputRules, output: _JsonOutput) -> None:
    specific = output.hook_specific_output or _NO_SPECIFIC
    for member, decision, known in (
        ("decision", output.decision, rules.decisions),
        ("permission_decision", specific.permission_decision, ("allow", "deny", "ask")),
    ):
        if decision and decision not in known:
            shown = shared_output.truncate(repr(decision), shared_output.MAX_EXPLANATION)
            raise shared_output.InvalidOutput(f"gave the {member} {shown}, which is not {' or '.join(known)}")


def _check_strictly(spec: HookSpec, stdout: str, output: _JsonOutput) -> None:
    """Raise InvalidOutput for an unknown member, output for another event, and `suppress_output`."""
    members = raw_json.fields(shared_output.normalise(stdout.encode()))
    specific = members.get("hook_specific_output", msgspec.Raw(b"null"))
    inner = raw_json.fields(bytes(specific)) if output.hook_specific_output else {}
    unknown = [*(members.keys() - _MEMBERS), *(inner.keys() - _SPECIFIC_MEMBERS)]
    if unknown:
        shown = shared_output.truncate(repr(min(unknown)), shared_output.MAX_EXPLANATION)
        raise shared_output.InvalidOutput(f"printed the member {shown}, which strict_output does not allow")
    name = (output.hook_specific_output or _NO_SPECIFIC).hook_event_name
    if name and name != event_name(spec):
        other = shared_output.truncate(repr(name), shared_output.MAX_EXPLANATION)
        raise shared_output.InvalidOutput(f"printed output for {other}, but ran on {event_name(spec)}")
    if output.suppress_output:
        raise shared_output.InvalidOutput("printed suppress_output, which strict_output does not allow")


def _on_exit_2(rules: OutputRules, spec: HookSpec, output: _JsonOutput, stderr: str) -> Verdict:
    """The verdict with exit code 2: the reason is the JSON's, else standard error."""
    stops = output.continues is False and event_name(spec) in rules.stopping
    permission, reason = _permission(output, event_name(spec))
    if permission in (Permission.ALLOW, Permission.ASK):
        reason = ""  # it explains another decision
    reason = _stop_reason(output) or reason or stderr
    if spec.event in BEFORE_CALL:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(reason), stop=stops)
    if event_name(spec) == "post_tool_use":
        return Verdict(feedback=shared_output.nonempty(reason), stop=stops or rules.block_stops)
    failure = f"exited with status {BLOCKS}, which cannot block {event_name(spec)}"
    return Verdict(stop=stops, failure=failure + shared_output.explanation(reason))


def _on_exit_0(rules: OutputRules, spec: HookSpec, output: _JsonOutput, plain_text: str) -> Verdict:
    stops = output.continues is False and event_name(spec) in rules.stopping
    if spec.event in BEFORE_CALL:
        return _on_call(rules, spec, output, stops)
    blocks = output.decision == "block"
    reason = (output.reason or "") if blocks else ""
    if event_name(spec) == "post_tool_use":
        feedback = shared_output.nonempty(_stop_reason(output), reason)
        return Verdict(feedback=feedback, stop=stops or (blocks and rules.block_stops))
    specific = output.hook_specific_output or _NO_SPECIFIC
    if spec.event in AFTER_CALL:
        rewritten = specific.updated_tool_response
        replacement = None if rewritten is None else raw_json.encode(rewritten)
        return Verdict(replacement=replacement, messages=(_stop_reason(output), reason))
    context = ""
    if rules.starts_with_context and spec.event is Event.SESSION_START:
        context = specific.additional_context or plain_text
    no_effect = f"continue: false has no effect on {event_name(spec)}, because no call is pending"
    messages = (_stop_reason(output), reason, no_effect if output.continues is False and spec.event in _SESSION else "")
    return Verdict(feedback=shared_output.nonempty(context), messages=messages, stop=stops)


def _on_call(rules: OutputRules, spec: HookSpec, output: _JsonOutput, stops: bool) -> Verdict:
    permission, reason = _permission(output, event_name(spec))
    if output.continues is False:
        other_reason = "" if permission in (Permission.ALLOW, Permission.ASK) else reason
        permission, reason = Permission.DENY, _stop_reason(output) or other_reason
    if spec.event is Event.PERMISSION_REQUEST and permission is Permission.ASK:
        permission = None  # a person is asked anyway
    arguments = b""
    if event_name(spec) in _REWRITING and PREEMPTS not in spec.traits and permission is not Permission.DENY:
        arguments = shared_output.given((output.hook_specific_output or _NO_SPECIFIC).updated_input)
    valid = arguments[:1] in (b"", b"{")
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason) if permission else "",
        arguments=arguments if valid and arguments else None,
        merges=rules.merges and valid and bool(arguments),
        stop=stops,
        failure="" if valid else "gave an updated_input that is not an object",
    )


def _permission(output: _JsonOutput, name: str) -> tuple[Permission | None, str]:
    """The stricter of the two decisions in the output, with its reason; without a decision, only the reason."""
    specific = output.hook_specific_output or _NO_SPECIFIC
    decides = name != "tool_input_transform"  # on it, permission_decision has no effect, as documented
    specific_reason = specific.permission_decision_reason or output.reason or ""
    permissions = [
        (shared_output.PERMISSIONS[decision], reason)
        for decision, reason in (
            (specific.permission_decision if decides else None, specific_reason),
            (output.decision, output.reason or specific_reason),
        )
        if decision
    ]
    return max(permissions, key=lambda pair: pair[0], default=(None, specific_reason))


def _stop_reason(output: _JsonOutput) -> str:
    return (output.stop_reason or "") if output.continues is False else ""
