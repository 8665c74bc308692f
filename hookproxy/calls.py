"""A tool call, read so that no server can take it otherwise than its hooks did (law 1)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import msgspec

from . import wire
from .model import Tool

Members = Mapping[str, msgspec.Raw]

METHOD: Final = b'"tools/call"'
PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""The member of `params._meta` that makes a request one of the stateless era (2026-07-28 and later)."""

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta", "task", "requestState", "inputResponses"})
_FOLDED: Final = frozenset(key.casefold() for key in _ENVELOPE | _PARAMS)


class Phase(Enum):
    """How far a judged call has come."""

    HELD = auto()  # before its hooks, unknown to the server
    FORWARDED = auto()  # the server has it
    ANSWERED = auto()  # the server's answer is with the hooks
    CANCELLED = auto()  # by the agent: nothing about it reaches the agent any more


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says: one of both."""

    result: Members | None = None
    """Its members; none where the result is no object."""
    error: msgspec.Raw | None = None


@dataclass(eq=False, slots=True)
class Call:
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
    phase: Phase = Phase.HELD
    answer: bytes = b""
    said: Said | None = None
    """What the answer says; None: it can be read in two ways."""


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of a `tools/call` that tell which call it is."""

    id: bytes
    tool: str
    params: Members

    @property
    def key(self) -> bytes:
        """What tells it from other requests in flight."""
        return id_key(self.id)


class _Answer(msgspec.Struct, gc=False):
    """An answer with a result as nearly every server writes it, read in one pass: the result may be large."""

    result: dict[str, msgspec.Raw]
    id: msgspec.Raw
    jsonrpc: msgspec.Raw = msgspec.Raw(b"")


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_LEAST_ANSWER: Final = len(b'{"jsonrpc":,"id":,"result":}\n')


def read_answer(line: bytes) -> tuple[bytes, Said] | None:
    """The id of an answer, and what it says; None: the frame is none. Raises Unreadable, TwinKeys."""
    wire.check_text(line)
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        answer = _ANSWER.decode(line)
        result = answer.result
        size = 4 * len(result) + 1 + sum(map(len, result)) + sum(map(len, result.values()))
        if result and size + len(answer.id) + len(answer.jsonrpc) + _LEAST_ANSWER == len(line):
            return bytes(answer.id), Said(result=result)  # every byte is accounted for, as in `wire.fields`
    members = wire.fields(line)
    if "id" not in members or ("method" in members and not members.keys() & {"result", "error"}):
        return None
    return bytes(members["id"]), _said(members)


def _said(members: Members) -> Said:
    if "result" not in members:
        return Said(error=members.get("error", msgspec.Raw(b"{}")))
    if "error" in members:
        raise wire.Unreadable("it holds both a result and an error")
    result = members["result"]
    return Said(result=wire.fields(result) if bytes(memoryview(result)[:1]) == b"{" else {})


def id_key(raw: bytes) -> bytes:
    """What two spellings of one id have in common; `7` and `"7"` are the same id to some peers."""
    if raw[:1] != b'"':
        return raw
    if b"\\" not in raw:
        return raw[1:-1]
    decoded = wire.text(raw)
    return raw[1:-1] if decoded is None else decoded.encode()


def own_id(members: Members) -> bytes:
    """The id as spelled if it is a string or an integer, else `null`."""
    raw = bytes(members.get("id", b"null"))
    return raw if raw[:1] == b'"' or wire.is_integer(raw) else b"null"


def method(members: Members) -> bytes:
    """The method as compact JSON without needless escapes; empty where there is none."""
    raw = bytes(members.get("method", b""))
    if b"\\" in raw:
        decoded = wire.text(raw)
        return raw if decoded is None else wire.encode(decoded)
    return raw


def check_spelling(members: Members) -> None:
    """Raise Unreadable for a key that readers that ignore case (Go's encoding/json) take for one of JSON-RPC's."""
    if members.keys() <= _ENVELOPE:
        return
    for key in members:
        if key.casefold() in _FOLDED and key not in _ENVELOPE and key not in _PARAMS:
            raise wire.Unreadable(f"the member {key!r} is taken for {key.casefold()!r} by readers that ignore case")


