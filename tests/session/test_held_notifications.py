"""With `[hooks] notifications = "hold"`, no notification shows output of a call that hooks have replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub, stub_group

pytestmark = pytest.mark.anyio

POST: Final = Event.POST_TOOL_USE
HOLD: Final = Settings(hold_notifications=True)
PASSES: Final = stub_group(stub(POST, "exit 0"))
REPLACES: Final = stub_group(stub(POST, replacement="clean"))


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode() + b"\n"


def call(number: int, token: object = "t", **more: object) -> bytes:
    params = {"name": "read", "arguments": {}, "_meta": {"progressToken": token}, **more}
    return line(id=number, method="tools/call", params=params)


def result(number: int, text: str = "SECRET") -> bytes:
    return line(id=number, result={"content": [{"type": "text", "text": text}]})


def about(method: str, **params: object) -> bytes:
    return line(method=f"notifications/{method}", params=params)


PROGRESS: Final = about("progress", progressToken="t", progress=1, message="SECRET")
LOG: Final = about("message", level="info", data="SECRET")
OWN: Final = about("vendor/text", text="SECRET")
UPDATED: Final = about("resources/updated", uri="file:///SECRET")
NOTED: Final = about("prompts/list_changed", _meta={}, note="SECRET")
REPEATING: Final = (PROGRESS, LOG, OWN, UPDATED, NOTED)
CHANGED: Final = about("tools/list_changed")
OTHER: Final = about("progress", progressToken="another", progress=1, message="of another call")
SYNC: Final = line(id="sync", result={})


async def until_sync(one: Rig) -> list[bytes]:
    """What the agent gets until the response to a ping, which is sent after all that the server has sent before."""
    await one.agent.send(line(id="sync", method="ping"))
    while b'"ping"' not in await one.server.line():
        pass
    await one.server.send(SYNC)
    lines = []
    while (got := await one.agent.line()) != SYNC:
        assert got
        lines.append(got)
    return lines


@pytest.mark.parametrize("notification", [*REPEATING, PROGRESS.replace(b'"t"', b'"\\u0074"')])
async def test_what_may_repeat_output_waits_and_passes_before_a_response_that_stays(notification: bytes) -> None:
    async with rig(PASSES, settings=HOLD) as one:
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(notification, CHANGED, OTHER)
        assert await until_sync(one) == [CHANGED, OTHER]
        await one.server.send(result(1))
        assert [await one.agent.line(), await one.agent.line()] == [notification, result(1)]
        await one.server.send(notification)
        assert await one.agent.line() == notification, "the call has ended"


@pytest.mark.parametrize("verdict", [{"replacement": "clean"}, {"replacement": {"content": []}}])
@pytest.mark.parametrize("notification", REPEATING)
async def test_what_may_repeat_replaced_output_is_dropped_and_noted(
    notification: bytes, verdict: dict[str, Any], tmp_path: Path
) -> None:
    settings = Settings(hold_notifications=True, audit_file=str(tmp_path / "audit.jsonl"))
    async with rig(stub_group(stub(POST, **verdict)), settings=settings) as one:
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(notification, notification, result(1))
        answer = await one.agent.line()
        assert json.loads(answer)["id"] == 1
        assert b"SECRET" not in answer
        _, rest = await one.finish()
    assert rest == b""
    assert any("dropped 2 notifications that may repeat the output of read" in text for text in one.reports)
    notes = [json.loads(one).get("note", "") for one in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert any("dropped 2 notifications" in note for note in notes)


@pytest.mark.parametrize(
    "notification",
    [
        line(id=None, method="notifications/message", params={"level": "info", "data": "SECRET"}),
        line(id=5, method="notifications/message", params={"level": "info", "data": "SECRET"}),
        *(
            about("progress", progress=1, message="SECRET", **token)
            for token in (
                *({"progressToken": one} for one in ("7", 7.0, " 7", "0x7", "7e0", [7], {"a": 7}, None, True)),
                {},
            )
        ),
    ],
)
async def test_no_spelling_of_an_id_or_a_token_lets_text_pass(notification: bytes) -> None:
    async with rig(REPLACES, settings=HOLD) as one:
        await one.agent.send(call(1, 7))
        await one.server.line()
        await one.server.send(notification, OTHER, result(1))
        assert await one.agent.line() == OTHER
        assert b"clean" in await one.agent.line()
        _, rest = await one.finish()
    assert rest == b""


async def test_a_log_message_waits_for_all_calls_at_the_server_and_progress_for_its_own() -> None:
    async with rig(
        stub_group(stub(POST, 'read -r a; case $a in *bad*) echo \'{"replacement":"x"}\';; esac')), settings=HOLD
    ) as one:
        await one.agent.send(call(1, "a"), call(2, 7))
        await one.server.line()
        await one.server.line()
        first = about("progress", progressToken="a", progress=1)
        second = about("progress", progressToken=7, progress=1)
        await one.server.send(LOG, second, first, result(1, "good"))
        assert [await one.agent.line(), await one.agent.line()] == [first, result(1, "good")]
        await one.server.send(result(2, "bad"))
        assert json.loads(await one.agent.line())["id"] == 2
        _, rest = await one.finish()
    assert rest == b""


@pytest.mark.parametrize("end", ["cancelled", "twins", "batch"])
async def test_without_a_judged_result_what_waits_is_dropped(end: str) -> None:
    async with rig(PASSES, settings=HOLD) as one:
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(LOG)
        assert await until_sync(one) == []
        if end == "cancelled":
            await one.agent.send(about("cancelled", requestId=1))
        elif end == "batch":
            await one.server.send(b"[%b]\n" % LOG.strip())
        else:
            await one.server.send(result(1).replace(b'{"content"', b'{"content":[],"content"'))
            assert "error" in json.loads(await one.agent.line())
        assert await until_sync(one) == []
        if end == "batch":
            assert any("dropped a batch with a notification" in text for text in one.reports)


async def test_a_notification_that_readers_take_differently_waits() -> None:
    async with rig(REPLACES, settings=HOLD) as one:
        await one.agent.send(call(1))
        await one.server.line()
        for strange in (
            PROGRESS.replace(b'"progressToken":"t"', b'"progressToken":"u","progressToken":"t"'),
            LOG.replace(b'"method"', b'"Method"'),
            LOG.replace(b'"params"', b'"params":1,"params"'),
        ):
            await one.server.send(strange)
        assert await until_sync(one) == []


async def test_by_default_and_without_post_hooks_nothing_waits() -> None:
    for groups, settings in ((REPLACES, Settings()), (stub_group(stub(Event.PRE_TOOL_USE, "exit 0")), HOLD)):
        async with rig(groups, settings=settings) as one:
            await one.agent.send(call(1))
            await one.server.line()
            await one.server.send(PROGRESS, LOG)
            assert [await one.agent.line(), await one.agent.line()] == [PROGRESS, LOG]


async def test_what_waits_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookproxy.protocol.held_notifications._MOST_BYTES", 3 * len(LOG))
    async with rig(PASSES, settings=HOLD) as one:
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(LOG * 5, result(1))
        assert [await one.agent.line() for _ in range(4)] == [LOG] * 3 + [result(1)]
    assert any("dropped 2 notifications" in text for text in one.reports)


async def test_what_is_said_of_a_task_waits_for_its_output() -> None:
    status = about("tasks/status", taskId="T", status="working", statusMessage="SECRET")
    async with rig(REPLACES, settings=HOLD) as one:
        await one.agent.send(call(1, task={}))
        await one.server.line()
        await one.server.send(status)
        handle = line(id=1, result={"task": {"taskId": "T", "status": "working"}})
        await one.server.send(handle)
        assert await one.agent.line() == handle
        await one.server.send(status, PROGRESS, LOG)
        assert await until_sync(one) == []
        await one.agent.send(line(id=2, method="tasks/result", params={"taskId": "T"}))
        await one.server.line()
        await one.server.send(result(2))
        answer = await one.agent.line()
        assert (json.loads(answer)["id"], b"SECRET" in answer) == (2, False)
        assert any("dropped 4 notifications" in text for text in one.reports)
        await one.server.send(LOG)
        assert await one.agent.line() == LOG


async def task_of(one: Rig, handle: bytes, **params: object) -> None:
    """Begin a call that becomes the task `T`: the agent has the handle, without the text in it."""
    await one.agent.send(call(1, **params))
    await one.server.line()
    await one.server.send(handle)
    got = await one.agent.line()
    assert (json.loads(got)["id"], b"SECRET" in got) == (1, False)


async def ask(one: Rig, method: str, answer: bytes) -> dict[str, Any]:
    """The agent's request about the task, and the result that it gets."""
    await one.agent.send(line(id=json.loads(answer)["id"], method=method, params={"taskId": "T"}))
    await one.server.line()
    await one.server.send(answer)
    got: dict[str, Any] = json.loads(await one.agent.line())["result"]
    return got


