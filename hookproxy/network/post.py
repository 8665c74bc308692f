"""One POST to an address of its own, such as a token endpoint: no redirects, and a connection only for it."""

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


def poster(
    environ: Mapping[str, str], tls: Callable[[], ssl.SSLContext]
) -> Callable[[str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]:
    """Return a function that sends a POST and returns status and body.

    It raises OSError, also if the response is longer than 1 MiB. On cancel, the connection is closed. `tls` makes the
    settings for https when they are needed, because reading all certificates takes 50 ms.
    """

    async def post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        place = address.parse(url)
        response = _Response()
        proxy = address.find_proxy(place, environ)
        try:
            context = tls() if place.is_tls else None
            connection = await connect.connect(
                place, proxy, context, response, _CONNECT_SECONDS, ca_hint=connect.CA_HINT
            )
        except ValueError as problem:
            raise ConnectionError(str(problem)) from None
        try:
            connection.request(_head(place, headers, len(body)), body, response)
            return await response.ended
        finally:
            connection.close()

    return post


def _head(place: address.Address, headers: Mapping[str, str], length: int) -> bytes:
    lines = [b"POST %b HTTP/1.1" % place.target, b"Host: %b" % place.host_header, b"Content-Length: %d" % length]
    lines += [b"%b: %b" % (name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return b"\r\n".join([*lines, b"Accept-Encoding: identity", b"Connection: close", b"", b""])


class _Response:
    """Collects a response. It is also the owner of its connection, and does nothing with that."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._body = b""

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        """As in Handler."""
        self._status = status

    def on_body(self, piece: bytes) -> None:
        """As in Handler."""
        self._body += piece
        if len(self._body) > _MAX_BODY:
            self.on_lost("the response is too long")

    def on_complete(self) -> None:
        """As in Handler."""
        if not self.ended.done():
            self.ended.set_result((self._status, self._body))

    def takes_whole(self, size: int) -> bool:
        """As in Handler: each connection has one response, so none has the head of an earlier one."""
        return False

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        """As in Handler."""
        raise AssertionError("a response came whole that must come in parts")

    def on_lost(self, why: str) -> None:
        """As in Handler."""
        if not self.ended.done():
            self.ended.set_exception(ConnectionError(why))

    def idle(self, connection: Connection) -> None:
        """As in Owner."""

    def closed(self, connection: Connection) -> None:
        """As in Owner."""

    def flow_changed(self) -> None:
        """As in Owner."""