def read(members: Members) -> Request:
    """A frame whose method is `tools/call`. Raises Unreadable, TwinKeys: then no server may see it."""
    raw_id = own_id(members)
    if raw_id == b"null":
        raise wire.Unreadable("its id is neither a string nor an integer")
    raw = bytes(members.get("params", b""))
    if raw[:1] != b"{":
        raise wire.Unreadable("its params are no object")
    params = wire.fields(raw)
    if not params.keys() <= _PARAMS:
        check_spelling(params)
    tool = wire.text(bytes(params.get("name", b"")))
    if tool is None:
        raise wire.Unreadable("it names no tool")
    return Request(raw_id, tool, params)


def meta(params: Members) -> Members:
    """The members of `_meta`. Raises Unreadable, TwinKeys."""
    raw = bytes(params.get("_meta", b"null"))
    return {} if raw == b"null" else wire.fields(raw)


def to_judge(request: Request, line: bytes, listed: Tool | None) -> Call:
    """The call as its hooks see it. Raises Unreadable, TwinKeys if its arguments can be read in two ways."""
    raw = bytes(request.params.get("arguments", b"null"))
    if raw == b"null":
        raw = b"{}"
    if raw[:1] != b"{":
        raise wire.Unreadable("its arguments are no object")
    legible = wire.normalise(raw)
    _check_names(legible, listed)
    members = meta(request.params)
    stateless = PROTOCOL_VERSION_KEY in members
    return Call(
        key=request.key,
        id=request.id,
        line=wire.one_line(line),
        tool=request.tool,
        arguments=legible,
        meta=members,
        stateless=stateless,
        task="task" in request.params and not stateless,
    )


def _check_names(arguments: bytes, listed: Tool | None) -> None:
    """A server that ignores case takes `Path` for `path`, or one of both: a hook that looks at `path` would not."""
    names = wire.fields(arguments)
    if len({name.casefold() for name in names}) != len(names):
        raise wire.Unreadable("two of its arguments have names that differ in case only")
    for name in names.keys() - (listed.properties if listed else names.keys()):
        if listed and (meant := listed.folded.get(name.casefold())) is not None:
            raise wire.Unreadable(f"its argument {name!r} is spelled {meant!r} in the tool's schema")


def listed_tools(line: bytes) -> list[Tool]:
    """What a tools/list answer tells; tools that cannot be read are left out, and so stay unknown."""
    tools: list[Tool] = []
    with contextlib.suppress(ValueError, KeyError):
        for item in wire.items(bytes(wire.fields(bytes(wire.fields(line)["result"]))["tools"])):
            with contextlib.suppress(ValueError):
                tools.append(_tool(wire.fields(bytes(item))))
    return tools


def _tool(members: Members) -> Tool:
    name = wire.text(bytes(members.get("name", b"")))
    if name is None:
        raise wire.Unreadable("a tool without a name")
    input_schema = bytes(members.get("inputSchema", b""))
    schema = wire.fields(input_schema) if input_schema[:1] == b"{" else {}
    names = frozenset(wire.fields(bytes(schema["properties"]))) if "properties" in schema else frozenset[str]()
    return Tool(
        name=name,
        input_schema=input_schema,
        output_schema=bytes(members.get("outputSchema", b"")),
        annotations=bytes(members.get("annotations", b"")),
        properties=names,
        folded={name.casefold(): name for name in names},
    )


def introduced(info: msgspec.Raw | None) -> str:
    """Name and version of an agent, as its `clientInfo` gives them; empty where it does not."""
    with contextlib.suppress(ValueError):
        members = wire.fields(bytes(info or b"{}"))
        said = (wire.text(bytes(members.get(key, b""))) for key in ("name", "version"))
        return " ".join(text for text in said if text)
    return ""
