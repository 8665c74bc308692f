"""Files that several processes append to: no line lost, whole lines, one chain, whoever is killed whenever."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hookproxy.audit.append_file import AppendFile
from hookproxy.audit.hash_chain import is_whole, line_hash
from hookproxy.audit.lock_file import LOCK_TIMEOUT
from hookproxy.audit.opened_file import FileOptions
from hookproxy.audit.view.verify import verify

pytestmark = pytest.mark.slow

WRITER = Path(__file__).with_name("writer.py")
LINE = b'{"tool":"x"}\n'


def files_of(path: Path) -> list[Path]:
    """The file and those that once had its name, in their order."""
    older = [one for one in path.parent.iterdir() if one.name.removeprefix(f"{path.name}.").isdecimal()]
    return [*sorted(older, key=lambda one: int(one.suffix[1:])), path]


def lines_of(path: Path) -> list[bytes]:
    return [line for one in files_of(path) for line in one.read_bytes().split(b"\n") if line]


@contextmanager
def append_file(
    path: Path, *, chain: bool = False, shared: bool = False, limit: int = 0, keep: int = 0
) -> Iterator[AppendFile]:
    one = AppendFile(str(path), FileOptions(chain=chain, shared=shared, limit=limit, keep=keep))
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


# --- many writers ---


@pytest.mark.parametrize(("chain", "shared"), [(True, True), (True, False), (False, True)])
def test_sixteen_writers_that_are_killed_at_any_moment_lose_no_line(file: Path, chain: bool, shared: bool) -> None:
    command = [sys.executable, str(WRITER), str(file)]

    def start(name: str) -> subprocess.Popen[bytes]:
        options = [name, str(chain), str(shared), "300000"]
        return subprocess.Popen([*command, *options], bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    writers = {f"w{number}": start(f"w{number}") for number in range(16)}
    confirmed: dict[str, list[int]] = {name: [] for name in writers}
    try:
        for number, (name, one) in enumerate(writers.items()):
            assert one.stdout is not None
            for _ in range(3 + number % 5):  # it is at work
                confirmed[name].append(int(one.stdout.readline()))
            one.kill()
    finally:
        for one in writers.values():
            one.kill()
    for name, one in writers.items():
        rest, _ = one.communicate()
        confirmed[name] += [int(each) for each in rest.splitlines(keepends=True) if each.endswith(b"\n")]
    with append_file(file, chain=chain, shared=shared) as last:
        last.append(LINE)  # who comes next closes what is unfinished
    found = [json.loads(line) for line in lines_of(file) if is_whole(line)]
    for name, numbers in confirmed.items():
        written = [one["id"] for one in found if one.get("session") == name]
        assert written == list(range(len(written))), f"{name}: each line once, in order"
        assert len(written) > numbers[-1], f"{name}: each confirmed line"
    assert len(files_of(file)) > 1
    assert all(one.stat().st_size <= 300_000 for one in files_of(file))
    assert file.read_bytes().endswith(b"\n")
    if chain:
        checked = verify(str(file))
        assert [one.broken for one in checked] == [None] * len(files_of(file))
        assert sum(one.lines for one in checked) == len(found)
        assert not any(one.unchained for one in checked)


def test_each_line_has_the_hash_of_the_line_before(file: Path) -> None:
    with append_file(file, chain=True) as one, append_file(file, chain=True) as other:
        for number in range(6):
            (one, other)[number % 2].append(b'{"n":%d}\n' % number)
    lines = lines_of(file)
    assert [json.loads(line)["previous"] for line in lines] == ["", *map(line_hash, lines[:-1])]
    assert [json.loads(line)["n"] for line in lines] == list(range(6))


def test_a_chain_continues_in_another_run(file: Path) -> None:
    file.write_bytes(b'{"old":1}\n')
    for _ in range(2):
        with append_file(file, chain=True) as one:
            one.append(LINE)
    (checked,) = verify(str(file))
    assert (checked.lines, checked.unchained, checked.broken) == (3, 1, None)


def test_a_chain_continues_in_the_next_file_which_names_the_previous_one(file: Path) -> None:
    with append_file(file, chain=True, limit=300) as one:
        for _ in range(7):
            one.append(LINE)
    names = [each.name for each in files_of(file)]
    assert names == [*(f"audit.jsonl.{number}" for number in range(1, len(names))), "audit.jsonl"]
    first = json.loads(file.read_bytes().split(b"\n")[0])
    assert len(names) > 2
    assert first["continues"] == names[-2]
    assert first["previous"] == line_hash(files_of(file)[-2].read_bytes().splitlines()[-1])
    checked = verify(str(file))
    assert [Path(each.path).name for each in checked] == names
    assert [each.broken for each in checked] == [None] * len(names)


def test_a_number_is_not_reused_although_a_file_was_moved_away(file: Path) -> None:
    with append_file(file, chain=True, limit=300) as one:
        for _ in range(7):
            one.append(LINE)
        older = files_of(file)[:-1]
        for each in older:
            each.rename(each.with_suffix(".kept"))
        for _ in range(7):
            one.append(LINE)
    assert files_of(file)[0].name == f"audit.jsonl.{len(older) + 1}"
    checked = verify(str(file))
    assert [each.broken for each in checked] == [None] * len(files_of(file))
    assert checked[0].continues == older[-1].name


def test_an_empty_new_file_does_not_break_the_chain(file: Path) -> None:
    with append_file(file, chain=True) as one:
        one.append(LINE)
        file.rename(f"{file}.1")
        file.write_bytes(b"")
        one.append(LINE)
    assert [each.broken for each in verify(str(file))] == [None, None]


# --- what a stopped writer leaves ---


@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("left", [b"{", b'{"previous":"', b'{"tool":"y","arguments":{"x":"' + b"y" * 200_000])
def test_a_torn_line_is_ended_and_the_next_line_is_whole(file: Path, chain: bool, left: bytes) -> None:
    with append_file(file, chain=chain) as one:
        one.append(LINE)
    with file.open("ab") as end:
        end.write(left)
    if chain:
        (checked,) = verify(str(file))
        assert (checked.broken, checked.unfinished, checked.torn, checked.lines) == (None, True, 1, 1)
    with append_file(file, chain=chain) as one:
        one.append(LINE)
    first, half, last = lines_of(file)
    assert half == left
    assert is_whole(first)
    assert json.loads(last)["tool"] == "x"
    if chain:
        (checked,) = verify(str(file))
        assert (checked.broken, checked.unfinished, checked.torn, checked.lines) == (None, False, 1, 2)


def test_a_line_that_only_lacks_its_end_is_a_line(file: Path) -> None:
    with append_file(file, chain=True) as one:
        one.append(LINE)
        file.write_bytes(file.read_bytes().rstrip())
        one.append(LINE)
    (checked,) = verify(str(file))
    assert (checked.lines, checked.torn, checked.broken) == (2, 0, None)


def test_a_file_that_may_not_grow_is_not_ready_for_a_line(tmp_path: Path) -> None:
    program = """
