"""Content blocks of a tool's result: what a text block is. Everything that reads blocks asks here (law 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json

if TYPE_CHECKING:
    import msgspec

_TEXT_MEMBERS: Final = frozenset({"type", "text", "annotations", "_meta"})
"""The members of a text block. A block with any other, such as an image with a `text`, is more than its text."""


def only_text(members: Mapping[str, msgspec.Raw]) -> str | None:
    """Return the text of a text block; None for a block with anything else in it. Without a type it is a text block."""
    if members.keys() <= _TEXT_MEMBERS and raw_json.text(members.get("type", b'"text"')) == "text":
        return raw_json.text(members.get("text", b""))
    return None


def read_blocks(content: bytes) -> list[dict[str, msgspec.Raw]] | None:
    """Return the members of each content block (none: it is not an object); None if the content is ambiguous."""
    try:
        blocks = raw_json.items(content)
        return [raw_json.fields(block) if bytes(memoryview(block)[:1]) == b"{" else {} for block in blocks]
    except raw_json.AMBIGUOUS:
        return None
