"""A pattern for a value that finds it however it is written, where the text stands: no text is decoded.

How it works. Each character of the value is a choice of its spellings: as it is, percent-encoded, as an escape of
JSON and of programs, as an entity of HTML, and each of these inside of another one (`%2541`, `%5C%22`, `&amp;#65;`).
A quote may be written as shells and tables write it within quotes. In base64 a value begins at one of three places of
a group of characters. At its ends, a character holds bits of the value and of its neighbour: there, all characters
with the value's bits are a choice. So what is found is every character that has a bit of the value, and nothing else.
The pattern is linear in the value's length, and so is the search.

(`jsonrpc.known_secrets` keeps values out of errors: of short texts, without the package for patterns, and by parts.)
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache
from typing import Final

from .engine import quoted

_ALPHABET: Final = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode()
_NEW_LINE: Final = rb"(?:\\*[rn]|[\r\n])[ \t]*"
_NEW_LINES: Final = b"(?:%s)*" % _NEW_LINE
"""Tools that encode break their lines, and some indent them. In JSON, the break is an escape."""
_BETWEEN_BYTES: Final = b"(?:%s|[ :,-]|0[xX])*" % _NEW_LINE
"""Tools that print bytes set them apart: `4b:64`, `4b 64`, `0x4b, 0x64`."""

_LONGEST: Final = 256
"""Characters of a part: the pattern of so many takes a megabyte."""

_LINE_OF_KEY: Final = re.compile(rb"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_-]{32,%d}" % _LONGEST)
"""A line that is in no ordinary text."""

_BEGINNING: Final = 12
"""Characters that hardly any text has by chance."""

_BACKSLASH: Final = rb"(?:\\|%(?:25)*5[Cc])"
_AMPERSAND: Final = rb"(?:%b*(?:&|%%(?:25)*26)|%b+[ux](?:00)?26)" % (_BACKSLASH, _BACKSLASH)
_SEMICOLON: Final = rb"%b*(?:;|%%(?:25)*3[Bb])" % _BACKSLASH
_NUMBER: Final = rb"%b*(?:\#|%%(?:25)*23)" % _BACKSLASH
_CONTROLS: Final = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r"}


def parts(value: bytes) -> list[bytes]:
    """The value in parts: a long one is found part by part, so that no pattern takes megabytes."""
    text = value.decode(errors="surrogateescape")
    size = -(-len(text) // -(-len(text) // _LONGEST))  # all parts are about as long: none is so short as to be a word
    return [text[at : at + size].encode(errors="surrogateescape") for at in range(0, len(text), size)]


def lines_of_key(value: bytes) -> list[bytes]:
    """The lines of a key, which are found as its parts are: tools show some of a file's lines, with numbers before."""
    lines = value.splitlines()
    return [line for line in lines if _LINE_OF_KEY.fullmatch(line)] if len(lines) > 1 else []


def beginning(value: bytes) -> bytes:
    """The pattern of what a value begins with, which is enough to know that a text has none."""
    text = value.decode(errors="surrogateescape")
    return pattern(text[:_BEGINNING].encode(errors="surrogateescape"))


def pattern(value: bytes) -> bytes:
    """The pattern of a value of at least one byte, which has some hundred times as many bytes."""
    text = value.decode(errors="surrogateescape")
    escaped = b"".join([*map(_within_quotes, text[:-1]), _escaped(text[-1])])
    ways = [escaped, _hexadecimal(value), *(_base64(value, before) for before in range(3))]
    return b"|".join(b"(?:%s)" % way for way in ways)


def _within_quotes(char: str) -> bytes:
    """A character that others follow: a quote may be doubled, or stand between the end and the beginning of quotes."""
    spelled = _escaped(char)
    if char == "'":
        return b"%b(?:%b{1,2}|%b%b%b%b)?" % (spelled, spelled, *(_escaped('"'), spelled) * 2)
    return b"%b%b?" % (spelled, spelled) if char == '"' else spelled


