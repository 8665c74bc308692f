"""Files are read once, with what tells them from others in their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.trust.sources import FileContext, read, stat_signature


def test_what_is_read_is_kept_with_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("\ufefftext")
    file_context = FileContext({}, "/")
    assert file_context.text(str(path)) == "text"
    snapshot = file_context.files_read[str(path)]
    assert (snapshot.data, snapshot.signature) == (path.read_bytes(), stat_signature(path.stat()))


def test_whoever_writes_the_same_again_and_sets_the_time_back_changes_the_stamp(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("same")
    before, state = read(str(path)).signature, path.stat()
    path.write_text("same")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert read(str(path)).signature != before


@pytest.mark.parametrize(
    ("environ", "path", "found"),
    [
        ({"HOME": "/home/me"}, "~/x", "/home/me/x"),
        ({"HOME": "/home/me"}, "~you/x", "/work/~you/x"),
        ({"HOME": "/home/me"}, "../x", "/x"),
        ({"HOME": "/home/me"}, "/a//b/./c", "/a/b/c"),
    ],
)
def test_paths_start_from_their_folder_or_home(environ: dict[str, str], path: str, found: str) -> None:
    assert FileContext(environ, "/").find(path, "/work") == found


@pytest.mark.parametrize(
    ("name", "message"), [("gone", "there is no such file"), (".", "is a folder"), ("a\0b", "a NUL character")]
)
def test_what_cannot_be_read_is_told_with_who_names_it(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        FileContext({}, "/").text(f"{tmp_path}/{name}", "--hooks x")
    assert caught.value.hint == "--hooks x names it"
