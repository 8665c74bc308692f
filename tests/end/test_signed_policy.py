"""A signed policy in the real program: a gateway that fetches it, and runs whose administrator has had it fetched."""

# small files on a local disk
from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from hookproxy.signing.keys import PrivateKey
from tests.support.gateway_process import GatewayProcess
from tests.support.managed_folder import ROOT_ONLY, in_private_etc, root_only_folder
from tests.support.program import HOOKPROXY
from tests.support.signed_policy import bundle, new_key

pytestmark = pytest.mark.slow

KEY: Final = new_key()
PATIENCE: Final = 30.0
SERVER: Final = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"content": [{"type": "text", "text": "ran"}]}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
INITIALIZE: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
LINES: Final = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "drop_table", "arguments": {}}},
    )
)


def guard(answer: str) -> dict[str, bytes]:
    """A policy with a hook that denies with these words, which it reads from a file beside it."""
    hook = b'[[hooks.PreToolUse]]\ncommand = "./guards/deny.sh"\n'
    return {
        "policy.toml": hook,
        "guards/deny.sh": b'#!/bin/sh\ncat "${0%/*}/why" >&2; exit 2\n',
        "guards/why": answer.encode(),
    }


def publish(repository: Path, files: dict[str, bytes]) -> None:
    """The files are what the branch `stable` has now."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"}
    env |= {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    shutil.rmtree(repository, ignore_errors=True)
    for name, content in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for words in (["init", "-q", "-b", "stable"], ["add", "-A"], ["commit", "-q", "-m", "policy"]):
        subprocess.run(["git", *words], cwd=repository, env=env, check=True, capture_output=True)


def signed(version: int, answer: str, key: PrivateKey = KEY, seconds: float = 1000.0) -> dict[str, bytes]:
    return bundle(key, version, files=guard(answer), executable=frozenset({"guards/deny.sh"}), seconds=seconds)


def response(printed: str) -> str:
    """The text of the response to the call, or of the error."""
    for line in printed.splitlines():
        message = json.loads(line)
        if message.get("id") == 2:
            return str(message["result"]["content"][0]["text"] if "result" in message else message["error"]["message"])
    return ""


# --- a gateway ---


class Box:
    """A gateway with a signed policy, and what publishes it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.repository = folder, folder / "repository"
        (folder / "server.py").write_text(SERVER)
        self.gateway: GatewayProcess

    def start(self, more: str = "") -> None:
        self.gateway = GatewayProcess(
            self.folder,
            f"""
[policy]
source = "git+file://{self.repository}"
keys = ["{KEY.public.line}"]
folder = "policy"
refresh_seconds = 1
{more}
[audit]
file = "audit.jsonl"
[servers.s]
command = ["{sys.executable}", "{self.folder}/server.py"]
""",
        )

    def call(self) -> str:
        command = [HOOKPROXY, "connect", "s", "--socket", str(self.gateway.socket)]
        ended = subprocess.run(command, input=LINES, capture_output=True, text=True, timeout=PATIENCE)
        return response(ended.stdout) or ended.stderr

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [HOOKPROXY, "policy", *words, "--config", str(self.gateway.path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def until_logged(self, after: int, *texts: str) -> None:
        """Wait until the log has one of the texts, from a position on."""
        self.until(lambda: any(text in self.gateway.log[after:] for text in texts))

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, self.gateway.log
            time.sleep(0.02)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    publish(made.repository, signed(1, "first"))
    yield made
    made.gateway.kill()


def test_a_gateway_fetches_takes_refuses_and_goes_back(box: Box) -> None:
    box.start()
    assert "Blocked by the PreToolUse hook deny.sh: first" in box.call()
    publish(box.repository, signed(2, "second"))
    box.gateway.logged("with version 2 of stable")
    assert "second" in box.call()
    publish(box.repository, signed(3, "third", new_key()))
    box.gateway.logged("not signed by one of the keys")
    publish(box.repository, bundle(KEY, 3, files={"policy.toml": b"[permissions]\ndney = []\n"}))
    box.gateway.logged("version 3 is refused, because it does not work here")
    publish(box.repository, bundle(KEY, 3, files=guard("third")))
    box.gateway.logged("not executable")
    assert "second" in box.call()
    assert box.verb("status").returncode == 1
    assert "version 1 of stable is in force" in box.verb("rollback").stdout
    box.gateway.logged("stays until a newer one than 2")
    assert "first" in box.call()
    status = json.loads(box.verb("status", "--json").stdout)
    assert (status["in_force"]["version"], status["rollback"]["until"]) == (1, 2)
    publish(box.repository, signed(4, "fourth"))
    box.gateway.logged("with version 4 of stable")
    assert "fourth" in box.call()
    assert box.gateway.end() == 0
    records = box.gateway.audit()
    assert [(line["reason"], line["bundle"]["version"]) for line in records if "tool" in line] == [
        ("first", 1),
        ("second", 2),
        ("second", 2),
        ("first", 1),
        ("fourth", 4),
    ]
    assert all(
        line["bundle"]["ring"] == "stable" and len(line["bundle"]["digest"]) == 64 for line in records if "tool" in line
    )
    assert any("went back" in line.get("note", "") for line in records)


def expiring(box: Box, version: int) -> int:
    """Have the gateway take a policy that expires within seconds. Returns its version, which is this one or higher."""
    for seconds in (3, 10, 30):  # a slow machine may fetch it too late
        before, taken = len(box.gateway.log), f"with version {version} "
        publish(box.repository, signed(version, "soon", seconds=seconds))
        box.until_logged(before, taken, f"refused: version {version} has expired")
        if taken in box.gateway.log:
            return version
        version += 1
    raise AssertionError(box.gateway.log)


def test_a_gateway_whose_policy_expires_lets_nothing_pass_until_a_newer_one_comes(box: Box) -> None:
    box.start()
    version = expiring(box, 2)
    box.gateway.logged(closed := f"nothing may pass: the policy, version {version} of stable, has expired")
    assert closed in box.call()
    version = expiring(box, version + 1)
    config = box.gateway.path.read_text()
    box.gateway.path.write_text("what is this")
    box.gateway.logged(closed := f"nothing may pass: the policy, version {version} of stable, has expired")
    assert closed in box.call()
    box.gateway.path.write_text(config)
    publish(box.repository, signed(version + 1, "third"))
    box.gateway.logged(f"with version {version + 1} of stable")
    assert "third" in box.call()


def test_a_gateway_follows_its_administrator_while_the_source_says_nothing(box: Box) -> None:
    box.start()
    publish(box.repository, signed(2, "second"))
    box.gateway.logged("with version 2 of stable")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        text = box.gateway.path.read_text()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        box.gateway.path.write_text(text.replace(f"git+file://{box.repository}", address))
        box.gateway.process.send_signal(signal.SIGHUP)
        connection, _ = silent.accept()
        with connection:
            assert "version 1 of stable is in force" in box.verb("rollback").stdout
            box.gateway.logged("stays until a newer one than 2")
            assert "first" in box.call()


def test_a_gateway_that_never_had_a_policy_lets_nothing_pass_unless_told_so(box: Box) -> None:
    shutil.rmtree(box.repository)
    (box.folder / "gateway.toml").write_text("")
    with pytest.raises(AssertionError):  # it does not serve
        box.start("on_missing = 1")
    box.start('on_missing = "allow"')
    assert box.call() == "ran"
    assert "only the local configuration is in force" in box.gateway.log
    publish(box.repository, signed(1, "first"))
    box.gateway.logged("with version 1 of stable")
    assert "first" in box.call()
    policy, audit, rest = box.gateway.path.read_text().partition("[audit]")
    box.gateway.reload(f"{audit}{rest}")
    assert box.call() == "ran"
    shutil.rmtree(box.folder / "policy")
    box.gateway.reload(f"[policy]{policy.partition('[policy]')[2]}{audit}{rest}")
    box.until(lambda: "first" in box.call())


# --- runs, whose administrator names a policy ---


def managed(etc: Path, repository: Path, state: Path, more: str = "") -> None:
    (etc / "hookproxy" / "managed.toml").write_text(
        f'[policy]\nsource = "git+file://{repository}"\nkeys = ["{KEY.public.line}"]\nfolder = "{state}"\n{more}'
    )


@pytest.fixture
def state() -> Iterator[Path]:
    folder = root_only_folder()
    yield folder / "policy"
    for here, _, _ in os.walk(folder):
        os.chmod(here, 0o755)
    shutil.rmtree(folder)


@ROOT_ONLY
def test_a_run_uses_the_last_good_policy_and_never_the_network(
    tmp_path: Path, private_etc: Path, state: Path, nobody: int
) -> None:
    repository = tmp_path / "repository"
    publish(repository, signed(1, "first"))
    managed(private_etc, repository, state)
    server = state.parent / "server.py"
    server.write_text(SERVER)

    env = {"PATH": os.environ["PATH"], "HOME": str(state.parent)}

    def run(*command: str, user: int = 0, lines: str = "") -> subprocess.CompletedProcess[str]:
        words = in_private_etc(private_etc, *command, user=user)
        return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, cwd="/", env=env, input=lines)

    def call(user: int) -> subprocess.CompletedProcess[str]:
        return run(HOOKPROXY, "run", "--", "/usr/bin/env", "python3", str(server), user=user, lines=LINES)

    missing = call(nobody)
    assert missing.returncode == 2
    assert "no policy was fetched yet" in missing.stderr
    assert "hookproxy policy update" in missing.stderr
    updated = run(HOOKPROXY, "policy", "update")
    assert "version 1 of stable is in force" in updated.stdout, updated.stderr
    shutil.rmtree(repository)
    assert "first" in response(call(nobody).stdout)
    assert "first" in response(call(0).stdout)
    records = (state.parent / ".local" / "state" / "hookproxy" / "audit.jsonl").read_text().splitlines()
    assert json.loads(records[-1])["bundle"]["version"] == 1
    assert "only root changes the policy" in run(HOOKPROXY, "policy", "update", user=nobody).stderr
    assert "version   1\n" in run(HOOKPROXY, "policy", "status", user=nobody).stdout
    assert "version 1 of stable is in force" not in run(HOOKPROXY, "policy", "update").stdout
    assert "first" in response(call(nobody).stdout)
    why = next(state.glob("bundles/*/guards/why"))
    why.chmod(0o644)
    why.write_text("nothing")
    changed = call(nobody)
    assert changed.returncode == 2
    assert "guards/why is not the file that manifest.json names" in changed.stderr
    os.chown(why, nobody, nobody)
    assert "belongs to user" in call(nobody).stderr
