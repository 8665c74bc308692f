"""Hooks in Python run in threads, and all of them may read command lines at once."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """
import sys, threading
sys.setswitchinterval(1e-6)  # so that threads change in the midst of what the first line loads
from hookproxy.hooks.api import commands
start, wrong = threading.Barrier(8), []
def read():
    start.wait()
    for line in ("sudo git push -f", "a=(1) git push -f", "rm -rf --force x"):
        if not commands(line).commands:
            wrong.append(line)
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(len(wrong))
"""


@pytest.mark.slow
def test_the_first_lines_may_be_read_by_several_threads_at_once() -> None:
    for _ in range(5):
        assert subprocess.run([sys.executable, "-c", PROGRAM], check=False, timeout=60).returncode == 0
