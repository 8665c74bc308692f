"""VS Code's local agent ("Local" harness). Its Copilot harness runs the hooks of the dialect `copilot`."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from . import hook_file, input, output

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="VS Code's source and its reference of local agent hooks, code.visualstudio.com, as of autumn 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.UNTIL_STOPPED,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    hook_identity=lambda spec: (spec.source,),
    after_results_only=True,
    mcp_tool_name=hook_file.mcp_tool_name,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    recognises_at_home=hook_file.recognises_at_home,
    folders=(".github/hooks", ".copilot/hooks"),
    agents=("Visual Studio Code",),
    constant_environment=True,
)
