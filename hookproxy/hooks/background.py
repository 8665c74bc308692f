"""Hooks that nobody waits for: they run beside calls, have places of their own, and are bounded in number and bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from ..dialects.dialect import Group
from ..model.hooks import Ended, EventContext, HookResult, HookRun, HookSpec, Verdict

if TYPE_CHECKING:
    import anyio.abc

_MOST: Final = 256  # hooks that run or wait for a place: one for each call of a busy minute
_MOST_BYTES: Final = 64 * 1024 * 1024  # of arguments and output that they are told: what one line may have

Run = Callable[[Group, HookSpec, EventContext], Awaitable[object]]
"""Runs a hook, and reports what it said. Raises OSError where the system gives too few descriptors or processes."""

ReportHookRun = Callable[[HookRun], None]
"""Tells people what a hook has for them. Never blocks."""


class BackgroundHooks:
    """The hooks that run while nobody waits; they end with `tasks` of `begin`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tasks: anyio.abc.TaskGroup | None = None
        self._report: ReportHookRun = lambda _statement: None
        self._notify: Callable[[], None] = lambda: None
        self._bytes = 0
        self.running = 0

    def open(self, tasks: anyio.abc.TaskGroup, report: ReportHookRun, notify: Callable[[], None]) -> None:
        """From now on hooks can be started. `tell` is called when one has ended."""
        self._tasks, self._report, self._notify = tasks, report, notify

    def start(self, group: Group, spec: HookSpec, context: EventContext) -> bool:
        """Start a hook if nobody is to wait for it; False: somebody is. One too many is told, and not run."""
        if not spec.background or self._tasks is None:
            return False
        size = _size(context)
        if self.running >= _MOST or self._bytes + size > _MOST_BYTES:
            self._fail(spec, "was not run, for too many hooks are running that nobody waits for")
        else:
            self.running += 1
            self._bytes += size
            self._tasks.start_soon(self._see_through, group, spec, context, size)
        return True

    async def _see_through(self, group: Group, spec: HookSpec, context: EventContext, size: int) -> None:
        try:
            await self._run(group, spec, context)
        except OSError as problem:  # too few descriptors or processes: it decides nothing, and is told
            self._fail(spec, f"could not be run: {problem.strerror}")
        finally:
            self.running -= 1
            self._bytes -= size
            self._notify()

    def _fail(self, spec: HookSpec, failure: str) -> None:
        self._report(HookRun(spec, HookResult(Ended.NOT_STARTED), Verdict(failure=failure)))


def _size(context: EventContext) -> int:
    outcome = context.outcome
    return len(context.arguments) + (len(outcome.content) + len(outcome.structured) if outcome else 0)
