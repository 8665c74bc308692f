"""What a page runs: the hooks on a call, recorded calls through a configuration, the server that lists its tools.

One of them at a time: hooks run for real. All of it ends with the console. Only code that the command line of the
console names runs: a page chooses one of its configurations, and may add rules.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from ..audit import lines
from ..audit.records import CallRecord, Entry, HookRun
from ..checks import flow_entries
from ..checks.report import CheckedServer
from ..checks.server_tools import list_tools
from ..config.load import Loaded, make_data_folders
from ..hooks.coverage import coverage
from ..model.errors import UserError
from ..model.hooks import Ended, Session
from ..trial.observe import ObservedRun
from ..trial.replay import Difference, Replay, Tally, same_for_all
from ..trial.report import TrialReport, json_object, try_call
from ..trial.run import TrialCall
from . import history, policy
from .mistakes import Mistake, as_mistakes
from .options import Options

MOST_CALLS: Final = 2000
"""Calls in one replay: at 30 ms for a hook that is one minute."""

_REPLAY_SECONDS: Final = 120.0  # until a replay is ended: a person waits for it
_MOST_SHOWN: Final = 100  # differences on one page
_Result = TypeVar("_Result")


class TypedCall(Struct, frozen=True):
    """What was typed into the form that tries a call."""

    server: str = ""
    tool: str = ""
    arguments: str = "{}"
    result: str = ""


class TypedReplay(Struct, frozen=True):
    """What was typed into the form that replays calls."""

    view: history.View
    configuration: int = 0
    """The number of the configuration in the list."""
    rules: str = ""
    newest: int = 200


class Replayed(Struct):
    """What a replay has found."""

    tally: Tally
    left_out: bool
    """There are older calls in the period."""
    differences: list[Difference] = field(default_factory=list)
    more: int = 0
    """Differences beyond those that are shown."""
    unfinished: bool = False
    """The time for it was over."""


class Trials:
    """Runs one thing at a time for the pages of one console."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = anyio.Lock()
        self._scope = anyio.CancelScope()  # of what runs now

    def close(self) -> None:
        """End what runs."""
        self._scope.cancel()

    async def try_call(self, typed: TypedCall) -> TrialReport:
        """Run the hooks on a call. Raises UserError."""
        if not typed.tool:
            raise Mistake("no tool is named", "write the server's own name of the tool")
        with as_mistakes():
            arguments = json_object("Arguments", (typed.arguments or "{}").encode(errors="replace"))
            result = json_object("Result", typed.result.encode(errors="replace")) if typed.result else None
        loaded = await in_thread(self._options.load)
        make_data_folders(loaded)
        environ, cwd = self._options.environ, self._options.cwd
        project = environ.get("CLAUDE_PROJECT_DIR") or cwd
        session = Session(str(uuid.uuid4()), typed.server or "server", cwd, project).in_project(loaded.project)
        async with self._alone():
            return await try_call(loaded, TrialCall(typed.tool, arguments, result), None, session, environ)

    async def replay(self, typed: TypedReplay) -> Replayed:
        """Run the newest recorded calls through one of the configurations, one after another. Raises UserError."""
        query, loads = typed.view.query(), [self._options.load, *self._options.compared.values()]

        def read() -> tuple[Loaded, list[Entry]]:
            loaded = loads[typed.configuration]()
            with as_mistakes():
                loaded = policy.with_rules(loaded, typed.rules)
            make_data_folders(loaded)
            entries = filter(self._is_ours, history.entries(self._options.audit_path(), query))
            return loaded, list(deque(entries, typed.newest + 1))

        loaded, entries = await in_thread(read)
        session_of = same_for_all(loaded, self._options.environ, self._options.cwd)
        async with self._alone(), Replay(session_of) as running:
            replayed = Replayed(running.tally, left_out=len(entries) > typed.newest)
            with anyio.move_on_after(_REPLAY_SECONDS) as scope:
                async for result in running.over(entries[-typed.newest :]):
                    if not isinstance(result, Difference):
                        continue
                    if len(replayed.differences) < _MOST_SHOWN:
                        replayed.differences.append(result)
                    else:
                        replayed.more += 1
            replayed.unfinished = scope.cancelled_caught
            return replayed

    def _is_ours(self, entry: Entry) -> bool:
        """The configuration is for the call."""
        only = self._options.only_server
        return not only or not isinstance(entry, CallRecord) or entry.server == only

    async def checked_server(self, loaded: Loaded) -> CheckedServer:
        """What hooks see of the server that the command line names."""
        command, name = self._options.command, self._options.server
        try:
            async with self._alone():
                listed = await list_tools(command, self._options.environ)
        except UserError as error:
            return CheckedServer(name, tuple(command), failure=error.message)
        seen = coverage(loaded.groups, loaded.settings, name, listed.tools, command, listed.server_info)
        return CheckedServer(
            name,
            tuple(command),
            seen,
            info=listed.server_info,
            noise=listed.noise,
            hidden=listed.hidden,
            flow=flow_entries.covered(loaded.settings, loaded.groups, name, listed.tools, command, listed.server_info),
        )

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Run the block if nothing else runs. Raises UserError if something does, or if the console ends."""
        if self._lock.locked():
            raise Mistake("another trial runs now", "wait until it has ended, then try again", HTTPStatus.CONFLICT)
        async with self._lock:
            with anyio.CancelScope() as self._scope:
                yield
            if self._scope.cancelled_caught:
                raise UserError("the trial was ended", "the console ends")


async def in_thread(read: Callable[[], _Result]) -> _Result:
    """The result of what reads files or takes time, from a worker thread. On cancel it goes on: it changes nothing."""
    return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)


def as_record(run: ObservedRun) -> HookRun:
    """The run as the audit would record it, with all that the hook got and printed."""
    spec, hook_run = run.spec, run.hook_run
    record = HookRun(
        source=spec.source,
        event=spec.event,
        dialect=spec.dialect,
        command=spec.target or spec.label,
        ended=Ended.CANCELLED.value,
        verdict="none",
        input=run.stdin.decode(errors="backslashreplace"),
    )
    if (result := run.result) is not None:
        output, errors = (text.decode(errors="backslashreplace") for text in (result.stdout, result.stderr))
        record = replace(record, ended=result.ended.value, exit=result.code, ms=result.ms, stdout=output, stderr=errors)
    if hook_run is None:
        return record
    verdict = hook_run.verdict
    return replace(
        record,
        tool_name=hook_run.tool_name,
        verdict=lines.verdict_word(verdict),
        reason=verdict.failure or verdict.reason,
        feedback=verdict.feedback,
        messages=verdict.messages,
        unread=tuple(hook_run.unread),
    )
