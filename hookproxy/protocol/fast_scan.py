"""Many lines in one look: finds blocks of lines that are certainly no concern of hooks, and says nothing of others.

A glance never decides against a frame. What it passes, the full reading in `switchboard` passes as well: a test holds
that. Its proof is in lengths: when a message written anew with the least punctuation is as long as its line, there was
no room for a twin, an unknown member or another spelling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeVar

import msgspec

Raw = msgspec.Raw
SAFE_DIGITS: Final = 15
"""Digits of an integer that all JSON readers tell from any other: some keep numbers as doubles."""

_MAX_NAMES: Final = 4096  # names of tools that are remembered: more than any server has
_ABSENT: Final = Raw(b"")
_Message = TypeVar("_Message")


class CompactParams(msgspec.Struct, gc=False, omit_defaults=True):
    """Its params; absent members are empty."""

    name: str
    arguments: Raw = _ABSENT
    meta: Raw = msgspec.field(default=_ABSENT, name="_meta")


class CompactCall(msgspec.Struct, gc=False):
    """A `tools/call` as nearly every agent writes it; all other frames are errors to its decoder."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: Literal["tools/call"]
    params: CompactParams


class Head(msgspec.Struct, gc=False):
    """What tells an answer from other frames; absent members are empty."""

    id: Raw = _ABSENT
    method: Raw = _ABSENT


_CALLS: Final = msgspec.json.Decoder(CompactCall)
_HEADS: Final = msgspec.json.Decoder(Head)
_ENCODER: Final = msgspec.json.Encoder()


class JudgedTools(dict[str, bool]):
    """Whether a tool is judged, by its name."""

    def note(self, name: str, judged: bool) -> None:
        """Remember it; the agent chooses names, so the table must not grow for ever."""
        if len(self) >= _MAX_NAMES:
            self.clear()
        self[name] = judged


def unjudged_calls(block: bytes, judged: Mapping[str, bool]) -> list[bytes] | None:
    """The ids of a block of calls of which none is to be judged; None: that cannot be told at a glance.

    Each id is a number that has one spelling. `judged` knows tools by their names.
    """
    if b"\r" in block or not block.isascii():
        return None
    calls = _decode_lines(_CALLS, block)
    if calls is None or len(_ENCODER.encode_lines(calls)) != len(block):
        return None
    for name in {call.params.name for call in calls}:
        if judged.get(name, True):
            return None
    ids = [bytes(call.id) for call in calls]
    return ids if are_plain_integers(ids) else None


def _decode_lines(decoder: msgspec.json.Decoder[_Message], block: bytes) -> list[_Message] | None:
    """What is on each line of a block, which is whole lines; None: something else is on one."""
    lines = block.split(b"\n")
    if lines.pop():
        return None
    try:
        return [*map(decoder.decode, lines)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_plain_integer(raw_id: bytes) -> bool:
    """The id is an integer that all JSON readers take for the same number, and spell so."""
    return raw_id.isdigit() and len(raw_id) <= SAFE_DIGITS


def are_plain_integers(ids: Sequence[bytes]) -> bool:
    """The same of each of them."""
    return b"".join(ids).isdigit() and len(max(ids, key=len)) <= SAFE_DIGITS


def compact_call(line: bytes) -> CompactCall | None:
    """The `tools/call` in a line that holds nothing else, and nothing that some readers take for a line end; or None.

    No member stands in it twice, or in another spelling; what is inside of `arguments` and `_meta` is not looked at.
    """
    try:
        call = _CALLS.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    least = len(_ENCODER.encode(call)) + 1
    return call if least == len(line) and line.isascii() and b"\r" not in line else None


def heads(block: bytes) -> list[Head] | None:
    """The heads of a block of JSON objects, one for each line; None: it is something else."""
    if block.find(b"\n") < len(block) - 1:
        return _decode_lines(_HEADS, block)
    try:
        return [_HEADS.decode(block)]  # one line is by far the most frequent, and so it is read in half the time
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


END_BYTES: Final = 512  # bytes of a long line's ends that are looked at: the members beside its result are short

_ID: Final = rb'"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*'
_VERSION: Final = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_START_WITH_ID: Final = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _VERSION + rb'"(?:result|error)"\s*:')
_START_OF_RESPONSE: Final = re.compile(rb"\s*\{\s*" + _VERSION + rb'"(?:result|error)"\s*:')
_END_WITH_ID: Final = re.compile(rb"[,{]\s*" + _ID + rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_START_WITH_METHOD: Final = re.compile(rb"\s*\{\s*" + _VERSION + rb'"method"\s*:')


def response_id(head: bytes, tail: bytes) -> bytes | None:
    """The id of an answer of which only both ends are at hand, where real servers write it; None: it cannot be told."""
    found = _START_WITH_ID.match(head) or (_START_OF_RESPONSE.match(head) and _END_WITH_ID.search(tail))
    return found[1] if found else None


def possible_ids(tail: bytes) -> list[bytes]:
    """Whatever may be an id in the end of a message: its own, or one that is data."""
    return re.findall(_ID, tail)


def is_no_response(head: bytes) -> bool:
    """True if the message that begins so is a request or a notification."""
    return _START_WITH_METHOD.match(head) is not None


_START_OF_REQUEST: Final = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _VERSION + rb'"method"\s*:')


def request_id(head: bytes, tail: bytes) -> bytes | None:
    """The same of a request."""
    found = _START_OF_REQUEST.match(head) or (_START_WITH_METHOD.match(head) and _END_WITH_ID.search(tail))
    return found[1] if found else None
