"""A cgroup for each server process: in a folder that looks like one, and, where root can make one, in the kernel's."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookproxy.sandbox import cgroups
from hookproxy.sandbox.cgroups import Group, find_groups, waiting
from hookproxy.sandbox.table import PROCESSES_AROUND, Sandbox

FILES = (
    *("cgroup.procs", "cgroup.kill", "memory.max", "memory.oom.group", "memory.swap.max", "pids.max"),
    *("memory.events", "cgroup.subtree_control"),
)


class Delegated:
    """A folder that looks like a delegated cgroup: making a folder in it makes the files, removing it removes them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mounted = folder / "mounted"
        self.folder = self.mounted / "hookproxy.service"
        self.own = folder / "self-cgroup"
        self.own.write_text("5:memory:/x\n0::/hookproxy.service\n")
        self.busy: set[str] = set()
        mkdir, self.rmdir = os.mkdir, os.rmdir
        monkeypatch.setattr(os, "rmdir", self.remove)

        def make(path: str, mode: int = 0o777) -> None:
            mkdir(path, mode)
            for name in FILES:
                Path(path, name).touch()

        monkeypatch.setattr(os, "mkdir", make)
        os.makedirs(self.folder)
        self.write("cgroup.controllers", "cpu memory pids")
        self.write("cgroup.procs", str(os.getpid()))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def remove(self, path: str) -> None:
        if os.path.basename(path) in self.busy:
            raise OSError("Device or resource busy")
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        self.rmdir(path)

    def make_foreign(self, name: str) -> None:
        """A group that somebody has left here."""
        os.mkdir(self.folder / name)

    def find(self) -> tuple[cgroups.Groups | None, str]:
        return find_groups(str(self.mounted), str(self.own))

    @property
    def groups(self) -> cgroups.Groups:
        found, why = self.find()
        assert found is not None, why
        return found


@pytest.fixture
def delegated(tmp_path: Path) -> Iterator[Delegated]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Delegated(tmp_path, monkeypatch)


def test_we_move_beside_the_groups_of_servers(delegated: Delegated) -> None:
    assert delegated.find()[0] is not None
    assert delegated.read("hookproxy/cgroup.procs") == str(os.getpid())
    assert delegated.read("cgroup.subtree_control") == "+memory +pids"
    delegated.own.write_text("0::/hookproxy.service/hookproxy\n")  # where we are from now on
    assert delegated.find()[0] is not None


def test_a_group_has_the_limits_of_the_sandbox(delegated: Delegated) -> None:
    delegated.groups.make(Sandbox(memory=5_000_000, processes=7))
    limits = {name: delegated.read(f"server-1/{name}") for name in FILES[2:6]}
    assert limits == {
        "memory.max": "5000000",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "pids.max": str(7 + PROCESSES_AROUND),
    }


def test_each_process_has_a_group_of_its_own_that_goes_with_it(delegated: Delegated) -> None:
    groups = delegated.groups
    one, other = groups.make(Sandbox()), groups.make(Sandbox())
    groups.end_group(one)
    assert not (delegated.folder / "server-1").exists()
    assert (delegated.folder / "server-2").exists()
    groups.end_group(other)
    assert not (delegated.folder / "server-2").exists()


def test_a_group_whose_last_process_is_ending_is_removed_later(delegated: Delegated) -> None:
    groups = delegated.groups
    group = groups.make(Sandbox())
    delegated.busy = {"server-1"}
    groups.end_group(group)
    assert delegated.read("server-1/cgroup.kill") == "1"
    delegated.busy = set()
    groups.make(Sandbox())
    assert not (delegated.folder / "server-1").exists()


def test_what_a_killed_gateway_has_left_is_ended(delegated: Delegated) -> None:
    delegated.make_foreign("server-9")
    delegated.busy = {"server-9"}
    assert delegated.find()[0] is not None
    assert delegated.read("server-9/cgroup.kill") == "1"
    delegated.busy = set()
    assert delegated.find()[0] is not None
    assert not (delegated.folder / "server-9").exists()


def test_a_process_goes_on_when_it_is_in_its_group(delegated: Delegated) -> None:
    group = delegated.groups.make(Sandbox())
    reads, writes = os.pipe()
    group.put_process(4711, writes)
    os.close(writes)
    assert delegated.read("server-1/cgroup.procs") == "4711"
    with os.fdopen(reads, "rb") as file:
        assert file.read() == b"\n"


def test_the_kernels_word_for_too_much_memory_is_understood(delegated: Delegated) -> None:
    group = delegated.groups.make(Sandbox())
    delegated.write("server-1/memory.events", "low 0\noom 3\noom_kill 0\n")
    assert not group.was_too_large()
    delegated.write("server-1/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 1\n")
    assert group.was_too_large()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("cgroup.procs", "1\n", "other programs run in it"),
        ("cgroup.controllers", "cpu pids", "it has no controller for memory"),
        ("../../self-cgroup", "1:name=systemd:/x\n", "no cgroups of version 2"),
        ("../../self-cgroup", "0::/../elsewhere\n", "No such file"),
    ],
)
def test_nothing_is_taken_over_that_is_not_ours_alone(delegated: Delegated, name: str, text: str, why: str) -> None:
    delegated.write(name, text)
    groups, problem = delegated.find()
    assert groups is None
    assert why in problem
    assert not (delegated.folder / "hookproxy").exists()


def test_a_server_waits_for_its_line_and_reads_no_further() -> None:
    command = waiting(["/bin/cat"])
    assert subprocess.run(command, input=b"\n{}\n", capture_output=True, check=True).stdout == b"{}\n"
    assert subprocess.run(command, input=b"", check=False).returncode == 126


def test_it_does_the_same_at_the_end_of_a_socket() -> None:
    ours, its = socket.socketpair()
    ours.sendall(b"\n{}\n")
    ours.shutdown(socket.SHUT_WR)
    with ours, its:
        ended = subprocess.run(waiting(["/bin/cat"]), stdin=its.fileno(), capture_output=True, check=True)
    assert ended.stdout == b"{}\n"


@pytest.fixture
def kernels() -> Iterator[Path]:
    """A cgroup of version 2, with or without controllers."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.startswith("cgroup2 ")]
    for mount in mounts:
        folder = Path(mount, f"hookproxy-test-{os.getpid()}")
        try:
            folder.mkdir()
        except OSError:
            continue
        yield folder
        if folder.exists():
            folder.rmdir()
        return
    pytest.skip("no cgroup of version 2 can be made here")


def test_what_has_detached_itself_ends_with_its_group(kernels: Path) -> None:
    command = waiting(["/bin/sh", "-c", "setsid sleep 60 & echo $!; exec cat"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        group = Group(str(kernels))
        group.put_process(process.pid, process.stdin.fileno())
        detached = int(process.stdout.readline())
        exit_fd = os.pidfd_open(detached)
        assert str(detached) in (kernels / "cgroup.procs").read_text().split()
        group.try_to_end()
        assert select.select([exit_fd], [], [], 10)[0]
        os.close(exit_fd)
        process.wait(30)
    deadline = time.monotonic() + 30
    while not group.try_to_end():
        assert time.monotonic() < deadline
