"""What all sessions with one lock file know of it: what is pinned now, and what a person is asked about.

A server that is pinned at its first use, or that a person has accepted, is pinned for all of them from then on.
"""

from __future__ import annotations

from functools import lru_cache

from ..lock import hidden_text, lock_file
from ..lock.compare import Pinned
from ..lock.description import Description, Kind
from ..model.lock_settings import LockSettings


class SharedLock:
    """The servers of one file."""

    def __init__(self, settings: LockSettings) -> None:
        self.path = settings.file
        lock = lock_file.parse(settings.data, settings.file) if settings.data else {}
        self.servers = {name: Pinned(description) for name, description in lock.items()}
        self.version = 0
        """Rises whenever something else is pinned."""
        self.asked: set[tuple[str, Kind | None, str]] = set()
        """What a person is asked about now, by server, kind and name: once, not in each session or for each text."""
        self.refused: dict[str, set[tuple[Kind | None, str, bytes]]] = {}
        """What a person has refused of each server, by kind, name and text: nobody is asked about it again."""
        self.gone: set[tuple[str, str]] = set()
        """What is pinned and was not listed, by server and name: people learn it once from each lock file."""
        self.tools = hidden_text.tool_names(lock)
        """The tools of all servers by name, with their server, as far as they are not usual words."""

    def pin(self, server: str, description: Description) -> None:
        """Note that a server is pinned so."""
        self.servers[server] = Pinned(description)
        self.version += 1


@lru_cache(maxsize=64)  # a gateway may have a table for each server
def shared_lock(settings: LockSettings) -> SharedLock:
    """What is known of the file with this content: the same object for all sessions. Raises ConfigError."""
    return SharedLock(settings)
