"""Removes secrets whose values are known from texts for people and agents: whole, in parts, whatever their encoding.

A text that quotes a secret often has not all of it: whoever wrote it has cut it, or split it over two lines. So what is
looked for is each run of `PART` characters of a secret. Where several runs overlap, they are one.

Each text is read as it is, and as it reads once its escapes are undone (`_readings`): of URLs, JSON, programs and HTML,
in any case of letters, mixed, and one around another. What is hidden is the part of the text that was read so. Base64
and hexadecimal are not escapes of characters: these are looked for as spellings of the secret itself.

Law: a text is cleaned before it is cut (`shortened`): the beginning of a secret at the end of a text is a secret, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

MARK: Final = "[redacted]"
"""It replaces a secret."""

MAX_SEARCHED: Final = 64 * 1024
"""Characters of the longest text that is searched, which takes 6 ms, in all its readings together. Longer texts are
removed."""

PART: Final = 8
"""Characters of the shortest part that is removed, and of the shortest secret: shorter ones are in ordinary texts."""

_LONG: Final = 4096  # characters of a secret: base64 and hexadecimal of 64 KiB would take 20 MB
_ROUNDS: Final = 5  # of escapes around escapes: a proxy behind a proxy adds one each, and a log two
_LONGEST_ESCAPE: Final = 8  # characters for one, in each round: `&#x1f4a9` has nine, letters and digits six

_ESCAPES: Final = re.compile(
    r"(?:%[0-9A-Fa-f]{2})+|(?:\\x[0-9A-Fa-f]{2})+|(?:\\u[0-9A-Fa-f]{4})+"
    r"|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|\\[\"'\\/bfnrt]"
    r"|&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});?"
)
_HEXADECIMAL: Final = re.compile(rf"[0-9A-Fa-f]{{{PART},}}")
_CONTROLS: Final = dict(zip("bfnrt", "\b\f\n\r\t", strict=True))


class KnownSecrets:
    """What must not be in a text."""

    def __init__(self, secrets: Iterable[str], *, whole: bool = False) -> None:
        """`whole`: parts of them may remain."""
        found = {text for secret in secrets for text in spellings(secret)}
        if whole:
            self._parts = frozenset(found)
        else:
            self._parts = frozenset(text[at : at + PART] for text in found for at in range(len(text) - PART + 1))
        self._whole = sorted(found, key=len, reverse=True) if whole else ()

    def removed_from(self, text: str) -> str:
        """The text with a mark in the place of each secret, and of each part of one."""
        if not self._parts or len(text) < PART:
            return text
        if len(text) > MAX_SEARCHED:
            return f"[redacted: {len(text)} characters, too many to be searched]"
        hidden: list[tuple[int, int]] = []
        searched = 0
        for reading in _readings(text):
            searched += len(reading.text)
            if searched > MAX_SEARCHED:
                return f"[redacted: {len(text)} characters, with too many escapes to be searched]"
            hidden += [reading.place(*span) for span in self._spans(reading.text)]
        return _without(text, hidden) if hidden else text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where there is a secret, or a part of one, in a text as it is read. Hexadecimal may have any case."""
        parts = self._parts
        if not self._whole:
            yield from ((at, at + PART) for at in range(len(text) - PART + 1) if text[at : at + PART] in parts)
        for secret in self._whole:
            yield from _found(secret, text)
        for match in _HEXADECIMAL.finditer(text):
            start, digits = match.start(), match[0].lower()
            if digits != match[0]:
                yield from ((start + first, start + end) for first, end in self._spans(digits))

    def shortened(self, text: str, longest: int) -> str:
        """The first characters of the text, at most so many, without secrets."""
        if not self._parts:
            return text[:longest]
        beyond = 2 * PART * _LONGEST_ESCAPE
        searched = text[: longest + beyond]
        cleaned = self.removed_from(searched)
        if len(searched) < len(text):  # a part at its end may be too short to be found
            cleaned = cleaned[: -(beyond // 2)]
        return cleaned[:longest]

    def removed_from_bytes(self, data: bytes) -> bytes:
        """As `removed_from` for text that may not be UTF-8."""
        if not self._parts:
            return data
        return self.removed_from(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


NO_SECRETS: Final = KnownSecrets(())


@lru_cache(maxsize=64)  # servers with credentials; each session of one needs the same
def _known(secrets: frozenset[str]) -> KnownSecrets:
    return KnownSecrets(secrets)


def known_secrets(secrets: Iterable[str]) -> KnownSecrets:
    """What removes these secrets."""
    return _known(frozenset(secrets))


def _found(secret: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(secret)
    while at >= 0:
        yield at, at + len(secret)
        at = text.find(secret, at + 1)


def _without(text: str, hidden: list[tuple[int, int]]) -> str:
    """The text with a mark in the place of these spans. Those that overlap or touch in one reading are one."""
    pieces: list[str] = []
    kept = end = 0  # the text is kept from the first on; what lies before the second is hidden
    for start, stop in sorted(hidden):
        if start > end or not pieces:
            pieces += (text[kept:start], MARK)
        kept = end = max(end, stop)
    return "".join((*pieces, text[kept:]))


# --- how a secret may be written ---


def spellings(secret: str) -> set[str]:
    """What is looked for in each reading of a text. A secret of several lines is quoted line by line, too."""
    return {spelled for text in {secret, *secret.splitlines()} if len(text) >= PART for spelled in _spellings(text)}


def _spellings(text: str) -> Iterator[str]:
    import base64

    for reading in _readings(text):  # a secret that has something like an escape in it
        yield reading.text
    yield text.replace(" ", "+")  # in the query of a URL
    if len(text) > _LONG:
        return
    data = text.encode(errors="surrogateescape")
    for before in range(3):  # bytes before it in what is encoded, such as the name of a user
        encoded = base64.b64encode(b"\0" * before + data).rstrip(b"=").decode()
        inner = encoded[(0, 2, 3)[before] : len(encoded) - (1 if (before + len(data)) % 3 else 0)]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
    yield data.hex()


class _Reading(Struct, frozen=True):
    """A text as it reads."""

    text: str
    starts: Sequence[int] = ()
    """Where each character begins in the text as it is, and where the last one ends; empty: nothing has changed."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """What was read so, in the text as it is."""
        return (self.starts[start], self.starts[end]) if self.starts else (start, end)


def _readings(text: str) -> Iterator[_Reading]:
    """The text as it is, and after each round of undoing its escapes."""
    reading = _Reading(text)
    yield reading
    for _ in range(_ROUNDS):
        undone = _undone(reading)
        if undone is None:
            return
        reading = undone
        yield reading


def _undone(reading: _Reading) -> _Reading | None:
    """The reading with its escapes undone; None: it has none."""
    text = reading.text
    before = reading.starts or range(len(text) + 1)
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    for match in _ESCAPES.finditer(text):
        characters, sizes = _characters(match[0])
        if not characters:
            continue
        start = match.start()
        pieces += (text[at:start], characters)
        starts += before[at:start]
        for size in sizes:
            starts.append(before[start])
            start += size
        at = match.end()
    if not pieces:
        return None
    starts += before[at:]
    return _Reading("".join((*pieces, text[at:])), starts)


def _characters(escapes: str) -> tuple[str, Sequence[int]]:
    """The characters that escapes stand for, and how long each one's are; none: they stand for nothing."""
    kind = escapes[:2]
    if kind[0] == "%" or kind == "\\x":
        width = 3 if kind[0] == "%" else 4
        text = bytes.fromhex(escapes.replace("%", "").replace("\\x", "")).decode(errors="surrogateescape")
        return text, [width * len(char.encode(errors="surrogateescape")) for char in text]
    if kind == "\\u" and escapes[2:3] != "{":
        units = bytes.fromhex(escapes.replace("\\u", ""))
        text = units.decode("utf-16-be", errors="surrogatepass")
        return text, [12 if ord(char) > 0xFFFF else 6 for char in text]
    if kind[0] == "&":
        char = _entity(escapes)
    elif kind in ("\\u", "\\U"):
        char = _char(int(escapes[2:].strip("{}"), 16))
    else:
        char = _CONTROLS.get(escapes[1], escapes[1])
    return char, [len(escapes), *[0] * (len(char) - 1)] if char else ()


def _entity(escape: str) -> str:
    """The character of an HTML escape; empty: it is none."""
    from html.entities import html5

    name = escape[1:].rstrip(";")
    if name[0] != "#":
        return html5.get(f"{name};", "")
    return _char(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))


def _char(code: int) -> str:
    return chr(code) if code <= 0x10FFFF else ""
