"""A tool call, read so that no server can take it otherwise than its hooks did (law 1)."""

from __future__ import annotations

import contextlib
import os
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..jsonrpc import normalize, raw_json
from ..model.aliases import Alias
from ..model.hooks import Tool
from . import fast_scan
from .responses import Members, Response

if TYPE_CHECKING:
    import msgspec

METHOD: Final = b'"tools/call"'
INITIALIZED: Final = b'"notifications/initialized"'
CANCELLED: Final = b'"notifications/cancelled"'
TASKS_PREFIX: Final = b'"tasks/'
"""What the methods of requests about tasks begin with."""

PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""The member of `params._meta` that makes a request one of the stateless era (2026-07-28 and later)."""

_RUN_ID: Final = os.urandom(4).hex()
"""Tells what is ours from what is another hookproxy's: a server behind us may be one."""

OWN_STATE_PREFIX: Final = f"hookproxy1.{_RUN_ID}."
"""What every requestState of ours begins with, and its format's number."""

CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
"""The member of `params._meta` in which an agent of the stateless era says what it can."""

OWN_ID_PREFIX: Final = b"hookproxy:%b:" % _RUN_ID.encode()
"""What every id of ours begins with."""

CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
"""The member of `params._meta` in which an agent of the stateless era names itself."""

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta", "task", "requestState", "inputResponses"})
_FOLDED: Final = frozenset(key.casefold() for key in _ENVELOPE | _PARAMS)


class Phase(Enum):
    """How far a judged call has come."""

    HELD = auto()  # before its hooks, unknown to the server
    FORWARDED = auto()  # the server has it
    ANSWERED = auto()  # the server's answer is with the hooks
    CANCELLED = auto()  # by the agent: nothing about it reaches the agent any more
    STOPPED = auto()  # by us before it was forwarded: no server gets it, and its answer is on its way


class Call(Struct, eq=False):
    """One judged tool call, from the agent's frame to its answer."""

    key: bytes
    id: bytes
    """The id as the agent spelled it."""
    line: bytes
    tool: str
    arguments: bytes
    """As hooks may read them: normalised; `{}` where there are none."""
    meta: Members
    """Members of `params._meta`."""
    stateless: bool
    task: bool
    """The agent asked for a task handle instead of a result (2025-11-25)."""
    sent_id: bytes = b""
    """The id under which the server knows it, as spelled; empty: the agent's. Set where a hook has it repeated."""
    sent_key: bytes = b""
    """The key under which the server's answer is awaited."""
    stopped_by: str = ""
    """Which hook ended it with all others, and why; empty: none did."""
    phase: Phase = Phase.HELD
    answer: bytes = b""
    response: Response | None = None
    """What the answer says; None: it can be read in two ways."""
    inputs: bytes = b""
    """`params.inputResponses`, as spelled, where the call goes on after somebody asked for input."""
    state: str = ""
    """`params.requestState` of such a call."""
    trace: tuple[tuple[str, str], ...] = ()
    """Variables by which hooks go on with its trace; none: it has none."""

    def stop(self) -> None:
        """No server gets the call any more, if none has it; its answer is still to leave."""
        if self.phase is Phase.HELD:
            self.phase = Phase.STOPPED


class Request(Struct, frozen=True):
    """The parts of a `tools/call` that tell which call it is."""

    id: bytes
    key: bytes
    """What tells it from other requests in flight."""
    tool: str
    arguments: bytes
    """As spelled; empty: there are none. So with `meta`, its `_meta`."""
    meta: bytes
    params: Members = {}
    """All members of its params; none where there are no others than these three."""

    @property
    def state(self) -> str:
        """Its `requestState`."""
        return (raw_json.text(bytes(self.params["requestState"])) or "") if "requestState" in self.params else ""

    @property
    def has_own_state(self) -> bool:
        """It brings back what we sealed, or what looks so: no server is to see that."""
        return self.state.startswith(OWN_STATE_PREFIX)


def id_key(raw: bytes) -> bytes:
    """What all spellings of one id have in common: `7` and `"7"`, and numbers that are one in JavaScript."""
    if fast_scan.is_plain_integer(raw):
        return raw
    if raw[:1] == b'"':
        decoded = raw_json.text(raw) if b"\\" in raw else None
        inner = raw[1:-1] if decoded is None else decoded.encode()
        return id_key(inner) if inner.isdigit() and len(inner) > fast_scan.SAFE_DIGITS else inner
    try:
        number = float(raw)
        return b"%d" % int(number) if number.is_integer() else repr(number).encode()
    except (ValueError, OverflowError):  # null, true, 1e400
        return raw


def new_id() -> bytes:
    """An id of ours that no agent and no server can have chosen: no SDK takes it for a number."""
    return b'"%b%b"' % (OWN_ID_PREFIX, os.urandom(8).hex().encode())


def cancellation(line: bytes, call: Call) -> bytes:
    """The agent's cancellation of a call, naming it as the server knows it."""
    if not call.sent_id:
        return line
    start, end = raw_json.members(line)["params"]
    return raw_json.splice(line, [((start, end), raw_json.with_member(line[start:end], "requestId", call.sent_id))])


def response_id(members: Members) -> bytes:
    """The id as spelled if it is a string or an integer, else `null`."""
    raw = bytes(members.get("id", b"null"))
    return raw if raw[:1] == b'"' or raw_json.is_integer(raw) else b"null"


def method(members: Members) -> bytes:
    """The method as compact JSON without needless escapes; empty where there is none."""
    raw = bytes(members.get("method", b""))
    if b"\\" in raw:
        decoded = raw_json.text(raw)
        return raw if decoded is None else raw_json.encode(decoded)
    return raw


