"""Which process is the agent that has started a hook's client, or a run of the proxy (law 1).

How it works: both ask the guard by its socket, and the kernel says which process has connected. Its ancestors are
looked at; those that only launch it, such as `sh -c` or `npx`, name it in their own command line. The first other one
is the agent. A run belongs to the nearest ancestor that is known as an agent. A server, which a run has started, and
what a server starts, are neither taken for the agent nor for a run of it: they stand below another run, which is known
by its command line, also before it has sent anything, or by what it has sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice

from msgspec import Struct

from ..processes.ancestry import Process, ancestors, command_line, command_words
from . import client

_RUN = b"run"  # the verb in a run's command line, and in that of its launcher
_SHORTEST = 2  # words before that verb: Python and hookproxy


class RunProcess(Struct, frozen=True):
    """A process that has connected as a run of the proxy does."""

    itself: Process
    above: tuple[Process, ...]
    """Its ancestors, the nearest first."""
    agents: tuple[Process, ...]
    """Those that may be its agent, the likeliest first; itself if the system does not say it."""
    is_server: bool = False
    """Another run has started it, or what has."""

    def is_below(self, other: RunProcess) -> bool:
        """Whether the other one has started it, or started what has: then it is a server, or what a server starts."""
        return other.itself in self.above


def of_client(pid: int) -> tuple[Process | None, Process | None]:
    """The agent that has started this client, and the run of the proxy below which both stand.

    None: the system does not say which process is the agent, or there is no run: there is one if it is a server of
    another agent, or if a server only pretends to be an agent.
    """
    above = tuple(islice(ancestors(pid), 1, None))
    run = next((process for process in above if _is_run(command_words(process.pid))), None)
    return next(_beyond_launchers(above, client.__file__.encode()), None), run


def of_run(pid: int) -> RunProcess:
    """Where this run stands."""
    words = command_line(pid).split(b" ")
    mark = b" ".join(words[words.index(_RUN) :]) if _RUN in words else b""
    itself, *above = tuple(ancestors(pid)) or (Process(pid, 0),)
    agents = tuple(_beyond_launchers(above, mark)) or (itself,)
    return RunProcess(itself, tuple(above), agents, any(_is_run(command_words(process.pid)) for process in above))


def _beyond_launchers(above: Iterable[Process], mark: bytes) -> Iterator[Process]:
    """These ancestors, from the first on whose command line has not this mark."""
    return dropwhile(lambda process: bool(mark) and mark in command_line(process.pid), above)


def _is_run(words: list[bytes]) -> bool:
    """Whether it is a run itself, and not what launches it: Python, its options, hookproxy, and the verb."""
    begun = words[: words.index(_RUN)] if _RUN in words else []
    if len(begun) < _SHORTEST:
        return False
    python, *options, program = begun
    is_python = os.path.basename(python).startswith(b"python")
    return is_python and os.path.basename(program) == b"hookproxy" and all(word[:1] == b"-" for word in options)
