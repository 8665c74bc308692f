"""Copilot CLI's names of its own tools, as its hooks know them."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names
from ...model.hooks import HookSpec

TOOLS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("view", {"file_path": "path"}),),
    "Write": (ToolSpelling("create", {"file_path": "path", "content": "file_text"}),),
    "Edit": (ToolSpelling("edit", {"file_path": "path", "old_string": "old_str", "new_string": "new_str"}),),
    "Grep": (ToolSpelling("grep"),),
    "Glob": (ToolSpelling("glob"),),
    "WebFetch": (ToolSpelling("web_fetch"),),
}
"""The reference's "tool names for hook matching" that do what Claude Code's tools do."""

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "MultiEdit": (ToolSpelling("edit", {"file_path": "path"}),)})
"""`edit` changes one text; a list of edits is the tool that is most like it."""

_CLAUDE_FIRST: Final = {known: tuple(reversed(of_tool)) for known, of_tool in TOOL_SPELLINGS.items()}


def spellings_for(spec: HookSpec) -> ToolSpellings:
    """How a hook knows the tools: at an event in PascalCase by Claude Code's names, else by Copilot CLI's own."""
    return _CLAUDE_FIRST if spec.event_name[:1].isupper() else TOOL_SPELLINGS
