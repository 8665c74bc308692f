"""Reads the hook files of VS Code's local agent into hook specs: flat entries, or Claude Code's groups."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import labels
from ..shared.hook_file import Table

NAME: Final = "vscode"

TIMEOUT: Final = 30.0
"""Seconds, as documented."""

_BOTH_SPELLINGS: Final = {
    "SessionStart": "sessionStart",
    "PreToolUse": "preToolUse",
    "PostToolUse": "postToolUse",
    "UserPromptSubmit": "userPromptSubmitted",
    "PreCompact": "preCompact",
    "SubagentStart": "subagentStart",
    "SubagentStop": "subagentStop",
    "Stop": "agentStop",
}
"""VS Code's names, and Copilot CLI's, which it reads as well."""

_AVAILABLE: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START)
EVENTS: Final = {name: event for event in _AVAILABLE for name in (event.value, _BOTH_SPELLINGS[event.value])}

_NO_TURNS: Final = "an MCP server does not see the agent's turns"
_REASONS: Final = {
    "UserPromptSubmit": "prompts never pass through MCP",
    "PreCompact": "the agent compacts its conversation itself, and an MCP server does not see it",
    "SubagentStart": "an MCP server does not see subagents",
    "SubagentStop": "an MCP server does not see subagents",
    "Stop": _NO_TURNS,
}
_OTHER_TARGET: Final = "VS Code leaves this event to its Copilot agent: the dialect copilot has it"
UNAVAILABLE_EVENTS: Final = {
    **{name: reason for known, reason in _REASONS.items() for name in (known, _BOTH_SPELLINGS[known])},
    **dict.fromkeys(("SessionEnd", "sessionEnd", "ErrorOccurred", "errorOccurred"), _OTHER_TARGET),
}

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("run_in_terminal"),),
    "Read": (ToolSpelling("read_file", {"file_path": "filePath"}),),
    "Write": (ToolSpelling("create_file", {"file_path": "filePath"}),),
    "Edit": (
        ToolSpelling(
            "replace_string_in_file",
            {"file_path": "filePath", "old_string": "oldString", "new_string": "newString"},
        ),
    ),
    "MultiEdit": (ToolSpelling("multi_replace_string_in_file", {"file_path": "filePath"}),),
    "LS": (ToolSpelling("list_dir"),),
    "Glob": (ToolSpelling("file_search", {"pattern": "query"}),),
    "Grep": (ToolSpelling("grep_search", {"pattern": "query"}),),
    "WebFetch": (ToolSpelling("fetch_webpage"),),
}
"""The tools of VS Code's own (extensions/copilot, `toolNames.ts`)."""

_COMMANDS: Final = ("linux", "bash", "command")
"""The keys of a command for Linux, the most specific first: `bash` stands for linux and osx."""
_ELSEWHERE: Final = ("windows", "powershell", "osx")
_KEYS: Final = (*_COMMANDS, *_ELSEWHERE, "type", "cwd", "env", "timeout", "timeoutSec")

_NOT_IN_A_LABEL: Final = re.compile(r"[^a-z0-9_.-]+")
_LONGEST_LABEL: Final = 13  # with `mcp_` and `_` the prefix has 18 characters
_LONGEST_NAME: Final = 64


def mcp_tool_name(server: str, tool: str) -> str:
    """`mcp_SERVER_TOOL`, as VS Code's `McpPrefixGenerator` makes it."""
    label = _NOT_IN_A_LABEL.sub("_", server.lower())[:_LONGEST_LABEL]
    return f"mcp_{label}_{tool}".replace(".", "_")[:_LONGEST_NAME]


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a file. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if document.members.get("disableAllHooks") is True:
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, so none of its hooks run",))
    if "hooks" not in document.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    table = document.table("hooks")

    def read_event(name: str) -> HookList:
        def read_entries() -> HookList:
            return shared_hook_file.read_each(table, name, lambda entry: _group_or_entry(file, name, entry))

        return shared_hook_file.or_left_out(table.where, table.place(name), read_entries)

    return shared_hook_file.read_events(table, EVENTS, UNAVAILABLE_EVENTS, read_event)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under VS Code's event names, and no version, which Copilot's files have."""
    events = members.get("hooks")
    if not isinstance(events, dict) or "version" in members or not events.keys() <= {*EVENTS, *UNAVAILABLE_EVENTS}:
        return False
    lists = list(events.values())
    return any(lists) and all(
        isinstance(entries, list) and all(isinstance(entry, dict) and _has_command(entry) for entry in entries)
        for entries in lists
    )


def recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in its own folders, where files with Claude Code's groups are VS Code's, too."""
    events = members.get("hooks")
    return isinstance(events, dict) and "version" not in members and events.keys() <= {*EVENTS, *UNAVAILABLE_EVENTS}


