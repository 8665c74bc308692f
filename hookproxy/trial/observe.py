"""Runs hooks as `hooks` does, and records which hooks ran for which event, their input and their output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..hooks.evaluate import Evaluation, Hooks
from ..hooks.run_hooks import HookExecutor
from ..hooks.select import MatchedHook
from ..model.decision import Comments
from ..model.hooks import Document, EventContext, HookResult, HookRun, HookSpec, Tool, Verdict
from ..runners.command import prepare
from ..runners.runner import Runner

if TYPE_CHECKING:
    from ..policy.rules import RuleDecision


class GroupRun(Struct, frozen=True):
    """The hooks of one group that were run for one event."""

    group: Group
    event_context: EventContext
    """The event, with the arguments under the server's names."""
    hooks: tuple[HookSpec, ...]
    """Its hooks that match and apply to the event. A denial may have ended the run before all of them had started."""


class ObservedRun(Struct):
    """One run of a hook."""

    spec: HookSpec
    stdin: bytes
    """The exact input document. A `worker` gets it on one line."""
    variables: Mapping[str, str]
    """The environment variables that were set for it, in addition to those that it inherited."""
    removed_variables: tuple[str, ...]
    """Names of variables that it did not inherit, because they belong to another system."""
    result: HookResult | None = None
    hook_run: HookRun | None = None
    """The evaluated run; None: it was ended before it had output."""


class Observation(Struct):
    """What was observed in one call, or in one other event."""

    group_runs: list[GroupRun] = field(default_factory=list)
    runs: list[ObservedRun] = field(default_factory=list)
    """In the order in which they started."""
    evaluation: Evaluation | None = None
    after: list[EventContext] = field(default_factory=list)
    """The events after the call; there are several if it was repeated."""
    comments: Comments | None = None
    """The result of the hooks for the last one."""
    remarks: list[str] = field(default_factory=list)
    """Messages to people about hooks that do not come from a run."""
    rulings: list[RuleDecision] = field(default_factory=list)
    """The permission rules that counted: at most one of each layer."""


class _ObservingExecutor(HookExecutor):
    """Reports which hooks of a group are run, before they start."""

    note: Callable[[GroupRun], None]
    change: Callable[[HookSpec, Verdict], Verdict]

    async def run_hook(
        self,
        group: Group,
        hook: MatchedHook,
        call_context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None = None,
    ) -> HookRun:
        run = await super().run_hook(group, hook, call_context, hook_runs, listed)
        verdict = self.change(hook.spec, run.verdict)
        return run if verdict is run.verdict else replace(run, verdict=verdict)

    async def run_group(
        self,
        group: Group,
        hooks: Sequence[MatchedHook],
        event_context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None = None,
        applicable: Callable[[EventContext], Sequence[MatchedHook]] | None = None,
    ) -> list[HookRun]:
        if applicable is None:  # else each stage comes here with its own hooks
            self.note(GroupRun(group, event_context, tuple(hook.spec for hook in hooks)))
        return await super().run_group(group, hooks, event_context, hook_runs, listed, applicable)


class ObservedHooks(Hooks):
    """All hooks of one configuration, as Hooks runs them; `observation` is filled in meanwhile."""

    observation: Observation
    at = 0.0
    """When calls happen, in seconds since 1970, as hooks get it; 0: now."""

    change_verdict: Callable[[HookSpec, Verdict], Verdict] | None = None
    """What counts in place of a hook's verdict; None: the verdict. What is observed is the verdict."""

    def observe_rules(self) -> None:
        """Record in each observation which permission rules counted."""
        for layer in self._layers:
            layer.note_ruling = lambda ruling: self.observation.rulings.append(ruling)

    def use_time_of_calls(self) -> None:
        """Have limits and labels take the time from `at`, too.

        To be called before the first call; `at` must never go back.
        """
        for layer in self._layers:
            if layer.limits is not None:
                layer.limits.table.use_clock(lambda: self.at)
        if self.flow is not None:
            self.flow.use_clock(lambda: self.at)

    def note(self, hook_run: HookRun) -> None:
        """Record an evaluated run. To be given to `open` as its `report`."""
        for observed in reversed(self.observation.runs):
            if observed.result is hook_run.result:
                observed.hook_run = hook_run
                return
        texts = (*hook_run.verdict.messages, hook_run.verdict.failure)
        self.observation.remarks += [f"{hook_run.spec.label}: {text}" for text in texts if text]

    async def run_pre_hooks(
        self, event_context: EventContext, listed: Tool | None, hook_runs: list[HookRun]
    ) -> Evaluation:
        event_context = self._timed(event_context)
        self.observation.evaluation = await super().run_pre_hooks(event_context, listed, hook_runs)
        return self.observation.evaluation

    async def run_post_hooks(self, event_context: EventContext, hook_runs: list[HookRun]) -> Comments:
        event_context = self._timed(event_context)
        self.observation.after.append(event_context)
        self.observation.comments = await super().run_post_hooks(event_context, hook_runs)
        return self.observation.comments

    def _changed(self, spec: HookSpec, verdict: Verdict) -> Verdict:
        return verdict if self.change_verdict is None else self.change_verdict(spec, verdict)

    def _timed(self, event_context: EventContext) -> EventContext:
        return replace(event_context, at=self.at) if self.at else event_context

    def _new_executor(self, groups: Sequence[Group]) -> HookExecutor:
        self.observation = Observation()
        executor = _ObservingExecutor(groups, self._settings, self.environ, self._trust, self._add_allowed_rules)
        executor.change = self._changed
        executor.note = lambda group_run: self.observation.group_runs.append(group_run)
        for handler, runner in executor.runners.by_type.items():
            executor.runners.by_type[handler] = self._observed_runner(runner)
        return executor

    def _observed_runner(self, runner: Runner) -> Runner:
        async def run_observed(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
            removed_variables = tuple(sorted(self.environ.keys() - env.keys()))
            observed = ObservedRun(spec, bytes(document.stdin), _variables(spec, document, env), removed_variables)
            self.observation.runs.append(observed)
            observed.result = await runner(spec, document, env)
            return observed.result

        return run_observed


def _variables(spec: HookSpec, document: Document, inherited: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that are set for a hook, after fitting them to the limits of a process. Only processes get any."""
    if not (spec.argv or spec.shell):
        return {}
    env = prepare(spec, document, inherited).variables
    named = {*document.env, *dict(spec.env), *(env.keys() - inherited.keys()), *(("PWD",) if spec.cwd else ())}
    return {name: env[name] for name in sorted(named)}
