"""claw-code's names of its own tools, as its hooks know them."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names

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
