"""The guard's socket: who may ask, how requests are read, and when the guard ends (law 3).

How it works: one guard listens for each account, at `guard.sock` in a folder that nobody else may enter; it holds that
folder's lock for as long as it lives, so that a second one ends at once. Each connection is one request, in a task of
its own: its head and parts are read, judged, and answered. A client that has gone, because its agent has ended it,
ends the judging with all hooks. After `idle_seconds` without a connection the guard ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc

from ..dialects.agent_side import HookOutput, agent_side, refuse_by_status
from ..live import registry
from ..model.errors import UserError
from ..transports import unix_socket
from .current_policy import CannotJudge
from .exchange import LONGEST_HEAD, Head, NotARequest, Request, read_head, read_request, write_failure, write_response

if TYPE_CHECKING:
    import socket

NAME: Final = "guard"
"""The socket's name, without `.sock`."""

_READ_SECONDS: Final = 30.0  # for a whole request: a client writes it at once
_PIECE: Final = 262_144  # bytes of one read, as the client writes
_MOST_HELD: Final = 128 * 1024 * 1024  # bytes of the documents that are judged at the same time: more of them wait
_MOST_DROPPED: Final = 1024 * 1024 * 1024  # bytes that are read of a request that is refused for its length
_FAILING_SECONDS: Final = 0.5  # for those who have started this guard: the next ones start another
_RETRY_SECONDS: Final = 1.0  # until somebody may connect again, if there are too few descriptors

Answer = Callable[[Request], Awaitable[HookOutput]]
"""Judges a request: what its agent reads. Raises CannotJudge."""


class AnotherRuns(Exception):
    """Another guard of this account listens already."""


class Guard:
    """The socket in a folder, from `__init__` to `close`."""

    def __init__(self, folder: str, report: Callable[[str], None]) -> None:
        """Listen. Raises AnotherRuns, UserError and OSError."""
        registry.prepare_folder(folder)
        self._folder = folder
        self._report = report
        self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AnotherRuns from None
            self._listener = registry.listen(folder, NAME)
        except BaseException:
            os.close(self._lock)
            raise
        self._connections = 0
        self._idle = anyio.Event()  # replaced with each connection
        self._memory = _Memory(_MOST_HELD)

    def close(self) -> None:
        """Stop listening. Whoever connects now starts another guard."""
        registry.remove(self._folder, NAME)
        self._listener.close()
        os.close(self._lock)

    async def fail(self, why: str) -> None:
        """Say to those who have connected already why nothing can be judged."""
        with anyio.move_on_after(_FAILING_SECONDS):
            while True:
                await anyio.wait_readable(self._listener)
                connection, _ = self._listener.accept()
                with connection:
                    connection.setblocking(False)
                    await _send(connection, write_failure(why))
                    await _drop(connection)

    async def serve(self, answer: Answer, idle_seconds: float) -> None:
        """Serve requests until none has come for `idle_seconds`, or it is cancelled: then nothing is left half done."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._accept, tasks, answer)
            while True:
                idle = self._idle
                with anyio.move_on_after(idle_seconds):
                    await idle.wait()
                    continue
                if not self._connections:
                    break
            tasks.cancel_scope.cancel()

    async def _accept(self, tasks: anyio.abc.TaskGroup, answer: Answer) -> None:
        def report(why: str) -> None:
            self._report(f"an agent cannot connect: {why}")

        async for connection in unix_socket.accepted(self._listener, _RETRY_SECONDS, report):
            self._used()
            tasks.start_soon(self._serve, connection, answer)

    def _used(self) -> None:
        idle, self._idle = self._idle, anyio.Event()
        idle.set()

    async def _serve(self, connection: socket.socket, answer: Answer) -> None:
        self._connections += 1
        try:
            if unix_socket.uid_of_peer(connection) != os.geteuid():  # not even root: its events are not this person's
                self._report(f"user {unix_socket.uid_of_peer(connection)} was turned away")
                return
            await self._answer(connection, answer)
        except (OSError, TimeoutError, EOFError):  # it has gone; its agent knows
            pass
        finally:
            connection.close()
            self._connections -= 1
            self._used()

    async def _answer(self, connection: socket.socket, answer: Answer) -> None:
        head: Head | None = None
        try:
            with anyio.fail_after(_READ_SECONDS):
                head, rest = await _read_head(connection)
                size = sum(head.lengths)
                await self._memory.take(size)
                try:
                    parts = await _read_parts(connection, rest, size)
                except BaseException:
                    self._memory.give_back(size)
                    raise
        except NotARequest as refused:
            await _send(connection, write_response(_refusal(refused.agent, str(refused))))
            with anyio.move_on_after(_READ_SECONDS):  # a client that still writes would read nothing
                await _drop(connection)
            return
        try:
            response = write_response(await _until_gone(connection, answer, read_request(head, parts)))
        except* CannotJudge as group:
            response = write_failure(str(group.exceptions[0]))
        finally:
            self._memory.give_back(size)
        await _send(connection, response)


def _refusal(agent: str, why: str) -> HookOutput:
    side = agent_side(agent)
    return (side.refuse if side else refuse_by_status)(f"error: the guard cannot judge this event: {why}")


class _Memory:
    """So many bytes may be held at the same time; further requests wait for theirs."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._changed = anyio.Event()

    async def take(self, size: int) -> None:
        while size > self._left:
            await self._changed.wait()
        self._left -= size

    def give_back(self, size: int) -> None:
        self._left += size
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


async def _read_head(connection: socket.socket) -> tuple[Head, bytearray]:
    """The first line, and what came after it. Raises NotARequest, EOFError, OSError."""
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


async def _until_gone(connection: socket.socket, answer: Answer, request: Request) -> HookOutput:
    """The answer; if the client goes before, the judging is cancelled, and ConnectionResetError raised."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await anyio.wait_readable(connection)  # there is nothing more to say: it has gone, or sends nonsense
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        output = await answer(request)
        tasks.cancel_scope.cancel()
        return output
    raise ConnectionResetError


def socket_of(folder: str) -> str:
    """The path at which the guard of this folder listens."""
    return str(Path(folder) / f"{NAME}.sock")


def folder_of(path: str) -> str:
    """The folder of this socket's path. Raises UserError for a path that a guard does not listen at."""
    if os.path.basename(path) != f"{NAME}.sock" or not os.path.isabs(path):
        raise UserError(f"--socket: {path!r} is not a path that ends in /{NAME}.sock", "hookproxy guard install")
    return os.path.dirname(path)
