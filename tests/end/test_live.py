"""Approvals on a console end to end: a real agent waits, the real `hookproxy run` asks, real consoles answer."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from hookproxy.console.follow import Follower
from hookproxy.console.state import ShownApproval
from hookproxy.live import messages, registry
from tests.end.agent import HOOKPROXY, PATIENCE, SERVER
from tests.support.free_ports import free_port
from tests.support.gateway_process import GatewayProcess
from tests.support.webhook_receiver import SECRET, receiver, send

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NOBODY: Final = 65_534
TOML: Final = """\
on_ask_fallback = "console"

[permissions]
ask = ["echo"]

[audit]
file = "audit.jsonl"
arguments = "full"
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Person:
    """The one at the machine, with a console."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.reports: list[str] = []
        self.console = Follower(self.folder, self.reports.append)

    async def approval(self) -> ShownApproval:
        """The approval that waits."""
        await self.until(lambda: bool(self.console.state.approvals))
        (waiting,) = self.console.state.approvals.values()
        return waiting

    async def until(self, condition: Callable[[], bool]) -> None:
        changed = anyio.Event()
        end = self.console.state.listen(lambda: changed.set() if condition() else None)
        with anyio.fail_after(PATIENCE):
            if not condition():
                await changed.wait()
        end()

    async def say(self, waiting: ShownApproval, action: messages.Action, reason: str = "") -> messages.AnswerTaken:
        return await self.console.answer(waiting.run, waiting.approval.id, action, reason, "a fake console")


@asynccontextmanager
async def agent(folder: Path, home: Path, person: Person) -> AsyncIterator[Client]:
    """A real agent behind hookproxy, and the person's console."""
    (folder / "hookproxy.toml").write_text(TOML)
    command = ["run", "--config", "hookproxy.toml", "--name", "files", "--", *SERVER]
    async with connected(command, folder, environment(folder, home), person) as client:
        yield client


@asynccontextmanager
async def connected(command: list[str], folder: Path, environ: dict[str, str], person: Person) -> AsyncIterator[Client]:
    """A real agent that starts this verb, and the person's console."""
    parameters = StdioServerParameters(command=HOOKPROXY, args=command, cwd=str(folder), env=environ)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(person.console.follow)
        with anyio.fail_after(PATIENCE):
            async with Client(stdio_client(parameters)) as client:
                yield client
        tasks.cancel_scope.cancel()


def environment(folder: Path, home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(folder)}


def text(result: object) -> str:
    (content,) = getattr(result, "content", [None])[-1:]
    assert isinstance(content, TextContent)
    return content.text


