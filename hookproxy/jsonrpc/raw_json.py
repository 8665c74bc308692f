"""Read the members of a JSON message and edit it by splicing, so that all other bytes stay as they came (law 2).

Reading must be unambiguous: JSON that two readers could read differently (duplicate keys) is an error, never a choice.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NoReturn

import msgspec

from . import nesting

Span = tuple[int, int]
"""The place of a value: the offsets of its first byte and of the byte after its last."""


class Unreadable(ValueError):
    """Not JSON, not UTF-8, not of the expected type, or nested too deep to be read."""


class TooDeep(Unreadable):
    """Nested deeper than the readers here go."""

    def __init__(self) -> None:
        super().__init__("nested too deep")


class DuplicateKeys(ValueError):
    """An object has the same key twice: one reader uses the first value, another the last."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} appears twice in one object")
        self.key = key


AMBIGUOUS: Final = (Unreadable, DuplicateKeys)

_UTF8: Final = codecs.getincrementaldecoder("utf-8")
_PIECE_BYTES: Final = 1024 * 1024  # of a line that is decoded together: decoded text takes up to four times as much

_LONG_BYTES: Final = 65_536  # of a line of which a copy costs more than a view

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_STRING: Final = msgspec.json.Decoder(str)
DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder of msgspec raises for text that it does not take for JSON of its type."""

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_INTEGER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_LINE_SEPARATORS: Final = (
    (b"\r", b" "),  # JSON allows it unescaped only between tokens, where a blank means the same
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
"""Bytes that JSON allows unescaped and some readers take for line ends. The others (VT, FF, FS-RS) are not JSON."""


def encode(value: object) -> bytes:
    """Return compact JSON with the fewest escapes and unescaped non-ASCII; `msgspec.Raw` is copied verbatim."""
    return msgspec.json.encode(value)


def text(raw: bytes | msgspec.Raw) -> str | None:
    """Decode a JSON string; None if `raw` is not a string, or has half of a surrogate pair."""
    try:
        return _STRING.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def text_or_json(raw: bytes) -> str:
    """The text of a JSON string; any other value as it is spelled."""
    decoded_text = text(raw)
    return raw.decode(errors="replace") if decoded_text is None else decoded_text


def decoded(raw: bytes | msgspec.Raw) -> object:
    """Return the value of JSON text; None for null, and for what is not JSON."""
    try:
        value: object = msgspec.json.decode(raw)
    except DECODE_ERRORS:
        return None
    return value


def folded_key(key: str) -> str:
    """Return the key as readers take it that ignore case (Go's encoding/json), stop at NUL (in C) or normalise text."""
    if key.isascii():  # nearly every key
        return key.partition("\0")[0].lower()
    from .unicode_text import normalized  # a megabyte, for keys outside of ASCII only

    return normalized("NFKC", key.partition("\0")[0]).upper().casefold()


def loose_key(key: str) -> str:
    """Return the key as servers take it for which `file_path` and `filePath` are the same (pydantic, serde)."""
    return folded_key(key).replace("_", "").replace("-", "")


def is_integer(raw: bytes) -> bool:
    """True for an integer as JSON spells it without fraction and exponent."""
    return _INTEGER.fullmatch(raw) is not None


def check_utf8(line: bytes) -> None:
    """Raise Unreadable unless `line` is UTF-8. (The JSON decoder does not check strings that it skips.)"""
    if line.isascii():
        return
    decoder = _UTF8()
    read = 0
    try:
        for read in range(0, len(line), _PIECE_BYTES):
            decoder.decode(line[read : read + _PIECE_BYTES], read + _PIECE_BYTES >= len(line))
    except UnicodeDecodeError as problem:
        waiting = len(problem.object) - len(line[read : read + _PIECE_BYTES])  # bytes of the piece before
        raise Unreadable(f"not UTF-8 at byte {read + problem.start - waiting}") from None


def fields(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object, each as its exact bytes. Raises Unreadable, DuplicateKeys.

    The decoder keeps only the last of two equal keys, but lengths reveal duplicates: if the keys, the values and the
    least punctuation fill every byte of the object, there is no room for another key. Other spellings are scanned.
    """
    try:
        values = _OBJECT.decode(raw)
    except DECODE_ERRORS:
        values = {}
    size = 4 * len(values) + 1 + sum(map(len, values)) + sum(map(len, values.values()))
    if values and (size == len(raw) or (size + 1 == len(raw) and memoryview(raw)[-1] == 10)):
        return values
    whole = bytes(raw)
    if whole == b"{}":
        return {}
    return {key: msgspec.Raw(whole[start:end]) for key, (start, end) in members(whole).items()}


def members(raw: bytes) -> dict[str, Span]:
    """Return the span of each member's value in a JSON object, in order. Raises Unreadable, DuplicateKeys."""
    try:
        values = _OBJECT.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _scan(raw)  # half of a surrogate pair is an error to the decoder, but not to every reader
    except RecursionError:
        raise TooDeep from None
    for blanks in (0, 1):  # {"a":1,"b":2} as most write it, and {"a": 1, "b": 2} as Python does
        spans = _computed_spans(values, blanks)
        size = max(spans.values(), default=(1, 1))[1] + 1
        if size != len(raw) - raw.endswith(b"\n"):
            continue
        # Without blanks, the size alone is the proof, as in `fields`. With blanks, a duplicate key could fill the
        # place of missing blanks, so the text is compared.
        if not blanks or raw.startswith(
            b"{" + b", ".join(b'"%b": %b' % (key.encode(), bytes(values[key])) for key in values)
        ):
            return spans
    return _scan(raw)


def _computed_spans(values: dict[str, msgspec.Raw], blanks: int) -> dict[str, Span]:
    """Return the spans of the values if the object is spelled with `blanks` blanks after each colon and comma."""
    spans: dict[str, Span] = {}
    start = 1
    for key, value in values.items():
        start += len(key) + 3 + blanks
        spans[key] = (start, start + len(value))
        start += len(value) + 1 + blanks
    return spans


def reject_constant(name: str) -> NoReturn:
    """Raise Unreadable: for Python's decoder, which accepts NaN and Infinity."""
    raise Unreadable(f"{name} is not JSON")


_scan_once: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=reject_constant).scan_once  # type: ignore[attr-defined]  # json.scanner's C scanner; public through JSONDecoder since 2.6


def _scan(raw: bytes) -> dict[str, Span]:
    """Return the spans of an object's members in any spelling; about thirty times slower than the decoder."""
    spans: dict[str, Span] = {}
    for key, span in _walk(raw, _value_end):
        if key in spans:
            raise DuplicateKeys(key)
        spans[key] = span
    return spans


def members_at_any_depth(raw: bytes) -> Iterator[tuple[str, Span]]:
    """Yield each key of an object with the span of its value, also twice, and however deep values are nested.

    Those that are nested too deep are not checked. Raises Unreadable.
    """
    return _walk(raw, _end_at_any_depth)


def _walk(raw: bytes, value_end: Callable[[str, int], int]) -> Iterator[tuple[str, Span]]:
    line = raw.decode("latin-1")  # a character per byte: offsets are the same, and all syntax is ASCII
    at = _skip_blanks(line, 0)
    if line[at : at + 1] != "{":
        raise Unreadable("not a JSON object")
    is_first = True
    at = _skip_blanks(line, at + 1)
    while line[at : at + 1] != "}":
        at = at if is_first else _expect(line, at, ",")
        is_first = False
        end = value_end(line, at)
        key = text(raw[at:end])
        if key is None:
            raise Unreadable("not JSON: a key is not a string")
        start = _expect(line, end, ":")
        end = value_end(line, start)
        yield key, (start, end)
        at = _skip_blanks(line, end)
    if _skip_blanks(line, at + 1) != len(line):
        raise Unreadable("more than one JSON value")


def _value_end(line: str, at: int) -> int:
    try:
        _, end = _scan_once(line, at)
    except (json.JSONDecodeError, StopIteration):
        raise Unreadable("not JSON") from None
    except RecursionError:
        raise TooDeep from None
    return int(end)


def _end_at_any_depth(line: str, at: int) -> int:
    try:
        return _value_end(line, at)
    except TooDeep:
        end = nesting.end_of_value(line[at:].encode("latin-1"))
        if end < 0:
            raise Unreadable("not JSON") from None
        return at + end


def _skip_blanks(line: str, at: int) -> int:
    match = _BLANKS.match(line, at)
    return match.end() if match else at


def _expect(line: str, at: int, sign: str) -> int:
    at = _skip_blanks(line, at)
    if line[at : at + 1] != sign:
        raise Unreadable("not JSON")
    return _skip_blanks(line, at + 1)


def items(raw: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """Return the items of a JSON array, each as its exact bytes. Raises Unreadable."""
    try:
        return _ARRAY.decode(raw)
    except RecursionError:
        raise TooDeep from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unreadable("not a JSON array") from None


def all_items(raw: bytes) -> list[bytes]:
    """As `items`, also where some item has half of a surrogate pair: that item alone may then be unreadable."""
    with contextlib.suppress(Unreadable):
        return list(map(bytes, items(raw)))
    line = raw.decode("latin-1")  # as in `_scan`
    at = _expect(line, 0, "[")
    read: list[bytes] = []
    while line[at : at + 1] != "]":
        at = _expect(line, at, ",") if read else at
        end = _value_end(line, at)
        read.append(raw[at:end])
        at = _skip_blanks(line, end)
    if _skip_blanks(line, at + 1) != len(line):
        raise Unreadable("more than one JSON value")
    return read


def splice(raw: bytes, edits: Sequence[tuple[Span, bytes]]) -> bytes:
    """Replace each span in `raw`. The spans are in order and do not overlap."""
    source = raw if len(raw) < _LONG_BYTES else memoryview(raw)  # so that a long line is copied only once
    pieces: list[bytes | memoryview] = []
    at = 0
    for (start, end), new in edits:
        pieces += (source[at:start], new)
        at = end
    return b"".join((*pieces, source[at:]))


def insertion(raw: bytes, spans: dict[str, Span], name: str, value: bytes) -> tuple[Span, bytes]:
    """Return the edit that sets a member of the object with these `spans`: in place, or as a new last member."""
    if name in spans:
        return spans[name], value
    member = encode(name) + b":" + value
    if spans:
        end = next(reversed(spans.values()))[1]
        return (end, end), b"," + member
    start = raw.index(b"{") + 1
    return (start, start), member


def with_member(raw: bytes, name: str, value: bytes) -> bytes:
    """Set a member of an object; everything else stays as it was. Raises Unreadable, DuplicateKeys."""
    return splice(raw, [insertion(raw, members(raw), name, value)])


def removal(raw: bytes, spans: dict[str, Span], name: str) -> tuple[Span, bytes]:
    """Return the edit that removes an existing member with its comma."""
    names = list(spans)
    at = names.index(name)
    end = spans[name][1]
    if at > 0:
        return (spans[names[at - 1]][1], end), b""
    if len(names) > 1:
        end = raw.index(b",", end) + 1
    return (raw.index(b"{") + 1, end), b""


def without_member(raw: bytes, name: str) -> bytes:
    """Remove a member from an object; return the same bytes if there is none. Raises Unreadable, DuplicateKeys."""
    spans = members(raw)
    return splice(raw, [removal(raw, spans, name)]) if name in spans else raw


def one_line(line: bytes) -> bytes:
    """Replace what some readers take for a line end (a trailing `\\r\\n` is fine) in JSON text: it means the same."""
    if line.isascii() and b"\r" not in line:  # nearly every line
        return line
    body = line.rstrip(b"\r\n")
    ending = line[len(body) :]
    for byte, instead in _LINE_SEPARATORS:
        if byte in body:
            body = body.replace(byte, instead)
    return body + ending[-2:] if ending else body
