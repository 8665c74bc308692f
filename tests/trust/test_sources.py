"""Files are read once, with a signature that shows changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.trust.sources import FileContext, read, stat_signature


def test_a_file_that_is_read_is_recorded_with_its_signature(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("\ufefftext")
    file_context = FileContext({}, "/")
    assert file_context.text(str(path)) == "text"
    snapshot = file_context.files_read[str(path)]
    assert (snapshot.data, snapshot.signature) == (path.read_bytes(), stat_signature(path.stat()))


def test_writing_the_same_text_and_setting_the_time_back_changes_the_signature(tmp_path: Path) -> None:
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
def test_an_unreadable_file_is_an_error_that_says_where_it_is_named(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        FileContext({}, "/").text(f"{tmp_path}/{name}", "--hooks x")
    assert caught.value.hint == "--hooks x names it"
