"""Reads the exit code, standard output and standard error of a Lime hook into a verdict.

It never raises: invalid output is a failure that names what is wrong, and never counts as an approval (law 3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from ...policy import matchers
from ..dialect import Effect
from ..shared import output as shared_output

DENIES: Final = 2
"""The exit code that denies, "even with no stdout"."""

_DECIDING: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
"""The events that have a call to deny; on others, exit code 2 is a failure like any other."""

_NO_JSON: Final = msgspec.Raw(b"")
_PERMISSIONS: Final = {"allow": Permission.ALLOW, "ask": Permission.ASK, "deny": Permission.DENY}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict, null counts as absent, other members (`hookEventName`) are ignored."""

    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    additionalContext: str | None = None
    updatedInput: msgspec.Raw = _NO_JSON
    updatedPermissions: tuple[str, ...] | None = None
    interrupt: bool | None = None


class _JsonOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON."""

    hookSpecificOutput: _Specific | None = None
    interrupt: bool | None = None
    continues: bool | None = msgspec.field(default=None, name="continue")
    decision: Literal["block"] | None = None
    systemMessage: str | None = None
    reason: str | None = None

    @property
    def specific(self) -> _Specific:
        return self.hookSpecificOutput or _NO_SPECIFIC


FIELDS: Final = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.updatedPermissions": Effect.ALLOWS_FOR_SESSION,
    "hookSpecificOutput.interrupt": Effect.DENIES_AND_STOPS,
    "interrupt": Effect.DENIES_AND_STOPS,
    "continue": Effect.DENIES_AND_STOPS,
    "decision": Effect.DECIDES,
    "systemMessage": Effect.TELLS_PERSON,
    "reason": Effect.REASON,
}
"""What each member of the JSON output does here."""

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_NO_SPECIFIC: Final = _Specific()
_DECIDING_MEMBERS: Final[shared_output.DecidingMembers] = {
    "hookSpecificOutput.permissionDecision": ("allow", "deny", "ask"),
    "hookSpecificOutput.permissionDecisionReason": shared_output.ANY_TEXT,
    "hookSpecificOutput.interrupt": (True, False),
    "interrupt": (True, False),
    "continue": (True, False),
    "decision": ("block",),
    "reason": shared_output.ANY_TEXT,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    return shared_output.background_verdict(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    denies = result.code == DENIES and spec.event in _DECIDING
    if result.code and not denies:
        return Verdict(
            failure=shared_output.exit_failure(result.code, stderr),
            messages=("printed JSON, which is ignored with this exit status, as documented",) * _is_object(stdout),
        )
    try:
        output = _parse(stdout, result)
    except shared_output.InvalidOutput as error:
        verdict = shared_output.invalid_output_verdict(
            _verdict(spec, shared_output.keep_deciding_members(result, _DECIDING_MEMBERS)), str(error)
        )
        return replace(verdict, reason=shared_output.truncate(stdout)) if denies and not verdict.reason else verdict
    if output is None:
        return _plain_text(stdout, stderr, denies)
    verdict = _on_deciding_event(spec.event, output) if spec.event in _DECIDING else _on_other_event(spec.event, output)
    return _denied(output, verdict, stderr) if denies else verdict


def _parse(stdout: str, result: HookResult) -> _JsonOutput | None:
    """The JSON that was printed; None: plain text, or nothing. Raises InvalidOutput."""
    output = shared_output.parse_json_object(result.stdout, _DECODER)
    if output is None and stdout.startswith("{"):  # the lost part may have denied
        raise shared_output.InvalidOutput(shared_output.CUT_JSON if result.cut else shared_output.INCOMPLETE_JSON)
    return output


def _plain_text(stdout: str, stderr: str, denies: bool) -> Verdict:
    """The verdict of a hook that prints plain text: it is the reason with exit code 2, and has no effect otherwise."""
    if denies:
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(stderr or stdout))
    if '"hookSpecificOutput"' in stdout:
        return Verdict(messages=(shared_output.JSON_IN_TEXT,))
    return Verdict()


def _denied(output: _JsonOutput, verdict: Verdict, stderr: str) -> Verdict:
    """The verdict with exit code 2: nothing that would let the call pass counts."""
    decision = output.specific.permissionDecision
    reason = verdict.reason if decision in (None, "deny") else output.reason
    return replace(
        verdict,
        permission=Permission.DENY,
        reason=shared_output.truncate(reason or stderr),
        arguments=None,
        allows=(),
        failure="",
    )


def _on_deciding_event(event: Event, output: _JsonOutput) -> Verdict:
    """The verdict of JSON output about a call that has not run."""
    specific = output.specific
    permission, reason = _permission(output)
    arguments = shared_output.one_line(specific.updatedInput)
    if permission is Permission.DENY or arguments == b"null":
        arguments = b""
    failure = _rewrite_error(event, arguments)
    if permission is Permission.ASK and event is Event.PERMISSION_REQUEST:
        permission = None  # a person is asked anyway
    if permission is Permission.ALLOW and failure:
        permission = None  # it allows a call with other arguments than those that would run
    rules, invalid_rules = _rules(() if failure else specific.updatedPermissions or ())
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason),
        arguments=arguments if arguments and not failure else None,
        feedback=shared_output.nonempty(specific.additionalContext or ""),
        messages=shared_output.nonempty(output.systemMessage or "", output.reason or "", *invalid_rules),
        stop=_stops(output),
        allows=rules,
        failure=failure,
    )


def _permission(output: _JsonOutput) -> tuple[Permission | None, str]:
    """What the JSON output wants for the call, and the reason that belongs to it."""
    specific = output.specific
    permission = _PERMISSIONS[specific.permissionDecision] if specific.permissionDecision else None
    general_reason = output.reason or ""
    specific_reason = specific.permissionDecisionReason or general_reason
    denied = _stops(output) or output.decision == "block"
    if permission is Permission.DENY or not denied:
        return permission, specific_reason
    return Permission.DENY, specific_reason if permission is None else general_reason


def _rewrite_error(event: Event, arguments: bytes) -> str:
    """What is wrong with the hook's updatedInput; empty: it is valid."""
    if arguments[:1] not in (b"", b"{"):
        return "gave an updatedInput that is not an object"
    if arguments and event is not Event.PRE_TOOL_USE:
        return f"gave an updatedInput on {event}, where it cannot change the arguments"
    return ""


