"""Lime's names of its own tools, as its hooks know them."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names

TOOLS: Final[ToolSpellings] = {"Bash": (ToolSpelling("bash"),)}

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "Write": (ToolSpelling("write_file"),)})
"""The page names both, "e.g. bash, write_file", and no arguments: these are Claude Code's."""
