"""The end of a file gives the hashes that the next line must name, however long the last lines are."""

from __future__ import annotations

import errno
import hmac
import os
import re
from hashlib import sha256
from pathlib import Path

import pytest

from hookproxy.audit import hash_chain
from hookproxy.audit.hash_chain import Tail
from tests.support.managed_folder import NOBODY


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
    assert tail(tmp_path / "file", b"of\ntwo\npieces\n") == Tail("", digest(b"of\ntwo\npieces"))


def test_a_file_without_lines_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_chain, "_LONGEST_LINE", 100_000)
    with pytest.raises(OSError, match=r"^\[Errno \d+\] has no line in its last 100000 bytes$") as raised:
        tail(tmp_path / "file", b"x" * 500_000)
    assert raised.value.errno == errno.EFBIG


@pytest.mark.parametrize(("size", "fits"), [(65_536, True), (65_537, False)])
def test_the_longest_line_is_as_long_as_readers_accept(
    size: int, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_chain, "_LONGEST_LINE", 65_536)
    line = b'{"x":"' + b"y" * (size - 8) + b'"}'
    assert len(line) == size
    if fits:
        assert tail(tmp_path / "file", line) == Tail(digest(line))
    else:
        with pytest.raises(OSError, match="no line"):
            tail(tmp_path / "file", line)


def test_a_long_line_is_read_in_few_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[int, int]] = []
    pread = os.pread

    def counted(fd: int, size: int, start: int) -> bytes:
        reads.append((start, start + size))
        return pread(fd, size, start)

    monkeypatch.setattr(os, "pread", counted)
    size = 3_000_000
    assert tail(tmp_path / "file", b"x" * size).torn == digest(b"x" * size)
    assert len(reads) == 6, "64 KiB, and each piece twice as long as the one before"
    assert [begin for begin, _ in reads[:-1]] == [end for _, end in reads[1:]], "no byte twice"


def test_lines_are_read_backwards_with_their_places(tmp_path: Path) -> None:
    content = b"\n\nfirst\n\n" + b"x" * 70_000 + b"\n" + b"y" * 70_000 + b"\n\nlast\n\n"
    (tmp_path / "file").write_bytes(content + b"later\n")
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        found = list(hash_chain.backwards(fd, len(content)))
    finally:
        os.close(fd)
    assert found == [(match.start(), match[0]) for match in re.finditer(rb"[^\n]+", content)][::-1]


@pytest.mark.parametrize("line", [b"{", b'{"a":1', b"[]", b"7", b"", b'{"a":1}{', b"[" * 100_000])
def test_a_line_that_is_not_an_object_is_torn(line: bytes) -> None:
    assert not hash_chain.is_whole(line)


