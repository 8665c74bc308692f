"""Whether a long message can be read at all in a reasonable time: its text, its depth, its values, its twin keys.

It takes time in proportion to the text, and that may be a second: it is for a process of its own. It only refuses:
what passes is read again by whoever acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from . import nesting, raw_json

MAX_VALUES: Final = 250_000
"""JSON values in a message: no model writes so many, and each takes up to 200 bytes where it is read."""

MAX_MEMBERS: Final = 1_000
"""Members of a message, of its params and of their `_meta`, which are looked at one by one: MCP has a dozen."""

_LOOKED_AT: Final = ("params", "_meta")

MAX_NAME_BYTES: Final = 4096
"""Of an id or a name, which every step compares, keeps or reports: no agent makes a longer one."""

_NAMES: Final = ("id", "method", "jsonrpc", "name", "cursor", "taskId", "requestId", "progressToken")


def why_unreadable(message: bytes, max_depth: int) -> str:
    """Why nobody needs to read this message, in a sentence without a full stop; empty: it may be read."""
    text = message.strip(b" \t\r\n")
    if text[:1] not in (b"{", b"["):
        return "It is not a JSON object"
    if nesting.has_more_values(text, MAX_VALUES):
        return f"It has more than {MAX_VALUES} JSON values"
    if nesting.is_deeper(text, max_depth):
        return f"It is nested deeper than {max_depth} levels"
    try:
        raw_json.check_utf8(text)
        messages = [text] if text[:1] == b"{" else raw_json.items(text)
        if len(messages) > MAX_MEMBERS:
            return f"It is a batch of more than {MAX_MEMBERS} messages"
        return next(filter(None, (_check(raw_json.fields(each)) for each in messages)), "")
    except raw_json.DuplicateKeys:
        return "It has a key twice in one object"
    except raw_json.Unreadable:
        return "It is not JSON that can be read"


def _check(message: Mapping[str, msgspec.Raw]) -> str:
    members = message
    for name in (*_LOOKED_AT, ""):
        if len(members) > MAX_MEMBERS:
            return f"It has an object with more than {MAX_MEMBERS} members"
        for key in _NAMES:
            if len(members.get(key, b"")) > MAX_NAME_BYTES:
                return f"Its {key} has more than {MAX_NAME_BYTES} bytes"
        inner = members.get(name, msgspec.Raw())
        if bytes(memoryview(inner)[:1]) != b"{":
            return ""
        members = raw_json.fields(inner)
    return ""
