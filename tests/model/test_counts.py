"""Numbers with their nouns."""

from __future__ import annotations

from hookproxy.model.counts import counted


def test_a_noun_is_in_the_singular_only_after_one() -> None:
    shown = [counted(number, "second") for number in (0, 1, 2, 1.5, 1_000_000)]
    assert shown == ["no seconds", "1 second", "2 seconds", "1.5 seconds", "1000000 seconds"]
