"""What Landlock forbids and allows, by the same layout as bubblewrap. Source: landlock(7), ABI 6 and newer.

Without namespaces a server sees that files exist, with their size and time, but opens, changes, renames and lists none
that no rule allows; signals and abstract sockets reach no process outside. What Landlock does not look at is refused by
`system_calls`. There is no /proc but for what describes the machine, and no /tmp: TMPDIR is in its own folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .folders import SYSTEM, SYSTEM_FILES, is_within, overlaps, within_any
from .table import Layout

OLDEST_ABI: Final = 6
"""The first that keeps signals and abstract sockets apart: Linux 6.12."""

SCOPES: Final = 0b11  # abstract Unix sockets, signals

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_DEVICES: Final = 1 << 6 | 1 << 11  # to make devices: never allowed
_SOCKETS: Final = 1 << 9  # to make sockets
_TRUNCATE: Final = 1 << 14
_IOCTL: Final = 1 << 15  # on devices
HANDLED: Final = (1 << 16) - 1
"""All rights of ABI 6."""

READS: Final = _EXECUTE | _READ | _LIST
"""To read, to list and to execute."""

_WRITES: Final = HANDLED & ~_DEVICES & ~_SOCKETS & ~_IOCTL
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
"""What a rule for a single file may have."""

_DEVICE_FILES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_OF_THE_MACHINE: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "sys")
)
"""What describes no process."""


def rights(layout: Layout) -> dict[str, int]:
    """The rights for each path that a server may reach. A path may be a link of the system, and may be missing."""
    allowed = dict.fromkeys((*SYSTEM, *SYSTEM_FILES, *_OF_THE_MACHINE, *layout.readable), READS)
    allowed |= dict.fromkeys(_DEVICE_FILES, _READ | _WRITE)
    return allowed | dict.fromkeys(layout.writable, _WRITES)


def without(paths: Mapping[str, int], hidden: Sequence[str]) -> dict[str, int]:
    """The same rights, so that none of the hidden paths, which are real ones, is in a folder that has some.

    A rule holds for what a link leads to.
    """
    remaining: dict[str, int] = {}
    for path, allowed in paths.items():
        real = os.path.realpath(path)
        inside = [place for place in hidden if is_within(place, real)]
        shown = _around(real, inside) if inside else () if within_any(real, hidden) else (path,)
        remaining |= dict.fromkeys(shown, allowed)
    return remaining


def of_file(allowed: int) -> int:
    """What of these rights a file can have that is not a folder."""
    return allowed & _OF_FILES


def _around(path: str, hidden: Sequence[str]) -> Iterator[str]:
    """What lies in this folder, without what is hidden in it."""
    if path in hidden:
        return
    try:
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        entry = os.path.join(path, name)
        real = os.path.realpath(entry)
        if not any(overlaps(place, real) for place in hidden):
            yield entry
        elif real == entry:
            yield from _around(entry, [place for place in hidden if is_within(place, entry)])