def check_spelling(members: Members) -> None:
    """Raise Unreadable for a key or a method that some readers take for another.

    Go's encoding/json ignores case in keys, and to a reader in C a text ends at NUL.
    """
    if b"\\u0000" in method(members):
        raise raw_json.Unreadable("the method holds a NUL, where some readers stop")
    if not members.keys() <= _ENVELOPE:
        _check_keys(members)


def _check_keys(members: Members) -> None:
    for key in members:
        meant = raw_json.folded_key(key)  # some fold down, some up
        if meant in _FOLDED and key not in _ENVELOPE and key not in _PARAMS:
            raise raw_json.Unreadable(
                f"the member {key!r} is taken for {meant!r} by readers that ignore case or stop at NUL"
            )


def read_batch(line: bytes) -> list[tuple[Members, bytes]]:
    """The messages of a batch, each with its method.

    Raises Unreadable, TwinKeys if it cannot be read, or holds what must come as a message of its own.
    """
    raw_json.check_utf8(line)
    batch = [raw_json.fields(item) for item in raw_json.items(line)]
    methods = [method(members) for members in batch]
    for members in batch:
        check_spelling(members)
    if METHOD in methods:
        raise raw_json.Unreadable("a tool call is not forwarded: send it as a message of its own")
    if any(one.startswith(TASKS_PREFIX) for one in methods):
        raise raw_json.Unreadable("a request about a task is not forwarded: send it as a message of its own")
    if CANCELLED in methods and len(batch) > 1:
        raise raw_json.Unreadable("a cancellation is not forwarded among others: send it as a message of its own")
    return list(zip(batch, methods, strict=True))


def read(members: Members) -> Request:
    """A frame whose method is `tools/call`. Raises Unreadable, TwinKeys: then no server may see it."""
    raw_id = response_id(members)
    if raw_id == b"null":
        raise raw_json.Unreadable("its id is neither a string nor an integer")
    raw = bytes(members.get("params", b""))
    if raw[:1] != b"{":
        raise raw_json.Unreadable("its params are no object")
    params = raw_json.fields(raw)
    if not params.keys() <= _PARAMS:
        _check_keys(params)
    tool = raw_json.text(bytes(params.get("name", b"")))
    if tool is None:
        raise raw_json.Unreadable("it names no tool")
    if "\0" in tool:
        raise raw_json.Unreadable("its tool's name holds a NUL, where some readers stop")
    arguments, said = bytes(params.get("arguments", b"")), bytes(params.get("_meta", b""))
    return Request(raw_id, id_key(raw_id), tool, arguments, said, params)


def tool_name(params: bytes) -> str:
    """The tool that these params of a call name; empty where they name none. Raises Unreadable, TwinKeys."""
    return raw_json.text(bytes(raw_json.fields(params).get("name", b""))) or ""


def from_compact(call: fast_scan.CompactCall) -> Request | None:
    """The same of a call that a glance has read; None: the line is to be read member by member."""
    raw_id, tool = bytes(call.id), call.params.name
    if not tool or "\0" in tool or not (raw_id.isdigit() or raw_id[:1] == b'"'):
        return None
    return Request(raw_id, id_key(raw_id), tool, bytes(call.params.arguments), bytes(call.params.meta))


def meta(raw: bytes) -> Members:
    """The members of a `_meta`; none where it is empty or null. Raises Unreadable, TwinKeys."""
    return {} if raw in (b"", b"null") else raw_json.fields(raw)


def judged_call(request: Request, line: bytes, listed: Tool | None, alias: Alias | None = None) -> Call:
    """The call as its hooks see it. Raises Unreadable, TwinKeys if its arguments can be read in two ways.

    `alias` has the names by which hooks know it, where those are others: under them, too, no two may be one.
    """
    raw = b"{}" if request.arguments in (b"", b"null") else request.arguments
    if raw[:1] != b"{":
        raise raw_json.Unreadable("its arguments are no object")
    arguments, names = normalize.normalize_object(raw)
    _check_argument_names(names, listed)
    if alias is not None:
        alias.for_call(arguments)
    members = meta(request.meta)
    stateless = PROTOCOL_VERSION_KEY in members
    inputs = bytes(request.params.get("inputResponses", b"")) if stateless else b""
    if inputs and inputs[:1] != b"{":
        raise raw_json.Unreadable("its inputResponses are no object")
    if inputs:
        raw_json.fields(inputs)
    return Call(
        key=request.key,
        sent_key=request.key,
        id=request.id,
        line=raw_json.one_line(line),
        tool=request.tool,
        arguments=arguments,
        meta=members,
        stateless=stateless,
        task="task" in request.params and not stateless,
        inputs=inputs,
        state=request.state if request.params else "",
    )


def _check_argument_names(names: Members, listed: Tool | None) -> None:
    """A server that ignores case takes `Path` for `path`, or one of both: a hook that looks at `path` would not."""
    if len(names) > 1 and len({name.casefold() for name in names}) != len(names):
        raise raw_json.Unreadable("two of its arguments have names that differ in case only")
    if listed is None:
        return
    for name in names.keys() - listed.properties:
        if (meant := listed.folded.get(name.casefold())) is not None:
            raise raw_json.Unreadable(f"its argument {name!r} is spelled {meant!r} in the tool's schema")


def client_name(info: msgspec.Raw | None) -> str:
    """Name and version of an agent, as its `clientInfo` gives them; empty where it does not."""
    with contextlib.suppress(ValueError):
        members = raw_json.fields(bytes(info or b"{}"))
        said = (raw_json.text(bytes(members.get(key, b""))) for key in ("name", "version"))
        return " ".join(text for text in said if text)
    return ""
