"""Reads the `[[hooks]]` of Kimi Code's config.toml into hook specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event
from ...policy import matchers
from ..dialect import HookFile, HookList
from ..shared import claude_matchers, command_file
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import INSIDE_AGENT, by_name
from ..shared.hook_file import CANNOT_FIRE, Table

_SESSION: Final = (Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION)
_CALL: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST)
_NAMES: Final = "UserPromptSubmit Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact PermissionResult"


_PATH: Final = {"file_path": "path"}
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("Bash"), ToolSpelling("Shell")),
    "Read": (ToolSpelling("Read", _PATH), ToolSpelling("ReadFile", _PATH)),
    "Write": (ToolSpelling("Write", _PATH), ToolSpelling("WriteFile", _PATH)),
    "Edit": (ToolSpelling("Edit", _PATH), ToolSpelling("StrReplaceFile", _PATH)),
    "MultiEdit": (ToolSpelling("Edit", _PATH), ToolSpelling("StrReplaceFile", _PATH)),
    "Glob": (ToolSpelling("Glob"),),
    "Grep": (ToolSpelling("Grep"),),
    "WebFetch": (ToolSpelling("FetchURL"),),
    "WebSearch": (ToolSpelling("WebSearch"), ToolSpelling("SearchWeb")),
}
"""The own tools of Kimi Code, and of the older Kimi CLI where it calls them otherwise."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a configuration. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text)
    for entry in document.tables("hooks"):
        if foreign := next((key for key in entry.members if key not in FORMAT.entries.keys), ""):
            raise entry.error(foreign, "is no key of a hook, and Kimi Code refuses the whole file", f"remove {foreign}")
    return shared_hook_file.read_each(document, "hooks", lambda entry: _entry(file, entry))


def _entry(file: HookFile, entry: Table) -> HookList:
    name = entry.choice("event", (*FORMAT.events, *FORMAT.unavailable), "")
    if name in FORMAT.unavailable:
        return HookList((), remarks=(f"{file.path}: {entry.path} ({name}) {CANNOT_FIRE}: {INSIDE_AGENT}",))
    return command_file.read_entry(FORMAT, file, name, entry, entry)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there is a list of hooks that name their events, and at least one."""
    hooks = members.get("hooks")
    return isinstance(hooks, list) and bool(hooks) and all(isinstance(one, dict) and "event" in one for one in hooks)


FORMAT: Final = CommandFile(
    dialect="kimi",
    events=by_name(*_CALL, *_SESSION),
    unavailable=dict.fromkeys(_NAMES.split(" "), INSIDE_AGENT),
    timeouts=Timeouts(30.0),
    entries=Entries(keys=("event", "matcher", "command", "timeout")),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(matchers.javascript_regex(pattern)), triggers=_SESSION
    ),
)
