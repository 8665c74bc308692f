"""Servers in their sandbox, driven by an attacker: nothing of the gateway, and of other users, is reached."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.errors import UserError
from hookproxy.processes.confined import landlock_abi
from hookproxy.sandbox.available import find_sandbox
from hookproxy.sandbox.landlock import OLDEST_ABI
from tests.end.sandbox_tries import COMMANDS, HARMLESS, TRIES
from tests.support.gateway_process import HOOKPROXY, GatewayProcess

pytestmark = pytest.mark.slow

SECRET: Final = "sekret-5219-of-the-gateway"
OWN: Final = "own-credential"
PROBE: Final = Path(__file__).with_name("sandbox_probe.py")
QUEUE_KEY, SHM_KEY, SHM_BYTES = 0x5219_0001, 0x5219_0002, 16
CREATE: Final = 0o1600  # IPC_CREAT, for the owner
REMOVE: Final = 0  # IPC_RMID


class Session:
    """An agent's session at a server of the gateway."""

    def __init__(self, gateway: GatewayProcess, server: str) -> None:
        self.connection = gateway.open(f"hookproxy 1\nserver {server}\n\n".encode())
        self.connection.settimeout(30)
        self.file = self.connection.makefile("rb")
        assert self.file.readline().startswith(b"ok"), "the session is refused"
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})

    def ask(self, method: str, params: object) -> dict[str, Any]:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.connection.sendall(json.dumps(message).encode() + b"\n")
        response: dict[str, Any] = json.loads(self.file.readline())
        result: dict[str, Any] = response["result"]
        return result

    def call(self, tool: str, text: str) -> str:
        result = self.ask("tools/call", {"name": tool, "arguments": {"text": text}})
        return str(result["content"][0]["text"])

    def close(self) -> None:
        self.file.close()
        self.connection.close()


def usable(kind: str) -> str:
    try:
        find_sandbox(kind)
    except UserError as problem:
        pytest.skip(problem.message)
    return kind


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    return usable(request.param)


class Box:
    """A gateway with everything that an attacker wants, and what the attacker knows of it."""

    def __init__(self, folder: Path, sandbox: str, stack: ExitStack) -> None:
        self.folder = folder
        state = folder / "state" / "hookproxy"
        shutil.copy(PROBE, folder / "probe.py")
        for name in ("tokens", "seal", "credential"):
            # its own credential is what the server has in its environment
            text = OWN if name == "credential" else SECRET
            (folder / name).write_text(f"{text} {name} {os.urandom(32).hex()}\n")
            (folder / name).chmod(0o600)
        (folder / "hook").write_text(f"#!/bin/sh\n# {SECRET}\n")
        (folder / "hook").chmod(0o755)
        abstract = f"\0hookproxy-test-{os.getpid()}-{sandbox}"
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(abstract)
        listening.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(folder / "datagrams"))
        marker = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp", prefix="hookproxy-test-"))
        libc = ctypes.CDLL(None)
        shm, queue = libc.shmget(SHM_KEY, SHM_BYTES, CREATE), libc.msgget(QUEUE_KEY, CREATE)
        stack.callback(libc.shmctl, shm, REMOVE, None)
        stack.callback(libc.msgctl, queue, REMOVE, None)
        libc.msgsnd(queue, struct.pack("l8s", 1, b"for-them"), 8, 0)
        semaphore = libc.semget(QUEUE_KEY, 1, CREATE)
        stack.callback(libc.semctl, semaphore, 0, REMOVE, 0)
        os.setxattr(folder / "probe.py", "user.kept", b"1")
        chosen = 'sandbox = "off"' if sandbox == "off" else ""
        wanted = "auto" if sandbox == "off" else sandbox
        command = json.dumps([sys.executable, "-S", "-E", "probe.py"])
        self.gateway = GatewayProcess(
            folder,
            f"""
sandbox = "{wanted}"
seal_keys = ["seal"]
tokens = "tokens"
[audit]
calls = "all"
[[hooks.PreToolUse]]
command = "{folder}/hook"
matcher = "nothing"
[servers.probe]
command = {command}
credentials = {{ T = "file:credential" }}
{chosen}
[servers.other]
command = {command}
{chosen}
""",
            env={"XDG_STATE_HOME": str(folder / "state")},
        )
        stack.callback(self.gateway.kill)
        other = state / "servers" / "probe" / "uid-4711-bob"
        other.mkdir(parents=True)
        (other / "private").write_text(SECRET)
        maps = Path(f"/proc/{self.gateway.pid}/maps").read_text()
        self.known = {
            **{name: str(folder / name) for name in ("tokens", "seal", "credential", "hook")},
            "config": str(self.gateway.path),
            "audit": str(state / "audit.jsonl"),
            "folder": str(folder),
            "state": str(state),
            "runs": str(state / "runs"),
            "home": str(folder),
            "other": str(other),
            "program": str(folder / "probe.py"),
            "site": next(path for path in sys.path if path.endswith("site-packages")),
            "socket": str(self.gateway.socket),
            "pid": self.gateway.pid,
            "address": int(maps.partition("-")[0], 16),
            "abstract": abstract,
            "datagrams": str(folder / "datagrams"),
            "marker": os.path.basename(marker),
            "shm": shm,
            "shm_key": SHM_KEY,
            "shm_name": "nothing",
            "queue_key": QUEUE_KEY,
            "queue": queue,
            "semaphore": semaphore,
        }
        self.session = Session(self.gateway, "probe")
        stack.callback(self.session.close)

    def attempt(self, name: str) -> str:
        return self.session.call("python", f"C = {self.known!r}\n{TRIES[name]}")


