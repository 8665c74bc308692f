"""Reads of a message what its HTTP request and response depend on. It is never written again (law 2)."""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...protocol.calls import PROTOCOL_VERSION_KEY, id_key
from ...protocol.fast_scan import END_BYTES, ReadCall, compact_call, is_result, response_id

Raw = msgspec.Raw

INITIALIZE: Final = "initialize"
INITIALIZED: Final = "notifications/initialized"
CANCELLED: Final = "notifications/cancelled"
SUBSCRIBE: Final = "subscriptions/listen"
LIST_TOOLS: Final = "tools/list"
CALL_TOOL: Final = "tools/call"

_LONG_LINE: Final = 65536  # bytes: to read 10 MB takes 10 ms, and a shorter line less than to look at its ends
_SHORT_LINE: Final = 4096  # bytes, as in fast_scan: a longer call is not remembered from one reader to the next
_ABSENT: Final = Raw(b"")


class _Meta(msgspec.Struct, gc=False, frozen=True):
    version: object = msgspec.field(default=None, name=PROTOCOL_VERSION_KEY)


class Params(msgspec.Struct, gc=False, frozen=True):
    """The members of `params` that headers are made from."""

    name: object = None
    uri: object = None
    task: object = msgspec.field(default=None, name="taskId")
    arguments: Raw = _ABSENT
    request: Raw = msgspec.field(default=_ABSENT, name="requestId")
    meta: _Meta | None = msgspec.field(default=None, name="_meta")


class _Message(msgspec.Struct, gc=False):
    id: Raw = _ABSENT
    method: str = ""
    params: Params | None = None


class _Envelope(msgspec.Struct, gc=False):
    """For messages whose params are not as in MCP."""

    id: Raw = _ABSENT
    method: object = None
    result: Raw = _ABSENT
    error: Raw = _ABSENT


_MESSAGE: Final = msgspec.json.Decoder(_Message)
_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_BATCH: Final = msgspec.json.Decoder(list[Raw])
_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_NO_PARAMS: Final = Params()


class Message(msgspec.Struct, gc=False):
    """A line from the agent. `ids` are those of its requests, as spelled: more than one only in a batch."""

    body: bytes
    """The line without its line end: what is posted."""
    ids: tuple[bytes, ...] = ()
    method: str = ""
    params: Params = _NO_PARAMS
    version: str = ""
    """The protocol version that the request names; empty: it is one of the handshake era."""

    @property
    def is_response(self) -> bool:
        """It is the response to a request of the server."""
        return not self.method and not self.ids


def read(line: bytes) -> Message:
    """Return what is known of a line. One that cannot be read is posted as it is: the server responds to it."""
    call = compact_call(line) if len(line) < _SHORT_LINE and line.endswith(b"\n") else None
    if call is not None and not len(call.params.meta):  # what a gateway has checked, and the router reads, is known
        params = Params(call.params.name, arguments=call.params.arguments)
        return Message(line[:-1], (bytes(call.id),), CALL_TOOL, params)
    body = line.rstrip(b"\r\n")
    try:
        message = _MESSAGE.decode(body)
    except _ERRORS:
        return _read_unusual(body)
    params = message.params or _NO_PARAMS
    version = params.meta.version if params.meta is not None else ""
    ids = (bytes(message.id),) if message.method and len(message.id) else ()
    return Message(body, ids, message.method, params, version if isinstance(version, str) else "")


def of_call(call: ReadCall) -> Message:
    """Return the message of a call that was read already."""
    return Message(call.line, (call.id,), CALL_TOOL, Params(call.name, arguments=call.arguments), call.version)


