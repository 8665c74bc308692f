"""Turn the verdicts of many hooks into one decision: proceed, refuse, or request approval.

Law 3: a hook's failure has the consequence that the configuration names, and never counts as approval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..model.decision import ApprovalRequest, Comments, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import NO_VERDICT, Event, HookRun, HookSpec, Permission
from ..model.settings import ConsoleUse, OnAsk, OnFailure, Settings

PRE_EVENTS: Final = (Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL, Event.PERMISSION_REQUEST)
"""The events before a call: the verdict of their hooks decides whether it passes."""
BEFORE_CALL: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
"""Those whose hooks judge and rewrite its arguments."""
_POST_EVENTS: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)


def no_verdicts(hook_runs: Sequence[HookRun]) -> bool:
    """True if no hook gave a verdict and none failed, so there is nothing to decide."""
    for run in hook_runs:  # noqa: SIM110 - this runs for each call, and a generator would cost more than the loop
        if run.verdict is not NO_VERDICT and run.verdict != NO_VERDICT:
            return False
    return True


def decide(hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None) -> Decision:
    """Return one group's decision on a call. In `hook_runs`, the last rewrite wins.

    A denial is reported rather than a failure, because the model can act on a reason but not on a crash.
    """
    deciding = _deciding(hook_runs)
    refuse = _denial(deciding) or failure_refusal(deciding, settings, group_on_failure)
    asked = any(run.verdict.answer for run in hook_runs)
    if refuse:
        return replace(refuse, feedback=_feedback(hook_runs), asked=asked)
    return Proceed(
        arguments=_last([run.verdict.arguments for run in deciding if not run.verdict.failure]),
        feedback=_feedback(hook_runs),
        approval_request=_approval_request(deciding),
        asked=asked,
    )


def blocks(run: HookRun, settings: Settings, group_on_failure: OnFailure | None) -> bool:
    """True if this hook's verdict or failure alone refuses the call."""
    return isinstance(decide([run], settings, group_on_failure), Refuse)


def consequence(run: HookRun, settings: Settings, group_on_failure: OnFailure | None) -> str:
    """Return what follows from a hook's failure, in a few words for people; empty: it has no consequence."""
    if not run.verdict.failure or run.spec.background:
        return ""
    if run.spec.event in PRE_EVENTS:
        return "the call is refused" if blocks(run, settings, group_on_failure) else "it does not block the call"
    if run.spec.event not in _POST_EVENTS:
        return ""
    follows = comments([run], settings, group_on_failure)
    if follows.withheld:
        return "the result is withheld"
    return "the model is informed" if follows.noted else "it does not change the result"


def permission_decision(
    hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None, last_answer_counts: bool
) -> Refuse | bool:
    """Return what one group's PermissionRequest hooks decide: a refusal, True to allow, False for no decision.

    A denial wins. With `last_answer_counts`, the last decision wins.
    """
    deciding = _deciding(hook_runs)
    decided = [run for run in deciding if run.verdict.permission in (Permission.ALLOW, Permission.DENY)]
    if last_answer_counts and decided and not any(run.verdict.stop for run in deciding):
        decided = deciding = [_with_last_reason(decided[-1], deciding)]
    refuse = _denial(deciding) or failure_refusal(hook_runs, settings, group_on_failure)
    if refuse:
        return replace(refuse, asked=True)
    return any(run.verdict.permission is Permission.ALLOW and not run.verdict.failure for run in decided)


def allows(hook_runs: Sequence[HookRun]) -> bool:
    """True if some hook of these allows the call."""
    return bool(_allowing(hook_runs))


def allows_final(
    hook_runs: Sequence[HookRun],
    counts: Callable[[HookRun], bool],
    rewritten: bytes | None,
    before: bool,
    *,
    in_turn: bool,
) -> bool:
    """True if a hook that `counts` allows the arguments as they are after these runs of one group.

    `rewritten` are the arguments in the group's decision; `before`: an earlier group has allowed what this one got.
    A hook allows what it saw, or what it makes of that: what another one makes of it is something else, unless the hook
    ran after that one and saw it (`in_turn`).
    """
    deciding = _deciding(hook_runs)
    allowing = [at for at, run in enumerate(deciding) if _is_allowing(run) and counts(run)]
    if rewritten is None:
        return before or bool(allowing)
    if not in_turn:
        return any(deciding[at].verdict.arguments == rewritten for at in allowing)
    rewriting = [at for at, run in enumerate(deciding) if run.verdict.arguments is not None and not run.verdict.failure]
    return bool(allowing) and allowing[-1] >= rewriting[-1]