def _rules(texts: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """The valid permission rules, and a message on each invalid one.

    A rule also counts for its tool's name in lower case: `Bash(git push:*)` is about the tool `bash`, too.
    """
    rules: dict[str, None] = {}
    invalid = []
    for rule in texts:
        try:
            matchers.allow_rule(rule)
        except (ValueError, OverflowError, RecursionError):
            quoted = shared_output.truncate(repr(rule), shared_output.MAX_EXPLANATION)
            invalid.append(f"gave an invalid permission rule: {quoted}")
            continue
        name, bracket, rest = rule.partition("(")
        rules |= dict.fromkeys((rule, name.lower() + bracket + rest))
    return tuple(rules), invalid


def _on_other_event(event: Event, output: _JsonOutput) -> Verdict:
    """The verdict of JSON output on an event that decides nothing."""
    permission, _ = _permission(output)
    note = f"wants to deny a call, but on {event} there is no call to deny" if permission is Permission.DENY else ""
    context = output.specific.additionalContext or ""
    return Verdict(
        feedback=() if event is Event.SESSION_END else shared_output.nonempty(context),
        messages=shared_output.nonempty(output.systemMessage or "", output.reason or "", note),
        stop=_stops(output),
    )


def _stops(output: _JsonOutput) -> bool:
    return bool(output.interrupt or output.specific.interrupt or output.continues is False)


def _is_object(stdout: str) -> bool:
    return stdout.startswith("{") and stdout.endswith("}")
