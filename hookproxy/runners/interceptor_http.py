"""The connection to a server of interceptors at an address: Streamable HTTP, one POST for each request.

Each request has a response of its own, as JSON or as a stream of events that ends with it. What a server asks of us in
such a stream gets nothing: a host of interceptors offers nothing. As for hooks that are web services, nothing is sent
to a host that the configuration does not name (`runners/http`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.hooks import Document, HookSpec
from ..network.connect import tls_context
from ..protocol.responses import Members
from .http import Endpoint, check_output_head, split_url
from .runner import HookFailed

_ACCEPT: Final = ("Accept", "application/json, text/event-stream")
_SESSION: Final = "Mcp-Session-Id"


class HttpConnection:
    """As `interceptor_server.Connection`."""

    def __init__(self, spec: HookSpec) -> None:
        self._spec = spec
        self._ids = count(1)
        self._session = ""
        self._endpoint: Endpoint | None = None
        self.on_end: Callable[[], None] = lambda: None
        """Called when the server does not know the session any more."""
        self.document: Document | None = None
        self.env: Mapping[str, str] = {}

    async def request(self, method: str, params: Mapping[str, object]) -> Members:
        """As Connection. `initialize` begins a new session."""
        if method == "initialize":
            self._use_session("")
        own_id = next(self._ids)
        body = await self._post({"jsonrpc": "2.0", "id": own_id, "method": method, "params": params})
        for message in _messages(body):
            if bytes(message.get("id", b"")).strip(b'"') == str(own_id).encode() and "method" not in message:
                return message
        raise HookFailed(f"answered {method} without a response")

    async def notify(self, method: str) -> None:
        """As Connection."""
        await self._post({"jsonrpc": "2.0", "method": method})

    def end_process(self, _why: str) -> None:
        """There is no process here: the server runs elsewhere."""

    async def aclose(self) -> None:
        """As Connection."""
        self._use_session("")

    def _use_session(self, session: str) -> None:
        self._session = session
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    async def _post(self, message: Mapping[str, object]) -> bytes:
        given = ""

        def check_head(status: int, headers: dict[bytes, bytes]) -> None:
            nonlocal given
            if status == _UNKNOWN_SESSION and self._session:
                self.on_end()
            check_output_head(status, headers)
            given = headers.get(_SESSION.lower().encode(), b"").decode("latin-1")

        if self._endpoint is None or message.get("method") == "initialize":
            url = split_url(self._spec)
            more = (_ACCEPT, *(((_SESSION, self._session),) if self._session else ()))
            spec = replace(self._spec, headers=(*self._spec.headers, *more))
            tls = tls_context(None, None, None) if url.scheme == "https" else None
            self._endpoint = Endpoint(spec, url, tls)
        body = await self._endpoint.post(Document(raw_json.encode(message), {}), self.env, check_head)
        if given and given != self._session and given.isascii() and given.isprintable() and "$" not in given:
            self._use_session(given)
        return body


_UNKNOWN_SESSION: Final = 404  # the specification: then a new one must begin


def _messages(body: bytes) -> list[Members]:
    """The messages of a response: one, or those of a stream of events. Raises HookFailed."""
    body = body.strip()
    try:
        if body[:1] == b"{":
            return [raw_json.fields(body)]
        events = body.replace(b"\r\n", b"\n").split(b"\n\n")
        return [raw_json.fields(data) for event in events if (data := _data(event))]
    except ValueError:
        raise HookFailed("answered with something that is not a message") from None


def _data(event: bytes) -> bytes:
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines).strip()
