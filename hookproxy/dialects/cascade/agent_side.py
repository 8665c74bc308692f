"""Windsurf's Cascade as an agent that runs a hook of another system: a hook may refuse, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.aliases import Alias
from ...model.hooks import Event, EventContext, Session
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    arguments_of,
    event_of,
    output_by_status,
    result_outcome,
    text_outcome,
)
from ..shared import command_file
from .hook_file import FORMAT

_FILE: Final = ".windsurf/hooks.json"
_OWN_TOOLS: Final = {
    "run_command": ("Bash", {"command": "command_line"}),
    "read_code": ("Read", {}),
    "write_code": ("Edit", {}),
}
"""The tool behind `pre_X` and `post_X`: Claude Code's name, and Cascade's names of its arguments."""


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Cascade. Raises ValueError."""
    members = Members(raw)
    name = members.required("agent_action_name")
    event = event_of(AGENT_SIDE, name)
    cwd = environ.get("ROOT_WORKSPACE_PATH") or environ.get("PWD", "/")
    info = members.object("tool_info")
    session = Session(members.text("trajectory_id"), info.text("mcp_server_name"), cwd, cwd)
    own = _OWN_TOOLS.get(name.partition("_")[2])
    if own is not None:
        known, renamed = own
        tool = name.partition("_")[2]
        alias = _edit_alias(tool, info) if known == "Edit" else Alias(tool, known, renamed)
        context = EventContext(event, session, tool=tool, arguments=_own_arguments(info), alias=alias)
        return AgentEvent(name, replace(context, outcome=text_outcome("") if event is Event.POST_TOOL_USE else None))
    arguments = arguments_of(info.raw("mcp_tool_arguments"))
    context = EventContext(event, session, tool=info.required("mcp_tool_name"), arguments=arguments)
    if event is Event.POST_TOOL_USE:
        context = replace(context, outcome=result_outcome(info.raw("mcp_result", b'""')))
    return AgentEvent(name, context)


def _edit_alias(tool: str, info: Members) -> Alias:
    """An edit, which may also be a write: `pre_write_code` does not say, but a new file has no old text."""
    edit, several = Alias(tool, "Edit"), Alias(tool, "MultiEdit")
    write = Alias(tool, "Write", {"content": "new_string"})
    edits = [Members(bytes(one)) for one in raw_json.items(info.raw("edits", b"[]"))]
    is_new = not any(one.text("old_string") for one in edits)
    return replace(write, alternatives=(edit, several)) if is_new else replace(edit, alternatives=(several, write))


def _own_arguments(info: Members) -> bytes:
    """The members about a command or a file. Of several edits of a file, all texts count as one."""
    texts: dict[str, object] = {key: info.text(key) for key in ("command_line", "cwd", "file_path") if key in info}
    if "edits" in info:
        texts["edits"] = msgspec.Raw(info.raw("edits"))
    edits = [Members(bytes(one)) for one in raw_json.items(info.raw("edits", b"[]"))]
    for key in ("old_string", "new_string"):
        if edits:
            texts[key] = "\n".join(one.text(key) for one in edits)
    return raw_json.encode(texts)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="cascade",
    documents=DocumentSigns(has=("agent_action_name",)),
    file=_FILE,
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events={
        f"{when}_{what}": event
        for when, event in (("pre", Event.PRE_TOOL_USE), ("post", Event.POST_TOOL_USE))
        for what in ("mcp_tool_use", *_OWN_TOOLS)
    },
    has_matchers=False,
    user_folder=(".windsurf/", ".codeium/windsurf/"),
)
