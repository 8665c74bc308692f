"""Sentences about matchers of Claude Code's kind that never match, because nothing else would show it."""

from __future__ import annotations

from collections.abc import Callable

from ...model.hooks import Event
from ...policy import matchers


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