def test_the_previous_file_has_the_highest_number(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.jsonl")
    assert hash_chain.predecessor(path) == ""
    for ending in ("1", "2", "10", "x", "1.gz", "lock", "٣", "9999999999", "-3"):
        (tmp_path / f"audit.jsonl.{ending}").write_bytes(b"")
    assert hash_chain.predecessor(path) == f"{path}.10"


@pytest.mark.parametrize("number", [1, 999_999_999])
def test_a_rotated_file_has_one_to_nine_digits(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (f"audit.jsonl.{number}", f"audit.jsonl.{number}0000000000", f"other.{number}", str(number)):
        (tmp_path / name).write_bytes(b"")
    for path in ("audit.jsonl", f"{tmp_path}/audit.jsonl"):
        assert hash_chain.predecessor(path) == f"{path}.{number}"


# --- what a first line continues ---

HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("members", "number"),
    [
        (f'"previous":"{HASH}","continues":"audit.jsonl.7","n":1', 7),
        (f'"previous":"{HASH}","torn":"{HASH}","continues":"a.999999999"', 999_999_999),
        (f'"previous":"{HASH}","torn":"{HASH}","continues":"{"é" * 255}.12"', 12),
        (f'"previous":"{HASH}","continues":".7"', 0),
        (f'"previous":"{HASH}","continues":"a.1234567890"', 0),
        (f'"previous":"{HASH}","continues":"a"', 0),
        (f'"previous":"{HASH}"', 0),
        ('"previous":"","continues":"a.7"', 0),
        (f'"x":1,"previous":"{HASH}","continues":"a.7"', 0),
    ],
)
def test_a_first_line_names_the_file_that_it_continues(members: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(f"{{{members}}}\n".encode() + b"x" * 2000)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        os.lseek(fd, 5, os.SEEK_SET)
        assert hash_chain.continued(fd) == number
    finally:
        os.close(fd)


# --- keyed chains ---

KEY = bytes(range(32))


def test_a_line_of_a_keyed_chain_has_its_number_and_a_mac_over_everything_else() -> None:
    line = hash_chain.with_mac(b'{"previous":"",', b'"tool":"x"}\n', 12, KEY)
    mac = hmac.digest(KEY, b'{"previous":"","n":12,"tool":"x"}', "sha256").hex()
    assert line == b'{"previous":"","n":12,"mac":"%b","tool":"x"}\n' % mac.encode()
    line = line.rstrip(b"\n")
    assert hash_chain.count_of(line) == 12
    assert hash_chain.mac_fits(line, KEY) is True
    assert hash_chain.mac_fits(line, KEY[::-1]) is False
    for old, new in ((b'"x"', b'"y"'), (b'"n":12', b'"n":13'), (b'"previous":""', b'"previous":"%b"' % HASH.encode())):
        assert hash_chain.mac_fits(line.replace(old, new), KEY) is False
    for other in (b'{"n":12}', line[1:], b'{"previous":"","n":12,"mac":"","tool":"x"}', b""):
        assert hash_chain.mac_fits(other, KEY) is None
        assert hash_chain.count_of(other) == 0


def test_a_checkpoint_has_the_hash_and_the_number_of_the_last_line() -> None:
    line = hash_chain.checkpoint_of(Tail(HASH, count=300), KEY)
    assert line == hash_chain.with_mac(b'{"previous":"%b",' % HASH.encode(), b'"checkpoint":true}\n', 300, KEY)
    assert hash_chain.mac_fits(line.rstrip(b"\n"), KEY)


def test_the_end_of_a_keyed_file_has_the_number_of_its_last_whole_line(tmp_path: Path) -> None:
    line = hash_chain.with_mac(b'{"previous":"",', b'"tool":"x"}\n', 12, KEY)
    expected = Tail(digest(line.rstrip(b"\n")), digest(b"torn"), count=12)
    assert tail(tmp_path / "file", line + b"torn\n") == expected


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> str:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def refusal(path: str) -> tuple[int | None, str | None, str]:
    """The number, the text and the file of the error for a key that cannot be used."""
    before = os.listdir("/dev/fd")
    with pytest.raises(OSError, match=r".") as raised:
        hash_chain.read_key(path)
    assert os.listdir("/dev/fd") == before
    return raised.value.errno, raised.value.strerror, raised.value.filename


@pytest.mark.parametrize("key", [KEY, b"x" * 4095, b" " + KEY + b"\t", b"X" + KEY + b"X"])
def test_a_key_is_read_without_line_feeds_around_it(key: bytes, tmp_path: Path) -> None:
    before = os.listdir("/dev/fd")
    assert hash_chain.read_key(key_file(tmp_path, key + b"\n")) == key
    assert hash_chain.read_key(key_file(tmp_path, key)) == key
    assert os.listdir("/dev/fd") == before


def test_a_long_file_is_read_as_far_as_a_key_can_go(tmp_path: Path) -> None:
    assert hash_chain.read_key(key_file(tmp_path, b"x" * 5000)) == b"x" * 4096


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"\n" * 40 + b"x" * 31 + b"\n"])
def test_a_key_that_is_too_short_is_refused(content: bytes, tmp_path: Path) -> None:
    path = key_file(tmp_path, content)
    number, text, file = refusal(path)
    assert (number, file) == (errno.EINVAL, path)
    assert text == "has fewer than 32 bytes: it is not a key"


@pytest.mark.parametrize("mode", [0o601, 0o602, 0o604, 0o610, 0o620, 0o640])
def test_a_key_that_others_may_use_is_refused(mode: int, tmp_path: Path) -> None:
    path = key_file(tmp_path, KEY, mode)
    assert refusal(path) == (errno.EPERM, "may be read by other accounts: chmod 600 it", path)


def test_a_key_of_another_account_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = key_file(tmp_path, KEY)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.stat(path).st_uid + 1)
    assert refusal(path) == (errno.EPERM, "belongs to another account", path)


def test_a_key_that_is_not_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key", 0o600)
    path = str(tmp_path / "key")
    assert refusal(path) == (errno.EINVAL, "is not a regular file", path)
