"""Files are created together, or none of them is; what exists stays, and so do the folders that were there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.files.create import create_files


def texts(folder: Path, *names: str) -> dict[str, str]:
    return {str(folder / name): f"text of {name}\n" for name in names}


def test_files_and_their_folders_are_created(tmp_path: Path) -> None:
    folders = create_files({**texts(tmp_path, "a", "deep/er/b"), str(tmp_path / "c.sh"): "#!/bin/sh\r\n"})
    assert (tmp_path / "deep/er/b").read_text() == "text of deep/er/b\n"
    assert (tmp_path / "c.sh").read_bytes() == b"#!/bin/sh\r\n"
    assert folders == [str(tmp_path / "deep"), str(tmp_path / "deep/er")]
    assert [(tmp_path / name).stat().st_mode & 0o100 for name in ("a", "c.sh")] == [0, 0o100]


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_what_exists_stays_and_nothing_is_left_of_the_others(tmp_path: Path, kind: str) -> None:
    there = tmp_path / "there"
    if kind == "file":
        there.write_text("mine")
    elif kind == "folder":
        there.mkdir()
    else:
        there.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError) as raised:
        create_files(texts(tmp_path, "deep/new", "there"))
    assert raised.value.filename == str(there)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert kind != "file" or there.read_text() == "mine"


def test_a_link_inside_of_a_folder_that_others_made_is_not_followed(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    (project / "hooks").symlink_to(other)
    (tmp_path / "way").symlink_to(project)
    with pytest.raises(NotADirectoryError):
        create_files(texts(tmp_path / "way", "first", "hooks/guard"), str(tmp_path / "way"))
    assert not list(other.iterdir())
    assert [path.name for path in project.iterdir()] == ["hooks"]
    create_files(texts(tmp_path / "way", "first"), str(tmp_path / "way"))  # a link to the folder itself is
    assert (project / "first").exists()


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    (project / "hooks").mkdir(parents=True)
    other.mkdir()
    checked = os.path.isdir

    def check_and_swap(path: str) -> bool:
        there = checked(path)
        if path == str(project / "hooks") and there:
            (project / "hooks").rmdir()
            (project / "hooks").symlink_to(other)
        return there

    monkeypatch.setattr(os.path, "isdir", check_and_swap)
    with pytest.raises(NotADirectoryError):
        create_files(texts(project, "hooks/guard"), str(project))
    assert not list(other.iterdir())
