"""iFlow CLI as an agent that runs a hook of another system: a hook may refuse, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from ...jsonrpc import raw_json
from ...model.hooks import Event
from ..agent_side import AgentEvent, AgentSide, Can, output_by_status
from ..shared import claude_agent_side as envelope
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT

_FILE: Final = ".iflow/settings.json"
_VARIABLES: Final = {
    "session_id": "IFLOW_SESSION_ID",
    "cwd": "IFLOW_CWD",
    "hook_event_name": "IFLOW_HOOK_EVENT_NAME",
    "tool_name": "IFLOW_TOOL_NAME",
    "tool_input": "IFLOW_TOOL_ARGS",
    "source": "IFLOW_SESSION_SOURCE",
    "message": "IFLOW_NOTIFICATION_MESSAGE",
}
"""Members of Claude Code's document, and the variables with their values: of the document, the page shows only
`tool_input`."""


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of iFlow CLI and in its variables. Raises ValueError."""
    from_variables = {member: environ[name] for member, name in _VARIABLES.items() if name in environ}
    members = {**from_variables, **raw_json.fields(raw.strip() or b"{}")}
    event = envelope.read_document(AGENT_SIDE, "IFLOW_CWD", raw_json.encode(members), environ)
    if event.context.tool and "tool_input" not in members:
        raise ValueError("neither the document nor IFLOW_TOOL_ARGS has the arguments of the call")
    return event


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="iflow",
    file=_FILE,
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
)
