"""Where runs can be found: a folder of our own with a Unix socket for each run. Nobody else can look into it (law 1).

A socket appears in the folder when somebody listens at it: whoever finds one at which nobody listens may remove it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from ..model.errors import UserError

_SUFFIX: Final = ".sock"
_UNFINISHED: Final = ".new"  # the suffix of a socket at which nobody listens yet
_BACKLOG: Final = 16  # consoles that connect at the same time: a person opens one or two
_OPEN_FILES: Final = "/proc/self/fd"
_LONGEST_PATH: Final = 107  # bytes of a Unix socket's address, on Linux; 103 on macOS


def folder_of_runs(environ: Mapping[str, str], state_folder: str) -> str:
    """The folder of this account's runs: the system's for sockets, or a part of the state folder; empty: no place."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        return os.path.join(runtime, "hookproxy")
    return os.path.join(state_folder, "runs") if state_folder else ""


def prepare_folder(folder: str) -> None:
    """Make the folder if it is missing. Raises UserError unless it is ours, and nobody else may enter it; OSError."""
    if not os.path.lexists(folder):  # whatever is there is looked at
        _make(folder)
    state = os.lstat(folder)
    if not stat.S_ISDIR(state.st_mode):
        raise UserError(f"{folder}: is not a folder", "remove it")
    if state.st_uid != os.geteuid():
        raise UserError(f"{folder}: belongs to user {state.st_uid}", "name a folder of your own with XDG_RUNTIME_DIR")
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise UserError(f"{folder}: others may enter it", f"chmod 700 {folder}")


def _make(folder: str) -> None:
    """Make the folder, and those above it that are missing: whoever may write in these could put another in its place.

    Raises OSError.
    """
    mask = os.umask(0o077)
    try:
        os.makedirs(folder, exist_ok=True)
    finally:
        os.umask(mask)


def listen(folder: str, name: str) -> socket.socket:
    """Listen at a socket of this name in the folder. Raises OSError; UserError if the folder is not ours alone."""
    prepare_folder(folder)
    path = socket_path(folder, name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        with _address(path + _UNFINISHED) as address:
            listener.bind(address)  # its mode does not matter: nobody else can enter the folder
        listener.listen(_BACKLOG)
        os.rename(path + _UNFINISHED, path)
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _address(path: str) -> Iterator[str]:
    """The address of a socket at this path; for a path that is too long, by way of its open folder."""
    if len(os.fsencode(path)) <= _LONGEST_PATH or not os.path.isdir(_OPEN_FILES):
        yield path  # too long for a system without such a folder: an OSError says so
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_OPEN_FILES}/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def socket_path(folder: str, name: str) -> str:
    """The path of a run's socket."""
    return os.path.join(folder, name + _SUFFIX)


def names(folder: str) -> list[str]:
    """The names of all sockets in the folder. Raises OSError, but not for a folder that is missing."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX))
    except FileNotFoundError:
        return []


def connect(folder: str, name: str) -> socket.socket | None:
    """Connect to a run; None if nobody listens: its socket is removed. Raises OSError; UserError if it is not ours."""
    prepare_folder(folder)
    path = socket_path(folder, name)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        with _address(path) as address:
            connection.connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        connection.close()
        remove(folder, name)
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def new_name() -> str:
    """A name for the socket of this process, unlike that of any other run."""
    return f"{os.getpid()}-{os.urandom(4).hex()}"


def remove_dead(folder: str) -> None:
    """Remove the sockets of runs that were killed, by the process ids in their names. Raises OSError, UserError."""
    for name in names(folder):
        pid = name.partition("-")[0]
        if pid.isascii() and pid.isdecimal() and not process_exists(int(pid)) and (other := connect(folder, name)):
            other.close()  # it runs in another process namespace


def process_exists(pid: int) -> bool:
    """Whether a process has this id, of whatever account."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def remove(folder: str, name: str) -> None:
    """Remove a run's socket, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(socket_path(folder, name))
