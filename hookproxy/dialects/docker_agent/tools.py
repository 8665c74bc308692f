"""Docker Agent's names of its own tools, as its hooks know them."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names

_PATH: Final = {"file_path": "path"}

TOOLS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("shell", {"command": "cmd"}),),
    "Read": (ToolSpelling("read_file", _PATH), ToolSpelling("read_multiple_files", {"file_path": "paths"})),
    "Write": (ToolSpelling("write_file", _PATH),),
    "Edit": (ToolSpelling("edit_file", _PATH),),
    "MultiEdit": (ToolSpelling("edit_file", _PATH),),
    "LS": (ToolSpelling("list_directory"), ToolSpelling("directory_tree")),
    "Grep": (ToolSpelling("search_files_content", {"pattern": "query"}),),
    "WebFetch": (ToolSpelling("fetch"),),
}

TOOL_SPELLINGS: Final = with_claude_names(TOOLS)
