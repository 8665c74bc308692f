"""A call that ends early, in each phase and by each ending: the model, people and the audit get the same true words."""

from __future__ import annotations

import json
import os
import signal
from typing import Final

import pytest

from tests.end.agent import (
    HOOKPROXY,
    SERVER,
    Agent,
    Scene,
    call,
    cancel,
    group,
    line_of,
    notification,
    request,
)
from tests.support import program

pytestmark = pytest.mark.slow

NOT_SENT: Final = "The call was not sent to the server. The tool was not run."
NO_RESPONSE: Final = "The call was sent to the server, and there is no response. It may have had an effect."
WITHHELD: Final = (
    "The tool was run and the server has answered, but the output is withheld. "
    "Calling the tool again would run it again."
)
PHASES: Final = {"judged": (NOT_SENT, "cancelled"), "sent": (NO_RESPONSE, "lost"), "commented": (WITHHELD, "error")}
"""What is known in each phase, and the audit's `result`."""

SESSION_ENDED: Final = "The session has ended before hooks or a person had decided"
ENDINGS: Final = {
    "the server exits": ("The MCP server has ended (exited with status 5)", SESSION_ENDED),
    "the server closes its output": ("The MCP server has closed its output", SESSION_ENDED),
    "the agent closes its input": ("The MCP server has ended (exited with status 0)", SESSION_ENDED),
    "TERM": ("hookproxy was ended by SIGTERM",) * 2,
    "INT": ("hookproxy was ended by SIGINT",) * 2,
    "HUP": ("hookproxy was ended by SIGHUP",) * 2,
    "TERM to the group": ("hookproxy was ended by SIGTERM",) * 2,
}
"""The reason if the call waits for the server, and if it waits for hooks after the response."""


async def in_phase(scene: Scene, phase: str, *server: str) -> Agent:
    """An agent whose call 1 is in this phase, where it stays."""
    gate = scene.gate("hook")
    stays = [group(f"{gate.report}; exec sleep 1000", matcher="mcp__.*__echo")]
    hooks = scene.hooks(
        PreToolUse=stays if phase == "judged" else "true", PostToolUse=stays if phase == "commented" else "true"
    )
    agent = scene.run(f"--audit={scene.folder / 'audit'}", hooks, server=[*SERVER, *server])
    await agent.initialize()
    await agent.send(call(1, "hold" if phase == "sent" else "echo"))
    await (agent.notified("notifications/holding") if phase == "sent" else gate.reached())
    return agent


async def end(agent: Agent, ending: str) -> None:
    if ending == "the server exits":
        await agent.send(notification("quit", status=5))
    elif ending == "the server closes its output":
        await agent.send(notification("close"))
    elif ending == "the agent closes its input":
        agent.end_input()
    elif ending.endswith("group"):
        os.killpg(agent.pid, signal.SIGTERM)
    else:
        agent.signal(signal.Signals[f"SIG{ending}"])


def audited(scene: Scene) -> dict[str, object]:
    """The audit record of the call."""
    records = [json.loads(line) for line in (scene.folder / "audit").read_text().splitlines()]
    [record] = [one for one in records if one.get("id") == 1]
    return {name: record[name] for name in ("result", "reason")}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("phase", PHASES)
async def test_the_model_people_and_the_audit_get_the_same_true_words(scene: Scene, phase: str, ending: str) -> None:
    known, result = PHASES[phase]
    by_server, by_hooks = ENDINGS[ending]
    waits_for_hooks = phase == "commented" or (phase == "judged" and ending == "the agent closes its input")
    text = f"{by_hooks if waits_for_hooks else by_server}. {known}"
    stays = ("--ignore-eof",) if ending == "the server closes its output" else ()
    agent = await in_phase(scene, phase, *stays)
    await end(agent, ending)
    response = await agent.answer(1)
    assert response["error"]["message"] == text
    await agent.ended()
    assert audited(scene) == {"result": result, "reason": text}
    tool = "hold" if phase == "sent" else "echo"
    assert f"hookproxy: a call of {tool} has ended early: {text}\n" in agent.standard_error()
    assert len(scene.calls_received()) == (phase != "judged")


@pytest.mark.parametrize("phase", PHASES)
async def test_the_audit_says_what_is_known_of_a_call_that_the_agent_cancels(scene: Scene, phase: str) -> None:
    agent = await in_phase(scene, phase)
    await agent.send(cancel(1))
    agent.end_input()
    assert b'"id":1,' not in (await agent.rest()).replace(b" ", b"")
    await agent.ended()
    expected = {"result": "cancelled", "reason": f"The agent cancelled this call. {PHASES[phase][0]}"}
    assert audited(scene) == expected
    assert len(scene.calls_received()) == (phase != "judged")


@pytest.mark.parametrize("phase", ["judged", "commented"])  # while it waits for the server, no code of ours runs for it
async def test_a_defect_says_what_is_known(scene: Scene, phase: str) -> None:
    # A hook cannot be started because there are no descriptors left: not a defect, but it ends a call like one.
    hooks = scene.hooks(**{"PreToolUse" if phase == "judged" else "PostToolUse": "true"})
    limit = 20 if program.portable else 18
    limited = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]
    agent = scene.start([*limited, HOOKPROXY, "run", f"--audit={scene.folder / 'audit'}", hooks, "--", *SERVER])
    await agent.initialize()
    message = (await agent.ask(call(1, "echo")))["error"]["message"]
    assert message.startswith("hookproxy could not complete this call (")
    assert message.endswith(PHASES[phase][0])
    agent.end_input()
    await agent.ended()
    assert audited(scene) == {"result": "error", "reason": message}


@pytest.mark.parametrize("limit", range(9, 21))
async def test_too_few_descriptors_are_named_with_their_limit_however_far_the_start_comes(
    scene: Scene, limit: int
) -> None:
    messages = (request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={}), call(1, "echo"))
    lines = scene.file("messages", b"".join(map(line_of, messages)).decode())
    limited = ["sh", "-c", f'cat {lines} | (ulimit -n {limit}; exec "$@")', "sh"]
    ended = scene.complete([*limited, HOOKPROXY, "run", scene.hooks(PreToolUse="true"), "--", "cat"])
    errors = ended.stderr.decode()
    assert "Traceback" not in errors
    assert "a defect of hookproxy" not in errors
    if ended.returncode == 2:
        error, hint = errors.splitlines()[-2:]
        assert error == "error: the system is short of resources: Too many open files"
        assert hint.startswith(f"hint: ulimit -n, the limit of open files, is {limit}: raise it")
    else:
        assert (ended.returncode, b'"id":1' in ended.stdout) == (0, True)
