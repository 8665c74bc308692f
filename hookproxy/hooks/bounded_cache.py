"""Caches whose keys the agent chooses, by names of tools and arguments: their size is bounded, so none fills memory."""

from __future__ import annotations

from typing import Final, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_MAX_ENTRIES: Final = 4096  # more tools than any server has


def keep(table: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value in the table; a full table is emptied first, because each value can be found again."""
    if len(table) >= _MAX_ENTRIES:
        table.clear()
    table[key] = value
