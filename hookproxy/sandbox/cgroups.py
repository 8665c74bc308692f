"""A cgroup for each server process: its memory and its processes are counted together, whatever it makes of them.

It needs a cgroup of version 2 that was delegated to us, with the controllers for memory and for the number of processes
(`Delegate=yes` of systemd), and in which nothing runs but ourselves. In a group that has such limits below it, no
process may run: we move ourselves, and what we have started so far, into one beside those of the servers.

    …/hookproxy.service            delegated
        hookproxy                  ourselves, the guardian, hooks
        server-1, server-2, …      one for each process of a server, with all that it starts

A server waits in its shell until it is in its group. What is left of it when it ends is ended with the group, also what
has detached itself; the same if we are killed (`guardian`), and at the next start.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ..processes.guardian import OUR_GROUP
from ..processes.process_tree import find_trees
from .limits import SHELL
from .table import PROCESSES_AROUND, Sandbox

MOUNTED: Final = "/sys/fs/cgroup"
_CONTROLLERS: Final = frozenset(("memory", "pids"))
_PREFIX: Final = "server-"
_WAIT: Final = 'read -r _ || exit 126; exec "$@"'
_GO: Final = b"\n"


def waiting(command: Sequence[str]) -> tuple[str, ...]:
    """The command, which starts when a line has come: a shell reads no more than that."""
    return (SHELL, "-c", _WAIT, SHELL, *command)


class Group:
    """The group of one process of a server."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put_process(self, pid: int, to_server: int) -> None:
        """Put a process that waits into the group, and let it go on. Raises OSError."""
        _write(f"{self._folder}/cgroup.procs", str(pid))
        os.write(to_server, _GO)

    def try_to_end(self) -> bool:
        """End what is in it, and remove it; false: its last processes are still ending, and it must be tried again."""
        with suppress(OSError):
            _write(f"{self._folder}/cgroup.kill", "1")
        try:
            os.rmdir(self._folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def was_too_large(self) -> bool:
        """Whether the kernel has ended it because of its memory."""
        with suppress(OSError, ValueError), open(f"{self._folder}/memory.events") as events:
            return any(line.startswith("oom_kill ") and int(line.split()[1]) for line in events)
        return False


class Groups:
    """Where the groups of servers are made."""

    def __init__(self, folder: str) -> None:
        """Take over a folder that was delegated to us. Raises OSError, and ValueError that says why not."""
        available = _read(f"{folder}/cgroup.controllers").split()
        if missing := sorted(_CONTROLLERS.difference(available)):
            raise ValueError(f"it has no controller for {' and '.join(missing)}")
        own = {os.getpid(), *find_trees({os.getpid(): {}})[os.getpid()].processes}
        running = set(map(int, _read(f"{folder}/cgroup.procs").split()))
        if not running <= own:
            raise ValueError("other programs run in it")
        os.makedirs(f"{folder}/{OUR_GROUP}", exist_ok=True)
        for pid in running:
            with suppress(ProcessLookupError):
                _write(f"{folder}/{OUR_GROUP}/cgroup.procs", str(pid))
        _write(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(_CONTROLLERS)))
        self._folder = folder
        self._number = 0
        with os.scandir(folder) as entries:  # of a gateway that was killed
            self._ending = [Group(entry.path) for entry in entries if entry.name.startswith(_PREFIX)]
        self._end_more()

    def make(self, sandbox: Sandbox) -> Group:
        """A group with the limits of a server. Raises OSError."""
        self._end_more()
        while True:
            self._number += 1
            folder = f"{self._folder}/{_PREFIX}{self._number}"
            with suppress(FileExistsError):
                os.mkdir(folder)
                break
        _write(f"{folder}/memory.max", str(sandbox.memory))
        _write(f"{folder}/memory.oom.group", "1")
        with suppress(FileNotFoundError):  # a kernel without swap
            _write(f"{folder}/memory.swap.max", "0")
        _write(f"{folder}/pids.max", str(sandbox.processes + PROCESSES_AROUND))
        return Group(folder)

    def end_group(self, group: Group) -> None:
        """End a group: now, or with the next one that is made or ended."""
        self._ending.append(group)
        self._end_more()

    def _end_more(self) -> None:
        self._ending = [group for group in self._ending if not group.try_to_end()]


def find_groups(mounted: str = MOUNTED, own: str = "/proc/self/cgroup") -> tuple[Groups | None, str]:
    """Where groups can be made, or why they cannot, in a few words."""
    try:
        path = next(line[len("0::") :] for line in _read(own).splitlines() if line.startswith("0::"))
        folder = os.path.normpath(f"{mounted}/{path}")
        if os.path.basename(folder) == OUR_GROUP:  # we were there before: a program that has replaced itself
            folder = os.path.dirname(folder)
        return Groups(folder), ""
    except StopIteration:
        return None, "this system has no cgroups of version 2"
    except (OSError, ValueError) as error:
        return None, f"no cgroup is delegated: {error}"


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    """Write into a file of the kernel, which is not made."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
