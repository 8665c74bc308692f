"""Which processes belong to a server, and how much memory they use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from hookproxy.processes import process_tree
from hookproxy.processes.process_tree import available_memory, end_processes, find_trees, proportional_size

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="Linux has /proc")]

MB = 1 << 20
GRANDCHILD = """
import os, sys, time
kept = b"x" * {size}
if os.fork() == 0:
    if {detach}:
        os.setsid()
    if os.fork():
        {parent}
    print(os.getpid(), flush=True)
    time.sleep(60)
os.wait() if {waits} else time.sleep(60)
"""


@contextmanager
def started(script: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that leads a session, and the process below it that it has written."""
    command = [sys.executable, "-S", "-E", "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    below = int(process.stdout.readline())
    try:
        yield process, below
    finally:
        for pid in (below, process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def test_a_tree_has_all_that_was_started_also_in_another_session() -> None:
    script = GRANDCHILD.format(size=1, detach=True, parent="time.sleep(60)", waits=False)
    with started(script) as (process, below):
        tree = find_trees({process.pid: {}})[process.pid]
        assert {process.pid, below} <= tree.processes.keys()
        assert len(tree.processes) == 3
        assert os.getpid() not in tree.processes


def test_a_process_whose_parent_has_ended_stays_in_the_tree_in_which_it_was_found() -> None:
    script = GRANDCHILD.format(size=1, detach=True, parent="time.sleep(60)", waits=False)
    with started(script) as (process, below):
        before = find_trees({process.pid: {}})[process.pid]
        parent = next(pid for pid in before.processes if pid not in (process.pid, below))
        os.kill(parent, signal.SIGKILL)
        while below in before.processes and _parent_of(below) == parent:
            pass
        assert below not in find_trees({process.pid: {}})[process.pid].processes
        after = find_trees({process.pid: before.processes})[process.pid]
        assert below in after.processes
        other_start = {below: before.processes[below] - 1}
        assert below not in find_trees({process.pid: other_start})[process.pid].processes, (
            "another process has its number"
        )
        end_processes(other_start)
        assert below in find_trees({process.pid: after.processes})[process.pid].processes
        end_processes(after.processes)
        process.wait()


def test_a_process_in_the_session_of_the_server_belongs_to_it_although_its_parent_has_ended() -> None:
    script = GRANDCHILD.format(size=1, detach=False, parent="os._exit(0)", waits=True) + "\ntime.sleep(60)"
    with started(script) as (process, below):
        while _parent_of(below) not in (1, _subreaper()):
            if _parent_of(below) == 0:
                break
        assert below in find_trees({process.pid: {}})[process.pid].processes


def test_what_processes_share_counts_in_proportion_and_once() -> None:
    size = 100 * MB
    script = GRANDCHILD.format(size=size, detach=False, parent="time.sleep(60)", waits=False)
    with started(script) as (process, _):
        tree = find_trees({process.pid: {}})[process.pid]
        assert tree.resident > 2.5 * size, "three processes have it"
        assert size <= proportional_size(tree) < 1.5 * size


def test_where_the_kernel_does_not_say_what_is_shared_all_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    script = GRANDCHILD.format(size=50 * MB, detach=False, parent="time.sleep(60)", waits=False)
    with started(script) as (process, _):
        tree = find_trees({process.pid: {}})[process.pid]
        monkeypatch.setattr(process_tree, "_proportional", lambda _pid: None)
        assert proportional_size(tree) > 140 * MB


def test_a_leader_that_is_gone_has_an_empty_tree() -> None:
    with started("print(1, flush=True)\nimport time\ntime.sleep(60)") as (process, _):
        pid = process.pid
        process.kill()
        process.wait()
        tree = find_trees({pid: {}})[pid]
        assert (dict(tree.processes), tree.resident) == ({}, 0)


def test_the_memory_that_is_available_is_no_more_than_the_machine_has() -> None:
    assert MB < available_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 1.1


def _parent_of(pid: int) -> int:
    found = process_tree._process(pid)
    return found.parent if found is not None else 0


def _subreaper() -> int:
    return os.getppid()
