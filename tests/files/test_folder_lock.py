"""A folder is locked until the descriptor is closed."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from hookproxy.files.folder_lock import lock_folder


def test_a_lock_excludes_others_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    lock = lock_folder(str(tmp_path / "new/folder"))
    other = os.open(tmp_path / "new/folder", os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(lock)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(other)
    assert os.listdir(tmp_path / "new/folder") == []


def test_a_missing_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    os.close(lock_folder(str(tmp_path / "folder")))
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) & 0o077 == 0


def test_what_is_not_a_folder_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="exists"):
        lock_folder(str(tmp_path / "file"))
