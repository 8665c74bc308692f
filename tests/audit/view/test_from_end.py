"""Lines from the newest on, and lines since a time, without reading the whole audit."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.audit.hash_chain import backwards
from hookproxy.audit.view import from_end
from hookproxy.audit.view.from_end import Place

START = datetime(2026, 11, 1, tzinfo=UTC)


def line(number: int, size: int = 10) -> bytes:
    at = (START + timedelta(seconds=number)).isoformat(timespec="milliseconds")
    return json.dumps({"v": 1, "time": at, "tool": "t", "number": number, "rest": "x" * size}).encode()


@given(st.lists(st.binary(max_size=30).filter(lambda one: b"\n" not in one), max_size=30))
def test_lines_backwards_are_those_of_the_file_with_their_places(lines: list[bytes]) -> None:
    text = b"\n".join(lines)
    fd = os.memfd_create("lines")
    os.write(fd, text)
    found = list(backwards(fd, len(text)))
    os.close(fd)
    assert [one for _, one in reversed(found)] == [one for one in lines if one]
    assert all(text[at : at + len(one)] == one for at, one in found)


def test_lines_since_a_time_are_all_later_ones_and_few_others(tmp_path: Path) -> None:
    (tmp_path / "a.2").write_bytes(b"".join(line(number) + b"\n" for number in range(1000)))
    (tmp_path / "a.7").write_bytes(b"".join(line(number) + b"\n" for number in range(1000, 2000)))
    (tmp_path / "a").write_bytes(b"".join(line(number, 200) + b"\n" for number in range(2000, 6000)))
    for wanted in (0, 500, 1999, 2000, 3500, 5999):
        since = START + timedelta(seconds=wanted)
        found = [json.loads(one.raw)["number"] for one in from_end.lines_since(str(tmp_path / "a"), since)]
        assert found == list(range(found[0], 6000))
        assert found[0] <= wanted
        assert wanted - found[0] < 60 + 1100


def test_lines_without_a_time_and_very_long_lines_are_not_lost(tmp_path: Path) -> None:
    lines = [line(1), b"torn {", line(2, 300_000), b"", line(3), line(4, 200_000), line(5)]
    (tmp_path / "a").write_bytes(b"\n".join(lines))
    read = [one.raw for one in from_end.lines_since(str(tmp_path / "a"), START)]
    assert read == [one for one in lines if one]


def test_a_place_that_is_no_more_begins_with_the_newest(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(line(1) + b"\n" + line(2) + b"\n")
    found = [one for _, one in from_end.newest_first(str(tmp_path / "a"), Place(1, 0))]
    assert found == [line(2), line(1)]


def test_a_place_is_read_from_its_text_and_nothing_else_is_one() -> None:
    assert from_end.place(str(Place(12, 345))) == Place(12, 345)
    for text in ("", "1", "1-", "-1", "a-b", "1-2-3", "1" * 30 + "-1"):
        assert from_end.place(text) is None
