"""Writes the input of Augment's hooks: the document and the variables."""

from __future__ import annotations

from ...model.hooks import Document, Event, EventContext, HookSpec
from ..shared import input as shared_input
from .hook_file import OWN_TOOLS


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document and the variables. `mcp_metadata` has what a server's side knows."""
    session, name = context.session, shared_input.utf8(context.tool_name)
    members: dict[str, object] = {
        "hook_event_name": spec.event_name,
        "conversation_id": shared_input.utf8(session.id),
        "workspace_roots": [shared_input.utf8(session.project_dir)],
    }
    env = {
        "AUGMENT_PROJECT_DIR": session.project_dir,
        "AUGMENT_CONVERSATION_ID": session.id,
        "AUGMENT_HOOK_EVENT": spec.event_name,
    }
    if context.tool:
        env["AUGMENT_TOOL_NAME"] = name
        is_mcp = context.alias is None or context.tool_name not in OWN_TOOLS
        members |= shared_input.call_members(context) | {"is_mcp_tool": is_mcp}
        if is_mcp:
            server = shared_input.utf8(session.server)
            executed = {"mcpExecutedToolName": name, "mcpExecutedToolServerName": server}
            members["mcp_metadata"] = {"timestamp": shared_input.iso_8601(context.at), "mcpDecision": "yes", **executed}
    if context.outcome is not None:
        key = "tool_error" if context.event is Event.POST_TOOL_USE_FAILURE else "tool_output"
        members[key] = shared_input.utf8_result(context)
    return Document(stdin=shared_input.json_line(members), env=env)
