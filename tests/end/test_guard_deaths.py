"""A guard, agents, their runs and servers that are killed in any order leave nothing behind."""

from __future__ import annotations

import os
import random
import select
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from hookproxy.live import registry
from tests.support.guard_desk import Desk
from tests.support.guarded_agent import GuardedAgent


@pytest.fixture
def tmp_path(short_path: Path) -> Path:
    """Home folders are in it, and the guard's socket is in these."""
    return short_path


def processes_of(home: Path) -> list[int]:
    """The processes of this account: whatever is started there has its home folder in its environment."""
    mark, found = b"HOME=" + os.fsencode(home), []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def kill(pid: int) -> None:
    """Kill it, and wait until it has ended."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            assert select.select([descriptor], [], [], 30)[0]
        finally:
            os.close(descriptor)


@pytest.mark.parametrize("seed", range(4))
def test_twenty_processes_that_are_killed_in_any_order_leave_nothing_behind(tmp_path: Path, seed: int) -> None:
    desk = Desk(tmp_path)
    desk.configure('[permissions]\nask = ["reply"]\n[[limits]]\ntool = "*"\ncalls = 100\nper = "hour"\n')
    agents = [GuardedAgent(desk, f"s{number}") for number in range(3)]
    try:
        for number, agent in enumerate(agents):
            agent.event("PreToolUse", "Bash", {"command": "ls"}, "t0")
            for server in ("a", "b", "c")[: 3 - number // 2]:
                agent.start(server)
                agent.event("PreToolUse", f"mcp__{server}__echo", {"n": 1}, "t1")
                agent.call(server, "echo", {"n": 1}, "t1")
        doomed = processes_of(tmp_path)
        assert len(doomed) >= 20
        random.Random(seed).shuffle(doomed)
        for pid in doomed:
            kill(pid)
    finally:
        for agent in agents:
            agent.process.kill()
            agent.process.wait(30)
            for pipe in (agent.process.stdin, agent.process.stdout):
                with suppress(BrokenPipeError):
                    assert pipe
                    pipe.close()
    for pid in processes_of(
        tmp_path
    ):  # guardians of those that were killed: they end what is left, and then themselves
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 30)[0], Path(f"/proc/{pid}/cmdline").read_bytes()
        os.close(descriptor)
    desk.configure("[guard]\nidle_seconds = 0.1\n")
    last = GuardedAgent(desk)
    last.event("PreToolUse", "Bash", {"command": "ls"}, "t2")
    last.close()
    for pid in processes_of(tmp_path):
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 30)[0]
        os.close(descriptor)
    runs = str(tmp_path / ".local" / "state" / "hookproxy" / "runs")
    assert {registry.connect(runs, name) for name in registry.names(runs)} <= {None}
    assert registry.names(runs) == [], "whoever looks for runs removes what is left of those that were killed"
    assert [path for path in desk.socket.parent.iterdir() if path.name != "labels"] == []
