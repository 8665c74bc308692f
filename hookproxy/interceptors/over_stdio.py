"""Serves one host over standard input and output: a message a line, several at a time, until the host has gone.

Law 1: a line that is longer than a message may be is refused, and never judged in part.
"""

from __future__ import annotations

from typing import Final

import anyio
import anyio.abc

from ..jsonrpc import raw_json
from ..transports.pipe import open_channel
from .service import Service

_MOST_RUNNING: Final = 128  # messages that are judged at a time: as many hooks run at most
_TOO_LONG: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"this message is too long"}}\n'


async def serve(service: Service, source: int, sink: int, longest: int) -> None:
    """Respond on `sink` to what comes from `source`; both are closed then. `longest` in bytes, of a message.

    Returns when the host has closed its side and has all responses; when it reads no more, hooks are ended.
    """
    async with anyio.create_task_group() as tasks:
        host = _Host(service, source, sink, longest, tasks)
        try:
            await host.wait()
        finally:
            host.close()
            tasks.cancel_scope.cancel()


class _Host:
    """The connection to the host, and the requests without a response yet."""

    def __init__(self, service: Service, source: int, sink: int, longest: int, tasks: anyio.abc.TaskGroup) -> None:
        self._service = service
        self._longest = longest
        self._tasks = tasks
        self._begun = bytearray()  # the line that is not complete
        self._skips = False  # the rest of a line that is too long
        self._running = 0
        self._full = self._ended = self._gone = False
        self._changed = anyio.Event()
        self._channel = open_channel(source, sink)
        self._channel.start(self._take_bytes, self._on_end, self._pause_while, self._on_gone)

    async def wait(self) -> None:
        """Wait until there is nothing more to do."""
        while not (self._gone or (self._ended and not self._running)):
            await self._changed.wait()
        if not self._gone:
            await self._channel.flushed()

    def close(self) -> None:
        """Close both sides."""
        self._gone = True
        self._channel.close()

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def _on_end(self) -> None:
        self._ended = True
        self._wake()

    def _on_gone(self) -> None:
        self._gone = True
        self._wake()

    def _pause_while(self, full: bool) -> None:
        self._full = full
        self._pace()

    def _pace(self) -> None:
        """Read while the host reads, and not too much is judged."""
        if self._gone:
            return
        if self._full or self._running >= _MOST_RUNNING:
            self._channel.pause()
        else:
            self._channel.resume()

    def _take_bytes(self, piece: bytes) -> None:
        self._begun += piece
        if b"\n" in piece:
            *lines, rest = bytes(self._begun).split(b"\n")
            self._begun[:] = rest
            for line in lines:
                self._take_line(line)
        if self._skips or len(self._begun) > self._longest:
            if not self._skips:
                self._channel.write(_TOO_LONG)
            self._skips = True
            self._begun.clear()
        self._pace()

    def _take_line(self, line: bytes) -> None:
        if self._skips:
            self._skips = False
        elif len(line) > self._longest:
            self._channel.write(_TOO_LONG)
        elif line.strip():
            self._running += 1
            self._tasks.start_soon(self._respond, line)

    async def _respond(self, line: bytes) -> None:
        try:
            response = await self._service.respond(line)
            if response is not None and not self._gone:
                self._channel.write(raw_json.one_line(response) + b"\n")
        finally:
            self._running -= 1
            self._pace()
            self._wake()
