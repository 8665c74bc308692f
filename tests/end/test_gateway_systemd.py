"""The gateway as a service of `Type=notify`: what systemd hears of it, in the order in which it happens."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.end.agent import HOOKPROXY
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

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
        assert b"gateway.listen[0]: nonsense is no address" in done.stderr
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.recv(4096)
