"""Docker Agent's matchers: Go's regular expressions over whole tool names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..shared import re2_regex

_MCP: Final = "mcp:"
"""The beginning of the document's matcher for all MCP tools. Here every tool is an MCP tool."""


def tools(pattern: str) -> Callable[[str], bool]:
    """A test of tool names: `*` and an empty pattern match all, any other is a regular expression for the whole name.

    A pattern that contains `mcp:` is tried on `mcp:NAME` as well. Raises ValueError, re.error or OverflowError.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    expression = re2_regex.compile_pattern(pattern)
    if _MCP not in pattern:
        return lambda name: expression.fullmatch(name) is not None
    return lambda name: any(map(expression.fullmatch, (name, _MCP + name)))
