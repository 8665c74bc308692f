"""The values of a sandbox: what a server may reach (`Sandbox`), and where that lies on this machine (`Layout`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

MEMORY: Final = "4GiB"
"""What a server may use unless its table says otherwise: more than a browser needs that a server drives."""

PROCESSES: Final = 1024
"""Processes and threads of a server unless its table says otherwise: a browser has some hundreds, a fork bomb more."""

PROCESSES_AROUND: Final = 4
"""Processes that may stand around a server: bubblewrap itself, twice, a shell, and one to spare."""

DESCRIPTORS: Final = 4096
"""Open files of each process: four times the usual soft limit, which is enough for all but servers of many clients."""


class Sandbox(Struct, frozen=True):
    """What a server may reach besides its own program, the system's programs, and a folder of its own."""

    read: tuple[str, ...] = ()
    """Folders and files, by their real absolute paths."""
    write: tuple[str, ...] = ()
    network: bool = True
    env: tuple[str, ...] = ()
    """Variables of the environment of whoever starts it that it gets."""
    memory: int = 4 * 1024**3
    """Bytes."""
    processes: int = PROCESSES
    variables: Mapping[str, str] = {}
    """Variables that it gets unless something else sets them; see `config/sandbox_profiles`."""


class Layout(Struct, frozen=True):
    """Where everything is that one process may reach. Paths are real and absolute."""

    cwd: str
    """The folder in which it starts."""
    readable: Sequence[str]
    """Folders and files that it reads, those of its program among them."""
    writable: Sequence[str]
    """Folders and files that it writes."""
    hidden: Mapping[str, bool] = {}
    """Paths below those that it cannot see, and whether each is a folder."""
    links: Mapping[str, str] = {}
    """Links on the way to its program, each with its target."""
