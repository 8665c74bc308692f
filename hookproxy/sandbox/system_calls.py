"""The system calls that no server needs, as a program for seccomp. Pure.

In namespaces of its own a server is refused what belongs to the account as a whole, or what the kernel has most defects
in. Under Landlock alone it shares its processes and its IPC with the gateway, and Landlock says nothing about a file's
mode, owner, times, attributes and flags, nor about sockets in the file system: calls that change other processes or
that open such sockets are refused there, and those that change a mode, an owner or times do nothing. This includes
calls with an open file: whoever may read a file has a descriptor of it.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OTHER_NUMBERS: Final = 0x40000000  # the bit of x32, which has numbers of its own on x86_64

_X86_64: Final = {
    **{"socket": 41, "socketpair": 53, "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semctl": 66},
    **{"semop": 65, "semtimedop": 220, "msgsnd": 69, "msgrcv": 70, "fchmod": 91, "fchown": 93, "fsetxattr": 190},
    **{
        "fremovexattr": 199,
        "msgget": 68,
        "msgctl": 71,
        "chmod": 90,
        "fchmodat": 268,
        "chown": 92,
        "lchown": 94,
        "fchownat": 260,
    },
    **{"utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280, "setpriority": 141, "sched_setparam": 142},
    **{"sched_setscheduler": 144, "sched_setaffinity": 203, "sched_setattr": 314, "ioprio_set": 251, "prlimit64": 302},
    **{"setxattr": 188, "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198, "ioctl": 16, "mq_open": 240},
    **{"mq_unlink": 241, "add_key": 248, "request_key": 249, "keyctl": 250, "perf_event_open": 298, "bpf": 321},
    **{"userfaultfd": 323, "open_by_handle_at": 304, "kexec_load": 246, "init_module": 175, "finit_module": 313},
    **{"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311},
}
_AARCH64: Final = {
    **{"socket": 198, "socketpair": 199, "shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190, "semctl": 191},
    **{"semop": 193, "semtimedop": 192, "msgsnd": 189, "msgrcv": 188, "fchmod": 52, "fchown": 55, "fsetxattr": 7},
    **{
        "fremovexattr": 16,
        "msgget": 186,
        "msgctl": 187,
        "fchmodat": 53,
        "fchownat": 54,
        "utimensat": 88,
        "setpriority": 140,
    },
    **{"sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "sched_setattr": 274},
    **{"ioprio_set": 30, "prlimit64": 261, "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15},
    **{"ioctl": 29, "mq_open": 180, "mq_unlink": 181, "add_key": 217, "request_key": 218, "keyctl": 219},
    **{"perf_event_open": 241, "bpf": 280, "userfaultfd": 282, "open_by_handle_at": 265, "kexec_load": 104},
    **{"init_module": 105, "finit_module": 273, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271},
}
_SAME_EVERYWHERE: Final = {
    **{"io_uring_setup": 425, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469},
}
_NUMBERS: Final = {"x86_64": _X86_64, "aarch64": _AARCH64}

ALWAYS: Final = (
    *("add_key", "request_key", "keyctl"),  # keys belong to the account, whatever its namespaces are
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),  # io_uring passes by such filters, too
    *("open_by_handle_at", "kexec_load", "init_module", "finit_module"),
)
"""Refused in each sandbox."""

SHARED_IPC: Final = (
    *("shmget", "shmat", "shmctl", "semget", "semctl", "semop", "semtimedop", "msgget", "msgctl", "msgsnd", "msgrcv"),
    *("mq_open", "mq_unlink"),
)
"""Refused where the gateway's IPC namespace is shared: it belongs to the account, and its small numbers are guessed."""

OTHERS: Final = ("ptrace", "process_vm_readv", "process_vm_writev")
"""Refused where the gateway's processes are visible: Landlock refuses them, too."""

ONLY_ITSELF: Final = {
    "setpriority": 1, "sched_setparam": 0, "sched_setscheduler": 0, "sched_setaffinity": 0, "sched_setattr": 0,
    "ioprio_set": 1, "prlimit64": 0,
}  # fmt: skip
"""Calls that may change any process of the same account; with the number of the argument that must be 0, for itself."""

NOT_OF_THE_USER: Final = {"setpriority": 2, "ioprio_set": 3}
"""For 0 as the number of a user these change all processes of the account; with the value of the first argument."""

WITHOUT_EFFECT: Final = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr"),
    *("removexattrat", "file_setattr"),
)
"""Calls that Landlock does not look at. They report success and do nothing: programs that unpack files would stop at an
error. Who has opened a file for reading has a descriptor, and a filter cannot tell what it was opened for."""

_TERMINALS, _SOCKETS, _PLAIN = 0x5400, 0x8900, 0x0000
IOCTL_TYPES: Final = (_TERMINALS, _SOCKETS, _PLAIN)
"""Control calls by their type: terminals and all descriptors, sockets, the size of blocks. Others change flags, labels,
encryption and subvolumes of files and folders that are open for reading."""

IOCTL_REQUESTS: Final = (0x80086601, 0x801C581F, 0xC020660B, 0x40049409, 0x4020940D)
"""Besides: what reads flags, attributes and extents of files, and what copies a file into one that is open for writing
(FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FICLONE, FICLONERANGE)."""

