"""Which `[tools.X]` are about no tool of a server: a misspelled name is silent otherwise (law 3). Pure."""

from __future__ import annotations

from collections.abc import Collection

from ..model.settings import Settings


def unknown_tools(settings: Settings, listed: Collection[str]) -> tuple[str, ...]:
    """Return the tools of the user's `[tools.X]` that are not among the listed ones, in order.

    What hooks call a tool counts in any case of its name, as it does for calls; what the agent sees of it does not.
    """
    loose = {name.strip().casefold() for name in listed}
    unknown = [alias.tool for alias in settings.aliases if alias.tool.strip().casefold() not in loose]
    unknown += [shown.tool for shown in settings.shown_tools if shown.tool not in listed]
    return tuple(dict.fromkeys(unknown))
