"""Runs a hook that is a web service: posts the document; the body of a 2xx response is the hook's output.

Idle connections are kept and used again. Nothing is sent to a host that the configuration does not name: redirects are
not followed, proxies of the environment are not used (the document may hold secrets, and whoever sets HTTPS_PROXY may
not have written the hook), cookies are not kept and .netrc is not read. TLS is verified against the system's
certificates, or SSL_CERT_FILE.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

import h11

from ..dialects.shared.handler_types import HEADER_VARIABLE
from ..model.errors import ConfigError
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes.process import output_limit
from .event_watch import TimeLimit, get_watch
from .runner import HookFailed, OutputTooLong, Report, StatefulRunner

_SECOND_ADDRESS_DELAY: Final = 0.25  # seconds until a host's second address is tried beside the first (RFC 8305)
_LONGEST_HEAD: Final = 100 * 1024  # bytes of a response before its body: a usual limit
_IDLE_LIMIT: Final = 60.0  # seconds that an idle connection is kept; before its use it is checked
_MOST_IDLE: Final = 20  # idle connections that are kept for one hook: as many as calls are often in flight
_CONNECT_SHARE: Final = 0.4  # share of the hook's timeout for the connection and its handshake
_LONGEST_CONNECT: Final = 10.0  # seconds
_TRACE_VARIABLES: Final = ("TRACEPARENT", "TRACESTATE")
"""Variables that carry a call's trace context to commands. Here they become headers of the same names."""

_OWN_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # a decompressed body would have no limit
    "User-Agent": "hookproxy",
}
_CONNECTION_ERRORS: Final = (OSError, UnicodeError, h11.ProtocolError)
"""Failures of the network, of TLS, an impossible host name, invalid HTTP."""


