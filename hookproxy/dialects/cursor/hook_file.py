"""Reads Cursor's hooks.json into hook specs: several events before and after one call, each with its own matchers.

What makes Cursor reject a whole file gets a note here, and its hooks run: no guard is passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import Files, HookFile, HookList, Plugin, for_names
from ..shared import command_file, familiar_call, model_hooks
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts, regular_expression
from ..shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, SUBAGENTS_UNSEEN, TURNS_UNSEEN
from ..shared.handler_types import Handler
from ..shared.hook_file import Table

BEFORE_SHELL: Final = "beforeShellExecution"
AFTER_SHELL: Final = "afterShellExecution"
BEFORE_READ: Final = "beforeReadFile"
AFTER_EDIT: Final = "afterFileEdit"
BEFORE_MCP: Final = "beforeMCPExecution"
AFTER_MCP: Final = "afterMCPExecution"

_EVENTS: Final = {
    "preToolUse": Event.PRE_TOOL_USE,
    BEFORE_MCP: Event.PRE_TOOL_USE,
    BEFORE_SHELL: Event.PRE_TOOL_USE,
    BEFORE_READ: Event.PRE_TOOL_USE,
    AFTER_MCP: Event.POST_TOOL_USE,
    AFTER_SHELL: Event.POST_TOOL_USE,
    AFTER_EDIT: Event.POST_TOOL_USE,
    "postToolUse": Event.POST_TOOL_USE,
    "postToolUseFailure": Event.POST_TOOL_USE_FAILURE,
    "sessionStart": Event.SESSION_START,
    "sessionEnd": Event.SESSION_END,
}
"""postToolUseFailure also occurs after a refusal: "Called when a tool fails, times out, or is denied"."""

_SECOND: Final = frozenset({BEFORE_MCP, BEFORE_SHELL, BEFORE_READ, "postToolUse", "postToolUseFailure"})
"""The events that come after the other event on the same side of a call."""

_UNAVAILABLE: Final = for_names({
    "inline completions never pass through MCP": "beforeTabFileRead afterTabFileEdit",
    PROMPTS_UNSEEN: "beforeSubmitPrompt",
    TURNS_UNSEEN: "afterAgentResponse afterAgentThought stop",
    SUBAGENTS_UNSEEN: "subagentStart subagentStop",
    COMPACTION_UNSEEN: "preCompact",
    "the editor opens its workspaces itself, and an MCP server does not see it": "workspaceOpen",
})  # fmt: skip

MCP: Final = "MCP:"
"""Before the name of a server's tool, in preToolUse and in the two events after a call that belong to it."""

OWN: Final = "Cursor: "
"""Before the name of a tool of Cursor's own, inside hookproxy only. No server's tool has such a name: a hook for
commands must not run for a tool that is only called `Shell`, and one for MCP tools must run for it."""

_EDITS: Final = tuple(ToolSpelling(f"{OWN}{name}") for name in ("Write", "StrReplace", "Edit"))
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling(f"{OWN}Shell"),),
    "Read": (ToolSpelling(f"{OWN}Read"),),
    "Write": (ToolSpelling(f"{OWN}Write"),),
    "Edit": _EDITS,
    "MultiEdit": (*_EDITS, ToolSpelling(f"{OWN}MultiEdit")),
    "NotebookEdit": (*_EDITS[:1], ToolSpelling(f"{OWN}EditNotebook")),
    "Grep": (ToolSpelling(f"{OWN}Grep"),),
    "Glob": (ToolSpelling(f"{OWN}Glob"),),
    "LS": (ToolSpelling(f"{OWN}LS"),),
    "WebFetch": (ToolSpelling(f"{OWN}WebFetch"),),
    "WebSearch": (ToolSpelling(f"{OWN}WebSearch"),),
}
"""The page names `Shell, Read, Write, Grep, Delete, Task`; the other names are those that published files match."""

_SUBJECTS: Final = {
    BEFORE_SHELL: frozenset({f"{OWN}Shell"}),
    AFTER_SHELL: frozenset({f"{OWN}Shell"}),
    BEFORE_READ: frozenset({f"{OWN}Read"}),
    AFTER_EDIT: frozenset(spelling.name for spelling in TOOL_SPELLINGS["MultiEdit"]) | {f"{OWN}EditNotebook"},
}
"""The tools of the events that are about tools of Cursor's own only."""

_ENTERPRISE: Final = ("/etc/cursor", "/Library/Application Support/Cursor")
_MANIFEST: Final = ".cursor-plugin/plugin.json"
_PLUGIN_ROOTS: Final = ("CURSOR_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")

_NO_CONTENT: Final = (
    "it gets an empty `content`: hookproxy does not read the file before the server does, so the hook can only judge "
    "`file_path`"
)


def mcp_tool_name(_server: str, tool: str) -> str:
    """`MCP:TOOL`. Cursor's name for a tool does not have the server's."""
    return MCP + tool


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a hooks.json, which may have comments. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    found = FORMAT.read_hooks(file, document)
    hooks: list[HookSpec] = []
    for hook in found.hooks:
        hooks.append(hook)
        if hook.event_name == "postToolUseFailure":
            hooks.append(replace(hook, event=Event.PERMISSION_DENIED))
    notes = _version_notes(document) if "hooks" in document.members else []
    return HookList(tuple(hooks), (*notes, *found.notes), found.remarks)


