"""Tells people once, when the tools of the server are known, how many of them hooks see."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dialects.dialect import Group
from ..hooks.coverage import coverage
from ..model.errors import printable
from ..model.hooks import Tool
from ..model.settings import Settings
from ..protocol import tool_list


class ToolCoverage:
    """Reports the coverage of a session's tools, and again only if a later list changes the counts."""

    def __init__(self, groups: Sequence[Group], settings: Settings, server: str, report: Callable[[str], None]) -> None:
        self._groups = groups
        self._settings = settings
        self._server = server
        self._report = report
        self._pages: dict[str, Tool] = {}
        self._last = ""

    def note(self, line: bytes) -> None:
        """Note a tools/list response. The last page completes the list."""
        cursor = tool_list.next_cursor(line)
        self._pages.update((tool.name, tool) for tool in tool_list.listed_tools(line))
        if cursor is None or cursor:
            return
        found = coverage(self._groups, self._settings, self._server, self._pages.values())
        self._pages = {}
        if (summary := found.summary()) != self._last:
            self._last = summary
            self._report(printable(f"{self._server}: {summary}"))
