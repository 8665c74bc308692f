"""What a Claude Code hook says by its exit code, standard output and standard error, as a verdict.

Total: whatever a hook prints, nonsense is named as trouble, and never taken for consent (law 3).
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from ...policy import matchers
from ..dialect import Effect
from ..shared import output as shared_output

_NO_DECISION: Final = msgspec.Raw(b"")
_MOST_RULES: Final = 1000  # each is compiled: a hook that prints nothing but rules must not hold up all calls
_OF_THE_AGENT: Final = ("setMode", "addDirectories", "removeDirectories")
"""The changes of permissions that are about the agent's own matters."""


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A permission rule in two parts."""

    toolName: str
    ruleContent: str = ""

    @property
    def text(self) -> str:
        """The rule as settings files have it, `Tool` or `Tool(what)`."""
        return f"{self.toolName}({self.ruleContent})" if self.ruleContent else self.toolName


class _Change(msgspec.Struct, frozen=True):
    """An entry of `updatedPermissions`."""

    type: str
    behavior: str = ""
    rules: tuple[_Rule, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a PermissionRequest hook answers."""

    behavior: Literal["allow", "deny"]
    updatedInput: msgspec.Raw = _NO_DECISION
    updatedPermissions: tuple[_Change, ...] = ()
    message: str = ""
    interrupt: bool = False


def verdict(decision: Decision) -> Verdict:
    """What the decision says. An answer that cannot be followed whole is trouble, and allows nothing."""
    if decision.behavior == "deny":
        return Verdict(
            permission=Permission.DENY, reason=shared_output.truncate(decision.message), stop=decision.interrupt
        )
    rules, failure, idle = _permissions(decision.updatedPermissions)
    failure = failure or _unusable(rules)
    arguments = shared_output.one_line(decision.updatedInput)
    if arguments[:1] not in (b"", b"{"):  # to run the call as it was would be another thing than what it allowed
        failure = "gave an updatedInput that is no object"
    return Verdict(
        permission=Permission.ALLOW,
        arguments=arguments if arguments and not failure else None,
        allows=() if failure else rules,
        messages=idle,
        failure=failure,
    )


