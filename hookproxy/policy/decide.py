"""What many hooks said, as one decision: refusal, question and trouble rules.

Law 3: trouble with a hook has the consequence that the configuration names, and is never taken for consent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ..model.decision import ApprovalRequest, Comments, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import NO_VERDICT, Event, HookRun, Permission
from ..model.settings import OnAsk, OnFailure, Settings

_BEFORE: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
_AFTER: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)


def silent(hook_runs: Sequence[HookRun]) -> bool:
    """No hook said anything, and none had trouble: there is nothing to decide."""
    for one in hook_runs:  # noqa: SIM110 - each call asks: a generator would cost more than the answer
        if one.verdict is not NO_VERDICT and one.verdict != NO_VERDICT:
            return False
    return True


def decide(hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None) -> Decision:
    """One group's decision on a call; `statements` stand in the order in which the last one wins.

    A judgement is told before trouble, for the model can act on it: a reason helps more than a crash does.
    """
    judges = _judges(hook_runs)
    refuse = _denied(judges) or _failed(judges, settings, group_on_failure)
    if refuse:
        return replace(refuse, feedback=_feedback(hook_runs))
    return Proceed(
        arguments=_last([one.verdict.arguments for one in judges if not one.verdict.failure]),
        feedback=_feedback(hook_runs),
        question=_question(judges),
    )


def blocks(one: HookRun, settings: Settings, group_on_failure: OnFailure | None) -> bool:
    """What this hook said, or its trouble, is enough to refuse the call."""
    return isinstance(decide([one], settings, group_on_failure), Refuse)


def consequence(one: HookRun, settings: Settings, group_on_failure: OnFailure | None) -> str:
    """What follows from trouble with a hook of a call, in a few words for people; empty: nothing was to follow."""
    if not one.verdict.failure or one.spec.background:
        return ""
    if one.spec.event in _BEFORE:
        return "the call is refused" if blocks(one, settings, group_on_failure) else "it stops nothing"
    if one.spec.event not in _AFTER:
        return ""
    follows = comments([one], settings, group_on_failure)
    if follows.withheld:
        return "the result is withheld"
    return "the model is told" if follows.noted else "it changes nothing"


def permitted(
    hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None, last_answer_counts: bool
) -> Refuse | bool:
    """What one group's PermissionRequest hooks answer: a refusal, True for yes, False where none of them says.

    A denial wins, or, where `last_answer_counts`, what is said last.
    """
    judges = _judges(hook_runs)
    said = [one for one in judges if one.verdict.permission in (Permission.ALLOW, Permission.DENY)]
    if last_answer_counts and said and not any(one.verdict.stop for one in judges):
        said = judges = [_with_last_reason(said[-1], judges)]
    refuse = _denied(judges) or _failed(_judges(hook_runs), settings, group_on_failure)
    if refuse:
        return replace(refuse, asked=True)
    return any(one.verdict.permission is Permission.ALLOW and not one.verdict.failure for one in said)


def allowed_instead(hook_runs: Sequence[HookRun]) -> bytes | None:
    """The arguments that PermissionRequest hooks allow in place of those they were asked about."""
    allowing = [
        one for one in _judges(hook_runs) if one.verdict.permission is Permission.ALLOW and not one.verdict.failure
    ]
    return _last([one.verdict.arguments for one in allowing])


def _with_last_reason(one: HookRun, judges: Sequence[HookRun]) -> HookRun:
    """A reason that is said later is the reason, too."""
    reason = next((other.verdict.reason for other in reversed(judges) if other.verdict.reason), "")
    return replace(one, verdict=replace(one.verdict, reason=reason))


def governing(settings: Settings, question: ApprovalRequest | None) -> Settings:
    """The settings that hold for a question: for one that is managed, those that nobody weakens."""
    return settings.managed if question is not None and question.managed and settings.managed else settings


def without_person(proceed: Proceed, settings: Settings, can_ask: bool) -> Decision:
    """What follows where no hook and no rule answers the question of a call: the call as it is if it can be asked."""
    question = proceed.question
    settings = governing(settings, question)
    if question is None or (settings.on_ask is OnAsk.ELICIT and can_ask):
        return proceed
    if settings.on_ask is OnAsk.ELICIT:
        allowed, cause = settings.on_ask_fallback is OnFailure.ALLOW, RefusalCause.ASK_UNAVAILABLE
    else:
        allowed, cause = settings.on_ask is OnAsk.ALLOW, RefusalCause.ASK_DENIED
    if allowed:
        return replace(proceed, question=None, asked=True)
    return declined(proceed, cause)


def declined(proceed: Proceed, cause: RefusalCause = RefusalCause.DECLINED) -> Refuse:
    """The question of a call has been answered with no, or not at all."""
    by, reason = (proceed.question.by, proceed.question.reason) if proceed.question else ("", "")
    return Refuse(by, reason, asked=True, cause=cause, feedback=proceed.feedback)


def failed(hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None) -> Refuse | None:
    """What follows trouble with one group's hooks by itself: a refusal, or None."""
    return _failed(_judges(hook_runs), settings, group_on_failure)


