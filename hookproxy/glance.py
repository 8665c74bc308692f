"""Many lines in one look: finds blocks of lines that are certainly no concern of hooks, and says nothing of others.

A glance never decides against a frame. What it passes, the full reading in `switchboard` passes as well: a test holds
that. Its proof is in lengths: when the members of each message and the least punctuation fill every byte of a block,
there is no room for a twin, an unknown member or another spelling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Raw = msgspec.Raw
EXACT_DIGITS: Final = 15
"""Digits of an integer that all JSON readers tell from any other: some keep numbers as doubles."""

_NAMES_LIMIT: Final = 4096  # names of tools that are remembered: more than any server has
_NONE: Final = Raw(b"")


class UsualParams(msgspec.Struct, gc=False):
    """Its params; absent members are empty."""

    name: Raw
    arguments: Raw = _NONE
    meta: Raw = msgspec.field(default=_NONE, name="_meta")


class UsualCall(msgspec.Struct, gc=False):
    """A `tools/call` as nearly every agent writes it; all other frames are errors to its decoder."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: Literal["tools/call"]
    params: UsualParams


class Head(msgspec.Struct, gc=False):
    """What tells an answer from other frames; absent members are empty."""

    id: Raw = _NONE
    method: Raw = _NONE


_CALLS: Final = msgspec.json.Decoder(UsualCall)
_HEADS: Final = msgspec.json.Decoder(Head)
_LEAST: Final = len(b'{"jsonrpc":"2.0","id":,"method":"tools/call","params":{"name":}}\n')
_ARGUMENTS: Final = len(b',"arguments":')
_META: Final = len(b',"_meta":')


class Names(dict[bytes, bool]):
    """Whether a tool is judged, by its name as spelled in JSON."""

    def note(self, name: bytes, judged: bool) -> None:
        """Remember it; the agent chooses names, so the table must not grow for ever."""
        if len(self) >= _NAMES_LIMIT:
            self.clear()
        self[name] = judged


def is_framed(block: bytes) -> bool:
    """True if the block is whole lines, each an object from its first byte to its last, with no blank between.

    Two objects with nothing but a line end between them stand nowhere inside a JSON value: in a block of JSON values
    that is framed so, each line is one of them.
    """
    return block[:1] == b"{" and block[-2:] == b"}\n" and block.count(b"}\n{") + 1 == block.count(b"\n")


def unjudged_calls(block: bytes, judged: Mapping[bytes, bool]) -> list[bytes] | None:
    """The ids of a block of calls of which none is to be judged; None: that cannot be told at a glance.

    `judged` knows tools by their names as spelled in JSON.
    """
    if not (block.isascii() and is_framed(block)) or b"\r" in block:
        return None
    try:
        found = _CALLS.decode_lines(block)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    size = 0
    ids: list[bytes] = []
    for call in found:
        raw_id = unjudged(call, judged)
        if raw_id is None:
            return None
        ids.append(raw_id)
        size += _least_size(call)
    return ids if size == len(block) and len(found) == block.count(b"\n") else None


def unjudged(call: UsualCall, judged: Mapping[bytes, bool]) -> bytes | None:
    """The id of a call that is not to be judged, if it is a number that has one spelling; else None."""
    raw_id = bytes(call.id)
    if judged.get(bytes(call.params.name), True) or not raw_id.isdigit() or len(raw_id) > EXACT_DIGITS:
        return None
    return raw_id


def usual_call(line: bytes) -> UsualCall | None:
    """The `tools/call` in a line that holds nothing else, and nothing that some readers take for a line end; or None.

    No member stands in it twice, or in another spelling; what is inside of `arguments` and `_meta` is not looked at.
    """
    try:
        call = _CALLS.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return call if _least_size(call) == len(line) and line.isascii() and b"\r" not in line else None


def _least_size(call: UsualCall) -> int:
    """Bytes of a line that says this and no more."""
    params = call.params
    size = _LEAST + len(call.id) + len(params.name)
    if params.arguments is not _NONE:
        size += _ARGUMENTS + len(params.arguments)
    if params.meta is not _NONE:
        size += _META + len(params.meta)
    return size


def heads(block: bytes) -> list[Head] | None:
    """The heads of a block of JSON objects, one for each line; None: it is something else, or only may be."""
    try:
        if block.find(b"\n") == len(block) - 1:
            return [_HEADS.decode(block)] if block[:1] == b"{" else None
        if not is_framed(block):
            return None
        found = _HEADS.decode_lines(block)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if len(found) == block.count(b"\n") else None


ENDS: Final = 512  # bytes of a long line's ends that are looked at: the members beside its result are short

_ID: Final = rb'"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*'
_VERSION: Final = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_HEAD_ID: Final = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _VERSION + rb'"(?:result|error)"\s*:')
_HEAD_ANSWER: Final = re.compile(rb"\s*\{\s*" + _VERSION + rb'"(?:result|error)"\s*:')
_TAIL_ID: Final = re.compile(rb"[,{]\s*" + _ID + rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_HEAD_METHOD: Final = re.compile(rb"\s*\{\s*" + _VERSION + rb'"method"\s*:')


def answered_id(head: bytes, tail: bytes) -> bytes | None:
    """The id of an answer of which only both ends are at hand, where real servers write it; None: it cannot be told."""
    found = _HEAD_ID.match(head) or (_HEAD_ANSWER.match(head) and _TAIL_ID.search(tail))
    return found[1] if found else None


def ids_in(tail: bytes) -> list[bytes]:
    """Whatever may be an id in the end of a message: its own, or one that is data."""
    return re.findall(_ID, tail)


def answers_none(head: bytes) -> bool:
    """True if the message that begins so is a request or a notification."""
    return _HEAD_METHOD.match(head) is not None


_HEAD_REQUEST_ID: Final = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _VERSION + rb'"method"\s*:')


def requested_id(head: bytes, tail: bytes) -> bytes | None:
    """The same of a request."""
    found = _HEAD_REQUEST_ID.match(head) or (_HEAD_METHOD.match(head) and _TAIL_ID.search(tail))
    return found[1] if found else None
