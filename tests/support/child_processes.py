"""The children of this process, for tests that check that none is left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from tests.support import preloaded_servers

_STAY: Final = ("hookproxy-guardian", preloaded_servers.FORKS)
_PATIENCE: Final = 30.0  # seconds in which a child that is being ended may go
_PAUSE: Final = 0.01


def children() -> dict[str, str]:
    """Command lines of our living and unreaped children by id, without those that stay as long as we do."""
    found = {}
    for thread in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # the thread has ended
            for pid in (thread / "children").read_text().split():
                found[pid] = _command_of(pid)
    return {pid: command for pid, command in found.items() if not any(word in command for word in _STAY)}


def _command_of(pid: str) -> str:
    """Its command line; of one that has ended, its name and its state."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return command or Path(f"/proc/{pid}/stat").read_text(errors="replace").partition(" ")[2][:40]
    except OSError:
        return "a process that has just been reaped"


def end_children_except(earlier: set[str]) -> list[str]:
    """Kill and reap our children that are not among the earlier ones, and do not go by themselves; what they ran."""
    end = time.monotonic() + _PATIENCE
    while left := {pid: command for pid, command in children().items() if pid not in earlier}:
        if time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    for pid in map(int, left):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return [f"{pid}: {command}" for pid, command in left.items()]
