"""The channel to a remote server: does the I/O of `client` over a pool of connections. Lines go in, lines come out."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ...model.credentials import Credentials, NoCredentials, NotReady
from ...model.errors import printable
from ...network import connect
from ...network.address import Address, Proxy
from ...network.connection import Connection
from ...protocol import feedback
from ...protocol.fast_scan import ReadCall, request_id
from ..channel import HIGH_WATER, LOW_WATER, EndSignal, Passage
from ..lines import Lines
from .client import Client
from .cookies import Cookies
from .exchange import Exchange, Kind
from .messages import SUBSCRIBE

if TYPE_CHECKING:
    import ssl

_STREAM_LINGER: Final = 5.0  # seconds that a stream may stay open after its response: servers close it at once
_MESSAGE_SECONDS: Final = 30.0  # until a notification must be acknowledged: the ones after it wait, in their order
_ENDPOINT_SECONDS: Final = 30.0  # until a stream of HTTP+SSE must name the address for messages: all others wait for it
_SMALL_RESPONSE: Final = 1024 * 1024  # bytes: so much of each response may always be in memory
_LONGEST_WATCH: Final = 15.0  # seconds between two looks at silent exchanges: the error of a dead one may be so late
_MAX_HEADS: Final = 256  # heads of calls that are kept: one for each tool that is called, of about 400 bytes
_GET: Final = b"Accept: text/event-stream\r\nCache-Control: no-store\r\n"
_POST: Final = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"


class Remote(Struct, frozen=True):
    """A remote server, and how to reach it."""

    address: Address
    credentials: Credentials
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of each request, with their secret values."""
    proxy: Proxy | None = None
    tls: ssl.SSLContext | None = None
    connect_seconds: float = 10.0
    silence_seconds: float = 600.0
    """Seconds without a byte of a response after which a request is given up; 0: never."""
    max_connections: int = 256
    max_bytes: int = 64 * 1024 * 1024
    """The longest message, from either side."""


class _Transfer:
    """An exchange on its connection: passes what comes to the client."""

    __slots__ = ("_channel", "connection", "exchange", "linger_until")

    def __init__(self, channel: HttpChannel, exchange: Exchange) -> None:
        self._channel = channel
        self.exchange = exchange
        self.connection: Connection | None = None  # None: it waits for one
        self.linger_until = 0.0

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        """As in Handler."""
        if b"set-cookie" in headers:
            self._channel.note_cookies(self.exchange, headers[b"set-cookie"])
        self._channel.client.head(self.exchange, status, headers)

    def on_body(self, piece: bytes) -> None:
        """As in Handler."""
        self._channel.client.body(self.exchange, piece)
        if self.exchange.kept > _SMALL_RESPONSE or self._channel.stalled:
            self._channel.bound_memory()

    def on_complete(self) -> None:
        """As in Handler."""
        self._channel.transfer_ended(self)
        self._channel.client.complete(self.exchange)

    def takes_whole(self, size: int) -> bool:
        """As in Handler."""
        if self.exchange.call_id and 0 < size < self._channel.client.short_below:
            return True
        return self._channel.client.takes_whole(self.exchange, size)

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        """As in Handler."""
        channel = self._channel
        channel.transfer_ended(self)
        channel.client.whole(self.exchange, headers, body)

    def on_lost(self, why: str) -> None:
        """As in Handler."""
        self._channel.transfer_ended(self)
        origin = self._channel.remote.address.origin
        self._channel.client.lost(self.exchange, f"The connection to {origin} has failed: {why}")


