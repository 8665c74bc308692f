"""Writes the input of Codex's hooks: the document on standard input. There are no variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input
from .hook_file import PATCH

_LINE_BREAKS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What some reader of a patch takes for the end of a line."""


_OLD: Final = frozenset({"old_string", "old_text", "oldText", "old_str", "oldString", "search"})
_NEW: Final = frozenset({"new_string", "new_text", "newText", "new_str", "newString", "replace"})
"""The members of an edit as tools spell them. Others are shown as added lines, with their names."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, with its members in Codex's order, and without a line end. Each call counts as a turn."""
    session = context.session
    document: dict[str, object] = {"session_id": shared_input.utf8(session.id)}
    about_call = context.event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.PERMISSION_REQUEST)
    if about_call:
        document["turn_id"] = context.tool_use_id
    document |= {"transcript_path": None, "cwd": shared_input.utf8(session.cwd), "hook_event_name": context.event}
    if context.event is not Event.SESSION_END:
        document |= {"model": "", "permission_mode": "default"}
    if about_call:
        arguments = msgspec.Raw(context.arguments)
        tool_input = {"command": patch_text(context.arguments)} if _is_patch(context) else arguments
        document |= {"tool_name": shared_input.utf8(context.tool_name), "tool_input": tool_input}
    if context.event is Event.POST_TOOL_USE:
        document["tool_response"] = _tool_response(context)
    if about_call and context.event is not Event.PERMISSION_REQUEST:
        document["tool_use_id"] = context.tool_use_id
    if context.event is Event.SESSION_START:
        document["source"] = context.trigger
    if context.event is Event.SESSION_END:
        document["reason"] = "other"  # the only one, as in Codex
    return Document(bytes(shared_input.json_line(document)[:-1]), {})


def real_arguments(spec: HookSpec, context: EventContext, arguments: bytes) -> bytes:
    """The arguments of a rewrite. Raises ValueError for a changed patch: no tool but Codex's own takes one."""
    if not _is_patch(context):
        return arguments
    if raw_json.text(bytes(raw_json.fields(arguments).get("command", b""))) == patch_text(context.arguments):
        return context.arguments
    raise ValueError("they are a patch, and this tool takes none; a hook for its own name can rewrite its arguments")


def patch_text(arguments: bytes) -> str:
    """The patch of Codex's format that does what a call of an Edit-, MultiEdit- or Write-like tool does.

    What such a call has besides is shown as added lines: nothing is kept from a hook.
    """
    members = _members(arguments)
    path = _on_one_line(_text(members.pop("file_path", b'""')))
    if members.get("replace_all") in (b"true", b"false"):
        del members["replace_all"]
    if "content" in members:
        lines = [f"*** Add File: {path}", *_prefixed("+", members.pop("content")), *_added(members)]
    else:
        edits = _edits(members)
        lines = [f"*** Update File: {path}", *(line for edit in (*edits, members) if edit for line in _hunk(edit))]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def _edits(members: dict[str, bytes]) -> list[dict[str, bytes]]:
    """The list of edits, which is removed from `members`; none if there is no readable list."""
    try:
        edits = [_members(bytes(edit)) for edit in raw_json.items(members["edits"])]
    except (KeyError, ValueError):
        return []
    del members["edits"]
    return edits


def _hunk(edit: dict[str, bytes]) -> Iterator[str]:
    yield "@@"
    for names, prefix in ((_OLD, "-"), (_NEW, "+")):
        for name in [name for name in edit if name in names]:
            yield from _prefixed(prefix, edit.pop(name))
    yield from _added(edit)


def _added(members: dict[str, bytes]) -> Iterator[str]:
    for name, value in members.items():
        yield from _prefixed(f"+{_on_one_line(name)}: ", value)


def _members(raw: bytes) -> dict[str, bytes]:
    """The members of an object. Raises ValueError."""
    return {name: bytes(value) for name, value in raw_json.fields(raw).items()}


def _prefixed(prefix: str, value: bytes) -> list[str]:
    """The lines of a text, by every reader's rule of what ends a line."""
    return [prefix + line for line in _text(value).splitlines()]


def _on_one_line(path: str) -> str:
    """A path, or its JSON if it has line breaks: they would make lines of the patch."""
    return path if not any(mark in path for mark in _LINE_BREAKS) else raw_json.encode(path).decode()


def _text(value: bytes) -> str:
    """A JSON string's text; anything else as JSON."""
    return shared_input.utf8(raw_json.text_or_json(value))


def _is_patch(context: EventContext) -> bool:
    """The hook knows the tool as Codex's, and the call is not a patch already, as of a tool that a person calls so."""
    if context.tool_name != PATCH or context.alias is None or context.alias.name != PATCH:
        return False
    given = _members(context.arguments).keys()
    return "command" not in given or "file_path" in given


def _tool_response(context: EventContext) -> object:
    """MCP's result; the text for a tool that the hook knows as one of Codex's own."""
    outcome = context.outcome or Outcome()
    if context.alias is not None:
        return shared_input.utf8(shared_input.result_text(outcome))
    structured = shared_input.structured_member(outcome)
    return msgspec.Raw(outcome.whole or b'{"content":%b%b,"isError":false}' % (outcome.content, structured))
