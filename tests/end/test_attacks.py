"""What an adversarial review found: servers that cheat, agents that cheat, and rare conditions."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable

import anyio
import pytest

from tests.end.agent import (
    HOOKPROXY,
    INITIALIZE,
    PATIENCE,
    SERVER,
    Agent,
    Json,
    Scene,
    call,
    cancel,
    group,
    idles,
    notification,
    request,
    specific,
    text_of,
)

SECRET = {"content": [{"type": "text", "text": "SECRET"}]}
LONG = "x" * 100_000  # more than is assembled when no hook must see the whole line
MEGABYTE = 1024 * 1024


def redacting(scene: Scene) -> str:
    """Hooks that hide all output of tools."""
    return scene.hooks(PostToolUse=scene.prints(specific("PostToolUse", updatedMCPToolOutput="REDACTED")))


def rewriting(scene: Scene, **arguments: object) -> str:
    """Hooks that replace the arguments of every call with these."""
    return scene.hooks(PreToolUse=scene.prints(specific("PreToolUse", updatedInput=arguments)))


def listing(scene: Scene, tools: bytes) -> list[str]:
    """The command line of a server that lists these tools."""
    file = scene.folder / "tools"
    file.write_bytes(tools)
    return [*SERVER, "--tools", str(file)]


def answer_line(number: object, result: Json) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n"


async def begun(scene: Scene, *options: str, server: list[str] | None = None) -> Agent:
    agent = scene.run("--name=lean", *options, server=server or SERVER)
    await agent.initialize()
    return agent


async def lines_until(agent: Agent, number: str) -> list[bytes]:
    """Send a ping, and return all lines before its response, as they come."""
    await agent.send(request(number, "ping"))
    lines: list[bytes] = []
    while f'"id": "{number}"'.encode() not in (line := await agent.line()):
        assert line, agent.standard_error()
        lines.append(line)
    return lines


async def until(condition: Callable[[], bool], within: float = PATIENCE) -> None:
    with anyio.fail_after(within):
        while not condition():  # noqa: ASYNC110  # what other processes do
            await anyio.sleep(0.01)


# --- responses that must not pass unjudged ---


@pytest.mark.parametrize("late", ["short", "long", "in a batch", "long, in a batch"])
@pytest.mark.parametrize("asked", ["lines", "batches", "one batch"])
async def test_the_late_response_to_a_cancelled_judged_call_is_not_the_response_to_a_request_that_takes_its_id(
    scene: Scene, asked: str, late: str
) -> None:
    agent = await begun(scene, redacting(scene))
    await agent.send(call(1, "hold"))
    await agent.notified("notifications/holding")
    ending, reuse = cancel(1), request(1, "ping")
    if asked == "lines":
        await agent.send(ending, reuse)
    elif asked == "batches":
        await agent.send(json.dumps([ending]).encode() + b"\n", json.dumps([reuse]).encode() + b"\n")
    else:
        await agent.send(json.dumps([ending, reuse]).encode() + b"\n")
    pad = LONG if "long" in late else ""
    await agent.send(notification("release", requestId=1, pad=pad, batch="batch" in late))
    lines = await lines_until(agent, "sync")
    assert b"released" not in b"".join(lines)
    assert len(lines) == 1  # the reuse is refused, and nothing else is sent
    assert "error" in json.loads(lines[0])
    assert not any(b'"ping"' in line and b'"id": 1,' in line for line in scene.received())
    if asked == "one batch":
        return  # refused as a whole: call 1 has not been cancelled
    assert "error" in await agent.ask(reuse), "the server may answer twice"


async def test_a_long_line_that_the_server_began_before_a_judged_call_is_judged_if_it_ends_as_its_answer(
    scene: Scene,
) -> None:
    agent = await begun(scene, redacting(scene))
    await agent.send(notification("raw", text='{"jsonrpc":"2.0","pad":"' + LONG))
    ending = '","id":7,"result":' + json.dumps(SECRET) + "}\n"
    answer = await agent.ask(call(7, "raw", text=ending))
    assert "SECRET" not in json.dumps(answer)
    assert text_of(answer) == "REDACTED"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"error":null,"id":7,"jsonrpc":"2.0","result":{"content":[],"pad":"' + LONG + '"}}\n', None),
        ('{"jsonrpc":"2.0","result":{"content":[],"pad":"' + LONG + '"},"id":7,"zz":1}\n', None),
        ('{"jsonrpc":"2.0","id":7,"result":{"content":[],"pad":"' + LONG + '"}}', 0),
        ('{"jsonrpc":"2.0","id":7,"result":{"content":[],"pad":"' + LONG, 3),
    ],
    ids=["id in the middle", "id near the end", "no line end", "cut"],
)
async def test_a_long_response_that_no_hook_sees_is_reported_once(scene: Scene, text: str, status: int | None) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="true"))
    await agent.send(call(7, "raw", text=text, **({} if status is None else {"status": status})))
    answer = await agent.answer(7)
    assert ("error" in answer and answer["error"] is not None) is (status == 3), "half an answer is none"
    if status is None:
        assert text_of(await agent.ask(call(7, "echo"))) == "{}", "the id is free again"
    agent.end_input()
    assert b'"id":7' not in (await agent.rest()).replace(b" ", b"")
    await agent.ended()


UNCLEAR = '{"jsonrpc":"2.0","pad":"'
ANSWER = '{"jsonrpc":"2.0","id":2,"result":{},"pad":"'


async def begins_long_line(agent: Agent, beginning: str = UNCLEAR) -> None:
    """The server must still respond, and begins a long line of which the agent gets the beginning."""
    await agent.send(request(2, "raw", text=beginning + LONG))
    with anyio.fail_after(PATIENCE):
        while len(agent._partial) < len(LONG):
            assert await agent._read()


async def test_a_judged_call_is_forwarded_only_after_a_long_line_on_its_way_has_ended(scene: Scene) -> None:
    gate = scene.gate("asked")
    post = scene.prints(specific("PostToolUse", updatedMCPToolOutput="REDACTED"))
    agent = await begun(scene, scene.hooks(PreToolUse=gate.report, PostToolUse=post))
    await begins_long_line(agent)
    await agent.send(call(7, "echo"))
    await gate.reached()
    await anyio.sleep(0.3)
    await agent.send(notification("other"))
    await until(lambda: any(b'"other"' in line for line in scene.received()))
    assert scene.calls_received() == []
    await agent.send(notification("raw", text='"}\n'))
    assert text_of(await agent.answer(7)) == "REDACTED"
    assert len(scene.calls_received()) == 1


@pytest.mark.parametrize("beginning", [UNCLEAR, ANSWER], ids=["id last", "id twice"])
async def test_a_long_line_on_its_way_that_ends_with_the_guessed_id_of_a_pending_call_is_not_its_response(
    scene: Scene, beginning: str
) -> None:
    gate = scene.gate("asked")
    post = scene.prints(specific("PostToolUse", updatedMCPToolOutput="REDACTED"))
    agent = await begun(scene, scene.hooks(PreToolUse=gate.script, PostToolUse=post))
    await begins_long_line(agent, beginning)
    await agent.send(call(7, "echo"))
    await gate.reached()
    await agent.send(notification("raw", text='","id":7,"result":' + json.dumps(SECRET) + "}\n"))
    await until(lambda: any(b"SECRET" in line for line in scene.received()))
    broken = await agent.line()
    assert b"SECRET" not in broken
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    gate.open()
    assert text_of(await agent.answer(7)) == "REDACTED"


@pytest.mark.parametrize("kind", ["task", "input_required"])
async def test_content_that_looks_unfinished_is_judged_in_the_era_without_unfinished_results(
    scene: Scene, kind: str
) -> None:
    agent = await begun(scene, redacting(scene))
    answer = await agent.ask(call(1, "reply", result={"resultType": kind, **SECRET}))
    assert "SECRET" not in json.dumps(answer)
    assert text_of(answer) == "REDACTED"


@pytest.mark.parametrize(("first", "second"), [("0", "-0"), ("9007199254740992", "9007199254740993")])
async def test_an_id_that_is_in_use_for_a_reader_of_doubles_is_refused(scene: Scene, first: str, second: str) -> None:
    agent = await begun(scene, redacting(scene))
    line = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"hold","arguments":{}}}\n'
    await agent.send((line % first).encode())
    await agent.notified("notifications/holding")
    await agent.send((line % second).encode())
    answer = json.loads(await agent.line())
    assert answer["error"]
    assert answer["id"] == int(second)
    assert len(scene.calls_received()) == 1
    await agent.send(notification("release", requestId=int(first)))
    assert text_of(await agent.answer(int(first))) == "REDACTED"


async def test_a_server_that_spells_the_id_7_as_7_0_still_responds(scene: Scene) -> None:
    agent = scene.run(redacting(scene), server=[*SERVER, "--float-ids"])
    await agent.ask(request(1, "initialize", **INITIALIZE["params"]))
    assert text_of(await agent.ask(call(7, "echo"))) == "REDACTED"
    assert (await agent.ask(request(8, "ping")))["result"]["method"] == "ping"


FOLDED = json.dumps({"jsonrpc": "2.0", "ID": 1, "Result": SECRET})


async def test_what_only_readers_that_ignore_case_take_for_a_response_is_withheld_while_the_response_is_pending(
    scene: Scene,
) -> None:
    agent = await begun(scene, redacting(scene))
    await agent.send(call(1, "raw", text=FOLDED + "\n"))
    line = await agent.line()
    assert b"SECRET" not in line
    assert "withheld" in json.loads(line)["error"]["message"]
    assert "withheld" in agent.standard_error()
    assert await lines_until(agent, "sync") == []


async def test_such_an_answer_in_a_batch_is_dropped_and_the_call_goes_on(scene: Scene) -> None:
    agent = await begun(scene, redacting(scene))
    await agent.send(call(1, "raw", text=f"[{FOLDED}]\n"))
    await until(lambda: "dropped" in agent.standard_error())
    assert await lines_until(agent, "sync") == []
    await agent.send(notification("release", requestId=1))
    assert text_of(await agent.answer(1)) == "REDACTED"


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize(
    "response",
    [
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"SECRET"}}',
        '{"jsonrpc":"2.0","id":null,"result":{"content":[{"type":"text","text":"SECRET"}]}}',
        '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"SECRET"}]}}',
        '[{"jsonrpc":"2.0","id":null,"result":{"x":"SECRET"}}]',
    ],
)
async def test_a_response_without_an_id_answers_nothing_and_is_dropped(
    scene: Scene, waiting: bool, response: str
) -> None:
    agent = await begun(scene, redacting(scene))
    if waiting:
        await agent.send(call(1, "hold"))
        await agent.notified("notifications/holding")
    await agent.send(notification("raw", text=response + "\n"))
    await until(lambda: "dropped" in agent.standard_error())
    assert await lines_until(agent, "sync") == []
    if waiting:
        await agent.send(notification("release", requestId=1))
        assert text_of(await agent.answer(1)) == "REDACTED"


@pytest.mark.parametrize("depth", [3000, 200_000])
async def test_without_hooks_json_of_any_depth_passes_from_the_server(scene: Scene, depth: int) -> None:
    agent = await begun(scene)
    line = '{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":' + "[" * depth + "]" * depth + "}}"
    await agent.send(call(1, "raw", text=line + "\n"))
    assert await agent.line() == line.encode()
    assert await lines_until(agent, "sync") == []


# --- what hooks must be able to read, and what must not take too long ---


@pytest.mark.parametrize(
    "annotations",
    [b'{"title":' + b"9" * 5000 + b"}", b'{"title":"\xff"}', b'{"title":"\\ud800"}', b"[" * 900 + b"]" * 900, b"7"],
    ids=["number", "bytes", "surrogate", "depth", "kind"],
)
async def test_annotations_that_a_guard_could_not_read_do_not_reach_it(scene: Scene, annotations: bytes) -> None:
    seen = scene.folder / "seen"
    guard = scene.file(
        "guard.py",
        f"import json, sys\ntext = sys.stdin.buffer.read()\nopen({str(seen)!r}, 'wb').write(text)\n"
        "sys.exit(2 if json.loads(text)['tool_name'] == 'mcp__lean__secret' else 0)\n",
    )
    tools = b'[{"name":"secret","inputSchema":{"type":"object"},"annotations":' + annotations + b"}]"
    hooks = scene.hooks(PreToolUse=shlex.join([sys.executable, guard]))
    agent = await begun(scene, hooks, server=listing(scene, tools))
    await agent.send(request(5, "tools/list"))
    await lines_until(agent, "sync")
    assert "Blocked by the PreToolUse hook" in text_of(await agent.ask(call(6, "secret")))
    assert scene.calls_received() == []
    document = json.loads(seen.read_bytes())
    assert annotations == b"7" or annotations not in seen.read_bytes()
    assert document.get("annotations", {}) in ({}, {"title": "\ufffd"})


async def test_a_number_that_python_cannot_read_is_refused_in_arguments(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="true"))
    await agent.send(
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"n":%b}}}\n'
        % (b"9" * 4301)
    )
    answer = await agent.answer(5)
    assert "number" in answer["error"]["message"]
    assert scene.calls_received() == []


async def test_a_duplicate_key_behind_100_000_keys_is_found_and_refused_soon(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="true"))
    keys = ",".join(f'"k{n}":1' for n in [*range(100_000), 99_999])
    line = '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{' + keys + "}}}\n"
    asked = time.monotonic()
    await agent.send(line.encode())
    assert "k99999" in (await agent.answer(5))["error"]["message"]
    assert time.monotonic() - asked < 15  # a comparison of each key with each would take minutes
    assert scene.calls_received() == []


async def test_a_pattern_that_takes_for_ever_delays_nothing(scene: Scene) -> None:
    schema = b'{"type":"object","properties":{"name":{"type":"string","pattern":"^(a+)+$"}}}'
    tools = b'[{"name":"echo","inputSchema":' + schema + b"}]"
    agent = await begun(scene, rewriting(scene, name="a" * 40 + "!"), server=listing(scene, tools))
    await agent.ask(request(1, "tools/list"))
    await agent.send(call(2, "echo", name="b"))
    for number in range(10, 20):
        asked = time.monotonic()
        await agent.ask(request(number, "ping"))
        assert time.monotonic() - asked < 5
        await anyio.sleep(0.05)
    assert json.loads(text_of(await agent.answer(2))) == {"name": "a" * 40 + "!"}


async def test_a_property_that_is_named_pattern_is_checked_like_any_other(scene: Scene) -> None:
    schema = b'{"type":"object","properties":{"pattern":{"type":"string","pattern":"^x"}},"required":["pattern"]}'
    tools = b'[{"name":"echo","inputSchema":' + schema + b"}]"
    agent = await begun(scene, rewriting(scene, pattern=7), server=listing(scene, tools))
    await agent.ask(request(1, "tools/list"))
    assert json.loads(text_of(await agent.ask(call(2, "echo", pattern="x")))) == {"pattern": "x"}
    assert "pattern: 7 is not of type 'string'" in agent.standard_error()


# --- beginnings and ends ---


@pytest.mark.parametrize("delay", [0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_right_after_the_start_leaves_no_server_behind(
    scene: Scene, number: signal.Signals, delay: float
) -> None:
    gate = scene.gate("started")
    agent = scene.run(scene.hooks(PreToolUse="true"), server=["sh", "-c", f"{gate.report}; exec sleep 1000"])
    await gate.reached()
    await anyio.sleep(delay)
    agent.signal(number)
    assert await agent.ended() == 128 + number, agent.standard_error()
    await scene.empty()


async def test_a_failed_background_hook_is_reported(scene: Scene) -> None:
    config = scene.config('[[hooks.PreToolUse]]\nname = "aside"\nasync = true\ncommand = "exit 3"\n')
    agent = await begun(scene, config)
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    await until(lambda: "aside" in agent.standard_error())
    assert "3" in agent.standard_error().partition("aside")[2]


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
async def test_a_background_hook_finishes_at_the_end_of_input(scene: Scene, event: str) -> None:
    done = scene.folder / "done"
    hooks = scene.hooks(**{event: [group(f"sleep 0.2; echo done >'{done}'", in_background=True)]})
    agent = scene.run(hooks)
    await agent.send(INITIALIZE, call(1, "echo"))
    agent.end_input()
    assert b'"id": 1' in await agent.rest()
    assert await agent.ended() == 0
    assert done.read_text() == "done\n"


async def test_our_error_is_a_line_of_its_own_although_the_server_died_in_the_middle_of_one(scene: Scene) -> None:
    gate = scene.gate("asked")
    agent = await begun(scene, scene.hooks(PreToolUse=gate.report))
    await begins_long_line(agent)
    await agent.send(call(6, "echo"))
    await gate.reached()
    await anyio.sleep(0.2)
    await agent.send(notification("quit", status=3))
    lines = (await agent.rest()).split(b"\n")
    assert lines[0] == b'{"jsonrpc":"2.0","pad":"' + LONG.encode() + b"!", "nobody takes it for a message"
    error = json.loads(lines[1])
    assert error["id"] == 6
    assert error["error"]["message"].startswith(
        "The MCP server has ended (exited with status 3). The call was not sent"
    )
    assert scene.calls_received() == []
    assert lines[2:] == [b""]
    assert await agent.ended() == 3


async def test_half_a_response_of_a_server_that_died_is_an_error(scene: Scene) -> None:
    agent = await begun(scene, redacting(scene))
    await agent.send(call(1, "raw", text=answer_line(1, SECRET)[:-4], status=3))
    lines = (await agent.rest()).split(b"\n")
    assert json.loads(lines[0])["error"]
    assert lines[1:] == [b""]
    assert await agent.ended() == 3


async def test_status_255_of_the_server_is_ours(scene: Scene) -> None:
    agent = await begun(scene, server=[*SERVER, "--status", "255"])
    agent.end_input()
    assert await agent.ended() == 255
    assert "signal" not in agent.standard_error()


async def test_a_call_without_initialize_is_answered_although_session_start_has_a_hook(scene: Scene) -> None:
    agent = scene.run(scene.hooks(SessionStart="echo hello", PreToolUse="true"))
    answer = await agent.ask(call(1, "echo", text="é"))
    assert json.loads(text_of(answer).partition("\n")[0]) == {"text": "é"}
    assert "hello" in text_of(answer)


async def test_standard_error_that_is_closed_from_the_start_causes_no_output_and_no_work(scene: Scene) -> None:
    command = shlex.join([HOOKPROXY, "run", scene.hooks(PreToolUse="exit 1", PostToolUse="exit 3"), "--", *SERVER])
    agent = scene.start(["sh", "-c", f"exec {command} 2>&-"])
    await agent.initialize()
    await agent.send(b"nonsense\n")
    assert (await agent.message())["error"]
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    await agent.send(notification("raw", text="noise\n"))
    assert await lines_until(agent, "sync") == []
    await idles(agent)
    agent.end_input()
    assert await agent.ended() == 0


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_deleted_working_directory_changes_nothing(scene: Scene, hooked: bool) -> None:
    gone = scene.folder / "gone"
    gone.mkdir()
    options = [redacting(scene), "--audit", str(scene.folder / "audit")] if hooked else []
    command = shlex.join([HOOKPROXY, "run", *options, "--", *SERVER])
    agent = scene.start(["sh", "-c", f"cd '{gone}' && rmdir '{gone}' && exec {command}"])
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == ("REDACTED" if hooked else "{}")
    agent.end_input()
    assert await agent.ended() == 0


# --- shortage of resources ---


async def test_guards_run_although_descriptors_are_few(scene: Scene) -> None:
    command = shlex.join([HOOKPROXY, "run", scene.hooks(PreToolUse="sleep 0.1; exit 2"), "--", *SERVER])
    agent = scene.start(["sh", "-c", f"ulimit -n 256; exec {command}"])
    await agent.initialize()
    await agent.send(*(call(number, "echo") for number in range(100)))
    for number in range(100):
        assert "Blocked by the PreToolUse hook" in text_of(await agent.answer(number))
    assert scene.calls_received() == []


async def test_a_required_audit_on_a_full_disk_refuses_all_but_the_first_and_keeps_memory_bounded(
    scene: Scene,
) -> None:
    hooks = '[[hooks.PreToolUse]]\ncommand = "true"\n'
    agent = await begun(scene, scene.config(hooks + '[audit]\nfile = "/dev/full"\nrequired = true\n'))
    pad = "y" * (2 * MEGABYTE)
    await agent.ask(call(1, "echo", text="first"))
    for number in range(2, 42):
        answer = await agent.ask(call(number, "echo", text=pad))
        assert answer["result"]["isError"] is True
        assert "tool was not run" in text_of(answer)
        assert "audit" in text_of(answer)
        if number == 6:
            before = agent.peak_memory
    assert len(scene.calls_received()) <= 1
    assert agent.peak_memory - before < 8 * MEGABYTE
    assert "No space left" in agent.standard_error()


async def test_a_name_that_is_not_utf_8_can_be_audited(scene: Scene) -> None:
    audit = scene.folder / "audit"
    agent = scene.run(
        redacting(scene), "--name", os.fsdecode(b"caf\xe9"), "--audit", str(audit), env={"LC_ALL": "C.UTF-8"}
    )
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == "REDACTED"
    agent.end_input()
    assert await agent.ended() == 0
    record = json.loads(audit.read_text())
    assert record["server"].startswith("caf")
    assert record["result"] == "ok"
    assert "Traceback" not in agent.standard_error()


async def test_an_audit_file_that_is_removed_meanwhile_is_created_again(scene: Scene) -> None:
    audit = scene.folder / "audit"
    agent = await begun(scene, redacting(scene), "--audit", str(audit))
    for number in (1, 2, 3):
        await agent.ask(call(number, "echo"))
        await until(audit.exists)
        assert [json.loads(line)["id"] for line in audit.read_text().splitlines()] == [number]
        audit.unlink()
