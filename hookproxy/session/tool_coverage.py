"""Tells people once, when the tools of the server are known, how many of them hooks see."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..config.load import Loaded
from ..hooks.coverage import coverage
from ..model.errors import printable
from ..model.hooks import Tool
from ..protocol import tool_list


class ToolCoverage:
    """Reports what hooks see of the tools of a session, and again only if a later list changes the counts."""

    def __init__(
        self, loaded: Loaded, server: str, command: Sequence[str], report: Callable[[str], None], shown_name: str
    ) -> None:
        """`server` is the server's name as hooks see it, `shown_name` its name in the line for people."""
        self._loaded = loaded
        self._server = server
        self._command = command
        self._report = report
        self._shown_name = shown_name
        self._pages: dict[str, Tool] = {}
        self._last = ""

    def note(self, line: bytes, server_info: str) -> None:
        """Note a tools/list response and the name that the server gives itself. The last page completes the list."""
        cursor = tool_list.next_cursor(line)
        self._pages.update((tool.name, tool) for tool in tool_list.listed_tools(line))
        if cursor is None or cursor:
            return
        groups, settings = self._loaded.groups, self._loaded.settings
        found = coverage(groups, settings, self._server, self._pages.values(), self._command, server_info)
        self._pages = {}
        if (summary := found.summary()) != self._last:
            self._last = summary
            self._report(printable(f"{self._shown_name}: {summary}"))
