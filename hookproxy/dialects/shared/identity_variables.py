"""The variables by which hooks recognise the system that runs them. Each dialect sets its own and hides all others."""

from __future__ import annotations

from typing import Final

from ..index import VARIABLES

_OTHER_SYSTEMS: Final = ("CLINE_TOOL_NAME", "GEMINI_CLI", "GROK_SESSION_ID")
"""Identity variables that no dialect here sets. Keys and settings are never among them."""

_OF_ONE_EVENT: Final = (
    "HOOK_EVENT",
    "HOOK_TOOL_INPUT",
    "HOOK_TOOL_IS_ERROR",
    "HOOK_TOOL_NAME",
    "HOOK_TOOL_OUTPUT",
    "HOOK_TRUNCATED",
)
"""Variables about one event. If hookproxy itself is run by a hook, the values that it inherits are of another event."""


def foreign_variables(own: tuple[str, ...]) -> frozenset[str]:
    """The variables that hooks of the dialect with these `own` variables must not inherit.

    Hooks that serve several systems choose the format of their output by the variables that they find.
    """
    return VARIABLES.union(_OTHER_SYSTEMS).difference(own).union(_OF_ONE_EVENT)
