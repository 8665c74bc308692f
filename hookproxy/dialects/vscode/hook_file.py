"""Reads the hook files of VS Code's local agent into hook specs: flat entries, or Claude Code's groups."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import command_file
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matcher, Matchers, Timeouts
from ..shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, SUBAGENTS_UNSEEN, TURNS_UNSEEN
from ..shared.handler_types import Handler
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
"""PostToolUse also occurs after a result with isError, which VS Code's `mcpLanguageModelToolContribution.ts` returns as
any other."""

_REASONS: Final = {
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "PreCompact": COMPACTION_UNSEEN,
    "SubagentStart": SUBAGENTS_UNSEEN,
    "SubagentStop": SUBAGENTS_UNSEEN,
    "Stop": TURNS_UNSEEN,
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
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, {shared_hook_file.SWITCHED_OFF}",))
    return command_file.read_hooks(FORMAT, file, document)


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


def _read_matcher(name: str, matched: Table) -> Matcher:
    """Matchers are read and dropped, as in VS Code."""
    pattern = matched.text("matcher")
    if EVENTS[name] is Event.SESSION_START or pattern in command_file.MATCHES_ALL:
        return Matcher()
    return Matcher(notes=(f"the matcher {pattern!r} is ignored, as in VS Code: the hook runs for every tool",))


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler | str:
    key = next((key for key in _COMMANDS if entry.text(key).strip()), "command")
    if not entry.text(key) and any(entry.text(other) for other in _ELSEWHERE):
        return "it has no command for Linux"
    return command_file.read_command(entry, key)


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its folder and its variables."""
    return replace(hook, cwd=_folder(file, entry.text("cwd")), env=entry.pairs("env"))


def _folder(file: HookFile, cwd: str) -> str:
    """The folder in which a hook runs: relative to the project, and `~` is the home folder (`untildify`)."""
    if cwd == "~" or cwd.startswith("~/"):
        cwd = file.environ.get("HOME", "~") + cwd[1:]
    return os.path.normpath(os.path.join(file.project_dir, cwd))


FORMAT: Final = CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeouts=Timeouts(default=TIMEOUT, keys=("timeout", "timeoutSec"), skips_odd="VS Code"),
    entries=Entries(
        keys=(*_COMMANDS, *_ELSEWHERE, "type", "cwd", "env", "timeout", "timeoutSec", "matcher"),
        only_misspelt_keys=True,
        grouped=True,
        flat_too=True,
        also_on_failure=(Event.POST_TOOL_USE.value, _BOTH_SPELLINGS[Event.POST_TOOL_USE.value]),
        read_handler=_read_handler,
        finish=_finish,
        typed=True,
    ),
    matchers=Matchers(read=_read_matcher, key=""),
)
