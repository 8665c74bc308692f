"""Reads the hooks.json of Goose's plugins into hook specs."""

from __future__ import annotations

import os
import re
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ..dialect import Files, HookFile, Plugin
from ..shared import re2_regex
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from ..shared.hook_file import Table

_OBSERVES: Final = "it only observes Goose's own tools, as PreToolUse and PostToolUse do here"
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("developer__shell"),),
    "Write": (ToolSpelling("developer__write", {"file_path": "path"}),),
    "Edit": (ToolSpelling("developer__edit", {"file_path": "path", "old_string": "before", "new_string": "after"}),),
    "LS": (ToolSpelling("developer__tree"),),
}
"""Goose's `developer` tools. It has none that only reads a file."""

_KEPT: Final = re.compile(r"[^a-z0-9_-]")


def mcp_tool_name(server: str, tool: str) -> str:
    """`EXTENSION__TOOL`; an extension's name is in lower case and without blanks."""
    return f"{_KEPT.sub('_', ''.join(server.split()).lower())}__{tool}"


def find_plugin(path: str, _files: Files) -> Plugin | None:
    """The plugin whose `hooks` folder the file is in."""
    folder, inner = os.path.split(os.path.dirname(path))
    return Plugin(folder) if inner == "hooks" else None


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its plugin's folder. `on_failure` of any value but `allow` blocks."""
    root = file.plugin.root if file.plugin else os.path.dirname(file.path)
    closed = hook.event is Event.PRE_TOOL_USE and entry.text("on_failure", "allow") != "allow"
    return replace(hook, env=(("PLUGIN_ROOT", root),), fails_closed=closed)


FORMAT: Final = CommandFile(
    dialect="goose",
    events=by_name(
        Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.SESSION_START, Event.SESSION_END
    ),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "Stop": TURNS_UNSEEN,
        "PreToolUseResult": "it only observes what PreToolUse hooks decided, which the audit has",
        **dict.fromkeys(("BeforeReadFile", "AfterFileEdit", "BeforeShellExecution", "AfterShellExecution"), _OBSERVES),
    },
    timeouts=Timeouts(30.0),
    entries=Entries(
        keys=("type", "command", "timeout", "on_failure"),
        grouped=True,
        finish=_finish,
        typed=True,
        closed=("on_failure", "block"),
    ),
    matchers=Matchers(
        notes=lambda _event, pattern, _matches: [re2_regex.UNREADABLE] * re2_regex.only_elsewhere(pattern),
        compile=re2_regex.unanchored_or_all,  # "*" is not valid, so its rule is skipped, as documented
    ),
)
