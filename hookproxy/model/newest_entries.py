"""A table that keeps the newest entries, up to so many bytes: whoever chooses names and values cannot fill memory."""

from __future__ import annotations

from typing import Final, TypeVar

_Value = TypeVar("_Value")

_ENTRY_BYTES: Final = 1000  # of memory for an entry, besides its texts: the table's places, and the values' objects


class NewestEntries(dict[str, _Value]):
    """Values by their names. Only `keep` and `forget` change it."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most = most_bytes
        self._sizes: dict[str, int] = {}
        self._bytes = 0

    def keep(self, name: str, value: _Value, size: int) -> None:
        """Keep a value, whose texts have so many bytes, in place of the one of this name; the oldest ones may go."""
        self.forget(name)
        self[name] = value
        self._sizes[name] = size + len(name) + _ENTRY_BYTES
        self._bytes += self._sizes[name]
        while self._bytes > self._most:
            self.forget(next(iter(self)))

    def forget(self, name: str) -> None:
        """Remove the value of this name, if there is one."""
        if name in self:
            del self[name]
            self._bytes -= self._sizes.pop(name)
