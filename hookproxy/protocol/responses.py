"""Read the responses in lines from the server so that no agent can read them differently (law 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import nesting, raw_json
from . import fast_scan

Members = Mapping[str, msgspec.Raw]

MAX_VALUES: Final = 2_000_000
"""Values in a response that hooks judge: four times those of a dense result of 10 MB. Each takes up to 90 bytes."""

_ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_RESPONSE_MEMBERS: Final = _ENVELOPE - {"method", "params"}
_ABSENT: Final = msgspec.Raw(b"")

NO_ID: Final = b"null"
"""The id of a response that has none: readers take it for one with the id null, which answers no request."""


class Response(Struct, frozen=True):
    """The content of a response: a result or an error."""

    result: Members | None = None
    """The result's members; empty if the result is not an object."""
    other: msgspec.Raw = _ABSENT
    """The result as spelled if it is not an object; empty: it is one, or there is none."""
    error: msgspec.Raw | None = None
    """The error as spelled; empty if the response has neither."""


class ResponseFrame(Struct, frozen=True):
    """A line that is a response."""

    id: bytes
    """The id as spelled; empty: none was found, and the line is not certain."""
    response: Response | None = None
    """The content; None: it was not read closely, or it is ambiguous."""
    certain: bool = True
    """False: some readers may take the line for a response, or for another one, and others not."""
    nothing_else: bool = False
    """It was read closely, and it is a response and nothing else."""


class _CompactResponse(Struct, gc=False):
    """A response with a result as nearly every server writes it, read in one pass, because the result may be large."""

    result: dict[str, msgspec.Raw]
    id: msgspec.Raw
    jsonrpc: msgspec.Raw


_COMPACT_RESPONSE: Final = msgspec.json.Decoder(_CompactResponse)
_COMPACT_BYTES: Final = len(b'{"jsonrpc":,"id":,"result":}\n')


class _Head(fast_scan.Head, gc=False):
    """All members that tell a response from other messages; absent ones are empty."""

    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


_HEAD: Final = msgspec.json.Decoder(_Head)


def read(line: bytes, closely: bool) -> ResponseFrame | None:
    """Return the response in a line that holds an object; None: it is not a response.

    With `closely`, duplicate keys and readers that ignore case are considered, and the content is read.
    Raises Unreadable for a line that is not JSON.
    """
    return _read_closely(line) if closely else _read_head(line)


def _read_head(line: bytes) -> ResponseFrame | None:
    try:
        head = _HEAD.decode(line)
    except raw_json.DECODE_ERRORS:
        return _scan(line)
    if not head.id and (head.method or not (head.result or head.error)):
        return None
    if head.method and not head.result and not head.error:
        return None
    return ResponseFrame(bytes(head.id or NO_ID))


def _read_closely(line: bytes) -> ResponseFrame | None:
    try:
        if nesting.has_more_values(line, MAX_VALUES):
            raise raw_json.Unreadable(f"more than {MAX_VALUES} JSON values")
        raw_json.check_utf8(line)
        return _read_compact(line) or _read_members(raw_json.fields(line))
    except raw_json.TooDeep as problem:  # its content cannot be read here, but its id can
        raw_id = fast_scan.clear_id(line)
        if raw_id is None:
            return ResponseFrame(_possible_id(line, problem), certain=False)
        return ResponseFrame(raw_id, nothing_else=True) if raw_id else None
    except raw_json.AMBIGUOUS as problem:
        return ResponseFrame(_possible_id(line, problem), certain=False)


def _possible_id(line: bytes, problem: ValueError) -> bytes:
    """Return an id that some readers find; empty: this reader finds none. Raises Unreadable if it is not JSON."""
    try:
        return bytes(_HEAD.decode(line).id)
    except raw_json.DECODE_ERRORS:
        if isinstance(problem, raw_json.TooDeep):
            return _last_id(line)
        raise raw_json.Unreadable(str(problem)) from None


def _last_id(line: bytes) -> bytes:
    """Return the last id in an object whose values are nested too deep to be read; empty: none is found."""
    raw_id = b""
    try:
        for key, span in raw_json.members_at_any_depth(line):
            if raw_json.folded_key(key) == "id":
                raw_id = line[slice(*span)]
    except raw_json.AMBIGUOUS:  # some readers stop where it is not JSON
        return b""
    return raw_id


def _read_compact(line: bytes) -> ResponseFrame | None:
    try:
        compact = _COMPACT_RESPONSE.decode(line)
    except raw_json.DECODE_ERRORS:
        return None
    result = compact.result
    size = 4 * len(result) + 1 + sum(map(len, result)) + sum(map(len, result.values()))
    if not result or size + len(compact.id) + len(compact.jsonrpc) + _COMPACT_BYTES != len(line):
        return None
    # Every byte is accounted for, as in `raw_json.fields`.
    return ResponseFrame(bytes(compact.id), Response(result=result), nothing_else=True)


def _read_members(members: Members) -> ResponseFrame | None:
    if not members.keys() <= _ENVELOPE:
        by_meaning = {raw_json.folded_key(key): key for key in members if key not in _ENVELOPE}
        if not by_meaning.keys().isdisjoint(("id", "result", "error")):
            return ResponseFrame(bytes(members.get(by_meaning.get("id", "id"), b"")), certain=False)
    is_response = bool(members.keys() & {"result", "error"})
    if ("method" in members and not is_response) or ("id" not in members and ("method" in members or not is_response)):
        return None
    return ResponseFrame(
        bytes(members.get("id", NO_ID)), _response_of(members), nothing_else=members.keys() <= _RESPONSE_MEMBERS
    )


def _response_of(members: Members) -> Response | None:
    if "result" in members and "error" in members:
        return None
    if "result" not in members:
        return Response(error=members.get("error", _ABSENT))
    result = members["result"]
    try:
        if bytes(memoryview(result)[:1]) != b"{":
            return Response(result={}, other=result)
        return Response(result=raw_json.fields(result))
    except raw_json.AMBIGUOUS:
        return None


def _scan(line: bytes) -> ResponseFrame | None:
    """Read a line that the fast reader rejects, because other readers may accept it as JSON."""
    try:
        members = {key: msgspec.Raw(line[slice(*span)]) for key, span in raw_json.members(line).items()}
    except raw_json.TooDeep:  # its content cannot be read here, but its id can
        raw_id = fast_scan.response_id(line[: fast_scan.END_BYTES], line[-fast_scan.END_BYTES :])
        return None if raw_id is None else ResponseFrame(raw_id)
    except raw_json.DuplicateKeys:
        return None
    frame = _read_members(members)
    return None if frame is None else ResponseFrame(frame.id)
