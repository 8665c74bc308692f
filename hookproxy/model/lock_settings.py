"""What `[lock]` says: which file pins what servers say of themselves, and what follows from a difference."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

OnChange = Literal["withhold", "ask", "deny", "warn"]


class LockSettings(Struct, frozen=True):
    """The table `[lock]`, and the file as it was read."""

    file: str
    """Its absolute path."""
    data: bytes = b""
    """What stood in it when the configuration was read; empty: there was no file, and it is created."""
    on_change: OnChange = "withhold"
    create: bool = False
    """A server that is not in the file is pinned as it is at its first use."""
    hidden_text: Literal["warn", "withhold"] = "warn"
    config: str = ""
    """The configuration that says so: its absolute path."""
