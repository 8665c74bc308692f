"""code-assist's names of its own tools, as its hooks know them."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names

TOOLS: Final[ToolSpellings] = {
    **{
        name: (ToolSpelling(f"{name}Tool"),)
        for name in ("Bash", "Glob", "Grep", "WebFetch", "WebSearch", "NotebookEdit")
    },
    **{name: (ToolSpelling(f"File{name}Tool"),) for name in ("Read", "Write", "Edit")},
}
"""As the page has them (`BashTool`). The program calls them as Claude Code does."""

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "MultiEdit": TOOLS["Edit"]})
