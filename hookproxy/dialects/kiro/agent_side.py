"""Kiro as an agent that runs a hook of another system, by its files of version v1: a hook may refuse, and no more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from ...model.hooks import Event, Outcome
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentSide, Can, DocumentForm, output_by_status, result_outcome, split_underscored_name
from ..dialect import WrittenEntry
from ..shared.command_file import json_file
from ..shared.events import by_name
from .hook_file import AGENT_FILE, VERSION_1_FILE

_FILE: Final = ".kiro/hooks/hookproxy.json"
_AGENT_FILE: Final = ".kiro/agents/hookproxy.json"


def _failed(members: Members) -> bool:
    return members.object("tool_response").raw("success") == b"false"


def _outcome(members: Members, failed: bool) -> Outcome:
    response, parts = members.raw("tool_response", b'""'), members.object("tool_response")
    shown = parts.raw("error" if failed else "result", response) if "success" in parts else response
    return result_outcome(_blocks(shown), failed=failed)


def _blocks(raw: bytes) -> bytes:
    """A list of texts is not a list of content blocks: its JSON is the text."""
    return json.dumps(raw.decode(errors="replace")).encode() if raw.startswith(b"[") else raw


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    """Server and tool of `@SERVER/TOOL`, or of the IDE's `mcp_SERVER_TOOL`."""
    server, separator, tool = name.removeprefix("@").partition("/")
    return (server, tool) if name.startswith("@") and separator else split_underscored_name(name)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """A file of version 1, and an agent file for events that are spelled as there: the matchers of both differ."""
    of_agent = [entry for entry in entries if entry.event_name[:1].islower()]
    files: dict[str, str] = {}
    if of_agent:
        files |= AGENT_FILE.write(_AGENT_FILE, of_agent)
    if len(of_agent) < len(entries):
        of_version_1 = [_version_1(number, entry) for number, entry in enumerate(entries, 1) if entry not in of_agent]
        files |= json_file(_FILE, {"version": "v1", "hooks": of_version_1})
    return files


def _version_1(number: int, entry: WrittenEntry) -> dict[str, object]:
    return {
        "name": f"hookproxy {number}",
        "trigger": entry.event_name,
        **VERSION_1_FILE.matchers.written(entry),
        "action": {"type": "command", "command": entry.command},
        **VERSION_1_FILE.timeouts.members(entry.timeout),
        "enabled": True,
    }


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="kiro",
    documents=DocumentSigns(
        values={"hook_event_name": ("preToolUse", "PreToolUse", "postToolUse", "PostToolUse"), "tool_name": ("@*",)}
    ),
    file=_FILE,
    can=Can.NOTHING,
    form=DocumentForm(
        event_name=lambda name: name[:1].upper() + name[1:],  # its versions spell it both ways
        triggers={Event.SESSION_START: "startup"},
        server_tool=_server_tool,
        failed=_failed,
        outcome=_outcome,
    ),
    write_output=output_by_status,
    write_hook_file=_write_hook_file,
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START),
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
)
