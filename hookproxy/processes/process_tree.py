"""The processes of a server with all that they have started, how much memory they use, and their end. Linux only.

A process belongs to the tree of its parent, and to that of its session's leader. One that was found once stays in its
tree when its parent has ended. Where /proc says nothing, a tree is empty, and takes no memory.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_KIBIBYTE: Final = 1024  # the unit of /proc/PID/smaps_rollup and /proc/meminfo
_CGROUPS: Final = "/sys/fs/cgroup"

Started = Mapping[int, int]
"""When each process was started, in ticks since the start of the machine: another one with its number has another."""


class _Found(Struct):
    """A process, as /proc/PID/stat says it."""

    parent: int
    session: int
    started: int
    resident: int  # bytes
    threads: int


class Tree(Struct, frozen=True):
    """The processes of one server."""

    processes: Started
    resident: int
    """Bytes of memory: what several processes share is counted in each of them, so they use this or less."""
    threads: int = 0
    """Of all processes; each has at least one."""


def find_trees(known: Mapping[int, Started]) -> dict[int, Tree]:
    """The tree of each leader, which has the processes that are known to belong to it. It takes milliseconds."""
    found = dict(_all_processes())
    below: dict[int, list[int]] = {}
    for pid, process in found.items():
        below.setdefault(process.parent, []).append(pid)
        if process.session in known:
            below.setdefault(process.session, []).append(pid)
    trees = {}
    for leader, processes in known.items():
        seeds = [pid for pid, started in processes.items() if pid in found and found[pid].started == started]
        members: dict[int, int] = {}
        waiting = [leader, *seeds]
        while waiting:
            pid = waiting.pop()
            if pid in found and pid not in members and (pid == leader or pid not in known):
                members[pid] = found[pid].started
                waiting += below.get(pid, ())
        resident, threads = sum(found[pid].resident for pid in members), sum(found[pid].threads for pid in members)
        trees[leader] = Tree(members, resident, threads)
    return trees


def proportional_size(tree: Tree) -> int:
    """Bytes of memory that a tree uses: what others use, too, counts in proportion. It takes a millisecond or more for
    each process; of those that do not say it, all that is resident counts.
    """
    total = 0
    for pid in tree.processes:
        size = _proportional(pid)
        if size is None:
            found = _process(pid)
            size = found.resident if found is not None else 0
        total += size
    return total


def started_with(variable: bytes) -> Started:
    """The processes that were started with this variable, `NAME=VALUE`, in their environment, and whose memory is ours
    to read: also those that have left their session. One that cleared its environment is not found.
    """
    found = {}
    for pid, process in _all_processes():
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if variable in file.read().split(b"\0"):
                found[pid] = process.started
    return found


def end_processes(processes: Started) -> None:
    """Kill those that are still there."""
    for pid, started in processes.items():
        found = _process(pid)
        if found is not None and found.started == started:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def available_memory() -> int:
    """Bytes that this process and those that it starts may use together: of their cgroup, else of the machine."""
    sizes = list(_limits_of_cgroup())
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo") as text:
        sizes.append(int(text.readline().split()[1]) * _KIBIBYTE)
    return min(sizes, default=os.sysconf("SC_PHYS_PAGES") * _PAGE)


def _limits_of_cgroup() -> Iterable[int]:
    """The limits of our cgroup and of those above it, of version 2."""
    try:
        with open("/proc/self/cgroup") as text:
            path = next(line[len("0::") :].strip() for line in text if line.startswith("0::"))
    except (OSError, StopIteration):
        return
    while True:
        with suppress(OSError, ValueError), open(f"{_CGROUPS}{path.rstrip('/')}/memory.max") as text:
            yield int(text.read())
        if path in ("", "/"):
            return
        path = os.path.dirname(path)


def _all_processes() -> Iterable[tuple[int, _Found]]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit() and (found := _process(int(name))) is not None:
            yield int(name), found


def _process(pid: int) -> _Found | None:
    """None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
        fields = text[text.rindex(b")") + 2 :].split()  # after the name, which may be anything
        return _Found(int(fields[1]), int(fields[3]), int(fields[19]), int(fields[21]) * _PAGE, int(fields[17]))
    except (OSError, ValueError, IndexError):
        return None


def _proportional(pid: int) -> int | None:
    """None: it does not say."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            lines = file.read().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith((b"Pss:", b"SwapPss:"))) * _KIBIBYTE
    except (OSError, ValueError, IndexError):
        return None