def audit(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(0o700)
    return folder


async def test_a_real_agent_waits_for_a_person_who_allows_and_denies(runtime: Path, home: Path) -> None:
    person = Person(runtime / "hookproxy")
    async with agent(runtime, home, person) as client, anyio.create_task_group() as tasks:
        results: list[object] = []

        async def call(word: str) -> None:
            results.append(await client.call_tool("echo", {"text": word}))

        tasks.start_soon(call, "one")
        waiting = await person.approval()
        assert (waiting.approval.server, waiting.approval.tool) == ("files", "echo")
        assert json.loads(bytes(waiting.approval.arguments)) == {"text": "one"}
        assert waiting.approval.asked_by
        assert waiting.approval.place.endswith("hookproxy.toml:4: permissions.ask[0]"), waiting.approval.place
        assert (await person.say(waiting, "allow")).accepted
        await person.until(lambda: len(person.console.state.ended) == 1)
        tasks.start_soon(call, "two")
        waiting = await person.approval()
        assert (await person.say(waiting, "deny", "not on a Friday")).accepted
        second = await person.say(waiting, "allow")
        assert not second.accepted
        assert "no longer waits" in second.why
        await person.until(lambda: len(person.console.state.ended) == 2)
    assert [getattr(one, "is_error", None) for one in results] == [False, True]
    assert "not on a Friday" in text(results[1])
    first, denied = audit(runtime)
    assert (first["decision"], denied["decision"]) == ("asked-allow", "asked-deny")
    assert denied["reason"] == "not on a Friday", "what the person has typed"
    who = f"by user {os.geteuid()}, process {os.getpid()}, at a fake console"
    assert (first["answered"], denied["answered"]) == (f"allow {who}", f"deny {who}")
    assert registry.names(person.folder) == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can be another account")
async def test_another_account_can_neither_see_nor_answer(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # the other account could enter all folders above it
        person = Person(Path(name) / "hookproxy")
        async with agent(Path(name), home, person) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {"text": "one"})
            waiting = await person.approval()
            path = Path(person.folder) / f"{waiting.run}.sock"
            assert b"PermissionError" in (await as_nobody(path)).stderr
            for one in (Path(name), Path(person.folder), path):  # as if all had been opened by mistake
                one.chmod(0o777)
            ended = await as_nobody(path)
            assert ended.stdout == b"b''\n", ended.stderr
            os.chmod(person.folder, 0o700)
            assert (await person.say(waiting, "allow")).accepted


async def as_nobody(path: Path) -> subprocess.CompletedProcess[bytes]:
    """Connect as another account, and print what comes."""
    script = """
import socket, sys
with socket.socket(socket.AF_UNIX) as one:
    one.settimeout(30)
    one.connect(sys.argv[1])
    print(one.recv(10))
"""
    account = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
    return await anyio.run_process([*account, sys.executable, "-S", "-E", "-c", script, str(path)], check=False)


async def test_a_killed_run_is_forgotten_and_its_socket_is_removed_by_the_next_one(runtime: Path, home: Path) -> None:
    folder = str(runtime / "hookproxy")
    command = [HOOKPROXY, "run", "--", *SERVER]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=runtime, env=environment(runtime, home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    with start() as killed:
        await until(lambda: listens(folder, killed.pid))
        killed.send_signal(signal.SIGKILL)
        killed.wait(PATIENCE)
        assert len(registry.names(folder)) == 1
        with start() as other:
            await until(lambda: listens(folder, other.pid))
            await until(lambda: len(registry.names(folder)) == 1)
            other.communicate(timeout=PATIENCE)
        assert registry.names(folder) == []


async def test_the_account_of_a_gateway_sees_all_sessions_and_answers_for_them(tmp_path: Path, home: Path) -> None:
    tools = f'[servers.tools]\ncommand = {json.dumps(SERVER)}\non_ask_fallback = "console"\n'
    config = f'{tools}[permissions]\nask = ["echo"]\n'
    gateway = GatewayProcess(tmp_path, config)
    person = Person(tmp_path / ".local/state/hookproxy/runs")
    environ = {**os.environ, "HOME": str(home)}
    try:
        connect = ["connect", "tools", "--socket", str(gateway.socket)]
        async with connected(connect, tmp_path, environ, person) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {"text": "one"})
            waiting = await person.approval()
            (run,) = person.console.state.runs.values()
            assert run.run.command == ("hookproxy", "serve")
            assert run.sessions[waiting.approval.session].user == pwd.getpwuid(os.geteuid()).pw_name
            assert (await person.say(waiting, "allow")).accepted
            await person.until(lambda: len(person.console.state.ended) == 1)
            gateway.reload(f"{config}# changed\n")
            tasks.start_soon(client.call_tool, "echo", {"text": "two"})
            assert (await person.say(await person.approval(), "allow")).accepted
            await person.until(lambda: len(person.console.state.ended) == 2)
            assert person.console.state.counts.calls == 2
        assert gateway.end() == 0
        assert registry.names(person.folder) == []
    finally:
        gateway.kill()


def listens(folder: str, pid: int) -> bool:
    return any(name.startswith(f"{pid}-") for name in registry.names(folder))


async def until(condition: Callable[[], bool]) -> None:
    """Look until it is so: a folder calls nobody."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_webhook_answers_for_two_servers_of_an_agent_at_one_port(runtime: Path, home: Path) -> None:
    with receiver() as service:
        (runtime / "hookproxy.toml").write_text(
            f'{TOML.replace("console", "deny", 1)}[approvals.webhook]\nurl = "{service.url}"\n'
            f'secret = "env:APPROVAL_SECRET"\nlisten = "127.0.0.1:{free_port()}"\n'
        )
        environ = {**environment(runtime, home), "APPROVAL_SECRET": SECRET.decode()}
        run = ["run", "--config", "hookproxy.toml", "--name"]
        servers = [
            StdioServerParameters(command=HOOKPROXY, args=[*run, name, "--", *SERVER], cwd=str(runtime), env=environ)
            for name in ("files", "mail")
        ]
        results: dict[str, object] = {}
        with anyio.fail_after(PATIENCE):
            async with (
                Client(stdio_client(servers[0])) as files,
                Client(stdio_client(servers[1])) as mail,
                anyio.create_task_group() as tasks,
            ):

                async def call(name: str, client: Client) -> None:
                    results[name] = await client.call_tool("echo", {"text": "all"})

                tasks.start_soon(call, "files", files)
                tasks.start_soon(call, "mail", mail)
                for _ in range(2):
                    posted = await anyio.to_thread.run_sync(service.message)
                    changed = {"decision": "allow", "arguments": {"text": posted["server"]}}
                    answer = partial(send, posted["answer_url"], changed)
                    assert (await anyio.to_thread.run_sync(answer))[0] == 200
    for name, result in results.items():
        output, told = (content.text for content in getattr(result, "content", ()))
        assert json.loads(output) == {"text": name}
        assert told.startswith("The user has changed the arguments of this call")
    records = audit(runtime)
    assert [record["edited"] for record in records] == [True, True]
    assert {str(record["answered_by"]).partition(" http")[0] for record in records} == {"the webhook"}
