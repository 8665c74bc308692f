"""Runs a hook that is a web service: the document is posted, and what comes back with 2xx is the answer.

Connections are kept. Nothing is sent to whom the configuration does not name: no redirect is followed, no proxy of the
environment is used (the document may hold secrets, and who sets HTTPS_PROXY need not be who wrote the hook), no
cookie is kept and no .netrc read. TLS is verified against the system's certificates, or SSL_CERT_FILE.
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
from ..processes.process import OUTPUT_LIMIT
from .event_watch import Limit, watch_of
from .runner import Kept, NoAnswer, Say

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
        task_request = select.poll()
        task_request.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(task_request.poll(0))

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


_IDLE: Final = 60.0  # seconds that a connection is kept: whether the other side has closed it is seen before its use
_RESTING: Final = 20  # connections that are kept for one address: as many as calls are often in flight
_CONNECTING: Final = 0.4  # of the timeout, for a connection and its handshake
_LONGEST_CONNECTING: Final = 10.0  # seconds
_TRACE: Final = ("TRACEPARENT", "TRACESTATE")
"""Variables by which commands go on with a call's trace: here, headers of the same names."""

_OURS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is unpacked has no limit
    "User-Agent": "hookproxy",
}
_PROBLEMS: Final = (OSError, UnicodeError, h11.ProtocolError)
"""What goes wrong outside: with the network, TLS, a name that none can have, an answer that is no HTTP."""


def keep(hooks: list[HookSpec], _say: Say) -> Kept:
    """As `base.Keep`. Connects when the first document is to be posted."""
    addresses = [_address(spec) for spec in hooks]
    context = _context() if any(one.scheme == "https" for one in addresses) else None  # it takes 20 ms to make
    services = {id(spec): _Service(spec, one, context) for spec, one in zip(hooks, addresses, strict=True)}

    async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ended, body, detail = Ended.FAILED, b"", ""
        try:
            with Limit(watch_of(loop), spec.timeout):
                body = await services[id(spec)].post(document, env)
            ended = Ended.EXITED
        except TimeoutError:
            ended = Ended.TIMED_OUT
        except NoAnswer as problem:
            detail = str(problem)
        except _PROBLEMS as problem:
            detail = f"could not be asked: {_reason(problem)}"
        return HookResult(ended, stdout=body, ms=(loop.time() - begun) * 1000, detail=detail)

    async def aclose() -> None:
        for service in services.values():
            service.close()
        await asyncio.sleep(0)  # the loop closes them now

    return Kept(run, aclose)


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Service:
    """Where a hook's documents are posted, and the connections to it that rest."""

    def __init__(self, spec: HookSpec, address: SplitResult, context: ssl.SSLContext | None) -> None:
        self._spec = spec
        self._address = address
        self._target = f"{address.path or '/'}{f'?{address.query}' if address.query else ''}"
        self._context = context if address.scheme == "https" else None
        self._port = address.port or (443 if self._context else 80)
        self._connecting = min(spec.timeout * _CONNECTING, _LONGEST_CONNECTING)
        self._resting: list[Connection] = []
        self._env: Mapping[str, str] | None = None
        self._headers: list[tuple[str, str]] = []

    async def post(self, document: Document, env: Mapping[str, str]) -> bytes:
        """The answer's body. Raises NoAnswer, and what stands in _PROBLEMS."""
        if self._env is not env:  # nearly never: all hooks of a dialect inherit the same
            headers = {"Host": self._address.netloc, **_headers(self._spec, env)}
            self._headers, self._env = list(headers.items()), env
        length = ("Content-Length", str(len(document.stdin)))
        trace = [(name, value) for name in _TRACE if (value := document.env.get(name))]
        request = h11.Request(method="POST", target=self._target, headers=[*self._headers, *trace, length])
        connection = self._rested() or await self._connected()
        try:
            return await _answer(connection, request, bytes(document.stdin))
        finally:
            if len(self._resting) < _RESTING and connection.rests():
                self._resting.append(connection)
            else:
                connection.close()

    def _rested(self) -> Connection | None:
        while self._resting:
            connection = self._resting.pop()
            if connection.is_fit(_IDLE):
                return connection
            connection.close()
        return None

    async def _connected(self) -> Connection:
        return await connect(self._address.hostname or "", self._port, self._context, self._connecting)

    def close(self) -> None:
        """Close all connections that rest."""
        for connection in self._resting:
            connection.close()
        self._resting.clear()


def _address(spec: HookSpec) -> SplitResult:
    """The address as it is connected to, which must be what the configuration was judged by. Raises ConfigError."""
    address = urlsplit(spec.url)
    host = address.hostname or ""
    loopback = host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())
    if not host or "@" in address.netloc or not (address.scheme == "https" or (address.scheme == "http" and loopback)):
        raise ConfigError(spec.source, f"{spec.url!r} is no address of a hook", 'write "https://host/path"')
    return address


def _headers(spec: HookSpec, env: Mapping[str, str]) -> dict[str, str]:
    """The headers with their variables' values. Raises NoAnswer where one has none that can be sent."""
    headers = dict(_OURS)
    for name, written in spec.headers:
        for found in HEADER_VARIABLE.finditer(written):
            variable = found[1] or found[2]
            value = env.get(variable, "")
            if not value or not value.isascii() or not value.isprintable():
                why = "holds what no header can" if value else "is not set"
                raise NoAnswer(f"is not asked: the variable {variable}, which its header {name} needs, {why}")
        value = HEADER_VARIABLE.sub(lambda found: env[found[1] or found[2]], written)
        for same in [one for one in headers if one.lower() == name.lower()]:
            del headers[same]
        headers[name] = value
    return headers


async def _answer(connection: Connection, request: h11.Request, document: bytes) -> bytes:
    """The body of a good answer. Raises NoAnswer, and then the rest of the answer is not read."""
    answer = await connection.ask(request, document)
    if not 200 <= answer.status_code < 300:
        redirects = ", and redirects are not followed" if 300 <= answer.status_code < 400 else ""
        raise NoAnswer(f"answered with status {answer.status_code}{redirects}")
    headers = {name: value.lower() for name, value in answer.headers}
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise NoAnswer("answered with a packed body, which was not asked for")
    if headers.get(b"content-type", b"").startswith(b"text/html"):
        raise NoAnswer("answered with a page for people: is the address the hook's?")
    body = await connection.body(OUTPUT_LIMIT)
    if body is None:
        raise NoAnswer(f"answered with more than {OUTPUT_LIMIT} bytes")
    return body


def _reason(problem: Exception) -> str:
    """In a few words; the deepest error says most."""
    deepest: BaseException = problem
    while (cause := deepest.__cause__ or deepest.__context__) is not None:
        deepest = cause
    return str(deepest).partition("\n")[0] or str(problem) or type(deepest).__name__
