"""code-assist's hooks.

Its page has events for a server's questions to the person, but no output member that answers them: such hooks only
observe.
"""

from __future__ import annotations

from typing import Final

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from . import hook_file, input, output, tools

DIALECT: Final = Dialect(
    name=hook_file.NAME,
    described_by="code-assist's hooks page, abhinaavramesh.github.io/code-assist/guide/hooks, as of April 2026",
    events=hook_file.EVENTS,
    unavailable=hook_file.UNAVAILABLE_EVENTS,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=hook_file.read_hook_file,
    write_input=input.write_input,
    read_output=output.read_output,
    tool_spellings=tools.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    options=("max_retries",),
    folders=(".claude",),  # its page on configuration has .claude/settings.json, also in the home folder
    agents=("code-assist",),
    constant_environment=True,
)
