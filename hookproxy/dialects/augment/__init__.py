"""Augment's hooks, of Auggie and of its extensions."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from ..shared.identity_variables import IDENTITY_VARIABLES
from . import hook_file, input, output

AUGMENT: Final = Dialect(
    name=hook_file.NAME,
    described_by="Augment's page on hooks, docs.augmentcode.com/cli/hooks, as of 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=60.0,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    mcp_tool_name=lambda server, tool: f"{tool}_{server}",
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    shape_of="claude",
    folders=(".augment",),
    variables=IDENTITY_VARIABLES["augment"],
)
