"""Processes that sessions share: what happens when one dies again and again, and when nobody uses it any more."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec import structs

from hookproxy.config.gateway import load_gateway
from hookproxy.gateway import servers as gateway_servers
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.servers import Servers
from hookproxy.model.errors import UserError
from hookproxy.model.principal import Principal
from hookproxy.session.server_end import ServerEnd
from hookproxy.transports.channel import Channel

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ALICE, BOB = (Principal(f"token:{name}", name, ()) for name in ("alice", "bob"))
WHOLE_SECONDS = 60


class Rig:
    """Servers of a configuration, whose processes write a line to `starts` when they start."""

    def __init__(self, folder: Path, script: str, more: str, servers: Servers, reports: list[str]) -> None:
        (folder / "shared").mkdir()
        self.starts_path = folder / "shared" / "starts"
        self.reports = reports
        command = json.dumps(["/bin/sh", "-c", f"echo start >>'{self.starts_path}'; {script}"])
        (folder / "gateway.toml").write_text(f"[servers.s]\ncommand = {command}\nsandbox.write = ['shared']\n{more}")
        config = load_gateway("gateway.toml", {}, str(folder))
        self.gateway = Gateway(config, servers, GatewayLog(as_json=False))

    @property
    def starts(self) -> int:
        return self.starts_path.read_text().count("start") if self.starts_path.exists() else 0

    def open(self, user: Principal = ALICE) -> tuple[Channel, anyio.Event]:
        """A channel to the server for a new session, and what is set when its input has ended."""
        session = self.gateway.admit(user, "s")
        self.gateway.forget(session)  # the limits of sessions are tested elsewhere
        channel, _ = self.gateway.servers.open(session, session.server.loaded.settings)
        ended = anyio.Event()
        channel.start(lambda _piece: None, ended.set, lambda _full: None, lambda: None)
        return channel, ended

    def open_own(self, tasks: TaskGroup, *, is_stateless: bool) -> tuple[ServerEnd, anyio.Event]:
        """A process for a new session, and what is set when it has ended."""
        session = self.gateway.admit(ALICE, "s", is_stateless=is_stateless)
        _, process = self.gateway.servers.open(session, session.server.loaded.settings)
        ended = anyio.Event()
        process.watch(tasks, lambda _status: ended.set())
        return process, ended

    async def open_again(self) -> tuple[Channel, anyio.Event]:
        """Try to open a channel until the pause is over."""
        while True:
            try:
                return self.open()
            except UserError:
                await anyio.sleep(0.001)

    async def reported(self, text: str, times: int = 1) -> None:
        while sum(text in one for one in self.reports) < times:  # noqa: ASYNC110  # reports have no event
            await anyio.sleep(0.001)


@asynccontextmanager
async def rig_of(folder: Path, script: str, more: str) -> AsyncIterator[Rig]:
    reports: list[str] = []
    with anyio.fail_after(WHOLE_SECONDS):
        async with anyio.create_task_group() as tasks:
            yield Rig(folder, script, more, Servers(tasks, reports.append), reports)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("share", ["user", "all"])
async def test_a_server_that_dies_again_and_again_is_started_after_longer_and_longer_pauses(
    tmp_path: Path, share: str
) -> None:
    async with rig_of(tmp_path, "exit 1", f'share = "{share}"\n') as rig:
        _, ended = rig.open()
        await ended.wait()
        await rig.reported("has ended by itself")
        for _ in range(10):  # calls that come meanwhile start nothing
            with pytest.raises(UserError, match="has ended 1 time in a row") as caught:
                rig.open()
        assert "it is started again in" in (caught.value.hint or "")
        assert rig.starts == 1
        pauses = [until - anyio.current_time() for _, until in rig.gateway.servers._failures.values()]
        assert 0 < max(pauses) <= 1
        await rig.open_again()
        await rig.reported("has ended by itself", 2)
        with pytest.raises(UserError, match="has ended 2 times in a row"):
            rig.open()
        assert rig.starts == 2


async def test_after_a_repair_a_server_works_and_its_failures_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_servers, "_LONGEST_PAUSE", 0.001)
    script = f"test -e '{tmp_path}/shared/repaired' || exit 1; exec cat"
    async with rig_of(tmp_path, script, 'share = "all"\nidle_seconds = 1\n') as rig:
        for times in range(1, 4):
            _, ended = await rig.open_again()
            await ended.wait()
            await rig.reported("has ended by itself", times)
        (tmp_path / "shared" / "repaired").touch()
        channel, ended = await rig.open_again()
        assert not ended.is_set()
        channel.close()
        while rig.gateway.servers._shared:  # noqa: ASYNC110  # until it was unused for a second
            await anyio.sleep(0.001)
        assert not rig.gateway.servers._failures


async def test_the_end_of_a_server_that_has_worked_for_long_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_servers, "_QUICK_SECONDS", 0.0)
    async with rig_of(tmp_path, "exit 1", 'share = "user"\n') as rig:
        for user in (ALICE, BOB):
            _, ended = rig.open(user)
            await ended.wait()
        await rig.reported("has ended by itself", 2)
        assert not rig.gateway.servers._failures


async def test_users_do_not_wait_for_the_failures_of_others(tmp_path: Path) -> None:
    async with rig_of(tmp_path, "exit 1", 'share = "user"\n') as rig:
        _, ended = rig.open(ALICE)
        await ended.wait()
        await rig.reported("has ended by itself")
        rig.open(BOB)


async def test_a_process_that_no_session_uses_is_ended_after_its_time(tmp_path: Path) -> None:
    async with rig_of(tmp_path, "echo $$ >pid; exec cat", 'share = "all"\nidle_seconds = 1\n') as rig:
        first, _ = rig.open(ALICE)
        second, _ = rig.open(BOB)
        (process,) = rig.gateway.servers._shared.values()
        first.close()
        second.close()
        again, _ = rig.open(BOB)  # the process that still runs
        assert list(rig.gateway.servers._shared.values()) == [process]
        again.close()
        while rig.gateway.servers._shared:  # noqa: ASYNC110  # its end has no event here
            await anyio.sleep(0.001)
        assert process.has_ended
        assert not process.ended_by_itself
        assert rig.starts == 1
        assert not rig.gateway.servers._failures


@pytest.mark.parametrize("is_stateless", [True, False])
async def test_requests_that_stand_alone_do_not_start_a_process_each_time_it_dies(
    tmp_path: Path, is_stateless: bool
) -> None:
    async with rig_of(tmp_path, "exit 1", "") as rig, anyio.create_task_group() as tasks:
        _, ended = rig.open_own(tasks, is_stateless=is_stateless)
        await ended.wait()
        if is_stateless:
            with pytest.raises(UserError, match="has ended 1 time in a row"):
                rig.open_own(tasks, is_stateless=True)
        else:  # who opens a session has asked for a process
            _, ended = rig.open_own(tasks, is_stateless=False)
            await ended.wait()
            assert rig.starts == 2


async def test_a_process_of_requests_that_stand_alone_that_we_end_has_not_failed(tmp_path: Path) -> None:
    async with rig_of(tmp_path, "exec cat", "") as rig, anyio.create_task_group() as tasks:
        for number in range(2):
            process, ended = rig.open_own(tasks, is_stateless=True)
            while rig.starts <= number:  # noqa: ASYNC110  # before, no signal but SIGKILL ends it
                await anyio.sleep(0.001)
            process.signal(signal.SIGTERM)
            await ended.wait()
        assert not rig.gateway.servers._failures


def announces(capabilities: str, request: str = "hookproxy") -> str:
    """Shell code that responds to `initialize`."""
    return f"""read x; echo '{{"jsonrpc":"2.0","id":"{request}","result":{{"capabilities":{capabilities}}}}}'"""


LOGGING, TOOLS, NOTHING = map(announces, ('{"logging":{}}', '{"tools":{}}', "[]"))


@pytest.mark.parametrize(
    ("share", "script", "said"),
    [
        ("all", f"echo 'not JSON'; {LOGGING}; cat", "its log messages reach nobody"),
        ("all", announces('{"logging":{},"tasks":{}}'), "its log messages reach nobody and nobody can"),
        ("all", f"{TOOLS}; cat", ""),
        ("all", f"{NOTHING}; cat", ""),
        ("all", """read x; echo '{"jsonrpc":"2.0","id":"hookproxy","error":{"code":1,"message":"no"}}'; cat""", ""),
        ("all", announces('{"logging":{}}', "other"), ""),
        ("all", "exit 1", ""),
        ("all", "head -c 3000000 /dev/zero", ""),
        ("user", announces('{"logging":{}}'), ""),
    ],
)
async def test_what_a_server_for_all_announces_in_vain_is_reported_at_the_start(
    tmp_path: Path, share: str, script: str, said: str
) -> None:
    async with rig_of(tmp_path, script, f'share = "{share}"\n') as rig:
        await rig.gateway.servers.report_sharing(rig.gateway.config.servers.values())
        assert rig.starts == (share == "all")
        assert ("".join(rig.reports) == "") is (said == "")
        assert said in "".join(rig.reports)


async def test_a_server_for_all_that_cannot_be_started_stops_nothing(tmp_path: Path) -> None:
    async with rig_of(tmp_path, "cat", 'share = "all"\ncredentials = { A = "file:gone" }\n') as rig:
        await rig.gateway.servers.report_sharing(rig.gateway.config.servers.values())
        assert not rig.reports


async def test_messages_of_a_server_for_all_that_are_nobodys_are_counted(tmp_path: Path) -> None:
    counted: list[str] = []
    message = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
    async with rig_of(tmp_path, f"read x; echo '{message}'; cat", 'share = "all"\n') as rig:
        rig.gateway.servers.on_dropped = counted.append
        alice, _ = rig.open(ALICE)
        rig.open(BOB)
        alice.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
        while not counted:  # noqa: ASYNC110  # there is no event for it
            await anyio.sleep(0.001)
        assert counted == ["s"]


async def test_after_a_reload_only_a_server_that_starts_differently_is_asked_again(tmp_path: Path) -> None:
    async with rig_of(tmp_path, LOGGING, 'share = "all"\n') as rig:
        servers = rig.gateway.config.servers
        rig.gateway.servers.look_at_sharing(servers, {})
        await rig.reported("its log messages reach nobody")
        rig.gateway.servers.look_at_sharing(servers, servers)
        other = {"s": structs.replace(servers["s"], cwd="/")}
        rig.gateway.servers.look_at_sharing(servers, other)
        await rig.reported("its log messages reach nobody", 2)
        assert rig.starts == 2
