"""Background hooks: no call waits for them, they have slots of their own, and their number and bytes are bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Final

from ..dialects.dialect import Group
from ..model.hooks import Ended, EventContext, HookResult, HookRun, HookSpec, Verdict
from .select import MatchedHook

if TYPE_CHECKING:
    import anyio.abc

_MAX_HOOKS: Final = 256  # hooks that run or wait for a slot: one for each call of a busy minute
_MAX_BYTES: Final = 64 * 1024 * 1024  # of arguments and output in their contexts: as much as one line may have

Run = Callable[[Group, MatchedHook, EventContext], Awaitable[object]]
"""Runs a hook and reports its run. Raises OSError if the system lacks descriptors or processes."""

Rest = Callable[[], Coroutine[None, None, HookResult]]
"""`HookResult.rest`: waits for the end of a hook that goes on in the background."""

ReportHookRun = Callable[[HookRun], None]
"""Reports a hook run to people. Never blocks."""


class BackgroundHooks:
    """The background hooks that run; they end with the task group given to `open`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tasks: anyio.abc.TaskGroup | None = None
        self._report: ReportHookRun = lambda _hook_run: None
        self._notify: Callable[[], None] = lambda: None
        self._bytes = 0
        self.running = 0

    def open(self, tasks: anyio.abc.TaskGroup, report: ReportHookRun, notify: Callable[[], None]) -> None:
        """Run hooks in `tasks` from now on. `notify` is called when one has ended."""
        self._tasks, self._report, self._notify = tasks, report, notify

    def start(self, group: Group, hook: MatchedHook, context: EventContext) -> bool:
        """Start a hook if it is a background hook, else return False. One too many is reported and not run."""
        spec = hook.spec
        if not spec.background or self._tasks is None:
            return False
        size = _size(context)
        if self.running >= _MAX_HOOKS or self._bytes + size > _MAX_BYTES:
            self._fail(spec, "was not run, because too many background hooks are running")
        else:
            self.running += 1
            self._bytes += size
            self._tasks.start_soon(self._run_hook, group, hook, context, size)
        return True

    def follow(self, wait: Callable[[], Awaitable[None]]) -> bool:
        """Wait in the background for the end of a hook that has been started already. False: that is not possible."""
        if self._tasks is None or self.running >= _MAX_HOOKS:
            return False
        self.running += 1
        self._tasks.start_soon(self._follow, wait)
        return True

    async def _follow(self, wait: Callable[[], Awaitable[None]]) -> None:
        try:
            await wait()
        finally:
            self.running -= 1
            self._notify()

    async def _run_hook(self, group: Group, hook: MatchedHook, context: EventContext, size: int) -> None:
        try:
            await self._run(group, hook, context)
        except OSError as problem:  # too few descriptors or processes: it decides nothing, so reporting is enough
            self._fail(hook.spec, f"could not be run: {problem.strerror}")
        finally:
            self.running -= 1
            self._bytes -= size
            self._notify()

    def _fail(self, spec: HookSpec, failure: str) -> None:
        self._report(HookRun(spec, HookResult(Ended.NOT_STARTED), Verdict(failure=failure)))


def _size(context: EventContext) -> int:
    outcome = context.outcome
    return len(context.arguments) + (len(outcome.content) + len(outcome.whole) if outcome else 0)