STATUS: Final = {"taskId": "T", "status": "working", "statusMessage": "SECRET", "ttl": 5}
QUIET: Final = {"taskId": "T", "status": "working", "ttl": 5}
HANDLE: Final = line(id=1, result={"task": STATUS})


@pytest.mark.parametrize("status", ["working", "completed", "input_required"])
async def test_a_response_about_a_task_does_not_show_its_text_before_its_output_is_judged(status: str) -> None:
    async with rig(REPLACES, settings=HOLD) as one:
        await task_of(one, HANDLE, task={})
        for number, name in enumerate(("statusMessage", "StatusMessage", "\u017ftatusmessage"), 2):
            answer = {"taskId": "T", "status": status, name: "SECRET", "inputRequests": {}}
            got = await ask(one, "tasks/get", line(id=number, result=answer))
            assert got == {"taskId": "T", "status": status, "inputRequests": {}}
        others = [{**STATUS, "taskId": "another"}, STATUS]
        got = await ask(one, "tasks/list", line(id=7, result={"tasks": others, "nextCursor": "c"}))
        assert got == {"tasks": [others[0], QUIET], "nextCursor": "c"}


async def test_the_text_about_a_task_stays_away_where_hooks_have_replaced_its_output() -> None:
    async with rig(REPLACES, settings=HOLD) as one:
        await task_of(one, HANDLE, task={})
        judged = await ask(one, "tasks/result", line(id=2, result={"content": [{"type": "text", "text": "SECRET"}]}))
        assert "SECRET" not in str(judged)
        assert await ask(one, "tasks/get", line(id=3, result=STATUS)) == QUIET


