"""The portable way, as on a Mac: a selection that runs each time. `pytest tests/end --portable` runs all."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.end.agent import SERVER, Agent, Scene, call, ends, group, refused, request, specific, text_of
from tests.support.program import portable_program

pytestmark = pytest.mark.slow

SOON: Final = 15.0  # seconds, on a busy machine, within which all processes are gone
ONLY_ON_LINUX: Final = ("anon_inode:[pidfd]", "anon_inode:[eventfd]", "/memfd:")


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return portable_program(tmp_path_factory.mktemp("portable"))


def run(scene: Scene, program: str, *options: str, server: tuple[str, ...] = SERVER) -> Agent:
    return scene.start([program, "run", *options, "--", *server])


def open_files(pid: int) -> list[str]:
    found = []
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has been closed since
            found.append(os.readlink(one))
    return found


async def test_hooks_refuse_rewrite_and_comment(scene: Scene, program: str) -> None:
    rewrite = specific("PreToolUse", permissionDecision="allow", updatedInput={"text": "rewritten"})
    options = scene.hooks(
        PreToolUse=[group("echo never >&2; exit 2", "mcp__.*__die"), group(scene.prints(rewrite), "mcp__.*__echo")],
        PostToolUse=[group("echo said >&2; exit 2", "mcp__.*__echo")],
    )
    agent = run(scene, program, options)
    await agent.initialize()
    assert "never" in refused(await agent.ask(call(1, "die")))
    for number in range(2, 12):
        answer = text_of(await agent.ask(call(number, "echo", text="as written")))
        assert "rewritten" in answer
        assert "said" in answer
    assert [one["params"]["arguments"] for one in scene.calls_received()] == [{"text": "rewritten"}] * 10


async def test_nothing_that_only_linux_has_is_open_while_a_hook_runs(scene: Scene, program: str) -> None:
    gate = scene.gate("hook")
    function = Path(scene.file("guard.py", "def check(document):\n    return None\n"))
    config = (
        f"[[hooks.PreToolUse]]\ncommand = {json.dumps(gate.script)}\n"
        '[[hooks.PreToolUse]]\ntype = "python"\ncall = "guard:check"\n'
    )
    (function.parent / "hookproxy.toml").write_text(config)
    agent = run(scene, program, f"--config={function.parent / 'hookproxy.toml'}")
    await agent.initialize()
    await agent.send(call(1, "echo", text="x"))
    await gate.reached()
    assert not [one for one in open_files(agent.pid) if one.startswith(ONLY_ON_LINUX)]
    gate.open()
    assert "x" in text_of(await agent.answer(1))


async def test_a_hook_that_hangs_is_ended_with_all_that_it_has_started(scene: Scene, program: str) -> None:
    settings = scene.hooks(PreToolUse=[group("trap '' TERM; sleep 1000 & sleep 1001", timeout=0.3)])
    agent = run(scene, program, settings)
    await agent.initialize()
    await agent.ask(call(1, "echo"))
    await scene.empty(SOON, "sleep 100")


async def test_kill_of_hookproxy_leaves_no_hook_and_no_server(scene: Scene, program: str) -> None:
    gate = scene.gate("hook")
    hang = f"trap '' HUP TERM; sh -c 'set -m; sleep 1000 & sleep 1001' & {gate.report}; sleep 1002"
    pong = '{"jsonrpc":"2.0","id":2,"result":{}}'
    answers_once = f"sleep 1003 & echo '{{}}'; read -r line; echo '{pong}'; while :; do sleep 1; done"
    stubborn = ("sh", "-c", f"trap '' HUP INT TERM; {answers_once}")
    agent = run(scene, program, scene.hooks(PreToolUse=hang), server=stubborn)
    assert await agent.line() == b"{}"
    await agent.send(call(1, "echo"))
    await gate.reached()
    assert await agent.ask(request(2, "ping")) == json.loads(pong)  # so hookproxy knows the number of the hook
    agent.signal(signal.SIGKILL)
    assert await agent.ended() == -signal.SIGKILL
    await scene.empty(SOON)


async def test_a_server_that_dies_is_noticed_and_its_status_is_ours(scene: Scene, program: str) -> None:
    agent = run(scene, program, server=("sh", "-c", "read -r line; exit 7"))
    await agent.send(request(1, "ping"))
    assert await agent.ended() == 7


async def test_standard_error_that_nobody_reads_holds_up_no_call(scene: Scene, program: str) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with contextlib.suppress(BlockingIOError):
        while True:  # until it is full
            os.write(theirs, b"x" * 65_536)
    command = [program, "run", "--verbose", scene.hooks(PreToolUse="true"), "--", *SERVER]
    agent = scene.start(["sh", "-c", f'exec "$@" 2>/proc/{os.getpid()}/fd/{theirs}', "sh", *command])
    await agent.initialize()
    for number in range(1, 6):
        assert "x" in text_of(await agent.ask(call(number, "echo", text="x")))
    os.close(theirs)
    os.close(ours)


async def test_agent_and_server_may_send_more_than_pipes_hold(scene: Scene, program: str) -> None:
    agent = run(scene, program, scene.hooks(PreToolUse="cat >/dev/null"))
    await agent.initialize()
    text = "x" * 300_000
    with anyio.fail_after(30):
        answers = [await agent.ask(call(number, "echo", text=text)) for number in range(3)]
    assert all(text in text_of(one) for one in answers)
    pid = agent.pid
    agent.go()
    await ends(pid, 10)
