"""Reads the JSON of systems whose hooks mostly decide by their exit status, but may print a decision as well.

It never raises: what cannot be read never counts as an approval, and a denial in it counts (law 3).
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...model.hooks import Event, HookResult, HookSpec, Permission, Verdict
from ..dialect import Effect
from . import output as shared_output

SPECIFIC_FIELDS: Final = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
}
"""What Claude Code's members of the JSON do in a system that reads them, too."""


class DecisionWords(Struct, frozen=True):
    """What the words of a decision mean to one system. Any other word is a failure."""

    denies: tuple[str, ...]
    allows: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()
    merges: bool = False
    """Rewritten arguments hold only the members that change."""
    any_case: bool = False
    """A denial counts in upper and in lower case, also in the names of its members."""


class _Specific(Struct, frozen=True, kw_only=True):
    decision: str | None = None
    permissionDecision: str | None = None
    reason: str | None = None
    permissionDecisionReason: str | None = None
    updatedInput: msgspec.Raw = shared_output.NO_JSON
    additionalContext: str | None = None


class _JsonOutput(Struct, frozen=True, kw_only=True):
    """The members of all of these systems. Types are strict, null counts as absent, other members are ignored."""

    decision: str | None = None
    reason: str | None = None
    halt: bool | None = None
    continues: bool | None = msgspec.field(default=None, name="continue")
    stopReason: str | None = None
    systemMessage: str | None = None
    context: str | tuple[str, ...] | None = None
    updated_input: msgspec.Raw = shared_output.NO_JSON
    hookSpecificOutput: _Specific | None = None


_NO_SPECIFIC: Final = _Specific()
_DECODER: Final = msgspec.json.Decoder(_JsonOutput)


def read(words: DecisionWords, spec: HookSpec, result: HookResult) -> Verdict | None:
    """The verdict of what a hook prints; None: it is not a JSON object."""
    reasons = ("reason", "stopReason", "hookSpecificOutput.reason", "hookSpecificOutput.permissionDecisionReason")
    names = ("decision", "hookSpecificOutput.decision", "hookSpecificOutput.permissionDecision")
    members: shared_output.DecidingMembers = {
        **dict.fromkeys(names, words.denies),
        **dict.fromkeys(reasons, shared_output.ANY_TEXT),
        "halt": (True,),
        "continue": (False,),
    }

    def verdict_of(output: _JsonOutput) -> Verdict:
        verdict = _verdict(words, spec.event, output)
        if verdict.permission is Permission.DENY or not words.any_case:
            return verdict
        kept = shared_output.keep_deciding_members(result, members, any_case=True)
        denial = _verdict(words, spec.event, _DECODER.decode(kept.stdout))
        return denial if denial.permission is Permission.DENY else verdict

    return shared_output.read_json(result, _DECODER, members, verdict_of)


def _verdict(words: DecisionWords, event: Event, output: _JsonOutput) -> Verdict:
    """The verdict of JSON output: a denial counts whatever else there is."""
    specific, before = output.hookSpecificOutput or _NO_SPECIFIC, event is Event.PRE_TOOL_USE
    said = [word for word in (output.decision, specific.decision, specific.permissionDecision) if word]
    stop = bool(output.halt) or output.continues is False
    reason = specific.permissionDecisionReason or specific.reason or output.reason or output.stopReason or ""
    context = (output.context,) if isinstance(output.context, str) else output.context or ()
    base = Verdict(
        reason=shared_output.truncate(reason),
        feedback=shared_output.nonempty(*context, specific.additionalContext or ""),
        messages=shared_output.nonempty(output.systemMessage or ""),
        stop=stop,
    )
    if stop or any(word in words.denies for word in said):
        if before:
            return replace(base, permission=Permission.DENY)
        return replace(base, reason="", feedback=shared_output.nonempty(reason) + base.feedback)
    known = (*words.allows, *words.asks, *words.without_effect)
    unknown = next((word for word in said if word not in known), "")
    if unknown:
        quoted = shared_output.truncate(repr(unknown), shared_output.MAX_EXPLANATION)
        return replace(base, reason="", failure=f"gave an unknown decision: {quoted}")
    arguments = shared_output.given(specific.updatedInput) or shared_output.given(output.updated_input)
    if arguments and not (before and arguments.startswith(b"{")):
        where = "arguments that are not an object" if before else f"arguments on {event}, where they cannot change"
        return replace(base, reason="", failure=f"gave {where}")
    permission = Permission.ASK if any(word in words.asks for word in said) else None
    if permission is None and any(word in words.allows for word in said):
        permission = Permission.ALLOW
    return replace(
        base,
        permission=permission if before else None,
        reason=base.reason if before and permission else "",
        arguments=arguments or None,
        merges=bool(arguments) and words.merges,
    )
