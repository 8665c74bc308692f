"""The variables by which hooks recognise the system that runs them. Each dialect sets its own and hides all others."""

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
    "augment": ("AUGMENT_CONVERSATION_ID", "AUGMENT_HOOK_EVENT", "AUGMENT_PROJECT_DIR", "AUGMENT_TOOL_NAME"),
    "crush": (
        "CRUSH",
        "CRUSH_CWD",
        "CRUSH_EVENT",
        "CRUSH_PROJECT_DIR",
        "CRUSH_SESSION_ID",
        "CRUSH_TOOL_INPUT_COMMAND",
        "CRUSH_TOOL_INPUT_FILE_PATH",
        "CRUSH_TOOL_NAME",
    ),
    "cursor": (
        "CURSOR_CODE_REMOTE",
        "CURSOR_PLUGIN_ROOT",
        "CURSOR_PROJECT_DIR",
        "CURSOR_TRANSCRIPT_PATH",
        "CURSOR_USER_EMAIL",
        "CURSOR_VERSION",
        "CLAUDE_PROJECT_DIR",
    ),
    "droid": ("FACTORY_PROJECT_DIR", "DROID_PLUGIN_ROOT"),
    "gemini": (
        "GEMINI_CWD",
        "GEMINI_PLANS_DIR",
        "GEMINI_PROJECT_DIR",
        "GEMINI_SESSION_ID",
        "CLAUDE_PROJECT_DIR",
    ),
    "iflow": (
        "IFLOW_CWD",
        "IFLOW_HOOK_EVENT_NAME",
        "IFLOW_NOTIFICATION_MESSAGE",
        "IFLOW_SESSION_ID",
        "IFLOW_SESSION_SOURCE",
        "IFLOW_TOOL_ALIASES",
        "IFLOW_TOOL_ARGS",
        "IFLOW_TOOL_NAME",
        "IFLOW_TRANSCRIPT_PATH",
        "IFLOW_USER_PROMPT",
    ),
    "kiro": ("USER_PROMPT",),
    "lime": ("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
    "qwen": ("QWEN_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"),
}
"""By dialect, for the dialects that have any."""

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
    others = {name for names in IDENTITY_VARIABLES.values() for name in names}
    return frozenset(others.union(_OTHER_SYSTEMS).difference(own).union(_OF_ONE_EVENT))
