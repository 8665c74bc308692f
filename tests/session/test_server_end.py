"""A server that is killed: its end is waited for without holding up anybody else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import anyio
import pytest

from hookproxy.processes.process import Server
from hookproxy.session.server_end import ServerProcess
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.fixture
def never_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_seconds: float) -> None:
        raise AssertionError("the event loop was blocked")

    monkeypatch.setattr(time, "sleep", sleep)


def started(script: str = "echo; exec sleep 60") -> tuple[int, ServerProcess]:
    """A server that runs, and leads a group of its own."""
    child = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    child.returncode = 0  # Popen must not reap it
    assert child.stdout is not None
    with child.stdout as output:
        output.readline()
    return child.pid, ServerProcess(Server(child.pid, -1, -1), leads_group=True)


def runs(status: Path) -> bool:
    return status.exists() and ") Z " not in status.read_text()


def is_our_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return False
    return True


@pytest.mark.usefixtures("never_sleeps")
async def test_servers_that_are_killed_together_hold_up_nobody_and_are_reaped() -> None:
    servers = [started() for _ in range(5)]
    before = len(os.listdir("/dev/fd"))
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for _, server in servers:
                tasks.start_soon(server.kill)
            tasks.cancel_scope.cancel()  # it goes on
            for _, server in servers:
                await server.kill()
    assert not any(is_our_child(pid) for pid, _ in servers)
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.usefixtures("never_sleeps")
async def test_whoever_waits_for_a_server_that_is_killed_learns_of_its_end() -> None:
    _, server = started()
    statuses: list[int] = []
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            server.watch(tasks, statuses.append)
            await anyio.wait_all_tasks_blocked()
            await server.kill()
    assert statuses == [-signal.SIGKILL]


@pytest.mark.usefixtures("never_sleeps")
async def test_a_server_that_has_been_reaped_is_never_signalled_again() -> None:
    pid, server = started("echo; exit 3")
    with anyio.fail_after(TIMEOUT):
        assert await server.wait() == 3
        assert not is_our_child(pid)
        server.signal(signal.SIGTERM)  # its number may be another process's now
        await server.kill()
        assert await server.wait() == 3


async def test_what_a_killed_server_has_started_ends_too(tmp_path: Path) -> None:
    _, server = started(f"sleep 60 & echo $! >'{tmp_path}/child'; echo; exec sleep 60")
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    await server.kill()
    with anyio.fail_after(TIMEOUT):
        while runs(child):
            await anyio.lowlevel.checkpoint()
