"""The output of a Lime hook as a verdict: exit code, standard output and standard error.

Every output gives a verdict: invalid output is reported as a failure, and is never taken for approval (law 3).
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

_ABSENT: Final = msgspec.Raw(b"")
_PERMISSIONS: Final = {"allow": Permission.ALLOW, "ask": Permission.ASK, "deny": Permission.DENY}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict, null counts as absent, other members (`hookEventName`) are ignored."""

    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    additionalContext: str | None = None
    updatedInput: msgspec.Raw = _ABSENT
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
    "hookSpecificOutput.additionalContext": Effect.COMMENTS,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.updatedPermissions": Effect.ALLOWS,
    "hookSpecificOutput.interrupt": Effect.STOPS,
    "interrupt": Effect.STOPS,
    "continue": Effect.STOPS,
    "decision": Effect.DECIDES,
    "systemMessage": Effect.TELLS,
    "reason": Effect.REASON,
}
"""What each member of the JSON output does here."""

_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_NO_SPECIFIC: Final = _Specific()
_PARTS: Final[shared_output.Parts] = {
    "hookSpecificOutput.permissionDecision": ("allow", "deny", "ask"),
    "hookSpecificOutput.permissionDecisionReason": shared_output.TEXT,
    "hookSpecificOutput.interrupt": (True, False),
    "interrupt": (True, False),
    "continue": (True, False),
    "decision": ("block",),
    "reason": shared_output.TEXT,
}


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    return shared_output.aside(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.ending(spec, result))
    stdout, stderr = shared_output.text(result.stdout), shared_output.text(result.stderr)
    denies = result.code == DENIES and spec.event in _DECIDING
    if result.code and not denies:
        return Verdict(
            failure=f"exited with status {result.code}" + shared_output.after_colon(stderr),
            messages=("printed JSON, which is ignored with this exit status, as documented",) * _is_object(stdout),
        )
    try:
        output = _parse(stdout, result)
    except shared_output.Nonsense as error:
        verdict = shared_output.standing(_verdict(spec, shared_output.salvaged(result, _PARTS)), str(error))
        return replace(verdict, reason=shared_output.cut(stdout)) if denies and not verdict.reason else verdict
    if output is None:
        return _plain_text(stdout, stderr, denies)
    verdict = _on_deciding_event(spec.event, output) if spec.event in _DECIDING else _on_other_event(spec.event, output)
    return _denied(output, verdict, stderr) if denies else verdict


def _parse(stdout: str, result: HookResult) -> _JsonOutput | None:
    """The JSON that was printed; None: plain text, or nothing. Raises Nonsense."""
    output = shared_output.json_object(result.stdout, _DECODER)
    if output is None and stdout.startswith("{"):  # the lost part may have denied
        lost = "printed more than is kept, so its JSON is lost"
        raise shared_output.Nonsense(lost if result.cut else "printed output that begins, but does not end, as JSON")
    return output


def _plain_text(stdout: str, stderr: str, denies: bool) -> Verdict:
    """The verdict of a hook that prints plain text: it is the reason with exit code 2, and has no effect otherwise."""
    if denies:
        return Verdict(permission=Permission.DENY, reason=shared_output.cut(stderr or stdout))
    if '"hookSpecificOutput"' in stdout:
        return Verdict(messages=("printed JSON among other text, which makes it plain text, as documented",))
    return Verdict()


def _denied(output: _JsonOutput, verdict: Verdict, stderr: str) -> Verdict:
    """The verdict with exit code 2: nothing that would let the call pass counts."""
    decision = output.specific.permissionDecision
    reason = verdict.reason if decision in (None, "deny") else output.reason
    return replace(
        verdict,
        permission=Permission.DENY,
        reason=shared_output.cut(reason or stderr),
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
        reason=shared_output.cut(reason),
        arguments=arguments if arguments and not failure else None,
        feedback=shared_output.texts(specific.additionalContext or ""),
        messages=shared_output.texts(output.systemMessage or "", output.reason or "", *invalid_rules),
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
            shown = shared_output.cut(repr(rule), shared_output.FIRST_LINE)
            invalid.append(f"gave {shown}, which is not a permission rule")
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
        feedback=() if event is Event.SESSION_END else shared_output.texts(context),
        messages=shared_output.texts(output.systemMessage or "", output.reason or "", note),
        stop=_stops(output),
    )


def _stops(output: _JsonOutput) -> bool:
    return bool(output.interrupt or output.specific.interrupt or output.continues is False)


def _is_object(stdout: str) -> bool:
    return stdout.startswith("{") and stdout.endswith("}")
