"""Hooks as `hooks` runs them, and what is seen of it: who was asked about what, what each got, what it answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from ..dialects.dialect import Group
from ..hooks.evaluate import Hearing, Hooks
from ..hooks.run_in_order import Turns
from ..model.decision import Comments
from ..model.hooks import Document, HookResult, HookSpec, Occasion, Statement, Tool
from ..runners.command import prepared
from ..runners.runner import Runner


class Asked(Struct, frozen=True):
    """One group that was asked at one occasion."""

    group: Group
    occasion: Occasion
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
    statement: Statement | None = None
    """What it said; None: it was ended before."""


class Seen(Struct):
    """What has been seen of one call, or of another occasion."""

    asked: list[Asked] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """In the order in which they began."""
    hearing: Hearing | None = None
    after: list[Occasion] = field(default_factory=list)
    """The moments after the call: several if it was repeated."""
    comments: Comments | None = None
    """What came of the last of them."""
    remarks: list[str] = field(default_factory=list)
    """What people would be told about hooks beside what these said themselves."""


class _Noted(Turns):
    """Turns that tell who is asked, before they are."""

    note: Callable[[Asked], None]

    async def ask(
        self,
        group: Group,
        hooks: Sequence[HookSpec],
        occasion: Occasion,
        heard: list[Statement],
        listed: Tool | None = None,
    ) -> list[Statement]:
        self.note(Asked(group, occasion, tuple(hooks)))
        return await super().ask(group, hooks, occasion, heard, listed)


class Observed(Hooks):
    """All hooks of one run; `seen` is filled in as they are asked."""

    seen: Seen

    def note(self, one: Statement) -> None:
        """A statement has been made: to be given to `begin` as its `report`."""
        for run in reversed(self.seen.runs):
            if run.result is one.result:
                run.statement = one
                return
        told = (*one.verdict.messages, one.verdict.trouble)
        self.seen.remarks += [f"{one.spec.label}: {text}" for text in told if text]

    async def before(self, occasion: Occasion, listed: Tool | None, heard: list[Statement]) -> Hearing:
        """As of Hooks."""
        self.seen.hearing = await super().before(occasion, listed, heard)
        return self.seen.hearing

    async def after(self, occasion: Occasion, heard: list[Statement]) -> Comments:
        """As of Hooks."""
        self.seen.after.append(occasion)
        self.seen.comments = await super().after(occasion, heard)
        return self.seen.comments

    def _new_turns(self, groups: Sequence[Group]) -> Turns:
        self.seen = Seen()
        turns = _Noted(groups, self._settings, self.environ, self._trust, self._allowing)
        turns.note = self._asked
        for kind, run in turns.runners.by_type.items():
            turns.runners.by_type[kind] = self._watched(run)
        return turns

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
    env = prepared(spec, document, inherited).variables
    named = {*document.env, *dict(spec.env), *(env.keys() - inherited.keys()), *(("PWD",) if spec.cwd else ())}
    return {name: env[name] for name in sorted(named)}
