"""Read a tool call so that no server can read it differently than its hooks do (law 1)."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..jsonrpc import nesting, normalize, raw_json, survey
from ..model.aliases import Alias
from ..model.decision import Refuse
from ..model.hooks import Tool
from ..model.settings import MAX_DEPTH
from ..policy import methods
from . import argument_names, fast_scan
from .responses import Members, Response

if TYPE_CHECKING:
    import msgspec

    from ..model.reported_call import ReportedCall

METHOD: Final = b'"tools/call"'
INITIALIZED: Final = b'"notifications/initialized"'
CANCELLED: Final = b'"notifications/cancelled"'
TASKS_PREFIX: Final = b'"tasks/'
"""The beginning of the methods of requests about tasks."""

PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""The member of `params._meta` that makes a request one of the stateless era (2026-07-28 and later)."""

MAX_VALUES: Final = survey.MAX_VALUES
"""JSON values in a line of the agent that hooks judge."""

_RUN_ID: Final = os.urandom(4).hex()
"""It distinguishes this process from another hookproxy, which may be the server behind this one."""

STATE_FORMAT: Final = "hookproxy1."
"""The beginning of every requestState of any hookproxy: the number of its format. Then comes whose it is."""

OWN_STATE_PREFIX: Final = f"{STATE_FORMAT}{_RUN_ID}."
"""The beginning of every requestState that this process alone takes back."""

CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
"""The member of `params._meta` in which an agent of the stateless era declares its capabilities."""

OWN_ID_PREFIX: Final = b"hookproxy:%b:" % _RUN_ID.encode()
"""The beginning of every request id of this process."""

SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
"""The member of a result's `_meta` in which a server of the stateless era names itself."""

CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
"""The member of `params._meta` in which an agent of the stateless era names itself."""

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta", "task", "requestState", "inputResponses"})
_FOLDED: Final = frozenset(key.casefold() for key in _ENVELOPE | _PARAMS)


class Phase(Enum):
    """The state of a judged call."""

    HELD = auto()  # its hooks are running; the server does not have it
    FORWARDED = auto()  # the server has it
    ANSWERED = auto()  # hooks are judging the server's response
    CANCELLED = auto()  # by the agent, which gets no more messages about it
    STOPPED = auto()  # by hookproxy before it was forwarded: the server never gets it, and its response will follow


class Progress(Enum):
    """How far a call has come with the server: what can be said about its effect, however it ends."""

    NOT_SENT = auto()  # the server never got it
    NO_RESPONSE = auto()  # the server got it
    ANSWERED = auto()  # the server has answered it


class Call(Struct, eq=False):
    """One judged tool call, from the agent's request to the response."""

    key: bytes
    id: bytes
    """The id as the agent spelled it."""
    line: bytes
    tool: str
    arguments: bytes
    """Normalised, as hooks get them; `{}` if there are none."""
    meta: Members
    """Members of `params._meta`."""
    stateless: bool
    task: bool
    """The agent asked for a task handle instead of a result (2025-11-25)."""
    sent_id: bytes = b""
    """The id under which the server knows a repeated call, as spelled; empty: the agent's id."""
    sent_key: bytes = b""
    """The key under which the server's response is awaited."""
    stopped_by: Refuse | None = None
    """The refusal of another call by which a hook stopped the agent, and thereby ended this call."""
    ended_because: str = ""
    """Why it ends before its response could be given, in a sentence without a full stop; empty: it does not."""
    is_substitute: bool = False
    """The response is not the server's: we have written an error in its place."""
    phase: Phase = Phase.HELD
    progress: Progress = Progress.NOT_SENT
    """The furthest state that it has reached, even if it is repeated later."""
    response_line: bytes = b""
    response: Response | None = None
    """The content of the response; None: it is ambiguous."""
    inputs: bytes = b""
    """`params.inputResponses`, as spelled, if the call continues after an `input_required` result."""
    state: str = ""
    """`params.requestState` of such a call."""
    has_own_state: bool = False
    """It has a request state that looks like hookproxy's own: no server may see it."""
    alias: Alias | None = None
    """The names by which hooks may know the tool and its arguments; None: only the server's own."""
    holds_notifications: bool = False
    """Notifications of the server that may repeat its output wait until its hooks have judged the output."""
    final_arguments: bytes = b""
    """Normalised, as they were forwarded, if notifications wait."""
    progress_passes: bool = False
    """Its progress passes at once nevertheless, as mere numbers."""
    output_passes: bool = False
    """Hooks have judged its output, and replaced nothing of it."""
    trace: tuple[tuple[str, str], ...] = ()
    """Environment variables with which hooks continue its trace; empty: it has none."""
    mcp_method: str = methods.TOOLS_CALL
    """The method; of any other, `tool` is the method as well, and `arguments` are its params (`method_forms`)."""
    listens: bool = False
    """Its response comes only when the server ends the subscription."""
    reported: ReportedCall | None = None
    """What the agent's own hook has reported of it; None: nothing."""
    seconds: float = 0.0
    """How long the server has taken for it so far."""

    @property
    def fails_by_error(self) -> bool:
        """Only a JSON-RPC error can say that it failed: a task, or another method, has no failed result."""
        return self.task or self.mcp_method != methods.TOOLS_CALL

    def stop(self) -> None:
        """Keep the call from the server, if the server does not have it yet. Its response is still to be sent."""
        if self.phase is Phase.HELD:
            self.phase = Phase.STOPPED

    def take_response(self, key: bytes, line: bytes, response: Response | None) -> bool:
        """Note the server's response, under this key of its id. False: none is awaited, or not under this key."""
        if self.phase is not Phase.FORWARDED or key != self.sent_key:
            return False
        self.phase, self.progress = Phase.ANSWERED, Progress.ANSWERED
        self.response_line, self.response = line, response
        return True


