"""The gateway between real accounts: what one user cannot do to another one, to the gateway and to its servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end.agent import HOOKPROXY, Agent, Scene, call, ends, refused, request, text_of
from tests.support.gateway_process import GatewayProcess
from tests.support.managed_folder import ROOT_ONLY, as_user, python_for_user, root_only_folder

pytestmark = [pytest.mark.slow, ROOT_ONLY]

GATEWAY, ALICE, BOB = 61_001, 61_002, 61_003  # ids without an account: the kernel needs none
SECRET = "sekret-of-the-server"
QUIET = {"E2E_LOG": os.devnull}  # for servers that a user starts
TOOLS = Path(__file__).with_name("tool_server.py")


@pytest.fixture(scope="module")
def gateway(nobody: int) -> Iterator[GatewayProcess]:
    """A gateway that runs as an account of its own, in folders that only root can write."""
    assert nobody  # other accounts can start this Python
    folder = root_only_folder()
    state = folder / "state"
    state.mkdir(mode=0o700)
    (folder / "run").mkdir(mode=0o755)
    shutil.copy(TOOLS, folder / "tool_server.py")
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o400)
    for one in (state, secret, folder / "run"):
        os.chown(one, GATEWAY, GATEWAY)
    try:
        gateway = GatewayProcess(folder, config_of(folder), as_user(GATEWAY), at=folder / "run" / "mcp.sock")
        try:
            yield gateway
            assert gateway.end() == 0, gateway.log
        finally:
            gateway.kill()
    finally:
        shutil.rmtree(folder)


def config_of(folder: Path) -> str:
    command = json.dumps([python_for_user(GATEWAY), "-S", "-E", str(folder / "tool_server.py")])
    return f"""
