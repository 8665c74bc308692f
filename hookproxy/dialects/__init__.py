"""The registry of dialects: one file and one line each."""

from __future__ import annotations

from typing import Final

from .base import Dialect
from .claude import CLAUDE

DIALECTS: Final[dict[str, Dialect]] = {
    "claude": CLAUDE,
}

_OTHER_SYSTEMS: Final = (
    # Cursor
    "CURSOR_CODE_REMOTE",
    "CURSOR_PROJECT_DIR",
    "CURSOR_TRANSCRIPT_PATH",
    "CURSOR_USER_EMAIL",
    "CURSOR_VERSION",
    # Gemini CLI
    "GEMINI_CLI",
    "GEMINI_CWD",
    "GEMINI_PLANS_DIR",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
    # GitHub Copilot CLI
    "COPILOT_CLI",
    # claw-code and Lime
    "HOOK_EVENT",
    "HOOK_TOOL_INPUT",
    "HOOK_TOOL_IS_ERROR",
    "HOOK_TOOL_NAME",
    "HOOK_TOOL_OUTPUT",
    # Cline, Factory droid, Grok
    "CLINE_TOOL_NAME",
    "DROID_PLUGIN_ROOT",
    "FACTORY_PROJECT_DIR",
    "GROK_SESSION_ID",
)
"""Variables by which hooks know the systems that have no dialect here: identities, never keys or settings."""


def foreign_variables(dialect: Dialect) -> frozenset[str]:
    """The variables that a hook of `dialect` must not inherit: by them it would take us for another system.

    Hooks that serve several systems choose their answer's format by what they find in the environment.
    """
    others = {name for other in DIALECTS.values() for name in other.variables}
    return frozenset(others.union(_OTHER_SYSTEMS).difference(dialect.variables))
