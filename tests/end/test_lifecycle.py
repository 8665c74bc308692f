"""How a run begins and ends, whoever ends first: no message is lost, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from hookproxy.transports.channel import READ_SIZE
from tests.end.agent import (
    DISCOVER,
    HOOKPROXY,
    INITIALIZE,
    INITIALIZED,
    SERVER,
    STATELESS,
    Agent,
    Gate,
    Json,
    Scene,
    call,
    cancel,
    ends,
    group,
    idles,
    line_of,
    notification,
    request,
    specific,
    text_of,
)

SOON = 4.5  # seconds within which a run is over on a busy machine; one that waits for a hook or an agent takes 5
MEGABYTE = 1024 * 1024

SESSION = [
    INITIALIZE,
    INITIALIZED,
    request(1, "tools/list"),
    call(2, "echo", text="é ☃"),
    request("three", "ping"),
    call(4, "error", error={"code": -32001, "message": "no"}),
    call(5, "big", size=200_000),
    request(6, "resources/list"),
]


async def gone(scene: Scene, agent: Agent, *, silent: bool = True) -> int:
    """The status of a run that must end soon, with all its processes; `silent`: it sends no further message."""
    begun = time.monotonic()
    rest = await agent.rest() if agent.source >= 0 else b""
    status = await agent.ended()
    assert time.monotonic() - begun < SOON
    assert not (silent and rest)
    await scene.empty()
    return status


# --- a pipeline ---


@pytest.mark.parametrize("hooks", ["no hooks", "no matching hook", "a silent hook"])
async def test_a_pipeline_through_the_proxy_answers_what_the_server_alone_would_and_ends_so(
    scene: Scene, hooks: str
) -> None:
    options = {
        "no hooks": [],
        "no matching hook": ["--fail-closed", scene.hooks(PreToolUse=[group("exit 2", matcher="other")])],
        "a silent hook": [
            "--fail-closed",
            scene.hooks(PreToolUse="sleep 0.2", PostToolUse="true", PostToolUseFailure="true"),
        ],
    }[hooks]
    lines = shlex.join(json.dumps(message) for message in SESSION)
    server = shlex.join([*SERVER, "--status", "7"])
    proxy = shlex.join([HOOKPROXY, "run", *options, "--"])

    alone = scene.complete(["sh", "-c", f"printf '%s\\n' {lines} | {server}"])
    behind = scene.complete(["sh", "-c", f"printf '%s\\n' {lines} | {proxy} {server}"])
    assert behind.returncode == alone.returncode == 7
    told = behind.stderr.decode().splitlines()
    assert sum("tools not pinned" in line for line in told) == 1
    told = [line for line in told if "tools not pinned" not in line]
    assert [line.partition(": ")[2].partition(";")[0] for line in told] == {
        "no hooks": ["tool_server: no hook and no permission rule is configured, so no call is guarded"],
        "no matching hook": ["tool_server: no hooks on 5 tools"],
        "a silent hook": ["tool_server: 3 hooks on 5 of 5 tools"],
    }[hooks]
    if hooks == "a silent hook":  # judged calls may be overtaken
        assert sorted(behind.stdout.splitlines()) == sorted(alone.stdout.splitlines())
    else:
        assert behind.stdout == alone.stdout


@pytest.mark.parametrize("hooked", [False, True])
async def test_input_from_a_file_is_answered_into_a_file(scene: Scene, hooked: bool) -> None:
    asked, answered = scene.folder / "asked", scene.folder / "answered"
    asked.write_bytes(b"".join(map(line_of, SESSION)))
    options = [scene.hooks(PreToolUse="true")] if hooked else []
    proxy = shlex.join([HOOKPROXY, "run", *options, "--", *SERVER])
    assert scene.complete(["sh", "-c", f"{proxy} <'{asked}' >'{answered}'"]).returncode == 0
    ids = {json.loads(line)["id"] for line in answered.read_text().splitlines()}
    assert ids == {message["id"] for message in SESSION if "id" in message}


async def test_without_any_input_the_server_ends_at_once_and_so_do_we(scene: Scene) -> None:
    command = [HOOKPROXY, "run", "--fail-closed", scene.hooks(PreToolUse="true"), "--", *SERVER, "--status", "3"]
    ended = scene.complete(command, within=SOON)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, b"", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
async def test_closed_standard_streams_are_reported_and_nothing_is_started(scene: Scene, closed: str) -> None:
    command = shlex.join([HOOKPROXY, "run", "--", "touch", str(scene.folder / "started")])
    ended = scene.complete(["sh", "-c", f"{command} {closed}"])
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error: ") or "2>" in closed
    assert "started" not in os.listdir(scene.folder)


async def test_standard_error_that_is_closed_from_the_start_changes_nothing(scene: Scene) -> None:
    command = shlex.join([HOOKPROXY, "run", scene.hooks(PreToolUse="exit 1"), "--", *SERVER, "--status", "4"])
    line = shlex.quote(json.dumps(call(1, "echo")))
    ended = scene.complete(["sh", "-c", f"printf '%s\\n' {line} | {command} 2>&-"])
    assert ended.returncode == 4
    assert text_of(json.loads(ended.stdout)) == "{}"


async def test_environment_folder_arguments_and_standard_error_are_the_servers_own(scene: Scene) -> None:
    server = [*SERVER, "--instructions", "a b\n'c'", "--status", "0"]
    odd = {"ODD_ONE": "first\nsecond é", "LC_ALL": "C", "PYTHONUNBUFFERED": "1", "HOOK_X": "y"}
    alone = await scene.start(server, env=odd).ask(request(1, "process"))
    behind = await scene.run(scene.hooks(PreToolUse="true"), server=server, env=odd).ask(request(1, "process"))
    for answer in (alone, behind):
        del answer["result"]["pid"]
    assert behind == alone
    script = f"echo to standard error >&2; exec {shlex.join(SERVER)}"
    speaking = scene.run(server=["sh", "-c", script])
    await speaking.initialize()
    assert "to standard error\n" in speaking.standard_error()


async def test_standard_input_of_the_server_is_not_ours_and_no_stray_descriptor_reaches_it(scene: Scene) -> None:
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    alone = scene.start([sys.executable, "-S", "-E", "-c", script])
    behind = scene.run(server=[sys.executable, "-S", "-E", "-c", f"import sys; sys.stdout = sys.stderr; {script}"])
    expected = (await alone.line()).decode()
    assert await behind.ended() == 0
    unguarded = "hookproxy: python: no hook and no permission rule is configured, so no call is guarded"
    assert behind.standard_error().splitlines() in ([unguarded, expected.strip()], [expected.strip(), unguarded])


# --- how the server ends ---


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("status", [1, 255])
async def test_the_status_of_a_server_that_exits_is_ours(scene: Scene, status: int, hooked: bool) -> None:
    options = [scene.hooks(PreToolUse=[group("true", matcher="other")])] if hooked else []
    agent = scene.run(*options)
    await agent.initialize()
    await agent.send(call(1, "quit", status=status))
    assert await gone(scene, agent) == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGUSR1])
async def test_a_server_that_a_signal_ends_makes_ours_128_and_its_number(scene: Scene, number: signal.Signals) -> None:
    agent = scene.run()
    await agent.send(call(1, "killed", signal=number))
    assert await gone(scene, agent) == 128 + number


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("no-such-command-anywhere", 127, "no-such-command-anywhere"),
        ("/no/such/command", 127, "/no/such/command"),
        ("/etc/passwd", 126, "/etc/passwd"),
        ("/tmp", 126, "/tmp"),
    ],
)
async def test_a_server_that_cannot_be_started_is_reported_with_a_shells_status(
    scene: Scene, command: str, status: int, message: str
) -> None:
    agent = scene.run(server=[command])
    assert await gone(scene, agent) == status
    first, *rest = agent.standard_error().splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert all(line.startswith("hint: ") for line in rest)


@pytest.mark.parametrize("broken", ["--hooks=claude=/no/such/file", "--no-such-option", "--config=/no/such/file"])
async def test_what_cannot_be_configured_ends_the_server_before_it_receives_anything(scene: Scene, broken: str) -> None:
    agent = scene.run(broken)
    await agent.send(INITIALIZE)
    assert await gone(scene, agent) == 2
    assert "error: " in agent.standard_error()
    assert scene.received() == []


async def test_a_server_that_dies_with_calls_that_no_hook_concerns_just_ends_the_output(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PostToolUseFailure=[group("true", matcher="other")]))
    await agent.initialize()
    await agent.send(call(1, "hold"), call(2, "quit", status=5))
    holding = json.loads(await agent.line())
    assert holding["method"] == "notifications/holding"
    assert await gone(scene, agent) == 5


@pytest.mark.parametrize(
    ("tool", "arguments", "how", "status"),
    [
        ("quit", {"status": 5}, "exited with status 5", 5),
        ("quit", {"status": 143}, "exited with status 143", 143),  # shells do so for children that a signal ended
        ("quit", {"status": 255}, "exited with status 255", 255),  # `exit -1`
        ("killed", {"signal": 9}, "was ended by signal 9", 137),
    ],
)
async def test_a_judged_call_whose_server_dies_is_an_error_that_says_so_and_failure_hooks_run(
    scene: Scene, tool: str, arguments: Json, how: str, status: int
) -> None:
    recorded = scene.folder / "recorded"
    record = f"cat >'{recorded}'.$$; mv '{recorded}'.$$ '{recorded}'"  # both calls record at the same time
    agent = scene.run(scene.hooks(PreToolUse="true", PostToolUseFailure=record, PostToolUse="exit 2"))
    await agent.initialize()
    await agent.send(call(1, "hold"))
    await agent.notified("notifications/holding")
    await agent.send(call(2, tool, **arguments))
    for number in (1, 2):
        error = (await agent.answer(number))["error"]
        assert error["code"] == -32603
        assert how in error["message"]
    assert await gone(scene, agent) == status
    document = json.loads(recorded.read_text())
    assert document["hook_event_name"] == "PostToolUseFailure"
    assert document["is_interrupt"] is False
    assert document["error"]


@pytest.mark.parametrize("tool", ["quit", "quit_slowly"])
async def test_a_server_that_dies_while_a_hook_judges_a_call_ends_the_hook_and_the_call(
    scene: Scene, tool: str
) -> None:
    gate = scene.gate("judging")
    agent = scene.run(scene.hooks(PreToolUse=[group(gate.script, matcher="mcp__.*__echo")]))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.send(call(2, tool, status=6))
    assert "exited with status 6" in (await agent.answer(1))["error"]["message"]
    assert await gone(scene, agent) == 6
    assert [one["id"] for one in scene.calls_received()] == [2]


async def test_a_result_whose_server_dies_while_a_hook_comments_on_it_still_arrives_with_the_comment(
    scene: Scene,
) -> None:
    gate = scene.gate("commenting")
    comment = scene.prints(specific("PostToolUse", additionalContext="well done"))
    agent = scene.run(scene.hooks(PostToolUse=[group(f"{gate.script}; {comment}", matcher="mcp__.*__echo")]))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.send(call(2, "quit", status=6))
    gate.open()
    assert text_of(await agent.answer(1)) == "{}\nwell done"
    assert await gone(scene, agent) == 6


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_server_that_closes_its_output_but_does_not_exit_is_ended(scene: Scene, hooked: bool) -> None:
    options = [scene.hooks(PreToolUse="true")] if hooked else []
    agent = scene.run(*options, server=[*SERVER, "--status", "9"])
    await agent.initialize()
    await agent.send(call(1, "mute"))
    rest = [json.loads(line) for line in (await agent.rest()).splitlines()]
    assert await gone(scene, agent) == 9
    assert [message["error"]["code"] for message in rest] == ([-32603] if hooked else [])


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_grandchild_that_keeps_the_servers_output_open_does_not_delay_our_end(
    scene: Scene, hooked: bool
) -> None:
    options = [scene.hooks(PreToolUse=[group("true", matcher="other")])] if hooked else []
    agent = scene.run(*options)
    await agent.initialize()
    await agent.send(call(1, "orphan", status=8))
    assert await agent.ended(within=SOON) == 8
    assert await agent.rest() == b""
    assert len(scene.running("server.py")) == 1
    scene.kill("server.py")
    await scene.empty()


# --- how the agent ends ---


async def test_a_call_whose_hook_runs_at_the_end_of_input_is_judged_and_forwarded_and_gets_its_response(
    scene: Scene,
) -> None:
    gate = scene.gate("judging")
    comment = scene.prints(specific("PostToolUse", additionalContext="seen"))
    agent = scene.run(scene.hooks(PreToolUse=gate.script, PostToolUse=comment))
    await agent.initialize()
    await agent.send(call(1, "echo", a=1))
    await gate.reached()
    agent.end_input()
    gate.open()
    assert text_of(await agent.answer(1)) == '{"a": 1}\nseen'
    assert await gone(scene, agent) == 0


async def test_a_call_without_a_line_end_is_judged_as_well(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PreToolUse="echo never >&2; exit 2"))
    await agent.initialize()
    await agent.write(line_of(call(1, "echo")).rstrip(b"\n"))
    agent.end_input()
    assert "never" in text_of(await agent.answer(1))
    assert await gone(scene, agent) == 0
    assert scene.calls_received() == []


async def test_a_slow_response_after_the_end_of_input_is_waited_for(scene: Scene) -> None:
    gate = scene.gate("answering")
    script = (
        f"read line; echo asked >'{gate.arrival}'; read _ <'{gate.way}'; echo '{{\"id\":1,\"result\":{{}}}}'; exit 3"
    )
    agent = scene.run(server=["sh", "-c", script])
    await agent.send(request(1, "ping"))
    agent.end_input()
    await gate.reached()
    gate.open()
    assert await agent.rest() == b'{"id":1,"result":{}}\n'
    assert await gone(scene, agent) == 3


async def test_a_hook_that_hangs_at_the_end_of_input_gets_five_seconds(scene: Scene) -> None:
    gate = scene.gate("hanging")
    agent = scene.run(scene.hooks(PreToolUse=f"sleep 600 & {gate.script}"))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    agent.end_input()
    begun = time.monotonic()
    error = (await agent.answer(1))["error"]
    assert 4.5 < time.monotonic() - begun < 9
    assert "The tool was not run" in error["message"]
    assert await gone(scene, agent) == 0
    assert scene.calls_received() == []


async def test_a_post_hook_that_hangs_at_the_end_of_input_does_not_lose_the_response(scene: Scene) -> None:
    gate = scene.gate("hanging")
    agent = scene.run(scene.hooks(PostToolUse=gate.script))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    agent.end_input()
    assert "id" in await agent.answer(1)
    assert await gone(scene, agent) == 0


async def test_the_response_to_initialize_waits_for_session_start_at_the_end_of_input_too(scene: Scene) -> None:
    agent = scene.run(scene.hooks(SessionStart="sleep 0.5; echo be careful"))
    await agent.send(INITIALIZE)
    agent.end_input()
    assert (await agent.answer("init"))["result"]["instructions"] == "be careful"
    assert await gone(scene, agent) == 0


async def test_a_hook_that_runs_when_the_agent_no_longer_reads_is_ended_at_once(scene: Scene) -> None:
    gate = scene.gate("judging")
    agent = scene.run(scene.hooks(PreToolUse=f"sleep 600 & {gate.script}"))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    agent.go()
    assert await gone(scene, agent) == 0
    assert scene.calls_received() == []


async def test_an_agent_that_closes_only_its_reading_side_ends_the_run(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PreToolUse="true"), server=[*SERVER, "--status", "5"])
    await agent.initialize()
    os.close(agent.source)
    agent.source = -1
    assert await gone(scene, agent) == 5


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize(("stubborn", "status"), [(["--ignore-eof"], 143), (["--ignore-eof", "--ignore-signals"], 137)])
async def test_a_server_that_does_not_exit_is_ended_by_a_signal(
    scene: Scene, stubborn: Sequence[str], status: int, hooked: bool
) -> None:
    options = [scene.hooks(PreToolUse="true")] if hooked else []
    agent = scene.run(*options, server=[*SERVER, *stubborn])
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    agent.end_input()
    assert await gone(scene, agent) == status


async def test_a_listening_subscription_does_not_keep_the_run_alive(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PreToolUse="true"), server=["sh", "-c", "cat >/dev/null"])
    await agent.send(request(1, "subscriptions/listen", _meta=STATELESS))
    agent.end_input()
    assert await gone(scene, agent) == 0


# --- signals, in every phase of a call ---

PHASES = ["idle", "before", "forwarded", "after"]


async def in_phase(scene: Scene, phase: str, server: Sequence[str] = SERVER) -> tuple[Agent, Gate, int]:
    """A run with a call in this phase; the gate is where its hook waits."""
    gate = scene.gate(phase)
    events = {"before": "PreToolUse", "after": "PostToolUse"}
    hooks = {events[phase]: f"sleep 600 & {gate.script}"} if phase in events else {"PreToolUse": "true"}
    agent = scene.run(scene.hooks(**hooks), server=server)
    await agent.initialize()
    pid = (await agent.ask(request("pid", "process")))["result"]["pid"]
    if phase in events:
        await agent.send(call(1, "echo"))
        await gate.reached()
    elif phase == "forwarded":
        await agent.send(call(1, "hold"))
        await agent.notified("notifications/holding")
    return agent, gate, pid


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_is_passed_on_and_ends_everything(scene: Scene, phase: str, number: signal.Signals) -> None:
    agent, _, _ = await in_phase(scene, phase)
    agent.signal(number)
    assert await gone(scene, agent, silent=False) == 128 + number


@pytest.mark.parametrize("phase", PHASES)
async def test_a_signal_that_the_server_ignores_still_ends_it(scene: Scene, phase: str) -> None:
    agent, _, _ = await in_phase(scene, phase, [*SERVER, "--ignore-signals", "--ignore-eof"])
    agent.signal(signal.SIGTERM)
    assert await gone(scene, agent, silent=False) == 137


@pytest.mark.parametrize("phase", PHASES)
async def test_when_the_proxy_is_killed_the_server_exits_at_the_end_of_its_input(scene: Scene, phase: str) -> None:
    agent, gate, pid = await in_phase(scene, phase)
    agent.signal(signal.SIGKILL)
    assert await agent.ended(within=SOON) == -signal.SIGKILL
    await ends(pid, within=SOON)
    assert await agent.rest() == b""
    scene.kill("sleep 600")  # a hook in a session of its own, which nobody can end
    scene.kill(gate.way)
    await scene.empty()


@pytest.mark.parametrize("phase", PHASES)
async def test_when_the_agent_kills_our_process_group_the_server_is_killed_too(scene: Scene, phase: str) -> None:
    agent, gate, pid = await in_phase(scene, phase, [*SERVER, "--ignore-eof", "--ignore-signals"])
    os.killpg(agent.pid, signal.SIGKILL)
    assert await agent.ended(within=SOON) == -signal.SIGKILL
    await ends(pid, within=SOON)
    scene.kill(gate.way)  # the shell, and the one that has not become a sleep yet
    scene.kill("sleep 600")
    await scene.empty()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_when_the_server_is_killed_its_call_ends_and_so_do_we(
    scene: Scene, phase: str, number: signal.Signals
) -> None:
    agent, gate, pid = await in_phase(scene, phase)
    os.kill(pid, number)
    if phase == "after":
        gate.open()
        assert text_of(await agent.answer(1)) == "{}"
    elif phase != "idle":
        assert f"(was ended by signal {number.value})" in (await agent.answer(1))["error"]["message"]
    assert await agent.rest() == b""
    assert await agent.ended(within=SOON) == 128 + number
    if phase == "after":  # what a hook that ended by itself leaves behind is not ours to end
        scene.kill("sleep 600")
    await scene.empty()


AGENT = """
import os, signal, subprocess, sys
proxy = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in sys.stdin.buffer:
    proxy.stdin.write(line)
    proxy.stdin.flush()
    print(proxy.stdout.readline() if b'"id"' in line and b'"hold' not in line else "", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("phase", PHASES)
async def test_when_the_agent_is_killed_nothing_is_left(scene: Scene, phase: str, number: signal.Signals) -> None:
    gate = scene.gate(phase)
    events = {"before": "PreToolUse", "after": "PostToolUse"}
    hooks = {events[phase]: f"sleep 600 & {gate.script}"} if phase in events else {"PreToolUse": "true"}
    proxy = [HOOKPROXY, "run", scene.hooks(**hooks), "--", *SERVER]
    agent = scene.start([sys.executable, "-S", "-E", "-c", AGENT, *proxy])
    await agent.send(INITIALIZE)
    assert b"protocolVersion" in await agent.line()
    if phase in events:
        await agent.send(call(1, "echo"))
        await gate.reached()
    elif phase == "forwarded":
        await agent.send(call("hold", "hold"))
        await agent.line()
    agent.signal(number)
    await agent.ended()
    await scene.empty(within=SOON)


async def test_an_interrupt_from_the_terminal_reaches_proxy_and_server_and_ends_both(scene: Scene) -> None:
    agent, _, _ = await in_phase(scene, "forwarded")
    os.killpg(agent.pid, signal.SIGINT)
    assert await gone(scene, agent, silent=False) == 130


async def test_a_second_signal_during_the_shutdown_changes_nothing(scene: Scene) -> None:
    agent, _, _ = await in_phase(scene, "before", [*SERVER, "--ignore-signals", "--ignore-eof"])
    agent.signal(signal.SIGTERM)
    agent.signal(signal.SIGTERM)
    agent.signal(signal.SIGINT)
    assert await gone(scene, agent, silent=False) == 137


ENDING = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


@pytest.mark.parametrize("number", ENDING)
async def test_a_signal_during_start_up_leaves_nothing(scene: Scene, number: signal.Signals) -> None:
    gate = scene.gate("started")
    script = f"{gate.report}; exec {shlex.join(SERVER)}"
    agent = scene.run(scene.hooks(PreToolUse="true"), server=["sh", "-c", script])
    await gate.reached()  # the server runs before we have read our configuration
    agent.signal(number)
    await agent.rest()
    status = await agent.ended(within=SOON)
    assert status in (128 + number, -number)
    await scene.empty()


INTERRUPTED = """
import os, signal
start = os.posix_spawnp
def posix_spawnp(*arguments, **options):
    pid = start(*arguments, **options)
    os.kill(os.getpid(), signal.{name})
    return pid
os.posix_spawnp = posix_spawnp
"""


@pytest.mark.parametrize("number", ENDING)
async def test_a_signal_while_the_server_is_started_ends_it_as_well(scene: Scene, number: signal.Signals) -> None:
    first = Path(scene.file("sitecustomize.py", INTERRUPTED.format(name=number.name)))
    server = [*SERVER, "--ignore-signals", "--ignore-eof"]
    agent = scene.run(server=server, env={"PYTHONPATH": str(first.parent)})
    assert await agent.ended(within=SOON) == 128 + number
    await scene.empty()


# --- cancelling ---


async def test_cancelling_while_a_hook_runs_kills_its_tree_and_is_silent(scene: Scene) -> None:
    gate, failed = scene.gate("judging"), scene.gate("failed")
    hooks = scene.hooks(
        PreToolUse=[group(f"sleep 600 & {gate.script}", matcher="mcp__.*__echo")], PostToolUseFailure=failed.report
    )
    agent = scene.run(hooks)
    await agent.initialize()
    await agent.send(call(1, "echo"))
    hook = int(await gate.reached())
    await agent.send(cancel(1))
    await ends(hook, within=SOON)
    assert text_of(await agent.ask(call(2, "other"))) == "ran other"
    await scene.empty(word="sleep 600")
    agent.end_input()
    assert await gone(scene, agent) == 0
    assert agent.earlier_messages == []
    assert not failed.visited
    assert not [line for line in scene.received() if b'"echo"' in line or b"cancelled" in line]


async def test_a_call_and_its_cancellation_in_one_piece_do_nothing(scene: Scene) -> None:
    gate = scene.gate("judging")
    agent = scene.run(scene.hooks(PreToolUse=gate.script))
    await agent.initialize()
    await agent.send(call(1, "echo"), cancel(1), request(2, "ping"))
    await agent.answer(2)
    agent.end_input()
    assert await gone(scene, agent) == 0
    assert scene.calls_received() == []


async def test_cancelling_a_forwarded_call_reaches_the_server_and_failure_hooks_and_its_late_response_is_dropped(
    scene: Scene,
) -> None:
    failed = scene.gate("failed")
    recorded = scene.folder / "recorded"
    agent = scene.run(scene.hooks(PreToolUse="true", PostToolUseFailure=f"cat >'{recorded}'; {failed.report}"))
    await agent.initialize()
    await agent.send(call(1, "hold"))
    await agent.notified("notifications/holding")
    await agent.send(cancel(1))
    await failed.reached()
    assert json.loads(recorded.read_text())["is_interrupt"] is True
    await agent.send(notification("release", requestId=1))
    await agent.ask(request(2, "ping"))
    agent.end_input()
    assert await agent.rest() == b""
    assert agent.earlier_messages == []
    assert await gone(scene, agent) == 0
    assert any(b"notifications/cancelled" in line for line in scene.received())


async def test_cancelling_while_a_hook_comments_lets_it_finish_and_drops_the_result(scene: Scene) -> None:
    gate, done = scene.gate("commenting"), scene.gate("done")
    agent = scene.run(scene.hooks(PostToolUse=f"{gate.script}; {done.report}"))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.send(cancel(1), request(2, "ping"))
    await agent.answer(2)
    gate.open()
    await done.reached()
    agent.end_input()
    assert await gone(scene, agent) == 0


# --- a probe ---


@pytest.mark.parametrize("ending", ["end of input", "signal", "both"])
async def test_a_probe_starts_no_session_and_ends_at_once(scene: Scene, ending: str) -> None:
    gate = scene.gate("session")
    agent = scene.run(scene.hooks(SessionStart=gate.report, SessionEnd=gate.report, PreToolUse="true"))
    assert "result" in await agent.ask(DISCOVER)
    if ending != "signal":
        agent.end_input()
    if ending != "end of input":
        agent.signal(signal.SIGTERM)
    assert await agent.rest() == b""
    assert await agent.ended(within=SOON) in ((0,) if ending == "end of input" else (0, 143))
    await scene.empty()
    assert not gate.visited


# --- peers that do not read ---


async def test_an_agent_that_stops_reading_costs_no_memory_and_does_not_stop_the_other_direction(
    scene: Scene,
) -> None:
    stuck, touched = scene.gate("stuck"), scene.gate("touched")
    agent = scene.run(scene.hooks(PreToolUse=[group("true", matcher="other")]), env={"COVERAGE_PROCESS_CONFIG": ""})
    await agent.initialize()
    size = 64 * MEGABYTE
    await agent.send(call(1, "flood", size=size, stuck=stuck.arrival))
    assert int(await stuck.reached()) < 2 * MEGABYTE  # all that is kept between the server and the agent
    await agent.send(request(2, "touch", fifo=touched.arrival))
    await touched.reached()
    assert agent.peak_memory < 60 * MEGABYTE
    flood = 0
    while flood < size:
        flood += len(await agent.line()) + 1
    await stuck.reached()
    assert agent.peak_memory < 60 * MEGABYTE
    agent.end_input()
    assert await gone(scene, agent, silent=False) == 0


async def test_judged_results_that_nobody_reads_are_bounded_too(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PostToolUse="true"), env={"COVERAGE_PROCESS_CONFIG": ""})
    await agent.initialize()
    results = 100
    await agent.send(*[call(number, "big", size=MEGABYTE) for number in range(results)])
    with anyio.move_on_after(1):  # as far as it gets
        await ends(agent.pid)
    assert len(scene.calls_received()) < results
    assert agent.peak_memory < 60 * MEGABYTE
    for number in range(results):
        assert len(text_of(await agent.answer(number))) == MEGABYTE


