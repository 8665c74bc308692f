"""Made by scripts/docs --write from the dialects: what must be known of all of them without importing one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES: Final = (
    "antigravity", "augment", "cascade", "claude", "claw", "claw@current", "cline", "code-assist", "codebuddy",
    "codex", "copilot", "copilot@current", "crush", "cursor", "devin", "docker-agent", "docker-agent@current",
    "droid", "gemini", "goose", "grok", "hermes", "iflow", "kimi", "kiro", "lime", "opencode", "openhands", "qoder",
    "qwen", "trae", "vibe", "vscode"
)  # fmt: skip
"""All dialects."""

DOCUMENTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Mapping[str, tuple[str, ...]]]]] = {
    "antigravity": (("conversationId", "stepIdx"), (), {}),
    "augment": (("conversation_id",), ("cursor_version",), {}),
    "cascade": (("agent_action_name",), (), {}),
    "claude": (
        (),
        ("turn_id", "timestamp"),
        {"permission_mode": ("default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions")},
    ),
    "claw": (("tool_input_json",), (), {}),
    "cline": (("hookName",), (), {}),
    "code-assist": (("hook_event",), (), {}),
    "codebuddy": ((), (), {}),
    "codex": (("turn_id",), (), {}),
    "copilot": (
        ("timestamp",),
        ("permission_mode", "tool_use_id", "cursor_version"),
        {
            "hook_event_name": (
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "PermissionRequest",
                "SessionStart",
                "SessionEnd",
            )
        },
    ),
    "crush": (("event", "cwd"), ("hook_event_name",), {}),
    "cursor": (("cursor_version",), (), {}),
    "devin": (
        ("hook_event_name", "session_id"),
        ("cwd", "transcript_path", "permission_mode", "timestamp", "conversation_id", "tool_input_json"),
        {},
    ),
    "docker-agent": ((), (), {"hook_event_name": ("pre_tool_use", "post_tool_use", "session_start", "session_end")}),
    "droid": ((), (), {"permission_mode": ("off", "spec", "auto-low", "auto-medium", "auto-high")}),
    "gemini": ((), (), {"hook_event_name": ("BeforeTool", "AfterTool")}),
    "goose": (("matcher_context",), (), {}),
    "grok": (("hookEventName", "sessionId"), (), {}),
    "hermes": (("hook_event_name", "extra", "profile"), (), {}),
    "iflow": ((), (), {}),
    "kimi": (("client_type",), (), {}),
    "kiro": (
        (),
        (),
        {"hook_event_name": ("preToolUse", "PreToolUse", "postToolUse", "PostToolUse"), "tool_name": ("@*",)},
    ),
    "lime": (("event", "hook_event_name"), (), {}),
    "openhands": (("event_type", "working_dir"), (), {}),
    "qoder": ((), (), {}),
    "qwen": (("timestamp", "permission_mode"), (), {}),
    "trae": (("session_id", "workspace_roots"), ("cursor_version", "conversation_id"), {}),
    "vibe": (("parent_session_id", "hook_event_name"), (), {}),
    "vscode": (("timestamp", "tool_use_id"), ("permission_mode",), {}),
}
"""By the names of the dialects that have an agent: the `DocumentSigns` of its documents."""

VARIABLES: Final = frozenset((
    "AUGMENT_CONVERSATION_ID", "AUGMENT_HOOK_EVENT", "AUGMENT_PROJECT_DIR", "AUGMENT_TOOL_NAME", "CLAUDECODE",
    "CLAUDE_CODE_BRIDGE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_REMOTE_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE", "CLAUDE_PID", "CLAUDE_PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR",
    "CODEBUDDY_PROJECT_DIR", "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION",
    "COPILOT_LOADER_PID", "COPILOT_PROJECT_DIR", "CRUSH", "CRUSH_CWD", "CRUSH_EVENT", "CRUSH_PROJECT_DIR",
    "CRUSH_SESSION_ID", "CRUSH_TOOL_INPUT_COMMAND", "CRUSH_TOOL_INPUT_FILE_PATH", "CRUSH_TOOL_NAME",
    "CURSOR_CODE_REMOTE", "CURSOR_PLUGIN_ROOT", "CURSOR_PROJECT_DIR", "CURSOR_TRANSCRIPT_PATH", "CURSOR_USER_EMAIL",
    "CURSOR_VERSION", "DEVIN_PROJECT_DIR", "DROID_PLUGIN_ROOT", "DROID_PROJECT_DIR", "FACTORY_PROJECT_DIR",
    "GEMINI_CWD", "GEMINI_PLANS_DIR", "GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID", "GROK_HOOK_EVENT", "GROK_HOOK_NAME",
    "GROK_SESSION_ID", "GROK_WORKSPACE_ROOT", "HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME",
    "HOOK_TOOL_OUTPUT", "IFLOW_CWD", "IFLOW_HOOK_EVENT_NAME", "IFLOW_NOTIFICATION_MESSAGE", "IFLOW_SESSION_ID",
    "IFLOW_SESSION_SOURCE", "IFLOW_TOOL_ALIASES", "IFLOW_TOOL_ARGS", "IFLOW_TOOL_NAME", "IFLOW_TRANSCRIPT_PATH",
    "IFLOW_USER_PROMPT", "OPENHANDS_EVENT_TYPE", "OPENHANDS_PROJECT_DIR", "OPENHANDS_SESSION_ID",
    "OPENHANDS_TOOL_NAME", "QODER_PROJECT_DIR", "QWEN_PROJECT_DIR", "TRAE_PROJECT_DIR", "USER_PROMPT"
))  # fmt: skip
"""The identity variables of all dialects."""
