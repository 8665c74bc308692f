"""Servers that take too much, and what is left of them when the gateway is killed: real gateways, real processes."""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from hookproxy.processes.confined import Confinement, start_once
from hookproxy.sandbox.system_calls import _program
from tests.end.test_sandbox import PROBE, Session, folder_outside_of_tmp, usable
from tests.support.gateway_process import HOOKPROXY, GatewayProcess

pytestmark = pytest.mark.slow

FORKS = """
import os, time
reached, children = 0, []
for _ in range(300):
    pid = os.fork()
    if pid == 0:
        time.sleep(60); os._exit(0)
    children.append(pid)
time.sleep(20)
reached = children
"""
SHARED_MEMORY = """
import mmap, time
memory = mmap.mmap(-1, 400 << 20)
for at in range(0, 400 << 20, 4096): memory[at] = 1
time.sleep(20); reached = True
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def gateway(request: pytest.FixtureRequest) -> Iterator[GatewayProcess]:
    kind = usable(request.param)
    with ExitStack() as stack:
        folder = folder_outside_of_tmp(stack)
        shutil.copy(PROBE, folder / "probe.py")
        command = json.dumps([sys.executable, "-S", "-E", "probe.py"])
        gateway = GatewayProcess(
            folder,
            f"""
sandbox = "{kind}"
[servers.probe]
command = {command}
sandbox = {{ memory = "200MiB", processes = 100 }}
""",
            env={"XDG_STATE_HOME": str(folder / "state")},
        )
        stack.callback(gateway.kill)
        yield gateway


def ended_by_limit(gateway: GatewayProcess, code: str, said: str) -> bool:
    """Whether the server was refused more, or the gateway has ended it and said so; and goes on itself."""
    session = Session(gateway, "probe")
    answer = ""
    with suppress(OSError, ValueError, KeyError):
        answer = session.call("python", code)
    session.close()
    refused = answer.startswith("refused: ")
    if not refused:
        gateway.logged(said)
    again = Session(gateway, "probe")
    assert again.call("shell", "echo well").strip() == "well"
    again.close()
    return refused or answer == ""


def test_a_fork_bomb_ends_with_its_server(gateway: GatewayProcess) -> None:
    assert ended_by_limit(gateway, FORKS, "sandbox.processes")


def test_memory_that_processes_share_counts(gateway: GatewayProcess) -> None:
    assert ended_by_limit(gateway, SHARED_MEMORY, "sandbox.memory")


def test_memory_of_one_process_is_refused(gateway: GatewayProcess) -> None:
    session = Session(gateway, "probe")
    assert session.call("python", "reached = bytearray(300 << 20)").startswith("refused: MemoryError")
    session.close()


def test_nothing_is_kept_for_servers_that_have_ended(gateway: GatewayProcess) -> None:
    def threads() -> int:
        return len(os.listdir(f"/proc/{gateway.pid}/task"))

    for number in range(4):
        session = Session(gateway, "probe")
        assert session.call("shell", "touch f && chmod 700 f && stat -c %a f") == "700\n"
        session.close()
        if number == 0:
            settled = gateway.settled_descriptors
            kept = threads()
    gateway.settles_at(settled)
    assert threads() <= kept + 1  # one that is just ending


def processes_with(word: bytes) -> list[int]:
    """The processes in whose command line this stands."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if word in Path("/proc", name, "cmdline").read_bytes():
                found.append(int(name))
    return found


def test_nothing_of_a_server_outlives_a_gateway_that_is_killed(gateway: GatewayProcess) -> None:
    session = Session(gateway, "probe")
    seconds = f"3{gateway.pid:09}"  # nobody else sleeps so long
    assert session.call("shell", f"sleep {seconds} >/dev/null 2>&1 & echo started") == "started\n"
    ours = processes_with(str(gateway.folder).encode() + b"/probe.py")
    left = processes_with(seconds.encode())
    assert ours
    assert left
    ours += left
    ends = [os.pidfd_open(pid) for pid in ours]
    os.kill(gateway.pid, signal.SIGKILL)
    try:
        for end in ends:
            assert select.select([end], [], [], 20)[0], "a process lives on"
    finally:
        for end in ends:
            os.close(end)
        session.close()


def test_a_gateway_without_any_sandbox_does_not_start(tmp_path: Path) -> None:
    mount, create_ruleset = {"x86_64": (165, 444), "aarch64": (40, 444)}[os.uname().machine]
    without = _program(
        {"ioctl": 0xFFFFFF, "mount": mount, "landlock": create_ruleset},
        os.uname().machine,
        ("mount", "landlock"),
        (),
        (),
    )
    assert struct.calcsize("=HBBI") * 4 < len(without)
    (tmp_path / "gateway.toml").write_text('[servers.s]\ncommand = ["/bin/cat"]\n')
    command = [HOOKPROXY, "serve", "--config", str(tmp_path / "gateway.toml")]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    process = start_once(
        Confinement(filter=without, drops_capabilities=False),
        lambda: subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True),
    )
    with process:
        _, said = process.communicate(timeout=60)
    assert process.returncode not in (0, -signal.SIGSYS)
    assert "there is no sandbox for the server s" in said
    assert 'sandbox = "off"' in said
    assert os.strerror(errno.EPERM) in said or "not installed" in said
