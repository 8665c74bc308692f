"""Changes of the lock file while servers run: read again, changed and replaced as a whole, one process at a time."""

from __future__ import annotations

from collections.abc import Callable

from ..lock import lock_file
from ..lock.description import Description, Identity, Kind

Change = Callable[[Description | None], Description]
"""Returns what is to be pinned of a server in place of what is; None: it is not in the file."""


def update(path: str, server: str, change: Change) -> Description:
    """Pin the server so, and return what is pinned of it now. Raises ConfigError, UserError."""
    return lock_file.update(path, lambda before: {**before, server: change(before.get(server))})[server]


def first_use(before: Description | None, kind: Kind | None, came: Description) -> Description:
    """What is pinned after the first use of a kind, or (None) of the identity. What is pinned already stays."""
    if before is None:
        return came
    if kind is None:
        return Description(came.identity, before.entries) if before.identity == Identity() else before
    if any(pinned is kind for pinned, _ in before.entries):
        return before
    about = came.identity if before.identity == Identity() else before.identity
    return Description(about, {**before.entries, **came.entries})