def open_runner(hooks: list[HookSpec], _report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. The first document opens the first connection."""
    addresses = [_address(spec) for spec in hooks]
    tls = _tls_context() if any(one.scheme == "https" for one in addresses) else None  # making it takes 20 ms
    endpoints = {id(spec): _Endpoint(spec, one, tls) for spec, one in zip(hooks, addresses, strict=True)}

    async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ended, body, detail, cut = Ended.FAILED, b"", "", False
        try:
            with TimeLimit(get_watch(loop), spec.timeout):
                body = await endpoints[id(spec)].post(document, env)
            ended = Ended.EXITED
        except TimeoutError:
            ended = Ended.TIMED_OUT
        except HookFailed as error:
            detail, cut = str(error), isinstance(error, OutputTooLong)
        except _CONNECTION_ERRORS as error:
            detail = f"could not be called: {_error_text(error)}"
        return HookResult(ended, stdout=body, ms=(loop.time() - begun) * 1000, cut=cut, detail=detail)

    async def aclose() -> None:
        for endpoint in endpoints.values():
            endpoint.close()
        await asyncio.sleep(0)  # the event loop closes them now

    return StatefulRunner(run, aclose)


def _tls_context() -> ssl.SSLContext:
    tls = ssl.create_default_context()
    tls.set_alpn_protocols(["http/1.1"])
    return tls


class _Endpoint:
    """The URL to which a hook's documents are posted, with the idle connections to it."""

    def __init__(self, spec: HookSpec, address: SplitResult, tls: ssl.SSLContext | None) -> None:
        self._spec = spec
        self._address = address
        self._target = f"{address.path or '/'}{f'?{address.query}' if address.query else ''}"
        self._tls_context = tls if address.scheme == "https" else None
        self._port = address.port or (443 if self._tls_context else 80)
        self._connect_timeout = min(spec.timeout * _CONNECT_SHARE, _LONGEST_CONNECT)
        self._idle: list[Connection] = []
        self._env: Mapping[str, str] | None = None
        self._headers: list[tuple[str, str]] = []

    async def post(self, document: Document, env: Mapping[str, str]) -> bytes:
        """Post the document, and return the response's body. Raises HookFailed and _CONNECTION_ERRORS."""
        if self._env is not env:  # nearly never: all hooks of a dialect inherit the same
            headers = {"Host": self._address.netloc, **_headers(self._spec, env)}
            self._headers, self._env = list(headers.items()), env
        length = ("Content-Length", str(len(document.stdin)))
        trace = [(name, value) for name in _TRACE_VARIABLES if (value := document.env.get(name))]
        request = h11.Request(method="POST", target=self._target, headers=[*self._headers, *trace, length])
        connection = self._take_idle() or await self._connect()
        try:
            return await _response_body(connection, request, bytes(document.stdin))
        finally:
            if len(self._idle) < _MOST_IDLE and connection.make_idle():
                self._idle.append(connection)
            else:
                connection.close()

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable(_IDLE_LIMIT):
                return connection
            connection.close()
        return None

    async def _connect(self) -> Connection:
        return await connect(self._address.hostname or "", self._port, self._tls_context, self._connect_timeout)

    def close(self) -> None:
        """Close all idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def _address(spec: HookSpec) -> SplitResult:
    """The URL's parts as they are used, checked again as the configuration was. Raises ConfigError."""
    address = urlsplit(spec.url)
    host = address.hostname or ""
    if not host or "@" in address.netloc or address.scheme not in ("https", "http"):
        raise ConfigError(spec.source, f"{spec.url!r} cannot be the URL of a hook", 'write "https://host/path"')
    return address


def _headers(spec: HookSpec, env: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of their variables. Raises HookFailed for a variable that cannot be sent."""
    headers = dict(_OWN_HEADERS)
    for name, written in spec.headers:
        for found in HEADER_VARIABLE.finditer(written):
            variable = found[1] or found[2]
            value = env.get(variable, "")
            if not value or not value.isascii() or not value.isprintable():
                why = "has a value that a header cannot contain" if value else "is not set"
                raise HookFailed(f"cannot be called: the variable {variable}, which its header {name} needs, {why}")
        value = HEADER_VARIABLE.sub(lambda found: env[found[1] or found[2]], written)
        for same in [one for one in headers if one.lower() == name.lower()]:
            del headers[same]
        headers[name] = value
    return headers


async def _response_body(connection: Connection, request: h11.Request, document: bytes) -> bytes:
    """The body of a valid response. Raises HookFailed for any other, which is not read to its end."""
    response = await connection.send(request, document)
    if not 200 <= response.status_code < 300:
        redirects = ", and redirects are not followed" if 300 <= response.status_code < 400 else ""
        raise HookFailed(f"answered with status {response.status_code}{redirects}")
    headers = {name: value.lower() for name, value in response.headers}
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise HookFailed("answered with a compressed body, which was not requested")
    if headers.get(b"content-type", b"").startswith(b"text/html"):
        raise HookFailed("answered with an HTML page: check that the URL is the hook's")
    limit = output_limit(len(document))
    body = await connection.body(limit)
    if body is None:
        raise OutputTooLong(f"answered with more than {limit} bytes")
    return body


def _error_text(error: Exception) -> str:
    """The first line of the innermost error, which is usually the most exact."""
    deepest: BaseException = error
    while (cause := deepest.__cause__ or deepest.__context__) is not None:
        deepest = cause
    return str(deepest).partition("\n")[0] or str(error) or type(deepest).__name__


# --- connections ---


async def connect(host: str, port: int, tls: ssl.SSLContext | None, seconds: float) -> Connection:
    """Open a connection within so many seconds, with TLS if `tls` is given.

    Raises OSError (ssl.SSLError is one), and UnicodeError for an impossible host name; nothing is left open then.
    """
    loop = asyncio.get_running_loop()
    try:
        with TimeLimit(get_watch(loop), seconds):
            _, connection = await loop.create_connection(
                Connection, host, port, ssl=tls, happy_eyeballs_delay=_SECOND_ADDRESS_DELAY
            )
    except TimeoutError:
        raise ConnectionError(f"there was no connection within {seconds:g} s") from None
    return connection


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection, for one request after another as long as both sides keep it open."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._received: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._in_request = False
        self._closed = False
        self._error: Exception | None = None
        self._idle_since = 0.0

    async def send(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send the request, and return the head of the response.

        Raises h11.ProtocolError for invalid HTTP, and ConnectionError for an incomplete response.
        """
        self._in_request = True
        events = (request, h11.Data(body), h11.EndOfMessage())
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event

    async def body(self, limit: int) -> bytes | None:
        """The response's body; None if it has more bytes than `limit`, and is not read to its end. Raises as `send`."""
        pieces, size = [], 0
        while not isinstance(event := await self._next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                size += len(event.data)
                if size > limit:
                    return None
                pieces.append(event.data)
        return b"".join(pieces)

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if not self._received and not self._closed:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            if self._error is not None and not self._received:  # also for a response that ends with its connection
                raise ConnectionError("the connection broke before the response was complete") from self._error
            self._http.receive_data(b"".join(self._received))  # no bytes: the connection is closed
            self._received.clear()
        if isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise ConnectionError("the connection was closed before the response")
        return event

    def make_idle(self) -> bool:
        """True, and ready for another request, if the last response is complete and nothing came after it."""
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not done or self._received or self._closed or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        self._in_request = False
        self._idle_since = asyncio.get_running_loop().time()
        return True

    def is_reusable(self, idle_limit: float) -> bool:
        """True if it was idle for at most so many seconds, and the other side neither closed it nor sent anything."""
        idle = asyncio.get_running_loop().time() - self._idle_since
        return not self._closed and idle <= idle_limit and not self._is_readable()

    def close(self) -> None:
        """Close it at once; the event loop does the rest."""
        self._closed = True
        self._transport.abort()

    def _is_readable(self) -> bool:
        """True if there is something that the event loop has not read yet: the end, or unexpected bytes."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    # --- callbacks of asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As documented."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """As documented."""
        if self._in_request:
            self._received.append(data)
            self._wake()
        else:
            self.close()

    def eof_received(self) -> None:
        """As documented."""
        self._closed = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """As documented."""
        self._closed, self._error = True, exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
