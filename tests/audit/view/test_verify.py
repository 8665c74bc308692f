"""A chained file is as it was written, or the first line that is not is named: for each way to change a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hookproxy.audit.append_file import AppendFile
from hookproxy.audit.hash_chain import line_hash, read_key
from hookproxy.audit.opened_file import FileOptions
from hookproxy.audit.view.verify import Break, verify
from hookproxy.model.errors import UserError

Lines = list[bytes]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Six chained lines."""
    path = tmp_path / "audit.jsonl"
    append(path, 6)
    return path


def append(path: Path, count: int, limit: int = 0, chain: bool = True) -> None:
    append_file = AppendFile(str(path), FileOptions(chain=chain, limit=limit))
    for number in range(count):
        append_file.append(b'{"tool":"write","n":%d}\n' % number)
    append_file.close()


def broken(path: Path) -> Break | None:
    (checked,) = verify(str(path))
    return checked.broken


def changed(lines: Lines) -> Lines:
    return [*lines[:2], lines[2].replace(b"write", b"wrote"), *lines[3:]]


def unchained(lines: Lines) -> Lines:
    return [*lines[:2], b'{"tool":"x"}', *lines[2:]]


def copied(lines: Lines) -> Lines:
    return [*lines[:3], lines[2], *lines[3:]]


def forged(lines: Lines) -> Lines:
    new = json.dumps({"previous": line_hash(lines[2]), "tool": "x"}).encode()
    return [*lines[:3], new, *lines[3:]]


@pytest.mark.parametrize(
    ("tamper", "line", "what"),
    [
        (changed, 4, "was changed"),
        (lambda lines: lines[:2] + lines[3:], 3, "removed"),
        (lambda lines: lines[1:], 1, "have been removed"),
        (lambda lines: lines[3:], 1, "have been removed"),
        (unchained, 3, "it was inserted"),
        (copied, 4, "inserted"),
        (forged, 5, "inserted"),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 3, "moved"),
        (lambda lines: [*lines[:2], lines[2][:-5], *lines[3:]], 3, "changed or inserted"),
        (lambda lines: [*lines[:2], b"nonsense", *lines[2:]], 3, "changed or inserted"),
        (lambda lines: [*lines[:5], lines[5][:-5]], 6, "not a record"),
        (lambda lines: [lines[0].replace(b'"previous":"",', b""), *lines[1:]], 2, "was changed"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"previous"', b'"Previous"'), *lines[4:]], 4, "inserted"),
        (lambda lines: [*lines[:3], b'{"previous":7}', *lines[4:]], 4, "cannot be read"),
    ],
)
def test_each_way_to_change_a_file_is_found(file: Path, tamper: Callable[[Lines], Lines], line: int, what: str) -> None:
    file.write_bytes(b"".join(each + b"\n" for each in tamper(file.read_bytes().splitlines())))
    found = broken(file)
    assert found is not None
    assert (found.line, what in found.what) == (line, True), found.what


def test_an_unchanged_file_has_no_break(file: Path) -> None:
    (checked,) = verify(str(file))
    lines = file.read_bytes().splitlines()
    assert (checked.broken, checked.lines, checked.unchained, checked.torn) == (None, 6, 0, 0)
    assert checked.head == line_hash(lines[-1])


def test_lines_removed_from_the_end_are_detected_with_a_noted_head(file: Path) -> None:
    head = verify(str(file))[0].head
    append(file, 2)
    assert verify(str(file), head)[0].found, "it has grown since"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]))
    (checked,) = verify(str(file), head)
    assert checked.broken is None, "the file alone cannot tell"
    assert not checked.found


def test_a_torn_last_line_is_reported_as_such(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])
    (checked,) = verify(str(file))
    assert (checked.broken, checked.unfinished, checked.lines, checked.torn) == (None, True, 5, 1)


def test_torn_lines_are_covered_by_the_chain(file: Path) -> None:
    with file.open("ab") as end:
        end.write(b'{"previous":"half')
    append(file, 2)
    assert broken(file) is None
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"half", b"HALF"))
    assert "has been changed" in getattr(broken(file), "what", "")
    file.write_bytes(whole.replace(b'{"previous":"half\n', b""))
    assert "has been changed or removed" in getattr(broken(file), "what", "")


def test_lines_from_before_the_chain_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 3, chain=False)
    append(path, 2)
    (checked,) = verify(str(path))
    assert (checked.lines, checked.unchained, checked.broken) == (5, 3, None)


def test_a_torn_line_from_before_the_chain_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 2, chain=False)
    path.write_bytes(path.read_bytes() + b'{"tool":"wr')
    append(path, 2, chain=False)
    append(path, 2)
    (checked,) = verify(str(path))
    assert (checked.broken, checked.unchained, checked.chained, checked.torn) == (None, 4, 2, 1)


def test_a_line_of_a_writer_that_does_not_chain_is_found(file: Path) -> None:
    append(file, 1, chain=False)
    found = broken(file)
    assert found is not None
    assert (found.line, "did not chain" in found.what) == (7, True)


def test_files_are_checked_from_the_first_to_the_last(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 12, limit=400)
    checked = verify(str(path))
    assert [one.broken for one in checked] == [None] * len(checked)
    assert len(checked) > 2
    assert sum(one.lines for one in checked) == 12
    second = Path(checked[1].path)
    lines = second.read_bytes().splitlines(keepends=True)
    second.write_bytes(b"".join(lines[:-1]))
    assert "not the last line of" in getattr(verify(str(path))[2].broken, "what", ""), "the end of an older file"
    second.write_bytes(b"".join(lines).replace(b"write", b"wrote", 1))
    assert verify(str(path))[1].broken is not None


