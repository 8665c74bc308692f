"""How a run ends: with the server's own status, whoever ends first; `end/test_lifecycle.py` has the rest."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from hookproxy.audit.log import Audit
from hookproxy.dialects.dialect import Group
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.processes import ending, process
from hookproxy.session import lifecycle
from hookproxy.session.lifecycle import Lifecycle
from hookproxy.session.proxy import Proxy
from hookproxy.session.server_end import ServerProcess
from hookproxy.transports.pipe import open_channel
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, TIMEOUT, Peer, group, hook

pytestmark = pytest.mark.anyio

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger","arguments":{}}}\n'
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def reaped(pid: int) -> bool:
    """No child of ours has this number any more, not even one that has ended."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


class Run:
    """A run over a real server; the test is the agent."""

    def __init__(self, script: str, groups: Sequence[Group]) -> None:
        self.server = process.start_server(["/bin/sh", "-c", script])
        self.agent = Peer()
        self.response: list[str] = []
        self.status: int | None = None
        self.over = anyio.Event()
        settings = Settings()
        self.proxy = Proxy(
            open_channel(self.agent.theirs_in, self.agent.theirs_out),
            open_channel(self.server.from_server, self.server.to_server),
            Hooks(groups, settings, SESSION.server, os.environ),
            settings,
            SESSION,
            Audit(settings),
            self.response.append,
        )

    async def run(self) -> None:
        self.status = await Lifecycle(self.proxy, ServerProcess(self.server)).run_to_end()
        self.over.set()

    async def ended(self) -> int:
        """The status, once the run is over by itself; nothing is left of the server then."""
        with anyio.fail_after(TIMEOUT):
            await self.over.wait()
        assert reaped(self.server.pid)
        assert self.status is not None
        return self.status


@asynccontextmanager
async def run(script: str, *groups: Group) -> AsyncIterator[Run]:
    one = Run(script, groups)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.run)
            yield one
            tasks.cancel_scope.cancel()
    finally:
        one.agent.close()


@pytest.mark.parametrize("first", ["server", "agent"])
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + signal.SIGTERM),
        ("kill -KILL $$", 128 + signal.SIGKILL),
        ("kill -40 $$", 128 + 40),
        (f"kill -{signal.SIGRTMAX} $$", 128 + signal.SIGRTMAX),
    ],
)
async def test_a_run_ends_with_the_status_of_its_server(end: str, status: int, first: str) -> None:
    async with run(end if first == "server" else f"while read line; do :; done; {end}") as one:
        if first == "agent":
            one.agent.stop_writing()
        assert await one.ended() == status
        assert await one.agent.rest() == b""


async def test_the_servers_last_output_still_reaches_the_agent() -> None:
    async with run('while read line; do echo "$line"; done; echo \'{"last":1}\'; exit 3') as one:
        await one.agent.send(PING)
        assert await one.agent.line() == PING
        one.agent.stop_writing()
        assert await one.agent.rest() == b'{"last":1}\n'
        assert await one.ended() == 3


INITIALIZE = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}\n'
DISCOVER = INITIALIZE.replace(b"initialize", b"server/discover")


@pytest.mark.parametrize("opening", [INITIALIZE, DISCOVER])
@pytest.mark.parametrize("hooks", [(), (group(hook("exit 0")),)])
@pytest.mark.parametrize("first", ["", "echo 'no key is set';"])
async def test_an_agent_learns_how_a_server_ended_that_never_answered(
    opening: bytes, hooks: tuple[Group, ...], first: str
) -> None:
    async with run(f"read line; {first} exit 3", *hooks) as one:
        await one.agent.send(opening)
        error = json.loads(await one.agent.rest())
        assert error["id"] == 7
        assert error["error"]["message"].startswith("The MCP server has ended (exited with status 3).")
        assert await one.ended() == 3


@pytest.mark.parametrize("opening", [INITIALIZE, DISCOVER])
async def test_once_it_has_answered_the_agent_sees_the_end_of_its_output_alone(opening: bytes) -> None:
    answer = '{"jsonrpc":"2.0","id":7,"result":{}}'
    async with run(f"read line; echo '{answer}'; read line; exit 3") as one:
        await one.agent.send(opening)
        assert await one.agent.line() == f"{answer}\n".encode()
        await one.agent.send(PING)
        assert await one.agent.rest() == b""


async def test_an_agent_that_ends_first_gets_what_the_server_alone_would_say() -> None:
    async with run("while read line; do :; done") as one:
        await one.agent.send(INITIALIZE)
        one.agent.stop_writing()
        assert await one.agent.rest() == b""


async def test_a_forwarded_call_gets_an_error_that_says_how_the_server_ended() -> None:
    async with run("read line; kill -40 $$", group(hook("exit 0"))) as one:
        await one.agent.send(CALL)
        message = await one.agent.message()
        assert message["id"] == 7
        assert "signal 40" in str(message)
        assert await one.ended() == 168


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_is_passed_on_and_we_end_as_the_server_does(number: signal.Signals) -> None:
    async with run('read line; echo "$line"; exec sleep 60') as one:
        await one.agent.send(PING)
        assert await one.agent.line() == PING
        os.kill(os.getpid(), number)
        assert await one.ended() == 128 + number


async def test_after_a_signal_that_the_server_handles_we_exit_with_its_status() -> None:
    async with run("trap 'exit 9' TERM; read line; echo \"$line\"; while read line; do :; done; sleep 60") as one:
        await one.agent.send(PING)
        assert await one.agent.line() == PING
        os.kill(os.getpid(), signal.SIGTERM)
        assert await one.ended() == 9


async def test_a_server_that_does_not_exit_gets_sigterm_and_then_sigkill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "EXIT_SECONDS", 0.1)
    monkeypatch.setattr(ending, "TERM_SECONDS", 0.1)
    async with run("trap '' TERM; echo '{}'; while :; do read line || sleep 0.02; done") as one:
        assert await one.agent.line() == b"{}\n"
        one.agent.stop_writing()
        assert await one.ended() == 128 + signal.SIGKILL


@pytest.mark.slow  # it waits for a deadline
async def test_session_end_hooks_run_once_and_share_a_time_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lifecycle, "SESSION_END_HOOKS_SECONDS", 1.0)
    recorded = tmp_path / "recorded"
    groups = group(hook(f"echo end >> {recorded}; sleep 60", Event.SESSION_END), hook("exit 0"))
    async with run("while read line; do :; done", groups) as one:
        await one.agent.send(CALL.replace(b"tools/call", b"initialize").replace(b'"name"', b'"x"'))
        begun = time.monotonic()
        one.agent.stop_writing()
        assert await one.ended() == 0
        assert time.monotonic() - begun < 30  # the hook takes sixty
    assert recorded.read_text() == "end\n"


async def test_a_run_that_is_cancelled_leaves_no_server() -> None:
    async with run("echo '{}'; exec sleep 60") as one:
        assert await one.agent.line() == b"{}\n"
    assert one.status is None
    assert reaped(one.server.pid)
