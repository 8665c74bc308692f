"""Cursor: the hooks of its hooks.json files."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    files=hook_file.FORMAT,
    described_by=(
        "Cursor's page on hooks, cursor.com/docs/hooks, as of August 2026, and measurements of Cursor 3.19 and of "
        "@cursor/sdk 1.0.32"
    ),
    output_fields=output.FIELDS,
    order=Order.TOGETHER,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    recognises_at_home=hook_file.recognises_at_home,
    folders=(".cursor",),
    find_plugin=hook_file.find_plugin,
    agents=("cursor-vscode",),
    constant_environment=True,
    variables=(
        "CURSOR_CODE_REMOTE",
        "CURSOR_PLUGIN_ROOT",
        "CURSOR_PROJECT_DIR",
        "CURSOR_TRANSCRIPT_PATH",
        "CURSOR_USER_EMAIL",
        "CURSOR_VERSION",
        "CLAUDE_PROJECT_DIR",
    ),
    user_files=(UserFiles(".cursor", "hooks.json"),),
    project_files=(".cursor/hooks.json",),
)