async def test_the_text_about_a_task_passes_where_its_output_has_passed() -> None:
    async with rig(PASSES, settings=HOLD) as one:
        await task_of(one, HANDLE, task={})
        await ask(one, "tasks/result", line(id=2, result={"content": []}))
        assert await ask(one, "tasks/get", line(id=3, result=STATUS)) == STATUS
        assert (await ask(one, "tasks/list", line(id=4, result={"tasks": [STATUS]})))["tasks"] == [STATUS]


async def test_a_notification_that_a_task_has_failed_does_not_show_its_text() -> None:
    async with rig(REPLACES, settings=HOLD) as one:
        await task_of(one, HANDLE, task={})
        await one.server.send(about("tasks/status", **{**STATUS, "status": "failed"}))
        assert json.loads(await one.agent.line())["params"] == {**QUIET, "status": "failed"}


async def test_the_text_about_a_task_of_the_stateless_era_waits_too() -> None:
    meta = {"progressToken": "t", "io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    async with rig(REPLACES, settings=HOLD) as one:
        await task_of(one, line(id=1, result={**STATUS, "resultType": "task"}), _meta=meta)
        assert await ask(one, "tasks/get", line(id=2, result=STATUS)) == QUIET


async def test_by_default_the_text_about_a_task_passes() -> None:
    async with rig(REPLACES) as one:
        await one.agent.send(call(1, task={}))
        await one.server.line()
        await one.server.send(HANDLE)
        assert await one.agent.line() == HANDLE
        assert await ask(one, "tasks/get", line(id=2, result=STATUS)) == STATUS


async def test_what_the_server_sends_behind_a_response_comes_behind_it() -> None:
    before, behind = about("message", level="info", data="before"), about("message", level="info", data="behind")
    async with rig(stub_group(stub(POST, "sleep 0.1")), settings=HOLD) as one:
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(before + result(1) + behind + PROGRESS)
        assert [await one.agent.line() for _ in range(4)] == [before, result(1), behind, PROGRESS]


async def test_what_comes_behind_one_response_and_before_another_waits_for_both() -> None:
    async with rig(stub_group(stub(POST, "sleep 0.1")), settings=HOLD) as one:
        await one.agent.send(call(1) + call(2, "u"))
        await one.server.line()
        await one.server.line()
        await one.server.send(result(1) + LOG)
        assert await one.agent.line() == result(1)
        await one.server.send(result(2))
        assert [await one.agent.line() for _ in range(2)] == [LOG, result(2)]
