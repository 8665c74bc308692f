"""Claude Code: the hooks of its settings files and of its plugins' hooks.json."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output, plugins, settings_file, tool_response

DIALECT: Final = Dialect(
    files=hook_file.FORMAT,
    described_by="Claude Code's hooks reference, code.claude.com/docs/en/hooks, as of 2.1.295 (October 2026)",
    output_fields=output.FIELDS,
    order=Order.PARALLEL,
    read_hook_file=settings_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    real_output=tool_response.real_output,
    recognises=hook_file.recognises,
    options=("permissions",),
    notifications=hook_file.NOTIFICATIONS,
    folders=(".claude",),
    file_names=("settings.json", "settings.local.json"),
    reads_transcript=True,
    find_plugin=plugins.find_plugin,
    read_folder=plugins.read_folder,
    agents=("claude-code",),
    constant_environment=True,
    variables=(
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
    user_files=(
        UserFiles(".claude", "settings.json", "CLAUDE_CONFIG_DIR", whole_with=("settings.json", "settings.local.json")),
    ),
    project_files=(".claude/settings.json", ".claude/settings.local.json"),
)
