"""Which process is the agent that has started a hook's client, or a run of the proxy (law 1).

How it works: both ask the guard by its socket, and the kernel says which process has connected. Its ancestors are
looked at; those that only launch it, such as `sh -c` or `npx`, name it in their own command line. The first other one
is the agent. A run belongs to the nearest ancestor that is known as an agent, so a server, which the run has started,
and what a server starts, are never taken for the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile, islice

from ..processes.ancestry import Process, ancestors, command_line
from . import client

_RUN = b"run"  # the verb in a run's command line, and in that of its launcher


def of_client(pid: int) -> Process | None:
    """The agent that has started this client; None: the system does not say it."""
    return next(_beyond_launchers(pid, client.__file__.encode()), None)


def of_run(pid: int) -> Sequence[Process]:
    """The processes above a run that may be its agent, the likeliest first; itself if the system does not say it."""
    words = command_line(pid).split(b" ")
    mark = b" ".join(words[words.index(_RUN) :]) if _RUN in words else b""
    return tuple(_beyond_launchers(pid, mark)) or (Process(pid, 0),)


def _beyond_launchers(pid: int, mark: bytes) -> Iterator[Process]:
    """The ancestors of this process, from the first on whose command line has not this mark."""
    above = islice(ancestors(pid), 1, None)
    return dropwhile(lambda process: bool(mark) and mark in command_line(process.pid), above)
