"""The fast path: it recognises blocks of lines that certainly do not concern hooks, and decides nothing about others.

The fast path never refuses a line. A test checks that `router` also passes these lines when it reads each whole.
The proof is by length: if a message that is written again in the most compact form is as long as its line, the line had
no room for a duplicate key, an unknown member or another spelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeVar

import msgspec

from ..jsonrpc.nesting import PIECE_BYTES, Nesting
from ..jsonrpc.raw_json import DECODE_ERRORS, folded_key
from ..model.late_pattern import late_pattern

Raw = msgspec.Raw
SAFE_DIGITS: Final = 15
"""Integers with at most this number of digits are exact in every JSON reader: some readers keep numbers as doubles."""

_REMEMBERED_BYTES: Final = 4096  # of a call that is remembered until the next one: nearly all are shorter
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


class ReadCall(msgspec.Struct, gc=False, frozen=True):
    """A `tools/call` that was read and checked already: whoever gets it need not read its line."""

    id: bytes
    """An integer with only one spelling."""
    name: str
    arguments: Raw
    meta: Raw
    """Empty: it has none."""
    line: bytes
    """The whole message, without a line end."""
    version: str = ""
    """The protocol version that `meta` names: it then has no other member of a meaning in MCP but the client's name and
    capabilities. Empty: the call belongs to a session."""


class _CompactResult(msgspec.Struct, gc=False):
    """A response with a result as nearly every server writes it. The decoder rejects every error."""

    jsonrpc: Literal["2.0"]
    id: Raw
    result: Raw


class Head(msgspec.Struct, gc=False):
    """The members that tell a response from other messages; absent members are empty."""

    id: Raw = _ABSENT
    method: Raw = _ABSENT


_CALLS: Final = msgspec.json.Decoder(CompactCall)
_RESULTS: Final = msgspec.json.Decoder(_CompactResult)
_HEADS: Final = msgspec.json.Decoder(Head)
_ENCODER: Final = msgspec.json.Encoder()


def unjudged_calls(block: bytes, judged: Mapping[str, bool]) -> list[bytes] | None:
    """Return the ids, all plain integers, in a block of calls of which none is `judged`; None: read each line."""
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
    except DECODE_ERRORS:
        return None


def is_plain_integer(raw_id: bytes) -> bool:
    """True for an integer that all JSON readers take for the same number and spell like this."""
    return raw_id.isdigit() and len(raw_id) <= SAFE_DIGITS


def are_plain_integers(ids: Sequence[bytes]) -> bool:
    """True if all of them are plain integers."""
    return b"".join(ids).isdigit() and len(max(ids, key=len)) <= SAFE_DIGITS


def compact_call(line: bytes) -> CompactCall | None:
    """Return the `tools/call` in a line that has nothing else, no duplicate key, and no byte some take for a line end.

    The inside of `arguments` and `_meta` is not checked.
    """
    return _known_call(line) if len(line) < _REMEMBERED_BYTES else _compact_call(line)


def _compact_call(line: bytes, line_end: int = 1) -> CompactCall | None:
    """As `compact_call`; `line_end` is how many bytes of the line are its end."""
    try:
        call = _CALLS.decode(line)
    except DECODE_ERRORS:
        return None
    least = len(_ENCODER.encode(call)) + line_end
    return call if least == len(line) and line.isascii() and b"\r" not in line else None


_known_call = lru_cache(maxsize=1)(_compact_call)
"""A gateway checks the line that its router reads next."""


def read_call(line: bytes, version: str = "") -> ReadCall | None:
    """As `compact_call` for a line without its end, if the id is plain. `version` is what the caller knows."""
    call = _compact_call(line, 0)
    if call is None or not is_plain_integer(raw_id := bytes(call.id)) or b"\n" in line:
        return None
    return ReadCall(raw_id, call.params.name, call.params.arguments, call.params.meta, line, version)


def is_result(line: bytes, raw_id: bytes) -> bool:
    """True for a response with this id, a result, nothing else, and no line end. Inside, the result is not checked."""
    return _is_known_result(line, raw_id) if len(line) < _REMEMBERED_BYTES else _is_result(line, raw_id)


def _is_result(line: bytes, raw_id: bytes) -> bool:
    try:
        response = _RESULTS.decode(line)
    except DECODE_ERRORS:
        return False
    return bytes(response.id) == raw_id and len(_ENCODER.encode(response)) == len(line)


_is_known_result = lru_cache(maxsize=1)(_is_result)
"""What the client's side of a gateway asks, its multiplexer asks next."""


_ID_FIRST: Final = b'{"jsonrpc":"2.0","id":'


def with_id(line: bytes, raw_id: bytes, new: bytes) -> bytes | None:
    """Return a compact message, whose id is `raw_id`, with another id; None: its id is not where SDKs write it.

    What ends with an id and one brace ends with its own id, because a compact message has no blanks between values.
    """
    if line.startswith(_ID_FIRST):
        return _ID_FIRST + new + line[len(_ID_FIRST) + len(raw_id) :]
    last = b',"id":%b}' % raw_id
    return b'%b,"id":%b}' % (line[: -len(last)], new) if line.endswith(last) else None


def heads(block: bytes) -> list[Head] | None:
    """Return the head of each line in a block of JSON objects; None: the block holds something else."""
    if block.find(b"\n") < len(block) - 1:
        return _decode_lines(_HEADS, block)
    only = head(block)  # one line is by far the most frequent case, and this takes half the time
    return None if only is None else [only]