def allowed_arguments(hook_runs: Sequence[HookRun]) -> bytes | None:
    """Return the arguments that PermissionRequest hooks allow instead of the original ones; None: the original ones."""
    return _last([run.verdict.arguments for run in _allowing(hook_runs)])


def _allowing(hook_runs: Sequence[HookRun]) -> list[HookRun]:
    return [run for run in _deciding(hook_runs) if _is_allowing(run)]


def _is_allowing(run: HookRun) -> bool:
    return run.verdict.permission is Permission.ALLOW and not run.verdict.failure


def chosen_meta(hook_runs: Sequence[HookRun]) -> bytes | None:
    """Return the `_meta` that PreMcpToolCall hooks want to be sent; None: none of them wants another one."""
    return _last([run.verdict.meta for run in _deciding(hook_runs) if not run.verdict.failure])


def _with_last_reason(run: HookRun, deciding: Sequence[HookRun]) -> HookRun:
    """Return the hook run with the reason that was given last."""
    reason = next((other.verdict.reason for other in reversed(deciding) if other.verdict.reason), "")
    return replace(run, verdict=replace(run.verdict, reason=reason))


def settings_for(settings: Settings, request: ApprovalRequest | None) -> Settings:
    """Return the settings for an approval request: the managed settings if the request is managed."""
    return settings.managed if request is not None and request.managed and settings.managed else settings


def without_person(proceed: Proceed, settings: Settings, can_ask: bool) -> Decision:
    """Decide a call whose approval request no hook and no rule has answered; unchanged if a person can be asked.

    Where only some people approve calls, nothing but their answer does; and where a call would carry data to a sink,
    nothing but a person's.
    """
    request, approvers = proceed.approval_request, settings.approvers
    settings = settings_for(settings, request)
    if request is None:
        return proceed
    asks = settings.on_ask in (OnAsk.ELICIT, OnAsk.CONSOLE) or (settings.on_ask is OnAsk.ALLOW and bool(request.chains))
    if asks and can_ask:
        return proceed
    if asks:
        allowed, cause = settings.on_ask_fallback is OnFailure.ALLOW, RefusalCause.ASK_UNAVAILABLE
    else:
        allowed, cause = settings.on_ask is OnAsk.ALLOW, RefusalCause.ASK_DENIED
    if allowed and not (approvers or request.chains):
        return replace(proceed, approval_request=None, asked=True)
    remedy = _remedy(settings, managed=request.managed) if asks and not approvers else ""
    return replace(declined(proceed, cause, approvers), remedy=remedy)


def _remedy(settings: Settings, *, managed: bool) -> str:
    """What people can do so that they are asked the next time, in sentences for the model and for them."""
    if managed and not settings.console:
        return "The administrator's configuration names no other way to ask (on_ask_fallback)."
    if settings.console is ConsoleUse.IF_OPEN:
        return (
            "The user can open `hookproxy console` or `hookproxy top`: while one of them is open, such calls wait for "
            'an answer there (on_ask_fallback = "auto").'
        )
    if settings.console is ConsoleUse.ALWAYS:
        return "No console can find this run: standard error says why, or the machine has no place for its socket."
    return (
        f'With on_ask_fallback = "auto" in {settings.called}, such calls wait for an answer in `hookproxy console` or '
        "`hookproxy top` while one of them is open."
    )


def declined(proceed: Proceed, cause: RefusalCause, approvers: Sequence[str] = ()) -> Refuse:
    """Refuse a call because its approval request was denied, was not answered, or could not be asked.

    `approvers` are those of the settings.
    """
    request = proceed.approval_request or ApprovalRequest("", "")
    who = ", ".join(approvers)
    return Refuse(
        request.by,
        request.reason,
        asked=True,
        cause=cause,
        feedback=proceed.feedback,
        approvers=who,
        chains=request.chains,
    )


def failure_rule(spec: HookSpec, settings: Settings, group_on_failure: OnFailure | None) -> OnFailure:
    """Return the failure rule for a hook: its own, else its group's, else the configuration's."""
    if settings.fail_closed:
        return OnFailure.DENY
    return spec.on_failure or group_on_failure or settings.on_failure


