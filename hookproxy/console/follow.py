"""Follows all runs of this account: finds them, keeps the state current, forgets the ended ones, and sends answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from msgspec import Struct, field

from ..live import messages, registry
from ..live.messages import Action, Answer, AnswerTaken, Changes, Run
from ..model.errors import UserError
from ..transports import unix_socket
from .state import State

if TYPE_CHECKING:
    import socket

_LOOK_SECONDS: Final = 0.5
"""Between two looks at the folder: a new run appears within this time. A look takes a tenth of a millisecond."""

_ELSEWHERE: Final = "gateway"  # the name of the one run elsewhere
_READ_SIZE: Final = 262_144

_LONGEST_LINE: Final = 96 * 1024 * 1024
"""Bytes of a line of a run: an approval has all arguments of a call, which may be as long as a message, 64 MiB."""

_ANSWER_SECONDS: Final = 5.0
"""How long a run may take to accept an answer: it does so within a tick."""

_TOO_LONG: Final = f"Changed arguments may have {messages.LONGEST_EDIT} characters."
_GONE: Final = "The run that has asked has ended."
_SILENT: Final = "The run does not respond: look whether its call has ended."


Open = Callable[[], "socket.socket"]
"""Connects to a run that is in no folder of ours. Raises UserError."""


class Follower:
    """All runs in one folder, or one run elsewhere."""

    def __init__(self, folder: str, report: Callable[[str], None], open_run: Open | None = None) -> None:
        """With `open_run` only that run is followed."""
        self.state = State()
        self._folder = folder
        self._open = open_run
        self._report = report
        self._connections: dict[str, _Connection] = {}
        self._problem = ""

    async def follow(self) -> None:
        """Follow the runs until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._look(tasks)
                await anyio.sleep(_LOOK_SECONDS)

    def _look(self, tasks: anyio.abc.TaskGroup) -> None:
        """Connect to the runs that are new. What prevents it is reported once."""
        try:
            for name in registry.names(self._folder) if self._open is None else (_ELSEWHERE,):
                if name not in self._connections and (connection := self._connect(name)) is not None:
                    self._connections[name] = _Connection(name, connection, self.state, self._open is None)
                    tasks.start_soon(self._follow_run, name)
            problem = ""
        except UserError as error:
            problem = f"{error.message}; {error.hint}"
        except OSError as error:
            problem = f"{self._folder}: {error.strerror}"
        if problem and problem != self._problem:
            self._report(f"runs cannot be found: {problem}")
        self._problem = problem

    def _connect(self, name: str) -> socket.socket | None:
        return registry.connect(self._folder, name) if self._open is None else self._open()

    async def _follow_run(self, name: str) -> None:
        connection = self._connections[name]
        try:
            await connection.read()
        except (OSError, messages.Unreadable) as problem:
            self._report(f"the run {name} is not followed any more: {problem}")
        finally:
            connection.close()
            del self._connections[name]
            self.state.forget(name)

    async def answer(
        self, run: str, approval: str, action: Action, reason: str, place: str, arguments: str = ""
    ) -> AnswerTaken:
        """Answer an approval. The result says whether the run has accepted it, and else why not.

        `arguments` as in Answer.
        """
        connection = self._connections.get(run)
        if connection is None:
            return AnswerTaken(approval, accepted=False, why=_GONE)
        if len(arguments) > messages.LONGEST_EDIT:
            return AnswerTaken(approval, accepted=False, why=_TOO_LONG)
        answer = Answer(approval, action, reason[: messages.LONGEST_REASON], place, arguments)
        return await connection.answer(answer)


class _PendingAnswer(Struct, eq=False):
    """An answer whose fate is not known yet."""

    done: anyio.Event = field(default_factory=anyio.Event)
    result: AnswerTaken | None = None


class _Connection:
    """The connection to one run."""

    def __init__(self, name: str, connection: socket.socket, state: State, is_own: bool) -> None:
        """`is_own`: it must be a run of our own account, or of root."""
        self._name = name
        self._is_own = is_own
        self._connection = connection
        self._state = state
        self._answers: dict[str, list[_PendingAnswer]] = {}
        self._closed = False

    async def read(self) -> None:
        """Read what the run says, until it ends. Raises OSError, Unreadable."""
        if self._is_own and unix_socket.uid_of_peer(self._connection) not in (0, os.geteuid()):
            raise messages.Unreadable("another account listens there")
        begun = bytearray()
        while piece := await self._receive():
            begun += piece
            if b"\n" in piece:
                *lines, rest = bytes(begun).split(b"\n")
                begun = bytearray(rest)
                for line in lines:
                    self._take(messages.from_run(line))
            elif len(begun) > _LONGEST_LINE:
                raise messages.Unreadable("it sends a line that is too long")

    async def _receive(self) -> bytes:
        while True:
            try:
                return self._connection.recv(_READ_SIZE)
            except BlockingIOError:
                await anyio.wait_readable(self._connection)

    def _take(self, message: Run | Changes | AnswerTaken) -> None:
        if not isinstance(message, AnswerTaken):
            self._state.apply(self._name, message)
        elif waiting := self._answers.get(message.approval):
            pending = waiting.pop(0)
            pending.result = message
            pending.done.set()

    async def answer(self, answer: Answer) -> AnswerTaken:
        """Send an answer, and wait for what becomes of it."""
        pending = _PendingAnswer()
        waiting = self._answers.setdefault(answer.approval, [])
        waiting.append(pending)
        try:
            with anyio.fail_after(_ANSWER_SECONDS):
                rest = memoryview(messages.encode(answer))
                while rest:
                    try:
                        rest = rest[self._connection.send(rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self._connection)
                await pending.done.wait()
        except TimeoutError:
            return AnswerTaken(answer.approval, accepted=False, why=_SILENT)
        except OSError:
            return AnswerTaken(answer.approval, accepted=False, why=_GONE)
        finally:
            if pending in waiting:
                waiting.remove(pending)
        return pending.result or AnswerTaken(answer.approval, accepted=False, why=_GONE)

    def close(self) -> None:
        """The run has ended: answers that wait get no response."""
        self._connection.close()
        for waiting in self._answers.values():
            for pending in waiting:
                pending.done.set()