async def test_a_server_that_stops_reading_costs_no_memory_and_its_output_is_still_read(scene: Scene) -> None:
    say, listen = scene.gate("say"), scene.gate("listen")
    agent = scene.run(scene.hooks(PreToolUse=[group("true", matcher="other")]), env={"COVERAGE_PROCESS_CONFIG": ""})
    await agent.initialize()
    await agent.send(call(1, "deaf", say=say.way, listen=listen.way))
    await agent.notified("notifications/deaf")
    line = line_of(notification("notifications/flood", text="x" * 4000))
    block = line * 16
    written, rest = 0, b""
    with anyio.move_on_after(PATIENCE_TO_FILL) as filling:
        while True:
            rest = rest or block
            taken = agent.write_what_fits(rest)
            written, rest = written + taken, rest[taken:]
            if not taken:
                filling.deadline = anyio.current_time() + 0.3  # nothing taken for so long: it is full
                await anyio.wait_writable(agent.to)
                filling.deadline = anyio.current_time() + PATIENCE_TO_FILL
            assert written < 2 * MEGABYTE
    say.open()
    assert (await agent.notified("notifications/said"))["params"] == {"text": "\n"}
    assert agent.peak_memory < 60 * MEGABYTE
    listen.open()
    await agent.send(rest)
    assert text_of(await agent.answer(1)) == "listening again"
    await agent.ask(request(2, "ping"))
    floods = [line for line in scene.received() if b"flood" in line]
    assert len(floods) == (written + len(rest)) // len(line)


