"""What consoles see of this process: its calls as they happen, and the approvals that a person may answer there.

While no console is connected, this only counts calls: nothing is written, and nothing wakes up. A console that does not
read holds up nobody: what changes meanwhile is summed up in the next line that it gets (law 1: only an explicit answer
approves a call).
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.call_record import Record
from ..live import registry
from ..live.messages import (
    Answer,
    AnswerTaken,
    ConsoleAnswer,
    Counts,
    Run,
    Settled,
    WaitingApproval,
)
from ..model.errors import UserError
from ..protocol.calls import Call
from ..transports import unix_socket
from ..trust.sources import state_folder
from .console_connection import Console
from .live_session import LiveSession, show_all

if TYPE_CHECKING:
    import socket

    from .proxy import Proxy

_RETRY_SECONDS: Final = 10.0
"""Before the next try to accept a console, if there are too few descriptors: each failure is reported."""

_MOST_CONSOLES: Final = 8
"""That follow one run: a person has one or two open; each costs a look at all calls per tick."""

_TOO_LATE: Final = "This call no longer waits for approval: somebody has answered, its time is over, or it has ended."


class _Waiting(Struct):
    """An approval that waits for an answer."""

    approval: WaitingApproval
    only_while_open: bool
    """It waits only as long as a console is open."""
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: ConsoleAnswer | None = None


class LiveFeed:
    """This process, for consoles. One for all its sessions."""

    def __init__(self, run: Run, report: Callable[[str], None]) -> None:
        self.run = run
        self._report = report
        self._listener: socket.socket | None = None
        self._folder = ""
        self._sessions: dict[str, LiveSession] = {}
        self._consoles: set[Console] = set()
        self._approvals: dict[str, _Waiting] = {}
        self._elsewhere: dict[str, WaitingApproval] = {}
        self.answer_elsewhere: Callable[[Answer, str], Awaitable[AnswerTaken]] | None = None
        """Passes on an answer to an approval that waits in another process."""
        self._numbers = 0
        self._calls = self._refused = self._rewritten = self._failed = self._asked = 0

    def listen(self, folder: str, *, needed: bool = False) -> None:
        """Be found in this folder from now on. What prevents it is reported: the run goes on without consoles.

        An empty name means that there is no place for such a folder. That, or a folder that cannot be made, is reported
        only if a console is `needed`.
        """
        problem = "there is no home folder; set HOME or XDG_RUNTIME_DIR" * needed if not folder else ""
        try:
            if folder:
                self._listener = registry.listen(folder, self.run.run)
                self._folder = folder
        except UserError as unsafe:
            problem = f"{unsafe.message}; {unsafe.hint}"
        except OSError as error:
            problem = f"{folder}: {error.strerror or error}; name another folder with XDG_RUNTIME_DIR" * needed
        if problem:
            self._report(f"consoles do not see this run: {problem}")

    @property
    def can_ask(self) -> bool:
        """A console can find the approvals of this run."""
        return self._listener is not None

    def close(self) -> None:
        """Be found no more."""
        if self._listener is not None:
            registry.remove(self._folder, self.run.run)
            self._listener.close()
            self._listener = None

    # --- what happens ---

    def add(self, proxy: Proxy, user: str = "") -> None:
        """A session begins."""
        self._sessions[proxy.session.id] = LiveSession(proxy, user)
        if self.can_ask:
            proxy.calls.approvals.console = partial(self._ask, proxy)
            proxy.calls.approvals.console_is_open = lambda: self.is_watched
        self.follow(proxy)

    def follow(self, proxy: Proxy) -> None:
        """Follow the calls that a session judges from now on: it begins, or its policy has changed."""
        session = self._sessions[proxy.session.id]
        proxy.policy.audit.on_ended = lambda record: self._ended(session, record)
        if self._consoles:
            show_all(proxy)

    def remove(self, proxy: Proxy) -> None:
        """A session has ended."""
        self._sessions.pop(proxy.session.id, None)

    def _ended(self, session: LiveSession, record: Record) -> None:
        self._calls += 1
        self._refused += record.result == "refused"
        self._rewritten += bool(record.final)
        self._failed += record.result in ("error", "lost", "cancelled")
        for console in self._consoles:
            console.note_ended(session, record)

    @property
    def counts(self) -> Counts:
        """The sums until now."""
        return Counts(self._calls, self._refused, self._rewritten, self._failed, self._asked)

    # --- approvals ---

    async def _ask(
        self, proxy: Proxy, call: Call, approval: WaitingApproval, only_while_open: bool
    ) -> ConsoleAnswer | None:
        """Ask whoever has a console open until `approval.until`; None if nobody has answered by then.

        With `only_while_open`, the approval ends when the last console is closed, as if its time were over. On cancel
        the approval is withdrawn.
        """
        self._numbers += 1
        self._asked += 1
        name = f"{self.run.run}-{self._numbers}"
        call_id = next((key for key, (_, one, _) in proxy.policy.audit.in_flight.items() if one is call), "")
        session_id = proxy.session.id
        user = self._sessions[session_id].user if session_id in self._sessions else ""
        named = replace(approval, id=name, call=call_id, session=session_id, user=user)
        waiting = _Waiting(named, only_while_open)
        self._approvals[name] = waiting
        settled = Settled(name, "withdrawn")
        try:
            with anyio.move_on_after(max(approval.until - time(), 0)):
                await waiting.answered.wait()
            settled = Settled(name, "expired")
            if waiting.answer is not None:
                settled = Settled(name, waiting.answer.answer.action, waiting.answer.by)
            return waiting.answer
        finally:
            del self._approvals[name]
            for console in self._consoles:
                console.note_settled(settled)

    def is_waiting(self, call: str) -> bool:
        """Whether a person is asked about this call."""
        return any(one.approval.call == call for one in self._approvals.values())

    def take(self, answer: Answer, by: str) -> AnswerTaken:
        """Take an answer: the first one counts."""
        waiting = self._approvals.get(answer.approval)
        if waiting is None or waiting.answered.is_set():
            return AnswerTaken(answer.approval, accepted=False, why=_TOO_LATE)
        if answer.action == "allow_session" and not waiting.approval.may_allow_session:
            why = "This call cannot be allowed for the session: allow it once, or deny it."
            return AnswerTaken(answer.approval, accepted=False, why=why)
        waiting.answer = ConsoleAnswer(answer, by)
        waiting.answered.set()
        return AnswerTaken(answer.approval, accepted=True)

    def waiting_here(self) -> list[WaitingApproval]:
        """The approvals that wait in this process."""
        return [one.approval for one in self._approvals.values() if not one.answered.is_set()]

    def show_elsewhere(self, approvals: Iterable[WaitingApproval]) -> None:
        """Show these approvals, which wait in other processes, and no others of that kind."""
        before, self._elsewhere = self._elsewhere, {one.id: one for one in approvals}
        for name in before.keys() - self._elsewhere.keys():
            for console in self._consoles:
                console.note_settled(Settled(name, "withdrawn"))

    async def answer(self, answer: Answer, by: str) -> AnswerTaken:
        """Take an answer, or pass it on to the process in which its approval waits. The first one counts."""
        if answer.approval in self._elsewhere and self.answer_elsewhere is not None:
            return await self.answer_elsewhere(answer, by)
        return self.take(answer, by)

    # --- consoles ---

    @property
    def is_watched(self) -> bool:
        """Whether a console is connected."""
        return bool(self._consoles)

    async def serve(self) -> None:
        """Serve the consoles that connect, until it is cancelled."""
        if self._listener is None:
            return
        self._remove_dead()
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(self._listener)
                try:
                    connection, _ = self._listener.accept()
                except BlockingIOError:  # it has gone
                    continue
                except OSError as problem:
                    self._report(f"a console cannot connect: {problem.strerror}")
                    await anyio.sleep(_RETRY_SECONDS)
                    continue
                connection.setblocking(False)
                tasks.start_soon(self._serve, connection)

    def _remove_dead(self) -> None:
        """Remove the sockets of runs that were killed."""
        try:
            registry.remove_dead(self._folder)
        except UserError as problem:
            self._report(f"sockets of earlier runs cannot be removed: {problem.message}; {problem.hint}")
        except OSError as problem:
            self._report(f"sockets of earlier runs cannot be removed: {problem.strerror}")

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one console. A defect in this ends the connection, and never a call."""
        try:
            with connection:
                uid, _ = unix_socket.account_of_peer(connection)
                if uid not in (0, os.geteuid()):
                    self._report(f"a console of user {uid} was turned away")
                elif len(self._consoles) >= _MOST_CONSOLES:
                    self._report(f"a console was turned away: {_MOST_CONSOLES} follow this run")
                else:
                    who = f"user {uid}, process {unix_socket.process_of_peer(connection)}"
                    await self._serve_console(Console(self, connection, who))
        except Exception as defect:
            self._report("".join(traceback.format_exception(defect)).rstrip())

    async def _serve_console(self, console: Console) -> None:
        self._consoles.add(console)
        for session in self._sessions.values():
            show_all(session.proxy)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(console.read, tasks.cancel_scope)
                await console.write()
        except* (BrokenPipeError, ConnectionResetError):  # it has gone
            pass
        finally:
            self._consoles.discard(console)
            if not self._consoles:
                for waiting in self._approvals.values():
                    if waiting.only_while_open:
                        waiting.answered.set()

    def sessions(self) -> Iterator[LiveSession]:
        """All sessions."""
        yield from self._sessions.values()

    def approvals(self) -> Iterator[WaitingApproval]:
        """All approvals that wait, here and elsewhere."""
        for waiting in self._approvals.values():
            yield waiting.approval
        yield from self._elsewhere.values()


def open_feed(run: Run, report: Callable[[str], None], *, needed: bool) -> LiveFeed:
    """A feed that consoles can find. `needed` as for LiveFeed.listen."""
    feed = LiveFeed(run, report)
    folder = registry.folder_of_runs(os.environ, state_folder(os.environ, os.path.expanduser("~")))
    feed.listen(folder, needed=needed)
    return feed