import resource, sys
from hookproxy.audit.append_file import AppendFile
from hookproxy.audit.opened_file import FileOptions
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    AppendFile(sys.argv[1], FileOptions()).ready()
except OSError as problem:
    print(problem.strerror)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "audit.jsonl")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert ended.stdout == "cannot grow beyond 4096 bytes, the limit of ulimit -f\n"


def test_a_full_disk_leaves_no_line_out_of_the_chain(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    with append_file(file, chain=True) as one:
        one.append(LINE)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 20, before[1]))
            for _ in range(2):
                with pytest.raises(OSError, match=r"space|large"):
                    one.append(LINE)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        one.append(LINE)
    (checked,) = verify(str(file))
    assert (checked.lines, checked.broken) == (2, None)


# --- the lock ---


def test_a_lock_that_is_never_released_is_waited_for_once_and_not_long(file: Path) -> None:
    with append_file(file, chain=True) as one, open(f"{file}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.monotonic()
        with pytest.raises(OSError, match="holds the lock"):
            one.append(LINE)
        waited = time.monotonic() - begun
        assert LOCK_TIMEOUT <= waited < LOCK_TIMEOUT + 5
        for _ in range(20):
            with pytest.raises(OSError, match="holds the lock"):
                one.ready()
        assert time.monotonic() - begun - waited < 5 * LOCK_TIMEOUT, "the others did not wait"
        fcntl.flock(lock, fcntl.LOCK_UN)
        one.append(LINE)
    assert len(lines_of(file)) == 1


def test_a_removed_lock_file_is_created_again(file: Path) -> None:
    with append_file(file, chain=True) as one, append_file(file, chain=True) as other:
        one.append(LINE)
        os.unlink(f"{file}.lock")
        other.append(LINE)
        one.append(LINE)
        other.append(LINE)
    assert [each.broken for each in verify(str(file))] == [None]
    assert len(lines_of(file)) == 4


def test_there_is_no_lock_unless_it_is_needed(file: Path) -> None:
    with append_file(file) as one:
        one.append(LINE)
    assert [each.name for each in file.parent.iterdir()] == [file.name]


# --- who may read and write it ---


def test_a_shared_file_belongs_to_its_group_whatever_the_umask(file: Path) -> None:
    before = os.umask(0o077)
    try:
        with append_file(file, shared=True, limit=65536) as one:
            for _ in range(2):
                one.append(b'{"x":"' + b"y" * 60_000 + b'"}\n')
    finally:
        os.umask(before)
    assert {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()} == {
        "audit.jsonl": 0o660,
        "audit.jsonl.1": 0o660,
        "audit.jsonl.lock": 0o660,
    }


def test_the_folder_of_a_shared_file_must_be_there(tmp_path: Path) -> None:
    with append_file(tmp_path / "missing" / "audit.jsonl", shared=True) as one, pytest.raises(FileNotFoundError):
        one.append(LINE)


@pytest.mark.parametrize("options", [FileOptions(shared=True), FileOptions(private=True)])
@pytest.mark.parametrize("name", ["audit.jsonl", "audit.jsonl.lock"])
def test_a_link_in_a_shared_folder_is_not_followed(tmp_path: Path, options: FileOptions, name: str) -> None:
    if name.endswith("lock") and not options.needs_lock:
        return
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / name).symlink_to(target)
    one = AppendFile(str(tmp_path / "audit.jsonl"), options)
    with pytest.raises(OSError, match="symbolic links"):
        one.append(LINE)
    one.close()
    assert target.read_bytes() == b""


