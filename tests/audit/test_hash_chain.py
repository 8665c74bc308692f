"""The end of a file gives the hashes that the next line must name, however long the last lines are."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from hookproxy.audit import hash_chain
from hookproxy.audit.hash_chain import Tail


def tail(path: Path, content: bytes) -> Tail:
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    try:
        return hash_chain.tail_of(fd, len(content))
    finally:
        os.close(fd)


def digest(text: bytes) -> str:
    return sha256(text).hexdigest()


@pytest.mark.parametrize("size", [1, 65_000, 65_536, 65_537, 200_000])
def test_the_last_whole_line_is_found_whatever_its_length(tmp_path: Path, size: int) -> None:
    line = b'{"x":"' + b"y" * size + b'"}'
    for content in (line + b"\n", line, b'{"a":1}\n' + line + b"\n\n\n", b"\n" + line + b"\n"):
        assert tail(tmp_path / "file", content) == Tail(digest(line))


def test_torn_lines_have_one_hash_together(tmp_path: Path) -> None:
    got = tail(tmp_path / "file", b'{"a":1}\n{"b":\n{"c":"\xff\n\n{"d"')
    assert got == Tail(digest(b'{"a":1}'), digest(b'{"b":\n{"c":"\xff\n{"d"'))


def test_without_a_whole_line_there_is_no_previous_hash(tmp_path: Path) -> None:
    assert tail(tmp_path / "file", b"") == Tail()
    assert tail(tmp_path / "file", b"nonsense\n") == Tail("", digest(b"nonsense"))


def test_a_file_without_lines_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_chain, "_LONGEST_LINE", 100_000)
    with pytest.raises(OSError, match="no line"):
        tail(tmp_path / "file", b"x" * 500_000)


@pytest.mark.parametrize("line", [b"{", b'{"a":1', b"[]", b"7", b"", b'{"a":1}{', b"[" * 100_000])
def test_a_line_that_is_not_an_object_is_torn(line: bytes) -> None:
    assert not hash_chain.is_whole(line)


def test_the_previous_file_has_the_highest_number(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.jsonl")
    assert hash_chain.predecessor(path) == ""
    for ending in ("1", "2", "10", "x", "1.gz", "lock", "٣", "9999999999", "-3"):
        (tmp_path / f"audit.jsonl.{ending}").write_bytes(b"")
    assert hash_chain.predecessor(path) == f"{path}.10"
