"""A private /etc with the administrator's files, for tests that run as root, and a user without rights.

The real /etc is never touched: a process that uses the private one runs in its own mount namespace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config import load
from hookproxy.model.errors import ConfigError
from hookproxy.trust import managed_files

ROOT_ONLY: Final = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: managed files must belong to root")
NOBODY: Final = 65534
_LIKELY: Final = ("/srv", "/opt", "/var/lib", "/root")  # folders that only root can write, all the way from /


def root_only_folder() -> Path:
    """A new folder to which only root can write, as to all folders above it. The caller removes it."""
    for place in _LIKELY:
        try:
            managed_files.walk(place).close()
        except (OSError, ConfigError):
            continue
        folder = Path(tempfile.mkdtemp(prefix="hookproxy-test-", dir=place))
        folder.chmod(0o755)
        return folder
    pytest.skip("NOT TESTED: every folder here is writable by others than root")


@pytest.fixture
def etc(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The administrator's folder of this test, for code in the process of the test."""
    folder = root_only_folder()
    monkeypatch.setattr(load, "MANAGED", str(folder))
    yield folder
    shutil.rmtree(folder)


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def private_etc(tmp_path: Path) -> Path:
    """A copy of /etc with a folder `hookproxy` in it, for `in_private_etc`."""
    copy = tmp_path / "private-etc"
    subprocess.run(["cp", "-a", "/etc", str(copy)], check=True, timeout=60)
    shutil.rmtree(copy / "hookproxy", ignore_errors=True)
    (copy / "hookproxy").mkdir(mode=0o755)
    if subprocess.run(in_private_etc(copy, "true"), capture_output=True, timeout=30).returncode:
        pytest.skip("NOT TESTED: no mount namespace can be made here")
    return copy


def in_private_etc(private: Path, *command: str, user: int = 0) -> list[str]:
    """The command as this user, with the private folder as its /etc."""
    mount = 'mount --bind "$1" /etc && shift && exec "$@"'
    words = ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh", str(private)]
    return [*words, *as_user(user), *command]


def as_user(user: int) -> Sequence[str]:
    """Words before a command that make it run as this user."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"] if user else []


def python_for_user(user: int) -> str:
    """A Python that this user can start, for a server: ours may be in a folder of root's."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [*as_user(user), "sh", "-c", 'exec "$0" -c 1', python]
        if subprocess.run(command, cwd="/", capture_output=True, timeout=30).returncode == 0:
            return python
    pytest.skip("NOT TESTED: no Python here can be started by another user")


@pytest.fixture(scope="session")
def nobody() -> int:
    """A user without any rights, who can run hookproxy."""
    command = [*as_user(NOBODY), sys.executable, "-c", "import hookproxy.config.models"]
    if subprocess.run(command, cwd="/", capture_output=True, timeout=60).returncode:
        pytest.skip("NOT TESTED: other users cannot start this Python")
    return NOBODY