_STREAM, _PACKETS = 1, 5  # a pair of these is connected for good; Rust starts processes by the latter
_TYPE_MASK: Final = 0xF  # the other bits of a socket's type are flags
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_FAMILIES: Final = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
"""Of sockets. Others know no namespace of the network, such as that to the host of a virtual machine."""
_WHOLE: Final = 0xFFFFFFFF
_TYPE_OF_IOCTL: Final = 0xFF00
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # they write into a terminal as if a person had typed it
_LOAD, _EQUAL, _GREATER_OR_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data

_Instruction = tuple[int, int, int, int]


def namespaced(machine: str) -> bytes:
    """The program for a server in namespaces of its own; empty for a machine whose numbers are not known."""
    numbers = _numbers(machine)
    return _program(numbers, machine, ALWAYS, (), _families(numbers, _FAMILIES)) if numbers else b""


def names_of(machine: str) -> Mapping[int, str]:
    """The names of calls by their numbers on a machine."""
    return {number: name for name, number in _numbers(machine).items()}


def shared(machine: str, *, network: bool, asks: Collection[str] = ()) -> bytes:
    """The program for a server that shares its namespaces with the gateway; empty as above. It may ask about calls."""
    numbers = _numbers(machine)
    if not numbers:
        return b""
    asked = [instruction for name in asks if name in numbers for instruction in _if_number(numbers[name], 0, _NOTIFY)]
    more = [*asked, *_unless(numbers["socketpair"], 1, {_TYPE_MASK: [_STREAM, _PACKETS]}, errno.EACCES)]
    more += _unless(numbers["ioctl"], 1, {_WHOLE: IOCTL_REQUESTS, _TYPE_OF_IOCTL: IOCTL_TYPES}, errno.ENOTTY)
    for name, user in NOT_OF_THE_USER.items():
        more += _if_argument(numbers[name], 0, user, errno.EPERM)
    for name, argument in ONLY_ITSELF.items():
        more += _unless(numbers[name], argument, {_WHOLE: [0]}, errno.EPERM)
    if network:
        more += _if_argument(numbers["socket"], 0, _AF_UNIX, errno.EACCES)
        more += _families(numbers, _FAMILIES)
    else:
        more += _if_number(numbers["socket"], errno.EACCES)
        more += _families(numbers, ())
    without_effect = [name for name in WITHOUT_EFFECT if name not in asks]
    return _program(numbers, machine, (*ALWAYS, *SHARED_IPC, *OTHERS), without_effect, more)


def _numbers(machine: str) -> Mapping[str, int]:
    known = _NUMBERS.get(machine)
    return {**known, **_SAME_EVERYWHERE} if known is not None else {}


def _families(numbers: Mapping[str, int], allowed: Sequence[int]) -> Iterator[_Instruction]:
    yield from _unless(numbers["socket"], 0, {_WHOLE: allowed}, errno.EAFNOSUPPORT)
    yield from _unless(numbers["socketpair"], 0, {_WHOLE: [_AF_UNIX]}, errno.EAFNOSUPPORT)


def _program(
    numbers: Mapping[str, int],
    machine: str,
    refused: Sequence[str],
    without_effect: Sequence[str],
    more: Iterable[_Instruction],
) -> bytes:
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),  # programs for another architecture have other numbers
        (_LOAD, 0, 0, _NUMBER_AT),
        (_GREATER_OR_EQUAL, 0, 1, _OTHER_NUMBERS),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for name in refused:
        if name in numbers:
            code += _if_number(numbers[name], errno.EPERM)
    for name in without_effect:
        if name in numbers:
            code += _if_number(numbers[name], 0)
    for request in (_TIOCSTI, _TIOCLINUX):
        code += _if_argument(numbers["ioctl"], 1, request, errno.EPERM)
    code += [*more, (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _if_number(number: int, error: int, action: int = _ERRNO) -> Iterator[_Instruction]:
    """Fail with this error, or do nothing for 0, if the call has this number, which is loaded."""
    yield (_EQUAL, 0, 1, number)
    yield (_RETURN, 0, 0, action | error)


def _if_argument(number: int, argument: int, value: int, error: int) -> Iterator[_Instruction]:
    """The same if, besides, the lower half of the argument equals the value. The number is loaded again after it."""
    yield (_EQUAL, 0, 4, number)
    yield (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)
    yield (_EQUAL, 0, 1, value)
    yield (_RETURN, 0, 0, _ERRNO | error)
    yield (_LOAD, 0, 0, _NUMBER_AT)


def _unless(number: int, argument: int, allowed: Mapping[int, Sequence[int]], error: int) -> Iterator[_Instruction]:
    """The same unless the lower half of the argument, under a mask, is one of the values that the mask has."""
    at = _ARGUMENTS_AT + 8 * argument
    tests: list[_Instruction] = []
    for mask, values in allowed.items():
        tests += [(_LOAD, 0, 0, at), (_AND, 0, 0, mask), *((_EQUAL, 0, 0, value) for value in values)]
    tests += [(_RETURN, 0, 0, _ERRNO | error)]
    yield (_EQUAL, 0, len(tests) + 1, number)
    for place, (code, _, otherwise, value) in enumerate(tests):
        yield (code, len(tests) - place - 1 if code == _EQUAL else 0, otherwise, value)
    yield (_LOAD, 0, 0, _NUMBER_AT)
