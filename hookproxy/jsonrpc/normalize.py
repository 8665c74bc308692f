"""Normalise JSON for hooks: no spelling may hide anything from a hook that searches the text (law 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from . import raw_json

MAX_NUMBER_CHARACTERS: Final = 400  # a double has 325 at most; Python's reader, and hooks in Python, fail at 4300
_LONG_DIGITS: Final = b"0" * 128  # a longer number has such a run of digits in one of its three parts
_DIGITS_AS_ZERO: Final = bytes.maketrans(b"123456789", b"0" * 9)

_UNICODE_ESCAPE: Final = re.compile(rb"\\u")  # faster than `in`: a pattern skips from backslash to backslash
_SLASH_ESCAPE: Final = re.compile(rb"\\/")

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def normalize(raw: bytes, lenient: bool = False) -> bytes:
    """Return the value without needless escapes; numbers keep their spelling. Raises Unreadable, DuplicateKeys.

    With `lenient`, half surrogate pairs become U+FFFD instead of an error.
    """
    raw_json.check_utf8(raw)
    try:
        if raw[:1] in (b"{", b"[") and not _may_hide(raw) and not _has_long_digits(raw) and _is_compact(raw):
            return raw
        value = decode(raw)
        return raw_json.encode(_without_half_pairs(value) if lenient and b"\\u" in raw else value)
    except RecursionError:
        raise raw_json.TooDeep from None
    except UnicodeEncodeError:
        raise raw_json.Unreadable("half of a surrogate pair, which UTF-8 cannot express") from None


def decode(raw: bytes) -> object:
    """Decode a value, with each number as a `msgspec.Raw` of its spelling. Raises Unreadable, DuplicateKeys."""
    try:
        value: object = _DECODER.decode(raw.decode())
    except RecursionError:
        raise raw_json.TooDeep from None
    except json.JSONDecodeError as problem:
        raise raw_json.Unreadable(f"not JSON: {problem.msg} at byte {problem.pos}") from None
    except UnicodeDecodeError:
        raise raw_json.Unreadable("not UTF-8") from None
    return value


def normalize_object(raw: bytes) -> tuple[bytes, Mapping[str, msgspec.Raw]]:
    """Normalise an object, and return its members as well. Raises Unreadable, DuplicateKeys."""
    is_plain = raw.isascii() and b"\\" not in raw and not _has_long_digits(raw)
    if is_plain and (members := _compact_members(raw)) is not None:
        return raw, members
    normal = normalize(raw)
    return normal, raw_json.fields(normal)


def _has_long_digits(raw: bytes) -> bool:
    """True if there may be a number of more than MAX_NUMBER_CHARACTERS. A pattern takes 36 times as long."""
    return len(raw) >= len(_LONG_DIGITS) and _LONG_DIGITS in raw.translate(_DIGITS_AS_ZERO)


def _without_half_pairs(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_half_pairs(key): _without_half_pairs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_half_pairs(item) for item in value]
    return value


def _number(number: str) -> msgspec.Raw:
    if len(number) > MAX_NUMBER_CHARACTERS:
        raise raw_json.Unreadable(f"a number of {len(number)} characters, which many readers reject")
    return msgspec.Raw(number)


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:  # in linear time: an attacker chooses the number of keys
            if key in seen:
                raise raw_json.DuplicateKeys(key)
            seen.add(key)
    return value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_float=_number, parse_int=_number, parse_constant=raw_json.reject_constant
)


def normalize_output(raw: bytes) -> bytes:
    """Normalise tool output: `raw` itself if it hides nothing. Raises Unreadable, DuplicateKeys."""
    raw_json.check_utf8(raw)
    if raw[:1] in (b"{", b"[") and not _may_hide(raw):
        try:
            _check_duplicates(raw)
        except RecursionError:
            raise raw_json.TooDeep from None
        return raw
    return normalize(raw, lenient=True)


def normalize_blocks(raw: bytes) -> tuple[bytes, Sequence[Mapping[str, msgspec.Raw]] | None]:
    """As `normalize_output`, with the members of each item of an array of objects; None: it was not read as one."""
    raw_json.check_utf8(raw)
    objects = None if _may_hide(raw) else _objects(raw)
    if objects is None:
        return normalize_output(raw), None
    try:
        for value in (value for item in objects for value in item.values()):
            _check_duplicates(value)
    except RecursionError:
        raise raw_json.TooDeep from None
    return raw, objects


def _is_compact(raw: bytes) -> bool:
    """True if there are no blanks between tokens and no duplicate keys. The proof is that of `raw_json.fields`."""
    if raw[:1] == b"{":
        return _compact_members(raw) is not None
    if raw[:1] != b"[":
        return True
    try:
        values = _ARRAY.decode(raw)
    except raw_json.DECODE_ERRORS:
        return False
    return sum(map(len, values)) + max(len(values), 1) + 1 == len(raw) and _are_compact(values)


def _compact_members(raw: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the members of an object without blanks between tokens and without duplicate keys; None for others."""
    try:
        members = _OBJECT.decode(raw)
        size = 3 * len(members) + sum(map(len, members)) + sum(map(len, members.values())) + max(len(members), 1) + 1
        if size != len(raw):
            return None
        flat = raw.count(b"{") == 1 and b"[" not in raw  # like most arguments
        return members if flat or _are_compact(members.values()) else None
    except raw_json.DECODE_ERRORS:  # other decoders may accept it, because they go deeper
        return None


def _are_compact(values: Collection[msgspec.Raw]) -> bool:
    for value in values:  # noqa: SIM110 - a generator costs as much as the check itself
        if bytes(memoryview(value)[:1]) in (b"{", b"[") and not _is_compact(bytes(value)):
            return False
    return True


def _may_hide(raw: bytes) -> bool:
    """True if text may be spelled with `\\u…` or `\\/`. (Also for an escaped backslash before these: harmless.)"""
    return b"\\" in raw and (
        _UNICODE_ESCAPE.search(raw) is not None or (b"/" in raw and _SLASH_ESCAPE.search(raw) is not None)
    )


def _check_duplicates(raw: bytes | msgspec.Raw) -> None:
    """Raise DuplicateKeys if any object inside has duplicate keys; nothing is copied."""
    first = bytes(memoryview(raw)[:1])
    if first == b"{":
        for value in raw_json.fields(raw).values():
            _check_duplicates(value)
    elif first == b"[":
        objects = _objects(raw)
        for value in raw_json.items(raw) if objects is None else (value for item in objects for value in item.values()):
            _check_duplicates(value)


def _objects(raw: bytes | msgspec.Raw) -> list[dict[str, msgspec.Raw]] | None:
    """Return the members of an array's objects, without duplicates (as in `raw_json.fields`); None: it has others."""
    try:
        items = _OBJECTS.decode(raw)
    except raw_json.DECODE_ERRORS:
        return None
    size = sum(4 * len(item) + 1 + sum(map(len, item)) + sum(map(len, item.values())) for item in items)
    return items if items and all(items) and size + len(items) + 1 == len(raw) else None
