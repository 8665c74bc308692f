"""The folder in which runs are found, and who may use it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from hookproxy.live import registry
from hookproxy.model.errors import UserError


def test_the_folder_is_that_of_the_login_or_else_a_part_of_the_state_folder(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert registry.folder_of_runs({"XDG_RUNTIME_DIR": str(tmp_path)}, state) == str(tmp_path / "hookproxy")
    for other in ("", "relative", str(tmp_path / "gone")):
        assert registry.folder_of_runs({"XDG_RUNTIME_DIR": other}, state) == f"{state}/runs"
    assert registry.folder_of_runs({}, "") == ""


def test_nobody_else_may_write_in_the_folders_above_one_that_is_made(tmp_path: Path) -> None:
    former = os.umask(0)
    try:
        registry.prepare_folder(str(tmp_path / "state" / "hookproxy" / "guard"))
        assert os.umask(0) == 0
    finally:
        os.umask(former)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("state", "state/hookproxy")] == [0o700, 0o700]


def test_a_run_is_found_while_it_listens_and_then_forgotten(tmp_path: Path) -> None:
    folder = str(tmp_path / "a" / "runs")
    assert registry.names(folder) == []
    listener = registry.listen(folder, "one")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert registry.names(folder) == ["one"]
    connection = registry.connect(folder, "one")
    assert connection is not None
    connection.close()
    listener.close()
    assert registry.connect(folder, "one") is None
    assert registry.names(folder) == []
    assert registry.connect(folder, "one") is None


def test_a_socket_at_which_nobody_listens_yet_is_not_found(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "one.sock.new"))
        assert registry.names(str(tmp_path)) == []


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o707])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    os.chmod(tmp_path, mode)
    for use in (registry.listen, registry.connect):
        with pytest.raises(UserError, match="others may enter it"):
            use(str(tmp_path), "one")


def test_a_link_a_file_and_a_folder_of_another_account_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(UserError, match="is not a folder"):
            registry.listen(str(tmp_path / name), "one")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UserError, match="belongs to user"):
        registry.listen(str(tmp_path / "real"), "one")


def test_a_run_is_found_at_a_path_that_is_too_long_for_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / ("x" * 120) / "runs")
    with registry.listen(folder, "one") as listener:
        found = registry.connect(folder, "one")
        assert found is not None
        found.close()
        listener.accept()[0].close()
        monkeypatch.setattr(registry, "_OPEN_FILES", folder + "/none")  # as on systems without /proc
        with pytest.raises(OSError, match="too long"):
            registry.listen(folder, "two")


def test_the_sockets_of_killed_runs_are_removed_and_no_others(tmp_path: Path) -> None:
    folder = str(tmp_path)
    os.chmod(folder, 0o700)
    gone = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(gone, 0)
    alive, elsewhere = registry.new_name(), f"{gone}-alive"
    with registry.listen(folder, alive), registry.listen(folder, elsewhere):
        registry.listen(folder, f"{gone}-dead").close()
        registry.listen(folder, "another").close()
        registry.remove_dead(folder)
        assert registry.names(folder) == sorted([alive, elsewhere, "another"])


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        registry.listen(str(tmp_path / "file" / "runs"), "one")
