"""Hooks of events outside of calls, and where their feedback goes."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from msgspec.structs import replace

from hookproxy.dialects.claude.output import detach_time
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from tests.support.proxy_rig import DIRECT_LOOP, STUB, TIMEOUT, Rig, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(number: int, tool: str = "write", **params: object) -> bytes:
    message = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}, **params},
    }
    return json.dumps(message).encode() + b"\n"


ASK = b'{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"Which branch?"}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":5,"result":{"action":"accept","content":{}}}\n'


def recording(path: Path, event: Event, **verdict: object) -> Any:  # noqa: ANN401
    """A hook that appends its input document to a file, and prints the verdict."""
    says = shlex.quote(json.dumps(verdict))
    return stub(event, f"cat >> {shlex.quote(str(path))}; printf %s {says}")


def hook_inputs(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def hooks_ended(one: Rig) -> None:
    with anyio.fail_after(TIMEOUT):
        await one.proxy.changes.until(lambda: not one.proxy.has_background_hooks)


async def test_hooks_run_on_an_elicitation_and_on_its_answer_and_both_pass(tmp_path: Path) -> None:
    events = (Event.ELICITATION, Event.NOTIFICATION, Event.USER_INPUT, Event.ELICITATION_RESULT)
    hooks = [recording(tmp_path / event, event) for event in events]
    async with rig(stub_group(*hooks)) as one:
        await one.server.send(ASK)
        assert await one.agent.line() == ASK
        await one.agent.send(ANSWER)
        assert await one.server.line() == ANSWER
        await hooks_ended(one)
    seen = {event: [(each["by"], each["message"]) for each in hook_inputs(tmp_path / event)] for event in events}
    assert seen == {
        Event.ELICITATION: [("", "Which branch?")],
        Event.NOTIFICATION: [("elicitation_dialog", "Which branch?")],
        Event.USER_INPUT: [("", "Which branch?")],
        Event.ELICITATION_RESULT: [("accept", "Which branch?")],
    }


async def test_an_elicitation_on_a_page_has_notifications_of_its_own_where_the_dialect_has_them(tmp_path: Path) -> None:
    ask = (
        b'{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":'
        b'{"mode":"url","message":"Log in","url":"https://example.com","elicitationId":"e1"}}\n'
    )
    done = b'{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}\n'
    path = tmp_path / "seen"
    older = replace(stub_group(recording(tmp_path / "older", Event.NOTIFICATION)), dialect=STUB)
    shell = f"(cat; echo) >> {shlex.quote(str(path))}"
    async with rig(group(hook(shell, Event.NOTIFICATION)), older) as one:
        for line in (ask, done):
            await one.server.send(line)
            assert await one.agent.line() == line
            await hooks_ended(one)
        await one.agent.send(ANSWER)
        assert await one.server.line() == ANSWER
        await hooks_ended(one)
    seen = [json.loads(line)["notification_type"] for line in path.read_text().splitlines() if line]
    assert seen == ["elicitation_url_dialog", "elicitation_complete", "elicitation_response"]
    assert [each["by"] for each in hook_inputs(tmp_path / "older")] == ["elicitation_dialog"]


async def test_feedback_of_a_hook_outside_of_calls_goes_with_the_next_result(tmp_path: Path) -> None:
    hooks = stub_group(stub(Event.NOTIFICATION, feedback=["Branch main is frozen."]), stub(Event.PRE_TOOL_USE))
    async with rig(hooks) as one:
        await one.server.send(ASK)
        await one.agent.line()
        await hooks_ended(one)
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n')
        assert (await one.agent.message())["result"]["content"] == [{"type": "text", "text": "Branch main is frozen."}]


@pytest.mark.slow
async def test_a_hook_that_detaches_itself_holds_no_call_and_its_context_goes_with_the_next_result(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    said = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "ready"}, "decision": "block"}
    shell = f"""echo '{{"async":true}}'; read x <'{go}'; echo {shlex.quote(json.dumps(said))}"""
    detached = replace(hook(shell, matcher="slow"), detaches=detach_time)
    async with rig(group(detached, hook("exit 0", matcher="quick"))) as one:
        await one.agent.send(call(1, "slow"))
        assert await one.server.line() == call(1, "slow")  # the call goes on
        await one.server.send(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n')
        assert (await one.agent.message())["result"]["content"] == []
        assert one.proxy.has_background_hooks
        await anyio.to_thread.run_sync(go.write_text, "go\n")
        await hooks_ended(one)
        await one.agent.send(call(2, "quick"))
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}\n')
        assert (await one.agent.message())["result"]["content"] == [{"type": "text", "text": "ready"}]


@pytest.mark.slow
async def test_a_hook_is_awaited_if_too_many_others_are_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookproxy.hooks.run_hooks._MAX_RUNNING", 1)  # one slot in the background
    go = tmp_path / "go"
    os.mkfifo(go)
    first = replace(hook(f"""echo '{{"async":true}}'; read x <'{go}'""", matcher="first"), detaches=detach_time)
    second = replace(hook("""echo '{"async":true}'; sleep 0.1; exit 3""", matcher="second"), detaches=detach_time)
    async with rig(group(first, second)) as one:
        for number, tool in ((1, "first"), (2, "second")):
            await one.agent.send(call(number, tool))
            assert await one.server.line() == call(number, tool)
        await anyio.to_thread.run_sync(go.write_text, "go\n")
        await hooks_ended(one)


async def test_a_cancelled_call_is_a_stop_event(tmp_path: Path) -> None:
    async with rig(stub_group(recording(tmp_path / "stop", Event.STOP))) as one:
        await one.agent.send(call(7))
        await one.server.line()
        await one.agent.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n')
        await one.server.line()
        await hooks_ended(one)
    assert [(each["tool"], each["id"]) for each in hook_inputs(tmp_path / "stop")] == [("write", "7")]


async def test_hooks_run_on_an_error_instead_of_a_result(tmp_path: Path) -> None:
    async with rig(stub_group(recording(tmp_path / "error", Event.ERROR_OCCURRED))) as one:
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no disk"}}\n')
        await one.agent.line()
        await hooks_ended(one)
    assert [(each["by"], each["message"]) for each in hook_inputs(tmp_path / "error")] == [
        ("tool_execution", "MCP error -32000: no disk")
    ]


async def test_hooks_run_on_a_refusal_whoever_refused(tmp_path: Path) -> None:
    denies = stub(Event.PRE_TOOL_USE, permission="deny", reason="no writing")
    listens = recording(tmp_path / "denied", Event.PERMISSION_DENIED)
    async with rig(stub_group(denies), stub_group(listens)) as one:
        await one.agent.send(call(1))
        assert (await one.agent.message())["result"]["isError"] is True
        await hooks_ended(one)
    assert [(each["tool"], each["message"]) for each in hook_inputs(tmp_path / "denied")] == [("write", "no writing")]


async def test_messages_for_people_are_reported_logged_and_audited(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    hooks = stub_group(stub(Event.NOTIFICATION, messages=["look here"]), stub(Event.USER_INPUT, "exit 3"))
    async with rig(hooks, settings=Settings(audit_file=str(audit))) as one:
        await one.agent.send(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n')
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"logging":{}}}}\n')
        await one.agent.line()
        await one.server.send(ASK)
        assert await one.agent.line() == ASK
        entry = await one.agent.message()
        await hooks_ended(one)
    assert (entry["method"], entry["params"]["data"]) == ("notifications/message", "look here")
    assert one.reports == [
        "stub: look here",
        "OnUserInput hook stub (stub.json: OnUserInput): exited with status 3",
    ] or sorted(one.reports) == sorted(
        ["stub: look here", "OnUserInput hook stub (stub.json: OnUserInput): exited with status 3"]
    )
    notes = sorted(json.loads(line)["note"] for line in audit.read_text().splitlines())
    assert notes == [
        "Notification hook stub (stub.json: Notification): look here",
        "OnUserInput hook stub (stub.json: OnUserInput): exited with status 3",
    ]


async def test_a_server_that_sends_elicitations_for_ever_does_not_start_hooks_for_ever(tmp_path: Path) -> None:
    waits = stub(Event.USER_INPUT, f"cat > /dev/null; read x < {shlex.quote(str(tmp_path / 'go'))}")
    import os

    os.mkfifo(tmp_path / "go")
    async with rig(stub_group(waits)) as one:
        for number in range(100):
            await one.server.send(ASK.replace(b"5", b"%d" % number, 1))
        for _ in range(100):
            await one.agent.line()
        assert one.proxy.session_events.running == 64
        assert len(one.reports) == 36
        assert one.reports[0] == "OnUserInput hooks are not run: 64 such hooks are already running"


async def test_what_of_a_hooks_output_is_not_read_is_reported_once_and_recorded_each_time(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    settings = Settings(audit_file=str(audit))
    async with rig(group(hook("""echo '{"blocked": true}'""")), settings=settings) as one:
        for number in (1, 2):
            await one.agent.send(call(number))
            await one.server.line()
            await one.server.send(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % number)
            await one.agent.line()
    reported = [text for text in one.reports if "blocked" in text]
    assert len(reported) == 1
    assert "printed what claude does not read: 'blocked' (it decides by " in reported[0]
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    unread = [run["unread"] for line in lines for run in line.get("hooks", ())]
    assert len(unread) == 2
    assert all("'blocked'" in text for texts in unread for text in texts)
