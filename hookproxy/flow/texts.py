"""The texts in a call and in its result, and what the server says of them: which strings an agent reads as content.

Of a result, words of the protocol are no content. Of a call, everything is: its server may read any member of it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec
from msgspec import Struct

_DEEPEST: Final = 4  # JSON in a text of JSON in a text …
_WORDS_OF_MCP: Final = frozenset({
    "_meta", "annotations", "contents", "description", "isError", "messages", "mimeType", "resource", "resource_link",
    "structuredContent", "resultType",
})  # fmt: skip
"""Names of members, and values, that every server has: whoever repeats them has read nothing."""
_KINDS: Final = frozenset({"type", "role", "mimeType", "jsonrpc", "resultType"})
_KIND: Final = re.compile(
    r"text|image|audio|resource|resource_link|assistant|user|complete|2\.0"
    r"|(?:application|audio|font|image|message|model|multipart|text|video)/[\w.+-]+"
)
_SHORTEST_NUMBER: Final = 4  # characters: results of all kinds have shorter ones
_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)  # as it is written: 1234.50 is not 1234.5
_MOST_EXACT: Final = 10.0**15  # a float below it is exact if it is whole
_BLOB: Final = "blob"
_ANNOTATIONS: Final = "annotations"


class ReadTexts(Struct):
    """What is read in a result."""

    texts: list[str]
    """The strings, and the numbers as texts."""
    names: list[str]
    """The names of members that are not MCP's own: whoever has them may have read them, but they are no values."""
    annotations: list[Mapping[str, object]]
    """What its server says of it, or of a part of it (SEP-1913)."""
    is_call: bool = False
    """They are a call's: everything is content."""


def texts_of(output: bytes, *, is_call: bool = False) -> ReadTexts:
    """All texts in a JSON value, those of JSON in a text among them. Raises ValueError, RecursionError."""
    read = ReadTexts([], [], [], is_call)
    _collect(_DECODER.decode(output), read, 0)
    return read


def annotations_in(output: bytes) -> tuple[Mapping[str, object], ...]:
    """What the server says of a result and its parts; nothing if it cannot be read."""
    if b'"annotations"' not in output:
        return ()
    try:
        return tuple(texts_of(output).annotations)
    except (ValueError, RecursionError):
        return ()


def _collect(value: object, read: ReadTexts, depth: int) -> None:
    if isinstance(value, str):
        _collect_text(value, read, depth)
    elif isinstance(value, list):
        for item in value:
            _collect(item, read, depth)
    elif isinstance(value, dict):
        for name, member in value.items():
            _collect_member(name, member, read, depth)
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        read.texts += [number for number in _written(value) if read.is_call or len(number) >= _SHORTEST_NUMBER]


def _written(number: int | Decimal) -> set[str]:
    """The ways in which a number is written."""
    if isinstance(number, int):
        return {str(number)}
    value = float(number)
    ways = {str(number), str(value)}
    return ways | {str(int(value))} if value.is_integer() and abs(value) < _MOST_EXACT else ways


def _collect_text(text: str, read: ReadTexts, depth: int) -> None:
    read.texts.append(text)
    if depth < _DEEPEST and (inner := _json_in(text)) is not None:
        _collect(inner, read, depth + 1)


def _collect_member(name: str, member: object, read: ReadTexts, depth: int) -> None:
    if name == _ANNOTATIONS and isinstance(member, dict):
        read.annotations.append(member)
    if not read.is_call and name in _KINDS and isinstance(member, str) and _KIND.fullmatch(member):
        return
    if name not in _WORDS_OF_MCP:
        read.names.append(name)
    if name == _BLOB and isinstance(member, str) and (text := _text_of_blob(member)) is not None:
        _collect(text, read, depth)
    _collect(member, read, depth)


def _json_in(text: str) -> object | None:
    """The value, if a text is a JSON object, array or string; else None."""
    stripped = text.strip()
    if stripped[:1] + stripped[-1:] not in ("{}", "[]", '""'):
        return None
    try:
        value: object = _DECODER.decode(stripped)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value


def _text_of_blob(blob: str) -> str | None:
    """The text of a resource that is given as base64; None: it is no text."""
    try:
        return base64.b64decode(blob, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
