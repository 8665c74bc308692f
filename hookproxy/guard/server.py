"""The guard's socket: who may ask, how requests are read, and when the guard ends (law 3).

How it works: one guard listens for each account, at `guard.sock` in a folder that nobody else may enter; it holds that
folder's lock for as long as it lives, so that a second one ends at once. Each connection is one event, in a task of its
own: its head and parts are read and judged, and it gets its response; or it is a run of the proxy, which asks for as
long as it lives. A client that has gone, because its agent has ended it, ends the judging with all hooks. After
`idle_seconds` without a connection the guard ends, and as soon as it is asked to or another version of hookproxy is
installed: it stops listening first, so that the next client starts another one, and responds to those who have asked
already. Whoever has connected meanwhile gets no response, and asks that other one. If its socket was removed it ends in
the same way, because nobody could reach it while its lock keeps others from listening.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from ..dialects.agent_side import HookOutput, agent_side, refuse_by_status
from ..live import registry
from ..model.errors import UserError
from ..transports import unix_socket
from . import agent_process
from .current_policy import CannotJudge, Superseded
from .exchange import (
    LONGEST_HEAD,
    Control,
    Head,
    NotARequest,
    OtherVersion,
    Request,
    read_head,
    read_request,
    write_failure,
    write_response,
)
from .judge import Judge
from .place import NAME
from .run_messages import LONGEST
from .runs import NotARun, RunPeer, RunPeers
from .status import Status

if TYPE_CHECKING:
    import socket

_BACKLOG: Final = 1024  # connections that wait to be accepted: a run that is not taken goes on without the guard
_READ_SECONDS: Final = 30.0  # for a whole request: a client writes it at once
_WAITING_SECONDS: Final = 30.0  # for room for a request: calls about which a person is asked keep theirs for minutes
_PIECE: Final = 262_144  # bytes of one read, as the client writes
_MOST_HELD: Final = 128 * 1024 * 1024  # bytes of the documents that are judged at the same time: more of them wait
_MOST_DROPPED: Final = 1024 * 1024 * 1024  # bytes that are read of a request that is refused for its length
_FAILING_SECONDS: Final = 0.5  # for those who have started this guard: the next ones start another
_LOOK_SECONDS: Final = 1.0  # between looks at its socket's name: a client waits ten times as long for a new guard
_RETRY_SECONDS: Final = 1.0  # until somebody may connect again, if there are too few descriptors


class Answers(Protocol):
    """What responds to those who connect."""

    @property
    def current(self) -> Judge:
        """What judges now."""

    async def judge(self, request: Request) -> HookOutput:
        """What the agent reads for its event. Raises CannotJudge and Superseded."""

    def status(self) -> Status:
        """How the guard is now."""


class AnotherRuns(Exception):
    """Another guard of this account listens already."""


class Guard:
    """The socket in a folder, from `__init__` to `close`."""

    def __init__(self, folder: str, report: Callable[[str], None], inherited: socket.socket | None = None) -> None:
        """Listen, or serve those who connect at an `inherited` socket, at which systemd goes on listening.

        Raises AnotherRuns, UserError and OSError.
        """
        registry.prepare_folder(folder)
        self.folder = folder
        self._is_inherited = inherited is not None
        self._report = report
        self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AnotherRuns from None
            self._listener = inherited or registry.listen(folder, NAME)
            self._listener.listen(_BACKLOG)
        except BaseException:
            os.close(self._lock)
            raise
        self._socket = None if inherited else _file_at(registry.socket_path(folder, NAME))
        self._connections = 0
        self._idle_seconds = math.inf
        self._used_at = monotonic()
        self._ends, self._closed = anyio.Event(), anyio.Event()
        self._at_once = False
        self._memory = _Memory(_MOST_HELD)
        self._runs: set[anyio.CancelScope] = set()
        self._peers = RunPeers()

    def close(self) -> None:
        """Stop listening, if it has not yet. Whoever connects now starts another guard."""
        if self._listener.fileno() >= 0:
            if not self._is_inherited and self._is_reachable():
                registry.remove(self.folder, NAME)
            self._listener.close()
            os.close(self._lock)

    def end(self, *, at_once: bool) -> None:
        """Let `serve` return: when the events that are judged now are judged, or at once."""
        self._at_once = self._at_once or at_once
        self._ends.set()

    async def fail(self, why: str) -> None:
        """Report to those who have connected already why nothing can be judged."""
        with anyio.move_on_after(_FAILING_SECONDS):
            while True:
                await anyio.wait_readable(self._listener)
                connection, _ = self._listener.accept()
                with connection:
                    connection.setblocking(False)
                    await _send(connection, write_failure(why))
                    await _drop(connection)

    async def serve(self, answers: Answers, idle_seconds: float) -> None:
        """Serve requests until none has come for `idle_seconds`, or it is to end. It does not listen afterwards."""
        self._idle_seconds = idle_seconds
        async with anyio.create_task_group() as connections:
            async with anyio.create_task_group() as listening:
                listening.start_soon(self._accept, connections, answers)
                listening.start_soon(self._end_when_idle)
                listening.start_soon(self._end_when_unreachable)
                await self._ends.wait()
                listening.cancel_scope.cancel()
            self.close()
            self._closed.set()
            for run in self._runs:
                run.cancel()
            if self._at_once:
                connections.cancel_scope.cancel()

    async def _end_when_idle(self) -> None:
        while (rest := self._used_at + self._idle_seconds - monotonic()) > 0 or self._connections:
            seconds = self._idle_seconds if self._connections else rest
            await anyio.sleep(seconds)  # an event would wake this task with each connection
        self.end(at_once=False)

    async def _end_when_unreachable(self) -> None:
        while self._is_reachable():  # noqa: ASYNC110  # no event says so on every system
            await anyio.sleep(_LOOK_SECONDS)
        self._report("its socket was removed: this guard ends")
        self.end(at_once=False)

    def _is_reachable(self) -> bool:
        """Whether its socket is still where clients look for it: somebody may have removed it, or its folder."""
        return self._is_inherited or _file_at(registry.socket_path(self.folder, NAME)) == self._socket

    async def _accept(self, tasks: anyio.abc.TaskGroup, answers: Answers) -> None:
        def report(why: str) -> None:
            self._report(f"an agent cannot connect: {why}")

        async for connection in unix_socket.accepted(self._listener, _RETRY_SECONDS, report):
            tasks.start_soon(self._serve, connection, answers)

    async def _serve(self, connection: socket.socket, answers: Answers) -> None:
        self._connections += 1
        try:
            if unix_socket.uid_of_peer(connection) != os.geteuid():  # not even root: its events are not this person's
                self._report(f"user {unix_socket.uid_of_peer(connection)} was turned away")
                return
            await self._answer(connection, answers)
        except (OSError, TimeoutError, EOFError):  # it has gone; its agent knows
            pass
        except (OtherVersion, Superseded):
            self._report("another version of hookproxy is installed: this guard ends")
            self.end(at_once=False)
            await self._closed.wait()  # only now it may hear that it must ask another one
        finally:
            connection.close()
            self._connections -= 1
            self._used_at = monotonic()

    async def _answer(self, connection: socket.socket, answers: Answers) -> None:
        head: Head | Control | None = None
        try:
            with anyio.fail_after(_READ_SECONDS):
                head, rest = await _read_head(connection)
            if isinstance(head, Head):
                size = sum(head.lengths)
                await self._reserve(size, head.agent)
                try:
                    with anyio.fail_after(_READ_SECONDS):
                        parts = await _read_parts(connection, rest, size)
                except BaseException:
                    self._memory.release(size)
                    raise
        except NotARequest as refused:
            await _send(connection, write_response(_refusal(refused.agent, str(refused))))
            with anyio.move_on_after(_READ_SECONDS):  # a client that still writes would read nothing
                await _drop(connection)
            return
        if not isinstance(head, Head):
            await self._obey(connection, head, rest, answers)
            return
        try:
            request = read_request(head, parts, *agent_process.of_client(unix_socket.process_of_peer(connection)))
            response = write_response(await unix_socket.while_connected(connection, lambda: answers.judge(request)))
        except CannotJudge as problem:
            response = write_failure(str(problem))
        finally:
            self._memory.release(size)
        await _send(connection, response)

    async def _reserve(self, size: int, agent: str) -> None:
        """Wait for room for a request. Raises NotARequest if there is none: a failure might let the call go on."""
        try:
            with anyio.fail_after(_WAITING_SECONDS):
                await self._memory.reserve(size)
        except TimeoutError:
            raise NotARequest("it judges too many long events now", agent) from None

    async def _obey(self, connection: socket.socket, control: Control, received: bytearray, answers: Answers) -> None:
        if control == "run":
            await self._serve_run(connection, received, answers)
            return
        if control == "stop":
            self.end(at_once=False)
        idle_seconds = self._idle_seconds if math.isfinite(self._idle_seconds) else 0.0
        now = replace(answers.status(), clients=self._connections - 1, idle_seconds=idle_seconds)
        await _send(connection, write_response(HookOutput(msgspec.json.encode(now))))

    async def _serve_run(self, connection: socket.socket, piece: bytearray | bytes, answers: Answers) -> None:
        """Answer a run of the proxy until it ends, or this guard does."""
        process = agent_process.of_run(unix_socket.process_of_peer(connection))
        peer = RunPeer(process, lambda: answers.current, self._peers)
        begun = bytearray()  # of a line
        with anyio.CancelScope() as serving:
            self._runs.add(serving)
            try:
                self._peers.check(peer)  # before anything is read: what is not a run takes no time
                while len(begun) <= LONGEST:
                    begun += piece
                    if b"\n" in piece:  # else all of a long line would be searched and copied for each piece of it
                        *lines, begun = begun.split(b"\n")
                        for line in lines:
                            await _send(connection, peer.respond(bytes(line)))
                    piece = await _receive(connection)
            except NotARun as refused:
                self._report(f"a run of hookproxy was turned away: {refused}")
            finally:
                peer.close()
                self._runs.remove(serving)


def _file_at(path: str) -> tuple[int, int] | None:
    """What the system knows a file by, its device and number; None: there is none, or nobody can say."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _refusal(agent: str, why: str) -> HookOutput:
    side = agent_side(agent)
    return (side.refuse if side else refuse_by_status)(f"error: the guard cannot judge this event: {why}")


