"""`hookproxy top`: what it needs before it draws anything."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.support.program import HOOKPROXY

pytestmark = pytest.mark.slow


def test_without_a_terminal_it_says_so(tmp_path: Path) -> None:
    ended = subprocess.run([HOOKPROXY, "top"], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: top needs a terminal\nhint: hookproxy audit prints calls")


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hookproxy").mkdir()
    (tmp_path / "hookproxy").chmod(0o755)
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
        process = subprocess.Popen([HOOKPROXY, "top"], env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        assert process.wait(60) == 2
        assert "others may enter it" in " ".join(terminal.read(4096).decode().split())  # a terminal wraps lines
