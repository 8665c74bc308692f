"""The fast path: it recognises blocks of lines that certainly do not concern hooks, and decides nothing about others.

The fast path never refuses a line. A test checks that `router` also passes these lines when it reads each whole.
The proof is by length: if a message that is written again in the most compact form is as long as its line, the line had
no room for a duplicate key, an unknown member or another spelling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeVar

import msgspec

Raw = msgspec.Raw
SAFE_DIGITS: Final = 15
"""Integers with at most this number of digits are exact in every JSON reader: some readers keep numbers as doubles."""

_MAX_NAMES: Final = 4096  # remembered names of tools: more than any server has
_ABSENT: Final = Raw(b"")
_Message = TypeVar("_Message")


class CompactParams(msgspec.Struct, gc=False, omit_defaults=True):
    """The params of a `CompactCall`; absent members are empty."""

    name: str
    arguments: Raw = _ABSENT
    meta: Raw = msgspec.field(default=_ABSENT, name="_meta")


class CompactCall(msgspec.Struct, gc=False):
    """A `tools/call` as nearly every agent writes it. The decoder rejects every other message."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: Literal["tools/call"]
    params: CompactParams


class Head(msgspec.Struct, gc=False):
    """The members that tell a response from other messages; absent members are empty."""

    id: Raw = _ABSENT
    method: Raw = _ABSENT


_CALLS: Final = msgspec.json.Decoder(CompactCall)
_HEADS: Final = msgspec.json.Decoder(Head)
_ENCODER: Final = msgspec.json.Encoder()


class JudgedTools(dict[str, bool]):
    """Whether each tool is judged, by its name."""

    def note(self, name: str, judged: bool) -> None:
        """Remember one tool. The agent chooses names, so the size of the table is limited."""
        if len(self) >= _MAX_NAMES:
            self.clear()
        self[name] = judged


def unjudged_calls(block: bytes, judged: Mapping[str, bool]) -> list[bytes] | None:
    """Return the ids in a block of calls if none of them is judged; None: the lines must be read one by one.

    Each id is a number with only one spelling. `judged` says for each name whether the tool is judged.
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
    """Decode each line of a block of whole lines; None: some line holds something else."""
    lines = block.split(b"\n")
    if lines.pop():
        return None
    try:
        return [*map(decoder.decode, lines)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_plain_integer(raw_id: bytes) -> bool:
    """True for an integer that all JSON readers take for the same number and spell like this."""
    return raw_id.isdigit() and len(raw_id) <= SAFE_DIGITS


def are_plain_integers(ids: Sequence[bytes]) -> bool:
    """True if all of them are plain integers."""
    return b"".join(ids).isdigit() and len(max(ids, key=len)) <= SAFE_DIGITS


def compact_call(line: bytes) -> CompactCall | None:
    """Return the `tools/call` in a line that holds nothing else and no byte that some readers take for a line end.

    The line has no duplicate key and no other spelling of a key. The inside of `arguments` and `_meta` is not checked.
    """
    try:
        call = _CALLS.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    least = len(_ENCODER.encode(call)) + 1
    return call if least == len(line) and line.isascii() and b"\r" not in line else None


def heads(block: bytes) -> list[Head] | None:
    """Return the head of each line in a block of JSON objects; None: the block holds something else."""
    if block.find(b"\n") < len(block) - 1:
        return _decode_lines(_HEADS, block)
    try:
        return [_HEADS.decode(block)]  # one line is by far the most frequent case, and this takes half the time
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


END_BYTES: Final = 512  # bytes that are read at each end of a long line: all members except the result are short

_ID: Final = rb'"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*'
_VERSION: Final = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_START_WITH_ID: Final = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _VERSION + rb'"(?:result|error)"\s*:')
_START_OF_RESPONSE: Final = re.compile(rb"\s*\{\s*" + _VERSION + rb'"(?:result|error)"\s*:')
_END_WITH_ID: Final = re.compile(rb"[,{]\s*" + _ID + rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_START_WITH_METHOD: Final = re.compile(rb"\s*\{\s*" + _VERSION + rb'"method"\s*:')


def response_id(head: bytes, tail: bytes) -> bytes | None:
    """Return the id of a response from its first and last bytes, where servers write it; None: it is unclear."""
    found = _START_WITH_ID.match(head) or (_START_OF_RESPONSE.match(head) and _END_WITH_ID.search(tail))
    return found[1] if found else None


def possible_ids(tail: bytes) -> list[bytes]:
    """Return everything that may be an id in the last bytes of a message: its own id, or one in its data."""
    return re.findall(_ID, tail)


def is_no_response(head: bytes) -> bool:
    """True if the message that begins with `head` is a request or a notification."""
    return _START_WITH_METHOD.match(head) is not None


_START_OF_REQUEST: Final = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _VERSION + rb'"method"\s*:')


def request_id(head: bytes, tail: bytes) -> bytes | None:
    """Return the id of a request from its first and last bytes; None: it is unclear."""
    found = _START_OF_REQUEST.match(head) or (_START_WITH_METHOD.match(head) and _END_WITH_ID.search(tail))
    return found[1] if found else None
