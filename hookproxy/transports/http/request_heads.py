"""Writes the heads of requests to a remote server: what is fixed, what the session says, credentials and cookies."""

from __future__ import annotations

import time
from typing import Final

from .client import Client
from .cookies import Cookies
from .exchange import Exchange, Kind
from .pool import Remote

_MAX_HEADS: Final = 256  # heads of calls that are kept: one for each tool that is called, of about 400 bytes
_GET: Final = b"Accept: text/event-stream\r\nCache-Control: no-store\r\n"
_POST: Final = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"


class RequestHeads:
    """The heads of one channel's requests."""

    def __init__(self, remote: Remote, client: Client) -> None:
        self._client = client
        self._target = remote.address.target
        own = {name.lower() for name, _ in remote.headers}
        agent = b"" if "user-agent" in own else b"User-Agent: hookproxy\r\n"
        self._fixed = b"Host: %b\r\nAccept-Encoding: identity\r\n%b%b" % (
            remote.address.host_header,
            agent,
            b"".join(b"%b: %b\r\n" % (name.encode(), value.encode("latin-1")) for name, value in remote.headers),
        )
        self._cookies = None if "cookie" in own else Cookies(remote.address.host, is_tls=remote.address.is_tls)
        self._of_calls: dict[bytes, bytes] = {}  # up to the length, by the header lines of session and message
        self._of_calls_authorization: str | None = None
        self.gives_authorization = "authorization" in own
        """The command line gives the credentials, as a header."""

    def write(self, exchange: Exchange, authorization: str | None) -> bytes:
        """The head of a request that is sent now."""
        own = self._client.call_headers(exchange) if exchange.call_id and not self._cookies else None
        if own is None:
            return self._any(exchange, authorization)
        if authorization != self._of_calls_authorization or len(self._of_calls) > _MAX_HEADS:
            self._of_calls.clear()
            self._of_calls_authorization = authorization
        start = self._of_calls.get(own)  # of the calls of one session or tool only the length differs
        if start is None:
            start = self._any(exchange, authorization).rpartition(b"Content-Length: ")[0]
            self._of_calls[own] = start
        return b"%bContent-Length: %d\r\n\r\n" % (start, len(exchange.body))

    def _any(self, exchange: Exchange, authorization: str | None) -> bytes:
        headers = self._fixed + self._client.headers(exchange)
        target = self._client.target(exchange, self._target)
        if authorization is not None:
            headers += b"Authorization: %b\r\n" % authorization.encode("latin-1")
        if self._cookies:
            headers += self._cookies.header(target, time.time())
        if exchange.kind is Kind.DELETE:
            return b"DELETE %b HTTP/1.1\r\n%b\r\n" % (target, headers)
        if exchange.is_get:
            return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (target, _GET, headers)
        return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n" % (target, _POST, headers, len(exchange.body))

    def note_cookies(self, exchange: Exchange, lines: bytes) -> None:
        """Keep the cookies of a response; not if the command line gives one, which counts instead."""
        if self._cookies is not None:
            target = self._client.target(exchange, self._target)
            for line in lines.split(b"\n"):
                self._cookies.note(line, target, time.time())
