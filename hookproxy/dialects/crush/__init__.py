"""Crush's hooks."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output
from .hook_file import FORMAT

DIALECT: Final = Dialect(
    name=FORMAT.dialect,
    described_by="the page on hooks in charmbracelet/crush, docs/hooks/README.md, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields=output.FIELDS,
    order=Order.PIPELINE,  # at once in Crush, which merges all rewrites: so each must start from those before it
    default_timeout=FORMAT.timeouts.default,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    mcp_tool_name=lambda server, tool: f"mcp_{server}_{tool}",
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    recognises_at_home=hook_file.recognises_at_home,
    folders=(".config/crush",),
    own_files=("crush.json", ".crush.json"),
    agents=("crush",),
    variables=(
        "CRUSH",
        "CRUSH_CWD",
        "CRUSH_EVENT",
        "CRUSH_PROJECT_DIR",
        "CRUSH_SESSION_ID",
        "CRUSH_TOOL_INPUT_COMMAND",
        "CRUSH_TOOL_INPUT_FILE_PATH",
        "CRUSH_TOOL_NAME",
    ),
    user_files=(UserFiles(".config/crush", "crush.json"),),
    project_files=("crush.json", ".crush.json"),
)
