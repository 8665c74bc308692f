"""Cascade, the agent of Windsurf, which is Devin Desktop since 2026.

Besides the events of MCP calls it has events of its own commands, reads and edits: their hooks run for tools of the
server that do the same.
"""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="Windsurf's page on Cascade hooks, docs.devin.ai/desktop/cascade/hooks, as of summer 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields={},
    order=Order.SERIAL,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    recognises_at_home=hook_file.recognises_at_home,
    folders=(".windsurf", ".codeium/windsurf", ".codeium"),
    agents=("windsurf-client",),
    constant_environment=True,
    user_files=(UserFiles(".codeium/windsurf", "hooks.json"),),
    project_files=(".windsurf/hooks.json",),
)
