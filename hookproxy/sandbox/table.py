"""The values of a sandbox: what a server may reach (`Sandbox`), and where that lies on this machine (`Layout`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

_UNITS: Final = {"": 1, "B": 1, **{f"{letter}iB": 1024**n for n, letter in enumerate("KMGT", 1)}}
_UNITS_OF_TEN: Final = {f"{letter}B": 1000**n for n, letter in enumerate("KMGT", 1)} | {"kB": 1000}
SIZE: Final = r"^[0-9]{1,15} ?([kKMGT]B|[KMGT]iB|B)?\Z"
"""A number of bytes as people write it: "512MiB", "2 GB"."""

MEMORY: Final = "4GiB"
"""What a server may use unless its table says otherwise: more than a browser needs that a server drives."""

PROCESSES: Final = 1024
"""Processes and threads of a server unless its table says otherwise: a browser has some hundreds, a fork bomb more."""

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


def size_in_bytes(text: str) -> int:
    """The number of bytes of a text that matches SIZE."""
    number, unit = re.split(r"(?<=\d) ?(?=[A-Za-z]|\Z)", text, maxsplit=1)
    factor: int = (_UNITS | _UNITS_OF_TEN)[unit]
    return int(number) * factor
