"""JSON in its canonical form (JCS, RFC 8785): the same value is the same bytes for all who sign or verify it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

_LARGEST: Final = 2**53 - 1
"""The largest integer that every reader of JSON has exactly (RFC 7493)."""


def canonical(value: object) -> bytes:
    """The canonical form. Raises ValueError for what has none here: fractions, large numbers, lone surrogates."""
    try:
        return _text(value).encode()
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair") from None


def _text(value: object) -> str:
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int() if abs(value) <= _LARGEST:
            return str(value)
        case Mapping():
            members = sorted(value.items(), key=lambda member: str(member[0]).encode("utf-16-be", "surrogatepass"))
            return "{" + ",".join(f"{_text(str(name))}:{_text(member)}" for name, member in members) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_text, value)) + "]"
        case _:
            raise ValueError(f"{value!r} has no canonical form here")
