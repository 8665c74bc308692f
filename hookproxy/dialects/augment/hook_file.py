"""Reads Augment's settings files into hook specs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import HookFile
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from ..shared.hook_file import Table

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("launch-process"),),
    "Read": (ToolSpelling("view", {"file_path": "path"}),),
    "LS": (ToolSpelling("view"),),
    "Write": (ToolSpelling("save-file", {"file_path": "path", "content": "file_content"}),),
    "Edit": (
        ToolSpelling("str-replace-editor", {"file_path": "path", "old_string": "old_str_1", "new_string": "new_str_1"}),
    ),
    "MultiEdit": (ToolSpelling("str-replace-editor", {"file_path": "path"}),),
    "WebFetch": (ToolSpelling("web-fetch"),),
    "WebSearch": (ToolSpelling("web-search"),),
}
OWN_TOOLS: Final = frozenset(spelling.name for spellings in TOOL_SPELLINGS.values() for spelling in spellings)

_MCP: Final = re.compile(r"(?<![\w-])mcp:")
"""The prefix of a matcher for tools of MCP servers only; `mcp:*` is all of them."""


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    """An unanchored regular expression over a tool's name, and over `mcp:` and the name for a server's tool.

    Raises re.error, OverflowError.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    matches = matchers.javascript_regex(re.sub(r"(?<![\w-])mcp:\*", "mcp:.*", pattern))
    if not _MCP.search(pattern):
        return matches
    return lambda name: matches(name) or (name not in OWN_TOOLS and matches(f"mcp:{name}"))


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its arguments. Its group's `metadata` asks for members that every hook gets here."""
    words = entry.texts("args") or ()
    return replace(hook, shell="", argv=("bash", "-c", f'{hook.shell} "$@"', "bash", *words)) if words else hook


FORMAT: Final = CommandFile(
    dialect="augment",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END),
    unavailable={
        "Stop": TURNS_UNSEEN,
        "PromptSubmit": PROMPTS_UNSEEN,
        "Notification": "the page describes no document for it",
    },
    timeouts=Timeouts(default=60.0, milliseconds=True),
    entries=Entries(
        keys=("type", "command", "timeout", "args"),
        group_keys=("metadata",),
        grouped=True,
        also_on_failure=("PostToolUse",),
        finish=_finish,
        typed=True,
        group_members={"metadata": {"includeMCPMetadata": True}},
    ),
    matchers=Matchers(compile=compile_matcher),
)
