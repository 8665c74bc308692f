"""The table of guarded processes; tests/end/test_killed.py has what the guardian does with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hookproxy.processes import platforms

pytestmark = [
    pytest.mark.slow,
]

PROGRAM = """
import os, sys
from hookproxy.processes import platforms
platforms.choose(sys.argv[1])
from hookproxy.processes.guardian import _Guardian

one, pids = _Guardian(), list(range(900_000_000, 900_000_300))  # numbers that no process has
one.add_server(pids[0])
for pid in pids[1:]:
    one.add_hook(pid)
for pid in pids[::3]:
    one.remove(pid)
one.add_hook(pids[0])
lines = os.pread(one._table, 1 << 20, 0).rstrip(b"\\0").decode().splitlines()
found = {int(fields[1]) for fields in map(str.split, lines) if len(fields) == 3}
print(found == {*pids[1::3], *pids[2::3], pids[0]}, len(lines) == len(pids), {len(line) for line in lines})
"""


@pytest.mark.parametrize("platform", ["linux", platforms.PORTABLE])
def test_the_table_grows_and_its_whole_entries_are_the_processes_that_are_guarded(platform: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, platform], capture_output=True, text=True, check=True, timeout=30
    )
    assert ended.stdout == "True True {31}\n"


BEFORE_THE_START = """
import sys
from hookproxy.processes import platforms
platforms.choose(sys.argv[1])
from hookproxy.processes import guardian, spawn

room = []
def start(*_: object) -> int:
    memory = guardian._guardian[0]._memory
    room.append(memory is not None and len(memory) >= 32 * (len(room) + 1))
    return 900_000_000 + len(room)

spawn._start = start
for _ in range(300):
    spawn.start_hook(b"/bin/true", ("true",), [], "", (0, 1, 2))
print(len(room), all(room))
"""


@pytest.mark.parametrize("platform", ["linux", platforms.PORTABLE])
def test_when_a_hook_starts_the_guardian_runs_and_its_table_has_room_in_memory(platform: str) -> None:
    """A hook runs as soon as it has started: what is left to do then is the time in which nobody would end it."""
    ended = subprocess.run(
        [sys.executable, "-c", BEFORE_THE_START, platform], capture_output=True, text=True, check=True, timeout=30
    )
    assert ended.stdout == "300 True\n"
