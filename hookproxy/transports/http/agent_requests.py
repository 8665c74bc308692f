"""What an HTTP request of an agent must satisfy before anything acts on it: pure and synchronous.

The body is what counts. Whatever in the head says the same as the body must agree with it, because others choose by the
head where a request goes and what it may do. What two readers could read differently is refused.
Sources: MCP 2025-03-26, 2025-06-18 and 2025-11-25, basic/transports; MCP 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NoReturn
from urllib.parse import urlsplit

from msgspec import Raw, Struct

from ...jsonrpc import nesting, raw_json
from ...protocol import calls, fast_scan
from ...protocol.shared_messages import lone_version
from . import mirror_headers
from .messages import CALL_TOOL, INITIALIZE
from .mirror_headers import ParameterHeaders

Headers = Sequence[tuple[bytes, bytes]]
"""Names and values. Those of a request have names in lower case and values without blanks at their ends."""

STATELESS_VERSIONS: Final = ("2026-07-28",)
"""Versions without a handshake that are known here. A later one is refused: it may have further headers to check."""

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

HEADER_MISMATCH: Final = -32020  # MCP 2026-07-28: a header that is missing, or does not agree with the body
UNSUPPORTED_VERSION: Final = -32022  # MCP 2026-07-28: its data lists the versions that are
PARSE_ERROR: Final = -32700  # JSON-RPC: no JSON
METHOD_NOT_FOUND: Final = -32601  # JSON-RPC: the receiver does not have this method
INVALID_PARAMS: Final = -32602  # JSON-RPC: params that lack something, such as the version in _meta
INVALID_REQUEST: Final = -32600  # JSON-RPC: no valid request

MAX_SESSION_ID: Final = 512  # characters: ours have 300, and nobody else makes the ones that we get

Parameters = Callable[[str, str], ParameterHeaders | None]
"""From the names of a server and a tool to the arguments that have their own headers; None: the tool is not known."""

_PATH: Final = b"/mcp/"
_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_JSON_TYPES: Final = frozenset({_JSON, b"application/json; charset=utf-8", b"application/json;charset=utf-8"})
_USUAL_ACCEPT: Final = frozenset({b"application/json, text/event-stream", b"text/event-stream, application/json"})
_HEADER_VERSION: Final = b"mcp-protocol-version"
_PARAMETER: Final = b"mcp-param-"
_MIRRORS: Final = frozenset({b"mcp-method", b"mcp-name"})
_LONG_LINE: Final = 65_536  # bytes: to write a message again, for the proof that it is compact, costs a copy
_SINGLE: Final = frozenset({b"host", b"origin", b"content-type", b"authorization", b"last-event-id"})
"""Headers that must not come twice, besides all `mcp-…`: one reader would take the first, another the last."""

_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_VISIBLE: Final = frozenset(range(0x21, 0x7F))


class Era(Enum):
    """How the agent speaks: with sessions, or with requests that stand alone."""

    HANDSHAKE = auto()
    STATELESS = auto()


class Kind(Enum):
    """What an accepted request asks for."""

    MESSAGE = auto()  # POST: it brings a message
    STREAM = auto()  # GET: it opens, or resumes, a stream of the server's messages
    END = auto()  # DELETE: it ends a session


class Rules(Struct, frozen=True):
    """What is allowed at one address."""

    servers: frozenset[str]
    """Names: each is reached at `/mcp/NAME`."""
    hosts: frozenset[bytes]
    """Values of `Host`, in lower case; see `allowed_hosts`."""
    origins: frozenset[bytes]
    """Values of `Origin`, in lower case; see `allowed_origins`. A request without one comes from no web page."""
    max_depth: int = 128
    """Brackets of a message that are open at once. Some readers (serde_json) go no deeper."""


class Accepted(Struct, frozen=True):
    """A request that may be acted on. Nothing is known yet of who sends it."""

    kind: Kind
    server: str
    era: Era
    version: str = ""
    """The value of `MCP-Protocol-Version`; empty: absent, which means 2025-03-26 or `initialize`."""
    line: bytes = b""
    """The message as it came, without line ends. (Those between its tokens have become blanks.)"""
    method: str = ""
    """The method of the message; empty: it is a response."""
    id: bytes = b""
    """The id of a request or a response, as spelled; empty: the message is a notification."""
    session: str = ""
    """`Mcp-Session-Id`; empty: absent, or of no meaning in this era."""
    last_event: bytes = b""
    """`Last-Event-ID` of a GET; empty: absent."""
    token: str = ""
    """The bearer token; empty: there is none, or other credentials that nobody here understands."""


class Rejected(Struct, frozen=True):
    """The response to a request that must not be acted on. The body is a JSON-RPC error."""

    status: int
    headers: Headers
    body: bytes
    reason: str
    """The same for the log, in a sentence; it contains nothing of the request."""
    id: bytes = b"null"
    """The id in the body, as spelled."""


def allowed_hosts(port: int, public_url: str = "", *, tls: bool = False) -> frozenset[bytes]:
    """Return the values of `Host` for a listener at `port`: the names of loopback, and the host of `public_url`.

    Raises ValueError if `public_url` is not an `http` or `https` URL.
    """
    return frozenset(origin.partition(b"://")[2] for origin in allowed_origins(port, public_url, tls=tls))


def allowed_origins(port: int, public_url: str = "", *, tls: bool = False) -> frozenset[bytes]:
    """Return the values of `Origin` for a listener at `port`: as `allowed_hosts`, each with its scheme.

    Raises ValueError if `public_url` is not an `http` or `https` URL.
    """
    scheme = "https" if tls else "http"
    origins = [spelled for name in ("localhost", "127.0.0.1", "[::1]") for spelled in _origins(scheme, name, port)]
    if public_url:
        parts = urlsplit(public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{public_url!r} is not an http or https URL")
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        origins += _origins(parts.scheme, name, parts.port or _DEFAULT_PORTS[parts.scheme])
    return frozenset(origin.encode("idna" if not origin.isascii() else "ascii") for origin in origins)


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def _origins(scheme: str, name: str, port: int) -> list[str]:
    spelled = [f"{scheme}://{name}:{port}"]
    return [*spelled, f"{scheme}://{name}"] if _DEFAULT_PORTS[scheme] == port else spelled


class Head(Struct, frozen=True):
    """What the head of a request says. Its values that the body repeats are not compared yet."""

    rules: Rules
    """Those that it satisfies."""
    server: str
    headers: Mapping[bytes, bytes]
    version: str
    session: str | None
    """`Mcp-Session-Id`; empty: absent. None: it is none of ours."""
    token: str
    has_mirrors: bool
    """Some headers repeat what the body says, besides the version."""
    is_of_session: bool
    """It is the head of a POST in a session of the handshake era."""
    called: str
    """The tool that the head of a stateless call names; empty: it is another head, or must be read with the body."""


def check_head(method: bytes, target: bytes, headers: Headers, body: bytes, rules: Rules) -> Head | Rejected:
    """What the head of a request alone says, or the response that refuses it; the body only gives the refusal its id.

    It raises nothing, whatever the request is. `headers` have names in lower case, and values without blanks at their
    ends. The page about the gateway says what is checked; that session, token and server exist is for others to check.
    """
    try:
        by_name = _by_name(headers, body)
        server = _server(target, rules)
        _check_source(by_name, rules)
        if method == b"POST":
            _check_types(by_name)
    except _Refusal as refusal:
        return refusal.response
    has_mirrors = any(name in _MIRRORS or name.startswith(_PARAMETER) for name in by_name)
    version, session = _version(by_name), _session(by_name)
    of_session = method == b"POST" and bool(session) and version is not _UNKNOWN and version not in STATELESS_VERSIONS
    called = _called(by_name) if method == b"POST" and version in STATELESS_VERSIONS else ""
    return Head(rules, server, by_name, version, session, _token(by_name), has_mirrors, of_session, called)


def _called(headers: Mapping[bytes, bytes]) -> str:
    """Return the tool that the headers of a stateless call name; empty: the body must say which tool that is."""
    name = headers.get(b"mcp-name", b"").decode("latin-1")
    is_call = headers.get(b"mcp-method") == CALL_TOOL.encode() and mirror_headers.is_plain(name)
    return name if is_call and not any(other.startswith(_PARAMETER) for other in headers) else ""


def no_server(headers: Headers, body: bytes) -> Rejected:
    """What `check_head` returns for a path at which there is no server."""
    try:
        _by_name(headers, body)
        _refuse(404, _NOTHING)
    except _Refusal as refusal:
        return refusal.response


_NOTHING: Final = "There is nothing at this path. A server is at /mcp/NAME."


def unreadable(why: str) -> Rejected:
    """What refuses a message that nobody reads; `why` is a sentence without a full stop."""
    error = b'{"code":%d,"message":%b}' % (INVALID_REQUEST, raw_json.encode(f"hookproxy refused this request: {why}."))
    return _rejected(400, f"{why}.", error, b"null")


def check_body(method: bytes, head: Head, body: bytes, parameters: Parameters) -> Accepted | Rejected:
    """What a request asks for, by its body, with which its head must agree; or the response that refuses it."""
    try:
        return _message(head, body, parameters) if method == b"POST" else _without_body(method, head, body)
    except _Refusal as refusal:
        return refusal.response


def check_call(head: Head, body: bytes, parameters: Parameters) -> fast_scan.ReadCall | None:
    """As `check_body` for a tool call as nearly every agent writes it. None: `check_body` must look at it.

    It accepts nothing that `check_body` refuses.
    """
    if not (head.called or head.is_of_session) or len(body) >= _LONG_LINE:
        return None
    call = fast_scan.read_call(body, head.version if head.called else "")
    if call is None or nesting.is_deeper(body, head.rules.max_depth) or parameters(head.server, call.name):
        return None
    if head.called:
        return call if call.name == head.called and lone_version(bytes(call.meta)) == head.version else None
    if head.has_mirrors:
        return None
    return call if not len(call.meta) or _is_of_handshake_era(bytes(call.meta)) else None


def _is_of_handshake_era(meta: bytes) -> bool:
    """True for a readable `_meta` that names no version of the protocol."""
    try:
        return calls.PROTOCOL_VERSION_KEY not in raw_json.fields(meta)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return False


class _Refusal(Exception):
    """The request is refused."""

    def __init__(self, response: Rejected) -> None:
        self.response = response


def _refuse(
    status: int, reason: str, code: int = INVALID_REQUEST, raw_id: bytes = b"null", headers: Headers = ()
) -> NoReturn:
    error = b'{"code":%d,"message":%b}' % (code, raw_json.encode(f"hookproxy refused this request: {reason}"))
    raise _Refusal(_rejected(status, reason, error, raw_id, headers))


def _rejected(status: int, reason: str, error: bytes, raw_id: bytes, headers: Headers = ()) -> Rejected:
    body = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, error)
    return Rejected(status, ((b"Content-Type", _JSON), *headers), body, reason, raw_id)


# --- the head ---


def _by_name(headers: Headers, body: bytes) -> dict[bytes, bytes]:
    """Return the headers by name. Those that may be repeated are joined."""
    by_name: dict[bytes, bytes] = {}
    for name, value in headers:
        if name not in by_name:
            by_name[name] = value
        elif name.startswith(b"mcp-"):
            _refuse(400, "A header Mcp-… comes twice.", HEADER_MISMATCH, _id_of(body))
        elif name in _SINGLE:
            _refuse(400, "A header comes twice that may come only once.")
        else:
            by_name[name] += b", " + value
    return by_name


def _id_of(body: bytes) -> bytes:
    with contextlib.suppress(ValueError):
        return calls.response_id(raw_json.fields(body))
    return b"null"


def _server(target: bytes, rules: Rules) -> str:
    """Return the server that the path names. It is compared, never interpreted."""
    name = target[len(_PATH) :].decode("latin-1") if target.startswith(_PATH) else ""
    if name not in rules.servers:
        _refuse(404, _NOTHING)
    return name


def _check_source(headers: Mapping[bytes, bytes], rules: Rules) -> None:
    """Refuse what a web page may have sent: one that has given its own name our address, or one of another origin."""
    if headers.get(b"host", b"").lower() not in rules.hosts:
        _refuse(421, "The header Host names another host. Use the gateway's address, or set public_url.")
    origin = headers.get(b"origin")
    if origin is not None and origin.lower() not in rules.origins:
        _refuse(403, "The header Origin names a web page that is not allowed.")


def wrong_source(headers: Headers, rules: Rules) -> Rejected | None:
    """The refusal of a request that a web page may have sent, as `check_head` refuses it; None: none has sent it."""
    try:
        _check_source(_by_name(headers, b""), rules)
    except _Refusal as refusal:
        return refusal.response
    return None


def _version(headers: Mapping[bytes, bytes]) -> str:
    value = headers.get(_HEADER_VERSION, b"")
    if value.isascii() and (version := value.decode()) in _VERSIONS:
        return version
    return "" if _HEADER_VERSION not in headers else _UNKNOWN


_UNKNOWN: Final = "?"  # a version in a header that is not known here
_VERSIONS: Final = frozenset({*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS})


def _without_body(method: bytes, head: Head, body: bytes) -> Accepted:
    headers, version = head.headers, head.version
    stateless = version in STATELESS_VERSIONS
    if stateless or method not in (b"GET", b"DELETE"):
        allowed = b"POST" if stateless else b"GET, POST, DELETE"
        _refuse(405, f"The method must be {allowed.decode()}.", headers=((b"Allow", allowed),))
    if version is _UNKNOWN:
        _refuse(400, "The header MCP-Protocol-Version names a version that is not known.")
    if body:
        _refuse(400, "Only a POST has a body.")
    if method == b"GET" and not _accepts(headers.get(b"accept", b""), _EVENTS):
        _refuse(406, "The header Accept must list text/event-stream.")
    return Accepted(
        Kind.STREAM if method == b"GET" else Kind.END,
        head.server,
        Era.HANDSHAKE,
        version,
        session=_valid_session(head),
        last_event=headers.get(b"last-event-id", b"") if method == b"GET" else b"",
        token=head.token,
    )


def _session(headers: Mapping[bytes, bytes]) -> str | None:
    value = headers.get(b"mcp-session-id")
    if value is None:
        return ""
    return value.decode() if 0 < len(value) <= MAX_SESSION_ID and _VISIBLE.issuperset(value) else None


def _valid_session(head: Head) -> str:
    if head.session is None:
        _refuse(404, "There is no session with this Mcp-Session-Id. Initialize a new one.")
    return head.session


def _token(headers: Mapping[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    token = token.strip(b" ")
    return token.decode() if scheme.lower() == b"bearer" and _VISIBLE.issuperset(token) else ""


def _check_types(headers: Mapping[bytes, bytes]) -> None:
    kind = headers.get(b"content-type", b"")
    if kind not in _JSON_TYPES and not _is_json(kind):
        _refuse(415, "The header Content-Type must be application/json, in UTF-8.")
    accept = headers.get(b"accept", b"")
    if accept not in _USUAL_ACCEPT and not (_accepts(accept, _JSON) and _accepts(accept, _EVENTS)):
        _refuse(406, "The header Accept must list application/json and text/event-stream.")


def _is_json(kind: bytes) -> bool:
    name, *settings = (part.strip(b" \t").lower() for part in kind.split(b";"))
    return name == _JSON and all(setting in (b"charset=utf-8", b'charset="utf-8"', b"") for setting in settings)


def _accepts(accept: bytes, wanted: bytes) -> bool:
    """Whether a list of media types allows one: the most specific entry that matches it decides."""
    weights: dict[bytes, bool] = {}
    for entry in accept.lower().split(b","):
        name, *settings = (part.strip(b" \t") for part in entry.split(b";"))
        refused = any(setting.startswith(b"q=") and not setting[2:].strip(b"0.") for setting in settings)
        weights[name] = not refused
    for name in (wanted, wanted.partition(b"/")[0] + b"/*", b"*/*"):
        if name in weights:
            return weights[name]
    return False


# --- the body ---

_ABSENT: Final = Raw()


class _Message(Struct):
    """What the head must agree with."""

    raw_id: bytes
    """As spelled, for an error; `null` if it has none."""
    method: str
    is_request: bool
    named: str | None
    """What `Mcp-Name` repeats: the name of a tool or prompt, the address of a resource, the id of a task."""
    arguments: Raw
    version: str | None
    """Of `params._meta`; None: absent."""


def _message(head: Head, body: bytes, parameters: Parameters) -> Accepted:
    version = head.version
    message = _read_call(body)
    if message is not None:
        line = body  # it is ASCII, and has blanks at its ends nowhere; line ends in its arguments are replaced below
        _check_depth(line, head.rules)
    else:
        line = _stripped(body, version, head.rules)
        message = _read(line)
    era = _era(message, head.headers, version)
    stateless = era is Era.STATELESS
    if stateless and not message.method:
        _refuse(400, f"In {version}, an agent sends no responses.", raw_id=message.raw_id)
    _check_mirrors(message, head, parameters, required=stateless and message.is_request)
    return Accepted(
        Kind.MESSAGE,
        head.server,
        era,
        version,
        _one_line(line),
        message.method,
        b"" if message.raw_id == b"null" else message.raw_id,
        "" if stateless else _valid_session(head),
        b"",
        head.token,
    )


def _stripped(body: bytes, version: str, rules: Rules) -> bytes:
    """Return the body without blanks at its ends, if it may be a message."""
    if body.startswith(_BOMS):
        _refuse(400, "The body begins with a byte order mark. Send UTF-8 without one.", PARSE_ERROR)
    line = body.strip(b" \t\r\n")
    if line[:1] == b"[":
        if version in ("", "2025-03-26"):
            _refuse(
                400, "hookproxy does not take batches, which only 2025-03-26 has. Send each message in its own POST."
            )
        _refuse(400, f"{_named(version)} has no batches. Send each message in its own POST.")
    try:
        raw_json.check_utf8(line)
    except raw_json.Unreadable:
        _refuse(400, "The body is not UTF-8.", PARSE_ERROR)
    _check_depth(line, rules)
    return line


def _check_depth(line: bytes, rules: Rules) -> None:
    if nesting.is_deeper(line, rules.max_depth):
        _refuse(400, f"The message is nested deeper than {rules.max_depth} levels.")


def _one_line(line: bytes) -> bytes:
    """Return JSON without line ends: it has them only between tokens, where a blank means the same."""
    return line.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in line or b"\r" in line else line


def _named(version: str) -> str:
    return "This version of MCP" if version is _UNKNOWN else f"MCP {version}"


def _read_call(line: bytes) -> _Message | None:
    """A tool call as nearly every agent writes it, which is read in one go. None: `_read` must look at each member."""
    call = fast_scan.compact_call(line + b"\n") if len(line) < _LONG_LINE else None
    if call is None:
        return None
    raw_id, params = bytes(call.id), call.params
    if not (raw_id.isdigit() or raw_id[:1] == b'"'):
        return None
    version = None
    if len(params.meta):
        raw_meta = bytes(params.meta)
        version = _meta_version(_fields(raw_meta, "The _meta", raw_id), raw_id) if raw_meta[:1] == b"{" else None
    return _Message(raw_id, CALL_TOOL, True, params.name, params.arguments, version)


def _read(line: bytes) -> _Message:
    members = _fields(line, "The message", b"null", PARSE_ERROR)
    raw_id = calls.response_id(members)
    try:
        calls.check_spelling(members)
    except raw_json.Unreadable:
        _refuse(400, "The message has a member that readers take for another one.", raw_id=raw_id)
    _check_envelope(members, raw_id)
    method = raw_json.text(members["method"]) if "method" in members else ""
    if method is None or (not method and "method" in members):
        _refuse(400, "The method of the message is not a text.", raw_id=raw_id)
    raw_params = members.get("params", _ABSENT)
    params: dict[str, Raw] = {}
    version: str | None = None
    if bytes(memoryview(raw_params)[:1]) == b"{":
        params = _fields(raw_params, "The params", raw_id)
        _check_spelling(params, raw_id)
        raw_meta = bytes(params.get("_meta", b""))
        if raw_meta[:1] == b"{":
            version = _meta_version(_fields(raw_meta, "The _meta", raw_id), raw_id)
    key = mirror_headers.named_by(method)
    named = raw_json.text(params[key]) if key in params else None
    return _Message(raw_id, method, bool(method) and "id" in members, named, params.get("arguments", _ABSENT), version)


def _fields(raw: bytes | Raw, what: str, raw_id: bytes, code: int = INVALID_REQUEST) -> dict[str, Raw]:
    try:
        return raw_json.fields(raw)
    except raw_json.DuplicateKeys:
        _refuse(400, f"{what} has a key twice.", raw_id=raw_id)
    except raw_json.Unreadable:
        _refuse(400, f"{what} is not a JSON object.", code, raw_id)


def _check_envelope(members: Mapping[str, Raw], raw_id: bytes) -> None:
    if bytes(members.get("jsonrpc", b"")) != b'"2.0"':
        _refuse(400, 'The message is not JSON-RPC 2.0: "jsonrpc" must be "2.0".', raw_id=raw_id)
    is_answer = "result" in members or "error" in members
    if ("method" in members) == is_answer or ("result" in members and "error" in members):
        _refuse(400, "The message is neither a request, nor a notification, nor a response.", raw_id=raw_id)
    if raw_id == b"null" and ("id" in members or is_answer):
        _refuse(400, "The id of the message is neither a text nor an integer.")


_MIRRORED: Final = {raw_json.folded_key(key): key for key in ("name", "uri", "taskId", "arguments", "_meta")}
"""The members of `params` that headers repeat, by their keys as some readers fold them."""

_USUAL_PARAMS: Final = frozenset({*_MIRRORED.values(), "cursor"})


def _check_spelling(params: Mapping[str, Raw], raw_id: bytes) -> None:
    if params.keys() <= _USUAL_PARAMS:  # nearly every message
        return
    for key in params:
        if _MIRRORED.get(raw_json.folded_key(key), key) != key:
            _refuse(400, "The params have a member that readers take for another one.", raw_id=raw_id)


def _meta_version(meta: Mapping[str, Raw], raw_id: bytes) -> str | None:
    if calls.PROTOCOL_VERSION_KEY not in meta:
        return None
    version = raw_json.text(meta[calls.PROTOCOL_VERSION_KEY])
    if version is None:
        _refuse(400, "The protocol version in _meta is not a text.", raw_id=raw_id)
    return version


# --- what the head and the body both say ---


def _era(message: _Message, headers: Mapping[bytes, bytes], version: str) -> Era:
    """Return the era in which a message was sent: the header and the body must name the same version."""
    named = message.version
    if named is None and version in STATELESS_VERSIONS and not message.is_request:
        return Era.STATELESS  # the text leaves open what the body of a notification says
    if named is None:
        if version in STATELESS_VERSIONS:
            why = "The header MCP-Protocol-Version names a version, and _meta of the message names none."
            _refuse(400, why, INVALID_PARAMS, message.raw_id)
        if version is _UNKNOWN:
            _refuse(400, "The header MCP-Protocol-Version names a version that is not known.", raw_id=message.raw_id)
        return Era.HANDSHAKE
    if headers.get(_HEADER_VERSION) != named.encode("utf-8", "surrogatepass"):
        why = "The header MCP-Protocol-Version is not the version in _meta of the message."
        _refuse(400, why, HEADER_MISMATCH, message.raw_id)
    if version not in STATELESS_VERSIONS:
        _refuse_version(named, message.raw_id)
    if message.method == INITIALIZE:  # a handshake would end the era for all who share the server
        _refuse(404, f"MCP {version} has no initialize.", METHOD_NOT_FOUND, message.raw_id)
    return Era.STATELESS


def _refuse_version(named: str, raw_id: bytes) -> NoReturn:
    reason = "The protocol version is not supported."
    data = raw_json.encode({"supported": STATELESS_VERSIONS, "requested": named})
    error = b'{"code":%d,"message":%b,"data":%b}' % (UNSUPPORTED_VERSION, raw_json.encode(reason), data)
    raise _Refusal(_rejected(400, reason, error, raw_id))


def _check_mirrors(message: _Message, head: Head, parameters: Parameters, *, required: bool) -> None:
    """Compare the headers that repeat the body.

    `Mcp-Param-…` of an argument that is not known here counts for nothing, and goes no further: the server's headers
    are made from the arguments that were judged, and nobody has judged this one.
    """
    known = parameters(head.server, message.named or "") if message.method == CALL_TOOL else None
    if not (head.has_mirrors or required or known):
        return
    headers = head.headers
    _compare("Mcp-Method", headers.get(b"mcp-method"), message.method, message.raw_id, required=required)
    if mirror_headers.named_by(message.method) is not None:
        _compare("Mcp-Name", headers.get(b"mcp-name"), message.named, message.raw_id, required=required)
    if known:
        _check_parameters(message, known, headers, required=required)


def _check_parameters(
    message: _Message, known: ParameterHeaders, headers: Mapping[bytes, bytes], *, required: bool
) -> None:
    try:
        values = mirror_headers.argument_values(known, bytes(message.arguments) or b"{}")
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        _refuse(400, "The arguments cannot be read, or have a key twice.", raw_id=message.raw_id)
    for header in known.values():
        name, value = f"Mcp-Param-{header}", values.get(header)
        must = required and mirror_headers.written(value) is not None
        _compare(name, headers.get(name.lower().encode()), value, message.raw_id, required=must)


def _compare(name: str, sent: bytes | None, meant: object, raw_id: bytes, *, required: bool) -> None:
    """Refuse a header that does not say what the body says."""
    if sent is None:
        if required and meant is not None:
            _refuse(400, f"The header {name} is missing.", HEADER_MISMATCH, raw_id)
        return
    if meant is None or not mirror_headers.agrees(sent, meant):
        _refuse(400, f"The header {name} does not agree with the message.", HEADER_MISMATCH, raw_id)
