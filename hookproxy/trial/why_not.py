"""Why a configured hook had no part in a trial, in a sentence for people without a full stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..dialects.dialect import Group
from ..model.decision import Proceed, Refuse
from ..model.hooks import Event, EventContext, HookSpec
from .observe import GroupRun
from .run import AFTER, SIDE_EVENTS, TrialResult, TrialRunner

_NOBODY: Final = "nobody wants a person to be asked"
_ENDED: Final = {
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
    """All hooks of the configuration that had no part in a trial of this tool, in their order."""
    ran = {id(run.spec) for run in trial.seen.runs}
    return [
        SkippedHook(spec, group, _why(_Context(spec, tried, trials, trial, tool)))
        for group, tried in zip(configured, trials.groups, strict=True)
        for spec in group.hooks
        if id(spec) not in ran
    ]


class _Context(Struct, frozen=True):
    spec: HookSpec
    group: Group
    """As it was tried: with the hooks for the events of the trial."""
    trials: TrialRunner
    trial: TrialResult
    tool: str

    @property
    def asked(self) -> GroupRun | None:
        """When its group was asked at its event, the last time."""
        found = [
            one
            for one in self.trial.seen.asked
            if one.group is self.group and one.event_context.event is self.spec.event
        ]
        return found[-1] if found else None

    @property
    def event_context(self) -> EventContext:
        """What its matcher is tried on."""
        by, _ = SIDE_EVENTS.get(self.spec.event, ("", ""))
        return EventContext(self.spec.event, self.trials.session, tool=self.tool, trigger=by)


def _why(context: _Context) -> str:
    if context.spec.event not in context.trials.events:
        return _of_another(context)
    if context.trial.unreadable:
        return "the call was refused before any hook was asked"
    return _not_matching(context) or (_not_run(context, context.asked) if context.asked else _not_asked(context))


def _of_another(context: _Context) -> str:
    """It is for an event that is not tried."""
    event = context.spec.event
    if len(context.trials.events) == 1:
        return f"it is for {event}, and {next(iter(context.trials.events))} alone is tried"
    if event in AFTER:
        return f"it is for {event}, and there is no result: give one with --result"
    if event in SIDE_EVENTS:
        return f"it is for {event}, which is no part of this call: try it with --event {event}"
    return f"it is for {event}, a question of the server to a person, which cannot be tried"


def _not_matching(context: _Context) -> str:
    groups, spec = context.trials.hooks.groups, context.spec
    names = groups.tried_on(context.group, context.event_context)
    if not any(map(spec.matches, names)):
        return f"its matcher {spec.matcher!r} does not match {' or '.join(map(repr, names))}"
    selected = [one for each in groups.at(context.event_context) for one in each.hooks]
    if any(one is spec for one in selected):
        return ""
    same = [one for one in selected if one.identity == spec.identity and one.dialect == spec.dialect]
    return f"it is the same hook as {same[0].source}, which runs once" if same else "another hook runs in its place"


def _not_run(context: _Context, asked: GroupRun | None) -> str:
    """Its group was asked, but not this hook."""
    spec = context.spec
    if asked and any(one is spec for one in asked.hooks):
        return "a hook of its file had refused before, which ends it"
    if spec.event is Event.PERMISSION_REQUEST and not _is_question(context.trial) and not spec.every_call:
        return _NOBODY
    return f"its `if` {spec.only_if!r} leaves this call out"


def _not_asked(context: _Context) -> str:
    """Its moment did not come."""
    trial, event = context.trial, context.spec.event
    if not trial.concerned:
        return "nothing judges the call"
    if event in AFTER:
        return _not_after(trial, event)
    if event in _ENDED:
        return _ENDED[event]
    if event is Event.PERMISSION_REQUEST and isinstance(trial.judged, Proceed) and not _is_question(trial):
        return _NOBODY
    return f"{_refuser(trial)} had refused the call before"


def _not_after(trial: TrialResult, event: Event) -> str:
    if not trial.allowed and not trial.seen.after:
        return "a person would be asked first" if trial.decision == "asked" else "the call was refused before it ran"
    if not trial.seen.after:
        return "what the result says is not known yet: the call goes on in further requests"
    return "the result is an error" if event is Event.POST_TOOL_USE else "the result is no error"


def _is_question(trial: TrialResult) -> bool:
    """Somebody wanted a person to be asked."""
    decision = trial.judged
    return decision is not None and (
        decision.asked or (isinstance(decision, Proceed) and decision.question is not None)
    )


def _refuser(trial: TrialResult) -> str:
    return trial.judged.by if isinstance(trial.judged, Refuse) else "something"
