"""From what hooks decided to what their agent can express. Pure. Law 3: in doubt the call is refused."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..dialects.agent_side import Can, HookDecision
from ..jsonrpc import raw_json
from ..model.decision import Comments, Decision, RefusalCause, Refuse
from ..model.hooks import HookRun, Permission
from ..model.settings import Settings
from ..policy import decide
from ..protocol import feedback


def before_call(decision: Decision, runs: Sequence[HookRun], *, by_person: bool = False) -> HookDecision:
    """What an agent gets for the decision about a call. `by_person`: a person has allowed it already."""
    texts, messages = "\n\n".join(decision.feedback), _messages(runs)
    if isinstance(decision, Refuse):
        plain = decision.cause is RefusalCause.DENIED and decision.reason
        reason = decision.reason if plain else feedback.refusal_sentence(decision)
        return HookDecision(Permission.DENY, reason, feedback=texts, message=messages, stop=decision.stop)
    arguments = None if decision.arguments is None else one_line(decision.arguments)
    permission, reason = (Permission.ALLOW, "") if by_person or decide.allows(runs) else (None, "")
    if decision.approval_request is not None:
        permission, reason = Permission.ASK, decision.approval_request.reason
    return HookDecision(permission, reason, arguments, texts, message=messages)


def after_call(comments: Comments, runs: Sequence[HookRun]) -> HookDecision:
    """What an agent gets for what hooks said about a result."""
    text, replacement = feedback.feedback_text(comments, ()), comments.replacement
    stop, messages = any(run.verdict.stop for run in runs), _messages(runs)
    if comments.withheld or comments.hidden_by:
        text = feedback.withheld_sentence(comments.withheld, ()) if comments.withheld else ""
        text = text or feedback.hidden_sentence(comments)
        return HookDecision(Permission.DENY, text, replacement=raw_json.encode(text), message=messages, stop=stop)
    replacement = None if replacement is None else one_line(replacement)
    if comments.failed:
        reason = "\n\n".join(run.verdict.reason for run in runs if run.verdict.reason) or text
        text = "" if reason == text else text
        return HookDecision(
            Permission.DENY, reason, feedback=text, replacement=replacement, message=messages, stop=stop
        )
    return HookDecision(feedback=text, replacement=replacement, message=messages, stop=stop)


def permission_request(runs: Sequence[HookRun]) -> HookDecision:
    """The decision of hooks that may decide for the person."""
    decision = decide.permission_decision(runs, Settings(), None, last_answer_counts=False)
    messages = _messages(runs)
    if isinstance(decision, Refuse):
        return HookDecision(Permission.DENY, decision.reason, message=messages, stop=decision.stop)
    arguments = decide.allowed_arguments(runs) if decision else None
    permission = Permission.ALLOW if decision else None
    return HookDecision(permission, arguments=None if arguments is None else one_line(arguments), message=messages)


def other_event(runs: Sequence[HookRun]) -> HookDecision:
    """The decision of hooks that decide nothing."""
    texts = "\n\n".join(text for run in runs for text in run.verdict.feedback)
    return HookDecision(feedback=texts, message=_messages(runs), stop=any(run.verdict.stop for run in runs))


def combined(parts: Sequence[HookDecision]) -> HookDecision:
    """One decision for all parts of a call: it is allowed only if each of them is, and the strictest counts."""
    if len(parts) == 1:
        return parts[0]
    decided = [part for part in parts if part.permission is not None]
    strictest = max(decided, key=lambda part: part.permission or 0, default=parts[0])
    allows_all = strictest.permission is not Permission.ALLOW or len(decided) == len(parts)
    return replace(
        strictest,
        permission=strictest.permission if allows_all else None,
        arguments=next((part.arguments for part in parts if part.arguments is not None), None),
        replacement=next((part.replacement for part in parts if part.replacement is not None), None),
        feedback="\n\n".join(dict.fromkeys(part.feedback for part in parts if part.feedback)),
        message="\n".join(dict.fromkeys(part.message for part in parts if part.message)),
        stop=any(part.stop for part in parts),
    )


def one_line(raw: bytes) -> bytes:
    """JSON of a hook on one line."""
    return raw_json.one_line(raw.replace(b"\n", b" "))


def within(decision: HookDecision, can: Can, agent: str) -> tuple[HookDecision, list[str]]:
    """The decision that this agent can express, and sentences about what it could not.

    A call that a hook wants rewritten or shown to a person is refused where the agent can do neither.
    """
    problems: list[str] = []
    if decision.permission is Permission.ASK and Can.ASK not in can:
        reason = f"{decision.reason}\n" if decision.reason else ""
        problem = f"{agent} does not let hooks ask the person, so the call is refused"
        decision = HookDecision(Permission.DENY, f"{reason}A person must approve this call, but {problem}.")
        problems.append(problem)
    if decision.arguments is not None and decision.permission is not Permission.DENY and Can.REWRITE not in can:
        problem = f"{agent} does not let hooks change the arguments of a call, so the call is refused"
        decision = HookDecision(Permission.DENY, f"A hook wants to change the arguments of this call, but {problem}.")
        problems.append(problem)
    if decision.permission is Permission.ALLOW and Can.ALLOW not in can:
        decision = replace(decision, permission=None)
    if decision.feedback and Can.TELL_BEFORE not in can:
        if decision.permission is Permission.DENY:
            decision = replace(decision, reason="\n\n".join(filter(None, (decision.reason, decision.feedback))))
        else:
            problems.append(f"{agent} does not pass on what hooks tell the model before a call: {decision.feedback}")
        decision = replace(decision, feedback="")
    return decision, problems


def without_removals(decision: HookDecision, arguments: bytes, agent: str) -> HookDecision:
    """The decision for an agent that merges arguments: a hook that removes one refuses the call."""
    if decision.arguments is None or decision.permission is Permission.DENY:
        return decision
    removed = raw_json.fields(arguments).keys() - raw_json.fields(decision.arguments).keys()
    if not removed:
        return decision
    reason = f"A hook wants to remove the argument {min(removed)!r}, but {agent} does not let hooks remove arguments."
    return HookDecision(Permission.DENY, reason)


def within_after(decision: HookDecision, can: Can, agent: str) -> tuple[HookDecision, list[str]]:
    """As `within`, for a result."""
    problems: list[str] = []
    if decision.replacement is not None and Can.REPLACE not in can:
        blocks = Can.BLOCK_AFTER in can
        consequence = "the model is informed" if blocks else "the model reads the tool's own output"
        problems.append(f"{agent} does not let hooks replace the output of a tool: {consequence}")
        decision = replace(decision, replacement=None)
        if blocks and decision.permission is not Permission.DENY:
            decision = replace(
                decision, permission=Permission.DENY, reason="A hook wanted to replace the tool's output."
            )
    if decision.permission is Permission.DENY and Can.BLOCK_AFTER not in can:
        texts = (decision.feedback, decision.reason)
        decision = replace(decision, permission=None, reason="", feedback="\n\n".join(filter(None, texts)))
    if decision.feedback and Can.TELL_AFTER not in can:
        if Can.BLOCK_AFTER in can:
            decision = replace(decision, permission=Permission.DENY, reason=decision.feedback, feedback="")
        else:
            problems.append(f"{agent} does not pass on what hooks tell the model after a call: {decision.feedback}")
            decision = replace(decision, feedback="")
    return decision, problems


def _messages(runs: Sequence[HookRun]) -> str:
    return "\n".join(text for run in runs for text in run.verdict.messages)
