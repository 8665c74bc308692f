"""How the agent sees tools of the server: left out, under another name, with another description. Pure values."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace


class ShownTool(Struct, frozen=True):
    """What `[tools.X]` says of how the agent sees the tool X. Hooks, rules and the audit know its own name only."""

    tool: str
    """The tool's name, exactly as the server spells it."""
    hidden: bool = False
    """The agent does not see it, and cannot call it."""
    name: str = ""
    """The name for the agent; empty: its own."""
    description: str | None = None
    """The description for the agent; None: its own."""
    place: str = ""
    """Where it is set, for people."""

    @property
    def name_for_agent(self) -> str:
        """The name by which the agent calls it; empty: it does not."""
        return "" if self.hidden else self.name or self.tool


def merged(first: Iterable[ShownTool], second: Iterable[ShownTool]) -> tuple[ShownTool, ...]:
    """What both say. Where both say something of the same kind, the second counts, but what one hides stays hidden."""
    by_tool = {shown.tool: shown for shown in first}
    for shown in second:
        if (earlier := by_tool.get(shown.tool)) is not None:
            description = earlier.description if shown.description is None else shown.description
            hidden, name = earlier.hidden or shown.hidden, shown.name or earlier.name
            shown = replace(shown, hidden=hidden, name=name, description=description)
        by_tool[shown.tool] = shown
    return tuple(by_tool.values())


def collision(shown: Iterable[ShownTool]) -> tuple[ShownTool, str] | None:
    """A tool whose name for the agent another one has, and which; None: the names differ, as far as they are known.

    The second of each two is the one that is to be renamed, because the other may keep its own name.
    """
    ordered = sorted(shown, key=lambda one: bool(one.name))
    taken: dict[str, str] = {}
    for one in ordered:
        name = one.name_for_agent
        if name and name in taken:
            return one, taken[name]
        taken[name] = one.tool
    return None
