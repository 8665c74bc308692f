"""One connection to a web service: bytes by the event loop itself, HTTP/1.1 by `h11`.

A whole HTTP library spends more on a small request than all else takes: it sends two packets instead of one, and at
each step sets a timer and changes what is waited for.

Law: an answer is to the one request before it. What a service sends while nobody has asked, or after its answer, ends
the connection; it can be no later request's answer.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Final

import h11

if TYPE_CHECKING:
    import ssl

_SECOND_ADDRESS: Final = 0.25  # seconds until a host's second address is tried beside the first (RFC 8305)
_LONGEST_HEAD: Final = 100 * 1024  # bytes of an answer before its body: what other programs take, too


async def connect(host: str, port: int, context: ssl.SSLContext | None, seconds: float) -> Connection:
    """A new connection, under TLS if there is a `context`, made in so many seconds.

    Raises OSError, of which ssl.SSLError is one, and UnicodeError for a name that none can have: nothing is left then.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, connection = await loop.create_connection(
                Connection, host, port, ssl=context, happy_eyeballs_delay=_SECOND_ADDRESS
            )
    except TimeoutError:
        raise ConnectionError(f"there was no connection within {seconds:g} s") from None
    return connection


class Connection(asyncio.Protocol):
    """Serves one request after another, as long as both sides want."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._received: list[bytes] = []
        self._reader: asyncio.Future[None] | None = None
        self._asked = False
        self._over = False
        self._broken: Exception | None = None
        self._rests_since = 0.0

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send the request, and give the head of its answer.

        Raises h11.ProtocolError for what is no HTTP, and ConnectionError where there is no whole answer.
        """
        self._asked = True
        events = (request, h11.Data(body), h11.EndOfMessage())
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event

    async def body(self, most: int) -> bytes | None:
        """The answer's body; None: it has more bytes than `most`, and is not read to its end. Else as `ask`."""
        pieces, size = [], 0
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                size += len(event.data)
                if size > most:
                    return None
                pieces.append(event.data)
        return b"".join(pieces)

    async def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if not self._received and not self._over:
                self._reader = asyncio.get_running_loop().create_future()
                await self._reader
            if self._broken is not None and not self._received:  # no end of an answer that ends with its connection
                raise ConnectionError("the connection broke before the answer was whole") from self._broken
            self._http.receive_data(b"".join(self._received))  # nothing: it is over
            self._received.clear()
        if isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise ConnectionError("the connection ended before the answer")
        return event

    def rests(self) -> bool:
        """True if it can take another request: the last one is answered, and nothing more was said."""
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not done or self._received or self._over or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        self._asked = False
        self._rests_since = asyncio.get_running_loop().time()
        return True

    def is_fit(self, longest: float) -> bool:
        """After its rest, of at most so many seconds, it can be used: the other side has not ended it meanwhile."""
        rested = asyncio.get_running_loop().time() - self._rests_since
        return not self._over and rested <= longest and not self._is_readable()

    def close(self) -> None:
        """Close it at once; the loop does the rest."""
        self._over = True
        self._transport.abort()

    def _is_readable(self) -> bool:
        """There is something that the loop has not told yet: the end, or what nobody asked for."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    # --- what asyncio tells ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As documented."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """As documented."""
        if self._asked:
            self._received.append(data)
            self._tell()
        else:
            self.close()

    def eof_received(self) -> None:
        """As documented."""
        self._over = True
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """As documented."""
        self._over, self._broken = True, exc
        self._tell()

    def _tell(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
