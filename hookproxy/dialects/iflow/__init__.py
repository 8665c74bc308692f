"""iFlow CLI's hooks."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from ..shared.command_file import NO_TIMEOUT
from ..shared.identity_variables import IDENTITY_VARIABLES
from . import hook_file, input, output

IFLOW: Final = Dialect(
    name=hook_file.NAME,
    described_by="iFlow CLI's page on hooks, platform.iflow.cn/en/cli/examples/hooks, as of 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields={},
    order=Order.TOGETHER,
    default_timeout=NO_TIMEOUT,
    tool_names=ToolNames.MCP,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    shape_of="claude",
    folders=(".iflow",),
    variables=IDENTITY_VARIABLES["iflow"],
)
