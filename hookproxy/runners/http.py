"""Runs a hook that is a web service: the document is posted, and what comes back with 2xx is the answer.

Connections are kept. Nothing is sent to whom the configuration does not name: no redirect is followed, no proxy of the
environment is used (the document may hold secrets, and who sets HTTPS_PROXY need not be who wrote the hook), no
cookie is kept and no .netrc read. TLS is verified against the system's certificates, or SSL_CERT_FILE.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

import h11

from ..dialects.shared.handler_types import VARIABLE
from ..model.errors import ConfigError
from ..model.hooks import Document, Ended, HookResult, HookSpec
from ..processes.process import OUTPUT_LIMIT
from .event_watch import Limit, watch_of
from .http_connection import Connection, connect
from .runner import Kept, NoAnswer, Say

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
        for found in VARIABLE.finditer(written):
            variable = found[1] or found[2]
            value = env.get(variable, "")
            if not value or not value.isascii() or not value.isprintable():
                why = "holds what no header can" if value else "is not set"
                raise NoAnswer(f"is not asked: the variable {variable}, which its header {name} needs, {why}")
        value = VARIABLE.sub(lambda found: env[found[1] or found[2]], written)
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
