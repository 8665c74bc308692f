"""Where the demo's hooks lie, and what its server tells of a call."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent
"""The hooks' project: `settings.json` and `hooks/`."""


class Received(msgspec.Struct, frozen=True):
    """One call as the server got it: a line in its record."""

    id: int | str
    tool: str
    arguments: dict[str, object]
    answer: list[str]
    """The texts that it answered."""
