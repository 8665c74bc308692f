"""`hookproxy reload`: a gateway's configuration changes without a signal, and the caller reads what has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hookproxy.gateway import preamble
from tests.support.gateway_process import HOOKPROXY, GatewayProcess

pytestmark = pytest.mark.slow

SERVER: Final = '[servers.cat]\ncommand = ["cat"]\n'


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    one = GatewayProcess(tmp_path, f'socket_mode = "0666"\n{SERVER}')
    yield one
    one.kill()


def reload(gateway: GatewayProcess, *before: str) -> subprocess.CompletedProcess[str]:
    command = [*before, HOOKPROXY, "reload", "--socket", str(gateway.socket)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_caller_reads_that_a_changed_policy_is_in_force_and_a_broken_one_is_refused(
    gateway: GatewayProcess,
) -> None:
    ended = reload(gateway)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("is in force as before\n")
    gateway.write(f'socket_mode = "0666"\n[permissions]\ndeny = ["x"]\n{SERVER}')
    ended = reload(gateway)
    assert ended.returncode == 0
    assert ended.stdout.endswith("is in force\n")
    assert all(line in gateway.log for line in ended.stdout.splitlines())
    gateway.write("nonsense = [")
    ended = reload(gateway)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "error: the policy stays" in ended.stderr
    assert str(gateway.path) in ended.stderr
    assert gateway.log.count("the policy stays") == 1
    assert "refused" not in gateway.log


def test_the_log_says_where_the_gateway_listens(gateway: GatewayProcess) -> None:
    assert f"listens at unix:{gateway.socket}\n" in gateway.log


def test_the_caller_reads_what_will_not_work_under_the_new_policy(gateway: GatewayProcess) -> None:
    gateway.write('socket_mode = "0666"\n[servers.a]\ncommand = ["/no/such-program"]')
    ended = reload(gateway)
    assert ended.returncode == 0
    assert "servers.a.command: there is no program /no/such-program (" in ended.stdout


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can try it as another account")
def test_another_account_may_not_reload(gateway: GatewayProcess) -> None:
    for folder in (gateway.folder, *gateway.folder.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    connection = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
    says = "s.sendall(b'hookproxy 1\\nreload\\n\\n'); print(s.recv(2000).decode())"
    command = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", connection + says]
    ended = subprocess.run([*command, str(gateway.socket)], capture_output=True, text=True, timeout=60, check=False)
    assert (
        "error only root, the account of the gateway and its operators may reload it\task one of them" in ended.stdout
    )
    assert "in force" not in gateway.log


def test_without_a_gateway_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    command = [HOOKPROXY, "reload", "--socket", str(tmp_path / "gone.sock")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "hookproxy serve --config FILE" in ended.stderr


@pytest.mark.parametrize(
    "text", [b"reload\nserver x", b"server x\nreload", b"reload now", b"reload\npipes", b"server ", b"reload\nreload"]
)
def test_a_reload_stands_alone(text: bytes) -> None:
    assert preamble.read(b"hookproxy 1\nreload\n\n").server == ""
    with pytest.raises(preamble.NotAPreamble):
        preamble.read(b"hookproxy 1\n" + text + b"\n\n")
