"""Crush's hooks."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from ..shared.identity_variables import IDENTITY_VARIABLES
from . import hook_file, input, output
from .hook_file import FORMAT

CRUSH: Final = Dialect(
    name=FORMAT.dialect,
    described_by="the page on hooks in charmbracelet/crush, docs/hooks/README.md, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields=output.FIELDS,
    order=Order.PIPELINE,  # at once in Crush, which merges all rewrites: so each must start from those before it
    default_timeout=FORMAT.timeout,
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
    variables=IDENTITY_VARIABLES["crush"],
)
