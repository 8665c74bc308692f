"""The texts that a text may stand for: what is escaped, percent-encoded, base64 or hexadecimal in it, decoded.

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
_MOST: Final = 500_000  # characters of a text, and what is decoded in it: they take up to a second
_SHORTEST: Final = 8  # characters: see `prints`

_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(["\\/bfnrt]))')
_SURROGATE: Final = re.compile("[\\ud800-\\udfff]")
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{11,}")  # of eight bytes, without the `=` at the end
_WRAPPED: Final = re.compile(r"(?:[A-Za-z0-9+/]{60,76}\s+)+[A-Za-z0-9+/]*")  # lines, as programs that encode wrap them
_HEX: Final = re.compile(r"[0-9a-fA-F]{16,}")
_HEX_APART: Final = re.compile(r"[0-9a-fA-F]{2}(?:(?:[\s:-]|,\s?)(?:0x)?[0-9a-fA-F]{2}){7,}")  # as programs print bytes
_NO_HEX: Final = re.compile(r"0x|[\s:,-]")
_SHOWN: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ufffd]{8,}")
_SIGNS: Final = ("%", "&", "+")  # of what is encoded for addresses, forms and pages
_BETWEEN: Final = re.compile("[?&=;/]")  # values in an address
_STANDARD: Final = str.maketrans("-_", "+/")


class TooMuch(Exception):
    """The arguments of a call are too long to be decoded: they may stand for anything."""


def spellings(text: str, rounds: int = _ROUNDS) -> set[str]:
    """The text, and all that it may stand for, with so many encodings around each other. Raises TooMuch."""
    seen, todo, left = {text}, [text], _MOST
    for _ in range(rounds):
        decoded_now: list[str] = []
        for known in todo:
            for decoded in _decoded(known):
                if decoded in seen:
                    continue
                left -= len(decoded)
                if left < 0:
                    raise TooMuch
                seen.add(decoded)
                decoded_now.append(decoded)
        todo = decoded_now
    return seen


def _decoded(text: str) -> Iterator[str]:
    if len(text) > _MOST:
        raise TooMuch
    if "\\" in text:
        unescaped = _ESCAPE.sub(_unescaped, text)
        if _SURROGATE.search(unescaped):  # two of them are a character
            unescaped = unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield unescaped
    if any(sign in text for sign in _SIGNS):
        yield from (unquote(text), html.unescape(text))
        for word in set(text.split()):
            if any(sign in word for sign in _SIGNS):
                yield from (unquote(word), unquote_plus(word), html.unescape(word))
                yield from map(unquote_plus, _BETWEEN.split(word))
    yield from _from_other_alphabets(text)


def _from_other_alphabets(text: str) -> Iterator[str]:
    for run in set(_BASE64.findall(text)):
        if not (run[1:].islower() and run.isalpha()):  # a word
            yield from _from_base64(run)
    for match in _WRAPPED.finditer(text):
        yield from _from_base64("".join(match[0].split()))
    for run in (*_HEX.findall(text), *(_NO_HEX.sub("", run) for run in _HEX_APART.findall(text))):
        for start in range(2):  # a sign before it may look as if it belonged to it
            part = run[start:]
            yield from _texts_in(bytes.fromhex(part[: len(part) - len(part) % 2]))


def _unescaped(match: re.Match[str]) -> str:
    if code := match[1] or match[2]:
        return chr(int(code, 16))
    return _ESCAPED.get(match[3], match[3])


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
