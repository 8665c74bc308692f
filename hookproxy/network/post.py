"""One POST to an address of its own, such as a token endpoint: no redirects, and a connection only for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from . import address, connect
from .collected import CollectedResponse
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
        response = CollectedResponse(_MAX_BODY)
        proxy = address.find_proxy(place, environ)
        try:
            context = tls() if place.is_tls else None
            connection = await connect.connect(
                place, proxy, context, _NoPool(), _CONNECT_SECONDS, ca_hint=connect.CA_HINT
            )
        except ValueError as problem:
            raise ConnectionError(str(problem)) from None
        try:
            connection.request(_head(place, headers, len(body)), body, response)
            body = await response.body
            return response.status, body
        finally:
            connection.close()

    return post


def _head(place: address.Address, headers: Mapping[str, str], length: int) -> bytes:
    lines = [b"POST %b HTTP/1.1" % place.target, b"Host: %b" % place.host_header, b"Content-Length: %d" % length]
    lines += [b"%b: %b" % (name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return b"\r\n".join([*lines, b"Accept-Encoding: identity", b"Connection: close", b"", b""])


class _NoPool:
    """The Owner of a connection that is closed after its response."""

    def idle(self, connection: Connection) -> None:
        """As in Owner."""

    def closed(self, connection: Connection) -> None:
        """As in Owner."""

    def flow_changed(self) -> None:
        """As in Owner."""
