"""`kill -9` of hookproxy leaves nothing behind, and ends nothing else."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.end.agent import Agent, Scene, call, ends, group, request
from tests.support import program

pytestmark = pytest.mark.slow

SOON = 15.0  # seconds, on a busy machine, within which all processes are gone
STUBBORN = ("trap '' HUP INT TERM", "while :; do sleep 1; done")


async def killed(scene: Scene, agent: Agent, *, stubborn: bool = False) -> None:
    """Kill hookproxy; nothing that the scene began may be left soon afterwards. A `stubborn` server answers nothing."""
    if not stubborn:
        await agent.ask(request("last", "ping"))  # so we know the numbers of all processes that we have started
    agent.signal(signal.SIGKILL)
    assert await agent.ended() == -signal.SIGKILL
    await scene.empty(SOON)


async def test_the_hooks_of_calls_and_what_they_have_started(scene: Scene) -> None:
    gate = scene.gate("hook")
    command = f"{STUBBORN[0]}; sh -c 'set -m; sleep 1000 & sleep 1001' & {gate.report}; {STUBBORN[1]}"
    agent = scene.run(scene.hooks(PreToolUse=command))
    await agent.initialize()
    for number in range(40):
        await agent.send(call(number, "echo"))
    reached = 0
    while reached < 40:
        reached += len((await gate.reached()).split())
    assert len(scene.running("sleep 100")) >= 40
    await killed(scene, agent)


async def test_post_hooks_background_hooks_and_hooks_of_the_session(scene: Scene) -> None:
    gate = scene.gate("hook")
    stays = f"{gate.report}; {';'.join(STUBBORN)}"
    options = scene.hooks(
        SessionStart=[group(stays, in_background=True)],
        PreToolUse=[group(stays, in_background=True)],
        PostToolUse=[group(stays)],
    )
    agent = scene.run(options)
    await agent.initialize()
    await agent.send(call(1, "echo"))
    reached = 0
    while reached < 3:
        reached += len((await gate.reached()).split())
    await killed(scene, agent)


WORKER = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for line in sys.stdin:
    print("{}", flush=True)
while True:
    time.sleep(1)
"""


async def test_workers_and_warm_spares_that_ignore_the_end_of_their_input(scene: Scene) -> None:
    gate = scene.gate("spare")
    worker = scene.file("worker.py", WORKER)
    spare = scene.file("spare.sh", f"trap '' HUP TERM\n{gate.report}\nread -r line || while :; do sleep 1; done\n")
    agent = scene.run(
        scene.config(
            f'[[hooks.PreToolUse]]\ntype = "worker"\nargv = ["{sys.executable}", "{worker}"]\n'
            f'[[hooks.PreToolUse]]\nargv = ["sh", "{spare}"]\nwarm = true\n'
        )
    )
    await agent.initialize()
    await agent.ask(call(1, "echo"))
    await gate.reached()
    while not scene.running("spare.sh"):
        await gate.reached()
    assert scene.running("worker.py")
    await killed(scene, agent)


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_server_that_ignores_the_end_of_its_input_with_its_children(scene: Scene, hooked: bool) -> None:
    child = f"sh -c {shlex.quote(';'.join(STUBBORN))}"
    script = f"{STUBBORN[0]}; {child} & echo '{{}}'; {STUBBORN[1]}"
    options = [scene.hooks(PreToolUse="true")] if hooked else []
    agent = scene.run(*options, server=["sh", "-c", script])
    assert await agent.line() == b"{}"  # so we have started it, and know its number
    await killed(scene, agent, stubborn=True)


async def test_a_server_that_exits_in_its_own_time_is_not_disturbed(scene: Scene) -> None:
    done = scene.folder / "done"
    script = f"echo '{{}}'; while read -r line; do :; done; sleep 0.6; echo saved >'{done}'"
    agent = scene.run(server=["sh", "-c", script])
    assert await agent.line() == b"{}"
    await killed(scene, agent, stubborn=True)
    assert done.read_text() == "saved\n"


async def test_a_group_kill_leaves_nothing_either(scene: Scene) -> None:
    gate = scene.gate("hook")
    agent = scene.run(scene.hooks(PreToolUse=f"{gate.report}; {';'.join(STUBBORN)}"))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.ask(request(2, "ping"))
    os.killpg(agent.pid, signal.SIGKILL)
    await agent.ended()
    await scene.empty(SOON)


@pytest.mark.parametrize("ending", ["end of input", "TERM"])
async def test_after_an_ordinary_end_no_guardian_is_left_and_nothing_else_has_ended(scene: Scene, ending: str) -> None:
    agent = scene.run(scene.hooks(PreToolUse="setsid sleep 1000 >/dev/null 2>&1 &"))
    await agent.initialize()
    guardians = guardians_of(agent.pid)
    assert len(guardians) == 1
    await agent.ask(call(1, "echo"))
    agent.end_input() if ending == "end of input" else agent.signal(signal.SIGTERM)
    await agent.ended()
    await ends(guardians[0], 2)
    assert scene.running("sleep 1000")  # a hook may leave a process behind, and this one has left its session
    scene.kill()


def guardians_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in children if "hookproxy-guardian" in Path(f"/proc/{one}/cmdline").read_text()]


def start_stranger(guardian: int, begun_with: int) -> subprocess.Popen[bytes]:
    """A process whose number stands in the guardian's table, as if one of ours had had it before."""
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    table = os.open(f"/proc/{guardian}/fd/3", os.O_WRONLY)
    before = int(Path(f"/proc/{begun_with}/stat").read_text().rpartition(")")[2].split()[19])
    if program.portable:
        before = int(time.time()) - 10  # seconds; two are not enough to tell one from the other
    os.pwrite(table, b"%-7b%9d%15d\n" % (b"hook", stranger.pid, before), 32)
    os.close(table)
    return stranger


async def test_the_guardian_ends_no_process_that_has_the_number_of_one_of_ours(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PreToolUse="true"))
    await agent.initialize()
    await agent.ask(call(1, "echo"))
    [guardian] = guardians_of(agent.pid)
    stranger = start_stranger(guardian, begun_with=agent.pid)
    agent.signal(signal.SIGKILL)
    await agent.ended()
    await ends(guardian, SOON)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
