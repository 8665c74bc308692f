"""Caches whose keys the agent chooses, by names of tools and arguments: their size is bounded, so none fills memory."""

from __future__ import annotations

from typing import Final, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_MAX_ENTRIES: Final = 4096  # more tools than any server has
_LONGEST_KEY: Final = 1024  # characters: names of tools have at most 128, says MCP; 30 arguments have about as many


def keep(table: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value in the table, unless its key is very long: each value can be found again.

    For the same reason a full table is emptied first. A key is a text, or consists of texts.
    """
    if _length(key) > _LONGEST_KEY:
        return
    if len(table) >= _MAX_ENTRIES:
        table.clear()
    table[key] = value


def _length(key: object) -> int:
    if isinstance(key, str):
        return len(key)
    return sum(map(_length, key)) if isinstance(key, tuple | frozenset) else 0
