"""One event for hooks whose system demands something of their host: a program lifts denials, and a record is kept.

How it works: what the hooks get must have an identity, where the host has them; the hooks run in their order; where
they deny what may be lifted, the program is asked, as a hook of its own; the record goes with the event's last run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..dialects.dialect import Emitted, Group
from ..model.hooks import Document, Ended, Event, EventContext, HookResult, HookRun, Permission
from .select import MatchedHook

Consult = Callable[[Sequence[HookRun], EventContext], Awaitable[list[HookRun]]]
"""Returns the runs of an event as they count after the program was asked, if there is something to ask it."""

RunHook = Callable[[MatchedHook, EventContext], Awaitable[HookRun]]

_OF_CALLS: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)


def is_emission(group: Group, event: Event) -> bool:
    """Whether the host of this group has something to do at this event."""
    return group.dialect.host is not None and event in _OF_CALLS


class Emission:
    """One event of a call, for the hooks of one group."""

    def __init__(
        self,
        group: Group,
        hooks: Sequence[MatchedHook],
        hook_runs: list[HookRun],
        run_hook: RunHook,
        document: Callable[[MatchedHook, EventContext], Document],
        left: Callable[[EventContext, Sequence[HookRun]], EventContext],
    ) -> None:
        """`document` is what a hook gets of an event, and `left` the event as runs have left it."""
        assert group.dialect.host is not None
        self._host = group.dialect.host
        self._resolvers = {spec.event: spec for spec in group.dialect.resolvers}
        self._hooks, self._hook_runs, self._before = hooks, hook_runs, len(hook_runs)
        self._run_hook, self._document, self._left = run_hook, document, left

    async def run(
        self, run_in_order: Callable[[Consult], Awaitable[list[HookRun]]], context: EventContext
    ) -> list[HookRun]:
        """Run the hooks of the event; return the runs that count."""
        document = self._document(self._hooks[0], context).stdin
        try:
            identity = self._host.identity(document)
        except ValueError as problem:
            return self._recorded([], document, None, None, str(problem))
        runs = await run_in_order(self.consult)
        if len(self._hook_runs) == self._before:  # no hook had to run
            return runs
        enforced, why = identity, ""
        if identity is not None:
            try:
                enforced = self._host.identity(self._document(self._hooks[0], self._left(context, runs)).stdin)
            except ValueError as problem:
                enforced, why = None, str(problem)
        return self._recorded(runs, document, identity, enforced, why)

    async def consult(self, runs: Sequence[HookRun], context: EventContext) -> list[HookRun]:
        """As `Consult`."""
        liftable = [run for run in runs if run.verdict.permission is Permission.ASK or run.verdict.liftable]
        denied = [run for run in runs if run.verdict.permission is Permission.DENY and not run.verdict.liftable]
        if denied or any(run.verdict.failure for run in runs) or not liftable or context.event not in self._resolvers:
            return list(runs)
        hook = next(hook for hook in self._hooks if hook.spec is liftable[0].spec)
        hook = replace(hook, spec=self._resolvers[context.event])
        asked = replace(self._left(context, runs), denial=self._host.denial(liftable[0]))
        try:
            identity = self._host.identity_asked(self._document(hook, asked).stdin)
        except ValueError as problem:  # an earlier hook has put in what has no identity: nobody can approve that
            return [*runs, self._refused(str(problem))]
        run = self._host.checked(await self._run_hook(hook, asked), identity)
        self._hook_runs[-1] = run
        if run.verdict.failure or run.verdict.permission is not None:
            return [*runs, run]
        return [*(_lifted(one) if one in liftable else one for one in runs), run]

    def _recorded(
        self,
        runs: list[HookRun],
        document: bytes | bytearray,
        identity: str | None,
        enforced: str | None,
        problem: str,
    ) -> list[HookRun]:
        """The runs, with a refusal if there is a problem. The record is added to the last one that has ended."""
        if problem:
            runs = [*runs, self._refused(problem)]
        specs = [hook.spec for hook in self._hooks]
        ended = self._hook_runs[self._before :]
        record = self._host.record(Emitted(document, specs, ended, identity, enforced, problem))
        self._hook_runs[-1] = replace(self._hook_runs[-1], interception=record)
        return runs

    def _refused(self, problem: str) -> HookRun:
        """The refusal of what has no identity, as the run of the first hook whose refusals count."""
        refusals = [(hook.spec, self._host.refused(hook.spec, problem)) for hook in self._hooks]
        spec, verdict = next((one for one in refusals if one[1].permission is not None), refusals[0])
        refused = HookRun(spec, HookResult(Ended.NOT_STARTED, detail=problem), verdict)
        self._hook_runs.append(refused)
        return refused


def _lifted(run: HookRun) -> HookRun:
    """The run of a hook whose denial has been lifted."""
    verdict = replace(run.verdict, permission=None, reason="", hides=False, liftable=False, feedback=())
    return replace(run, verdict=verdict)
