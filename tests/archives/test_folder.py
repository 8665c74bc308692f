"""A folder that anybody may have made is read strictly, and only so much of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.archives import archive
from hookproxy.archives.folder import files_of
from hookproxy.model.errors import UserError


def test_plain_files_are_read_and_hidden_and_compiled_ones_left_out(tmp_path: Path) -> None:
    for name in ("a.sh", "b/c.txt", ".git/config", "__pycache__/x.pyc", "b/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "a.sh").chmod(0o755)
    assert files_of(str(tmp_path)) == ({"a.sh": b"a.sh", "b/c.txt": b"b/c.txt"}, frozenset({"a.sh"}))


@pytest.mark.parametrize("kind", ["link", "link to a folder", "pipe"])
def test_what_is_not_a_plain_file_is_an_error(tmp_path: Path, kind: str) -> None:
    match kind:
        case "link":
            (tmp_path / "x").symlink_to("/etc/passwd")
        case "link to a folder":
            (tmp_path / "x").symlink_to("/etc")
        case _:
            os.mkfifo(tmp_path / "x")
    with pytest.raises(UserError, match="is not a plain file"):
        files_of(str(tmp_path))


def test_too_much_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 10)
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    (tmp_path / "a").write_bytes(bytes(6))
    assert files_of(str(tmp_path))[0] == {"a": bytes(6)}
    (tmp_path / "b").write_bytes(bytes(5))
    with pytest.raises(UserError, match="has more than"):
        files_of(str(tmp_path))
    for name in "abcd":
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UserError, match="has more than"):
        files_of(str(tmp_path))
