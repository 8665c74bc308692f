"""Hooks as `hooks` runs them, and what is seen of it: who was asked about what, what each got, what it answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from ..dialects.dialect import Group
from ..hooks.evaluate import Evaluation, Hooks
from ..hooks.run_in_order import HookExecutor
from ..model.decision import Comments
from ..model.hooks import Document, EventContext, HookResult, HookRun, HookSpec, Tool
from ..runners.command import prepare
from ..runners.runner import Runner


class Asked(Struct, frozen=True):
    """One group that was asked at one occasion."""

    group: Group
    event_context: EventContext
    """As the group sees it."""
    hooks: tuple[HookSpec, ...]
    """Those of its matching hooks that the occasion concerns; a denial may have ended it before all had run."""


class Run(Struct):
    """One run of a hook."""

    spec: HookSpec
    stdin: bytes
    """The document, exactly; a `worker` gets it on one line."""
    variables: Mapping[str, str]
    """The variables that were set for it, over those it inherited."""
    hidden: tuple[str, ...]
    """Names of our own variables that it did not inherit, for they tell of another system."""
    result: HookResult | None = None
    statement: HookRun | None = None
    """What it said; None: it was ended before."""


class Seen(Struct):
    """What has been seen of one call, or of another occasion."""

    asked: list[Asked] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """In the order in which they began."""
    evaluation: Evaluation | None = None
    after: list[EventContext] = field(default_factory=list)
    """The moments after the call: several if it was repeated."""
    comments: Comments | None = None
    """What came of the last of them."""
    remarks: list[str] = field(default_factory=list)
    """What people would be told about hooks beside what these said themselves."""


class _Noted(HookExecutor):
    """Turns that tell who is asked, before they are."""

    note: Callable[[Asked], None]

    async def ask(
        self,
        group: Group,
        hooks: Sequence[HookSpec],
        event_context: EventContext,
        hook_runs: list[HookRun],
        listed: Tool | None = None,
    ) -> list[HookRun]:
        self.note(Asked(group, event_context, tuple(hooks)))
        return await super().ask(group, hooks, event_context, hook_runs, listed)


class Observed(Hooks):
    """All hooks of one run; `seen` is filled in as they are asked."""

    seen: Seen

    def note(self, one: HookRun) -> None:
        """A statement has been made: to be given to `begin` as its `report`."""
        for run in reversed(self.seen.runs):
            if run.result is one.result:
                run.statement = one
                return
        told = (*one.verdict.messages, one.verdict.failure)
        self.seen.remarks += [f"{one.spec.label}: {text}" for text in told if text]

    async def before(self, event_context: EventContext, listed: Tool | None, hook_runs: list[HookRun]) -> Evaluation:
        """As of Hooks."""
        self.seen.evaluation = await super().before(event_context, listed, hook_runs)
        return self.seen.evaluation

    async def after(self, event_context: EventContext, hook_runs: list[HookRun]) -> Comments:
        """As of Hooks."""
        self.seen.after.append(event_context)
        self.seen.comments = await super().after(event_context, hook_runs)
        return self.seen.comments

    def _new_executor(self, groups: Sequence[Group]) -> HookExecutor:
        self.seen = Seen()
        executor = _Noted(groups, self._settings, self.environ, self._trust, self._allowing)
        executor.note = self._asked
        for kind, run in executor.runners.by_type.items():
            executor.runners.by_type[kind] = self._watched(run)
        return executor

    def _asked(self, one: Asked) -> None:
        self.seen.asked.append(one)

    def _watched(self, runner: Runner) -> Runner:
        async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
            hidden = tuple(sorted(self.environ.keys() - env.keys()))
            one = Run(spec, bytes(document.stdin), _variables(spec, document, env), hidden)
            self.seen.runs.append(one)
            one.result = await runner(spec, document, env)
            return one.result

        return run


def _variables(spec: HookSpec, document: Document, inherited: Mapping[str, str]) -> Mapping[str, str]:
    """What is set for a hook, as it gets it: fitted to what a process can be given. Only processes get any."""
    if not (spec.argv or spec.shell):
        return {}
    env = prepare(spec, document, inherited).variables
    named = {*document.env, *dict(spec.env), *(env.keys() - inherited.keys()), *(("PWD",) if spec.cwd else ())}
    return {name: env[name] for name in sorted(named)}
