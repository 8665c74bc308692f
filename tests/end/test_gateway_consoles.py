"""Two gateways with one store: a console at the one answers what waits at the other, whose audit records it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from hookproxy.console.follow import Follower
from tests.end.agent import HOOKPROXY, PATIENCE, Scene, call, refused, text_of
from tests.end.test_gateway_unix import table
from tests.support.gateway_process import GatewayProcess
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="valkey-server or redis-server is needed"),
]

NAMES = ("here", "there")


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    (tmp_path / "store").mkdir()
    key = tmp_path / "seal.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    with ExitStack() as stack:
        store = StoreProcess(tmp_path / "store")
        stack.callback(store.kill)
        started = []
        for name in NAMES:
            (tmp_path / name / "run").mkdir(parents=True, mode=0o700)
            config = f"""\
seal_keys = ["{key}"]
[gateway.store]
url = "{store.url}"
[audit]
file = "audit.jsonl"
{table("tools", 'on_ask_fallback = "console"')}
[servers.tools.permissions]
ask = ["echo"]
"""
            environ = {"XDG_RUNTIME_DIR": str(tmp_path / name / "run")}
            started.append(GatewayProcess(tmp_path / name, config, env=environ))
            stack.callback(started[-1].kill)
        yield started[0], started[1]


@pytest.mark.parametrize("action", ["allow", "deny"])
async def test_a_console_at_one_gateway_answers_what_waits_at_another(
    gateways: tuple[GatewayProcess, GatewayProcess], scene: Scene, action: str
) -> None:
    here, there = gateways
    agent = scene.start([HOOKPROXY, "connect", "tools", "--socket", str(here.socket)])
    await agent.initialize()
    reports: list[str] = []
    console = Follower(str(there.folder / "run" / "hookproxy"), reports.append)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(console.follow)
        await agent.send(call(1, "echo", a=1))
        with anyio.fail_after(PATIENCE):
            while not console.state.approvals:  # noqa: ASYNC110  # what happens in other processes shows so only
                await anyio.sleep(0.02)
        [waiting] = console.state.approvals.values()
        taken = await console.answer(
            waiting.run, waiting.approval.id, "allow" if action == "allow" else "deny", "Not now.", "a test"
        )
        assert taken.accepted, taken.why
        tasks.cancel_scope.cancel()
    answer = await agent.answer(1)
    if action == "allow":
        assert text_of(answer) == '{"a": 1}'
    else:
        assert "Not now." in refused(answer)
    agent.end_input()
    assert await agent.ended() == 0
    [record] = here.audit()
    assert record["decision"] == f"asked-{action}"
    assert "at a test" in record["answered"]
    assert there.audit() == []
    assert reports == []
