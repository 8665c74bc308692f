"""Qwen Code's hooks: Claude Code's names and output, run as Gemini CLI runs its hooks."""

from __future__ import annotations

from typing import Final

from ...model.aliases import ToolSpelling
from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="the source of Qwen Code, packages/core/src/hooks, and its hooks page, as of autumn 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.TOGETHER,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    hook_identity=lambda spec: (spec.label, *spec.identity),
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings={
        known: (ToolSpelling(name, arguments),) for known, (name, arguments) in hook_file.FAMILIAR_TOOLS.items()
    },
    recognises=hook_file.recognises,
    shape_of="claude",
    folders=(".qwen",),
    agents=("qwen-cli-mcp-client*",),
    constant_environment=True,
    variables=hook_file.PROJECT_VARIABLES,
    user_files=(UserFiles(".qwen", "settings.json"),),
    project_files=(".qwen/settings.json",),
)
