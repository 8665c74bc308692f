"""Matchers of Claude Code's kind: both spellings of names, and sentences about those that never match."""

from __future__ import annotations

from collections.abc import Callable

from ...model.hooks import Event
from ...policy import matchers
from ..dialect import NOT_IN_A_NAME


def either_spelling(matches: Callable[[str], bool]) -> Callable[[str], bool]:
    """The test for a tool's name as it is, and with `_` for each character that Claude's API refuses in names.

    Which of the two a system tries its matchers on is not known everywhere: no guard is passed over.
    """
    return lambda name: (
        matches(name) or (NOT_IN_A_NAME.search(name) is not None and matches(NOT_IN_A_NAME.sub("_", name)))
    )


def never_matches(event: Event, pattern: str, matches: Callable[[str], bool]) -> list[str]:
    """Why a matcher never matches behind MCP, each without its place; none if it may match."""
    if event is Event.SESSION_START:
        return [] if matches("startup") else ["never matches: behind MCP, the only source is startup"]
    if event in (Event.SESSION_END, Event.NOTIFICATION):
        return []
    servers = [name for name in matchers.plain_names(pattern) if matchers.is_server(name)]
    return [
        f"never matches {name}'s tools: write {name}__.*"
        if name[5:]
        else "never matches: write mcp__.* for the tools of all servers"
        for name in servers
        if not matches(f"{name}__tool")
    ]
