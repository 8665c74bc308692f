"""Goose's hooks: the hooks.json of its plugins."""

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
    described_by="the page on hooks in block/goose, documentation/docs/guides/context-engineering/hooks.md, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=FORMAT.timeouts.default,
    tool_names=ToolNames.MCP,
    read_hook_file=partial(command_file.read_hook_file, FORMAT),
    write_input=input.write_input,
    read_output=output.read_output,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=partial(command_file.fits, FORMAT),
    shape_of="claude",
    folders=(".agents/plugins/*/hooks",),
    find_plugin=hook_file.find_plugin,
    agents=("goose-cli",),
    constant_environment=True,
    user_files=(UserFiles(".agents/plugins", "*/hooks/hooks.json"),),
    project_files=(".agents/plugins/*/hooks/hooks.json",),
)