def _has_command(entry: dict[str, object]) -> bool:
    """An entry of this system alone: code-assist's have `name` or nothing beside the command, and no such keys."""
    return not entry.keys().isdisjoint((*_COMMANDS[:2], *_ELSEWHERE)) or ("command" in entry and "type" in entry)


def _group_or_entry(file: HookFile, name: str, table: Table) -> HookList:
    """A group of hooks with a matcher, which VS Code reads and drops, or one hook."""
    found = (
        shared_hook_file.read_each(table, "hooks", lambda entry: _entry(file, name, entry))
        if "hooks" in table.members
        else _entry(file, name, table)
    )
    matcher = table.text("matcher")
    if EVENTS[name] is Event.SESSION_START or matcher in ("", "*", ".*"):
        return found
    note = f"{file.path}: {table.place('matcher')} {matcher!r} is ignored, as in VS Code: the hook runs for every tool"
    return HookList(found.hooks, (*found.notes, note), found.remarks)


def _entry(file: HookFile, name: str, entry: Table) -> HookList:
    """The hook of one entry, or a note on why it cannot run."""
    source, entry = f"{file.path}: {entry.path}", entry.without_nulls()
    handler = entry.text("type", "command")
    if handler != "command":
        raise entry.error("type", f"{handler!r} cannot run behind MCP", 'only "command" can')
    key = next((key for key in _COMMANDS if entry.text(key).strip()), "")
    if not key:
        if any(entry.text(other) for other in _ELSEWHERE):
            return HookList((), (f"{source} does not run: it has no command for Linux",))
        raise entry.error("command", "is missing", 'write "command": "./guard.sh"')
    env = entry.table("env")
    command, event = entry.text(key), EVENTS[name]
    timeout, timeout_notes = _timeout(entry)
    hook = HookSpec(
        dialect=NAME,
        source=source,
        event=event,
        label=labels.command_label(command),
        shell=command,
        cwd=_folder(file, entry.text("cwd")),
        env=tuple((variable, env.text(variable)) for variable in env.members),
        timeout=timeout,
        event_name=name,
    )
    unknown = entry.unknown((*_KEYS, "matcher")).items()
    notes = [f"{entry.where}: {entry.place(key)} is unknown and ignored: {hint}" for key, hint in unknown if hint]
    notes += [f"{source}: {note}" for note in timeout_notes]
    return HookList((hook,), tuple(notes))


def _folder(file: HookFile, cwd: str) -> str:
    """The folder in which a hook runs: relative to the project, and `~` is the home folder (`untildify`)."""
    if cwd == "~" or cwd.startswith("~/"):
        cwd = file.environ.get("HOME", "~") + cwd[1:]
    return os.path.normpath(os.path.join(file.project_dir, cwd))


def _timeout(entry: Table) -> tuple[float, list[str]]:
    """Seconds, with notes on them. VS Code ignores a timeout that is no number, and so does this.

    Raises ConfigError for one that is not more than 0.
    """
    written = [key for key in ("timeout", "timeoutSec") if key in entry.members]
    read = [key for key in written if type(entry.members[key]) in (int, float)]
    ignored = [f"`{key}` is no number, so it is ignored, as in VS Code" for key in written if key not in read]
    seconds = entry.seconds(read[0], TIMEOUT) if read else TIMEOUT
    return seconds, [*ignored, *shared_hook_file.long_timeout_notes(seconds)]