def _version_notes(document: Table) -> list[str]:
    """A note on a version with which Cursor would reject the file."""
    version = document.members.get("version")
    if version == 1 and not isinstance(version, bool):
        return []
    what = f"is {version!r}, not 1" if "version" in document.members else "is missing"
    return [f'{document.where}: version {what}: its hooks run here, but Cursor may reject the file: write "version": 1']


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under Cursor's event names, one of which nobody else has."""
    events = members.get("hooks")
    names = FORMAT.events.keys() | FORMAT.unavailable.keys()
    return (
        isinstance(events, dict)
        and events.keys() <= names
        and not events.keys().isdisjoint(names - _OF_OTHER_SYSTEMS)
        and recognises_at_home(members)
    )


_OF_OTHER_SYSTEMS: Final = frozenset(
    ("preToolUse", "postToolUse", "postToolUseFailure", "sessionStart", "sessionEnd", "subagentStart", "subagentStop",
     "preCompact", "stop")
)  # fmt: skip
"""Events of this spelling in files of Copilot CLI, Kiro and others."""


def recognises_at_home(members: Mapping[str, object]) -> bool:
    """Whether there are only flat entries. In Cursor's own folder, an event that it does not know is a mistake."""
    events = members.get("hooks")
    return isinstance(events, dict) and not any(
        isinstance(entry, dict) and "hooks" in entry
        for entries in events.values()
        if isinstance(entries, list)
        for entry in entries
    )


def find_plugin(path: str, _files: Files) -> Plugin | None:
    """The plugin of `ROOT/hooks/hooks.json` or `ROOT/hooks.json`, if ROOT has a plugin's manifest."""
    folder = os.path.dirname(path)
    roots = [os.path.dirname(folder)] if os.path.basename(folder) == "hooks" else []
    return next(
        (Plugin(root) for root in (*roots, folder) if os.path.isfile(os.path.join(root, _MANIFEST))),
        None,
    )


def _read_handler(file: HookFile, name: str, entry: Table) -> Handler | str:
    if entry.text("type", "command") != "prompt":
        return command_file.read_command(entry)
    handler = model_hooks.read_model_hook(file, entry, _EVENTS[name], "prompt")
    return handler if isinstance(handler, str) else replace(handler, timeout=0.0)  # the page has no other default


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its tools, its folder and its order among the events of one call."""
    pattern = _usable(hook.matcher)
    of_command = hook.event_name in (BEFORE_SHELL, AFTER_SHELL)
    return replace(
        hook,
        matches=_tools_of(hook.event_name, "" if of_command else pattern),
        accepts=_command_test(pattern) if of_command and pattern else None,
        cwd=_folder(file),
        env=tuple((name, file.plugin.root) for name in _PLUGIN_ROOTS) if file.plugin else (),
        fails_closed=entry.flag("failClosed"),
        stage=int(hook.event_name in _SECOND),
    )


def _notes_on(_file: HookFile, event_name: str, entry: Table) -> list[str]:
    notes = [_NO_CONTENT] if event_name == BEFORE_READ else []
    pattern = entry.text("matcher")
    if not _usable(pattern) and pattern not in ("", "*"):
        notes.append(f"the matcher {pattern!r} is not a regular expression, so the hook runs for every call")
    return notes


def _usable(pattern: str) -> str:
    """The matcher if it restricts anything; empty: it matches all, or it is not a regular expression."""
    if pattern == "*":
        return ""
    try:
        matchers.javascript_regex(pattern)
    except (re.error, OverflowError, RecursionError):
        return ""
    return pattern


def _tools_of(event_name: str, pattern: str) -> Callable[[str], bool]:
    """Whether an event's hooks with this matcher run for a tool of this name."""
    test = matchers.javascript_regex(pattern)
    subjects = _SUBJECTS.get(event_name)
    if subjects is not None:
        return lambda name: name in subjects and test(name.removeprefix(OWN))
    if event_name in (BEFORE_MCP, AFTER_MCP):
        return lambda name: not name.startswith(OWN) and _names_mcp_tool(test, name.removeprefix(MCP))
    return lambda name: test(name.removeprefix(OWN)) if name.startswith((OWN, MCP)) else _names_mcp_tool(test, name)


def _names_mcp_tool(test: Callable[[str], bool], bare: str) -> bool:
    """Whether a matcher names this tool with or without the prefix: what is right is not documented for the MCP events,
    and with `tool_names = "bare"` the hooks of other events see the name without it."""
    return test(MCP + bare) or test(bare)


def _command_test(pattern: str) -> Callable[[bytes], bool]:
    """The matcher of a shell event: "the matcher is matched against the full command string"."""
    test = matchers.javascript_regex(pattern)
    return lambda arguments: test(familiar_call.command_line(arguments, "command"))


def _folder(file: HookFile) -> str:
    """Project hooks run from the project's root; hooks of the user and of the enterprise from their file's folder."""
    folder = os.path.dirname(file.path)
    own = os.path.join(file.environ.get("HOME") or "/nowhere", ".cursor")
    of_user = os.path.realpath(folder) == os.path.realpath(own) or folder.startswith(f"{own}/managed/")
    return folder if of_user or folder in _ENTERPRISE else file.project_dir


FORMAT: Final = CommandFile(
    dialect="cursor",
    events=_EVENTS,
    unavailable=_UNAVAILABLE,
    timeouts=Timeouts(60.0),  # what Cursor's bundle has for the documented "platform default"
    entries=Entries(
        keys=("command", "type", "timeout", "matcher", "failClosed", "loop_limit", "event", *model_hooks.KEYS),
        read_handler=_read_handler,
        also_on_failure=(AFTER_MCP, AFTER_SHELL),
        finish=_finish,
        notes_on=_notes_on,
        closed=("failClosed", True),
    ),
    matchers=Matchers(write=lambda names: regular_expression([name.removeprefix(OWN) for name in names])),
    members={"version": 1},
)