def comments(hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None) -> Comments:
    """What one group of post hooks does to a result."""
    judges = _judges(hook_runs)
    withheld: list[HookRun] = []
    noted: list[HookRun] = []
    for one in judges:
        if not one.verdict.failure:
            continue
        rule = _rule(one, settings, group_on_failure)
        if rule is OnFailure.DENY or (rule is OnFailure.DIALECT and one.spec.withholds):
            withheld.append(one)
        elif rule is OnFailure.DIALECT and _fails_closed(one):
            noted.append(one)  # the tool has run: to a hook that cannot withhold, blocking means telling
    return Comments(
        feedback=_feedback(hook_runs),
        replacement=_last([one.verdict.replacement for one in judges if not one.verdict.failure]),
        withheld=tuple(withheld),
        noted=tuple(noted),
        failed=any(one.verdict.permission is Permission.DENY for one in judges),
        hidden_by=next((one.spec.label for one in judges if one.verdict.hides), ""),
    )


def merge_comments(first: Comments, second: Comments) -> Comments:
    """The comments of two groups that were asked in this order: all of both; the later replacement wins."""
    return Comments(
        feedback=first.feedback + second.feedback,
        replacement=_last([first.replacement, second.replacement]),
        withheld=first.withheld + second.withheld,
        noted=first.noted + second.noted,
        failed=first.failed or second.failed,
        hidden_by=first.hidden_by or second.hidden_by,
    )


def _judges(hook_runs: Sequence[HookRun]) -> list[HookRun]:
    """Those who may decide: what a background hook says comes too late to count."""
    return [one for one in hook_runs if not one.spec.background]


def _denied(judges: Sequence[HookRun]) -> Refuse | None:
    """The refusal if a hook denies, or wants the turn to end, which denies as well."""
    denying = [one for one in judges if one.verdict.permission is Permission.DENY or one.verdict.stop]
    if not denying:
        return None
    return replace(_refuse(denying, RefusalCause.DENIED), stop=any(one.verdict.stop for one in denying))


def _failed(judges: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None) -> Refuse | None:
    """The refusal if trouble with a hook denies; it tells of the first such hook."""
    for one in judges:
        if not one.verdict.failure:
            continue
        rule = _rule(one, settings, group_on_failure)
        if rule is OnFailure.DENY:
            return Refuse(one.spec.label, one.verdict.failure, cause=RefusalCause.FAILURE, event=one.spec.event)
        if rule is OnFailure.DIALECT and _fails_closed(one):
            return Refuse(one.spec.label, one.verdict.failure, cause=RefusalCause.FAILED_CLOSED, event=one.spec.event)
    return None


def _question(judges: Sequence[HookRun]) -> ApprovalRequest | None:
    """The question if a hook wants a person to confirm."""
    asking = [one for one in judges if one.verdict.permission is Permission.ASK]
    if not asking:
        return None
    spec = asking[0].spec
    return ApprovalRequest(f"the {spec.event} hook {spec.label}", _reasons(asking))


def _fails_closed(one: HookRun) -> bool:
    """Its own field says that its trouble blocks, or its dialect's document says so of this trouble."""
    return one.spec.fails_closed or one.verdict.fails_closed


def _rule(one: HookRun, settings: Settings, group_on_failure: OnFailure | None) -> OnFailure:
    """What follows trouble with this hook: its own choice over its group's over the configuration's."""
    if one.verdict.untrusted:
        return OnFailure.DENY
    return one.spec.on_failure or group_on_failure or settings.on_failure


def _refuse(agreeing: Sequence[HookRun], cause: RefusalCause) -> Refuse:
    spec = agreeing[0].spec
    return Refuse(by=spec.label, reason=_reasons(agreeing), cause=cause, event=spec.event)


def _reasons(agreeing: Sequence[HookRun]) -> str:
    return "\n".join(one.verdict.reason for one in agreeing if one.verdict.reason)


def _feedback(hook_runs: Sequence[HookRun]) -> tuple[str, ...]:
    return tuple(text for one in hook_runs for text in one.verdict.feedback)


def _last(offers: Sequence[bytes | None]) -> bytes | None:
    """The last thing offered, if anything is."""
    return next((offer for offer in reversed(offers) if offer is not None), None)