def folder_outside_of_tmp(stack: ExitStack) -> Path:
    """A folder whose place servers do not have themselves: each of them has a /tmp."""
    folder = Path(tempfile.mkdtemp(prefix=".box-", dir=Path(__file__).parents[2]))
    stack.callback(shutil.rmtree, folder)
    return folder


@pytest.fixture(scope="module")
def box(kind: str) -> Iterator[Box]:
    with ExitStack() as stack:
        yield Box(folder_outside_of_tmp(stack), kind, stack)


def reached(answer: str) -> bool:
    return not answer.startswith("refused: ") and bool(json.loads(answer))


def test_there_are_as_many_tries_as_are_promised() -> None:
    assert len(TRIES) + len(COMMANDS) >= 60


def test_no_try_from_inside_of_a_server_gets_anywhere(box: Box) -> None:
    before = {name: _state(path) for name, path in box.known.items() if os.path.isfile(str(path))}
    answers = {name: box.attempt(name) for name in TRIES if "abstract" not in name or landlock_abi() >= OLDEST_ABI}
    assert not {name: answer for name, answer in answers.items() if reached(answer)}
    assert not [answer for answer in answers.values() if SECRET in answer or "SyntaxError" in answer]
    before.pop("audit", None)  # it grows
    assert {name: _state(str(box.known[name])) for name in before} == before
    assert os.getpriority(os.PRIO_PROCESS, box.gateway.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert box.gateway.process.poll() is None
    assert not (Path(str(box.known["other"])) / "planted").exists()


def _state(path: str) -> tuple[bytes, int, int, float]:
    state = os.stat(path)
    return Path(path).read_bytes(), state.st_mode, state.st_uid, state.st_mtime


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_line_prints_what_is_the_gateways(box: Box, name: str) -> None:
    names = {key: str(value) for key, value in box.known.items()}
    printed = box.session.call("shell", COMMANDS[name].format(**names))
    assert SECRET not in printed


def test_without_a_sandbox_the_same_tries_get_there() -> None:
    with ExitStack() as stack:
        box = Box(folder_outside_of_tmp(stack), "off", stack)
        failed = {name: answer for name in HARMLESS if not reached(answer := box.attempt(name))}
        assert not failed
        assert "servers.probe runs without a sandbox" in box.gateway.log


def test_what_a_server_may_do_it_can(box: Box) -> None:
    session = box.session
    assert session.call("shell", "echo kept >file && cat file && cd && cat file") == "kept\nkept\n"
    assert session.call("shell", 'f=$(mktemp) && echo 1 >"$f" && cat "$f"') == "1\n"
    assert session.call("shell", "git init -q g && cd g && git status --short && ls -a | grep -c git") == "1\n"
    assert session.call("python", "import subprocess; reached = subprocess.run(['true']).returncode == 0") == "true"
    assert session.call("python", "import socket; reached = bool(socket.getaddrinfo('localhost', 80))") == "true"
    assert session.call("shell", "echo $T").startswith(OWN)


def test_modes_of_its_own_files_can_be_changed_and_no_others(box: Box) -> None:
    session = box.session
    made = "printf '#!/bin/sh\necho ran\n' >tool && chmod 755 tool && ./tool && chmod 6700 tool && stat -c %a tool"
    ran, mode = session.call("shell", made).split()
    assert (ran, mode[-3:]) == ("ran", "700")
    code = """
import os
os.makedirs('d/e', exist_ok=True)
os.chmod('d/e/../../tool', 0o711); one = os.stat('tool').st_mode & 0o777
fd = os.open('tool', os.O_RDONLY); os.fchmod(fd, 0o640); two = os.stat('tool').st_mode & 0o777
folder = os.open('d', os.O_RDONLY); os.chmod('../tool', 0o755, dir_fd=folder); three = os.stat('tool').st_mode & 0o777
reached = (one, two, three) == (0o711, 0o640, 0o755)
"""
    assert session.call("python", code) == "true"
    assert session.call("python", "import os; os.chmod('missing', 0o700)").startswith("refused: FileNotFoundError")
    before = os.stat(str(box.known["program"])).st_mode, os.stat("/usr/bin/env").st_mode
    links = """
import os
os.symlink(C['program'], 'way'); os.symlink('/usr/bin', 'bins')
others = '../../../../' + C['tokens'], '/proc/self/cwd/way', '/proc/self/root/usr/bin/env'
for path in ('way', 'bins/env', C['program'], *others):
    try: os.chmod(path, 0o777)
    except OSError: pass
reached = True
"""
    session.call("python", f"C = {box.known!r}\n{links}")
    assert (os.stat(str(box.known["program"])).st_mode, os.stat("/usr/bin/env").st_mode) == before
    assert os.stat(str(box.known["tokens"])).st_mode & 0o777 == 0o600


def test_each_server_has_a_folder_of_its_own_that_stays(box: Box) -> None:
    box.session.call("shell", "echo mine >note")
    again = Session(box.gateway, "probe")
    assert again.call("shell", "cat note") == "mine\n"
    again.close()
    other = Session(box.gateway, "other")
    assert "No such file" in other.call("shell", "cat note")
    other.close()


def run_with(folder: Path, *options: str) -> list[dict[str, Any]]:
    """What a server answers under `run --sandbox` that is asked for its files and variables."""
    shutil.copy(PROBE, folder / "probe.py")
    call = {"name": "shell", "arguments": {"text": "echo $KEPT $LOST; cat ~/../private; cat /etc/shadow; touch made"}}
    messages = [{"method": "initialize", "params": {}}, {"method": "tools/call", "params": call}]
    lines = [json.dumps({"jsonrpc": "2.0", "id": number, **message}) for number, message in enumerate(messages)]
    command = [HOOKPROXY, "run", *options, "--", sys.executable, "-S", "-E", "probe.py"]
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "KEPT": "kept", "LOST": "lost"}
    ended = subprocess.run(
        command, cwd=folder, env=env, input="\n".join([*lines, ""]), capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_run_offers_the_same_sandbox(kind: str, tmp_path: Path) -> None:
    assert kind
    (folder := tmp_path / "project").mkdir()
    answers = run_with(folder, "--sandbox", "--sandbox-network", "none", "--sandbox-env", "KEPT")
    text = answers[1]["result"]["content"][0]["text"]
    assert text.startswith("kept\n")
    assert "lost" not in text
    assert "root:" not in text
    assert (folder / "made").exists()


def test_run_hands_on_no_descriptor_of_its_agent(kind: str, tmp_path: Path) -> None:
    assert kind
    (folder := tmp_path / "project").mkdir()
    (secret := tmp_path / "secret").write_text(SECRET)
    with secret.open() as file:
        argv = [sys.executable, "-S", "-E", "-c", f"import os; print(os.read({file.fileno()}, 99))"]
        ended = subprocess.run(
            [HOOKPROXY, "run", "--sandbox", "--", *argv],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=(file.fileno(),),
        )
    assert SECRET not in ended.stdout + ended.stderr
    assert "Bad file descriptor" in ended.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--sandbox-read", "/srv"], "--sandbox-read is for a server in a sandbox"),
        (["--sandbox", "--sandbox-write", "~"], "hookproxy's own files are in"),
        (["--sandbox"], "would show the server the whole of"),
    ],
)
def test_run_refuses_a_sandbox_that_shows_too_much(tmp_path: Path, options: list[str], problem: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    folder = tmp_path if options == ["--sandbox"] else tmp_path / "project"
    folder.mkdir(exist_ok=True)
    command = [HOOKPROXY, "run", *options, "--", "cat"]
    ended = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 2
    assert problem in ended.stderr
