"""Calls and runs of hooks are counted in bounded memory, and drawn in 80 columns with or without colour."""

from __future__ import annotations

from typing import Final

import pytest
from rich.cells import cell_len

from hookproxy.audit.records import BadLine, CallRecord, HookRun, Monitor, NoteRecord
from hookproxy.audit.view.statistics import OTHERS, HookTotals, Statistics, ToolTotals, WatchedTotals, charts
from hookproxy.audit.view.table import Screen


def test_each_call_counts_for_its_tool_and_each_run_for_its_hook() -> None:
    sums = Statistics()
    guard = HookRun(command="guard", event="PreToolUse", ms=10, outcome="blocking", verdict="deny")
    edit = HookRun(command="guard", event="PreToolUse", ms=30, outcome="success", verdict="rewrite")
    sums.add(
        [
            CallRecord(server="s", tool="a", result="refused", hooks=(guard,), time="1"),
            CallRecord(server="s", tool="a", result="ok", changed=("arguments",), hooks=(edit,), time="2"),
            CallRecord(server="s", tool="b", result="error", changed=("result",), time="3"),
            NoteRecord(note="x"),
            BadLine(3, "x"),
        ]
    )
    assert sums.tools == {"s/a": ToolTotals(2, 1, 1, 0), "s/b": ToolTotals(1, 0, 0, 1)}
    assert sums.all == ToolTotals(3, 1, 1, 1)
    assert sums.hooks == {"guard (PreToolUse)": HookTotals(2, 40, 30, 1, 1, 0)}
    assert (sums.first, sums.last) == ("1", "3")


WATCHED: Final = Monitor(would=("refused",), decision="deny", by="deny write_*")


def test_what_is_only_watched_is_summed_up_by_who_would_have_done_it() -> None:
    sums = Statistics()
    hook = HookRun(command="fmt", event="PreToolUse", verdict="rewrite")
    sums.add(
        [
            CallRecord(call="c1", server="s", tool="a", monitor=WATCHED),
            CallRecord(call="c2", server="s", tool="b", monitor=WATCHED),
            CallRecord(call="c3", server="s", tool="a", monitor=Monitor(decision="allow")),
            CallRecord(call="c4", server="s", tool="a", monitor=Monitor(would=("rewritten",), hooks=(hook,))),
            CallRecord(call="c5", server="s", tool="a"),
        ]
    )
    assert (sums.watched, sums.changed) == (4, 3)
    assert sums.would_be["deny write_*"] == WatchedTotals({"refused": 2}, 2, "c1 s/a")
    assert sums.would_be["fmt"].would == {"rewritten": 1}
    text = drawn(sums)
    assert "ONLY WATCHED: 3 of 4 calls would have ended otherwise" in text
    assert "  2 refused, such as c1 s/a" in text
    assert all(cell_len(line) <= 80 for line in text)


def test_invented_names_of_rules_do_not_fill_memory() -> None:
    sums = Statistics()
    sums.add(CallRecord(monitor=Monitor(would=("refused",), by=f"r{number}")) for number in range(3000))
    assert len(sums.would_be) == 1001


def test_invented_tool_names_do_not_fill_memory() -> None:
    sums = Statistics()
    sums.add(CallRecord(tool=f"t{number}", hooks=(HookRun(command=f"h{number}"),)) for number in range(3000))
    assert (len(sums.tools), len(sums.hooks)) == (1001, 1001)
    assert sums.tools[OTHERS].calls == 2000


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


def test_on_a_narrow_terminal_names_are_above_their_bars() -> None:
    text = drawn(SUMS, Screen(60, "utf-8", lambda text, _style: text))
    assert max(map(cell_len, text)) <= 60
    at = text.index("s/a")
    assert text[at - 1].split() == ["█", "forwarded", "░", "refused", "CALLS", "REFUSED", "REWRITTEN"]
    assert text[at + 1].startswith("  " + "█" * 18 + "░" * 2)
    assert len(text[at - 1]) == len(text[at + 1])
    assert any(line.startswith(f"  {'█' * 10}    2.5 s  110 runs") for line in text)


def test_without_unicode_bars_use_ascii() -> None:
    text = "\n".join(drawn(SUMS, Screen(80, "ascii", lambda text, _style: text)))
    assert text.isascii()
    assert "#" * 18 + "--" in text


def test_without_calls_no_chart_is_drawn() -> None:
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
