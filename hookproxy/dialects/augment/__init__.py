"""Augment's hooks, of Auggie and of its extensions."""

from __future__ import annotations

from functools import partial
from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from ..shared import command_file
from . import hook_file, input, output
from .hook_file import FORMAT

DIALECT: Final = Dialect(
    name=FORMAT.dialect,
    described_by="Augment's page on hooks, docs.augmentcode.com/cli/hooks, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=FORMAT.timeouts.default,
    tool_names=ToolNames.MCP,
    read_hook_file=partial(command_file.read_hook_file, FORMAT),
    write_input=input.write_input,
    read_output=output.read_output,
    mcp_tool_name=lambda server, tool: f"{tool}_{server}",
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=partial(command_file.fits, FORMAT),
    shape_of="claude",
    folders=(".augment",),
    variables=("AUGMENT_CONVERSATION_ID", "AUGMENT_HOOK_EVENT", "AUGMENT_PROJECT_DIR", "AUGMENT_TOOL_NAME"),
    user_files=(UserFiles(".augment", "settings.json"),),
    project_files=(".augment/settings.json", ".augment/settings.local.json"),
)
