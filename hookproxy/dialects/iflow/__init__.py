"""iFlow CLI's hooks."""

from __future__ import annotations

from functools import partial
from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from ..shared import command_file
from ..shared.identity_variables import IDENTITY_VARIABLES
from . import hook_file, input, output
from .hook_file import FORMAT

IFLOW: Final = Dialect(
    name=FORMAT.dialect,
    described_by="iFlow CLI's page on hooks, platform.iflow.cn/en/cli/examples/hooks, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields={},
    order=Order.TOGETHER,
    default_timeout=FORMAT.timeout,
    tool_names=ToolNames.MCP,
    read_hook_file=partial(command_file.read_hook_file, FORMAT),
    write_input=input.write_input,
    read_output=output.read_output,
    closed_by_field=False,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=partial(command_file.fits, FORMAT),
    shape_of="claude",
    folders=(".iflow",),
    variables=IDENTITY_VARIABLES["iflow"],
)
