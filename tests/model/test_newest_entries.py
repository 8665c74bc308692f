"""A table that others fill stays within its bytes, and keeps what came last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.newest_entries import NewestEntries

ENTRIES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3000)))


@given(ENTRIES)
def test_it_has_only_the_newest_entries_and_they_fit(entries: list[tuple[str, int]]) -> None:
    table = NewestEntries[int](most_bytes=5000)
    newest: dict[str, int] = {}
    for name, size in entries:
        table.keep(name, size, size)
        newest.pop(name, None)
        newest[name] = size
        assert [*table.items()] == [*newest.items()][len(newest) - len(table) :]
        assert sum(table.values()) + 1001 * len(table) <= 5000
        assert table[name] == size


@given(ENTRIES)
def test_what_is_forgotten_takes_no_room(entries: list[tuple[str, int]]) -> None:
    table = NewestEntries[None](most_bytes=5000)
    for name, size in entries:
        table.keep(name, None, size)
        table.forget(name)
        table.forget(name)
    for name in ("x", "y", "z"):
        table.keep(name, None, 600)
    assert list(table) == ["x", "y", "z"]
