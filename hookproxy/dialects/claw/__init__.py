"""claw-code's hooks, as two dialects.

`claw` follows the hooks page: command strings, plain text, two events. `claw@current` is the program of August 2026,
which has a third event, allows matcher groups beside command strings, and reads JSON.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect, UserFiles
from . import hook_file, input, output

DIALECT: Final = Dialect(
    files=hook_file.DOCUMENTED,
    described_by="claw-code's page on its hook system, as of April 2026",
    order=Order.UNTIL_DENIED,
    tool_names=ToolNames.BARE,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.CURRENT.fits,
    folders=(".claw", ".claude"),
    agents=("runtime",),  # the name that claw-code gives as an MCP client
    variables=("HOOK_EVENT", "HOOK_TOOL_INPUT", "HOOK_TOOL_IS_ERROR", "HOOK_TOOL_NAME", "HOOK_TOOL_OUTPUT"),
)

CURRENT: Final = replace(
    DIALECT,
    files=hook_file.CURRENT,
    described_by="the source of claw-code, rust/crates/runtime, as of August 2026",
    output_fields=output.FIELDS,
    read_hook_file=hook_file.CURRENT.read,
    read_output=output.read_output_current,
    recognises=lambda _members: False,
    user_files=(UserFiles(".claw", "settings.json", "CLAW_CONFIG_HOME"),),
    project_files=(".claw.json", ".claw/settings.json", ".claw/settings.local.json"),
)
