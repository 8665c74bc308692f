"""A file is replaced as a whole, and nobody sees what is not finished."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hookproxy.files.replace import replace_file, replace_in_folder, written_beside


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path | str | int) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_created_and_replaced_for_its_owner_alone(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "file"
    for content in (b"first", b"second" * 100_000, b""):
        replace_file(str(path), content, durable=durable)
        assert path.read_bytes() == content
        assert mode(path) == 0o600
        path.chmod(0o666)
    assert os.listdir(tmp_path) == ["file"]


def test_the_mode_holds_whatever_the_umask_is(tmp_path: Path) -> None:
    os.umask(0o077)
    replace_file(str(tmp_path / "file"), b"", mode=0o660)
    assert mode(tmp_path / "file") == 0o660


def test_who_has_the_old_file_open_reads_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace_file(str(path), b"new")
        assert reader.read() == b"old"


def test_a_link_is_replaced_and_its_target_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"target")
    (tmp_path / "link").symlink_to("target")
    replace_file(str(tmp_path / "link"), b"new")
    assert (tmp_path / "target").read_bytes() == b"target"
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"new"


def test_a_relative_path_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replace_file("file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_new_file_is_private_until_it_is_complete_and_its_access_is_set(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def set_access(fd: int) -> None:
        seen.append((mode(fd), os.fstat(fd).st_size))
        os.fchmod(fd, 0o640)

    with opened(tmp_path) as folder:
        replace_in_folder(folder, "file", b"1234", set_access)
    assert seen == [(0o600, 4)]
    assert mode(tmp_path / "file") == 0o640


def test_a_file_is_replaced_in_the_open_folder_even_if_its_name_has_changed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with opened(tmp_path / "folder") as folder:
        (tmp_path / "folder").rename(tmp_path / "moved")
        replace_in_folder(folder, "file", b"new")
    assert (tmp_path / "moved/file").read_bytes() == b"new"


def test_after_a_failure_the_old_file_is_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def fail(_fd: int) -> None:
        raise PermissionError

    with opened(tmp_path) as folder, pytest.raises(PermissionError):
        replace_in_folder(folder, "file", b"new", fail)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path / "folder"), b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_new_file_that_got_no_name_is_removed(tmp_path: Path) -> None:
    with written_beside(str(tmp_path / "file"), b"new") as new:
        assert Path(new).parent == tmp_path
        assert Path(new).read_bytes() == b"new"
    assert os.listdir(tmp_path) == []


def test_the_text_is_on_the_disk_before_it_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.replace

    def logged_fsync(fd: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    def logged_rename(source: str, target: str) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_rename)
    replace_file(str(tmp_path / "file"), b"new")
    assert steps == ["file", "rename", "folder"]
