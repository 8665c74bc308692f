"""Read the messages that pass through a shared server process, with the places of what is renamed in them (law 2).

Reading is exact: a message whose keys two readers could take differently is an error, never a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls, fast_scan, feedback

MAX_ID_BYTES: Final = 1024
"""Of an id or a progress token of a client: both are kept while the request is in flight. SDKs use up to 40."""

PROGRESS_TOKEN: Final = "progressToken"  # no secret
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_READ_PARAMS: Final = frozenset(
    {"_meta", "capabilities", "elicitationId", "level", "mode", "notifications"}
    | {"progressToken", "protocolVersion", "requestId", "task", "taskId", "uri"}
)
"""Members of `params` that are read here."""
_PLAIN_PARAMS: Final = _READ_PARAMS | {"name", "arguments", "cursor", "requestState", "inputResponses", "clientInfo"}
_READ_META: Final = frozenset({PROGRESS_TOKEN, SUBSCRIPTION_ID, RELATED_TASK, calls.PROTOCOL_VERSION_KEY})
_FOLDED_ENVELOPE: Final = {raw_json.folded_key(key): key for key in _ENVELOPE}
_FOLDED_PARAMS: Final = {raw_json.folded_key(key): key for key in _READ_PARAMS}
_FOLDED_META: Final = {raw_json.folded_key(key): key for key in _READ_META}

_CALL_START: Final = b'{"jsonrpc":"2.0","id":'  # of a call as nearly every agent writes it
_VERSION: Final = calls.PROTOCOL_VERSION_KEY
_REMEMBERED_BYTES: Final = 1024  # of a `_meta` that is remembered: they have 100 to 400
_NONE: Final[Mapping[str, Span]] = {}


class Send(Struct, frozen=True):
    """One line, with its end, and who gets it."""

    to: int
    """The number of a client; 0: the server."""
    line: bytes
    refused: tuple[str, bytes, bytes] | None = None
    """Of a refusal: what `Refuses.on_refused` is called with."""


class Message(Struct):
    """One message. Spans are offsets in its line."""

    line: bytes
    method: str = ""
    """Empty: it is a response."""
    id: bytes = b""
    """As spelled; empty: it has none."""
    id_span: Span = (0, 0)
    params: Mapping[str, Span] = _NONE
    meta: Mapping[str, Span] = _NONE
    """The members of `params._meta`."""
    content: Span = (0, 0)
    """The result or the error of a response."""
    is_error: bool = False

    def param(self, name: str) -> bytes:
        """Return a member of `params` as spelled; empty: there is none."""
        span = self.params.get(name)
        return self.line[span[0] : span[1]] if span else b""

    def text_param(self, name: str) -> str:
        """Return a member of `params` that is a string; empty: there is none."""
        return raw_json.text(self.param(name)) or ""

    def in_meta(self, name: str) -> bytes:
        """Return a member of `params._meta` as spelled; empty: there is none."""
        span = self.meta.get(name)
        return self.line[span[0] : span[1]] if span else b""

    @property
    def related_task(self) -> str | None:
        """The id of the task that `params._meta` names; empty if it cannot be read; None: it names none."""
        if RELATED_TASK not in self.meta:
            return None
        try:
            members = raw_json.fields(self.in_meta(RELATED_TASK))
        except ValueError:
            return ""
        if any(key != "taskId" and raw_json.folded_key(key) == "taskid" for key in members):
            return ""
        return raw_json.text(members.get("taskId", b"")) or ""

    @property
    def is_stateless(self) -> bool:
        """True for a request of the stateless era."""
        return calls.PROTOCOL_VERSION_KEY in self.meta


def read_call(line: bytes) -> Message | None:
    """Return a `tools/call` as most agents write it; None: `read` must read it. Raises as `read` for `_meta`."""
    call = fast_scan.compact_call(line)
    if call is None or not line.startswith(_CALL_START):
        return None
    raw_id, meta = bytes(call.id), bytes(call.params.meta)
    start = len(_CALL_START)
    if not fast_scan.is_plain_integer(raw_id) or not line.startswith(raw_id, start):
        return None
    message = Message(line, "tools/call", raw_id, (start, start + len(raw_id)))
    if meta:
        if meta[:1] != b"{" or line.count(meta) != 1:  # else it is unclear which of them it is
            return None
        message.meta = _members(line, line.find(meta), meta, _READ_META, _FOLDED_META)
    return message


def lone_version(meta: bytes) -> str | None:
    """Return the version that a `_meta` names, if it has nothing else that is read here; None: read it closely."""
    return _known_version(meta) if len(meta) <= _REMEMBERED_BYTES else _lone_version(meta)


def _lone_version(meta: bytes) -> str | None:
    try:
        members = raw_json.fields(meta)
    except ValueError:
        return None
    read_here = [key for key in members if raw_json.folded_key(key) in _FOLDED_META]
    return raw_json.text(members[_VERSION]) if read_here == [_VERSION] else None


_known_version = lru_cache(maxsize=256)(_lone_version)  # an agent has few


def read(line: bytes) -> Message:
    """Return the message in a line. Raises DuplicateKeys, Unreadable."""
    spans = raw_json.members(line)
    if not spans.keys() <= _ENVELOPE:
        _refuse_lookalikes(spans, _ENVELOPE, _FOLDED_ENVELOPE)
    message = Message(line)
    if "id" in spans:
        message.id_span = spans["id"]
        message.id = line[slice(*spans["id"])]
    if "method" not in spans:
        if not ("result" in spans or "error" in spans):
            raise raw_json.Unreadable("it is neither a request, a notification nor a response")
        message.is_error = "error" in spans
        message.content = spans["error"] if message.is_error else spans["result"]
        return message
    if "result" in spans or "error" in spans:
        raise raw_json.Unreadable("some readers take it for a request, and others for a response")
    method = raw_json.text(line[slice(*spans["method"])])
    if not method or "\0" in method:
        raise raw_json.Unreadable("its method cannot be read")
    message.method = method
    if "params" in spans:
        _read_params(message, spans["params"])
    return message


def _read_params(message: Message, span: Span) -> None:
    line = message.line
    params = line[slice(*span)]
    if params[:1] != b"{":
        if params[:1] == b"[":
            raise raw_json.Unreadable("its params are not an object")
        return
    message.params = _members(line, span[0], params, _PLAIN_PARAMS, _FOLDED_PARAMS)
    meta = message.param("_meta")
    if meta[:1] == b"{":
        message.meta = _members(line, message.params["_meta"][0], meta, _READ_META, _FOLDED_META)


def _members(
    line: bytes, start: int, raw: bytes, known: frozenset[str], folded: Mapping[str, str]
) -> Mapping[str, Span]:
    """Return the spans in `line` of the members of the object `raw`, which begins at `start`."""
    spans = raw_json.members(raw)
    if not spans.keys() <= known:
        _refuse_lookalikes(spans, known, folded)
    return {name: (start + first, start + end) for name, (first, end) in spans.items()}


def _refuse_lookalikes(spans: Mapping[str, Span], known: frozenset[str], folded: Mapping[str, str]) -> None:
    """Raise Unreadable for a key that some readers take for one that is read here."""
    for key in spans:
        if key not in known and (meant := folded.get(raw_json.folded_key(key))) is not None:
            raise raw_json.Unreadable(f"its member {key!r} is taken for {meant!r} by some readers")


def refused(client: int, line: bytes, raw_id: bytes, why: str, *, unreadable: bool = False) -> Send:
    """The refusal of the client's message in a line."""
    named = raw_id if is_id(raw_id) else b"null"
    return Send(client, feedback.refused_message(named, why, unreadable=unreadable), (why, named, line))


def place_in_result(message: Message, *path: str) -> Span | None:
    """Return the place in the line of a member deep in the result; None: there is none, or it cannot be read."""
    start, end = message.content
    try:
        for name in path:
            if message.line[start : start + 1] != b"{":
                return None
            first, last = raw_json.members(message.line[start:end])[name]
            start, end = start + first, start + last
    except (KeyError, ValueError):
        return None
    return (start, end)


def is_id(raw: bytes) -> bool:
    """True for a string or a number that is short enough to be kept."""
    return len(raw) <= MAX_ID_BYTES and (raw[:1] == b'"' or raw[:1] == b"-" or raw[:1].isdigit())


def ended(line: bytes) -> bytes:
    """The line with a line end."""
    return line if line.endswith(b"\n") else line + b"\n"
