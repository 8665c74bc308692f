"""Writes the input of Cascade's hooks: one document, with the members of the event in `tool_info`."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Document, EventContext, HookSpec, Outcome
from ..shared import input as shared_input

_OLD: Final = ("old_string", "oldText", "old_text", "old_str", "old", "search")
_NEW: Final = ("new_string", "newText", "new_text", "new_str", "new", "replace")
"""How servers spell the two texts of an edit in a list of edits; the first of each is Cascade's."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input. There are no variables."""
    document = {
        "agent_action_name": spec.event_name,
        "trajectory_id": shared_input.utf8(context.session.id),
        "execution_id": shared_input.utf8(context.tool_use_id),
        "timestamp": shared_input.iso_8601(context.at),
        "model_name": "unknown",  # no server sees it; a hook that reads the member must not fail
        "tool_info": _tool_info(spec.event_name, context),
    }
    return Document(stdin=shared_input.json_line(document), env={})


def _tool_info(event_name: str, context: EventContext) -> dict[str, object]:
    when, _, what = event_name.partition("_")
    if what == "run_command":
        command = _text(context, "command_line")
        return {"command_line": command, "cwd": shared_input.utf8(context.session.cwd)}
    if what == "read_code":
        return {"file_path": _text(context, "file_path")}
    if what == "write_code":
        return {"file_path": _text(context, "file_path"), "edits": _edits(_members(context))}
    info: dict[str, object] = {
        "mcp_server_name": shared_input.utf8(context.session.server),
        "mcp_tool_arguments": msgspec.Raw(context.arguments),
        "mcp_tool_name": shared_input.utf8(context.tool_name),
    }
    if when == "post":
        return {"mcp_result": shared_input.utf8(shared_input.result_text(context.outcome or Outcome())), **info}
    return info


def _members(context: EventContext) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in raw_json.fields(context.arguments).items()}


def _text(context: EventContext, name: str) -> str:
    """An argument as text. If the call has no such text, all of its arguments: a guard searches what there is."""
    value = raw_json.text(_members(context).get(name, b""))
    return context.arguments.decode(errors="replace") if value is None else value


def _edits(members: dict[str, bytes]) -> list[object]:
    """What is written, as Cascade's list of edits: each has the old and the new text.

    A call that has texts in several forms shows all of them: an agent must not hide one behind another.
    """
    listed = members.pop("edits", b"")
    edits = [edit for item in raw_json.items(listed) for edit in _edit(bytes(item))] if listed[:1] == b"[" else []
    if "new_string" in members or "old_string" in members:
        texts = {name: members.pop(name, b'""') for name in ("old_string", "new_string")}
        edits.append({name: msgspec.Raw(value) for name, value in texts.items()})
    if "content" in members:
        edits.append({"old_string": "", "new_string": msgspec.Raw(members.pop("content"))})
    if not edits and listed[:1] != b"[":  # another form: what there is
        edits.append({name: msgspec.Raw(value) for name, value in members.items()})
    return edits


def _edit(item: bytes) -> list[object]:
    """One of a server's list of edits under Cascade's names. Members that it does not know stay as they are.

    It becomes several if it has a text under several names, of which the server may read any.
    """
    if not item.startswith(b"{"):
        return [msgspec.Raw(item)]
    edit = {name: bytes(value) for name, value in raw_json.fields(item).items()}
    old, new = ([edit.pop(name) for name in names if name in edit] for names in (_OLD, _NEW))
    rest = {name: msgspec.Raw(value) for name, value in edit.items()}
    texts = zip_longest(old, new, fillvalue=b'""') if old or new else ()
    pairs = [{"old_string": msgspec.Raw(one), "new_string": msgspec.Raw(other), **rest} for one, other in texts]
    return list(pairs) or [rest]
