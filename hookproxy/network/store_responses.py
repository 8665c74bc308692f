"""Reads what a Valkey or Redis server responds (RESP 2), within bounds: it is a parser of the package `redis`.

Law: whatever is at the other end, the responses to one batch of commands take no more than `MOST_BYTES` and
`MOST_VALUES`, and nothing runs for long without a pause. What is not a response raises an error, and the connection is
closed by whoever reads it: nobody could find the beginning of the next response.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES: Final = 32 * 1024 * 1024
"""Of the responses to one batch: 256 sessions may each have a thousand approvals in it, of some hundred bytes."""

MOST_VALUES: Final = 131_072
"""In the responses to one batch: more than the tokens that a company revokes in ten years. Each takes 100 bytes."""

_DEEPEST: Final = 4  # arrays within arrays: scripts and commands have two
_LONGEST_NUMBER: Final = 20  # digits with a sign, of 64 bits
_PAUSE_AFTER: Final = 1024  # values, which take about two milliseconds: then others have their turn
_NOTHING: Final = -1  # as a length
_CLOSED: Final = "it has closed the connection"
_FOREIGN: Final = "it does not speak the protocol of Valkey and Redis"
_LONG: Final = "its response is too long"


class NotAResponse(Exception):
    """What has come is not a response, or too much of one. The text says why, without a full stop."""


class Bounds(Struct):
    """What the responses to the commands of this batch may still take."""

    bytes_left: int = MOST_BYTES
    values_left: int = MOST_VALUES

    def begin(self) -> None:
        """Another batch is sent."""
        self.bytes_left, self.values_left = MOST_BYTES, MOST_VALUES

    def take(self, size: int) -> None:
        """One more line or text of this size comes. Raises NotAResponse."""
        self.bytes_left -= size
        self.values_left -= 1
        if self.bytes_left < 0 or self.values_left < 0:
            raise NotAResponse(_LONG)


class Connection(Protocol):
    """The connection of the package, as far as its parsers use it."""

    _reader: StreamReader | None


class ResponseParser:
    """As `redis.asyncio.connection` wants it. Responses are bytes, numbers, None, lists of these, and errors."""

    def __init__(self, bounds: Bounds, error: Callable[[str], Exception], socket_read_size: int = 0) -> None:
        """`error` makes the exception that stands for an error of the server. `socket_read_size` is not needed."""
        self._bounds = bounds
        self._error = error
        self._stream: StreamReader | None = None

    def on_connect(self, connection: Connection) -> None:
        """Read from this connection."""
        self._stream = connection._reader  # as all parsers of the package do

    def on_disconnect(self) -> None:
        """Read nothing more."""
        self._stream = None

    async def can_read(self) -> bool:
        """True where nothing was asked and something is there, or the connection has ended: it is not used again."""
        stream = self._open_stream()
        try:
            async with asyncio.timeout(0):
                await stream.read(1)
        except TimeoutError:
            return False
        return True

    can_read_destructive = can_read  # its name before version 8

    async def read_response(self, *, disable_decoding: bool = False) -> object:
        """The next response. Raises NotAResponse, also where none comes."""
        return await self._read(_DEEPEST)

    async def _read(self, depth: int) -> object:
        line = await self._read_line()
        kind, text = line[:1], line[1:-2]
        if kind == b"+":
            return text
        if kind == b"-":
            return self._error(text.decode(errors="replace"))
        number = _number(text)
        if kind == b":":
            return number
        if kind not in b"$*" or number < _NOTHING:
            raise NotAResponse(_FOREIGN)
        if number == _NOTHING:
            return None
        if kind == b"$":
            return await self._read_bytes(number)
        if not depth or number > self._bounds.values_left:
            raise NotAResponse(_LONG)
        return [await self._read(depth - 1) for _ in range(number)]

    async def _read_line(self) -> bytes:
        try:
            line = await self._open_stream().readuntil(b"\r\n")
        except asyncio.IncompleteReadError:
            raise NotAResponse(_CLOSED) from None
        except asyncio.LimitOverrunError:  # the stream's own, of 64 KiB
            raise NotAResponse(_LONG) from None
        self._bounds.take(len(line))
        if not self._bounds.values_left % _PAUSE_AFTER:
            await asyncio.sleep(0)
        return line

    async def _read_bytes(self, size: int) -> bytes:
        self._bounds.take(size)
        try:
            found = await self._open_stream().readexactly(size + 2)
        except asyncio.IncompleteReadError:
            raise NotAResponse(_CLOSED) from None
        if not found.endswith(b"\r\n"):
            raise NotAResponse(_FOREIGN)
        return found[:-2]

    def _open_stream(self) -> StreamReader:
        if self._stream is None:
            raise OSError(_CLOSED)
        return self._stream


def parser_class(bounds: Bounds, error: Callable[[str], Exception]) -> Callable[..., ResponseParser]:
    """What makes the parser of a connection."""
    return partial(ResponseParser, bounds, error)


def _number(text: bytes) -> int:
    """Raises NotAResponse."""
    if not text.removeprefix(b"-").isdigit() or len(text) > _LONGEST_NUMBER:
        raise NotAResponse(_FOREIGN)
    return int(text)
