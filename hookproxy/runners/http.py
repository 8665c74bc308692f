"""Runs a hook that is a web service: posts the document; the body of a 2xx response is the hook's output.

Idle connections are kept and used again. Nothing is sent to a host that the configuration does not name: redirects are
not followed, proxies of the environment are not used (the document may hold secrets, and whoever sets HTTPS_PROXY may
not have written the hook), cookies are not kept and .netrc is not read. TLS is verified against the system's
certificates, or SSL_CERT_FILE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from ..dialects.shared.handler_types import HEADER_VARIABLE
from ..model.errors import ConfigError
from ..model.hooks import Document, HookResult, HookSpec
from ..network.address import Address
from ..network.connect import connect, tls_context
from ..network.connection import Connection
from ..network.post import CollectedResponse, ResponseTooLong
from ..processes.process import output_limit
from .event_watch import TimeLimit, get_watch
from .runner import HookFailed, OutputTooLong, Report, StatefulRunner, result_of

if TYPE_CHECKING:
    import ssl

_IDLE_SECONDS: Final = 60.0  # seconds that an idle connection is kept; before its use it is checked
_MAX_IDLE: Final = 20  # idle connections that are kept for one hook: as many as calls are often in flight
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
_CONNECTION_ERRORS: Final = (OSError, UnicodeError)
"""Failures of the network, of TLS, of HTTP; an impossible host name."""


CheckHead = Callable[[int, dict[bytes, bytes]], None]
"""Looks at the status and the headers of a response."""


def open_runner(hooks: list[HookSpec], _report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. The first document opens the first connection."""
    urls = [split_url(spec) for spec in hooks]
    tls = tls_context(None, None, None) if any(url.scheme == "https" for url in urls) else None  # it takes 20 ms
    endpoints = {id(spec): Endpoint(spec, url, tls) for spec, url in zip(hooks, urls, strict=True)}

    async def run_http_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        return await result_of(endpoints[id(spec)].post(document, env), spec.timeout)

    async def aclose() -> None:
        for endpoint in endpoints.values():
            endpoint.close()
        await asyncio.sleep(0)  # the event loop closes them now

    return StatefulRunner(run_http_hook, aclose)


class Endpoint:
    """The URL to which a hook's documents are posted, and the owner of the connections to it."""

    def __init__(self, spec: HookSpec, url: SplitResult, tls: ssl.SSLContext | None) -> None:
        self._spec = spec
        target = f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
        self._tls = tls if url.scheme == "https" else None
        port = url.port or (443 if self._tls else 80)
        self._address = Address(url.scheme, url.hostname or "", port, target.encode())
        self._host_header = url.netloc
        self._connect_timeout = min(spec.timeout * _CONNECT_SHARE, _LONGEST_CONNECT)
        self._idle: list[Connection] = []
        self._env: Mapping[str, str] | None = None
        self._head = b""

    async def post(self, document: Document, env: Mapping[str, str], check_head: CheckHead | None = None) -> bytes:
        """Post the document, and return the response's body. Raises HookFailed, and TimeoutError of the network.

        `check_head` raises HookFailed for a response that is not one; None: as for the output of hooks.
        """
        try:
            return await self._exchange(document, env, check_head or check_output_head)
        except TimeoutError:
            raise
        except _CONNECTION_ERRORS as error:
            raise HookFailed(f"could not be called: {_error_text(error)}") from None

    async def _exchange(self, document: Document, env: Mapping[str, str], check_head: CheckHead) -> bytes:
        if self._env is not env:  # nearly never: all hooks of a dialect inherit the same
            self._head, self._env = self._request_head(env), env
        trace = b"".join([_header_line(name, value) for name in _TRACE_VARIABLES if (value := document.env.get(name))])
        body = bytes(document.stdin)
        head = b"%b%bContent-Length: %d\r\n\r\n" % (self._head, trace, len(body))
        connection = self._take_idle() or await self._connect()
        limit = output_limit(len(body))
        response = CollectedResponse(limit, check_head)
        connection.request(head, body, response)
        try:
            return await response.body
        except ResponseTooLong:
            raise OutputTooLong(f"answered with more than {limit} bytes") from None
        finally:
            if not response.has_ended:
                connection.close()

    def _request_head(self, env: Mapping[str, str]) -> bytes:
        """What is the same in the heads of all requests. Raises HookFailed and UnicodeError."""
        headers = {"Host": self._host_header, **_headers(self._spec, env)}
        lines = [_header_line(name, value) for name, value in headers.items()]
        return b"POST %b HTTP/1.1\r\n%b" % (self._address.target, b"".join(lines))

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and not connection.has_unread:
                return connection
            connection.close()
        return None

    async def _connect(self) -> Connection:
        try:
            with TimeLimit(get_watch(asyncio.get_running_loop()), self._connect_timeout):
                connection = await connect(self._address, None, self._tls, self, None)
        except TimeoutError:
            raise ConnectionError(f"there was no connection within {self._connect_timeout:g} s") from None
        connection.idle_seconds = _IDLE_SECONDS
        return connection

    def close(self) -> None:
        """Close all idle connections."""
        for connection in list(self._idle):
            connection.close()

    # --- Owner ---

    def idle(self, connection: Connection) -> None:
        """Keep a few for further calls."""
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def closed(self, connection: Connection) -> None:
        """Forget it."""
        if connection in self._idle:
            self._idle.remove(connection)

    def flow_changed(self) -> None:
        """Nothing: the document of a call is in memory in any case."""


def check_output_head(status: int, headers: dict[bytes, bytes]) -> None:
    """Raise HookFailed for a response that is not a hook's output."""
    if not 200 <= status < 300:
        redirects = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise HookFailed(f"answered with status {status}{redirects}")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise HookFailed("answered with a compressed body, which was not requested")
    if headers.get(b"content-type", b"").lower().startswith(b"text/html"):
        raise HookFailed("answered with an HTML page: check that the URL is the hook's")


def split_url(spec: HookSpec) -> SplitResult:
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
        for reference in HEADER_VARIABLE.finditer(written):
            variable = reference[1] or reference[2]
            value = env.get(variable, "")
            if not value or not value.isascii() or not value.isprintable():
                why = "has a value that a header cannot contain" if value else "is not set"
                raise HookFailed(f"cannot be called: the variable {variable}, which its header {name} needs, {why}")
        value = HEADER_VARIABLE.sub(lambda reference: env[reference[1] or reference[2]], written)
        for same in [other for other in headers if other.lower() == name.lower()]:
            del headers[same]
        headers[name] = value
    return headers


def _header_line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("ascii")


def _error_text(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