class Request(Struct, frozen=True):
    """The parts of a `tools/call` that identify it."""

    id: bytes
    key: bytes
    """The key of the id, the same for all spellings of one id."""
    tool: str
    arguments: bytes
    """As spelled; empty: there are none."""
    meta: bytes
    """`_meta` as spelled; empty: there is none."""
    params: Members = {}
    """All members of its params; empty if there are none besides these three."""
    mcp_method: str = methods.TOOLS_CALL
    listens: bool = False
    """As in Call."""

    @property
    def state(self) -> str:
        """Its `requestState`."""
        return (raw_json.text(bytes(self.params["requestState"])) or "") if "requestState" in self.params else ""


def id_key(raw: bytes) -> bytes:
    """Return a key that is the same for all ids that some reader takes for the same: `7` and `"7"`, 1 and 1.0."""
    if fast_scan.is_plain_integer(raw):
        return raw
    if raw[:1] == b'"':
        decoded = raw_json.text(raw) if b"\\" in raw else None
        inner = raw[1:-1] if decoded is None else decoded.partition("\0")[0].encode()
        return id_key(inner) if inner.isdigit() and len(inner) > fast_scan.SAFE_DIGITS else inner
    try:
        number = float(raw)
        return b"%d" % int(number) if number.is_integer() else repr(number).encode()
    except (ValueError, OverflowError):  # null, true, 1e400
        return raw


def new_id() -> bytes:
    """Return a new id of our own that no agent and no server can have chosen, and that no SDK takes for a number."""
    return b'"%b%b"' % (OWN_ID_PREFIX, os.urandom(8).hex().encode())


def cancellation(line: bytes, call: Call) -> bytes:
    """Return the agent's cancellation, alone in its line or its batch, with the id that the server knows."""
    if not call.sent_id:
        return line
    batch = line.lstrip()[:1] == b"["
    message = bytes(raw_json.items(line)[0]) if batch else line
    start, end = raw_json.members(message)["params"]
    params = raw_json.with_member(message[start:end], "requestId", call.sent_id)
    edited = raw_json.splice(message, [((start, end), params)])
    return b"[%b]\n" % edited if batch else edited


def response_id(members: Members) -> bytes:
    """Return the id as spelled if it is a string or an integer, else `null`."""
    raw = bytes(members.get("id", b"null"))
    return raw if raw[:1] == b'"' or raw_json.is_integer(raw) else b"null"


def method(members: Members) -> bytes:
    """Return the method as compact JSON without needless escapes; empty if there is none."""
    raw = bytes(members.get("method", b""))
    if b"\\" in raw:
        decoded = raw_json.text(raw)
        return raw if decoded is None else raw_json.encode(decoded)
    return raw


def check_spelling(members: Members) -> None:
    """Raise Unreadable for a key or a method that Go's readers, without case, or C's, up to a NUL, take for another."""
    if b"\\u0000" in method(members):
        raise raw_json.Unreadable("the method contains a NUL, where some readers stop")
    if not members.keys() <= _ENVELOPE:
        _check_keys(members)


def _check_keys(members: Members) -> None:
    for key in members:
        meant = raw_json.folded_key(key)  # some readers fold to lower case, some to upper case
        if meant in _FOLDED and key not in _ENVELOPE and key not in _PARAMS:
            raise raw_json.Unreadable(
                f"the member {key!r} is taken for {meant!r} by readers that ignore case or stop at NUL"
            )


def check_param_keys(params: Members) -> None:
    """As `check_spelling` for the keys of params."""
    if not params.keys() <= _PARAMS:
        _check_keys(params)