def test_a_link_in_an_own_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")
    with append_file(tmp_path / "audit.jsonl") as one:
        one.append(LINE)
        one.append(LINE)
    assert (tmp_path / "elsewhere").read_bytes() == LINE * 2


def test_a_chain_continues_after_the_rotation_of_a_link(tmp_path: Path) -> None:
    link, file = tmp_path / "audit.jsonl", tmp_path / "file"
    file.touch()
    link.symlink_to(file)
    with append_file(link, chain=True, limit=400) as one:
        for _ in range(20):
            one.append(LINE)
    assert len(lines_of(link)) == 20
    assert all(found.chained and not found.broken for found in verify(str(link)))


def test_only_as_many_rotated_files_as_configured_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with append_file(path, limit=100, keep=3) as one:
        for _ in range(100):
            one.append(LINE)
        assert not one.rotation_error
    assert [each.name for each in files_of(path)] == [f"audit.jsonl.{n}" for n in (12, 13, 14)] + ["audit.jsonl"]
    assert all(each.stat().st_size <= 100 for each in files_of(path))


def test_without_a_chain_only_rotation_takes_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with append_file(path, limit=100) as one:
        one.append(LINE)
        assert not Path(f"{path}.lock").exists()
        for _ in range(10):
            one.append(LINE)
        assert Path(f"{path}.lock").exists()


