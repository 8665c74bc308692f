"""The words that start a command under bubblewrap. Pure.

bubblewrap builds an empty file system of what is bound into it, in namespaces of their own: other processes, their
sockets in the file system, and their memory do not exist there. Three programs stand around the server's:

    sh        ignores SIGTERM, SIGHUP and SIGINT, which go to the whole process group: else bubblewrap would die of
              them, and take the server with it before that could end in order
    bwrap     the namespaces; it dies with the thread that has started it, and all in its process namespace with it
    env, sh   the server gets these signals again, and its limits. The number of processes is counted in each user
              namespace, so it is set inside

What a server writes may have become a link since it was configured: folders are therefore handed over as descriptors
that were opened without following any, where bubblewrap can take them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from .folders import is_within, within_any
from .limits import SHELL, limited
from .table import Layout, Sandbox

TEMPORARY: Final = "/tmp"
"""A folder that each process has of its own."""

_OTHER_TEMPORARY: Final = "/var/tmp"
_SIGNALS: Final = "TERM HUP INT"
_IGNORING: Final = f"trap '' {_SIGNALS}; exec \"$@\""
_NAMESPACES: Final = ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
_ALWAYS: Final = ("--die-with-parent", "--cap-drop", "ALL")


class Tools(Struct, frozen=True):
    """What this machine has for it."""

    bwrap: str
    takes_descriptors: bool = True
    """It has --bind-fd: 0.10.0 and later, and what distributions have repaired."""
    env: str = "/usr/bin/env"
    """A program with --default-signal; empty: there is none, and SIGTERM ends servers at once."""
    mounts_proc: bool = True
    """A /proc of their own is possible; else there is none."""
    read_only_proc: bool = False
    """For root: settings of the kernel in /proc/sys belong to root, whatever its capabilities are."""
    system: Sequence[str] = ()
    """The system's folders that exist and are not links."""
    system_links: Mapping[str, str] = {}
    """Those that are links, such as /bin, each with its target."""
    system_files: Mapping[str, str] = {}
    """What exists of the files in /etc, each with its real path."""


def arguments(
    tools: Tools,
    layout: Layout,
    sandbox: Sandbox,
    descriptors: Mapping[str, int],
    command: Sequence[str],
    *,
    in_group: bool = False,
) -> tuple[str, ...]:
    """The words that start a command confined. `descriptors` are of the folders that it reads and writes."""
    inside = limited(sandbox, command, in_group=in_group)
    words = [tools.bwrap, *_NAMESPACES, *(() if sandbox.network else ("--unshare-net",)), *_ALWAYS]
    words += _mounts(tools, layout, sandbox, descriptors)
    words += ("--remount-ro", "/", "--chdir", layout.cwd, "--")
    if tools.env:
        signals = f"--default-signal={_SIGNALS.replace(' ', ',')}"
        return (SHELL, "-c", _IGNORING, SHELL, *words, tools.env, signals, *inside)
    return (*words, *inside)


def _mounts(tools: Tools, layout: Layout, sandbox: Sandbox, descriptors: Mapping[str, int]) -> Iterator[str]:
    yield from _system(tools, descriptors)
    size = str(sandbox.memory)
    yield from ("--proc", "/proc") if tools.mounts_proc else ("--dir", "/proc")
    if tools.mounts_proc and tools.read_only_proc:
        yield from ("--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm")
    writable = set(layout.writable)
    shown = writable.union(layout.readable)
    yield from ("--size", size, "--tmpfs", TEMPORARY, "--dir", "/run")
    if any(is_within(path, _OTHER_TEMPORARY) for path in shown):  # through a link nothing can be mounted
        yield from ("--size", size, "--tmpfs", _OTHER_TEMPORARY)
    else:
        yield from ("--symlink", TEMPORARY, _OTHER_TEMPORARY)
    for path in sorted(shown, key=lambda path: path.split(os.sep)):  # what lies in another one comes after it
        kind = "--bind" if path in writable else "--ro-bind"
        if tools.takes_descriptors and path in descriptors:
            yield from (f"{kind}-fd", str(descriptors[path]), path)
        else:
            yield from (kind, path, path)
    for path, is_folder in layout.hidden.items():
        yield from ("--perms", "0000", "--tmpfs", path) if is_folder else ("--ro-bind", "/dev/null", path)
    for link, target in layout.links.items():
        if not within_any(link, shown):
            yield from ("--symlink", target, link)


def _system(tools: Tools, descriptors: Mapping[str, int]) -> Iterator[str]:
    for folder in tools.system:
        yield from ("--ro-bind", folder, folder)
    for link, target in tools.system_links.items():
        yield from ("--symlink", target, link)
    for path, real in tools.system_files.items():  # to copy a small file takes a tenth of the time of a mount
        yield from ("--file", str(descriptors[path]), path) if path in descriptors else ("--ro-bind", real, path)