def test_a_name_that_ends_as_a_rotated_file_does_hides_no_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.2026"
    append(path, 20, limit=400)
    files = verify(str(path))
    assert len(files) > 3
    assert not any(one.broken for one in files)
    older = path.with_name("audit.2026.2")
    older.write_bytes(older.read_bytes().replace(b"write", b"wrote"))
    assert [Path(one.path).name for one in verify(str(path)) if one.broken] == ["audit.2026.2"]


def test_the_files_before_an_empty_new_one_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 20, limit=400)
    path.write_bytes(b"")
    older = path.with_name("audit.jsonl.2")
    assert [one.broken for one in verify(str(path)) if one.broken] == []
    older.write_bytes(older.read_bytes().replace(b"write", b"wrote"))
    assert [Path(one.path).name for one in verify(str(path)) if one.broken] == ["audit.jsonl.2"]


def test_a_missing_previous_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 6, limit=400)
    first, *others = verify(str(path))
    Path(first.path).unlink()
    checked = verify(str(path))
    assert [one.path for one in checked] == [one.path for one in others]
    assert checked[0].continues == Path(first.path).name


@pytest.mark.parametrize("name", ["../secret.1", "/etc/passwd", "audit.jsonl", "other.1", "audit.jsonl.5", "", "x\x00"])
def test_a_line_cannot_choose_which_file_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "audit.jsonl.5"
    path.write_text(json.dumps({"previous": "0" * 64, "continues": name}) + "\n")
    (tmp_path / "audit.jsonl").write_text("")
    assert len(verify(str(path))) == 1


def test_files_cannot_continue_each_other_in_a_circle(tmp_path: Path) -> None:
    for number in (1, 2):
        line = {"previous": "0" * 64, "continues": f"audit.jsonl.{3 - number}"}
        (tmp_path / f"audit.jsonl.{number}").write_text(json.dumps(line) + "\n")
    assert len(verify(str(tmp_path / "audit.jsonl.2"))) == 2


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        verify(str(tmp_path / "missing"))


# --- with a key ---


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(b"k" * 32 + b"\n")
    path.chmod(0o600)
    return path


def keyed(path: Path, key: Path, count: int = 250, limit: int = 0) -> bytes:
    """A file with so many lines of a keyed chain; returns the key."""
    one = AppendFile(str(path), FileOptions(chain=True, key_file=str(key), limit=limit))
    for number in range(count):
        one.append(b'{"v":1,"tool":"write","x":%d}\n' % number)
    one.close()
    return read_key(str(key))


def breaks(path: Path, secret: bytes) -> str:
    return next((one.broken.what for one in verify(str(path), key=secret) if one.broken), "")


def test_lines_of_a_keyed_chain_are_numbered_through_all_files(tmp_path: Path, key: Path) -> None:
    secret = keyed(path := tmp_path / "audit.jsonl", key, limit=20_000)
    files = verify(str(path), key=secret)
    assert len(files) > 2
    assert not any(one.broken for one in files)
    assert (sum(one.keyed for one in files), files[-1].count) == (250, 250)


@pytest.mark.parametrize("line", [0, 100, -1])
def test_without_the_key_no_line_can_be_changed_even_if_the_chain_is_made_anew(
    tmp_path: Path, key: Path, line: int
) -> None:
    secret = keyed(path := tmp_path / "audit.jsonl", key)
    lines = path.read_bytes().splitlines()
    lines[line] = lines[line].replace(b"write", b"wrote")
    previous = b""
    for number, each in enumerate(lines):  # what an attacker without the key can do
        lines[number] = re.sub(rb'^\{"previous":"[0-9a-f]*"', b'{"previous":"%b"' % previous, each)
        previous = line_hash(lines[number]).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert not any(one.broken for one in verify(str(path))), "as far as can be seen without the key"
    assert "its mac does not fit" in breaks(path, secret)


def test_a_line_without_a_mac_or_with_another_key_is_found(tmp_path: Path, key: Path) -> None:
    secret = keyed(path := tmp_path / "audit.jsonl", key, count=3)
    assert "its mac does not fit" in breaks(path, b"x" * 32)
    append_plain = AppendFile(str(path), FileOptions(chain=True))
    append_plain.append(b'{"v":1,"tool":"forged"}\n')
    append_plain.close()
    assert "it has no mac" in breaks(path, secret)


def test_lines_removed_from_the_end_are_found_by_the_checkpoint(tmp_path: Path, key: Path) -> None:
    secret = keyed(path := tmp_path / "audit.jsonl", key)
    whole = path.read_bytes().splitlines(keepends=True)
    assert breaks(path, secret) == ""
    path.write_bytes(b"".join(whole[:-1]))
    assert "lines are missing: " in breaks(path, secret)
    checkpoint = tmp_path / "audit.jsonl.checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes().replace(b'"n":250', b'"n":249'))
    assert "was changed, or has another key" in breaks(path, secret)
    checkpoint.unlink()
    assert "should name 249 lines, but it is missing" in breaks(path, secret)


def test_a_missing_file_in_the_middle_or_at_the_end_is_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 20, limit=400)
    middle = tmp_path / "audit.jsonl.3"
    content = middle.read_bytes()
    middle.unlink()
    assert "audit.jsonl.3, which it continues, is missing, but " in breaks(path, b"")
    middle.write_bytes(content)
    assert breaks(path, b"") == ""
    path.unlink()
    assert "is missing, but " in breaks(path, b"")


@pytest.mark.parametrize(
    ("mode", "content", "message"),
    [(0o640, b"k" * 32, "may be read by other accounts"), (0o600, b"k" * 31, "has fewer than 32 bytes")],
)
def test_a_key_that_others_know_or_guess_is_no_key(tmp_path: Path, mode: int, content: bytes, message: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(OSError, match=message):
        read_key(str(path))
