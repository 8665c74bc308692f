"""Charts are read at 80 columns, without colour, and in whatever signs a terminal has."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from hookproxy.audit.view.statistics import HookTotals, Statistics, ToolTotals, charts
from hookproxy.audit.view.table import Screen

PLAIN = Screen(80, "utf-8", lambda text, _style: text)


def drawn(sums: Statistics, screen: Screen = PLAIN) -> list[str]:
    return list(charts(sums, screen))


SUMS = Statistics(
    ToolTotals(110, 11, 3, 2),
    {"s/a": ToolTotals(100, 10, 3, 2), "s/b": ToolTotals(10, 1, 0, 0)},
    {"guard (PreToolUse)": HookTotals(110, 2500, 400, 11, 3, 1), "lint (PostToolUse)": HookTotals(1, 5, 5)},
    "2026-11-01T10:00:00.1+00:00",
    "2026-11-02T10:00:00.1+00:00",
)


def test_bars_are_as_long_as_their_numbers() -> None:
    text = drawn(SUMS)
    (a,) = [line for line in text if line.startswith("s/a")]
    (b,) = [line for line in text if line.startswith("s/b")]
    assert ("█" * 18 + "░" * 2 + "  ") in a
    assert a.split()[-3:] == ["100", "10", "3"]
    assert b.count("█") == 2
    assert text[0] == "110 calls, 11 refused, 3 rewritten, 2 failed or cancelled"
    at = text.index("guard (PreToolUse)  11 refusals, 3 rewrites, 1 failure")
    assert text[at + 1] == f"  {'█' * 20}    2.5 s  110 runs, 23 ms each, 400 ms at most"
    assert "1 run, 5.0 ms each" in text[at + 3]


def test_on_a_narrow_terminal_names_stand_above_their_bars() -> None:
    text = drawn(SUMS, Screen(60, "utf-8", lambda text, _style: text))
    assert max(map(cell_len, text)) <= 60
    at = text.index("s/a")
    assert text[at - 1].split() == ["█", "forwarded", "░", "refused", "CALLS", "REFUSED", "REWRITTEN"]
    assert text[at + 1].startswith("  " + "█" * 18 + "░" * 2)
    assert len(text[at - 1]) == len(text[at + 1])
    assert any(line.startswith(f"  {'█' * 10}    2.5 s  110 runs") for line in text)


def test_without_such_signs_others_stand_for_them() -> None:
    text = "\n".join(drawn(SUMS, Screen(80, "ascii", lambda text, _style: text)))
    assert text.isascii()
    assert "#" * 18 + "--" in text


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawn(Statistics()) == ["no calls"]


@pytest.mark.parametrize(
    "name", ["\x1b[2J" * 50, "漢" * 100, "x" * 500, "\u202e"], ids=["escapes", "wide", "long", "bidi"]
)
def test_charts_are_80_columns_wide_whatever_is_in_them(name: str) -> None:
    huge = HookTotals(10**6, 1e9, 1e8, 10**6, 10**6, 10**6)
    many = {f"{name}{number}": ToolTotals(10**6, 10**6, 10**6, 0) for number in range(50)}
    for line in drawn(
        Statistics(ToolTotals(10**6), many, {f"{name}{number}": huge for number in range(50)}, name, name)
    ):
        assert cell_len(line) <= 80, line
        assert line.isprintable()
