"""All files of an audit in their order, and what is still to come, over rotation."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hookproxy.audit.view.files import follow, read_all
from hookproxy.audit.view.verify import verify
from hookproxy.model.errors import UserError


class Over(Exception):
    """Nothing more will come."""


def followed(path: Path, *steps: Callable[[], object]) -> list[bytes]:
    """What is read if, each time that there is nothing more, the next of the steps is done."""
    left = list(steps)

    def wait() -> None:
        if not left:
            raise Over
        left.pop(0)()

    found: list[bytes] = []
    lines = follow(str(path), wait)
    with suppress(Over):
        while True:
            found.append(next(lines)[1].raw)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as end:
        end.write(text)


def test_older_files_are_read_first(file: Path) -> None:
    for name, text in (("", b"d\n"), (".1", b"a\n"), (".2", b"b\n"), (".10", b"c\n"), (".lock", b""), (".bak", b"x\n")):
        append(Path(f"{file}{name}"), text)
    found = [(Path(name).name, line.raw) for name, line in read_all(str(file))]
    assert [raw for _, raw in found] == [b"a", b"b", b"c", b"d"]
    assert found[0][0] == "audit.jsonl.1"
    assert [line.raw for _, line in read_all(f"{file}.2")] == [b"b"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_read_although_it_has_the_name_of_an_older_one(file: Path, kind: str) -> None:
    file.write_bytes(b'{"previous":"%b","continues":"audit.jsonl.1","tool":"x"}\n' % (b"0" * 64))
    older = file.with_name("audit.jsonl.1")
    if kind == "pipe":
        os.mkfifo(older)
    else:
        older.symlink_to("/dev/zero")
    for read in (lambda: list(read_all(str(file))), lambda: followed(file), lambda: verify(str(file))):
        with pytest.raises(UserError, match="is not a regular file"):
            read()


def test_a_file_that_is_missing_is_an_error(file: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        list(read_all(str(file)))


def test_lines_are_followed_as_they_are_finished(file: Path) -> None:
    append(file, b"1\n")
    steps = [lambda: append(file, b"2\n3"), lambda: append(file, b"4\n"), lambda: append(file, b"unfinished")]
    assert followed(file, *steps) == [b"1", b"2", b"34"]


def test_a_file_is_waited_for(file: Path) -> None:
    assert followed(file, lambda: None, lambda: append(file, b"1\n")) == [b"1"]


def test_nothing_is_missed_over_rotation(file: Path) -> None:
    append(file, b"1\n")

    def rotate() -> None:
        append(file, b"2\n")
        file.rename(f"{file}.1")
        append(file, b"3\n")

    def rotate_often() -> None:
        for number in (2, 3, 4):
            append(file, b"%d\n" % (number + 2))
            file.rename(f"{file}.{number}")
        append(file, b"7\n")

    assert followed(file, rotate, rotate_often) == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]


def test_a_file_that_is_moved_away_or_cut_is_read_from_its_beginning(file: Path) -> None:
    append(file, b"1\n2\n")

    def move() -> None:
        file.rename(f"{file}.old")
        append(file, b"3\n")

    assert followed(file, move, lambda: file.write_bytes(b""), lambda: append(file, b"4\n")) == [b"1", b"2", b"3", b"4"]
