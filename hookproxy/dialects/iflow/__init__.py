"""iFlow CLI's hooks."""

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
    described_by="iFlow CLI's page on hooks, platform.iflow.cn/en/cli/examples/hooks, as of 2026",
    events=FORMAT.events,
    unavailable=FORMAT.unavailable,
    output_fields={},
    order=Order.TOGETHER,
    default_timeout=FORMAT.timeouts.default,
    tool_names=ToolNames.MCP,
    read_hook_file=partial(command_file.read_hook_file, FORMAT),
    write_input=input.write_input,
    read_output=output.read_output,
    closed_by_field=False,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=partial(command_file.fits, FORMAT),
    shape_of="claude",
    folders=(".iflow",),
    variables=(
        "IFLOW_CWD",
        "IFLOW_HOOK_EVENT_NAME",
        "IFLOW_NOTIFICATION_MESSAGE",
        "IFLOW_SESSION_ID",
        "IFLOW_SESSION_SOURCE",
        "IFLOW_TOOL_ALIASES",
        "IFLOW_TOOL_ARGS",
        "IFLOW_TOOL_NAME",
        "IFLOW_TRANSCRIPT_PATH",
        "IFLOW_USER_PROMPT",
    ),
    user_files=(UserFiles(".iflow", "settings.json"),),
    project_files=(".iflow/settings.json",),
)
