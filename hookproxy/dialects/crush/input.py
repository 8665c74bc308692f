"""Writes the input of Crush's hooks: the document and the variables."""

from __future__ import annotations

from ...jsonrpc import raw_json
from ...model.hooks import Document, EventContext, HookSpec
from ...processes import environment
from ..shared import input as shared_input


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and variables with the same values."""
    session, name = context.session, shared_input.utf8(context.tool_name)
    document = {
        "event": spec.event_name,
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        **shared_input.call_members(context),
    }
    env = {"CRUSH": "1", "AGENT": "crush", "AI_AGENT": "crush", "CRUSH_EVENT": spec.event_name, "CRUSH_TOOL_NAME": name}
    env |= {"CRUSH_SESSION_ID": session.id, "CRUSH_CWD": session.cwd, "CRUSH_PROJECT_DIR": session.project_dir}
    members = raw_json.fields(context.arguments)
    for argument in ("command", "file_path"):
        if value := bytes(members.get(argument, b"")):
            text = raw_json.text(value)
            env[f"CRUSH_TOOL_INPUT_{argument.upper()}"] = value.decode(errors="replace") if text is None else text
    return Document(stdin=shared_input.json_line(document), env=env, cut=environment.cuts(env))
