"""The history: pages from the newest call on, one call, sums over a period, exports."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

import pytest

from hookproxy.audit.records import BadLine, CallRecord
from hookproxy.console import history
from hookproxy.console.call_filter import ALL, CallFilter
from hookproxy.console.charts import charts
from hookproxy.console.history import PAGE, Query, View
from hookproxy.console.html import render
from hookproxy.model.errors import UserError

START = datetime(2026, 11, 1, tzinfo=UTC)


def record(number: int, **members: object) -> dict[str, object]:
    at = (START + timedelta(minutes=number)).isoformat(timespec="milliseconds")
    return {
        "v": 1, "time": at, "call": f"run-{number}", "session": "s", "server": "files", "tool": "read", "id": number,
        "arguments": {"path": f"/file-{number}"}, "hooks": [], "changed": [], "decision": "allow", "result": "ok",
        "ms": 2.0, "hook_ms": 0.0, "agent": "tester 1", **members,
    }  # fmt: skip


def write(path: Path, records: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), "utf-8")
    return str(path)


def calls(listing: history.Listing) -> list[str]:
    return [row.entry.call for row in listing.rows if isinstance(row.entry, CallRecord)]


def page(listing: history.Listing) -> str:
    values = {"title": "History", "current": "history", "path": "a.jsonl", "is_first": False}
    return render("history.html", view=View(ALL), listing=listing, periods=history.PERIODS, **values)


def test_pages_go_from_the_newest_call_to_the_oldest_through_rotated_files(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl.1", [record(number) for number in range(70)])
    path = write(tmp_path / "a.jsonl", [record(number) for number in range(70, 250)])
    seen: list[str] = []
    before = None
    for _ in range(4):
        listing = history.listing(path, Query(), before)
        seen += calls(listing)
        before = listing.older
        if before is None:
            break
    assert seen == [f"run-{number}" for number in reversed(range(250))]


def test_a_page_goes_on_where_it_was_although_the_file_was_rotated_and_grew(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [record(number) for number in range(150)])
    first = history.listing(path, Query())
    (tmp_path / "a.jsonl").rename(tmp_path / "a.jsonl.1")
    write(tmp_path / "a.jsonl", [record(number) for number in range(150, 400)])
    assert calls(history.listing(path, Query(), first.older)) == [f"run-{number}" for number in reversed(range(50))]


def test_a_page_has_only_calls_that_match(tmp_path: Path) -> None:
    records = [record(number, tool="write_file" if number % 10 == 0 else "read") for number in range(300)]
    path = write(tmp_path / "a.jsonl", records)
    listing = history.listing(path, Query(CallFilter(tool="write_*")))
    assert calls(listing) == [f"run-{number}" for number in reversed(range(0, 300, 10))]
    assert listing.older is None
    assert calls(history.listing(path, Query(CallFilter(text="FILE-299")))) == ["run-299"]


def test_a_search_that_takes_long_stops_and_can_be_continued(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [record(number) for number in range(1000)])
    query = Query(CallFilter(text='file-3"'))
    first = history.listing(path, query, seconds=0)
    assert (first.rows, bool(first.searched_to)) == ([], True)
    assert calls(history.listing(path, query, first.older)) == ["run-3"]


def test_a_page_ends_with_the_period(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [record(number) for number in range(90)])
    since, until = START + timedelta(minutes=80), START + timedelta(minutes=84)
    listing = history.listing(path, Query(since=since, until=until))
    assert calls(listing) == ["run-84", "run-83", "run-82", "run-81", "run-80"]
    assert listing.older is None


def test_a_call_that_has_begun_and_ended_is_shown_once(tmp_path: Path) -> None:
    lines = [record(1, result="begun"), record(1), record(2, result="begun")]
    assert calls(history.listing(write(tmp_path / "a.jsonl", lines), Query())) == ["run-2", "run-1"]


def test_a_line_that_is_no_record_is_shown_as_such(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [record(1)])
    with open(path, "ab") as file:
        file.write(b"<script>not json\n")
    listing = history.listing(path, Query())
    assert isinstance(listing.rows[0].entry, BadLine)
    assert "is not a record: not JSON." in page(listing)


def test_a_page_of_a_hundred_thousand_lines_reads_only_the_newest(tmp_path: Path) -> None:
    line = json.dumps(record(1))
    with open(tmp_path / "a.jsonl", "w") as file:
        file.writelines(f"{line}\n" for _ in range(100_000))
    begun = process_time()
    listing = history.listing(str(tmp_path / "a.jsonl"), Query())
    assert len(listing.rows) == PAGE
    assert process_time() - begun < 0.3


def test_a_missing_audit_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        history.listing(str(tmp_path / "none"), Query())


def test_one_call_is_found_with_all_its_records(tmp_path: Path) -> None:
    lines = [record(1), record(2, result="pending"), record(3), record(2, session="other"), record(2, result="ok")]
    path = write(tmp_path / "a.jsonl", lines)
    assert [one.result for one in history.find(path, "run-2", "s")] == ["pending", "ok"]
    assert history.find(path, "run-9", "s") == []


def test_sums_over_a_period_count_every_call_once(tmp_path: Path) -> None:
    hook = {"command": "./guard", "event": "PreToolUse", "ms": 20.0, "outcome": "blocking", "verdict": "deny"}
    lines = [record(number, hooks=[hook], result="refused" if number % 5 == 0 else "ok") for number in range(480)]
    path = write(tmp_path / "a.jsonl", lines)
    sums = history.over_time(path, Query(since=START, until=START + timedelta(minutes=480)))
    assert [part.calls for part in sums.parts] == [10] * 48
    assert sum(part.refused for part in sums.parts) == sums.sums.all.refused == 96
    assert 18 < sums.parts[0].quantile(0.95) <= 20
    assert sums.parts[0].hooks.longest == 20
    html = charts(sums)
    assert "480 calls, 96 refused" in html
    assert 'role="img"' in html


def test_all_time_begins_with_the_first_call(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [record(number) for number in range(3)])
    assert history.over_time(path, Query(until=START + timedelta(days=1))).since == START


def test_an_export_of_lines_has_the_bytes_of_the_audit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [record(number, tool=f"t{number}") for number in range(5)])
    written = Path(path).read_bytes().split(b"\n")
    assert (
        b"".join(history.export_lines(path, Query(CallFilter(tool="t[13]")))) == written[1] + b"\n" + written[3] + b"\n"
    )


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\uff1d1"])
def test_no_cell_of_a_csv_export_is_a_formula(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "a.jsonl", [record(1, tool=cell, reason=cell, agent=cell, server=cell)])
    text = b"".join(history.export_csv(path, Query())).decode()
    head, row = csv.reader(io.StringIO(text, newline=""))
    found = dict(zip(head, row, strict=True))
    assert {found[name] for name in ("tool", "reason", "agent", "server")} == {f"'{cell}"}
    assert (found["ms"], found["arguments"]) == ("2.0", '{"path": "/file-1"}')


def test_what_the_address_names_stays_in_the_links_of_the_page() -> None:
    view = View.from_query({"tool": "a&b=<", "decision": "wrong", "since": "24h", "until": ""})
    assert view.calls == CallFilter(tool="a&b=<")
    assert view.address(before="1-2") == "tool=a%26b%3D%3C&since=24h&before=1-2"


def test_what_an_agent_wrote_is_text_in_the_table(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\u202e\x1b[31m"
    path = write(tmp_path / "a.jsonl", [record(1, tool=evil, server=evil, agent=evil, reason=evil, by=evil)])
    html = page(history.listing(path, Query()))
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "U+202E" in html


def test_what_is_only_watched_can_be_found_and_is_shown(tmp_path: Path) -> None:
    watched = {"would": ["refused"], "decision": "deny", "by": "deny <b>"}
    path = write(
        tmp_path / "audit.jsonl", [record(1, monitor=watched), record(2, monitor={"decision": "allow"}), record(3)]
    )
    found = history.listing(path, history.Query(CallFilter(decision="watched")))
    assert len(found.rows) == 1
    text = page(found)
    assert "only watched: refused" in text
