"""The gateway on its Unix socket: real agents by way of `hookproxy connect`, real servers, hooks and signals."""

from __future__ import annotations

import ctypes
import grp
import json
import os
import pwd
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import pytest

from hookproxy.cli.connect import WITHOUT_REASON
from tests.end.agent import (
    HOOKPROXY,
    SERVER,
    Agent,
    Scene,
    call,
    ends,
    group,
    marked,
    refused,
    request,
    specific,
    text_of,
)
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

SECRET = "sekret-4711-value"  # looked for in every output
HOOK_SECRET = "of-the-gateway-itself"


def table(name: str, *more: str, command: tuple[str, ...] = SERVER) -> str:
    return "\n".join((f"[servers.{name}]", f"command = {json.dumps(command)}", *more, ""))


def hooks_file(folder: Path, **events: str) -> str:
    path = folder / f"hooks{len(list(folder.glob('hooks*')))}.json"
    path.write_text(json.dumps({"hooks": {event: [group(command)] for event, command in events.items()}}))
    path.chmod(0o644)
    return str(path)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("gateway")
    yield from _gateway(folder, full_config(folder))


def _gateway(folder: Path, config: str) -> Iterator[GatewayProcess]:
    (folder / "secret").write_text(SECRET + "\n")
    gateway = GatewayProcess(folder, config, env={"TOKEN": HOOK_SECRET})
    try:
        yield gateway
        assert gateway.end() in (0, -signal.SIGKILL)  # a test may have killed it
    finally:
        gateway.kill()
    assert not [line for line in gateway.log.splitlines() if "Traceback" in line and "the server says" not in line]


@pytest.fixture
def own_gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway that a test may signal, with a server `tools`."""
    folder = tmp_path / "gateway"  # its processes have another mark than those of the scene
    folder.mkdir()
    yield from _gateway(folder, f"{AUDIT}\n{table('tools')}")


AUDIT = '[audit]\nfile = "audit.jsonl"\ncalls = "all"\n'
LOUD = ("/bin/sh", "-c", r"printf 'hookproxy: forged\nx\rhookproxy: forged\033[2K\xe2\x80\xa8z\n' >&2; exec cat")


def full_config(folder: Path) -> str:
    """Servers, a hook that records what it gets, and rules."""
    script = folder / "record"
    script.write_text(f"#!/bin/sh\ncat >>'{folder}/documents'\nenv >>'{folder}/environments'\n")
    script.chmod(0o755)
    return f"""
