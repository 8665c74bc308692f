"""What hooks for a system's own commands, reads and edits get of a call of a server's tool that does the same."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

import msgspec

from ...jsonrpc import raw_json

_OLD: Final = ("old_string", "oldText", "old_text", "old_str", "old", "search")
_NEW: Final = ("new_string", "newText", "new_text", "new_str", "new", "replace")
"""How servers spell the two texts of an edit in a list of edits; the first of each is how hook systems do."""


def text(arguments: bytes, name: str) -> str:
    """An argument as text. If the call has no such text, all of its arguments: a guard searches what there is."""
    value = raw_json.text(_members(arguments).get(name, b""))
    return arguments.decode(errors="replace") if value is None else value


def command_line(arguments: bytes, name: str) -> str:
    """The command, with what the call lists as the words after it: a guard looks for both."""
    members = _members(arguments)
    command, words = text(arguments, name), members.get("args", b"")
    if name not in members or not words.startswith(b"["):
        return command
    texts = [raw_json.text(bytes(item)) or bytes(item).decode(errors="replace") for item in raw_json.items(words)]
    return " ".join((command, *texts))


def edits(arguments: bytes) -> list[object]:
    """What is written, as a list of edits, each with the old and the new text. A new file is one edit without an old
    text.

    A call that has texts in several forms shows all of them: an agent must not hide one behind another.
    """
    members = _members(arguments)
    listed = members.pop("edits", b"")
    found = [edit for item in raw_json.items(listed) for edit in _edit(bytes(item))] if listed[:1] == b"[" else []
    if "new_string" in members or "old_string" in members:
        texts = {name: members.pop(name, b'""') for name in ("old_string", "new_string")}
        found.append({name: msgspec.Raw(value) for name, value in texts.items()})
    if "content" in members:
        found.append({"old_string": "", "new_string": msgspec.Raw(members.pop("content"))})
    if not found and listed[:1] != b"[":  # another form: what there is
        found.append({name: msgspec.Raw(value) for name, value in _members(arguments).items()})
    return found


def _members(arguments: bytes) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in raw_json.fields(arguments).items()}


def _edit(item: bytes) -> list[object]:
    """One of a server's list of edits under the usual names. Members that nobody knows stay as they are.

    It becomes several if it has a text under several names, of which the server may read any.
    """
    if not item.startswith(b"{"):
        return [msgspec.Raw(item)]
    edit = _members(item)
    old, new = ([edit.pop(name) for name in names if name in edit] for names in (_OLD, _NEW))
    rest = {name: msgspec.Raw(value) for name, value in edit.items()}
    texts = zip_longest(old, new, fillvalue=b'""') if old or new else ()
    pairs = [{"old_string": msgspec.Raw(before), "new_string": msgspec.Raw(after), **rest} for before, after in texts]
    return list(pairs) or [rest]
