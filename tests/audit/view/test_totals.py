"""Calls and runs of hooks are counted, in bounded memory."""

from __future__ import annotations

from hookproxy.audit.records import BadLine, CallRecord, HookRun, NoteRecord
from hookproxy.audit.view.statistics import OTHERS, HookTotals, Statistics, ToolTotals


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


def test_names_that_an_agent_makes_up_do_not_fill_memory() -> None:
    sums = Statistics()
    sums.add(CallRecord(tool=f"t{number}", hooks=(HookRun(command=f"h{number}"),)) for number in range(3000))
    assert (len(sums.tools), len(sums.hooks)) == (1001, 1001)
    assert sums.tools[OTHERS].calls == 2000
