"""Cline's hooks: a folder of programs that are named by their events, for its VS Code extension and its CLI alike."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="the sources of cline/cline, its .clinerules/hooks/README.md and its SDK's hooks, as of August 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    unframed=output.unframed,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    real_arguments=input.real_arguments,
    folders=hook_file.FOLDERS,
    read_folder=hook_file.read_folder,
    suffixes=(),
    executables=True,
    agents=("Cline", "@cline/core"),
    constant_environment=True,
    user_files=(UserFiles("Documents/Cline", "Hooks"), UserFiles(".cline", "hooks")),
    project_files=(".clinerules/hooks", ".cline/hooks"),
)
