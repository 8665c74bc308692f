"""The strings and numbers of a JSON text: what of them a secret is in, and which member a place is in.

Strings are found by their quotes, without a pattern: one that repeats a group takes memory for each escape of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

_JSON: Final = msgspec.json.Decoder(msgspec.Raw)
"""It checks the form, and makes no objects."""
_NUMBER: Final = re.compile(rb"-?[0-9][0-9.eE+-]*")
_BACKSLASH: Final = ord("\\")
_LONGEST_ESCAPE: Final = 6  # \u and four digits
_PAIR: Final = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..")
"""A character that is written as two escapes."""

_BLANKS: Final = 20  # between a name and its colon: nobody writes more


class Found(NamedTuple):
    """A secret in a text."""

    start: int
    end: int
    rule: str
    """The id of what has found it."""


class Finds(Protocol):
    """What finds secrets, as `Finder` does. Threads may use it at the same time."""

    def find(self, text: bytes, /) -> list[Found]:
        """The secrets in a text, in order."""


class Secret(Struct, frozen=True):
    """A secret in a JSON text. A placeholder takes the place of its first part, and nothing the place of the others."""

    rule: str
    value: bytes
    """The text that is replaced, as a reader of the text has it: without the escapes of JSON strings."""
    parts: tuple[tuple[int, int], ...]
    """Where it stands, within the quotes of strings; no escape is cut."""
    is_number: bool = False
    """It is a number, and has one part: what replaces it needs quotes."""

    def __repr__(self) -> str:
        return f"Secret(rule={self.rule!r}, parts={self.parts!r})"


class _Literal(NamedTuple):
    """A number, or what stands between the quotes of a string."""

    start: int
    end: int
    is_number: bool = False


def find_in_json(finder: Finds, raw: bytes) -> list[Secret]:
    """The secrets in a JSON text, in order: what its strings say, and what its names say of its values."""
    found = finder.find(raw)
    return in_literals(raw, found) if found else []


def in_literals(raw: bytes, found: Sequence[Found]) -> list[Secret]:
    """What was found, in order and without overlaps, cut to the strings of the JSON text. Each number is a secret.

    What only begins as JSON is a text: nothing of a secret in it is left because it stands beside a quote.
    """
    if _is_json(raw):
        return _in_literals(raw, found)
    return [Secret(rule, raw[start:end], ((start, end),)) for start, end, rule in found]


def _in_literals(raw: bytes, found: Sequence[Found]) -> list[Secret]:
    secrets: list[Secret] = []
    parts: dict[Found, list[tuple[int, int]]] = {}
    first = 0  # of those found, the first one that ends behind what was read
    last_end = 0  # of the last part
    for literal in _literals(raw):
        while first < len(found) and found[first].end <= literal.start:
            first += 1
        if first == len(found):
            break
        for number in range(first, len(found)):
            if found[number].start >= literal.end:
                break
            if literal.is_number:
                secrets.append(Secret(found[number].rule, raw[literal.start : literal.end], (literal[:2],), True))
                break
            start, end = _part(raw, literal, found[number], last_end)
            if start < end:
                parts.setdefault(found[number], []).append((start, end))
                last_end = end
    secrets += [_secret(raw, place.rule, spans) for place, spans in parts.items()]
    return sorted(secrets, key=lambda secret: secret.parts[0])


def member_at(raw: bytes, place: int, shown: Callable[[str], str]) -> str:
    """The member in which a place is, such as `a.b[0].c`; empty: it is in none. `shown` is how a name is shown."""
    path: list[int | str] = []
    read = 0
    for start, end in strings(raw):
        if start > place:
            break
        _follow(path, raw[read : start - 1])
        read = end + 1
        if path and isinstance(path[-1], str) and raw[read : read + _BLANKS].lstrip().startswith(b":"):
            path[-1] = shown(_read(raw[start:end]).decode(errors="replace"))
    _follow(path, raw[read:place])
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _follow(path: list[int | str], signs: bytes) -> None:
    """Where what follows these signs is: a number is an item of an array, a text a member of an object."""
    for sign in signs:
        if sign in b"{[":
            path.append("" if sign == ord("{") else 0)
        elif sign in b"}]" and path:
            path.pop()
        elif sign == ord(",") and path and isinstance(path[-1], int):
            path[-1] += 1


def strings(raw: bytes) -> Iterator[tuple[int, int]]:
    """Where what stands between the quotes of each string begins and ends."""
    start = raw.find(b'"') + 1
    while start:
        end = raw.find(b'"', start)
        while end >= 0 and _is_escaped(raw, end, start):
            end = raw.find(b'"', end + 1)
        end = end if end >= 0 else len(raw)
        yield start, end
        start = raw.find(b'"', end + 1) + 1


def _is_json(raw: bytes) -> bool:
    try:
        _JSON.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _literals(raw: bytes) -> Iterator[_Literal]:
    read = 0
    for start, end in strings(raw):
        yield from (_Literal(*number.span(), True) for number in _NUMBER.finditer(raw, read, start - 1))
        yield _Literal(start, end)
        read = end + 1
    yield from (_Literal(*number.span(), True) for number in _NUMBER.finditer(raw, read))


def _part(raw: bytes, literal: _Literal, found: Found, last_end: int) -> tuple[int, int]:
    """What of the secret lies in this string behind its last part, with whole escapes; nothing if they are equal."""
    start, end = max(found.start, literal.start), min(found.end, literal.end)
    return max(_escape_at(raw, start, literal.start)[0], last_end), _escape_at(raw, end, literal.start)[1]


def _secret(raw: bytes, rule: str, parts: Sequence[tuple[int, int]]) -> Secret:
    return Secret(rule, b"".join(_read(raw[start:end]) for start, end in parts), tuple(parts))


def _is_escaped(raw: bytes, at: int, start: int) -> bool:
    """True if the backslashes before a sign in the string that begins at `start` escape it."""
    first = at
    while first > start and raw[first - 1] == _BACKSLASH:
        first -= 1
    return (at - first) % 2 == 1


def _escape_at(raw: bytes, at: int, start: int) -> tuple[int, int]:
    """Where the escape begins and ends that is cut at `at` in the string that begins at `start`; none: there itself."""
    pairs = _PAIR.finditer(raw, max(at - 2 * _LONGEST_ESCAPE, start), at + 2 * _LONGEST_ESCAPE)
    pair = next((pair for pair in pairs if pair.start() < at < pair.end()), None)
    if pair is not None:
        return pair.span()
    backslash = raw.rfind(b"\\", max(at - _LONGEST_ESCAPE + 1, start), at)
    if backslash >= 0 and not _is_escaped(raw, backslash, start):
        end = backslash + (_LONGEST_ESCAPE if raw[backslash + 1 : backslash + 2] == b"u" else 2)
        if end > at:
            return backslash, end
    return at, at


def _read(content: bytes) -> bytes:
    """What the content of a JSON string says. What is no such content says what it is: servers write anything."""
    import json

    if b"\\" not in content:
        return content
    try:
        return str(json.loads(b'"' + content + b'"', strict=False)).encode(errors="surrogatepass")
    except ValueError:
        return content
