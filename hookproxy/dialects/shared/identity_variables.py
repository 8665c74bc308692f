"""The variables by which hooks know the system that runs them: each dialect sets its own, and hides all others."""

from __future__ import annotations

from typing import Final

IDENTITY_VARIABLES: Final[dict[str, tuple[str, ...]]] = {
    "claude": (
        "CLAUDE_PROJECT_DIR",
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_BRIDGE_SESSION_ID",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_REMOTE",
        "CLAUDE_CODE_REMOTE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PID",
        "CLAUDE_PLUGIN_DATA",
        "CLAUDE_PLUGIN_ROOT",
    ),
    "claw": ("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
    "copilot": (
        "COPILOT_AGENT_SESSION_ID",
        "COPILOT_CLI",
        "COPILOT_CLI_BINARY_VERSION",
        "COPILOT_LOADER_PID",
        "COPILOT_PROJECT_DIR",
    ),
    "lime": ("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
}
"""By dialect: those that have any."""

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
    # Cline, Factory droid, Grok
    "CLINE_TOOL_NAME",
    "DROID_PLUGIN_ROOT",
    "FACTORY_PROJECT_DIR",
    "GROK_SESSION_ID",
)
"""Variables by which hooks know the systems that have no dialect here: identities, never keys or settings."""

_OF_ONE_OCCASION: Final = (
    "HOOK_EVENT",
    "HOOK_TOOL_INPUT",
    "HOOK_TOOL_IS_ERROR",
    "HOOK_TOOL_NAME",
    "HOOK_TOOL_OUTPUT",
    "HOOK_TRUNCATED",
)
"""Variables that tell a hook of its own occasion: what we inherit of them, being run by a hook, is of another."""


def foreign_variables(own: tuple[str, ...]) -> frozenset[str]:
    """The variables that hooks must not inherit whose dialect has these: by them it would take us for another system.

    Hooks that serve several systems choose their answer's format by what they find in the environment.
    """
    others = {name for names in IDENTITY_VARIABLES.values() for name in names}
    return frozenset(others.union(_OTHER_SYSTEMS).difference(own).union(_OF_ONE_OCCASION))
