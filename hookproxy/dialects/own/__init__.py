"""hookproxy's own hooks: the `[[hooks.EVENT]]` tables of hookproxy.toml.

Their input and output are those of Claude Code's hooks.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...model.settings import ToolNames
from ..claude import DIALECT as CLAUDE
from . import hook_file

OWN: Final = replace(
    CLAUDE,
    name=hook_file.NAME,
    described_by="hookproxy's own reference",
    default_timeout=hook_file.TIMEOUT,
    tool_names=ToolNames.BARE,
    recognises=lambda _members: False,
    folders=(),
    agents=(),
)
