"""What the runs of one session have hidden, so that one of them can restore what another one has hidden.

It is in the guard's memory only. What is kept is limited as in a run; the oldest is forgotten first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ..model.newest_entries import NewestEntries

_KEY_BYTES: Final = 32  # of HMAC-SHA-256
_MOST_BYTES: Final = 16 * 1024 * 1024  # as in a run


class KeptSecrets:
    """The secrets of one session."""

    def __init__(self) -> None:
        self.key = os.urandom(_KEY_BYTES)
        """Of the placeholders that its runs make."""
        self._values: NewestEntries[str] = NewestEntries(_MOST_BYTES)

    def keep(self, values: Mapping[str, str]) -> None:
        """Keep what these placeholders stand for. What is kept already stays: one placeholder has one value."""
        for placeholder, value in values.items():
            if placeholder not in self._values:
                self._values.keep(placeholder, value, len(value))

    def value_of(self, placeholder: str) -> str | None:
        """What a placeholder stands for; None: it is not kept."""
        return self._values.get(placeholder)
