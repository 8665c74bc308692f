"""Docker Agent's hooks, as two dialects.

`docker-agent` is the hooks page of March 2026; `docker-agent@current` follows the newer page and its code.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Order
from ...model.settings import ToolNames
from ..dialect import Dialect
from . import hook_file, input, output

DIALECT: Final = Dialect(
    files=hook_file.DOCUMENTED,
    described_by="Docker Agent's hooks page, docs/configuration/hooks, as of March 2026",
    output_fields=output.FIELDS,
    order=Order.TOGETHER,
    tool_names=ToolNames.BARE,
    read_hook_file=partial(hook_file.read_hook_file, hook_file.DOCUMENTED),
    write_input=input.write_input,
    read_output=partial(output.read_output, output.DOCUMENTED),
    tool_spellings=hook_file.TOOL_SPELLINGS,
    recognises=hook_file.recognises,
    options=("agent",),
    suffixes=(".yaml", ".yml", ".json"),
    agents=("docker agent",),
    constant_environment=True,
)

CURRENT: Final = replace(
    DIALECT,
    files=hook_file.CURRENT,
    described_by="Docker Agent's hooks page as of October 2026, and where it is silent its code, pkg/hooks",
    output_fields=output.CURRENT_FIELDS,
    order=Order.PIPELINE,
    read_hook_file=partial(hook_file.read_hook_file, hook_file.CURRENT),
    write_input=input.write_input_current,
    read_output=partial(output.read_output, output.CURRENT),
    recognises=lambda _members: False,
)
