"""Writes the input of Cascade's hooks: one document, with the members of the event in `tool_info`."""

from __future__ import annotations

import msgspec

from ...model.hooks import Document, EventContext, HookSpec
from ..shared import familiar_call
from ..shared import input as shared_input


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
        command = familiar_call.command_line(context.arguments, "command_line")
        return {"command_line": command, "cwd": shared_input.utf8(context.session.server_folder)}
    if what == "read_code":
        return {"file_path": familiar_call.text(context.arguments, "file_path")}
    if what == "write_code":
        return {
            "file_path": familiar_call.text(context.arguments, "file_path"),
            "edits": familiar_call.edits(context.arguments),
        }
    info: dict[str, object] = {
        "mcp_server_name": shared_input.utf8(context.session.server),
        "mcp_tool_arguments": msgspec.Raw(context.arguments),
        "mcp_tool_name": shared_input.utf8(context.tool_name),
    }
    if when == "post":
        return {"mcp_result": shared_input.utf8_result(context), **info}
    return info
