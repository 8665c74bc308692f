"""The gateway as a service of `Type=notify`: what systemd hears of it, in the order in which it happens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end.agent import HOOKPROXY
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

AS_SYSTEMD = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
    "os.execv(sys.argv[2], sys.argv[2:])"
)
"""Starts a program with one socket that listens already."""

SHOWS_ITS_ENVIRONMENT = "env >&2; exec cat"


def systemd(folder: Path) -> socket.socket:
    """What listens as systemd does."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(f"{folder}/notify")
    listener.settimeout(30)
    return listener


def config(script: str) -> str:
    return f'[servers.a]\ncommand = ["/bin/sh", "-c", "{script}"]\n'


def test_systemd_hears_when_it_listens_reloads_and_ends(tmp_path: Path) -> None:
    with systemd(tmp_path) as listener:
        gateway = GatewayProcess(tmp_path, config(SHOWS_ITS_ENVIRONMENT), env={"NOTIFY_SOCKET": f"{tmp_path}/notify"})
        try:
            assert listener.recv(4096).startswith(b"READY=1\nSTATUS=serves a under policy ")
            with gateway.open(b"hookproxy 1\nserver a\n\n") as agent:  # at once
                assert agent.recv(3) == b"ok\n"
                gateway.logged("the server says: PATH=")
            gateway.reload(config("exec cat") + '[servers.b]\ncommand = ["cat"]\n')
            assert listener.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert listener.recv(4096).startswith(b"READY=1\nSTATUS=serves a, b under policy ")
            gateway.reload("nonsense", "the policy stays")
            assert listener.recv(4096).startswith(b"RELOADING=1")
            assert listener.recv(4096).startswith(b"READY=1\nSTATUS=serves a, b under policy ")
            assert gateway.end() == 0
            assert listener.recv(4096) == b"STOPPING=1"
            assert "NOTIFY_SOCKET" not in gateway.log
        finally:
            gateway.kill()


def test_systemd_does_not_hear_that_it_is_ready_where_the_file_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text('[gateway]\nlisten = ["nonsense"]\n[servers.a]\ncommand = ["cat"]\n')
    with systemd(tmp_path) as listener:
        done = subprocess.run(
            [HOOKPROXY, "serve", "--config", str(tmp_path / "gateway.toml")],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NOTIFY_SOCKET": f"{tmp_path}/notify"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert b"gateway.listen[0]: nonsense is not an address" in done.stderr
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.recv(4096)


def test_who_connects_to_the_socket_of_systemd_while_the_gateway_ends_reaches_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(config("exec cat"))

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", AS_SYSTEMD, str(listening.fileno())]
        command += [HOOKPROXY, "serve", "--config", str(tmp_path / "gateway.toml")]
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NOTIFY_SOCKET": f"{tmp_path}/notify"}
        return subprocess.Popen(command, env=env, stderr=log, pass_fds=(listening.fileno(),))

    def connect() -> socket.socket:
        agent = socket.socket(socket.AF_UNIX)
        agent.settimeout(30)
        agent.connect(f"{tmp_path}/mcp.sock")
        agent.sendall(b"hookproxy 1\nserver a\n\n")
        return agent

    with (
        systemd(tmp_path) as listener,
        socket.socket(socket.AF_UNIX) as listening,
        (tmp_path / "gateway.log").open("wb") as log,
    ):
        listening.bind(f"{tmp_path}/mcp.sock")
        listening.listen()
        gateways = [start()]
        try:
            assert listener.recv(4096).startswith(b"READY=1")
            with connect() as first:
                assert first.recv(3) == b"ok\n"
                gateways[0].terminate()
                assert listener.recv(4096) == b"STOPPING=1"
                with connect() as second:
                    assert gateways[0].wait(30) == 0
                    gateways.append(start())
                    assert second.recv(3) == b"ok\n"
        finally:
            for one in gateways:
                one.terminate()
                one.wait(30)
