"""Reads Cascade's hooks.json into hook specs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import command_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import PROMPTS_UNSEEN
from ..shared.handler_types import Handler
from ..shared.hook_file import Table

NAME: Final = "cascade"

TIMEOUT: Final = 60.0
"""Seconds. The page has no timeout. This is as long as MCP agents commonly wait for a call: a hook that times out lets
the call go on, so a shorter one would let calls pass whose guard is only slow."""

RUN_COMMAND: Final = "Cascade: run_command"
READ_CODE: Final = "Cascade: read_code"
WRITE_CODE: Final = "Cascade: write_code"
"""The names of the actions of which Cascade has events. No server's tool has such a name: a hook for commands must not
run for a tool that is only called `run_command`."""

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling(RUN_COMMAND, {"command": "command_line"}),),
    "Read": (ToolSpelling(READ_CODE),),
    "LS": (ToolSpelling(READ_CODE, {"path": "file_path"}),),  # "may be a directory path"
    "Write": (ToolSpelling(WRITE_CODE),),
    "Edit": (ToolSpelling(WRITE_CODE),),
    "MultiEdit": (ToolSpelling(WRITE_CODE),),
}

_OF_ACTION: Final = {"run_command": RUN_COMMAND, "read_code": READ_CODE, "write_code": WRITE_CODE}
ACTIONS: Final = frozenset(_OF_ACTION.values())

EVENTS: Final = {
    f"{when}_{what}": event
    for what in ("mcp_tool_use", *_OF_ACTION)
    for when, event in (("pre", Event.PRE_TOOL_USE), ("post", Event.POST_TOOL_USE))
}
"""Those after a call occur after success only, as the page says of post_mcp_tool_use and post_read_code."""

_TURNS_UNSEEN: Final = "an MCP server does not see the agent's responses"
UNAVAILABLE_EVENTS: Final = {
    "pre_user_prompt": PROMPTS_UNSEEN,
    "post_cascade_response": _TURNS_UNSEEN,
    "post_cascade_response_with_transcript": _TURNS_UNSEEN,
    "post_setup_worktree": "the agent makes worktrees itself, and an MCP server does not see it",
}
"""The page's other events, each with the reason why it cannot occur behind MCP."""

SHOWS_OUTPUT: Final = "show_output"
"""The trait of hooks whose output people see."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a hooks.json. Raises ConfigError."""
    return command_file.read_hook_file(FORMAT, file)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are lists of flat objects under Cascade's event names, which nobody else has."""
    events = members.get("hooks")
    return isinstance(events, dict) and bool(events) and events.keys() <= EVENTS.keys() | UNAVAILABLE_EVENTS.keys()


def recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in Cascade's own folder, where another event beside these is a mistake, or one of another version."""
    events = members.get("hooks")
    return isinstance(events, dict) and not events.keys().isdisjoint(EVENTS.keys() | UNAVAILABLE_EVENTS.keys())


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its folder and the tools for which its event occurs."""
    return replace(
        hook,
        matcher=_OF_ACTION.get(hook.event_name.partition("_")[2], ""),
        matches=_tools_of(hook.event_name),
        cwd=os.path.normpath(os.path.join(file.project_dir, entry.text("working_directory"))),
        traits=frozenset((SHOWS_OUTPUT,) if entry.flag("show_output") else ()),
    )


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler | str:
    if "command" not in entry.members and "powershell" in entry.members:
        return "it is for PowerShell only, which is not supported"
    return command_file.read_command(entry)


def _tools_of(event_name: str) -> Callable[[str], bool]:
    """There are no matchers: the event itself says for which tools a hook runs."""
    action = _OF_ACTION.get(event_name.partition("_")[2])
    return (lambda name: name not in ACTIONS) if action is None else (lambda name: name == action)


FORMAT: Final = CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeouts=Timeouts(default=TIMEOUT, keys=()),
    entries=Entries(
        keys=("command", "powershell", "show_output", "working_directory"),
        read_handler=_read_handler,
        bash=True,  # "run via bash -c"
        finish=_finish,
        members={"show_output": True},
    ),
    matchers=Matchers(key=""),
)
