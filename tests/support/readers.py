"""Models of readers of JSON lines: everything that some reader may see in bytes. They are more lenient than any reader.

Bytes are decoded strictly, or without what is not UTF-8; lines end where some reader ends them; comments and trailing
commas may be allowed, and several values on a line; of two members with one name, the first or the last counts; names
may be compared without case, up to a NUL, or normalised.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

MODELS: Final = ("strict", "UTF-8 ignored", "CR", "Unicode line ends", "NUL", "comments")


class Pairs(list[tuple[str, Any]]):
    """An object with all its members in order, duplicates too."""


_DECODER: Final = json.JSONDecoder(object_pairs_hook=Pairs, strict=False, parse_int=str, parse_float=str)
_LENIENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|#[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SPLIT: Final = {
    "CR": re.compile(r"\r\n|\r|\n"),
    "Unicode line ends": re.compile(r"\r\n|[\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"),
    "NUL": re.compile(r"[\n\0]"),
}
_BLANKS: Final = " \t\r\n\ufeff\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029,"


def objects_seen(data: bytes) -> Iterator[tuple[str, Pairs]]:
    """Yield each object that some reader takes for a message, with the model that does."""
    for model, text in _texts(data):
        for value in _values(text):
            yield from ((model, one) for one in (value if _is_batch(value) else [value]) if isinstance(one, Pairs))


def _texts(data: bytes) -> Iterator[tuple[str, str]]:
    decoded = {"strict": data.decode("utf-8", "surrogateescape")}
    if not data.isascii():
        decoded["UTF-8 ignored"] = data.decode("utf-8", "ignore")
    for decoding, text in decoded.items():
        lines = [(decoding, line) for line in text.split("\n")]
        for model, pattern in _SPLIT.items():
            if len(parts := pattern.split(text)) > len(lines):
                lines += [(model, part) for part in parts]
        for model, line in lines:
            yield model, line
            if "/" in line or "#" in line or re.search(r",\s*[}\]]", line):
                yield "comments", _LENIENT.sub(lambda found: found[1] or " ", line)


def value(raw: bytes) -> Any:  # noqa: ANN401  # any JSON
    """A JSON value as the models read it."""
    return _DECODER.decode(raw.decode())


def _is_batch(value: object) -> bool:
    return isinstance(value, list) and not isinstance(value, Pairs)


def _values(line: str) -> Iterator[Any]:
    """The JSON values that stand one after another; the rest of the line is skipped at the first that is none."""
    at = 0
    while at < len(line):
        if line[at] in _BLANKS:
            at += 1
            continue
        try:
            value, at = _DECODER.raw_decode(line, at)
        except (ValueError, RecursionError):
            return
        yield value


def members(pairs: Pairs, name: str) -> list[Any]:
    """Every value that some reader takes for the member with this name."""
    return [value for key, value in pairs if folded(key) == name]


def folded(name: str) -> str:
    """A name as the most lenient reader compares it."""
    return unicodedata.normalize("NFKC", plain(name)).upper().casefold()


def plain(text: str) -> str:
    """A text without what is not UTF-8, as far as C reads it."""
    return text.encode("utf-8", "ignore").decode().partition("\0")[0]


def plain_id(value: object) -> str:
    """An id as readers compare it that keep numbers as doubles, or do not distinguish `7` from `"7"`."""
    text = str(value).partition("\0")[0]
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text)
    return str(int(number)) if number.is_integer() else text