class HttpChannel:
    """A Channel to a remote server."""

    reads_lines = False
    """As in Channel: a message is the body of a POST, whose length is said before it."""

    def __init__(self, remote: Remote, report: Callable[[str], None]) -> None:
        self.remote = remote
        self.client = Client(self, remote.max_bytes, remote.silence_seconds)
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._lines = Lines(remote.max_bytes, request_id)
        self._transfers: dict[Exchange, _Transfer] = {}
        self._waiting: deque[_Transfer] = deque()  # for a connection
        self._connections: set[Connection] = set()
        self._idle: list[Connection] = []
        self._connecting = 0
        self._is_away = False  # the last attempt to connect has failed, which is reported
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._paused = False
        self.stalled: set[Connection] = set()
        """Connections that are not read for now, because too much is in memory."""
        self._full = False
        self._closed = False
        self._waiting_bytes = 0
        address = remote.address
        own = {name.lower() for name, _ in remote.headers}
        agent = b"" if "user-agent" in own else b"User-Agent: hookproxy\r\n"
        self._fixed = b"Host: %b\r\nAccept-Encoding: identity\r\n%b%b" % (
            address.host_header,
            agent,
            b"".join(b"%b: %b\r\n" % (name.encode(), value.encode("latin-1")) for name, value in remote.headers),
        )
        self._heads: dict[bytes, bytes] = {}
        """Of calls, up to the length, by the header lines that depend on session and message."""
        self._heads_authorization: str | None = None
        self._cookies = None if "cookie" in own else Cookies(address.host, is_tls=address.is_tls)
        self._uses_credentials = "authorization" not in own and not isinstance(remote.credentials, NoCredentials)
        self._login_hint = "" if "authorization" in own else remote.credentials.hint
        self.is_substitute = False
        """As in Channel."""
        self.on_refused: Callable[[str, bytes, bytes], None] = lambda _why, _id, _line: None
        """As in Refuses."""
        self.ended = EndSignal()
        """Nothing more comes from the server."""
        self.find_passage: Callable[[bytes], Passage | None] = lambda _id: None
        """Where the long response to a request may go in pieces; None: it must come whole."""
        self.pass_response: Callable[[bytes, bytes], bool] = lambda _id, _line: False
        """As in TakesCalls."""

    # --- Channel ---

    def start(
        self,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_full: Callable[[bool], None],
        on_gone: Callable[[], None],
    ) -> None:
        """As in Channel. `on_gone` is never called: a server that cannot be reached now may be back later."""
        self.deliver, self._on_end, self._on_full = on_bytes, on_end, on_full

    def write(self, piece: bytes) -> None:
        """As in Channel."""
        if self._closed:
            return
        block = self._lines.feed(piece)
        for lost in self._lines.lost:
            why = feedback.message_too_long(lost.size, self.remote.max_bytes)
            self.on_refused(why, lost.id or b"null", b"")
            self.deliver(feedback.refused_message(lost.id or b"null", why, unreadable=False))
        self._lines.lost.clear()
        if block.find(b"\n") == len(block) - 1:
            if block:
                self.client.send_line(block)
        else:
            for line in block[:-1].split(b"\n"):
                self.client.send_line(line)

    def send_call(self, call: ReadCall) -> None:
        """As in TakesCalls."""
        if not self._closed:
            self.client.send_call(call)

    def pause(self) -> None:
        """As in Channel."""
        self._pause(True)

    def resume(self) -> None:
        """As in Channel."""
        self._pause(False)

    def _pause(self, paused: bool) -> None:
        self._paused = paused
        for connection in list(self._connections):
            connection.pause(paused)

    @property
    def gone(self) -> bool:
        """As in Channel."""
        return self._closed

    @property
    def queued(self) -> int:
        """As in Channel."""
        return self._waiting_bytes + sum(connection.unsent for connection in self._connections)

    def drain(self) -> None:
        """As in Channel. Nothing is kept back: what has come has been delivered."""

    async def flushed(self) -> None:
        """As in Channel. Requests are sent at once, or fail."""

    def end_output(self) -> None:
        """As in Channel. The session ends when everything is answered."""
        if line := self._lines.take():
            self.client.send_line(line)
        self.client.end()

    def close(self) -> None:
        """As in Channel."""
        if self._closed:
            return
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for timer in self._timers:
            timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
        for connection in list(self._connections):
            connection.close()
        self._set_full()
        self.ended.set()

    @property
    def is_ending(self) -> bool:
        """The session is being closed."""
        return self.client.is_ending

    def abandon(self) -> None:
        """End the session without waiting for responses."""
        self.client.abandon()

    # --- Wire ---

    deliver: Callable[[bytes], None]

    def open_passage(self, raw_id: bytes) -> Passage | None:
        """As in Wire. Whoever connects this channel with an agent's may say how."""
        return self.find_passage(raw_id)

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        """As in Wire."""
        if not self.pass_response(raw_id, line):
            self.deliver(line + b"\n")

    def deliver_failure(self, line: bytes) -> None:
        """As in Wire."""
        self.is_substitute = True
        try:
            self.deliver(line)
        finally:
            self.is_substitute = False

    def report(self, text: str) -> None:
        """As in Wire. What the server has sent may be in the text."""
        self._report(printable(text))

    def finished(self) -> None:
        """As in Wire."""
        if not self._closed:
            self.close()
            self._on_end()

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """As in Wire."""

        def call() -> None:
            self._timers.discard(timer)
            if not self._closed:
                callback()

        timer = self._loop.call_later(seconds, call)
        self._timers.add(timer)

    def same_origin_target(self, base: bytes, location: str) -> bytes | None:
        """As in Wire."""
        return self.remote.address.same_origin_target(base, location)

    def send(self, exchange: Exchange) -> None:
        """As in Wire."""
        if self._closed:
            return
        transfer = _Transfer(self, exchange)
        self._transfers[exchange] = transfer
        connection = self._take_idle()
        if connection is None:
            self._connect(transfer)
        else:
            self._send_on(connection, transfer)

    def close_exchange(self, exchange: Exchange) -> None:
        """Close the connection of an exchange, or forget the exchange."""
        transfer = self._transfers.pop(exchange, None)
        if transfer is None:
            return
        self._read_stalled()
        if transfer.connection is not None:
            transfer.connection.close()
        elif transfer in self._waiting:
            self._waiting.remove(transfer)
            self._waiting_bytes -= len(exchange.body)
            self._set_full()

    def authorize(self, exchange: Exchange, challenge: str) -> None:
        """As in Wire."""
        if not self._uses_credentials or exchange.authorized:
            self.client.not_authorized(exchange, self._login_hint)
            return
        self._spawn(self._authorize(exchange, challenge))

    async def _authorize(self, exchange: Exchange, challenge: str) -> None:
        credentials = self.remote.credentials
        used = exchange.used_authorization
        try:
            value = await credentials.refused(exchange.status, challenge, used)
        except (OSError, ValueError) as problem:
            self.client.not_authorized(exchange, f"{_sentence(str(problem))} {credentials.hint}".strip())
            return
        if value is None:
            self.client.not_authorized(exchange, credentials.hint)
        else:
            self.client.authorized(exchange)

    # --- connections ---

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
            connection.close()
        return None

    def _connect(self, transfer: _Transfer) -> None:
        if len(self._connections) + self._connecting >= self.remote.max_connections:
            self._waiting.append(transfer)
            self._waiting_bytes += len(transfer.exchange.body)
            self._set_full()
            return
        self._connecting += 1
        self._spawn(self._open_connection(transfer))

    async def _open_connection(self, transfer: _Transfer) -> None:
        remote, exchange = self.remote, transfer.exchange
        try:
            connection = await connect.connect(
                remote.address, remote.proxy, remote.tls, self, remote.connect_seconds, ca_hint=connect.CA_HINT
            )
        except (OSError, ValueError) as problem:
            self._connecting -= 1
            self._report_reached(_reason(problem))
            if self._transfers.get(exchange) is transfer:
                del self._transfers[exchange]
                why = f"hookproxy could not connect to {remote.address.origin}: {_reason(problem)}"
                self.client.lost(exchange, why)
            self._serve_waiting()
            return
        except BaseException:
            self._connecting -= 1
            raise
        self._connecting -= 1
        self._report_reached()
        self._connections.add(connection)
        if self._closed:
            connection.close()
            return
        if self._paused:
            connection.pause(True)
        if self._transfers.get(exchange) is transfer:
            self._send_on(connection, transfer)
        else:  # it was cancelled meanwhile
            self.idle(connection)

    def _report_reached(self, why_not: str = "") -> None:
        """Report that there is no connection, or one again: once, and not for each request."""
        if bool(why_not) == self._is_away or self._closed:
            return
        self._is_away = bool(why_not)
        origin = self.remote.address.origin
        self.report(f"cannot connect to {origin}: {why_not}" if why_not else f"{origin} can be reached again")

    def _send_on(self, connection: Connection, transfer: _Transfer) -> None:
        transfer.connection = connection
        if connection.is_closed:
            transfer.on_lost("it has closed the connection at once")
            return
        try:
            value = self.remote.credentials.value_now() if self._uses_credentials else None
        except NotReady:
            self._spawn(self._send_authorized(connection, transfer))
        else:
            self._write(connection, transfer, value)

    async def _send_authorized(self, connection: Connection, transfer: _Transfer) -> None:
        exchange = transfer.exchange
        try:
            value = await self.remote.credentials.value()
        except (OSError, ValueError) as problem:
            if self._transfers.pop(exchange, None) is transfer:
                why = f"The credentials for the server cannot be used: {problem}"
                self.idle(connection)
                self.client.lost(exchange, why.rstrip(". "))
            return
        if self._transfers.get(exchange) is transfer and not connection.is_closed:
            self._write(connection, transfer, value)
        elif self._transfers.get(exchange) is transfer:
            del self._transfers[exchange]
            self.send(exchange)
        elif not connection.is_closed:
            self.idle(connection)

    def _write(self, connection: Connection, transfer: _Transfer, authorization: str | None) -> None:
        exchange = transfer.exchange
        exchange.sent, exchange.used_authorization = True, authorization
        of_call = exchange.call_id and not self._cookies
        head = self._call_head(exchange, authorization) if of_call else self._head(exchange, authorization)
        connection.request(head, exchange.body, transfer)
        exchange.sent_at = connection.last_byte
        if self._watch is None:
            self._watch_later()

    def _head(self, exchange: Exchange, authorization: str | None) -> bytes:
        headers = self._fixed + self.client.headers(exchange)
        target = self.client.target(exchange, self.remote.address.target)
        if authorization is not None:
            headers += b"Authorization: %b\r\n" % authorization.encode("latin-1")
        if self._cookies:
            headers += self._cookies.header(target, time.time())
        if exchange.kind is Kind.DELETE:
            return b"DELETE %b HTTP/1.1\r\n%b\r\n" % (target, headers)
        if exchange.is_get:
            return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (target, _GET, headers)
        return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n" % (target, _POST, headers, len(exchange.body))

    def _call_head(self, exchange: Exchange, authorization: str | None) -> bytes:
        """As `_head` for a call that was read already: of the calls of one session or tool only the length differs."""
        own = self.client.call_headers(exchange)
        if own is None:
            return self._head(exchange, authorization)
        if authorization != self._heads_authorization or len(self._heads) > _MAX_HEADS:
            self._heads.clear()
            self._heads_authorization = authorization
        start = self._heads.get(own)
        if start is None:
            start = self._head(exchange, authorization).rpartition(b"Content-Length: ")[0]
            self._heads[own] = start
        return b"%bContent-Length: %d\r\n\r\n" % (start, len(exchange.body))

    def note_cookies(self, exchange: Exchange, lines: bytes) -> None:
        """Keep the cookies of a response; not if the command line gives one, which counts instead."""
        if self._cookies is not None:
            target = self.client.target(exchange, self.remote.address.target)
            for line in lines.split(b"\n"):
                self._cookies.note(line, target, time.time())

    def transfer_ended(self, transfer: _Transfer) -> None:
        """Its response is complete, or lost."""
        if self._transfers.get(transfer.exchange) is transfer:
            del self._transfers[transfer.exchange]
        if self.stalled:
            self._read_stalled()

    def bound_memory(self) -> None:
        """If unfinished responses take more than the longest message may, read only the one that has come furthest."""
        if sum(exchange.kept for exchange in self._transfers) <= self.remote.max_bytes:
            self._read_stalled()
            return
        furthest = max(self._transfers, key=lambda exchange: exchange.kept)
        for exchange, transfer in self._transfers.items():
            if exchange.kept > _SMALL_RESPONSE and exchange is not furthest and transfer.connection is not None:
                transfer.connection.pause(True)
                self.stalled.add(transfer.connection)
        connection = self._transfers[furthest].connection
        if connection in self.stalled:
            self.stalled.discard(connection)
            connection.pause(self._paused)

    def _read_stalled(self) -> None:
        """Read on: a response that was in memory is complete, or given up."""
        stalled, self.stalled = self.stalled, set()
        for connection in stalled:
            connection.pause(self._paused)

    def idle(self, connection: Connection) -> None:
        """As in Owner."""
        if self._closed:
            connection.close()
        elif self._waiting:
            transfer = self._next_waiting()
            self._send_on(connection, transfer)
        else:
            self._idle.append(connection)

    def closed(self, connection: Connection) -> None:
        """As in Owner."""
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._serve_waiting()

    def flow_changed(self) -> None:
        """As in Owner."""
        self._set_full()

    def _serve_waiting(self) -> None:
        while (
            self._waiting
            and not self._closed
            and len(self._connections) + self._connecting < self.remote.max_connections
        ):
            self._connecting += 1
            self._spawn(self._open_connection(self._next_waiting()))

    def _next_waiting(self) -> _Transfer:
        transfer = self._waiting.popleft()
        self._waiting_bytes -= len(transfer.exchange.body)
        self._set_full()
        return transfer

    def _set_full(self) -> None:
        """Stop reading from the agent while the server does not take what it has sent already."""
        queued = self.queued
        if not self._full and queued >= HIGH_WATER and not self._closed:
            self._full = True
            self._on_full(True)
        elif self._full and (queued <= LOW_WATER or self._closed):
            self._full = False
            self._on_full(False)

    # --- deadlines ---

    def _watch_later(self) -> None:
        silence = self.remote.silence_seconds
        wait = min(silence / 4, _LONGEST_WATCH) if silence else _LONGEST_WATCH
        self._watch = self._loop.call_later(min(wait, _STREAM_LINGER), self._look)

    def _look(self) -> None:
        """Give up what has been silent for too long, and close streams that have nothing more to bring."""
        self._watch = None
        now = self._loop.time()
        for exchange, transfer in list(self._transfers.items()):
            may_be_silent = exchange.kind is Kind.LISTEN or exchange.method == SUBSCRIBE
            if transfer.connection is None or may_be_silent:
                continue
            if exchange.kind is Kind.ENDPOINT and not self.client.awaits_old_endpoint:
                self._look_at_old_stream(transfer.connection, now)
            else:
                self._look_at(transfer, transfer.connection, now)
        for connection in [one for one in self._idle if not one.is_reusable]:
            connection.close()
        self._set_full()
        if (self._transfers or self._idle) and not self._closed:
            self._watch_later()

    def _look_at(self, transfer: _Transfer, connection: Connection, now: float) -> None:
        exchange = transfer.exchange
        if exchange.reader is not None and exchange.kind is Kind.REQUEST and not exchange.ids:
            transfer.linger_until = transfer.linger_until or now + _STREAM_LINGER
            if now >= transfer.linger_until:
                connection.close()
                transfer.on_complete()
        elif connection in self.stalled:
            connection.last_byte = now
        elif why := self._why_given_up(exchange, now - connection.last_byte, now - exchange.sent_at):
            connection.close()
            transfer.on_lost(why)

    def _look_at_old_stream(self, stream: Connection, now: float) -> None:
        """Give up requests whose responses would come in the stream of HTTP+SSE. The stream stays open for others."""
        if stream in self.stalled:
            stream.last_byte = now
        for exchange in self.client.awaited_in_old_stream():
            silent = now - max(stream.last_byte, exchange.sent_at)
            if exchange not in self._transfers and (why := self._why_given_up(exchange, silent, 0.0)):
                self.client.lost(exchange, f"The connection to {self.remote.address.origin} has failed: {why}")

    def _why_given_up(self, exchange: Exchange, silent: float, taken: float) -> str:
        """Why an exchange is given up, after `taken` seconds, of which the last `silent` ones brought no byte.

        Empty: it is not. What others wait for has a time that bytes do not prolong, so that a server which sends one
        now and then holds up nothing.
        """
        silence = self.remote.silence_seconds
        if self._paused:  # what has come is not read
            return ""
        if exchange.kind is Kind.MESSAGE and taken > _MESSAGE_SECONDS:
            return f"it was not acknowledged within {_MESSAGE_SECONDS:g} seconds"
        if exchange.kind is Kind.ENDPOINT and taken > _ENDPOINT_SECONDS:
            return f"its stream has named no address for messages within {_ENDPOINT_SECONDS:g} seconds"
        if silence and silent > silence:
            return f"no byte of its response has come for {silence:g} seconds (silence_seconds)"
        return ""

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _reason(problem: Exception) -> str:
    """Why there is no connection, in a few words."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return str(problem).partition("\n")[0] or type(problem).__name__


def _sentence(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."