def comments(hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None) -> Comments:
    """Return what one group of post hooks does to a result."""
    deciding = _deciding(hook_runs)
    withheld: list[HookRun] = []
    noted: list[HookRun] = []
    for run in deciding:
        if not run.verdict.failure:
            continue
        rule = _on_failure(run, settings, group_on_failure)
        if rule is OnFailure.DENY or (rule is OnFailure.DIALECT and run.spec.withholds):
            withheld.append(run)
        elif rule is OnFailure.DIALECT and _fails_closed(run):
            noted.append(run)  # the tool has run: a hook that cannot withhold the output can only inform the model
    return Comments(
        feedback=_feedback(hook_runs),
        replacement=_last([run.verdict.replacement for run in deciding if not run.verdict.failure]),
        withheld=tuple(withheld),
        noted=tuple(noted),
        failed=any(run.verdict.permission is Permission.DENY for run in deciding),
        hidden_by=next((run.spec.label for run in deciding if run.verdict.hides), ""),
        added_labels=tuple(label for run in deciding for label in run.verdict.added_labels),
        removed_labels=tuple(label for run in deciding for label in run.verdict.removed_labels),
    )


def merge_comments(first: Comments, second: Comments) -> Comments:
    """Merge the comments of two groups that ran in this order. The later replacement wins."""
    return Comments(
        feedback=first.feedback + second.feedback,
        replacement=_last([first.replacement, second.replacement]),
        withheld=first.withheld + second.withheld,
        noted=first.noted + second.noted,
        failed=first.failed or second.failed,
        hidden_by=first.hidden_by or second.hidden_by,
        added_labels=first.added_labels + second.added_labels,
        removed_labels=first.removed_labels + second.removed_labels,
    )


def _deciding(hook_runs: Sequence[HookRun]) -> list[HookRun]:
    """Return the runs that may decide: a background hook's verdict comes too late."""
    return [run for run in hook_runs if not run.spec.background]


def _denial(deciding: Sequence[HookRun]) -> Refuse | None:
    """Return the refusal if a hook denies the call or stops the agent."""
    denying = [run for run in deciding if run.verdict.permission is Permission.DENY or run.verdict.stop]
    if not denying:
        return None
    return replace(_refuse(denying, RefusalCause.DENIED), stop=any(run.verdict.stop for run in denying))


def failure_refusal(
    hook_runs: Sequence[HookRun], settings: Settings, group_on_failure: OnFailure | None
) -> Refuse | None:
    """Return the refusal if the failure of a hook denies the call; it names the first such hook. None: none does."""
    for run in _deciding(hook_runs):
        if not run.verdict.failure:
            continue
        rule = _on_failure(run, settings, group_on_failure)
        if run.verdict.unjudged:
            cause = RefusalCause.UNJUDGED
        elif rule is OnFailure.DENY:
            cause = RefusalCause.FAILURE
        elif rule is OnFailure.DIALECT and _fails_closed(run):
            cause = RefusalCause.FAILED_CLOSED
        else:
            continue
        return Refuse(run.spec.label, run.verdict.failure, cause=cause, event=run.spec.event)
    return None


def _approval_request(deciding: Sequence[HookRun]) -> ApprovalRequest | None:
    """Return the approval request if a hook wants one."""
    requesting = [run for run in deciding if run.verdict.permission is Permission.ASK]
    if not requesting:
        return None
    spec = requesting[0].spec
    only_narrows = all(run.spec.only_narrows for run in requesting)
    return ApprovalRequest(f"the {spec.event} hook {spec.label}", _reasons(requesting), only_narrows=only_narrows)


def _fails_closed(run: HookRun) -> bool:
    """True if the hook's own field or its dialect's document says that this failure blocks."""
    return run.spec.fails_closed or run.verdict.fails_closed


def _on_failure(run: HookRun, settings: Settings, group_on_failure: OnFailure | None) -> OnFailure:
    """Return the failure rule for this hook: its own, else its group's, else the configuration's."""
    if run.verdict.untrusted or run.verdict.unjudged:
        return OnFailure.DENY
    return failure_rule(run.spec, settings, group_on_failure)


def _refuse(hook_runs: Sequence[HookRun], cause: RefusalCause) -> Refuse:
    spec = hook_runs[0].spec
    return Refuse(by=spec.label, reason=_reasons(hook_runs), cause=cause, event=spec.event)


def _reasons(hook_runs: Sequence[HookRun]) -> str:
    return "\n".join(run.verdict.reason for run in hook_runs if run.verdict.reason)


def _feedback(hook_runs: Sequence[HookRun]) -> tuple[str, ...]:
    return tuple(text for run in hook_runs for text in run.verdict.feedback)


def _last(values: Sequence[bytes | None]) -> bytes | None:
    """Return the last value that is not None, if there is one."""
    return next((value for value in reversed(values) if value is not None), None)