def _read_unusual(body: bytes) -> Message:
    """A batch, params that are not an object, half of a surrogate pair, or text that is not JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        if body.lstrip()[:1] == b"{" and b"\\u" in body:
            return _read_members(body)
    ids: list[bytes] = []
    method = ""
    with contextlib.suppress(*_ERRORS):
        for item in _BATCH.decode(body) if body.lstrip()[:1] == b"[" else [Raw(body)]:
            envelope = _ENVELOPE.decode(item)
            if isinstance(envelope.method, str):
                method = "" if body.lstrip()[:1] == b"[" else envelope.method
                if len(envelope.id):
                    ids.append(bytes(envelope.id))
    return Message(body, tuple(ids), method)


def _read_members(body: bytes) -> Message:
    """As `read` for a message with half of a surrogate pair, which the decoder reads nowhere. Raises ValueError."""
    members = raw_json.fields(body)
    method = raw_json.text(members.get("method", b"")) or ""
    params = _object(members.get("params", b""))
    version = _object(params.get("_meta", b"")).get(PROTOCOL_VERSION_KEY, b"")
    name, uri, task = (raw_json.text(params.get(key, b"")) for key in ("name", "uri", "taskId"))
    mirrored = Params(name, uri, task, params.get("arguments", _ABSENT), params.get("requestId", _ABSENT))
    ids = (bytes(members["id"]),) if method and "id" in members else ()
    return Message(body, ids, method, mirrored, raw_json.text(version) or "")


def _object(raw: bytes | Raw) -> dict[str, Raw]:
    return raw_json.fields(raw) if bytes(raw).startswith(b"{") else {}


def answered_ids(line: bytes) -> list[bytes] | None:
    """Return the ids of the responses in a line of the server, as spelled; None: it is not a JSON-RPC message.

    Of a long line that begins and ends as responses do, the middle is not read.
    """
    if len(line) > _LONG_LINE and line.endswith(b"}"):
        raw_id = response_id(line[:END_BYTES], line[-END_BYTES:])
        if raw_id is not None:
            return [raw_id]
    try:
        envelope = _ENVELOPE.decode(line)
    except _ERRORS:
        return _answered_by_members(line) if line.lstrip()[:1] == b"{" else _answered_in_batch(line)
    if envelope.method is not None:
        return []
    return [bytes(envelope.id)] if len(envelope.id) and (len(envelope.result) or len(envelope.error)) else None


def as_one_line(body: bytes) -> bytes:
    """The text of a JSON message on one line: in JSON, line ends stand only between tokens."""
    return body.strip(b" \t\r\n").replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in body or b"\r" in body else body


def is_response_to(raw_id: bytes, line: bytes) -> bool:
    """True if `line` is one line and one response of the server, and has exactly this id."""
    if b"\n" in line or b"\r" in line:
        return False
    if is_result(line, raw_id):  # nearly every one, and faster
        return True
    try:
        envelope = _ENVELOPE.decode(line)
    except _ERRORS:
        return False
    return (
        envelope.method is None and bytes(envelope.id) == raw_id and bool(len(envelope.result) or len(envelope.error))
    )


def _answered_by_members(line: bytes) -> list[bytes] | None:
    """As `answered_ids` for what the decoder reads nowhere: half of a surrogate pair, which servers write that cut
    texts anywhere or name files by their bytes, and deep nesting. Nobody would get the response, and wait for ever."""
    try:
        members = raw_json.fields(line)
    except raw_json.TooDeep:
        raw_id = response_id(line[:END_BYTES], line[-END_BYTES:])
        return None if raw_id is None else [raw_id]
    except ValueError:
        return None
    if "method" in members:
        return []
    return [bytes(members["id"])] if "id" in members and ("result" in members or "error" in members) else None


def _answered_in_batch(line: bytes) -> list[bytes] | None:
    try:
        items = [_ENVELOPE.decode(item) for item in _BATCH.decode(line)]
    except _ERRORS:
        return None
    return [bytes(envelope.id) for envelope in items if len(envelope.id) and envelope.method is None]


def key_of(raw_id: bytes) -> bytes:
    """Return a key that is the same for all spellings of an id, as `id_key`, and nearly always the id itself."""
    return raw_id if raw_id.isdigit() else id_key(raw_id)


def keys_of(ids: tuple[bytes, ...]) -> dict[bytes, bytes]:
    """Return the ids as spelled, by their keys."""
    if len(ids) == 1 and ids[0].isdigit():  # nearly every request
        return {ids[0]: ids[0]}
    return {key_of(raw): raw for raw in ids}


class _ErrorMessage(msgspec.Struct, gc=False):
    code: object = None
    message: object = None


class _ErrorResponse(msgspec.Struct, gc=False):
    error: _ErrorMessage


_ERROR_RESPONSE: Final = msgspec.json.Decoder(_ErrorResponse)


def error_message(body: bytes) -> str:
    """Return the text of a JSON-RPC error; empty: the body is none."""
    text = _error(body).message
    return text if isinstance(text, str) else ""


def error_code(body: bytes) -> int | None:
    """Return the code of a JSON-RPC error; None: the body is none."""
    code = _error(body).code
    return code if isinstance(code, int) else None


def _error(body: bytes) -> _ErrorMessage:
    with contextlib.suppress(*_ERRORS):
        return _ERROR_RESPONSE.decode(body).error
    return _ErrorMessage()


class _InitializeResult(msgspec.Struct, gc=False):
    version: str = msgspec.field(name="protocolVersion")


class _InitializeResponse(msgspec.Struct, gc=False):
    result: _InitializeResult


_INITIALIZE_RESPONSE: Final = msgspec.json.Decoder(_InitializeResponse)


def negotiated_version(line: bytes) -> str:
    """Return the protocol version in the result of `initialize`; empty: it has none."""
    with contextlib.suppress(*_ERRORS):
        return _INITIALIZE_RESPONSE.decode(line).result.version
    return ""
