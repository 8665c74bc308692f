"""Reads iFlow CLI's settings files into hook specs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import HookFile
from ..shared import claude_matchers
from ..shared.command_file import NO_TIMEOUT, CommandFile, Entries, Matchers, Timeouts
from ..shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from ..shared.hook_file import Table

ALIASES: Final = {
    "run_shell_command": ("shell", "Shell", "bash", "Bash"),
    "replace": ("Edit", "edit", "Write", "write"),
    "multi_edit": ("MultiEdit", "multiEdit"),
    "write_file": ("write", "create", "save", "Write"),
    "read_file": ("read", "Read"),
    "search_file_content": ("grep", "search", "Grep"),
    "list_directory": ("ls", "list", "LS"),
}
"""iFlow CLI's own tools with their aliases, on which matchers are tried, too: the page's, and Claude Code's names."""


def _named(*tools: str) -> tuple[ToolSpelling, ...]:
    return tuple(ToolSpelling(name) for tool in tools for name in (tool, *ALIASES[tool]))


TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": _named("run_shell_command"),
    "Edit": _named("replace"),
    "MultiEdit": _named("multi_edit", "replace"),
    "Write": _named("write_file"),
    "Read": _named("read_file"),
    "Grep": _named("search_file_content"),
    "LS": _named("list_directory"),
}
_REGEX: Final = re.compile(r"[|\\^$.*+?()\[\]{}]")


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    """All, a regular expression if it has a character of one, else a name; an invalid expression is a name."""
    if pattern in ("", "*"):
        return lambda _name: True
    if not _REGEX.search(pattern):
        return lambda name: name == pattern
    try:
        return matchers.javascript_regex(pattern)
    except re.error as error:
        if not matchers.is_no_expression(error):
            raise
        return lambda name: name == pattern


def _finish(_file: HookFile, _entry: Table, hook: HookSpec) -> HookSpec:
    """A hook before a call that has no exit status, because it was killed or took too long, refuses the call.

    Any status but 0 does, and the page does not say what happens without one.
    """
    return replace(hook, fails_closed=hook.event is Event.PRE_TOOL_USE)


FORMAT: Final = CommandFile(
    dialect="iflow",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "SetUpEnvironment": "the agent describes its environment to the model itself",
        "Stop": TURNS_UNSEEN,
        "SubagentStop": TURNS_UNSEEN,
    },
    timeouts=Timeouts(NO_TIMEOUT),
    entries=Entries(
        keys=("type", "command", "timeout"), grouped=True, also_on_failure=("PostToolUse",), finish=_finish, typed=True
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(compile_matcher(pattern)),
        triggers=(Event.SESSION_START,),
    ),
)