def test_a_shared_file_with_a_second_name_is_not_written(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"")
    os.link(other, tmp_path / "audit.jsonl")
    with append_file(tmp_path / "audit.jsonl", shared=True) as one, pytest.raises(OSError, match="second name"):
        one.append(LINE)
    assert other.read_bytes() == b""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_private_file_of_another_account_is_refused(file: Path) -> None:
    file.write_bytes(b"")
    os.chown(file, 12345, -1)
    one = AppendFile(str(file), FileOptions(private=True))
    with pytest.raises(OSError, match="another account"):
        one.append(LINE)
    one.close()


def test_lines_are_not_chained_in_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with append_file(tmp_path / "pipe", chain=True) as one, pytest.raises(OSError, match="not a regular file"):
        one.append(LINE)
    os.close(reader)


def test_a_file_that_may_only_be_written_is_written(file: Path) -> None:
    file.write_bytes(b"")
    file.chmod(0o200)
    with append_file(file) as one:
        one.append(LINE)
    assert file.stat().st_size == len(LINE)


def test_a_file_that_is_moved_away_is_created_again(file: Path) -> None:
    with append_file(file) as one:
        for number in itertools.islice(itertools.count(), 2):
            one.append(LINE)
            file.rename(f"{file}.old{number}")
        one.append(LINE)
    assert file.read_bytes() == LINE


def test_no_file_is_lost_when_the_numbers_are_used_up(file: Path) -> None:
    with append_file(file, chain=True, limit=400) as one:
        for _ in range(6):
            one.append(LINE)
        file.with_name(f"{file.name}.999999999").touch()
        for _ in range(20):
            one.append(LINE)
        assert "last possible number" in one.rotation_error
    assert len(lines_of(file)) == 26


@pytest.mark.skipif(os.getuid() == 0, reason="root may rename all")
def test_a_file_that_cannot_be_renamed_is_still_written(file: Path) -> None:
    with append_file(file, limit=20) as one:
        one.append(LINE)
        file.parent.chmod(0o500)
        try:
            one.append(LINE)
        finally:
            file.parent.chmod(0o700)
        assert "cannot be renamed" in one.rotation_error
    assert file.read_bytes() == LINE * 2


def test_a_line_that_another_process_is_writing_is_not_taken_for_a_torn_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with append_file(file) as one:
        one.append(b'{"a":1}\n')
        begun = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.write(begun, b'{"b":')

        def goes_on(*_arguments: object) -> None:
            os.write(begun, b"2}\n")

        monkeypatch.setattr(select, "select", goes_on)
        one.append(b'{"c":3}\n')
        os.close(begun)
    assert file.read_bytes() == b'{"a":1}\n{"b":2}\n{"c":3}\n'


def test_a_line_that_nobody_finishes_gets_its_end(file: Path) -> None:
    with append_file(file) as one:
        one.append(b'{"a":1}\n')
        with file.open("ab") as cut:
            cut.write(b'{"b":')
        one.append(b'{"c":3}\n')
    assert file.read_bytes() == b'{"a":1}\n{"b":\n{"c":3}\n'


def test_lines_that_wait_are_appended_in_one_write_after_a_torn_one(file: Path) -> None:
    file.write_bytes(b'{"torn')
    with append_file(file) as one:
        assert one.append_some([b"{}\n", b"[]\n", b"1\n"]) == 3
    assert file.read_bytes() == b'{"torn\n{}\n[]\n1\n'


def test_lines_of_a_chain_and_lines_that_do_not_fit_into_one_file_are_appended_one_by_one(file: Path) -> None:
    with append_file(file, chain=True) as one:
        assert one.append_some([LINE, LINE]) == 1
    with append_file(file.with_name("other"), limit=len(LINE)) as one:
        assert one.append_some([LINE, LINE]) == 1


def test_of_lines_that_a_full_disk_cuts_only_the_whole_ones_count(file: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with append_file(file) as one:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 * len(LINE) + 3, before[1]))
            assert one.append_some([LINE] * 3) == 2
            with pytest.raises(OSError, match="large"):
                one.append_some([LINE])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert one.append_some([LINE]) == 1
    assert file.read_bytes() == LINE * 2 + LINE[:3] + b"\n" + LINE
