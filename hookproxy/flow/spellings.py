"""The texts that an argument may stand for: what is escaped, percent-encoded, base64 or hexadecimal in it, decoded.

Decoding is tried wherever it is possible, also within what was decoded before: what makes no sense matches nothing.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, unquote_plus

_ROUNDS: Final = 3  # encodings around each other
_MOST: Final = 500_000  # characters of a text, and what is decoded in it: they take 200 ms
_SHORTEST: Final = 8  # characters: see `prints`

_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{11,}")  # of eight bytes, without the `=` at the end
_WRAPPED: Final = re.compile(r"(?:[A-Za-z0-9+/]{60,76}\s+)+[A-Za-z0-9+/]*")  # lines, as programs that encode wrap them
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
_SHOWN: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ufffd]{8,}")
_STANDARD: Final = str.maketrans("-_", "+/")


class TooMuch(Exception):
    """The arguments of a call are too long to be decoded: they may stand for anything."""


def spellings(text: str) -> set[str]:
    """The text, and all that it may stand for. Raises TooMuch."""
    seen, todo, left = {text}, [text], _MOST
    for _ in range(_ROUNDS):
        found: list[str] = []
        for known in todo:
            for decoded in _decoded(known):
                left -= len(decoded)
                if left < 0:
                    raise TooMuch
                if decoded not in seen:
                    seen.add(decoded)
                    found.append(decoded)
        todo = found
    return seen


def _decoded(text: str) -> Iterator[str]:
    if len(text) > _MOST:
        raise TooMuch
    if "\\" in text:
        yield _ESCAPE.sub(_unescaped, text)
    if "%" in text or "&" in text:
        for word in set(text.split()):
            yield from (unquote(word), unquote_plus(word), html.unescape(word))
    yield from _from_other_alphabets(text)


def _from_other_alphabets(text: str) -> Iterator[str]:
    for run in set(_BASE64.findall(text)):
        if not (run[1:].islower() and run.isalpha()):  # a word
            yield from _from_base64(run)
    for match in _WRAPPED.finditer(text):
        yield from _from_base64("".join(match[0].split()))
    for match in _HEX.finditer(text):
        yield from _texts_in(bytes.fromhex(match[0]))


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return _ESCAPED.get(match[2], match[2])


def _from_base64(run: str) -> Iterator[str]:
    """The texts in it, wherever the encoded text begins: what stands before may look as if it belonged to it."""
    run = run.translate(_STANDARD)
    for start in range(4):
        part = run[start:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        with_end = part + "=" * (-len(part) % 4)
        try:
            data = base64.b64decode(with_end)
        except (binascii.Error, ValueError):
            continue
        yield from _texts_in(data)


def _texts_in(data: bytes) -> Iterator[str]:
    """The texts in some bytes, also in UTF-16."""
    text = data.replace(b"\0", b"").decode(errors="replace")
    for match in _SHOWN.finditer(text):
        yield match[0]
