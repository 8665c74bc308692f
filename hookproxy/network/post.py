"""Responses that are needed whole, and one POST to an address of its own, such as a token endpoint."""

# ruff: noqa: D102  # methods without a docstring are described by Handler
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from . import address, connect
from .connection import Connection

if TYPE_CHECKING:
    import ssl

_CONNECT_SECONDS: Final = 10.0  # the caller's own deadline is for all of it
_MAX_BODY: Final = 1_048_576  # bytes of a response: tokens have a few thousand


class ResponseTooLong(ConnectionError):
    """The response has more bytes than may be."""


def _accept(_status: int, _headers: dict[bytes, bytes]) -> None:
    """Every head is as good as another."""


class CollectedResponse:
    """The Handler of one response. `check_head` raises for a response that is refused: its rest is not collected."""

    def __init__(self, limit: int, check_head: Callable[[int, dict[bytes, bytes]], None] = _accept) -> None:
        self.body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """All of it; or what `check_head` has raised, ResponseTooLong, or ConnectionError."""
        self.status = 0
        self.has_ended = False
        """The connection is free for another request, or closed."""
        self._limit = limit
        self._check_head = check_head
        self._pieces: list[bytes] = []
        self._size = 0

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self.status = status
        try:
            self._check_head(status, headers)
        except Exception as refused:  # whoever waits for the body gets it
            self._fail(refused)

    def on_body(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._fail(ResponseTooLong("the response is too long"))
        elif not self.body.done():
            self._pieces.append(piece)

    def on_complete(self) -> None:
        self.has_ended = True
        if not self.body.done():
            self.body.set_result(b"".join(self._pieces))

    def takes_whole(self, size: int) -> bool:
        """Its head has been checked, since it is that of an earlier response."""
        return size <= self._limit

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        self.status, self.has_ended = 200, True
        if not self.body.done():
            self.body.set_result(body)

    def on_lost(self, why: str) -> None:
        self.has_ended = True
        self._fail(ConnectionError(why))

    def _fail(self, error: Exception) -> None:
        if not self.body.done():
            self.body.set_exception(error)


def poster(
    environ: Mapping[str, str], tls: Callable[[], ssl.SSLContext]
) -> Callable[[str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]:
    """Return a function that sends a POST and returns status and body.

    It follows no redirects, and raises OSError, also if the response is longer than 1 MiB. On cancel, the connection is
    closed, which is for this request alone. `tls` makes the settings for https when they are needed, because reading
    all certificates takes 50 ms.
    """

    async def post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        place = address.parse(url)
        response = CollectedResponse(_MAX_BODY)
        body = await send_alone(place, request_head(b"POST", place, headers, body), response, environ, tls)
        return response.status, body

    return post


async def send_alone(
    place: address.Address,
    request: bytes,
    response: CollectedResponse,
    environ: Mapping[str, str],
    tls: Callable[[], ssl.SSLContext],
) -> bytes:
    """Send a whole request over a connection of its own, and return the body of the response. As `poster`."""
    proxy = address.find_proxy(place, environ)
    try:
        context = tls() if place.is_tls else None
        connection = await connect.connect(place, proxy, context, _NoPool(), _CONNECT_SECONDS, ca_hint=connect.CA_HINT)
    except ValueError as problem:
        raise ConnectionError(str(problem)) from None
    try:
        connection.request(request, b"", response)
        return await response.body
    finally:
        connection.close()


def request_head(method: bytes, place: address.Address, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
    """The request, which closes its connection, with its body if it has one."""
    lines = [b"%b %b HTTP/1.1" % (method, place.target), b"Host: %b" % place.host_header]
    lines += [] if body is None else [b"Content-Length: %d" % len(body)]
    lines += [b"%b: %b" % (name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return b"\r\n".join([*lines, b"Accept-Encoding: identity", b"Connection: close", b"", body or b""])


class _NoPool:
    """The Owner of a connection that is closed after its response."""

    def idle(self, connection: Connection) -> None:
        """Nothing is done."""

    def closed(self, connection: Connection) -> None:
        """Nothing is done."""

    def flow_changed(self) -> None:
        """Nothing is done."""
