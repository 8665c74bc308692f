"""Goose's hooks: the hooks.json of its plugins."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from . import hook_file, input, output

GOOSE: Final = Dialect(
    name=hook_file.NAME,
    described_by="the page on hooks in block/goose, documentation/docs/guides/context-engineering/hooks.md, as of 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=30.0,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    shape_of="claude",
    folders=(".agents/plugins/*/hooks",),
    find_plugin=hook_file.find_plugin,
    agents=("goose-cli",),
    constant_environment=True,
)
