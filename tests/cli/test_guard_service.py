"""The guard as a service: what is written and started, and that all of it is undone."""

from __future__ import annotations

import os
import plistlib
import shutil
from pathlib import Path

import pytest

from hookproxy.cli import guard, guard_service, uninstall
from hookproxy.model.errors import UserError
from tests.cli.test_guard_install import files_in, home

__all__ = ["home"]


@pytest.fixture
def tmp_path(short_path: Path) -> Path:
    """Home folders are in it, and the guard's socket is in these."""
    return short_path


@pytest.fixture
def managers(home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Service managers that do nothing; returns what they have been told."""
    folder = tmp_path_factory.mktemp("bin")
    told = folder / "told"
    told.touch()
    for name in ("systemctl", "launchctl"):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >>{told}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return told


def test_systemd_listens_at_the_guards_socket_until_it_is_uninstalled(home: Path, managers: Path) -> None:
    assert guard.main(["install", "claude", "--service"]) == 0
    folder = home / ".config" / "systemd" / "user"
    socket = home / ".local" / "state" / "hookproxy" / "guard" / "guard.sock"
    assert f"ListenStream={socket}\nSocketMode=0600\n" in (folder / "hookproxy-guard.socket").read_text()
    service = (folder / "hookproxy-guard.service").read_text()
    assert f'Environment="HOME={home}"\n' in service
    assert f'guard --socket "{socket}"\n' in service
    assert managers.read_text().splitlines()[1:] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now hookproxy-guard.socket",
    ]
    assert guard.main(["install", "claude", "--service"]) == 0  # it is there already
    managers.write_text("")
    assert guard.main(["uninstall", "--all"]) == 0
    assert managers.read_text().splitlines() == [
        "systemctl --user disable --now hookproxy-guard.socket hookproxy-guard.service",
        "systemctl --user daemon-reload",
    ]
    assert files_in(home) == {}


def test_uninstall_removes_the_service_too(home: Path, managers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard.main(["install", "claude", "--service"])
    assert uninstall.main(["--yes"]) == 0
    assert files_in(home) == {}
    assert "disable --now" in managers.read_text()


def test_launchd_keeps_the_guard_running(home: Path, managers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_service, "_is_mac", lambda: True)
    assert guard.main(["install", "claude", "--service"]) == 0
    file = home / "Library" / "LaunchAgents" / "hookproxy.guard.plist"
    agent = plistlib.loads(file.read_bytes())
    assert agent["ProgramArguments"][1:3] == ["guard", "--foreground"]
    assert agent["EnvironmentVariables"]["HOME"] == str(home)
    assert managers.read_text() == f"launchctl bootstrap gui/{os.getuid()} {file}\n"
    assert guard.main(["uninstall", "--all"]) == 0
    assert managers.read_text().endswith(f"launchctl bootout gui/{os.getuid()} {file}\n")
    assert not file.exists()


def test_without_a_service_manager_nothing_is_written(home: Path, managers: Path) -> None:
    (managers.parent / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UserError, match="no service manager") as error:
        guard.main(["install", "claude", "--service"])
    assert "leave out --service" in error.value.hint
    assert files_in(home) == {}


def test_a_dry_run_shows_the_service(home: Path, managers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.main(["install", "claude", "--service", "--dry-run"]) == 0
    assert "+ListenStream=" in capsys.readouterr().out
    assert files_in(home) == {}
    assert shutil.which("systemctl") == str(managers.parent / "systemctl")


@pytest.mark.parametrize(
    ("word", "quoted"), [("/a b", '"/a b"'), ("/100%", '"/100%%"'), ('/"x"', '"/\\"x\\""'), ("/$HOME", '"/$$HOME"')]
)
def test_words_in_unit_files_are_quoted(word: str, quoted: str) -> None:
    assert guard_service._quoted(word) == quoted
