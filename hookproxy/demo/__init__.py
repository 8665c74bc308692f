"""What `hookproxy demo` shows at work: a tool server, and three hooks with their settings, as Claude Code has them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent
"""The hooks' project: `settings.json` and `hooks/`."""


class Received(msgspec.Struct, frozen=True):
    """One call as the server got it, a line in the file that is its only argument."""

    id: int | str
    tool: str
    arguments: dict[str, object]
    answer: list[str]
    """The texts that it answered."""
