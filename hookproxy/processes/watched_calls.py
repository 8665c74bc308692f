"""The system calls that show what a program uses, and what their arguments mean. Pure.

The filter stops these calls until the watcher has looked at them; all others pass at once. What only looks at a file's
name, such as stat(2), is not among them: programs try thousands of names that they never open.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

What = Literal["read", "list", "write", "make", "remove", "run", "connect", "listen", "internet", "unseen"]
"""What a program did: it opened a file to read it, opened a folder, opened an existing file to write it, made something
at a path, changed or removed what is there, ran a file, connected to an address, or offered one; `internet`: it opened
a socket of the internet; `unseen`: a call whose arguments could not be read."""


class Access(Struct, frozen=True, omit_defaults=True):
    """One thing that a program used, however often."""

    what: What
    path: str
    """A real absolute path, or an address."""
    program: str = ""
    """The name of the process."""


class Call(Struct, frozen=True):
    """How to read the arguments of one call."""

    kind: Literal["open", "openat2", "path", "address", "socket"]
    what: What = "read"
    folder: int = -1
    """The number of the argument with the descriptor of a folder; -1: there is none."""
    path: int = 0
    flags: int = -1
    """Of `open`: the number of the argument with the flags; -1: as of creat(2)."""
    second: tuple[int, int] | None = None
    """Of `path`: the numbers of the folder (-1: none) and of the path that is made."""


def _at(what: What, folder: int = 0, second: tuple[int, int] | None = None) -> Call:
    return Call("path", what, folder, folder + 1, second=second)


_CALLS: Final[Mapping[str, Call]] = {
    "open": Call("open", path=0, flags=1),
    "creat": Call("open", path=0),
    "openat": Call("open", folder=0, path=1, flags=2),
    "openat2": Call("openat2", folder=0, path=1, flags=2),
    "mkdir": Call("path", "make"),
    "mkdirat": _at("make"),
    "mknod": Call("path", "make"),
    "mknodat": _at("make"),
    "symlink": Call("path", "make", path=1),
    "symlinkat": _at("make", 1),
    "link": Call("path", "make", path=1),
    "linkat": _at("make", 2),
    "unlink": Call("path", "remove"),
    "unlinkat": _at("remove"),
    "rmdir": Call("path", "remove"),
    "rename": Call("path", "remove", second=(-1, 1)),
    "renameat": _at("remove", second=(2, 3)),
    "renameat2": _at("remove", second=(2, 3)),
    "truncate": Call("path", "write"),
    "chmod": Call("path", "write"),
    "fchmodat": _at("write"),
    "chown": Call("path", "write"),
    "lchown": Call("path", "write"),
    "fchownat": _at("write"),
    "execve": Call("path", "run"),
    "execveat": _at("run"),
    "connect": Call("address", "connect", path=1),
    "bind": Call("address", "listen", path=1),
    "sendto": Call("address", "connect", path=4),
    "socket": Call("socket", "internet"),
}

_X86_64: Final = {
    **{"open": 2, "creat": 85, "openat": 257, "mkdir": 83, "mkdirat": 258, "mknod": 133, "mknodat": 259},
    **{"symlink": 88, "symlinkat": 266, "link": 86, "linkat": 265, "unlink": 87, "unlinkat": 263, "rmdir": 84},
    **{"rename": 82, "renameat": 264, "renameat2": 316, "truncate": 76, "chmod": 90, "fchmodat": 268, "chown": 92},
    **{"lchown": 94, "fchownat": 260, "execve": 59, "execveat": 322, "connect": 42, "bind": 49, "sendto": 44},
    "socket": 41,
}
_AARCH64: Final = {
    **{"openat": 56, "mkdirat": 34, "mknodat": 33, "symlinkat": 36, "linkat": 37, "unlinkat": 35, "renameat": 38},
    **{"renameat2": 276, "truncate": 45, "fchmodat": 53, "fchownat": 54, "execve": 221, "execveat": 281},
    **{"connect": 203, "bind": 200, "sendto": 206, "socket": 198},
}
_OPENAT2: Final = {"openat2": 437}  # on all machines
_MACHINES: Final = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_NUMBER_AT, _ARCHITECTURE_AT, _FIFTH_ARGUMENT_AT = 0, 4, 48  # in struct seccomp_data


def calls_of(machine: str) -> Mapping[int, Call]:
    """The calls by their numbers on this machine; none: its numbers are not known."""
    if machine not in _MACHINES:
        return {}
    return {number: _CALLS[name] for name, number in {**_MACHINES[machine][1], **_OPENAT2}.items()}


def program_for(machine: str) -> bytes:
    """The program for seccomp that stops these calls, and lets all others pass."""
    architecture, numbers = _MACHINES[machine]
    code = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _ALLOW)]
    code.append((_LOAD, 0, 0, _NUMBER_AT))
    for name, number in {**numbers, **_OPENAT2}.items():
        if name == "sendto":  # without an address it is how programs send on what they have connected
            code += [(_EQUAL, 0, 4, number), (_LOAD, 0, 0, _FIFTH_ARGUMENT_AT), (_EQUAL, 1, 0, 0)]
            code += [(_RETURN, 0, 0, _NOTIFY), (_RETURN, 0, 0, _ALLOW)]
        else:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _NOTIFY)]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def opened(flags: int, exists: bool, is_folder: bool) -> What | None:
    """What open(2) with these flags means; None: nothing of interest."""
    if flags & getattr(os, "O_PATH", 0):
        return None
    if flags & os.O_CREAT and not exists:
        return "make"
    if flags & getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY:
        return "make"
    if not exists:
        return None
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC) and not is_folder:
        return "write"
    return "list" if is_folder else "read"


def address(data: bytes) -> tuple[Literal["unix", "internet", ""], str]:
    """The family of a sockaddr, and its address as people write it; empty: another family, or none."""
    family = int.from_bytes(data[:2], "little")
    port = int.from_bytes(data[2:4], "big")
    if family == socket.AF_UNIX:
        path = data[2:]
        return "unix", os.fsdecode(path[:1].replace(b"\0", b"@") + path[1:].partition(b"\0")[0])
    if family == socket.AF_INET and len(data) >= 8:
        return "internet", f"{socket.inet_ntop(socket.AF_INET, data[4:8])}:{port}"
    if family == socket.AF_INET6 and len(data) >= 24:
        return "internet", f"[{socket.inet_ntop(socket.AF_INET6, data[8:24])}]:{port}"
    return "", ""


def is_internet(family: int) -> bool:
    """Whether sockets of this family reach the network."""
    return family in (socket.AF_INET, socket.AF_INET6)


def paths_of(call: Call) -> Iterator[tuple[What, int, int]]:
    """What is done with each path of a call, and the numbers of the arguments with its folder (-1: none) and itself."""
    yield call.what, call.folder, call.path
    if call.second is not None:
        yield "make", *call.second
