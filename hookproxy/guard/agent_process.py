"""Which process is the agent that has started a hook's client, or a run of the proxy (law 1).

How it works: both ask the guard by its socket, and the kernel says which process has connected. Its ancestors are
looked at; those that only launch it, such as `sh -c` or `npx`, name it in their own command line. The first other one
is the agent. A run belongs to the nearest ancestor that is known as an agent. A server, which a run has started, and
what a server starts, are neither taken for the agent nor for a run of it: they stand below another run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice

from msgspec import Struct

from ..processes.ancestry import Process, ancestors, command_line
from . import client

_RUN = b"run"  # the verb in a run's command line, and in that of its launcher


class RunProcess(Struct, frozen=True):
    """A process that has connected as a run of the proxy does."""

    itself: Process
    above: tuple[Process, ...]
    """Its ancestors, the nearest first."""
    agents: tuple[Process, ...]
    """Those that may be its agent, the likeliest first; itself if the system does not say it."""

    def is_below(self, other: RunProcess) -> bool:
        """Whether the other one has started it, or started what has: then it is a server, or what a server starts."""
        return other.itself in self.above


def of_client(pid: int) -> Process | None:
    """The agent that has started this client; None: the system does not say it."""
    return next(_beyond_launchers(islice(ancestors(pid), 1, None), client.__file__.encode()), None)


def of_run(pid: int) -> RunProcess:
    """Where this run stands."""
    words = command_line(pid).split(b" ")
    mark = b" ".join(words[words.index(_RUN) :]) if _RUN in words else b""
    itself, *above = tuple(ancestors(pid)) or (Process(pid, 0),)
    return RunProcess(itself, tuple(above), tuple(_beyond_launchers(above, mark)) or (itself,))


def _beyond_launchers(above: Iterable[Process], mark: bytes) -> Iterator[Process]:
    """These ancestors, from the first on whose command line has not this mark."""
    return dropwhile(lambda process: bool(mark) and mark in command_line(process.pid), above)
