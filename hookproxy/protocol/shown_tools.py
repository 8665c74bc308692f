"""The tools of the server as the agent sees them: some are left out, some have another name or another description.

There are two sets of names, and this is the only place that knows both. What must hold:

- Every name of the agent stands for one tool at most. A name that is given to a tool stands for that one, so another
  tool that the server calls so is left out of lists, and that is reported.
- A name that stands for no tool (of a hidden tool, or the own name of a renamed one) never reaches the server.
- Everything else (hooks, rules, the audit, the server) knows the server's names only. Schemas stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.errors import printable
from ..model.shown_tools import ShownTool
from . import calls, list_edits
from .response_edits import json_string

_LONGEST_SHOWN: Final = 200  # characters of why: it may name a key that the server has chosen


class UnknownTool(Exception):
    """The agent knows no tool by this name."""


class ShownTools:
    """The names of both sides, and the edits of what passes."""

    def __init__(self, shown: Sequence[ShownTool]) -> None:
        """`shown` has no collision."""
        self._by_tool = {one.tool: one for one in shown}
        self._tools = {one.name: one.tool for one in shown if one.name and not one.hidden}  # by the agent's name
        hidden = {one.tool for one in shown if one.hidden or one.name}
        self.special = frozenset(hidden | self._tools.keys())
        """The names of the agent that do not stand for the tool that the server calls so."""

    def request(self, request: calls.Request, line: bytes) -> tuple[calls.Request, bytes]:
        """The agent's call as the server knows it, and its line; the same objects if it has the server's name.

        Raises UnknownTool; Unreadable, DuplicateKeys.
        """
        if request.tool not in self.special:
            return request, line
        tool = self._tools.get(request.tool)
        if tool is None:
            raise UnknownTool(f"Unknown tool: {request.tool}")  # in the words of MCP's specification
        start, end = raw_json.members(line)["params"]
        params = raw_json.with_member(line[start:end], "name", json_string(tool))
        return replace(request, tool=tool), raw_json.splice(line, [((start, end), params)])

    def edited_list(self, line: bytes, report: Callable[[str], None]) -> bytes:
        """The tools/list response as the agent gets it. Raises Unreadable, DuplicateKeys.

        A tool of which the name or the description could be read in two ways is left out.
        """

        def edited(item: bytes) -> bytes | None:
            try:
                return self._edited_tool(item, report)
            except raw_json.AMBIGUOUS as problem:
                why = printable(str(problem)[:_LONGEST_SHOWN])
                report(f"a tool is left out of the list, because it cannot be renamed: {why}")
                return None

        return list_edits.edited(line, "tools", edited)

    def _edited_tool(self, item: bytes, report: Callable[[str], None]) -> bytes | None:
        members = raw_json.members(item)
        list_edits.check_lookalikes(members, "name", "description")
        name = raw_json.text(item[slice(*members.get("name", (0, 0)))])
        if name is None:
            raise raw_json.Unreadable("it has no name")
        shown = self._by_tool.get(name)
        owner = self._tools.get(name)
        if shown is None or not (shown.hidden or shown.name):
            if owner is not None:
                report(
                    printable(
                        f"the server's own tool {name} is left out of the list: this is the name that [tools.{owner}] "
                        f"gives to {owner} (choose another one)"
                    )
                )
                return None
            if shown is None:
                return item
        if shown.hidden:
            return None
        if shown.name:
            item = raw_json.with_member(item, "name", json_string(shown.name))
        if shown.description is not None:
            item = raw_json.with_member(item, "description", json_string(shown.description))
        return item
