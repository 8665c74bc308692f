"""Long messages of agents: a process of its own looks at each first, so that none of them holds up the event loop.

Law: it only refuses. A message that passes is judged as all others are, from its own bytes (law 1). If the process
ends, or takes too long, the message that it has is refused, and another process is started for the next one.

Users take turns: whoever sends many long messages waits for himself.
"""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import anyio

from ..processes.helper import start_helper
from .long_message_process import ANSWER, HEADER

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

_SECONDS: Final = 20.0
"""That a message may take: the worst of 64 MB takes ten where two processes want each processor."""

_PIECE: Final = 64 * 1024  # bytes that are sent together: to copy more takes longer than a short call
_MODULE: Final = "hookproxy.transports.long_message_process"


class _Helper:
    """The process."""

    def __init__(self) -> None:
        self.process, self.socket = start_helper(_MODULE)

    async def ask(self, pieces: Sequence[bytes], max_depth: int) -> str:
        """What it says of a message. Raises OSError if it has ended."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.socket, HEADER.pack(max_depth, sum(map(len, pieces))))
        for piece in pieces:
            view = memoryview(piece)
            for at in range(0, len(piece), _PIECE):
                await loop.sock_sendall(self.socket, view[at : at + _PIECE])
                await asyncio.sleep(0)  # others have their turn
        (size,) = ANSWER.unpack(await _received(self.socket, ANSWER.size))
        return (await _received(self.socket, size)).decode()

    def end(self) -> None:
        """It may be in the middle of a message."""
        self.socket.close()
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1)  # it is dead: this only takes its status


async def _received(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = await asyncio.get_running_loop().sock_recv(connection, size - len(received))
        if not piece:
            raise ConnectionResetError("the process has ended")
        received += piece
    return received


class LongMessages:
    """Says of long messages whether they may be read."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._helper: _Helper | None = None
        self._turn = anyio.Lock()  # its queue is in order
        self._turns = WeakValueDictionary[str, anyio.Lock]()  # of each user, who waits in the queue once at most

    async def why_refused(self, user: str, pieces: Sequence[bytes], max_depth: int) -> str:
        """Why nobody may read this message, in a sentence without a full stop; empty: it may be read.

        It comes in pieces, because to put eight megabytes together takes as long as many calls.
        """
        turn = self._turns.get(user)
        if turn is None:
            turn = self._turns[user] = anyio.Lock()
        async with turn, self._turn:
            try:
                return await self._ask(pieces, max_depth)
            except (OSError, TimeoutError) as problem:
                why = str(problem) or "it took too long"
                self._report(f"a message of {sum(map(len, pieces))} bytes could not be read: {why}")
                return "It could not be read in time"

    async def _ask(self, pieces: Sequence[bytes], max_depth: int) -> str:
        try:
            if self._helper is None:
                self._helper = _Helper()
            async with asyncio.timeout(_SECONDS):
                return await self._helper.ask(pieces, max_depth)
        except BaseException:  # what it would say next might be about this message
            self.close()
            raise

    def close(self) -> None:
        """End the process, if there is one."""
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.end()
