"""Cascade, the agent of Windsurf, which is Devin Desktop since 2026.

Besides the events of MCP calls it has events of its own commands, reads and edits: their hooks run for tools of the
server that do the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import Alias, ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookSpec, Order, Session
from ..model.settings import ToolNames
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    arguments_of,
    event_of,
    output_by_status,
    result_outcome,
    text_outcome,
)
from .dialect import Dialect, HookFile, UserFiles
from .shared import command_file, exit_status, familiar_call
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import PROMPTS_UNSEEN
from .shared.handler_types import Handler
from .shared.hook_file import Table

RUN_COMMAND: Final = "Cascade: run_command"
READ_CODE: Final = "Cascade: read_code"
WRITE_CODE: Final = "Cascade: write_code"
"""The names of the actions of which Cascade has events. No server's tool has such a name: a hook for commands must not
run for a tool that is only called `run_command`."""

_TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling(RUN_COMMAND, {"command": "command_line"}),),
    "Read": (ToolSpelling(READ_CODE),),
    "LS": (ToolSpelling(READ_CODE, {"path": "file_path"}),),  # "may be a directory path"
    "Write": (ToolSpelling(WRITE_CODE),),
    "Edit": (ToolSpelling(WRITE_CODE),),
    "MultiEdit": (ToolSpelling(WRITE_CODE),),
}

_OF_ACTION: Final = {"run_command": RUN_COMMAND, "read_code": READ_CODE, "write_code": WRITE_CODE}
_ACTIONS: Final = frozenset(_OF_ACTION.values())

_EVENTS: Final = {
    f"{when}_{what}": event
    for what in ("mcp_tool_use", *_OF_ACTION)
    for when, event in (("pre", Event.PRE_TOOL_USE), ("post", Event.POST_TOOL_USE))
}
"""Those after a call occur after success only, as the page says of post_mcp_tool_use and post_read_code."""

_TURNS_UNSEEN: Final = "an MCP server does not see the agent's responses"

_SHOWS_OUTPUT: Final = "show_output"
"""The trait of hooks whose output people see."""


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are only Cascade's event names, which nobody else has."""
    events = members.get("hooks")
    return (
        isinstance(events, dict) and bool(events) and events.keys() <= FORMAT.events.keys() | FORMAT.unavailable.keys()
    )


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in Cascade's own folder, where another event beside these is a mistake, or one of another version."""
    events = members.get("hooks")
    return isinstance(events, dict) and not events.keys().isdisjoint(FORMAT.events.keys() | FORMAT.unavailable.keys())


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    return replace(
        hook,
        matcher=_OF_ACTION.get(hook.event_name.partition("_")[2], ""),
        matches=_tools_of(hook.event_name),
        cwd=os.path.normpath(os.path.join(file.project_dir, entry.text("working_directory"))),
        traits=frozenset((_SHOWS_OUTPUT,) if entry.flag("show_output") else ()),
    )


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler | str:
    if "command" not in entry.members and "powershell" in entry.members:
        return "it is for PowerShell only, which is not supported"
    return command_file.read_command(entry)


def _tools_of(event_name: str) -> Callable[[str], bool]:
    """There are no matchers: the event itself says for which tools a hook runs."""
    action = _OF_ACTION.get(event_name.partition("_")[2])
    return (lambda name: name not in _ACTIONS) if action is None else (lambda name: name == action)


FORMAT: Final = CommandFile(
    dialect="cascade",
    events=_EVENTS,
    unavailable={
        "pre_user_prompt": PROMPTS_UNSEEN,
        "post_cascade_response": _TURNS_UNSEEN,
        "post_cascade_response_with_transcript": _TURNS_UNSEEN,
        "post_setup_worktree": "the agent makes worktrees itself, and an MCP server does not see it",
    },
    # The page has no timeout. This is as long as MCP agents commonly wait for a call: a hook that times out lets the
    # call go on, so a shorter one would let calls pass whose guard is only slow.
    timeouts=Timeouts(default=60.0, keys=()),
    entries=Entries(
        keys=("command", "powershell", "show_output", "working_directory"),
        read_handler=_read_handler,
        bash=True,  # "run via bash -c"
        finish=_finish,
        members={"show_output": True},
    ),
    matchers=Matchers(key=""),
)


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


_RULES: Final = exit_status.ExitStatusRules(
    comments=True,  # "The Cascade agent will see the error message from stderr"
    shows=lambda spec: _SHOWS_OUTPUT in spec.traits,
)

DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Windsurf's page on Cascade hooks, docs.devin.ai/desktop/cascade/hooks, as of summer 2026",
    order=Order.SERIAL,
    tool_names=ToolNames.BARE,
    write_input=write_input,
    read_output=partial(exit_status.read_output, _RULES),
    tool_spellings=_TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    folders=(".windsurf", ".codeium/windsurf", ".codeium"),
    agents=("windsurf-client",),
    constant_environment=True,
    user_files=(UserFiles(".codeium/windsurf", "hooks.json"),),
    project_files=(".windsurf/hooks.json",),
)


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
    edits = [Members(bytes(edit)) for edit in raw_json.items(info.raw("edits", b"[]"))]
    is_new = not any(edit.text("old_string") for edit in edits)
    return replace(write, alternatives=(edit, several)) if is_new else replace(edit, alternatives=(several, write))


def _own_arguments(info: Members) -> bytes:
    """The members about a command or a file. Of several edits of a file, all texts count as one."""
    as_they_are = [key for key in ("command_line", "cwd", "file_path") if key in info]  # not as far as they can be read
    texts: dict[str, object] = {key: msgspec.Raw(info.raw(key)) for key in as_they_are}
    if "edits" in info:
        texts["edits"] = msgspec.Raw(info.raw("edits"))
    edits = [Members(bytes(edit)) for edit in raw_json.items(info.raw("edits", b"[]"))]
    for key in ("old_string", "new_string"):
        if edits:
            texts[key] = "\n".join(edit.text(key) for edit in edits)
    return raw_json.encode(texts)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("agent_action_name",)),
    file=".windsurf/hooks.json",
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    has_matchers=False,
    user_folder=(".windsurf/", ".codeium/windsurf/"),
)
