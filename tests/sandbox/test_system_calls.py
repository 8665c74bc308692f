"""The programs for seccomp, run as the kernel runs them."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path
from typing import Final

import pytest

from hookproxy.sandbox import modes, system_calls
from hookproxy.sandbox.system_calls import namespaced, shared

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OTHER_ARCHITECTURE: Final = 0x40000003  # i386
ALLOWED: Final = -1
FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, BTRFS_IOC_SUBVOL_CREATE, FAT_SET_ATTRIBUTES = (
    *(0x40086602, 0x401C5820),
    *(0x5000940E, 0x40047211),
)
FIONREAD, SIOCGIFCONF, FICLONE, TIOCSTI, FIOCLEX = 0x541B, 0x8912, 0x40049409, 0x5412, 0x5451
UNIX, INET, INET6, NETLINK, PACKET, ALG, TIPC, VSOCK = 1, 2, 10, 16, 17, 38, 30, 40
STREAM, DATAGRAM, PACKETS, CLOEXEC = 1, 2, 5, 0o2000000


def numbers(machine: str) -> dict[str, int]:
    return dict(system_calls._numbers(machine))


def outcome(program: bytes, machine: str, number: int, *arguments: int, architecture: int = 0) -> int:
    """The error with which a call fails, 0 for one that does nothing, and ALLOWED."""
    data = struct.pack("=iIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *(*arguments, *[0] * 6)[:6])
    code = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        operation, if_true, if_false, operand = code[at]
        at += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif operation == 0x54:
            value &= operand
        elif operation == 0x15:
            at += if_true if value == operand else if_false
        elif operation == 0x35:
            at += if_true if value >= operand else if_false
        else:
            assert operation == 0x06
            return ALLOWED if operand == 0x7FFF0000 else operand & 0xFFFF


@pytest.fixture(params=list(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    # Debian's linux-libc-dev has both tables; ARM64 has no numbers of its own
    name = "asm-generic/unistd.h" if machine == "aarch64" else "x86_64-linux-gnu/asm/unistd_64.h"
    header = Path("/usr/include", name)
    if not header.exists():
        pytest.skip("no headers of the kernel")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    wrong = {
        call: (number, known[call])
        for call, number in numbers(machine).items()
        if known.get(call, str(number)) != str(number)
    }
    assert not wrong
    too_new = {"fchmodat2", "setxattrat", "removexattrat", "file_setattr"}
    assert set(numbers(machine)) - set(known) <= too_new


def test_every_call_that_is_named_has_a_number(machine: str) -> None:
    only_x86 = {"chmod", "chown", "lchown", "utime", "utimes", "futimesat"}
    named = {*system_calls.ALWAYS, *system_calls.SHARED_IPC, *system_calls.OTHERS, *system_calls.WITHOUT_EFFECT}
    named |= {*system_calls.ONLY_ITSELF, *system_calls.NOT_OF_THE_USER, "socket", "socketpair", "ioctl"}
    assert named - set(numbers(machine)) == (only_x86 if machine == "aarch64" else set())


def test_calls_for_another_architecture_are_refused(machine: str) -> None:
    for program in (namespaced(machine), shared(machine, network=True)):
        assert outcome(program, machine, 0, architecture=OTHER_ARCHITECTURE) == errno.ENOSYS
        assert outcome(program, machine, 0x40000000) == errno.ENOSYS
        assert outcome(program, machine, 0) == ALLOWED


def test_what_belongs_to_the_account_is_refused_everywhere(machine: str) -> None:
    for program in (namespaced(machine), shared(machine, network=True)):
        for name in system_calls.ALWAYS:
            assert outcome(program, machine, numbers(machine)[name]) == errno.EPERM
        assert outcome(program, machine, numbers(machine)["ioctl"], 0, TIOCSTI) == errno.EPERM


def test_files_keep_their_mode_owner_and_times_where_they_are_shared(machine: str) -> None:
    known = numbers(machine)
    for name in (name for name in system_calls.WITHOUT_EFFECT if name in known):
        assert outcome(shared(machine, network=True), machine, known[name], 3, 0o777) == 0
        assert outcome(namespaced(machine), machine, known[name], 3, 0o777) == ALLOWED


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        *((request, errno.ENOTTY) for request in (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, BTRFS_IOC_SUBVOL_CREATE)),
        *((request, ALLOWED) for request in (FIONREAD, SIOCGIFCONF, FICLONE, FIOCLEX)),
        (FAT_SET_ATTRIBUTES, errno.ENOTTY),
        (TIOCSTI, errno.EPERM),
        (TIOCSTI | 1 << 32, errno.EPERM),  # the kernel takes the lower half
    ],
)
def test_flags_of_files_that_are_shared_cannot_be_set(machine: str, request_: int, error: int) -> None:
    assert outcome(shared(machine, network=False), machine, numbers(machine)["ioctl"], 3, request_) == error


def test_modes_may_be_asked_about(machine: str) -> None:
    known = numbers(machine)
    program = shared(machine, network=True, asks=modes.CALLS)
    for name in (name for name in modes.CALLS if name in known):
        data = struct.pack("=HBBI", 0x06, 0, 0, 0x7FC00000)
        assert data in program
        assert struct.pack("=HBBI", 0x15, 0, 1, known[name]) + data in program
    assert outcome(program, machine, known["fchown"]) == 0


def test_sockets_are_those_of_the_internet_and_of_its_own_folders(machine: str) -> None:
    socket, pair = numbers(machine)["socket"], numbers(machine)["socketpair"]
    for family in (INET, INET6, NETLINK):
        assert outcome(namespaced(machine), machine, socket, family) == ALLOWED
        assert outcome(shared(machine, network=True), machine, socket, family) == ALLOWED
        assert outcome(shared(machine, network=False), machine, socket, family) == errno.EACCES
    for family in (PACKET, ALG, TIPC, VSOCK):
        assert outcome(namespaced(machine), machine, socket, family) == errno.EAFNOSUPPORT
        assert outcome(namespaced(machine), machine, pair, family, STREAM) == errno.EAFNOSUPPORT
        assert outcome(shared(machine, network=True), machine, socket, family) == errno.EAFNOSUPPORT
        assert outcome(shared(machine, network=False), machine, socket, family) == errno.EACCES
    assert outcome(namespaced(machine), machine, socket, UNIX) == ALLOWED
    assert outcome(shared(machine, network=True), machine, socket, UNIX) == errno.EACCES


def test_pairs_of_sockets_are_connected_for_good(machine: str) -> None:
    pair = numbers(machine)["socketpair"]
    assert outcome(shared(machine, network=False), machine, pair, UNIX, STREAM | CLOEXEC) == ALLOWED
    assert outcome(shared(machine, network=False), machine, pair, UNIX, PACKETS) == ALLOWED
    assert outcome(shared(machine, network=False), machine, pair, UNIX, DATAGRAM) == errno.EACCES
    assert outcome(shared(machine, network=False), machine, pair, TIPC, STREAM) == errno.EAFNOSUPPORT


def test_other_processes_of_the_account_are_not_changed(machine: str) -> None:
    known = numbers(machine)
    program = shared(machine, network=True)
    for name, argument in system_calls.ONLY_ITSELF.items():
        assert outcome(program, machine, known[name], *[0] * argument, 0) == ALLOWED
        assert outcome(program, machine, known[name], *[0] * argument, 4711) == errno.EPERM
    assert outcome(program, machine, known["setpriority"], 2, 0) == errno.EPERM
    assert outcome(program, machine, known["ioprio_set"], 3, 0) == errno.EPERM
    for name in (*system_calls.SHARED_IPC, *system_calls.OTHERS):
        assert outcome(program, machine, known[name]) == errno.EPERM


def test_there_is_no_program_for_a_machine_whose_numbers_are_not_known() -> None:
    assert namespaced("riscv64") == shared("riscv64", network=True) == b""
