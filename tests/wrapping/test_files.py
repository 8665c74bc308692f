"""Files are replaced atomically, keep their mode, and no link leads to another file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hookproxy.model.errors import ConfigError, UserError
from hookproxy.wrapping.files import BACKUP, MAX_BYTES, read, replace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "mcp.json"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o640)
    return path


def names(file: Path) -> list[str]:
    return sorted(os.listdir(file.parent))


def mode(file: Path) -> int:
    return stat.S_IMODE(file.lstat().st_mode)


def test_the_file_gets_the_new_text_and_the_backup_has_the_old_one(file: Path) -> None:
    backup = replace(read(str(file)), "new ä")
    assert file.read_text("utf-8") == "new ä"
    assert Path(backup) == file.with_name("mcp.json" + BACKUP)
    assert Path(backup).read_text() == "old"
    assert names(file) == ["mcp.json", "mcp.json" + BACKUP]


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644, 0o400, 0o666])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_file_and_backup_have_the_mode_of_the_file(file: Path, bits: int, umask: int) -> None:
    file.chmod(bits)
    before = os.umask(umask)
    try:
        backup = Path(replace(read(str(file)), "new"))
    finally:
        os.umask(before)
    assert (mode(file), mode(backup)) == (bits, bits)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_the_owner_stays_the_owner(file: Path) -> None:
    os.chown(file, 12345, 54321)
    for path in (Path(replace(read(str(file)), "new")), file):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_extended_attributes_stay(file: Path) -> None:
    try:
        os.setxattr(file, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has none")
    replace(read(str(file)), "new")
    assert os.getxattr(file, "user.note") == b"mine"


def test_a_link_stays_a_link_and_its_target_changes(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    backup = replace(read(str(link)), "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert Path(backup).parent == file.parent
    assert sorted(os.listdir(tmp_path)) == ["folder", "link.json"]


def test_a_link_with_the_backups_name_is_replaced_and_not_followed(file: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    backup = file.with_name("mcp.json" + BACKUP)
    backup.symlink_to(victim)
    replace(read(str(file)), "new")
    assert victim.read_text() == "precious"
    assert not backup.is_symlink()
    assert backup.read_text() == "old"


def test_a_file_with_a_hard_link_is_not_replaced(file: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "other")
    with pytest.raises(ConfigError, match="hard link"):
        replace(read(str(file)), "new")
    assert names(file) == ["mcp.json"]
    assert file.read_text() == "old"


def swap_for_link(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("old")
    file.unlink()
    file.symlink_to(other)


def swap_for_file(file: Path) -> None:
    file.rename(file.with_name("kept"))
    file.write_text("old")


def swap_for_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def swap_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("moved"))
    elsewhere = file.parent.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / file.name).write_text("theirs")
    file.parent.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("changed"),
        lambda file: file.write_text("OLD"),
        lambda file: file.write_text("older"),
        swap_for_file,
        swap_for_link,
        swap_folder,
        lambda file: file.unlink(),
        swap_for_pipe,
    ],
)
def test_a_file_that_changed_since_it_was_read_is_not_replaced(file: Path, change: object) -> None:
    snapshot = read(str(file))
    assert callable(change)
    change(file)
    before = {name: without_access_time(os.lstat(file.parent / name)) for name in names(file)}
    with pytest.raises(ConfigError, match="has changed since it was read"):
        replace(snapshot, "new")
    assert {name: without_access_time(os.lstat(file.parent / name)) for name in names(file)} == before


def without_access_time(found: os.stat_result) -> tuple[int, ...]:
    """To read a file changes when it was read last."""
    return (found.st_mode, found.st_ino, found.st_nlink, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def test_if_writing_fails_everything_stays_unchanged(file: Path) -> None:
    backup = file.with_name("mcp.json" + BACKUP)
    backup.mkdir()  # a rename onto a folder fails for everybody, root too
    with pytest.raises(UserError, match="cannot be replaced: Is a directory"):
        replace(read(str(file)), "new")
    assert file.read_text() == "old"
    assert names(file) == ["mcp.json", backup.name]


@pytest.mark.skipif(os.getuid() == 0, reason="root writes anywhere")
def test_a_folder_that_is_not_writable_is_named(file: Path) -> None:
    file.parent.chmod(0o500)
    try:
        with pytest.raises(UserError, match="must be writable"):
            replace(read(str(file)), "new")
    finally:
        file.parent.chmod(0o700)


def test_a_name_that_leaves_no_room_for_a_backup_is_refused(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 250)
    file.write_text("old")
    with pytest.raises(UserError, match="File name too long"):
        replace(read(str(file)), "new")
    assert os.listdir(tmp_path) == [file.name]


def test_pipes_devices_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is not a regular file"):
        read(str(tmp_path / "pipe"))
    with pytest.raises(ConfigError, match="is not a regular file"):
        read("/dev/zero")
    with pytest.raises(ConfigError, match="is a folder"):
        read(str(tmp_path))
    with pytest.raises(ConfigError, match="there is no such file"):
        read(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="NUL"):
        read("a\0b")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=r"cannot be read|no such file"):
        read(str(tmp_path / "loop"))


def test_a_file_that_is_too_large_or_not_utf_8_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as sparse:
        sparse.truncate(MAX_BYTES + 1)
    with pytest.raises(ConfigError, match="is larger than 16 MiB"):
        read(str(large))
    (tmp_path / "latin").write_bytes(b"a\nb\xe4")
    with pytest.raises(ConfigError, match="latin:2: is not UTF-8"):
        read(str(tmp_path / "latin"))
