"""claw-code's settings files, with command strings and matcher groups, and its names of its own tools."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile
from ..shared import labels
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.hook_file import Table

_PATH: Final = {"file_path": "path"}

TOOLS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("read_file", _PATH),),
    "Write": (ToolSpelling("write_file", _PATH),),
    "Edit": (ToolSpelling("edit_file", _PATH),),
    "Glob": (ToolSpelling("glob_search"),),
    "Grep": (ToolSpelling("grep_search"),),
    "WebFetch": (ToolSpelling("WebFetch"),),
    "WebSearch": (ToolSpelling("WebSearch"),),
    "NotebookEdit": (ToolSpelling("NotebookEdit"),),
}

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "MultiEdit": TOOLS["Edit"]})

FAILURE_EVENT: Final = "PostToolUseFailure"
"""The event for failed calls, which only `claw@current` has."""

_ALL_MCP: Final = "mcp__*"
_EXPRESSION: Final = re.compile(r"[\^$()\[\]+?\\]|\.\*")
"""Characters of regular expressions that no tool name has."""


_PROGRAM: Final = re.compile(r"(?!(?:case|for|if|test|until|while)\b)\w.*", re.DOTALL)
"""A possible program name: no punctuation, and no keyword that begins a shell script of one line."""


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with the name of its program. A shell script of one line has none: its label is its place."""
    label = labels.command_label(hook.shell)
    return replace(hook, label=label if _PROGRAM.match(label) else entry.path)


def _matching(matcher: str) -> Callable[[str], bool]:
    """A test of tool names: names separated by commas or bars, in any case, with `*` for anything. Empty: all tools."""
    names = _names(matcher)
    if not matcher.strip() or _ALL_MCP in names:  # every tool here is an MCP tool, whatever name hooks see
        return lambda _name: True
    globs = "|".join(".*".join(re.escape(part) for part in re.split(r"\*+", name)) for name in names) or "(?!)"
    expression = re.compile(globs, re.ASCII | re.IGNORECASE | re.DOTALL)
    return lambda name: expression.fullmatch(name) is not None


def _names(matcher: str) -> list[str]:
    return [name.lower() for part in re.split(r"[,|]", matcher) if (name := part.strip())]


def _matcher_notes(_event: Event, matcher: str, _matches: Callable[[str], bool]) -> list[str]:
    """Notes on a matcher that may match no tool: nothing else would show this."""
    names = _names(matcher)
    notes = []
    if matcher.strip() and not names:
        notes.append("never matches: it names no tool")
    if _EXPRESSION.search(matcher):
        notes.append("is not read as a regular expression by claw-code: write tool names, with * for anything")
    if any(name.startswith("mcp__") and name != _ALL_MCP for name in names):
        notes.append('is compared with bare tool names, unless [[use]] has tool_names = "mcp"')
    return notes


CURRENT: Final = CommandFile(
    dialect="claw@current",
    events={
        "PreToolUse": Event.PRE_TOOL_USE,
        "PostToolUse": Event.POST_TOOL_USE,
        FAILURE_EVENT: Event.POST_TOOL_USE_FAILURE,
    },
    # claw-code waits forever. MCP agents commonly give up on a call after a minute: no agent waits for the verdict of a
    # hook that runs longer.
    timeouts=Timeouts(default=60.0, keys=()),
    entries=Entries(
        keys=("type", "command"), grouped=True, strings=True, finish=_finish, null_is_absent=False, typed=True
    ),
    matchers=Matchers(compile=_matching, notes=_matcher_notes, write=lambda _names: ""),
    comments=False,
)
DOCUMENTED: Final = replace(
    CURRENT,
    dialect="claw",
    events={"PreToolUse": Event.PRE_TOOL_USE, "PostToolUse": Event.POST_TOOL_USE},
    entries=replace(
        CURRENT.entries,
        only_strings=f"the dialects {CURRENT.dialect} and claude read matcher groups, each in its own way",
        also_on_failure=("PostToolUse",),  # a hook distinguishes the two by HOOK_TOOL_IS_ERROR
    ),
    event_hint=lambda name: (
        f"only the dialect {CURRENT.dialect} has it; in claw, PostToolUse hooks also run for failed calls"
        if name == FAILURE_EVENT
        else ""
    ),
)
