"""Cline's names of its own tools and of a server's tools."""

from __future__ import annotations

import re
from typing import Final

from ...model.aliases import ToolSpelling, ToolSpellings

EDIT: Final = "replace_in_file"
"""Its `diff` holds both texts of an edit."""

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("execute_command"),),
    "Read": (ToolSpelling("read_file", {"file_path": "path"}),),
    "Write": (ToolSpelling("write_to_file", {"file_path": "path"}),),
    "Edit": (ToolSpelling(EDIT, {"file_path": "path"}),),
    "MultiEdit": (ToolSpelling(EDIT, {"file_path": "path"}),),
    "LS": (ToolSpelling("list_files"),),
    "Grep": (ToolSpelling("search_files", {"pattern": "regex", "glob": "file_pattern"}),),
    "WebFetch": (ToolSpelling("web_fetch"),),
    "WebSearch": (ToolSpelling("web_search"),),
}

_LONGEST: Final = 64
_KEPT: Final = 55
"""The length of a name, and how much of a longer one stays before `_` and its hash, as in Cline's SDK."""
_REPLACED: Final = re.compile(r"[^a-zA-Z0-9_-]")


def mcp_tool_name(server: str, tool: str) -> str:
    """The name that Cline gives to a server's tool."""
    name = _REPLACED.sub("_", f"{server}__{tool}")
    if len(name) <= _LONGEST:
        return name
    from hashlib import sha1  # few tools have such a name

    return f"{name[:_KEPT]}_{sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"
