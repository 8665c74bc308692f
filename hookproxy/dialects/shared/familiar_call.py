"""What hooks for a system's own commands, reads and edits get of a call of a server's tool that does the same."""

from __future__ import annotations

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
    text."""
    members = _members(arguments)
    listed = members.get("edits", b"")
    if listed.startswith(b"["):
        return [_edit(bytes(item)) for item in raw_json.items(listed)]
    old, new = members.get("old_string", b'""'), members.get("new_string", members.get("content"))
    if new is None:  # another form: what there is
        return [msgspec.Raw(msgspec.json.encode({name: msgspec.Raw(value) for name, value in members.items()}))]
    return [{"old_string": msgspec.Raw(old), "new_string": msgspec.Raw(new)}]


def _members(arguments: bytes) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in raw_json.fields(arguments).items()}


def _edit(item: bytes) -> object:
    """One of a server's list of edits under the usual names. Members that nobody knows stay as they are."""
    if not item.startswith(b"{"):
        return msgspec.Raw(item)
    edit = _members(item)
    renamed: dict[str, bytes] = {}
    for spellings in (_OLD, _NEW):
        found = next((name for name in spellings if name in edit), "")
        if found:
            renamed[spellings[0]] = edit.pop(found)
    return {name: msgspec.Raw(value) for name, value in {**renamed, **edit}.items()}