def _permissions(changes: tuple[_Change, ...]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The rules that calls may pass by from now on, what is wrong with the rest, and what is without effect.

    Wherever a change would be kept, here it holds for the session. One that restricts is never passed over.
    """
    rules: list[str] = []
    idle: list[str] = []
    for change in changes:
        if change.type in _OF_THE_AGENT:
            idle.append(f"without effect behind MCP: {change.type}")
        elif (change.type, change.behavior) == ("addRules", "allow"):
            rules += [rule.text for rule in change.rules]
        else:
            what = shared_output.truncate(f"{change.type} {change.behavior}".strip(), shared_output.MAX_EXPLANATION)
            return (), f"gave an updatedPermissions entry that cannot be followed here: {what}", tuple(idle)
    return tuple(rules), "", tuple(idle)


def _unusable(rules: tuple[str, ...]) -> str:
    """What is wrong with the rules; empty: nothing."""
    if len(rules) > _MOST_RULES:
        return f"gave {len(rules)} permission rules, more than {_MOST_RULES}"
    for rule in rules:
        try:
            matchers.allow_rule(rule)
        except (re.error, ValueError, OverflowError, RecursionError):
            quoted = shared_output.truncate(repr(rule), shared_output.MAX_EXPLANATION)
            return f"gave a permission rule that is none: {quoted}"
    return ""


BLOCKS: Final = 2
"""The exit code that blocks, whatever is printed."""

_CALLED: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_ELICITATION_EVENTS: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_BLOCKABLE: Final = (Event.PRE_TOOL_USE, *_CALLED, *_ELICITATION_EVENTS)
"""The events at which exit code 2 says something; at others it is one more failure."""

_NOTHING: Final = msgspec.Raw(b"")
_PERMISSIONS: Final = {
    "allow": Permission.ALLOW,
    "approve": Permission.ALLOW,
    "ask": Permission.ASK,
    "defer": Permission.ASK,  # leaves the decision to a person who returns later: there is only now
    "deny": Permission.DENY,
    "block": Permission.DENY,
}


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    """`hookSpecificOutput`. Types are strict; unknown members are ignored."""

    hookEventName: str
    permissionDecision: Literal["allow", "deny", "ask", "defer"] | msgspec.UnsetType = msgspec.UNSET
    permissionDecisionReason: str = ""
    updatedInput: msgspec.Raw = _NOTHING
    additionalContext: str = ""
    updatedToolOutput: msgspec.Raw = _NOTHING
    updatedMCPToolOutput: msgspec.Raw = _NOTHING
    decision: Decision | msgspec.UnsetType = msgspec.UNSET
    action: Literal["accept", "decline", "cancel"] | msgspec.UnsetType = msgspec.UNSET
    content: msgspec.Raw = _NOTHING


_NOT_SPECIFIC: Final = _Specific(hookEventName="")
"""Stands for an answer without `hookSpecificOutput`, where the event's name may be absent too."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook prints as JSON."""

    goes_on: bool = msgspec.field(default=True, name="continue")
    stopReason: str = ""
    suppressOutput: bool = False  # accepted, and without effect, as documented
    systemMessage: str = ""
    terminalSequence: str = ""  # for the agent's terminal, which is out of reach
    decision: Literal["approve", "block"] | msgspec.UnsetType = msgspec.UNSET
    reason: str = ""
    hookSpecificOutput: _Specific = _NOT_SPECIFIC


FIELDS: Final = {
    "hookSpecificOutput.permissionDecision": Effect.DECIDES,
    "decision": Effect.DECIDES,
    "hookSpecificOutput.decision.behavior": Effect.DECIDES,
    "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    "hookSpecificOutput.decision.message": Effect.REASON,
    "reason": Effect.REASON,
    "stopReason": Effect.REASON,
    "hookSpecificOutput.updatedInput": Effect.REWRITES,
    "hookSpecificOutput.additionalContext": Effect.TELLS_MODEL,
    "hookSpecificOutput.updatedToolOutput": Effect.REPLACES,
    "hookSpecificOutput.updatedMCPToolOutput": Effect.REPLACES,
    "systemMessage": Effect.TELLS_PERSON,
    "continue": Effect.DENIES_AND_STOPS,
    "hookSpecificOutput.decision.interrupt": Effect.DENIES_AND_STOPS,
    "hookSpecificOutput.decision.updatedPermissions": Effect.ALLOWS_FOR_SESSION,
    "hookSpecificOutput.action": Effect.ANSWERS_ELICITATION,
    "hookSpecificOutput.content": Effect.ANSWERS_ELICITATION,
    "suppressOutput": Effect.NONE,
    "terminalSequence": Effect.NONE,
}
"""What each member of an answer does here."""

_DECODER: Final = msgspec.json.Decoder(_Answer)
_MEMBERS: Final = frozenset(_Answer.__struct_encode_fields__)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """What the hook said."""
    if not (result.stdout or result.stderr or result.code) and result.ended is Ended.EXITED:
        return NO_VERDICT
    return shared_output.background_verdict(spec, _verdict(spec, result))


def _verdict(spec: HookSpec, result: HookResult) -> Verdict:
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    said, complaint = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    answer, nonsense = _answer(spec.event, said, result.cut)
    blocks = result.code == BLOCKS and spec.event in _BLOCKABLE
    if answer is None and not blocks:
        return _unanswered(spec.event, result.code, said, complaint, nonsense)
    answer = answer or _Answer()
    if spec.event is Event.PRE_TOOL_USE:
        verdict = _on_call(answer, complaint if blocks else "", blocks)
    elif spec.event in _CALLED:
        verdict = _on_result(spec.event, answer, complaint if blocks else "")
    elif spec.event is Event.PERMISSION_REQUEST:
        verdict = _on_request(answer)
    elif spec.event in _ELICITATION_EVENTS:
        verdict = _on_elicitation(answer, complaint if blocks else "", blocks)
    else:
        verdict = _on_session(spec.event, answer, complaint if result.code == BLOCKS else "")
    return replace(
        verdict,
        messages=shared_output.nonempty(*verdict.messages, answer.systemMessage, nonsense),
        stop=verdict.stop or not answer.goes_on,
    )


def _answer(event: Event, said: str, cut: bool) -> tuple[_Answer | None, str]:
    """The JSON that was printed, or None and what is wrong with it; without any JSON, None and nothing."""
    if not (said.startswith("{") and said.endswith("}")):
        return None, "printed more than is kept, so its JSON is lost" if cut and said.startswith("{") else ""
    try:
        answer = _DECODER.decode(shared_output.normalise(said.encode()))
    except (ValueError, msgspec.MsgspecError, RecursionError) as problem:
        nonsense = "printed JSON that cannot be read" + shared_output.explanation(str(problem))
        return None, "" if _are_json_lines(said) else nonsense
    specific = answer.hookSpecificOutput
    if specific is not _NOT_SPECIFIC and specific.hookEventName != event:
        other = shared_output.truncate(repr(specific.hookEventName), shared_output.MAX_EXPLANATION)
        return None, f"printed an answer to {other}, but was asked on {event}"
    return answer, ""


def _are_json_lines(said: str) -> bool:
    """Several lines that are each JSON, and none an answer: plain text, as documented."""
    lines = [line for line in said.split("\n") if line.strip()]
    try:
        values: list[object] = [msgspec.json.decode(line) for line in lines]
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return False
    return len(lines) > 1 and not any(isinstance(value, dict) and _MEMBERS & value.keys() for value in values)


def _unanswered(event: Event, code: int, said: str, complaint: str, nonsense: str) -> Verdict:
    """Plain text or none, or JSON that cannot be read."""
    if code:
        return Verdict(failure=f"exited with status {code}" + shared_output.explanation(complaint))
    if nonsense:
        return Verdict(failure=nonsense)
    if event is Event.SESSION_START:
        return Verdict(feedback=shared_output.nonempty(said))
    if '"hookSpecificOutput"' in said:
        return Verdict(messages=("printed JSON among other text, which makes it plain text, as documented",))
    return Verdict()


def _on_call(answer: _Answer, complaint: str, blocks: bool) -> Verdict:
    specific = answer.hookSpecificOutput
    judgements = [
        (_PERMISSIONS[word], reason)
        for word, reason in (
            (specific.permissionDecision, specific.permissionDecisionReason or answer.reason),
            (answer.decision, answer.reason),  # deprecated, and still honoured
        )
        if word is not msgspec.UNSET
    ]
    permission, reason = max(judgements, key=lambda one: one[0], default=(None, ""))
    if blocks or not answer.goes_on:
        stopped = "" if answer.goes_on else answer.stopReason
        own = reason if permission is Permission.DENY else ""
        permission, reason = Permission.DENY, stopped or own or complaint
    arguments = shared_output.one_line(specific.updatedInput)
    if permission is Permission.DENY or specific.permissionDecision == "defer":
        arguments = b""
    fits = arguments[:1] in (b"", b"{")
    return Verdict(
        permission=permission,
        reason=shared_output.truncate(reason),
        arguments=arguments if fits and arguments else None,
        feedback=shared_output.nonempty(specific.additionalContext),
        failure="" if fits else "gave an updatedInput that is no object",
    )


def _on_result(event: Event, answer: _Answer, complaint: str) -> Verdict:
    specific = answer.hookSpecificOutput
    reason = answer.reason if answer.decision == "block" else ""
    stopped = "" if answer.goes_on else answer.stopReason
    replacement = shared_output.one_line(specific.updatedToolOutput) or shared_output.one_line(
        specific.updatedMCPToolOutput
    )
    if event is not Event.POST_TOOL_USE:
        replacement = b""
    fits = replacement[:1] in (b"", b"[", b"{", b'"')
    return Verdict(
        feedback=shared_output.nonempty(reason or complaint, specific.additionalContext, stopped),
        replacement=replacement if fits and replacement else None,
        failure="" if fits else "gave a tool output that is neither content blocks nor a text nor an object",
    )


def _on_request(answer: _Answer) -> Verdict:
    """Who is asked about a call in the person's place. Exit code 2 says nothing here, as documented."""
    decision = answer.hookSpecificOutput.decision
    if not answer.goes_on:
        said = decision.message if decision and decision.behavior == "deny" else ""
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(answer.stopReason or said))
    if not decision:
        return Verdict()
    return verdict(decision)


def _on_elicitation(answer: _Answer, complaint: str, blocks: bool) -> Verdict:
    """The answer to the server's question. Whoever blocks, or ends all, declines."""
    specific = answer.hookSpecificOutput
    action = "" if specific.action is msgspec.UNSET else specific.action
    if blocks or not answer.goes_on or answer.decision == "block":
        said = "" if answer.goes_on else answer.stopReason
        reason = said or (answer.reason if answer.decision == "block" else "") or complaint
        return Verdict(action="decline", reason=shared_output.truncate(reason), messages=(reason,))
    content = shared_output.one_line(specific.content) if action == "accept" else b""
    fits = content[:1] in (b"", b"{")
    return Verdict(
        action=action,
        content=content if fits and content else None,
        failure="" if fits else "gave a content that is no object",
    )


def _on_session(event: Event, answer: _Answer, complaint: str) -> Verdict:
    starting = event is Event.SESSION_START
    return Verdict(
        feedback=shared_output.nonempty(answer.hookSpecificOutput.additionalContext) if starting else (),
        messages=("" if answer.goes_on else answer.stopReason, complaint),
    )
