"""Kimi Code's hooks: a list in its TOML configuration. Only PreToolUse decides, and only to deny."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output
from .hook_file import FORMAT

DIALECT: Final = Dialect(
    name=FORMAT.dialect,
    described_by="the source of Kimi Code, packages/agent-core-v2, and its hooks page, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields=output.FIELDS,
    order=Order.PARALLEL,
    default_timeout=FORMAT.timeouts.default,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    folders=(".kimi-code",),
    suffixes=(".toml",),
    agents=("kimi-code",),
    constant_environment=True,
    user_files=(UserFiles(".kimi-code", "config.toml"),),
)