def read_batch(line: bytes) -> list[tuple[Members, bytes]]:
    """Return the messages of a batch with their methods. Raises ValueError, also if one of them must come alone."""
    raw_json.check_utf8(line)
    batch = [raw_json.fields(item) for item in raw_json.items(line)]
    named = [method(members) for members in batch]
    for members in batch:
        check_spelling(members)
    if METHOD in named:
        raise raw_json.Unreadable("a tool call is not forwarded: send it as a separate message")
    if any(name.startswith(TASKS_PREFIX) for name in named):
        raise raw_json.Unreadable("a request about a task is not forwarded: send it as a separate message")
    if CANCELLED in named and len(batch) > 1:
        raise raw_json.Unreadable("a cancellation is not forwarded with other messages: send it as a separate message")
    return list(zip(batch, named, strict=True))


def read(members: Members) -> Request:
    """Read a message whose method is `tools/call`. Raises Unreadable, DuplicateKeys: then no server may get it."""
    raw_id = response_id(members)
    if raw_id == b"null":
        raise raw_json.Unreadable("its id is neither a string nor an integer")
    raw = bytes(members.get("params", b""))
    if raw[:1] != b"{":
        raise raw_json.Unreadable("its params are not an object")
    params = raw_json.fields(raw)
    check_param_keys(params)
    tool = raw_json.text(bytes(params.get("name", b"")))
    if tool is None:
        raise raw_json.Unreadable("it names no tool")
    if "\0" in tool:
        raise raw_json.Unreadable("its tool's name contains a NUL, where some readers stop")
    if methods.is_method(tool):
        raise raw_json.Unreadable("its tool's name is that of a method, which rules know by this name")
    arguments, meta = bytes(params.get("arguments", b"")), bytes(params.get("_meta", b""))
    return Request(raw_id, id_key(raw_id), tool, arguments, meta, params)


def from_compact(call: fast_scan.CompactCall) -> Request | None:
    """Return the request of a call that the fast path has read; None: the line must be read member by member."""
    raw_id, tool = bytes(call.id), call.params.name
    if not tool or "\0" in tool or methods.is_method(tool) or not (raw_id.isdigit() or raw_id[:1] == b'"'):
        return None
    return Request(raw_id, id_key(raw_id), tool, bytes(call.params.arguments), bytes(call.params.meta))


def meta(raw: bytes) -> Members:
    """Return the members of a `_meta`; none if it is empty or null. Raises Unreadable, DuplicateKeys."""
    return {} if raw in (b"", b"null") else raw_json.fields(raw)


def is_of_this_process(state: str) -> bool:
    """True for a request state that looks as if this process had made it."""
    return state.startswith(OWN_STATE_PREFIX)


def judged_call(
    request: Request,
    line: bytes,
    listed: Tool | None,
    find_alias: Callable[[str, bytes], Alias | None] | None = None,
    max_depth: int = MAX_DEPTH,
    is_own_state: Callable[[str], bool] = is_of_this_process,
) -> Call:
    """Return the call as its hooks see it; `line` is what the server gets if no hook changes it.

    Raises Unreadable, DuplicateKeys if its arguments are ambiguous, under the names by which hooks know them too
    (`find_alias`), or nested deeper than `max_depth`: a hook that gives up on a deep document judges nothing.
    """
    raw = b"{}" if request.arguments in (b"", b"null") else request.arguments
    if raw[:1] != b"{":
        raise raw_json.Unreadable("its arguments are not an object")
    if nesting.has_more_values(raw, MAX_VALUES):
        raise raw_json.Unreadable(f"its arguments have more than {MAX_VALUES} JSON values")
    arguments, names = normalize.normalize_object(raw)
    if nesting.is_deeper(arguments, max_depth):
        raise raw_json.Unreadable(
            f"its arguments are nested deeper than {max_depth} levels (max_depth), where some hooks cannot read them"
        )
    argument_names.check(arguments, names, listed)
    alias = find_alias(request.tool, arguments) if find_alias is not None else None
    members = meta(request.meta)
    stateless = PROTOCOL_VERSION_KEY in members
    inputs = bytes(request.params.get("inputResponses", b"")) if stateless else b""
    if inputs and inputs[:1] != b"{":
        raise raw_json.Unreadable("its inputResponses are not an object")
    if inputs:
        raw_json.fields(inputs)
    state = request.state if request.params else ""
    return Call(
        key=request.key,
        sent_key=request.key,
        id=request.id,
        line=line,
        tool=request.tool,
        arguments=arguments,
        meta=members,
        stateless=stateless,
        task="task" in request.params and not stateless,
        inputs=inputs,
        state=state,
        has_own_state=bool(state) and is_own_state(state),
        alias=alias,
        mcp_method=request.mcp_method,
        listens=request.listens,
    )


def texts_of(info: msgspec.Raw | None, *keys: str) -> str:
    """Return these members of a `serverInfo` or a `clientInfo`, as far as it has them, joined by blanks."""
    try:
        members = raw_json.fields(info or b"{}")
    except ValueError:
        return ""
    return " ".join(filter(None, (raw_json.text(members.get(key, b"")) for key in keys)))