def head(line: bytes) -> Head | None:
    """Return the head of the one JSON object in a line; None: it holds something else."""
    try:
        return _HEADS.decode(line)
    except DECODE_ERRORS:
        return None


END_BYTES: Final = 512  # bytes that are read at each end of a long line: all members except the result are short

_B: Final = rb"[ \t\r\n]*"  # the blanks of JSON
_ID: Final = rb'"id"' + _B + rb":" + _B + rb'(-?[0-9]+|"[^"\\]*")' + _B
_VERSION_MEMBER: Final = rb'"jsonrpc"' + _B + rb":" + _B + rb'"2\.0"' + _B
_VERSION: Final = rb"(?:" + _VERSION_MEMBER + rb"," + _B + rb")?"
_START: Final = _B + rb"\{" + _B + _VERSION
_RESULT: Final = rb'"(?:result|error)"' + _B + rb":"
_START_WITH_ID: Final = late_pattern(_START + _ID + rb"," + _B + _VERSION + _RESULT)
_START_WITH_ODD_ID: Final = late_pattern(_START + rb'"id"' + _B + rb":" + _B + rb'[^-0-9" \t\r\n]')
_START_OF_RESPONSE: Final = late_pattern(_START + _RESULT)
_END_WITH_ID: Final = late_pattern(rb"[,{]" + _B + _ID + rb"(?:," + _B + _VERSION_MEMBER + rb")?\}" + _B + rb"$")
_METHOD: Final = rb'"method"' + _B + rb":"
_START_WITH_METHOD: Final = late_pattern(_START + _METHOD)
_START_OF_REQUEST: Final = late_pattern(_START + _ID + rb"," + _B + _VERSION + _METHOD)
_REST_OF_METHOD: Final = _B + rb'"[^"\\]*"' + _B + rb"," + _B
_START_OF_PARAMS: Final = late_pattern(
    _START + rb"(?:" + _ID + rb"," + _B + rb")?" + _VERSION + _METHOD + _REST_OF_METHOD + rb'"params"' + _B + rb":"
)
_FIRST_MEMBER: Final = late_pattern(_START + rb'"([^"\\]*)"' + _B + rb":")
_END: Final = late_pattern(
    rb"(?:," + _B + _VERSION_MEMBER + rb")?(?:," + _B + _ID + rb")?(?:," + _B + _VERSION_MEMBER + rb")?\}" + _B
)


def response_id(head: bytes, tail: bytes) -> bytes | None:
    """Return the id of a response from its first and last bytes, where servers write it; None: it is unclear."""
    match = _START_WITH_ID.match(head) or (_START_OF_RESPONSE.match(head) and _END_WITH_ID.search(tail))
    return match[1] if match else None


def begins_with_odd_id(head: bytes) -> bool:
    """True if the message that begins with `head` has an id in its usual place that is neither a number nor a text."""
    return _START_WITH_ODD_ID.match(head) is not None


def begins_with_method(head: bytes) -> bool:
    """True if the message that begins with `head` is a request or a notification."""
    return _START_WITH_METHOD.match(head) is not None


_MAX_END_BYTES: Final = 4096  # of a message's end that may be clear: eight times what servers write, with many blanks


class Envelope:
    """Follows a long message in pieces, and knows what it is when it has ended, although its content is not read.

    Whoever takes the message for JSON finds no other id and no other result in it than the ones known here.
    """

    def __init__(self, head: bytes) -> None:
        with_id, response = _START_WITH_ID.match(head), _START_OF_RESPONSE.match(head)
        request = _START_OF_PARAMS.match(head)
        self._is_response = response is not None
        self._id = with_id[1] if with_id else None
        self._is_known = bool(with_id or response or request)
        start = with_id or response or request
        if start is None and (start := _FIRST_MEMBER.match(head)):
            self._is_known = folded_key(start[1].decode(errors="replace")) not in ("id", "result", "error")
        self._skipped = start.end() if start else 0
        self._nesting = Nesting(1)
        self._end = b""

    def add_piece(self, piece: bytes) -> int:
        """Add the next bytes; return how many of them are content, as is an end that is too long to be clear."""
        if len(self._end) > _MAX_END_BYTES:
            return len(piece)
        if self._end:
            self._end += piece
            return 0
        skipped, self._skipped = min(self._skipped, len(piece)), max(self._skipped - len(piece), 0)
        at = self._nesting.find_end(piece[skipped:] if skipped else piece)
        if at < 0:
            return len(piece)
        self._end = piece[skipped + at :]
        return skipped + at

    def clear_id(self) -> bytes | None:
        """Return the id of the response, after its end: empty if it is not one; None if readers may differ."""
        end = _END.fullmatch(self._end)
        if not (self._is_known and end and self._nesting.is_plain) or (self._id and end[1]):
            return None
        return end[1] if self._is_response else self._id or b""


def clear_id(line: bytes) -> bytes | None:
    """Return the same as `Envelope.clear_id` for a whole line."""
    envelope = Envelope(line[:END_BYTES])
    for at in range(0, len(line), PIECE_BYTES):
        envelope.add_piece(line[at : at + PIECE_BYTES])
    return envelope.clear_id()


def request_id(head: bytes, tail: bytes) -> bytes | None:
    """Return the id of a request from its first and last bytes; None: it is unclear."""
    match = _START_OF_REQUEST.match(head) or (_START_WITH_METHOD.match(head) and _END_WITH_ID.search(tail))
    return match[1] if match else None
