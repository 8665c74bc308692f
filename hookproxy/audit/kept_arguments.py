"""What a masked audit keeps of arguments: secrets are masked, and of long ones only the beginning of each text stays.

What must hold: what is kept is at most KEPT bytes and some more for what says what was left out, however long the
arguments are; a secret at which a text is cut is not kept by halves, because texts are masked before they are cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..jsonrpc import normalize, raw_json

if TYPE_CHECKING:
    from ..secrets.mask import Masking

KEPT: Final = 64 * 1024
"""Bytes of arguments that are kept whole, as of what hooks print. A file that an agent writes is rarely longer."""

_KEPT_TEXT: Final = 4096  # characters of each text of longer arguments: what it begins with says what it is
_LONGEST_SECRET: Final = 1024  # characters that are searched behind them: so long is a secret that may begin there
_KEPT_NAME: Final = 256  # characters of a member's name
_DEEPEST: Final = 8  # levels of long arguments that are taken apart: each is read once more


class Kept(Struct, frozen=True):
    """What is kept of some arguments."""

    raw: bytes
    left_out: int = 0
    """Bytes of the arguments that are not kept."""


def kept(raw: bytes, masking: Masking) -> Kept:
    """The arguments as they are kept."""
    if len(raw) <= KEPT:
        return Kept(masking.json(raw))
    try:
        shortened = _Shortening(masking).value(raw, 0)
        short = raw_json.encode(shortened)
    except (ValueError, RecursionError):
        return Kept(raw_json.encode(_left_out(len(raw), "byte")), len(raw))
    return Kept(masking.json(short), max(len(raw) - len(short), 1))


class _Shortening:
    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._room = KEPT

    def value(self, raw: bytes, depth: int) -> object:
        """The value with the long parts left out."""
        if len(raw) <= min(self._room, _KEPT_TEXT):
            self._room -= len(raw)
            return normalize.decode(raw)
        if raw[:1] == b'"':
            return self._text(msgspec.json.decode(raw, type=str), _KEPT_TEXT)
        if depth >= _DEEPEST or self._room <= 0:
            return _left_out(len(raw), "byte")
        return self._object(raw, depth) if raw[:1] == b"{" else self._list(raw, depth)

    def _object(self, raw: bytes, depth: int) -> object:
        members = raw_json.fields(raw)
        result: dict[str, object] = {}
        for number, (name, item) in enumerate(members.items()):
            if self._room <= 0:
                result[_left_out(len(members) - number, "member")] = None
                break
            result[self._text(name, _KEPT_NAME)] = self.value(bytes(item), depth + 1)
        return result

    def _list(self, raw: bytes, depth: int) -> object:
        items = raw_json.items(raw) if raw[:1] == b"[" else []
        result: list[object] = []
        for number, item in enumerate(items):
            if self._room <= 0:
                result.append(_left_out(len(items) - number, "item"))
                break
            result.append(self.value(bytes(item), depth + 1))
        return result if items else _left_out(len(raw), "byte")

    def _text(self, text: str, limit: int) -> str:
        limit = max(min(limit, self._room), 0)
        self._room -= min(limit, len(text)) + 1  # one more, so that also many empty texts come to an end
        if len(text) <= limit:
            return text
        begun = self._masking.text(text[: limit + _LONGEST_SECRET])[:limit]
        return f"{begun}{_left_out(len(text) - limit, 'character')}"


def _left_out(count: int, what: str) -> str:
    return f"[left out: {count:,} {what}{'s' * (count != 1)}]"
