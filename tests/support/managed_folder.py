"""A private /etc with the administrator's files, for tests that run as root, and a user without rights.

The real /etc is never changed: a process that should see the private one runs in its own mount namespace.
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

ROOT_ONLY: Final = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: managed files need root")
NOBODY: Final = 65534
_CANDIDATES: Final = ("/srv", "/opt", "/var/lib", "/root")  # folders that only root can write, all the way from /


def root_only_folder() -> Path:
    """A new folder that only root can change, on the whole path from /. The caller removes it."""
    for parent in _CANDIDATES:
        try:
            with managed_files.resolved(parent):
                pass
        except (OSError, ConfigError):
            continue
        folder = Path(tempfile.mkdtemp(prefix="hookproxy-test-", dir=parent))
        folder.chmod(0o755)
        return folder
    pytest.skip("NOT TESTED: no folder here belongs to root alone")


@pytest.fixture
def etc(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The administrator's folder of this test, for code that runs in the test's process."""
    folder = root_only_folder()
    monkeypatch.setattr(load, "MANAGED_FOLDER", str(folder))
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
    return copy_of_etc(tmp_path)


def copy_of_etc(folder: Path) -> Path:
    """As `private_etc`, in this folder."""
    copy = folder / "private-etc"
    subprocess.run(["cp", "-a", "/etc", str(copy)], check=True, timeout=60)
    shutil.rmtree(copy / "hookproxy", ignore_errors=True)
    (copy / "hookproxy").mkdir(mode=0o755)
    if subprocess.run(in_private_etc(copy, "true"), capture_output=True, timeout=30).returncode:
        pytest.skip("NOT TESTED: no mount namespace can be made here")
    return copy


def in_private_etc(private: Path, *command: str, user: int = 0) -> list[str]:
    """The command as this user, with the private folder as its /etc."""
    mount = 'mount --bind "$1" /etc && shift && exec "$@"'
    unshare = ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh", str(private)]
    return [*unshare, *as_user(user), *command]


def as_user(user: int) -> Sequence[str]:
    """The words before a command that make it run as this user, whatever PATH is.

    The command must follow at once: setpriv can start a program that the user cannot, if a folder of root holds it.
    """
    if not user:
        return []
    program = shutil.which("setpriv") or "setpriv"
    return [program, f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]


def python_for_user(user: int) -> str:
    """A Python that this user can start, for a server: this one may be in a folder of root."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [*as_user(user), "sh", "-c", 'exec "$0" -c 1', python]
        if subprocess.run(command, cwd="/", capture_output=True, timeout=30).returncode == 0:
            return python
    pytest.skip("NOT TESTED: there is no Python that another user can start")


@pytest.fixture(scope="session")
def nobody() -> int:
    """The id of a user without any rights who can run hookproxy."""
    command = [*as_user(NOBODY), sys.executable, "-c", "import hookproxy.config.models"]
    if subprocess.run(command, cwd="/", capture_output=True, timeout=60).returncode:
        pytest.skip("NOT TESTED: another user cannot start this Python")
    return NOBODY