[audit]
file = "audit.jsonl"
calls = "all"
[permissions]
deny = ["forbidden"]
{table("tools", 'credentials = { TOKEN = "file:secret" }', f'env = {{ E2E_ORPHAN = "{folder}" }}')}
[[servers.tools.use]]
file = "{hooks_file(folder, PreToolUse=str(script))}"
{table("closed", 'allow = ["nobody-at-all", "@no-such-group"]')}
{table("loud", command=LOUD)}
[servers.mine]
from_caller = true
"""


def connect(scene: Scene, gateway: GatewayProcess, name: str = "tools", *more: str) -> Agent:
    return scene.start([HOOKPROXY, "connect", name, "--socket", str(gateway.socket), *more])


async def test_a_call_reaches_the_server(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    assert json.loads(text_of(await agent.ask(call(1, "echo", a=1)))) == {"a": 1}
    agent.end_input()
    assert await agent.ended() == 0


def content(path: str) -> str:
    return Path(path).read_text()


@pytest.mark.parametrize(
    ("name", "options"), [("tools", ()), ("mine", ("--from-caller",))], ids=["of the gateway", "from the caller"]
)
async def test_an_entry_that_wrap_writes_reaches_the_server(
    gateway: GatewayProcess, scene: Scene, name: str, options: tuple[str, ...]
) -> None:
    before = json.dumps({"mcpServers": {name: {"command": SERVER[0], "args": SERVER[1:], "env": {"MINE": "yes"}}}})
    file = scene.file("mcp.json", before)
    wrapping = [HOOKPROXY, "wrap", file, "--gateway", f"unix:{gateway.socket}", *options]
    assert scene.complete(wrapping).returncode == 0
    entry = json.loads(content(file))["mcpServers"][name]
    agent = scene.start([entry["command"], *entry["args"]], entry["env"])
    await agent.initialize()
    assert json.loads(text_of(await agent.ask(call(1, "echo", a=1)))) == {"a": 1}
    assert "forbidden" in refused(await agent.ask(call(2, "forbidden")))
    agent.end_input()
    assert await agent.ended() == 0
    assert scene.complete([HOOKPROXY, "unwrap", file]).returncode == 0
    assert content(file) == before


async def test_a_rule_denies_and_the_server_gets_nothing(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    assert "forbidden" in refused(await agent.ask(call(1, "forbidden", marker="never-arrives")))
    agent.end_input()
    assert await agent.ended() == 0
    assert not [one for one in gateway.audit() if one["tool"] == "forbidden" and one["decision"] != "deny"]


async def test_hooks_rewrite_comment_and_see_failures(own_gateway: GatewayProcess, scene: Scene) -> None:
    folder = own_gateway.folder
    rewrite = scene.prints(
        specific(
            "PreToolUse",
            permissionDecision="allow",
            updatedInput={"a": "rewritten", "error": {"code": -1, "message": "no"}},
        )
    )
    comment = scene.prints(specific("PostToolUse", additionalContext="mind the gap"))
    failed = f"echo failed >>'{folder}/failures'"
    events = {"PreToolUse": rewrite, "PostToolUse": comment, "PostToolUseFailure": failed}
    own_gateway.reload(f'[[use]]\nfile = "{hooks_file(folder, **events)}"\n{AUDIT}\n{table("tools")}')
    agent = connect(scene, own_gateway)
    await agent.initialize()
    text = text_of(await agent.ask(call(1, "echo", a="original")))
    assert "rewritten" in text
    assert "original" not in text
    assert "mind the gap" in text
    await agent.ask(call(2, "error", error={"code": -1, "message": "no"}))
    agent.end_input()
    assert await agent.ended() == 0
    assert own_gateway.audit()[0]["decision"] == "allow"


async def test_hooks_get_the_user_in_their_document_and_environment(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    await agent.ask(call(1, "echo", unique="document-of-user"))
    documents = map(json.loads, (gateway.folder / "documents").read_text().splitlines())
    [document] = [one for one in documents if one["tool_input"] == {"unique": "document-of-user"}]
    name = pwd.getpwuid(os.getuid()).pw_name
    assert document["user"] == name
    assert document["groups"][0] == grp.getgrgid(os.getgid()).gr_name
    environment = (gateway.folder / "environments").read_text().splitlines()
    assert f"HOOKPROXY_USER={name}" in environment


async def test_audit_records_name_the_user_the_account_and_the_policy(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    await agent.ask(call(1, "echo", unique="audited"))
    agent.end_input()
    assert await agent.ended() == 0
    record = gateway.audit()[-1]
    name = pwd.getpwuid(os.getuid()).pw_name
    assert record["user"] == name
    assert record["user_id"] == f"uid:{os.getuid()}"
    assert record["account"] == name
    assert f"under policy {record['policy'][:12]}" in gateway.log


async def test_a_server_that_may_not_be_used_is_as_one_that_is_not_there(gateway: GatewayProcess, scene: Scene) -> None:
    texts = []
    for name in ("closed", "absent"):
        agent = connect(scene, gateway, name)
        assert await agent.ended() == 2
        texts.append(agent.standard_error().replace(name, "NAME"))
    assert texts[0] == texts[1]
    assert "there is no server NAME" in texts[0]


async def test_a_server_that_dies_ends_its_session_and_the_next_one_works(
    gateway: GatewayProcess, scene: Scene
) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    answer = await agent.ask(call(1, "quit", status=3))
    assert "exited with status 3" in json.dumps(answer)
    assert await agent.ended() == 1
    assert agent.standard_error() == "hookproxy: The MCP server has ended (exited with status 3)\n"
    gateway.logged(": The MCP server has ended (exited with status 3)")
    after = connect(scene, gateway)
    await after.initialize()
    assert text_of(await after.ask(call(1, "echo"))) == "{}"


async def test_a_server_that_leaves_without_an_error_is_named_too(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    await agent.send(call(1, "quit", status=0))
    assert await agent.ended() == 1
    assert agent.standard_error() == "hookproxy: The MCP server has ended (exited with status 0)\n"
    gateway.logged(": The MCP server has ended (exited with status 0)")


@pytest.mark.parametrize("judged", [True, False])
@pytest.mark.parametrize("raw_id", [7, "seven", 'a"\\\u2028'])
async def test_every_request_that_is_open_when_the_server_dies_gets_an_error(
    own_gateway: GatewayProcess, scene: Scene, raw_id: object, judged: bool
) -> None:
    rules = 'permissions = { deny = ["nothing"] }\n' if judged else ""
    own_gateway.reload(table("tools", rules))
    agent = connect(scene, own_gateway)
    await agent.initialize()
    await agent.send({**call(0, "quit", status=4), "id": raw_id})
    answer = json.loads(await agent.line())
    assert answer["id"] == raw_id
    assert "The MCP server has ended (exited with status 4)" in answer["error"]["message"]
    assert "there is no response" in answer["error"]["message"]
    assert await agent.line() == b""
    assert await agent.ended() == 1


async def test_that_feedback_may_be_invisible_is_said_once_for_each_tool_and_not_in_each_session(
    own_gateway: GatewayProcess, scene: Scene
) -> None:
    comment = scene.prints(specific("PostToolUse", additionalContext="mind the gap"))
    hooks = hooks_file(own_gateway.folder, PostToolUse=comment)
    own_gateway.reload(f'[[use]]\nfile = "{hooks}"\n{table("tools")}')
    result = {"content": [{"type": "text", "text": "1"}], "structuredContent": {"n": 1}}
    for _ in range(3):
        agent = connect(scene, own_gateway)
        await agent.initialize()
        for number, tool in enumerate(("closed", "open"), 1):
            assert "mind the gap" in json.dumps(await agent.ask(call(number, tool, result=result)))
        agent.end_input()
        assert await agent.ended() == 0
    for tool in ("closed", "open"):
        assert own_gateway.log.count(f"{tool}: feedback may be invisible") == 1


async def test_a_session_that_ends_with_the_gateway_says_so(own_gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, own_gateway)
    await agent.initialize()
    own_gateway.process.terminate()
    assert await agent.ended() == 1
    assert agent.standard_error() == "hookproxy: the gateway is ending\n"
    assert own_gateway.process.wait(30) == 0


async def test_a_client_that_vanishes_takes_its_server_along(gateway: GatewayProcess, scene: Scene) -> None:
    first = connect(scene, gateway)  # what the gateway makes for its first session and its first hook stays
    await first.initialize()
    await first.ask(call(1, "echo"))
    first.end_input()
    await first.ended()
    before = gateway.settled_descriptors
    agent = connect(scene, gateway)
    await agent.initialize()
    server = gateway.server_pid((await agent.ask(request(1, "process")))["result"]["pid"])
    await agent.send(call(2, "hold"))
    await agent.notified("notifications/holding")
    agent.signal(signal.SIGKILL)
    await ends(server)
    gateway.settles_at(before)


async def test_what_a_server_has_started_ends_with_its_session(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    server = gateway.server_pid((await agent.ask(request(1, "process")))["result"]["pid"])
    await agent.send(call(2, "orphan", status=0))
    await ends(server)
    assert await agent.ended() == 1
    for pid, command in marked(f"E2E_ORPHAN={gateway.folder}").items():
        if "tool_server" in command:  # those of earlier tests may be ending still
            await ends(pid)


async def test_nothing_is_left_after_kill_9_of_the_gateway(own_gateway: GatewayProcess, scene: Scene) -> None:
    gate = scene.gate("hook")
    hooks = hooks_file(own_gateway.folder, PreToolUse=gate.script)
    own_gateway.reload(f'[[use]]\nfile = "{hooks}"\n{table("tools")}')
    agent = connect(scene, own_gateway)
    await agent.initialize()
    server = own_gateway.server_pid((await agent.ask(request(1, "process")))["result"]["pid"])
    await agent.send(call(2, "echo"))
    hook = int(await gate.reached())
    await agent.ask(request(3, "process"))  # the hook may be here before the gateway has noted that it has started it
    own_gateway.kill()
    await ends(server, 5)
    await ends(hook, 5)
    assert await agent.ended() == 1
    assert agent.standard_error() == f"hookproxy: {WITHOUT_REASON}\n"


async def test_sigterm_lets_a_call_in_flight_end(own_gateway: GatewayProcess, scene: Scene) -> None:
    (own_gateway.folder / "gates").mkdir()
    go_on = scene.gate("go_on", own_gateway.folder / "gates")
    sandbox = f'sandbox = {{ write = ["{own_gateway.folder}/gates"] }}'
    own_gateway.reload(f"{AUDIT}\n{table('tools', sandbox)}")
    agent = connect(scene, own_gateway)
    await agent.initialize()
    await agent.send(call(1, "deaf", say=go_on.arrival, listen=go_on.way))
    await agent.notified("notifications/deaf")
    own_gateway.process.terminate()
    own_gateway.logged("is ending")
    late = connect(scene, own_gateway)
    assert await late.ended() == 2
    assert "the gateway is ending" in late.standard_error()
    go_on.open()
    assert text_of(await agent.answer(1)) == "listening again"
    assert own_gateway.process.wait(30) == 0
    assert [one["tool"] for one in own_gateway.audit()] == ["deaf"]


async def test_a_second_sigterm_ends_at_once(own_gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, own_gateway)
    await agent.initialize()
    server = own_gateway.server_pid((await agent.ask(request(0, "process")))["result"]["pid"])
    await agent.send(call(1, "hold"))
    await agent.notified("notifications/holding")
    own_gateway.process.terminate()
    own_gateway.logged("is ending")
    own_gateway.process.terminate()
    assert own_gateway.process.wait(30) == 0
    await ends(server, 2)
    assert await agent.ended() == 1
    assert agent.standard_error() == f"hookproxy: {WITHOUT_REASON}\n"


# --- SIGHUP ---


async def test_a_changed_rule_holds_for_new_calls_of_an_open_session(own_gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, own_gateway)
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    own_gateway.reload(f'{AUDIT}[permissions]\ndeny = ["echo"]\n{table("tools")}')
    assert "echo" in refused(await agent.ask(call(2, "echo")))
    own_gateway.reload(f"{AUDIT}\n{table('tools')}")
    assert text_of(await agent.ask(call(3, "echo"))) == "{}"
    agent.end_input()
    assert await agent.ended() == 0
    first, second, third = (one["policy"] for one in own_gateway.audit())
    assert first == third != second


async def test_a_call_in_flight_ends_under_the_policy_that_it_began_with(
    own_gateway: GatewayProcess, scene: Scene
) -> None:
    gate = scene.gate("hook")
    first = hooks_file(own_gateway.folder, PreToolUse=gate.script)
    own_gateway.reload(f'{AUDIT}\n[[use]]\nfile = "{first}"\n{table("tools")}')
    agent = connect(scene, own_gateway)
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    own_gateway.reload(f'{AUDIT}[permissions]\ndeny = ["echo"]\n{table("tools")}')
    refused(await agent.ask(call(2, "echo")))
    gate.open()
    assert text_of(await agent.answer(1)) == "{}"
    agent.end_input()
    assert await agent.ended() == 0
    policies = {one["decision"]: one["policy"] for one in own_gateway.audit()}
    assert len(own_gateway.audit()) == 2
    assert len(set(policies.values())) == 2


@pytest.mark.parametrize(
    "config",
    [
        "not toml",
        "unknown = 1",
        "",
        "[permissions]\ndeny = ['(']\n" + table("tools"),
        table("tools") + "[[servers.tools.use]]\nfile = '/no/such/file'\n",
    ],
)
async def test_an_unreadable_file_is_refused_and_the_old_policy_stays(
    own_gateway: GatewayProcess, scene: Scene, config: str
) -> None:
    agent = connect(scene, own_gateway)
    await agent.initialize()
    assert str(own_gateway.path) in own_gateway.reload(config, "the policy stays")
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "binary", "deep"])
async def test_a_file_of_any_kind_is_refused_and_the_old_policy_stays(
    own_gateway: GatewayProcess, scene: Scene, kind: str
) -> None:
    agent = connect(scene, own_gateway)
    await agent.initialize()
    path = own_gateway.path
    if kind in ("binary", "deep"):
        path.write_bytes(b"\xff\0" if kind == "binary" else b"x = " + b"[" * 100_000)
    else:
        path.unlink()
    if kind == "folder":
        path.mkdir()
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    before = len(own_gateway.log)
    own_gateway.process.send_signal(signal.SIGHUP)
    own_gateway.logged("the policy stays", before)
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"


async def test_a_file_that_others_may_write_is_refused_at_a_reload(own_gateway: GatewayProcess) -> None:
    own_gateway.path.chmod(0o666)
    before = len(own_gateway.log)
    own_gateway.process.send_signal(signal.SIGHUP)
    assert "writable by others" in own_gateway.logged("the policy stays", before)[before:]


async def test_a_session_whose_user_may_no_longer_use_the_server_ends(
    own_gateway: GatewayProcess, scene: Scene
) -> None:
    agent = connect(scene, own_gateway)
    await agent.initialize()
    own_gateway.reload(table("tools", 'allow = ["somebody-else"]'))
    assert await agent.ended() == 1
    reason = "the session ends, because the new policy has another server in its place, or none"
    assert agent.standard_error() == f"hookproxy: {reason}\n"
    assert reason in own_gateway.log
    assert await connect(scene, own_gateway).ended() == 2


async def test_judged_calls_of_a_user_in_flight_are_bounded_over_all_sessions(
    own_gateway: GatewayProcess, scene: Scene
) -> None:
    gate = scene.gate("hook")
    hooks = hooks_file(own_gateway.folder, PreToolUse=gate.script)
    own_gateway.reload(f'max_requests = 2\n{AUDIT}\n[[use]]\nfile = "{hooks}"\n{table("tools")}')
    agents = [connect(scene, own_gateway) for _ in range(2)]
    for agent in agents:
        await agent.initialize()
        await agent.send(call(1, "echo"))
        await gate.reached()
    for agent in agents:
        response = await agent.ask(call(2, "echo"))
        assert "2 calls of this user are in flight" in response["error"]["message"]
        assert "pid" in (await agent.ask(request(3, "process")))["result"]
    gate.open()
    gate.open()
    for agent in agents:
        assert text_of(await agent.answer(1)) == "{}"
    gate.open()
    assert text_of(await agents[0].ask(call(4, "echo"))) == "{}"


def test_without_descriptors_agents_are_refused_in_words_and_an_administrator_is_served(
    own_gateway: GatewayProcess,
) -> None:
    limits = resource.prlimit(own_gateway.pid, resource.RLIMIT_NOFILE)
    used = [int(one.name) for one in Path(f"/proc/{own_gateway.pid}/fd").iterdir()]
    lowest_free = min(set(range(len(used) + 1)) - set(used))
    resource.prlimit(own_gateway.pid, resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    problem = "a connection cannot be accepted: Too many open files\n"
    for _ in range(3):
        with own_gateway.open(b"hookproxy 1\nserver tools\n\n") as agent:
            agent.settimeout(30)
            assert b"the gateway has no descriptors left" in agent.recv(4096)
    reload = [HOOKPROXY, "reload", "--socket", str(own_gateway.socket)]
    assert "is in force as before" in subprocess.run(reload, capture_output=True, text=True, timeout=30).stdout
    assert own_gateway.log.count(problem) == 1
    resource.prlimit(own_gateway.pid, resource.RLIMIT_NOFILE, limits)
    with own_gateway.open(b"hookproxy 1\nserver nonsense\n\n") as agent:
        assert b"there is no server nonsense" in agent.recv(4096)
    own_gateway.logged("connections are accepted again\n")
    assert own_gateway.log.count("connections are accepted again\n") == 1


# --- what connects ---


@pytest.mark.parametrize(
    "preamble",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"hookproxy 2\nserver tools\n\n",
        b"hookproxy 1\n\n",
        b"hookproxy 1\nserver\n\n",
        b"hookproxy 1\nserver tools\nserver closed\n\n",
        b"hookproxy 1\nserver tools\nuid 0\n\n",
        b"hookproxy 1\nserver \xff\n\n",
        b"hookproxy 1\nserver tools\r\n\n",
        b"hookproxy 1\nserver ../tools\n\n",
        b"hookproxy 1\n" + b"x" * 20_000,
        b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n',
    ],
)
def test_what_is_no_preamble_is_refused_in_one_line(gateway: GatewayProcess, preamble: bytes) -> None:
    before = gateway.descriptors
    with gateway.open(preamble) as connection:
        assert connection.recv(4096).startswith(b"error ")
        with suppress(ConnectionResetError):  # it has not read everything
            assert connection.recv(4096) == b""
    gateway.settles_at(before)


def test_a_connection_that_ends_before_its_preamble_leaves_nothing(gateway: GatewayProcess) -> None:
    before = gateway.descriptors
    for preamble in (b"", b"hookproxy 1\nser"):
        gateway.open(preamble).close()
    gateway.settles_at(before)


def test_a_slow_preamble_is_waited_for_without_work(gateway: GatewayProcess) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(gateway.open(b"hookproxy 1\nser")) for _ in range(20)]
        before = gateway.cpu_ticks
        time.sleep(1)
        assert gateway.cpu_ticks - before < os.sysconf("SC_CLK_TCK") / 4
        for connection in connections:
            connection.sendall(b"ver absent\n\n")
            assert connection.recv(4096).startswith(b"error there is no server absent")


async def test_what_follows_a_preamble_in_the_same_piece_is_the_agents(gateway: GatewayProcess) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    with gateway.open(b"hookproxy 1\nserver tools\n\n" + ping) as connection:
        received = b""
        while received.count(b"\n") < 2:
            received += connection.recv(4096)
    assert received.startswith(b"ok\n")
    assert json.loads(received[3:])["id"] == 1


def test_connections_without_a_preamble_are_limited(gateway: GatewayProcess) -> None:
    before = gateway.descriptors
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(gateway.open(b""))
        last = stack.enter_context(gateway.open(b"hookproxy 1\nserver absent\n\n"))
        assert b"too many connections" in last.recv(4096)
    gateway.settles_at(before)
    with gateway.open(b"hookproxy 1\nserver absent\n\n") as connection:
        assert b"there is no server" in connection.recv(4096)


async def test_a_slow_reader_holds_up_nobody(gateway: GatewayProcess, scene: Scene) -> None:
    slow = connect(scene, gateway)
    await slow.initialize()
    for number in range(8):
        await slow.send(call(number, "big", size=4_000_000))
    other = connect(scene, gateway)
    await other.initialize()
    with anyio.fail_after(30):
        for number in range(50):
            await other.ask(call(number, "echo"))
    for number in range(8):
        assert len(text_of(await slow.answer(number))) == 4_000_000


def test_what_one_user_does_not_read_from_a_shared_server_takes_no_more_than_allowed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    table = f'[servers.tools]\ncommand = {json.dumps(SERVER)}\nshare = "all"\n'
    gateway = GatewayProcess(tmp_path, f"max_unread_bytes = {1024 * 1024}\n{table}")
    try:
        with ExitStack() as stack:
            slow = []
            for _ in range(6):
                connection = stack.enter_context(gateway.open(b"hookproxy 1\nserver tools\n\n"))
                slow.append(connection.makefile("rwb"))
                assert slow[-1].readline() == b"ok\n"
                params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
                slow[-1].write(json.dumps({**call(0, "x"), "method": "initialize", "params": params}).encode() + b"\n")
                slow[-1].flush()
                assert b'"result"' in slow[-1].readline()
            for one in slow:
                one.write(json.dumps(call(1, "big", size=4_000_000)).encode() + b"\n")
                one.flush()
            begun = [one.read(1) for one in slow]
            assert begun == [b"{"] * 6
            responses = [one.readline() for one in slow]
        withheld = [one for one in responses if b"the response is withheld" in one]
        assert 0 < len(withheld) < 6
        assert all(len(one) > 4_000_000 for one in responses if one not in withheld)
        assert "max_unread_bytes" in gateway.log
    finally:
        gateway.kill()


# --- the log, and secrets ---


async def test_a_server_cannot_forge_lines_of_the_log(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway, "loud")
    gateway.logged("z\n")
    agent.end_input()
    await agent.ended()
    log = gateway.log
    assert not [line for line in log.splitlines() if line.startswith("hookproxy: forged")]
    assert not set("\r\x1b\u2028") & set(log)


async def test_a_client_cannot_forge_lines_of_the_log(gateway: GatewayProcess) -> None:
    for name in (b"x\rhookproxy: forged", b"x\x1b[2K", "\u2028hookproxy: forged".encode()):
        with gateway.open(b"hookproxy 1\nserver " + name + b"\n\n") as connection:
            assert connection.recv(4096).startswith(b"error ")
        with gateway.open(b"hookproxy 1\n" + name + b" x\n\n") as connection:
            assert connection.recv(4096).startswith(b"error ")
    assert not set("\r\x1b\u2028") & set(gateway.log)


async def test_secrets_reach_the_server_and_nothing_else(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway)
    await agent.initialize()
    process = (await agent.ask(request(1, "process")))["result"]
    assert process["env"]["TOKEN"] == SECRET
    own = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_CTYPE", "PWD"}
    assert set(process["env"]) <= {"TOKEN", "E2E_ORPHAN", *own}
    assert SECRET not in json.dumps(process["argv"])
    await agent.ask(call(2, "echo", text=f"the agent says {SECRET}"))
    await agent.ask(call(3, "stderr", text=SECRET))
    agent.end_input()
    assert await agent.ended() == 0
    assert SECRET not in (gateway.folder / "audit.jsonl").read_text()
    environments = (gateway.folder / "environments").read_text()
    for secret in (SECRET, HOOK_SECRET):
        assert secret not in environments
        assert secret not in gateway.log


@pytest.mark.parametrize("output", [1, 2])
@pytest.mark.parametrize("share", ["session", "all"])
async def test_a_secret_that_a_server_prints_is_not_in_the_log(
    own_gateway: GatewayProcess, scene: Scene, output: int, share: str
) -> None:
    shell = ("/bin/sh", "-c", f'echo "my token is $TOKEN." >&{output}; exec cat')
    credentials = 'credentials = { TOKEN = "file:secret" }'
    own_gateway.reload(table("loud", credentials, f'share = "{share}"', command=shell))
    agent = connect(scene, own_gateway, "loud")
    log = own_gateway.logged("is not JSON" if output == 1 else "my token is")
    agent.end_input()
    await agent.ended()
    assert SECRET not in log


async def test_a_secret_is_not_in_the_log_where_it_cuts_a_long_line(own_gateway: GatewayProcess, scene: Scene) -> None:
    shell = ("/bin/sh", "-c", 'printf "%1990s%s.\\n" x "$TOKEN"; exec cat')
    own_gateway.reload(table("loud", 'credentials = { TOKEN = "file:secret" }', command=shell))
    agent = connect(scene, own_gateway, "loud")
    log = own_gateway.logged("a line that is not JSON")
    agent.end_input()
    await agent.ended()
    assert SECRET[:8] not in log


async def test_the_log_says_how_a_server_ended_that_failed(own_gateway: GatewayProcess, scene: Scene) -> None:
    shell = ("/bin/sh", "-c", "echo the licence has expired >&2; exit 3")
    own_gateway.reload(table("broken", command=shell))
    agent = connect(scene, own_gateway, "broken")
    await agent.ended()
    log = own_gateway.logged("has ended (exited with status 3)")
    assert "the server says: the licence has expired" in log


async def test_the_log_says_whose_connection_was_refused_at_which_server(
    own_gateway: GatewayProcess, scene: Scene
) -> None:
    own_gateway.reload(table("locked", 'credentials = { TOKEN = "file:/no/secret" }'))
    agent = connect(scene, own_gateway, "locked")
    await agent.ended()
    user = pwd.getpwuid(os.geteuid()).pw_name
    own_gateway.logged(f"a connection of {user} to locked was refused: the credential TOKEN cannot be read")


# --- servers that the user starts ---


async def test_a_server_of_the_user_is_judged_like_any_other(gateway: GatewayProcess, scene: Scene) -> None:
    before = gateway.descriptors
    agent = connect(scene, gateway, "mine", "--", *SERVER)
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert "forbidden" in refused(await agent.ask(call(2, "forbidden")))
    server = (await agent.ask(request(3, "process")))["result"]
    assert server["cwd"] == str(scene.folder)
    assert not [one for one in server["env"] if one in ("TOKEN", "PLAIN")]
    agent.end_input()
    assert await agent.ended() == 0
    await ends(server["pid"])
    gateway.settles_at(before)


async def test_a_server_of_the_user_ends_with_the_session_and_the_session_with_it(
    gateway: GatewayProcess, scene: Scene
) -> None:
    agent = connect(scene, gateway, "mine", "--", *SERVER)
    await agent.initialize()
    answer = await agent.ask(call(1, "quit", status=3))
    assert "The MCP server has ended" in json.dumps(answer)
    assert await agent.ended() == 1
    agent = connect(scene, gateway, "mine", "--", *SERVER)
    await agent.initialize()
    server = (await agent.ask(request(3, "process")))["result"]["pid"]
    agent.signal(signal.SIGKILL)
    await ends(server)


HOLDS_ITS_INPUT = """
import ctypes, fcntl, struct, sys
system = ctypes.CDLL(None, use_errno=True)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
system.read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
faults = system.syscall(int(sys.argv[1]), 0)
page = system.mmap(None, 4096, 3, 0x22, -1, 0)
fcntl.ioctl(faults, 0xC018AA3F, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
fcntl.ioctl(faults, 0xC020AA00, bytearray(struct.pack("QQQQ", page, 4096, 1, 0)))
system.read(0, page, 4096)
"""
"""A server that begins to read into memory that it never provides: meanwhile the kernel holds a lock of the pipe."""

USERFAULTFD = {"x86_64": 323, "aarch64": 282}.get(os.uname().machine, -1)
"""The number of the system call; other machines have none here."""


async def test_a_server_of_the_user_cannot_hold_up_the_gateway(own_gateway: GatewayProcess, scene: Scene) -> None:
    if (descriptor := ctypes.CDLL(None).syscall(USERFAULTFD, 0)) < 0:
        pytest.skip("this account may not handle faults of the kernel")
    os.close(descriptor)
    own_gateway.reload(f"{table('tools')}[servers.mine]\nfrom_caller = true\n")
    hostile = connect(scene, own_gateway, "mine", "--", sys.executable, "-c", HOLDS_ITS_INPUT, str(USERFAULTFD))
    other = connect(scene, own_gateway)
    await other.initialize()
    for number in range(20):
        await hostile.send(request(number, "ping"))
        await other.ask(call(number, "echo"))
        await anyio.sleep(0.02)  # nothing shows from outside that the server has begun to read
    hostile.signal(signal.SIGTERM)
    await hostile.ended()


async def test_the_ends_that_a_server_of_the_user_gets_share_no_lock_with_ours(
    gateway: GatewayProcess, scene: Scene
) -> None:
    script = "test -S /dev/stdin && test -S /dev/stdout && exec cat"
    agent = connect(scene, gateway, "mine", "--", "/bin/sh", "-c", script)
    await agent.send(request(1, "ping"))
    assert (await agent.message())["method"] == "ping"
    agent.end_input()
    assert await agent.ended() == 0


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("mine", (), "the server mine runs as the user"),
        ("tools", ("--", "/bin/cat"), "is started by the gateway"),
        ("mine", ("--", "/no/such/program"), "cannot start the server /no/such/program"),
    ],
)
async def test_the_command_and_the_kind_of_server_must_fit(
    gateway: GatewayProcess, scene: Scene, name: str, more: tuple[str, ...], said: str
) -> None:
    before = gateway.descriptors
    agent = connect(scene, gateway, name, *more)
    assert await agent.ended() in (2, 127)
    assert said in agent.standard_error()
    gateway.settles_at(before)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/etc/passwd", "/proc/self/mem", "/tmp"])
@pytest.mark.parametrize("count", [1, 2, 3, 200])
def test_descriptors_of_a_caller_are_never_taken(gateway: GatewayProcess, path: str, count: int) -> None:
    before = gateway.descriptors
    opened = os.open(path, os.O_RDONLY)
    try:
        for preamble in (b"hookproxy 1\nserver mine\n\n", b"hookproxy 1\nserver mine\npipes\n\n"):
            with gateway.open(b"") as connection:
                socket.send_fds(connection, [preamble[:1]], [opened] * count)
                socket.send_fds(connection, [preamble[1:]], [opened] * count)
                assert connection.recv(4096).split()[0] in (b"ok", b"error")
                assert not [one for one in os.listdir(f"/proc/{gateway.pid}/fd") if is_at(gateway.pid, one, path)] or (
                    path == "/dev/null"
                )
    finally:
        os.close(opened)
    gateway.settles_at(before)


def is_at(pid: int, descriptor: str, path: str) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/{descriptor}") == path
    return False


def test_a_caller_cannot_make_the_gateway_wait_for_its_pipes(gateway: GatewayProcess) -> None:
    before = gateway.descriptors
    with gateway.open(b"hookproxy 1\nserver mine\npipes\n\n") as connection:
        reply, descriptors, _, _ = socket.recv_fds(connection, 4096, 3)
        assert reply == b"ok\n"
        for one in descriptors:
            os.set_blocking(one, True)
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 900_000 + b'"}}\n'
        with suppress(TimeoutError):
            connection.settimeout(0.5)
            connection.sendall(ping)  # nobody reads it at the other end
        with gateway.open(b"hookproxy 1\nserver absent\n\n") as other:
            assert other.recv(4096).startswith(b"error")
        for one in descriptors:
            os.close(one)
    gateway.settles_at(before)


@pytest.mark.parametrize("share", ["session", "user", "all"])
async def test_sigterm_ends_the_gateway_and_every_server(own_gateway: GatewayProcess, scene: Scene, share: str) -> None:
    own_gateway.reload(table("tools", f'share = "{share}"'))
    agent = connect(scene, own_gateway)
    await agent.initialize()
    server = own_gateway.server_pid((await agent.ask(request(1, "process")))["result"]["pid"])
    own_gateway.process.terminate()
    assert own_gateway.process.wait(30) == 0
    await ends(server, 1)
    assert await agent.ended() == 1


# --- several sessions ---


async def test_a_rate_limit_counts_a_user_over_all_sessions_and_policies(
    own_gateway: GatewayProcess, scene: Scene
) -> None:
    limits = '[[limits]]\ntool = "*"\ncalls = 3\nper = "hour"\n'
    own_gateway.reload(limits + table("tools") + table("others"))
    first, second = connect(scene, own_gateway), connect(scene, own_gateway)
    for agent in (first, second):
        await agent.initialize()
    assert text_of(await first.ask(call(1, "echo"))) == "{}"
    assert text_of(await second.ask(call(1, "echo"))) == "{}"
    own_gateway.reload(limits + AUDIT + table("tools") + table("others"))
    assert text_of(await first.ask(call(2, "echo"))) == "{}"
    refused(await second.ask(call(2, "echo")))
    third = connect(scene, own_gateway)
    await third.initialize()
    refused(await third.ask(call(1, "echo")))
    other = connect(scene, own_gateway, "others")
    await other.initialize()
    assert text_of(await other.ask(call(1, "echo"))) == "{}"


async def test_the_audit_of_several_sessions_is_one_chain(own_gateway: GatewayProcess, scene: Scene) -> None:
    own_gateway.reload(f"{AUDIT}chain = true\n{table('tools')}")
    agents = [connect(scene, own_gateway) for _ in range(4)]
    for agent in agents:
        await agent.initialize()
    for number in range(10):
        for agent in agents:
            await agent.send(call(number, "echo"))
    for number in range(10):
        for agent in agents:
            assert text_of(await agent.answer(number)) == "{}"
    for agent in agents:
        agent.end_input()
        assert await agent.ended() == 0
    assert len(own_gateway.audit()) == 40
    done = scene.complete([HOOKPROXY, "audit", "verify", str(own_gateway.folder / "audit.jsonl")])
    assert done.returncode == 0, done