PATIENCE_TO_FILL = 5.0


async def test_an_agent_that_stopped_reading_does_not_delay_the_end_after_a_signal(scene: Scene) -> None:
    stuck = scene.gate("stuck")
    agent = scene.run(scene.hooks(PreToolUse="true"))
    await agent.initialize()
    await agent.send(call(1, "flood", size=64 * MEGABYTE, stuck=stuck.arrival))
    await stuck.reached()
    agent.signal(signal.SIGTERM)
    assert await agent.ended(within=SOON) == 143
    scene.kill("server.py")  # its child
    await scene.empty()


async def test_pending_calls_beyond_the_limit_stop_the_agent_and_not_us(scene: Scene) -> None:
    gate = scene.gate("judging")
    config = scene.config("max_message_bytes = 100000\n")
    agent = scene.run(config, scene.hooks(PreToolUse=gate.script))
    await agent.initialize()
    calls = [call(number, "other", text="x" * 30_000) for number in range(20)]
    block = b"".join(map(line_of, calls))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.write, block)
        arrived = 0
        while arrived < len(calls):
            hooks = (await gate.reached()).split()
            assert len(hooks) <= (100_000 + READ_SIZE) // 30_000 + 1  # one read may complete several lines
            for _ in hooks:
                gate.open()
            arrived += len(hooks)
    for number in range(20):
        assert text_of(await agent.answer(number)) == "ran other"


