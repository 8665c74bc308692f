"""The folder of the demo's hooks, and the record that its server writes of each call."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent
"""The project folder of the hooks: `settings.json` and `hooks/`."""


class Received(msgspec.Struct, frozen=True):
    """One call as the server received it: a line in its record."""

    id: int | str
    tool: str
    arguments: dict[str, object]
    texts: list[str]
    """The texts of the server's result."""
