"""The gateway on its Unix socket: real agents by way of `hookproxy connect`, real servers, hooks and signals."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.end.agent import (
    HOOKPROXY,
    SERVER,
    Agent,
    Gate,
    Scene,
    call,
    ends,
    group,
    notification,
    refused,
    request,
    specific,
    text_of,
)
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

SECRET = "sekret-4711-value"  # noqa: S105  # looked for in every output
HOOK_SECRET = "of-the-gateway-itself"  # noqa: S105


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
    yield from _gateway(folder, CONFIG(folder))


def _gateway(folder: Path, config: str) -> Iterator[GatewayProcess]:
    (folder / "secret").write_text(SECRET + "\n")
    gateway = GatewayProcess(folder, config, env={"TOKEN": HOOK_SECRET})
    try:
        yield gateway
        assert gateway.end() == 0
    finally:
        gateway.kill()
    assert "Traceback" not in gateway.log


@pytest.fixture
def own_gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway that a test may signal, with a server `tools`."""
    yield from _gateway(tmp_path, f"{AUDIT}\n{table('tools')}")


AUDIT = '[audit]\nfile = "audit.jsonl"\ncalls = "all"\n'
LOUD = ("/bin/sh", "-c", r"printf 'hookproxy: forged\nx\rhookproxy: forged\033[2K\xe2\x80\xa8z\n' >&2; exec cat")


def CONFIG(folder: Path) -> str:  # noqa: N802
    """Servers, a hook that records what it gets, and rules."""
    script = folder / "record"
    script.write_text(f"#!/bin/sh\n{{ cat; echo; }} >>'{folder}/documents'\nenv >>'{folder}/environments'\n")
    script.chmod(0o755)
    return f"""
[audit]
file = "audit.jsonl"
calls = "all"
[permissions]
deny = ["forbidden"]
{table("tools", 'credentials = { TOKEN = "file:secret" }', 'env = { PLAIN = "1" }')}
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