# --- long lines ---


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_line_of_forty_megabytes_passes_in_both_directions(scene: Scene, hooked: bool) -> None:
    options = ["--fail-closed", scene.hooks(PreToolUse=[group("exit 2", matcher="other")])] if hooked else []
    agent = scene.run(*options)
    await agent.initialize()
    line = line_of(call(1, "echo", text="x" * (40 * MEGABYTE)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.write, line)
        answer = await agent.line()
    assert len(answer) > 40 * MEGABYTE
    assert scene.received()[-1] == line.rstrip(b"\n")
    assert text_of(json.loads(answer)) == json.dumps({"text": "x" * (40 * MEGABYTE)})


async def test_a_judged_line_of_forty_megabytes_is_judged_and_commented_whole(scene: Scene) -> None:
    count = "wc -c >&2; exit 2"
    agent = scene.run(scene.hooks(PreToolUse="cat >/dev/null", PostToolUse=count))
    await agent.initialize()
    line = line_of(call(1, "echo", text="x" * (40 * MEGABYTE)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.write, line)
        answer = await agent.answer(1)
    echoed = answer["result"]["content"][0]["text"]
    assert len(echoed) > 40 * MEGABYTE  # feedback would make it longer than some agents read: it stays away
    assert scene.received()[-1] == line.rstrip(b"\n")
    assert "feedback left out" in agent.standard_error()


@pytest.mark.parametrize("limit", [5000, 100_000])
async def test_a_message_beyond_the_limit_is_refused_and_the_proxy_lives(scene: Scene, limit: int) -> None:
    agent = scene.run(scene.config(f"max_message_bytes = {limit}\n"), scene.hooks(PreToolUse="true"))
    await agent.initialize()
    refused = await agent.ask(call(7, "echo", text="x" * limit))
    assert refused["error"]["code"] == -32600
    assert "max_message_bytes" in refused["error"]["message"]
    withheld = await agent.ask(call(8, "big", size=limit))
    assert "max_message_bytes" in withheld["error"]["message"]
    await agent.send(notification("notifications/long", text="x" * limit))
    assert text_of(await agent.ask(call(9, "echo"))) == "{}"
    assert [one["id"] for one in scene.calls_received()] == [8, 9]
    assert not any(b"notifications/long" in line for line in scene.received())


async def test_without_hooks_a_message_beyond_the_limit_passes(scene: Scene) -> None:
    agent = scene.run(scene.config("max_message_bytes = 5000\n"))
    await agent.initialize()
    assert len(text_of(await agent.ask(call(7, "echo", text="x" * 60_000)))) > 60_000
    assert text_of(await agent.ask(call(9, "echo"))) == "{}"


# --- an idle proxy ---


@pytest.mark.parametrize("busy_before", [False, True])
async def test_an_idle_proxy_uses_no_cpu(scene: Scene, busy_before: bool) -> None:
    agent = scene.run(scene.hooks(PreToolUse="true", PostToolUse="true"))
    await agent.initialize()
    if busy_before:
        for number in range(5):
            await agent.ask(call(number, "echo"))
    await idles(agent)


async def test_a_proxy_that_waits_for_a_hook_uses_no_cpu(scene: Scene) -> None:
    gate = scene.gate("judging")
    agent = scene.run(scene.hooks(PreToolUse=gate.script))
    await agent.initialize()
    await agent.send(call(1, "echo"))
    await gate.reached()
    await idles(agent)
    gate.open()
    await agent.answer(1)


# --- when we are stopped or busy ---


@pytest.mark.parametrize("denies", [True, False])
async def test_a_hook_that_ended_in_time_while_we_were_stopped_did_not_time_out(scene: Scene, denies: bool) -> None:
    gate = scene.gate("hook")
    timeout = 3  # seconds in which the hook starts and reports, on a busy machine too
    hook = {"type": "command", "command": f"{gate.script}; echo no >&2; exit {2 * denies}", "timeout": timeout}
    agent = scene.run(scene.hooks(PreToolUse=[{"hooks": [hook]}]))
    await agent.initialize()
    await agent.send(call(1, "echo", text="danger"))
    pid = int(await gate.reached())
    over = anyio.current_time() + timeout + 0.1
    agent.signal(signal.SIGSTOP)
    gate.open()
    await ends(pid)
    await anyio.sleep_until(over)  # nothing shows from outside that its time is over
    agent.signal(signal.SIGCONT)
    text = text_of(await agent.answer(1))
    assert ("no" in text and "Blocked" in text) == denies
    assert len(scene.calls_received()) == (not denies)
    assert "timed out" not in agent.standard_error()
