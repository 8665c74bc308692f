"""Which process has started which: the ancestors of a process. Linux only; elsewhere there are none to be seen.

A process is known by its id and the time of its start, so that another one with the same id is not mistaken for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf
from typing import Final

from msgspec import Struct

_MOST: Final = 64  # ancestors that are looked at: between an agent and what it starts are a few


class Process(Struct, frozen=True):
    """A process that was there when it was looked at."""

    pid: int
    started: int
    """In ticks since the start of the machine."""


def ancestors(pid: int) -> Iterator[Process]:
    """The process with this id, its parent, and so on, as long as they run as this account. None if it has ended."""
    started = inf
    for _ in range(_MOST):
        looked_at = _process_and_parent(pid)
        if looked_at is None or looked_at[0].started > started:  # its id belongs to a younger process now
            return
        process, pid = looked_at
        yield process
        started = process.started


def command_line(pid: int) -> bytes:
    """The words by which the process was started, with blanks between them; empty if nobody can say."""
    return b" ".join(command_words(pid))


def command_words(pid: int) -> list[bytes]:
    """The words by which the process was started, as it shows them; an empty one if nobody can say."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return [b""]


def _process_and_parent(pid: int) -> tuple[Process, int] | None:
    """None: it has ended, or is another account's."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
        fields = text[text.rindex(b")") + 2 :].split()  # after the name, which may be anything
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:  # who owns the files says less: it may be hardened
            accounts = next(line for line in file.read().splitlines() if line.startswith(b"Uid:")).split()[1:]
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    if set(map(int, accounts)) != {os.geteuid()}:
        return None
    return Process(pid, int(fields[19])), int(fields[1])
