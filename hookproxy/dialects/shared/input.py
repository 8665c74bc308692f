"""Helpers for the input documents of all dialects: UTF-8 text, and one line of JSON. They run for each hook."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from ...jsonrpc import normalize, raw_json
from ...model.content_blocks import only_text
from ...model.hooks import Event, EventContext, Outcome
from ...processes.environment import VARIABLE_LIMIT

T = TypeVar("T")
_ENCODER: Final = msgspec.json.Encoder()


def utf8(text: str) -> str:
    """Text of the operating system or of JSON, with `?` for each character that UTF-8 cannot encode."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def json_line(document: Mapping[str, object]) -> bytearray:
    """The document as one line, line end included. `msgspec.Raw` is copied as it is. All text must be valid UTF-8."""
    written = bytearray()
    _ENCODER.encode_into(document, written)  # not as bytes first: a result may be large, and is copied only once
    written += b"\n"
    return written


def call_members(context: EventContext) -> dict[str, object]:
    """The members about a call that most systems' documents have."""
    return {"tool_name": utf8(context.tool_name), "tool_input": msgspec.Raw(context.arguments)}


def iso_8601(at: float) -> str:
    """A time in seconds since 1970 as text in UTC, to the millisecond."""
    seconds, rest = divmod(round(at * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"


def renamed(members: Mapping[str, T], names: Mapping[str, str], added: Mapping[str, T]) -> dict[str, T]:
    """A call's arguments under a system's names, after those that are `added` for it.

    An argument of the agent that has one of these names itself gets `_` at its end: it is seen, and it hides none.
    """
    taken = {*added, *(new for old, new in names.items() if old in members)}
    found = dict(added)
    for name, value in members.items():
        new = names.get(name, name)
        if name not in names and name in taken:
            while new in taken or new in members or new in found:
                new += "_"
        found[new] = value
    return found


TOOL_INPUT: Final = "HOOK_TOOL_INPUT"
"""The variable with the arguments of a call, for dialects that have it."""

_GUARDED: Final[tuple[str, ...]] = ("command", "file_path", "path", "url", "query")
"""The arguments that guards look at. If the variable cannot hold all arguments, it begins with these."""


def tool_input_variable(arguments: bytes) -> tuple[str, bool]:
    """The value of TOOL_INPUT, and whether it is too long for a variable: then `environment.fit` cuts its end off."""
    text = arguments.decode(errors="replace")
    if len(arguments) + len(TOOL_INPUT) + len("=\0") <= VARIABLE_LIMIT:
        return text, False
    try:
        members = raw_json.fields(arguments)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return text, True
    names = [name for name in _GUARDED if name in members]
    names += [name for name in members if name not in _GUARDED]
    ordered = b",".join(b"%b:%b" % (raw_json.encode(name), bytes(members[name])) for name in names)
    return (b"{%b}" % ordered).decode(errors="replace"), True


def result_text(outcome: Outcome) -> str:
    """All that the model could read in a result, as text. If there was no result, the error message.

    Text blocks are copied as they are, other blocks as their own text or as JSON, separated by line ends. What the
    result has besides its blocks follows as JSON.
    """
    if not outcome.has_result:
        return outcome.error
    structured = b"" if outcome.repeats_structured else outcome.structured
    more = (raw.decode(errors="replace") for raw in (structured, outcome.more) if raw)
    return "\n".join((*block_texts(outcome.content), *more))


def utf8_result(context: EventContext) -> str:
    """The `result_text` of an event's call, as UTF-8. Empty if there is none."""
    return utf8(result_text(context.outcome)) if context.outcome else ""


def tool_response(outcome: Outcome) -> bytes:
    """The result as JSON: its content blocks; the whole result as an object if it has more than content blocks."""
    return outcome.whole or outcome.content


def structured_member(outcome: Outcome) -> bytes:
    """The member `structuredContent` of a result as JSON with a comma before it, for systems that show all of MCP's.

    Empty if there is none, or if its text, which a text block has as well, could be read in two ways.
    """
    try:
        structured = normalize.normalize_output(outcome.structured) if outcome.structured else b""
    except ValueError:
        return b""
    return b',"structuredContent":%b' % structured if structured else b""


def block_texts(content: bytes) -> list[str]:
    """Each content block of a JSON array as text."""
    try:
        return [_block(bytes(block)) for block in raw_json.items(content)]
    except raw_json.Unreadable:
        return [content.decode(errors="replace")]


def _block(raw: bytes) -> str:
    """A text block as its text, anything else as JSON: an image may have a `text` as well."""
    text = None
    with contextlib.suppress(raw_json.Unreadable, raw_json.DuplicateKeys):
        text = only_text(raw_json.fields(raw))
    return raw.decode(errors="replace") if text is None else text


def session_event(context: EventContext) -> dict[str, object]:
    """The members of a document about a session's begin or end, or a notification, as Claude Code names them."""
    if context.event is Event.NOTIFICATION:
        return {"message": utf8(context.message), "notification_type": context.trigger}
    return {"source" if context.event is Event.SESSION_START else "reason": context.trigger}
