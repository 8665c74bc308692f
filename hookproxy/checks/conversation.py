"""Asks a server what it offers, as an agent would: one request after another, in the server's era of the protocol.

The server is not trusted: what it sends is bounded, and each list comes to an end. What it asks of us gets a response
that gives it nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from .. import __version__
from ..jsonrpc import raw_json
from ..protocol.calls import CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from .asked_process import MOST_BYTES, ServerFailed

_MAX_PAGES: Final = 1000  # of one list: more is a server that never comes to an end
_MAX_SHOWN: Final = 500  # characters of an error message: enough to recognise the cause

_HANDSHAKE_VERSION: Final = "2025-11-25"  # the last version that begins with `initialize`
_STATELESS_VERSION: Final = "2026-07-28"  # the first version without it
_CLIENT: Final = {"name": "hookproxy", "version": __version__}

_NOTHING: Final[Mapping[bytes, Mapping[str, object]]] = {
    b'"ping"': {"result": {}},
    b'"roots/list"': {"result": {"roots": []}},
    b'"elicitation/create"': {"result": {"action": "decline"}},
    b'"sampling/createMessage"': {"error": {"code": -1, "message": "the person has refused"}},
}
"""What a request of the server gets."""

METHOD_NOT_FOUND: Final = -32601
_NO_SUCH_METHOD: Final = {"code": METHOD_NOT_FOUND, "message": "hookproxy only asks what the server offers"}


class Peer(Protocol):
    """Where the server is: a process, or an address."""

    async def next_line(self) -> bytes:
        """The next line that it sends. Raises ServerFailed."""

    async def write(self, line: bytes) -> None:
        """Send it a line. Raises ServerFailed."""


class ErrorResponse(Exception):
    """The server answered a request with an error; the text is its message."""

    def __init__(self, message: str, code: int | None) -> None:
        super().__init__(message)
        self.code = code


class Beginning(Struct, frozen=True):
    """How the server has introduced itself."""

    result: Mapping[str, msgspec.Raw]
    """The result of `initialize`, or of `server/discover`; empty: it does not know that."""
    params: Mapping[str, object]
    """What each further request needs."""

    @property
    def is_stateless(self) -> bool:
        """It knows no handshake."""
        return bool(self.params)

    @property
    def capabilities(self) -> Mapping[str, msgspec.Raw]:
        """What the server declares."""
        return members_of(self.result.get("capabilities"))


class Conversation:
    """The requests to one server."""

    def __init__(self, peer: Peer, capabilities: Mapping[str, object] | None = None) -> None:
        """`capabilities` are those that we declare."""
        self._peer = peer
        self._capabilities = capabilities or {}
        self._id = 0
        self._bytes = 0
        self.noise = 0
        """How many lines were not JSON."""
        self.has_changed = False
        """The server has said that a list is another one now."""

    async def begin(self, discover: bool = False) -> Beginning:
        """Begin the session in the way that the server knows. With `discover`, ask also one of the stateless era."""
        first = {"protocolVersion": _HANDSHAKE_VERSION, "capabilities": self._capabilities, "clientInfo": _CLIENT}
        try:
            result = await self.request("initialize", first)
        except ErrorResponse:  # a server of the stateless era knows no such request
            meta = {
                PROTOCOL_VERSION_KEY: _STATELESS_VERSION,
                CLIENT_INFO_KEY: _CLIENT,
                CAPABILITIES_KEY: self._capabilities,
            }
            params = {"_meta": meta}
            return Beginning(await self._discover(params) if discover else {}, params)
        await self._send({"method": "notifications/initialized"})
        return Beginning(result, {})

    async def _discover(self, params: Mapping[str, object]) -> Mapping[str, msgspec.Raw]:
        try:
            return await self.request("server/discover", params)
        except ErrorResponse:
            return {}

    async def pages(
        self, beginning: Beginning, method: str, member: str
    ) -> AsyncIterator[tuple[Mapping[str, msgspec.Raw], list[bytes]]]:
        """The results of a list, each with its entries, to the end. Raises ErrorResponse, ServerFailed, ValueError."""
        cursor = ""
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            result = await self.request(method, {**beginning.params, **({"cursor": cursor} if cursor else {})})
            try:
                entries = raw_json.all_items(bytes(result[member]))
            except (KeyError, ValueError):
                raise ServerFailed(f"answered {method} without a list of {member}") from None
            yield result, entries
            cursor = raw_json.text(bytes(result.get("nextCursor", b""))) or ""
            if not cursor:
                return
            if cursor in seen:
                raise ServerFailed(f"answers {method} with the same page again and again")
            seen.add(cursor)
        raise ServerFailed(f"lists its {member} on more than {_MAX_PAGES} pages")

    async def request(self, method: str, params: Mapping[str, object]) -> Mapping[str, msgspec.Raw]:
        """The result of a request. Raises ErrorResponse, ServerFailed, ValueError."""
        self._id += 1
        await self._send({"id": self._id, "method": method, "params": params})
        while True:
            line = await self._peer.next_line()
            if not line.strip():
                continue
            try:
                members = raw_json.fields(line)
            except ValueError:
                self.noise += 1
                continue
            if "method" in members:
                self.has_changed |= bytes(members["method"]).endswith(b'/list_changed"')
                await self._answer(members)
            elif bytes(members.get("id", b"")).strip(b'"') == str(self._id).encode():  # some servers answer 1 with "1"
                return self._result(line, members)

    def _result(self, line: bytes, members: Mapping[str, msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        self._bytes += len(line)
        if self._bytes > MOST_BYTES:
            raise ServerFailed(f"says what it offers in more than {MOST_BYTES} bytes")
        if "error" in members:
            text = raw_json.text(bytes(members_of(members["error"]).get("message", b""))) or ""
            code = raw_json.decoded(members_of(members["error"]).get("code", msgspec.Raw(b"null")))
            shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
            raise ErrorResponse(shown, code if isinstance(code, int) else None)
        return members_of(members.get("result"))

    async def _answer(self, members: Mapping[str, msgspec.Raw]) -> None:
        """Answer a request of the server: what it asks for is not given. A notification has no response."""
        if "id" in members:
            nothing = _NOTHING.get(bytes(members["method"]), {"error": _NO_SUCH_METHOD})
            await self._send({"id": members["id"], **nothing})

    async def _send(self, message: Mapping[str, object]) -> None:
        await self._peer.write(raw_json.encode({"jsonrpc": "2.0", **message}) + b"\n")


def members_of(raw: msgspec.Raw | None) -> Mapping[str, msgspec.Raw]:
    """The members of an object; none if it is not an object that can be read."""
    try:
        return raw_json.fields(raw or b"{}")
    except ValueError:
        return {}


def name_of(raw: msgspec.Raw | None) -> str:
    """The member `name` of the server's description; empty if there is none."""
    return raw_json.text(bytes(members_of(raw).get("name", b""))) or ""