@cache
def _escaped(char: str) -> bytes:
    """A character in all spellings."""
    raw = char.encode(errors="surrogateescape")
    ways = [b"".join(map(_byte, raw)), b"".join(rb"%%(?:25)*(?i:%02x)" % byte for byte in raw), *_entities(char)]
    if ord(char) >= 0x80 and _is_text(char):
        ways.append(b"".join([rb"\xfe"] * (len(char.encode("utf-16-be")) // 2)))  # its escapes, in a reading
    if char == " ":
        ways.append(rb"(?:\+|%(?:25)*2[Bb])")  # in the query of a URL
    plain = b"(?:%s)" % b"|".join(ways)
    if not (char.isalnum() or ord(char) >= 0x80):
        plain = _BACKSLASH + b"*" + plain
    spelled = b"(?:%s)" % b"|".join([plain, *(_BACKSLASH + b"+" + way for way in _escapes(char, raw))])
    return _escaped("\r") + b"?" + spelled if char == "\n" else spelled


def _escapes(char: str, raw: bytes) -> Iterator[bytes]:
    """What stands for the character behind a backslash."""
    again = _BACKSLASH + b"+"
    yield again.join(rb"x(?i:%02x)" % byte for byte in raw)
    yield again.join(rb"0?%03o" % byte for byte in raw)
    if 0x80 <= ord(char) < 0x100:
        yield rb"x(?i:%02x)" % ord(char)
    if _is_text(char):
        units = char.encode("utf-16-be").hex(" ", 2).encode().split()
        yield again.join(rb"u(?i:%s)" % unit for unit in units)
        yield rb"(?:u\{0*(?i:%x)\}|U(?i:%08x))" % (ord(char), ord(char))
    if ord(char) in _CONTROLS:
        yield _CONTROLS[ord(char)]


def _entities(char: str) -> Iterator[bytes]:
    """The entity of HTML for the character, also where its ampersand is one itself."""
    from html.entities import html5

    if _is_text(char):
        names = sorted({name.rstrip(";") for name, text in html5.items() if text == char})
        ways = [rb"%s0*%d" % (_NUMBER, ord(char)), rb"%s[xX]0*(?i:%x)" % (_NUMBER, ord(char)), *map(str.encode, names)]
        yield rb"%s(?:amp%s)*(?:%s)%s?" % (_AMPERSAND, _SEMICOLON, b"|".join(ways), _SEMICOLON)


def _is_text(char: str) -> bool:
    """False for what stands for a byte that is not UTF-8."""
    return not 0xDC80 <= ord(char) <= 0xDCFF


def _byte(byte: int) -> bytes:
    return quoted(bytes((byte,))) if byte < 0x80 else rb"\x%02x" % byte


def _hexadecimal(value: bytes) -> bytes:
    return b"(?i:%s)" % _BETWEEN_BYTES.join(b"%02x" % byte for byte in value)


def _base64(value: bytes, before: int) -> bytes:
    """The value as it stands in base64 behind `before` bytes of something else, or a multiple of three more."""
    bits = "".join(f"{byte:08b}" for byte in value)
    lead = (8 * before) % 6  # bits of the first character that are not the value's
    padded = "?" * lead + bits
    padded += "?" * (-len(padded) % 6)
    return _NEW_LINES.join(_sextet(padded[at : at + 6]) for at in range(0, len(padded), 6))


@cache
def _sextet(bits: str) -> bytes:
    """The characters of base64, also URL-safe, with these bits; `?` may be either."""
    fitting = [
        code
        for code in range(64)
        if all(want in ("?", is_bit) for want, is_bit in zip(bits, f"{code:06b}", strict=True))
    ]
    ways = [quoted(_ALPHABET[code : code + 1]) for code in fitting]
    ways += [b"-", b"%(?:25)*2[Bb]"] if 62 in fitting else []
    ways += [b"_", rb"\\+/", b"%(?:25)*2[Ff]"] if 63 in fitting else []
    return ways[0] if len(ways) == 1 else b"(?:%s)" % b"|".join(ways)
