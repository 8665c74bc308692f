"""Which system calls are stopped for the watcher, and what their arguments mean."""

from __future__ import annotations

import os
import socket
import struct
from typing import Final

import pytest

from hookproxy.processes.watched_calls import address, calls_of, opened, paths_of, program_for

ALLOWED, NOTIFIED = 0x7FFF0000, 0x7FC00000
ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def decided(machine: str, number: int, fifth: int = 0, architecture: int | None = None) -> int:
    """What the program answers to a call, by the rules of the kernel's filter machine."""
    data = struct.pack("=iIQ6Q", number, architecture or ARCHITECTURES[machine], 0, 0, 0, 0, 0, fifth, 0)
    code = list(struct.iter_unpack("=HBBI", program_for(machine)))
    loaded = at = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        if operation == 0x20:
            loaded = int.from_bytes(data[value : value + 4], "little")
        elif operation == 0x15:
            at += yes if loaded == value else no
        else:
            assert operation == 0x06
            return int(value)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_exactly_the_calls_of_the_table_are_stopped(machine: str) -> None:
    stopped = {number for number in range(600) if decided(machine, number, fifth=1) == NOTIFIED}
    assert stopped == set(calls_of(machine))


@pytest.mark.parametrize(("machine", "sendto"), [("x86_64", 44), ("aarch64", 206)])
def test_what_is_sent_on_a_connection_is_not_stopped(machine: str, sendto: int) -> None:
    assert decided(machine, sendto, fifth=0) == ALLOWED
    assert decided(machine, sendto, fifth=0x7000) == NOTIFIED


def test_programs_for_another_processor_pass() -> None:
    assert decided("x86_64", 5, architecture=0x40000003) == ALLOWED


def test_a_machine_whose_numbers_are_not_known_has_no_calls() -> None:
    assert calls_of("riscv64") == {}


@pytest.mark.parametrize(
    ("flags", "exists", "is_folder", "what"),
    [
        (os.O_RDONLY, True, False, "read"),
        (os.O_RDONLY, False, False, None),
        (os.O_RDONLY | os.O_DIRECTORY, True, True, "list"),
        (os.O_WRONLY, True, False, "write"),
        (os.O_RDWR, True, False, "write"),
        (os.O_RDONLY | os.O_TRUNC, True, False, "write"),
        (os.O_WRONLY, False, False, None),
        (os.O_WRONLY | os.O_CREAT, False, False, "make"),
        (os.O_WRONLY | os.O_CREAT, True, False, "write"),
        (os.O_RDONLY | os.O_CREAT, True, False, "read"),
    ],
)
def test_what_a_file_is_opened_for(flags: int, exists: bool, is_folder: bool, what: str | None) -> None:
    assert opened(flags, exists, is_folder) == what


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="flags of Linux")
def test_a_file_without_a_name_needs_its_folder_and_a_look_at_a_name_needs_nothing() -> None:
    assert opened(os.O_WRONLY | os.O_TMPFILE, True, True) == "make"
    assert opened(os.O_PATH, True, False) is None


@pytest.mark.parametrize(
    ("data", "family", "text"),
    [
        (struct.pack("=H", socket.AF_INET) + b"\x01\xbb\xc0\x00\x02\x01" + bytes(8), "internet", "192.0.2.1:443"),
        (
            struct.pack("=H", socket.AF_INET6) + b"\x00\x50" + bytes(4) + bytes(15) + b"\1" + bytes(4),
            "internet",
            "[::1]:80",
        ),
        (struct.pack("=H", socket.AF_UNIX) + b"/run/x\0rest", "unix", "/run/x"),
        (struct.pack("=H", socket.AF_UNIX) + b"\0abstract", "unix", "@abstract"),
        (struct.pack("=H", socket.AF_INET) + b"\x01", "", ""),
        (b"", "", ""),
        (struct.pack("=H", 16) + bytes(10), "", ""),
    ],
)
def test_addresses_are_written_as_people_do(data: bytes, family: str, text: str) -> None:
    assert address(data) == (family, text)


def test_a_rename_removes_one_name_and_makes_another() -> None:
    calls = calls_of("x86_64")
    assert list(paths_of(calls[82])) == [("remove", -1, 0), ("make", -1, 1)]
    assert list(paths_of(calls[264])) == [("remove", 0, 1), ("make", 2, 3)]
    assert list(paths_of(calls[86])) == [("make", -1, 1)]