class _Memory:
    """So many bytes may be held at the same time; further requests wait for theirs."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._changed = anyio.Event()

    async def reserve(self, size: int) -> None:
        while size > self._left:
            await self._changed.wait()
        self._left -= size

    def release(self, size: int) -> None:
        self._left += size
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def _read_head(connection: socket.socket) -> tuple[Head | Control, bytearray]:
    """The first line, and what came after it. Raises NotARequest, OtherVersion, EOFError, OSError."""
    received = bytearray()
    while b"\n" not in received[:LONGEST_HEAD]:
        if len(received) >= LONGEST_HEAD:
            raise NotARequest("its first line cannot be read")
        received += await _receive(connection)
    line, _, rest = bytes(received).partition(b"\n")
    return read_head(line), bytearray(rest)


async def _read_parts(connection: socket.socket, received: bytearray, size: int) -> bytes:
    while len(received) < size:
        received += await _receive(connection)
    if len(received) > size:
        raise NotARequest("it is longer than it says")
    return bytes(received)


async def _receive(connection: socket.socket) -> bytes:
    """The next bytes. Raises EOFError at the end, OSError."""
    while True:
        try:
            piece = connection.recv(_PIECE)
        except BlockingIOError:
            await anyio.wait_readable(connection)
            continue
        if not piece:
            raise EOFError
        return piece


async def _send(connection: socket.socket, data: bytes) -> None:
    while data:
        try:
            data = data[connection.send(data) :]
        except BlockingIOError:
            await anyio.wait_writable(connection)


async def _drop(connection: socket.socket) -> None:
    dropped = 0
    with contextlib.suppress(EOFError):
        while dropped < _MOST_DROPPED:
            dropped += len(await _receive(connection))


def folder_of(path: str) -> str:
    """The folder of this socket's path. Raises UserError for a path that a guard does not listen at."""
    if os.path.basename(path) != f"{NAME}.sock" or not os.path.isabs(path):
        raise UserError(f"--socket: {path!r} is not a path that ends in /{NAME}.sock", "hookproxy guard install")
    return os.path.dirname(path)
