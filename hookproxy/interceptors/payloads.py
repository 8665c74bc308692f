"""The payloads of invocations, as messages of MCP: hosts send params and results, alone or with what is around. Pure.

The draft's text shows `{method, params}`, its fixtures and SDKs the params alone; both are read, and a response has the
form of its request. Law 1: what two readers could read differently is not read.
"""

from __future__ import annotations

from msgspec import Struct

from ..jsonrpc import raw_json
from ..protocol.responses import Members

_OF_ENVELOPE = frozenset({"jsonrpc", "id", "method", "params"})


class Payload(Struct, frozen=True):
    """A payload, and the part of it that is judged."""

    whole: bytes
    inner: bytes
    """The params, or the result, or the error."""
    member: str = ""
    """The member of the payload that this is; empty: it is the whole payload."""

    def with_inner(self, inner: bytes) -> bytes:
        """The payload with another such part."""
        return raw_json.with_member(self.whole, self.member, inner) if self.member else inner

    @property
    def is_error(self) -> bool:
        """The response is a JSON-RPC error."""
        return self.member == "error"


def read_request(raw: bytes, method: str) -> Payload:
    """The payload of a request. Raises ValueError."""
    if raw == b"null":
        return Payload(raw, b"{}")
    members = raw_json.fields(raw)
    if "method" not in members:
        return Payload(raw, raw)
    if raw_json.text(bytes(members["method"])) != method:
        raise ValueError(f"its method is not the event {method!r}")
    if unknown := members.keys() - _OF_ENVELOPE:
        raise ValueError(f"it has a method, and the member {min(unknown)!r} beside it")
    if "params" not in members:
        return Payload(raw, b"{}", "params")
    return Payload(raw, bytes(members["params"]), "params")


def read_response(raw: bytes) -> Payload:
    """The payload of a response. Raises ValueError."""
    members: Members = raw_json.fields(raw)
    for member in ("result", "error"):
        if member in members and members.keys() <= {"jsonrpc", "id", member}:
            return Payload(raw, bytes(members[member]), member)
    return Payload(raw, raw)


def request_line(method: str, params: bytes) -> bytes:
    """The payload as the message of an agent."""
    line = b'{"jsonrpc":"2.0","id":1,"method":%b,"params":%b}' % (raw_json.encode(method), params.replace(b"\n", b" "))
    return raw_json.one_line(line) + b"\n"


def response_line(payload: Payload) -> bytes:
    """The payload as the response of a server."""
    member = b"error" if payload.is_error else b"result"
    line = b'{"jsonrpc":"2.0","id":1,"%b":%b}' % (member, payload.inner.replace(b"\n", b" "))
    return raw_json.one_line(line) + b"\n"


def inner_of(line: bytes, member: str) -> bytes:
    """This member of a message."""
    return bytes(raw_json.fields(line)[member])
