"""What is written down of connections over a Unix socket that are refused."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskGroup

from hookproxy.config.gateway import load_gateway
from hookproxy.gateway import preamble
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.refusal_log import SECONDS, RefusalLog
from hookproxy.gateway.servers import Servers
from hookproxy.gateway.unix_connections import Reloaded, accept_connections
from hookproxy.transports import unix_socket

pytestmark = pytest.mark.anyio

CONFIG = """
[servers.git]
command = ["cat"]
allow = []
[servers.mail]
command = ["cat"]
allow = []
"""


class Listening:
    """A gateway that listens, and what it reports."""

    def __init__(self, folder: Path) -> None:
        (folder / "gateway.toml").write_text(CONFIG)
        config, report = load_gateway("gateway.toml", {}, str(folder)), GatewayLog(as_json=False)
        self.gateway = Gateway(config, Servers(cast("TaskGroup", None), report), report)
        self.reports: list[str] = []
        self.now = 100.0
        self.refusals = RefusalLog(self.reports.append, lambda: self.now)
        self.path = str(folder / "mcp.sock")

    async def reload(self) -> Reloaded:
        raise AssertionError("nobody may reload")

    def _answer(self, server: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(self.path)
            connection.sendall(preamble.VERSION + f"\nserver {server}\n\n".encode())
            return connection.recv(4096)

    async def connect(self, *servers: str) -> None:
        for server in servers:
            answer = await anyio.to_thread.run_sync(self._answer, server)
            assert answer != preamble.OK


@asynccontextmanager
async def listening(folder: Path) -> AsyncIterator[Listening]:
    rig = Listening(folder)
    listener = unix_socket.listen(rig.path, 0o600, None)
    listener.setblocking(False)
    with listener:
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()
            tasks.start_soon(
                accept_connections, listener, rig.gateway, rig.reports.append, rig.refusals, rig.reload, scope
            )
            yield rig
            tasks.cancel_scope.cancel()


async def test_of_the_refusals_of_an_account_for_a_reason_one_is_in_the_log_and_the_others_are_counted(
    tmp_path: Path,
) -> None:
    async with listening(tmp_path) as rig:
        await rig.connect(*["git"] * 5)
        assert len(rig.reports) == 1
        assert "to git was refused: there is no server git for" in rig.reports[0]
        rig.now += SECONDS
        rig.refusals.report_counts()
        assert rig.reports[1] == f"{rig.reports[0]} (4 more times in 10 seconds)"
        await rig.connect("git")
        assert rig.reports[2] == rig.reports[0]


async def test_other_servers_are_other_reasons_and_names_that_agents_make_up_are_not(tmp_path: Path) -> None:
    async with listening(tmp_path) as rig:
        await rig.connect("git", "mail", *(f"x{number}" for number in range(20)))
        assert [text.split(" to ")[1].split()[0] for text in rig.reports] == ["git", "mail", "x0"]


async def test_each_account_has_its_own_lines() -> None:
    reports: list[str] = []
    refusals = RefusalLog(reports.append)
    for uid in ("1000", "1001", "1000"):
        refusals.note(uid, "Not Found git", f"{uid} was refused")
    assert reports == ["1000 was refused", "1001 was refused"]