socket_mode = "0666"
[audit]
file = "state/audit.jsonl"
calls = "all"
[[permissions.for]]
users = ["{ALICE}"]
deny = ["forbidden"]
[servers.tools]
command = {command}
credentials = {{ TOKEN = "file:secret" }}
[servers.bobs]
command = {command}
allow = ["{BOB}"]
[servers.shared]
command = {command}
share = "user"
[servers.mine]
from_caller = true
"""


def connect(scene: Scene, gateway: GatewayProcess, user: int, name: str = "tools", *more: str) -> Agent:
    return scene.start([*as_user(user), HOOKPROXY, "connect", name, "--socket", str(gateway.socket), *more], QUIET)


def attempt(user: int, program: str, *arguments: str) -> str:
    """Run Python code as this user; returns what it printed, or the name of the error."""
    code = f"import os, sys\ntry:\n    {program}\nexcept Exception as error:\n    print(type(error).__name__)\n"
    command = [*as_user(user), sys.executable, "-S", "-E", "-c", code, *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=30, check=True).stdout.strip()


async def pid_of_server(agent: Agent, gateway: GatewayProcess) -> int:
    return gateway.server_pid((await agent.ask(request("process", "process")))["result"]["pid"])


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


async def test_each_user_is_known_by_the_kernel(gateway: GatewayProcess, scene: Scene) -> None:
    for user in (ALICE, BOB):
        agent = connect(scene, gateway, user)
        await agent.initialize()
        await agent.ask(call(1, "echo", user=user))
        agent.end_input()
        assert await agent.ended() == 0
    records = gateway.audit("state/audit.jsonl")[-2:]
    assert [one["user_id"] for one in records] == [f"uid:{ALICE}", f"uid:{BOB}"]
    assert [one["user"] for one in records] == [str(ALICE), str(BOB)]


async def test_rules_for_one_user_hold_for_that_user_alone(gateway: GatewayProcess, scene: Scene) -> None:
    alice, bob = connect(scene, gateway, ALICE), connect(scene, gateway, BOB)
    await alice.initialize()
    await bob.initialize()
    assert "forbidden" in refused(await alice.ask(call(1, "forbidden")))
    assert text_of(await bob.ask(call(1, "forbidden"))) == "ran forbidden"


async def test_a_user_does_not_reach_a_server_of_another(gateway: GatewayProcess, scene: Scene) -> None:
    bob = connect(scene, gateway, BOB, "bobs")
    await bob.initialize()
    alice = connect(scene, gateway, ALICE, "bobs")
    assert await alice.ended() == 2
    assert f"there is no server bobs for {ALICE}" in alice.standard_error()


async def test_a_process_that_one_user_shares_is_not_anothers(gateway: GatewayProcess, scene: Scene) -> None:
    pids = []
    for user in (ALICE, ALICE, BOB):
        agent = connect(scene, gateway, user, "shared")
        await agent.initialize()
        pids.append(await pid_of_server(agent, gateway))
    assert pids[0] == pids[1] != pids[2]


async def test_a_user_can_neither_signal_nor_trace_the_gateway_and_its_servers(
    gateway: GatewayProcess, scene: Scene
) -> None:
    agent = connect(scene, gateway, ALICE)
    await agent.initialize()
    server = await pid_of_server(agent, gateway)
    for pid in (gateway.pid, server):
        assert attempt(ALICE, "os.kill(int(sys.argv[1]), 9)", str(pid)) == "PermissionError"
        for name in ("environ", "mem", "maps", "fd/0", "cwd", "stack"):
            opened = attempt(ALICE, "os.open(sys.argv[1], os.O_RDONLY)", f"/proc/{pid}/{name}")
            assert opened == "PermissionError", name
        trace = "import ctypes; libc = ctypes.CDLL(None); print(libc.ptrace(16, int(sys.argv[1]), 0, 0))"
        assert attempt(ALICE, trace, str(pid)) == "-1"
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"


def test_a_user_can_neither_read_nor_change_what_is_the_gateways(gateway: GatewayProcess) -> None:
    folder = gateway.folder
    for path in (folder / "state" / "audit.jsonl", folder / "secret"):
        assert attempt(ALICE, "open(sys.argv[1])", str(path)) == "PermissionError"
    for path in (gateway.path, folder / "state" / "audit.jsonl", folder / "secret", folder / "tool_server.py"):
        assert attempt(ALICE, "open(sys.argv[1], 'r+')", str(path)) == "PermissionError"
        assert attempt(ALICE, "os.unlink(sys.argv[1])", str(path)) == "PermissionError"
    assert attempt(ALICE, "os.unlink(sys.argv[1])", str(gateway.socket)) == "PermissionError"
    assert attempt(ALICE, "os.rename(sys.argv[1], sys.argv[1] + 'x')", str(folder / "run")) == "PermissionError"


async def test_a_server_of_the_user_runs_as_the_user(gateway: GatewayProcess, scene: Scene) -> None:
    server = ("--", python_for_user(ALICE), "-S", "-E", str(gateway.folder / "tool_server.py"))
    agent = connect(scene, gateway, ALICE, "mine", *server)
    await agent.initialize()
    pid = (await agent.ask(request("process", "process")))["result"]["pid"]
    assert os.stat(f"/proc/{pid}").st_uid == ALICE
    assert SECRET not in proc(pid, "environ")
    assert "forbidden" in refused(await agent.ask(call(1, "forbidden")))
    agent.signal(signal.SIGKILL)
    await ends(pid)


async def test_a_server_of_the_user_has_no_pipe_of_the_gateway(gateway: GatewayProcess, scene: Scene) -> None:
    script = "test -S /dev/stdin && test -S /dev/stdout && exec cat"  # a pipe's lock would be the user's too
    agent = connect(scene, gateway, ALICE, "mine", "--", "/bin/sh", "-c", script)
    await agent.send(request(1, "ping"))
    assert (await agent.message())["method"] == "ping"
    agent.end_input()
    assert await agent.ended() == 0


async def test_the_gateways_own_account_is_the_servers(gateway: GatewayProcess, scene: Scene) -> None:
    agent = connect(scene, gateway, ALICE)
    await agent.initialize()
    assert os.stat(f"/proc/{await pid_of_server(agent, gateway)}").st_uid == GATEWAY


async def test_a_server_can_run_as_another_account(nobody: int, tmp_path: Path, scene: Scene) -> None:
    folder = tmp_path / "gateway"
    folder.mkdir()
    copied = root_only_folder()
    try:
        shutil.copy(TOOLS, copied / "tool_server.py")
        command = json.dumps([python_for_user(nobody), "-S", "-E", str(copied / "tool_server.py")])
        gateway = GatewayProcess(folder, f'[servers.tools]\ncommand = {command}\nuser = "nobody"\ncwd = "{copied}"\n')
        try:
            agent = connect(scene, gateway, 0)
            await agent.initialize()
            pid = await pid_of_server(agent, gateway)
            status = proc(pid, "status")
            for name in ("Uid", "Gid"):
                [ids] = [line.split()[1:] for line in status.splitlines() if line.startswith(name + ":")]
                assert len(set(ids)) == 1
                assert ids[0] != "0"
            [groups] = [line.split()[1:] for line in status.splitlines() if line.startswith("Groups:")]
            assert "0" not in groups
            assert "USER=nobody" in proc(pid, "environ").split("\0")
            for number in range(3):  # a pipe's lock would be the server's too
                assert os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:")
            gateway.kill()
            await ends(pid, 5)
        finally:
            gateway.kill()
    finally:
        shutil.rmtree(copied)


HOOKS = """
socket_mode = "0666"
hooks_user = "nobody"
[[hooks.PreToolUse]]
command = "{ id; env; } >'%s'; sleep 60 & exit 0"
[servers.tools]
command = %s
"""


async def test_hooks_can_run_as_another_account(nobody: int, scene: Scene) -> None:
    folder = root_only_folder()
    (seen := folder / "seen").mkdir()
    try:
        os.chown(seen, nobody, -1)
        command = json.dumps([sys.executable, "-S", "-E", str(TOOLS)])
        gateway = GatewayProcess(folder, HOOKS % (seen / "seen", command))
        try:
            agent = connect(scene, gateway, 0)
            await agent.initialize()
            assert text_of(await agent.ask(call(1, "echo"))) == "{}"
            own, *variables = (seen / "seen").read_text().splitlines()
            assert own.startswith(f"uid={nobody}(nobody)")
            assert "root" not in own
            assert {"USER=nobody", "LOGNAME=nobody", "HOOKPROXY_USER=root"} <= set(variables)
            stranger = connect(scene, gateway, nobody)
            assert await stranger.ended() == 2
            assert "the account of the hooks" in gateway.logged("is not a user")
        finally:
            gateway.kill()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "hook",
    [
        'type = "worker"\nargv = ["/bin/sh", "-c", "while read -r x; do id -un >>\'%s\'; echo \'{}\'; done"]',
        "warm = true\ncommand = \"id -un >>'%s'\"",
    ],
    ids=["worker", "warm"],
)
async def test_processes_that_wait_for_calls_run_as_the_account_of_the_hooks(
    nobody: int, scene: Scene, hook: str
) -> None:
    folder = root_only_folder()
    (seen := folder / "seen").mkdir()
    try:
        os.chown(seen, nobody, -1)
        command = json.dumps([sys.executable, "-S", "-E", str(TOOLS)])
        hooks = f"[[hooks.PreToolUse]]\n{hook % (seen / 'seen')}\n"
        gateway = GatewayProcess(folder, f'hooks_user = "nobody"\n{hooks}[servers.tools]\ncommand = {command}\n')
        try:
            agent = connect(scene, gateway, 0)
            await agent.initialize()
            assert text_of(await agent.ask(call(1, "echo"))) == "{}"
            # The process that waits for the next call may already have written its line, too.
            assert set((seen / "seen").read_text().splitlines()) == {"nobody"}
        finally:
            gateway.kill()
    finally:
        shutil.rmtree(folder)


def test_the_account_of_the_hooks_stays_while_the_gateway_runs(nobody: int) -> None:
    folder = root_only_folder()
    server = '[servers.one]\ncommand = ["true"]\ncwd = "/"\n'
    try:
        gateway = GatewayProcess(folder, f'hooks_user = "nobody"\n{server}')
        try:
            gateway.reload(f'hooks_user = "daemon"\n{server}', "names another account than nobody")
            gateway.reload(server, "was removed")
            gateway.reload(f'hooks_user = "nobody"\n{server}')
        finally:
            gateway.kill()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("hooks", "cwd", "user", "account", "problem"),
    [
        ('command = "true"', "/root", 0, "nobody", "cannot read"),
        ('type = "python"\ncall = "guard:check"', "/", 0, "nobody", "runs inside of the gateway"),
        ('command = "true"', "/", GATEWAY, "nobody", "needs a gateway that runs as root"),
        ('command = "true"', "/", 0, "root", "names root"),
        ('command = "true"', "/", 0, "no-such-account", "there is no account no-such-account"),
    ],
)
def test_hooks_that_cannot_run_as_another_account_stop_the_start(
    nobody: int, hooks: str, cwd: str, user: int, account: str, problem: str
) -> None:
    folder = root_only_folder()
    try:
        if cwd == "/root":
            folder.chmod(0o700)
            cwd = "/"
        (folder / "guard.py").write_text("def check(call): ...\n")
        config = folder / "gateway.toml"
        config.write_text(
            f'[gateway]\nlisten = ["unix:{folder}/s"]\nhooks_user = "{account}"\n[[hooks.PreToolUse]]\n{hooks}\n'
            f'[servers.one]\ncommand = ["true"]\ncwd = "{cwd}"\n'
        )
        command = [*(as_user(user) if user else ()), HOOKPROXY, "serve", "--config", str(config)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
        assert ended.returncode == 2
        assert problem in ended.stderr
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_socket_in_a_folder_of_another_user_is_not_made(nobody: int, mode: int) -> None:
    folder = root_only_folder()
    try:
        theirs = folder / "theirs"
        theirs.mkdir()
        (theirs / "run").mkdir(mode=0o755)  # root's own, but whoever has the folder above can replace it
        os.chown(theirs, nobody, nobody)
        theirs.chmod(mode)
        with pytest.raises(AssertionError, match=r"the gateway has ended.*theirs"):
            GatewayProcess(folder, '[servers.x]\ncommand = ["cat"]\n', at=theirs / "run" / "mcp.sock")
    finally:
        shutil.rmtree(folder)
