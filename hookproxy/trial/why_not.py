"""Explains why a configured hook did not run in a trial, in a sentence for people, without a full stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..dialects.dialect import Group
from ..model.aliases import Alias
from ..model.decision import Proceed, Refuse
from ..model.hooks import Event, EventContext, HookSpec
from .observe import GroupRun
from .run import EVENTS_AFTER, SIDE_EVENTS, TrialResult, TrialRunner

_NO_APPROVAL: Final = "no hook or rule wants a person to be asked"
_DID_NOT_OCCUR: Final = {
    Event.PERMISSION_DENIED: "the call was not refused",
    Event.NOTIFICATION: "no person would be asked",
    Event.USER_INPUT: "no person would be asked",
}


class SkippedHook(Struct, frozen=True):
    """A hook that was not run."""

    spec: HookSpec
    group: Group
    why: str


def skipped_hooks(configured: Sequence[Group], trials: TrialRunner, trial: TrialResult, tool: str) -> list[SkippedHook]:
    """All configured hooks that did not run in a trial of this tool, in their order."""
    alias = _alias(trials, trial)
    ran = {id(run.spec) for run in trial.observation.runs}
    return [
        SkippedHook(spec, group, _why(_HookContext(spec, tried, trials, trial, tool, alias)))
        for group, tried in zip(configured, trials.groups, strict=True)
        for spec in group.hooks
        if id(spec) not in ran
    ]


def _alias(trials: TrialRunner, trial: TrialResult) -> Alias | None:
    if trial.record is None:
        return None
    return trials.hooks.groups.alias(trial.record.tool, trial.record.arguments)


class _HookContext(Struct, frozen=True):
    """A hook that did not run, and the trial."""

    spec: HookSpec
    group: Group
    """The group in the trial: only with the hooks for the events of the trial."""
    trials: TrialRunner
    trial: TrialResult
    tool: str
    alias: Alias | None
    """The alias of the tool in this call; None: it has none."""

    @property
    def group_run(self) -> GroupRun | None:
        """The last time that hooks of its group were run for its event."""
        found = [
            group_run
            for group_run in self.trial.observation.group_runs
            if group_run.group is self.group and group_run.event_context.event is self.spec.event
        ]
        return found[-1] if found else None

    @property
    def event_context(self) -> EventContext:
        """The event that its matcher is tried on."""
        trigger, _ = SIDE_EVENTS.get(self.spec.event, ("", ""))
        return EventContext(self.spec.event, self.trials.session, tool=self.tool, alias=self.alias, trigger=trigger)


def _why(context: _HookContext) -> str:
    if context.spec.event not in context.trials.events:
        return _other_event(context)
    if context.trial.unreadable:
        return "the call was refused before any hook ran"
    return _not_matching(context) or (
        _not_run(context, context.group_run) if context.group_run else _event_did_not_occur(context)
    )


def _other_event(context: _HookContext) -> str:
    """The hook is for an event that is not tried."""
    event = context.spec.event
    if len(context.trials.events) == 1:
        return f"it is for {event}, and only {next(iter(context.trials.events))} is tried"
    if event in EVENTS_AFTER:
        return f"it is for {event}, and there is no result: give one with --result"
    if event in SIDE_EVENTS:
        return f"it is for {event}, which is not part of this call: try it with --event {event}"
    return f"it is for {event}, an event of elicitations, which cannot be tried"


def _not_matching(context: _HookContext) -> str:
    """Why the hook was not selected for its event; empty if it was."""
    groups, spec = context.trials.hooks.groups, context.spec
    names = groups.match_values(context.group, context.event_context)
    if not any(map(spec.matches, names)):
        return f"{spec.matched_by} does not match {' or '.join(map(repr, names))}"
    selected = [hook.spec for selection in groups.select_for(context.event_context) for hook in selection.hooks]
    if any(hook is spec for hook in selected):
        return ""
    same = [hook for hook in selected if hook.identity == spec.identity and hook.dialect == spec.dialect]
    return f"it is the same hook as {same[0].source}, which runs once" if same else "another hook runs in its place"


def _not_run(context: _HookContext, group_run: GroupRun) -> str:
    """Hooks of its group were run, but not this one."""
    spec = context.spec
    if any(hook is spec for hook in group_run.hooks):
        return "an earlier hook of its file refused the call"
    if spec.event is Event.PERMISSION_REQUEST and not _needs_person(context.trial) and not spec.every_call:
        return _NO_APPROVAL
    return f"{spec.condition} does not match this call"


def _event_did_not_occur(context: _HookContext) -> str:
    """Its event did not occur."""
    trial, event = context.trial, context.spec.event
    if not trial.is_judged:
        return "no hook or rule applies to the call"
    if event in EVENTS_AFTER:
        return _not_after(trial, event)
    if event in _DID_NOT_OCCUR:
        return _DID_NOT_OCCUR[event]
    if event is Event.PERMISSION_REQUEST and isinstance(trial.hook_decision, Proceed) and not _needs_person(trial):
        return _NO_APPROVAL
    return f"{_refuser(trial)} refused the call earlier"


def _not_after(trial: TrialResult, event: Event) -> str:
    if not trial.allowed and not trial.observation.after:
        return "a person would be asked first" if trial.decision == "asked" else "the call was refused before it ran"
    if not trial.observation.after:
        return "the final result is not known yet: the call continues in further requests"
    return "the result is an error" if event is Event.POST_TOOL_USE else "the result is not an error"


def _needs_person(trial: TrialResult) -> bool:
    """Whether a hook or rule wanted a person to be asked."""
    decision = trial.hook_decision
    return decision is not None and (
        decision.asked or (isinstance(decision, Proceed) and decision.approval_request is not None)
    )


def _refuser(trial: TrialResult) -> str:
    return trial.hook_decision.by if isinstance(trial.hook_decision, Refuse) else "something"
