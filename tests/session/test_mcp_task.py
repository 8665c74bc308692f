"""The tasks of calls with hooks, in both eras; the hooks are real, the test is agent and server."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from hookproxy.dialects.dialect import Group
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub, stub_group

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

PRE, POST, FAILURE = Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE
META: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
OK: Final = {"content": [{"type": "text", "text": "done"}]}
SECRET: Final = {"content": [{"type": "text", "text": "SECRET"}]}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def request(number: int, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def notification(method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"


def result(number: int, **members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": members}).encode() + b"\n"


def error(number: int, message: str, code: int = -32000) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode() + b"\n"


class Old:
    """2025-11-25: the agent asks for a task, and `tasks/result` is the output."""

    call = request(1, "tools/call", name="write", arguments={"a": 1}, task={"ttl": 1000})
    handle = result(1, task={"taskId": "T", "status": "working"})
    task_request = "tasks/result"

    @staticmethod
    def done(number: int, output: Json) -> bytes:
        return result(number, **output)

    @staticmethod
    def failed(number: int, message: str) -> bytes:
        return error(number, message)

    @staticmethod
    def output(message: Json) -> Json:
        hook_inputs: Json = message
        return hook_inputs


class New:
    """2026-07-28 with the extension: the server decides, and `tasks/get` has the output as a member."""

    call = request(1, "tools/call", name="write", arguments={"a": 1}, _meta=META)
    handle = result(1, resultType="task", taskId="T", status="working")
    task_request = "tasks/get"

    @staticmethod
    def done(number: int, output: Json) -> bytes:
        return result(number, resultType="complete", taskId="T", status="completed", result=output)

    @staticmethod
    def failed(number: int, message: str) -> bytes:
        error = {"code": -32000, "message": message}
        return result(number, resultType="complete", taskId="T", status="failed", error=error)

    @staticmethod
    def output(message: Json) -> Json:
        hook_inputs: Json = message["result"]
        return hook_inputs


Era = type[Old] | type[New]
ERAS: Final[tuple[Era, ...]] = (Old, New)
both = pytest.mark.parametrize("era", ERAS)


class Log:
    """The input documents of hooks, and the audit."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "inputs"
        self.audit = folder / "audit.jsonl"
        self.settings = Settings(audit_file=str(self.audit))

    def group(self, **post_verdict: object) -> Group:
        """Hooks of all three events record their input; the two post hooks print this verdict."""
        note = f"cat >> {shlex.quote(str(self.path))}; "
        speak = f"printf %s {shlex.quote(json.dumps(post_verdict))}"
        return stub_group(stub(PRE, note + ":"), stub(POST, note + speak), stub(FAILURE, note + speak))

    @property
    def hook_inputs(self) -> list[Json]:
        return [json.loads(line) for line in self.path.read_bytes().splitlines()] if self.path.exists() else []

    @property
    def events(self) -> list[str]:
        return [one["event"] for one in self.hook_inputs]

    @property
    def results(self) -> list[str]:
        return [json.loads(line)["result"] for line in self.audit.read_bytes().splitlines() if b'"tool"' in line]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


async def start_task(one: Rig, era: Era) -> None:
    """The call, and its handle."""
    await one.agent.send(era.call)
    await one.server.line()
    await one.server.send(era.handle)
    assert await one.agent.line() == era.handle


async def poll(one: Rig, number: int, method: str, answer: bytes, task_id: str = "T") -> bytes:
    """A request about a task, and its response: what the agent got."""
    line = request(number, method, taskId=task_id)
    await one.agent.send(line)
    assert await one.server.line() == line
    await one.server.send(answer)
    return await one.agent.line()


async def idle(one: Rig) -> None:
    with anyio.fail_after(30):
        await one.proxy.changes.until(lambda: not one.proxy.has_open_calls)


def texts(message: Json) -> list[str]:
    return [block["text"] for block in message["result"]["content"]]


@both
async def test_hooks_run_on_the_first_output_of_a_task_and_every_copy_is_the_same(era: Era, log: Log) -> None:
    async with rig(log.group(feedback=["noted"]), settings=log.settings) as one:
        await start_task(one, era)
        assert (log.events, log.results) == (["PreToolUse"], ["pending"])
        first = json.loads(await poll(one, 2, era.task_request, era.done(2, OK)))
        again = json.loads(await poll(one, 3, era.task_request, era.done(3, OK)))
    assert texts(era.output(first)) == ["done", "noted"]
    assert (first["id"], again["id"]) == (2, 3)
    assert first["result"] == again["result"]
    assert log.events == ["PreToolUse", "PostToolUse"]
    assert log.hook_inputs[1]["arguments"] == {"a": 1}
    assert log.hook_inputs[1]["text"] == "done"
    assert log.results == ["pending", "ok"]
    assert [hook["event"] for hook in json.loads(log.audit.read_bytes().splitlines()[1])["hooks"]] == ["PostToolUse"]


@both
async def test_without_feedback_a_tasks_output_is_not_changed(era: Era, log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, era)
        for number in (2, 3):
            line = era.done(number, OK)
            assert await poll(one, number, era.task_request, line) == line
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_feedback_of_pre_hooks_goes_with_the_tasks_output(era: Era) -> None:
    async with rig(stub_group(stub(PRE, feedback=["mind the gap"]))) as one:
        await start_task(one, era)
        assert texts(era.output(json.loads(await poll(one, 2, era.task_request, era.done(2, OK))))) == [
            "done",
            "mind the gap",
        ]
        other = era.output(json.loads(await poll(one, 3, era.task_request, era.done(3, SECRET))))
    assert texts(other) == ["SECRET", "mind the gap"], "no hook judges outputs of this tool"


@both
async def test_a_failed_result_and_an_error_are_failures(era: Era, log: Log) -> None:
    async with rig(log.group(feedback=["noted"]), settings=log.settings) as one:
        await start_task(one, era)
        message = json.loads(await poll(one, 2, era.task_request, era.done(2, {**OK, "isError": True})))
    assert texts(era.output(message)) == ["done", "noted"]
    assert log.events == ["PreToolUse", "PostToolUseFailure"]
    assert log.results == ["pending", "error"]


@both
async def test_an_error_in_the_place_of_an_output_is_a_failure(era: Era, log: Log) -> None:
    async with rig(log.group(feedback=["noted"]), settings=log.settings) as one:
        await start_task(one, era)
        message = json.loads(await poll(one, 2, era.task_request, era.failed(2, "no")))
    assert era.output(message)["error"]["message"] == "no. noted"
    assert log.events == ["PreToolUse", "PostToolUseFailure"]


@both
@pytest.mark.parametrize("verdict", [{"hides": True}, {"replacement": "clean"}])
async def test_output_that_a_hook_withholds_never_comes(era: Era, verdict: Json, log: Log) -> None:
    async with rig(log.group(**verdict)) as one:
        await start_task(one, era)
        for number in (2, 3):
            assert b"SECRET" not in await poll(one, number, era.task_request, era.done(number, SECRET))
        hook_inputs = notification("notifications/tasks", taskId="T", status="completed", result=SECRET)
        await one.server.send(hook_inputs)
        assert b"SECRET" not in await one.agent.line()
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_an_output_other_than_the_one_that_hooks_saw_is_withheld(era: Era, log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, era)
        await poll(one, 2, era.task_request, era.done(2, OK))
        for number, method, answer in (
            (3, era.task_request, era.done(3, SECRET)),
            (4, "tasks/get", New.done(4, SECRET)),
            (5, "tasks/result", Old.done(5, SECRET)),
            (6, "tasks/result", Old.failed(6, "SECRET")),
            (7, "tasks/get", New.failed(7, "SECRET")),
            (8, "tasks/get", error(8, "SECRET")),
            (9, "tasks/cancel", error(9, "SECRET")),
            (10, "tasks/cancel", New.done(10, SECRET)),
            (11, "tasks/update", New.done(11, SECRET)),
            (12, "tasks/get", result(12, taskId="T", status="working", **SECRET)),
            (13, "tasks/list", result(13, tasks=[{"taskId": "T", "status": "completed", "result": SECRET}])),
            (14, "tasks/get", result(14, taskId="T", status="completed", Result=SECRET)),
            (15, "tasks/get", b'{"jsonrpc":"2.0","id":15,"result":"SECRET"}\n'),
            (16, "tasks/get", result(16, taskId="T", status="completed", result="SECRET")),
            (
                17,
                "tasks/get",
                New.done(17, SECRET).replace(b'"result": {"content"', b'"result": {}, "result": {"content"'),
            ),
        ):
            got = await poll(one, number, method, answer)
            assert json.loads(got)["id"] == number
            assert b"SECRET" not in got, (number, got)
        assert b"SECRET" not in await poll(one, 18, "tasks/get", New.done(18, SECRET), "other"), (
            "the message names its task"
        )
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_polls_before_the_end_pass_as_they_are(era: Era, log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, era)
        for number, method, answer in (
            (2, "tasks/get", result(2, resultType="complete", taskId="T", status="working")),
            (3, "tasks/get", result(3, taskId="T", status="input_required", inputRequests={"a": {}})),
            (4, "tasks/update", result(4, resultType="complete")),
            (5, "tasks/cancel", result(5, resultType="complete")),
            (6, "tasks/list", result(6, tasks=[{"taskId": "T", "status": "working"}])),
            (7, "tasks/get", result(7, taskId="T", status="completed")),
        ):
            assert await poll(one, number, method, answer) == answer
        for hook_inputs in (
            notification("notifications/tasks", taskId="T", status="working"),
            notification("notifications/tasks/status", taskId="T", status="completed"),
        ):
            await one.server.send(hook_inputs)
            assert await one.agent.line() == hook_inputs
    assert log.events == ["PreToolUse"]


@both
@pytest.mark.parametrize("by", ["tasks/cancel", "tasks/get", "notifications/tasks", "notifications/tasks/status"])
async def test_a_cancelled_task_is_a_failure_once_and_no_output_comes_after(era: Era, by: str, log: Log) -> None:
    async with rig(log.group(), settings=log.settings) as one:
        await start_task(one, era)
        answer = result(2, taskId="T", status="cancelled")
        hook_inputs = notification(by, taskId="T", status="cancelled")
        if by.startswith("tasks"):
            assert await poll(one, 2, by, answer) == answer
        else:
            await one.server.send(hook_inputs)
            assert await one.agent.line() == hook_inputs
        assert await poll(one, 2, "tasks/get", answer) == answer
        assert b"SECRET" not in await poll(one, 3, era.task_request, era.done(3, SECRET))
        assert b"SECRET" not in await poll(one, 4, era.task_request, era.failed(4, "SECRET"))
    assert log.events == ["PreToolUse", "PostToolUseFailure"]
    assert log.results == ["pending", "cancelled"]


async def test_hooks_run_on_a_failed_task_of_2025_when_its_result_is_fetched(log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, Old)
        status = result(2, taskId="T", status="failed")
        assert await poll(one, 2, "tasks/get", status) == status
        hook_inputs = notification("notifications/tasks/status", taskId="T", status="failed")
        await one.server.send(hook_inputs)
        assert await one.agent.line() == hook_inputs
        assert log.events == ["PreToolUse"]
        line = result(3, **OK, isError=True)
        assert await poll(one, 3, "tasks/result", line) == line
    assert [one["text"] for one in log.hook_inputs[1:]] == ["done"]


async def test_a_failed_task_of_2026_without_an_error_is_a_failure(log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, New)
        status = result(2, taskId="T", status="failed")
        assert await poll(one, 2, "tasks/get", status) == status
    assert log.events == ["PreToolUse", "PostToolUseFailure"]


async def test_a_notification_may_bring_the_output_and_is_edited_like_a_response(log: Log) -> None:
    async with rig(log.group(feedback=["noted"])) as one:
        await start_task(one, New)
        await one.server.send(notification("notifications/tasks", taskId="T", status="completed", result=OK))
        hook_inputs = await one.agent.message()
        polled = json.loads(await poll(one, 2, "tasks/get", New.done(2, OK)))
    assert hook_inputs["params"]["result"] == polled["result"]["result"]
    assert texts(hook_inputs["params"] | {"result": hook_inputs["params"]["result"]}) == ["done", "noted"]
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_hooks_run_on_an_output_that_follows_at_once(era: Era, log: Log) -> None:
    hook_inputs = notification("notifications/tasks", taskId="T", status="completed", result=SECRET)
    async with rig(log.group(replacement="clean")) as one:
        await one.agent.send(era.call)
        await one.server.line()
        await one.server.send(era.handle + hook_inputs)
        got = await one.agent.line() + await one.agent.line()
    assert b"clean" in got
    assert b"SECRET" not in got
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_an_output_before_the_response_that_starts_its_task_waits_for_it(era: Era, log: Log) -> None:
    hook_inputs = notification("notifications/tasks", taskId="T", status="completed", result=SECRET)
    async with rig(log.group(replacement="clean")) as one:
        await one.agent.send(era.call)
        await one.server.line()
        await one.server.send(hook_inputs, hook_inputs, era.handle)
        assert await one.agent.line() == era.handle
        assert b"clean" in await one.agent.line()
        received, answered = await one.finish()
    assert (received, answered) == (b"", b""), "the second is dropped"
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_messages_about_other_tasks_pass(era: Era, log: Log) -> None:
    hook_inputs = notification("notifications/tasks", taskId="other", status="completed", result=OK)
    async with rig(log.group(hides=True)) as one:
        await one.server.send(hook_inputs)
        assert await one.agent.line() == hook_inputs
        await one.agent.send(era.call)
        await one.server.line()
        await one.server.send(hook_inputs, era.done(1, OK) if era is Old else result(1, **OK))
        assert {await one.agent.line(), await one.agent.line()} > {hook_inputs}
        await one.agent.send(era.call.replace(b'"id": 1', b'"id": 9'))
        await one.server.line()
        await one.server.send(era.handle.replace(b'"id": 1', b'"id": 9'))
        await one.agent.line()
        await one.server.send(hook_inputs)
        assert await one.agent.line() == hook_inputs
        answer = New.done(10, OK).replace(b'"T"', b'"other"')
        assert await poll(one, 10, "tasks/get", answer, "other") == answer


def gated(tmp_path: Path, log: Log, **post_verdict: object) -> Group:
    """Its post hooks write to the FIFO `up` and then wait until the test writes to `go`."""
    for name in ("up", "go"):
        os.mkfifo(tmp_path / name)
    note = f"cat >> {shlex.quote(str(log.path))}"
    wait = f"echo x > {shlex.quote(str(tmp_path / 'up'))}; read x < {shlex.quote(str(tmp_path / 'go'))}"
    shell = f"{note}; {wait}; printf %s {shlex.quote(json.dumps(post_verdict))}"
    return stub_group(stub(POST, shell), stub(FAILURE, shell))


async def hook_reached(tmp_path: Path) -> None:
    await anyio.Path(tmp_path / "up").read_bytes()


async def release_hook(tmp_path: Path) -> None:
    await anyio.Path(tmp_path / "go").write_bytes(b"x\n")


@both
async def test_polls_and_notifications_wait_for_the_same_hooks(era: Era, tmp_path: Path, log: Log) -> None:
    async with rig(gated(tmp_path, log, replacement="clean")) as one:
        await start_task(one, era)
        polls = [request(number, era.task_request, taskId="T") for number in (2, 3, 4)]
        await one.agent.send(*polls)
        for task_request in polls:
            assert await one.server.line() == task_request
        hook_inputs = notification("notifications/tasks", taskId="T", status="completed", result=SECRET)
        await one.server.deliver(b"".join((era.done(2, SECRET), hook_inputs, era.done(3, SECRET), era.done(4, SECRET))))
        await hook_reached(tmp_path)
        await one.agent.send(request(5, "ping"))
        assert await one.server.line() == request(5, "ping")
        await one.server.send(result(5))
        assert await one.agent.line() == result(5), "nothing about the task before its hooks have spoken"
        await release_hook(tmp_path)
        got = [await one.agent.message() for _ in range(4)]
    assert sorted(one.get("id", 0) for one in got) == [0, 2, 3, 4]
    assert "SECRET" not in json.dumps(got)
    assert json.dumps(got).count("clean") == 4
    assert log.events == ["PostToolUse"]


@both
async def test_a_poll_cancelled_while_hooks_run_has_no_response_and_the_next_one_has(
    era: Era, tmp_path: Path, log: Log
) -> None:
    async with rig(gated(tmp_path, log, feedback=["noted"])) as one:
        await start_task(one, era)
        await one.agent.send(request(2, era.task_request, taskId="T"))
        await one.server.line()
        await one.server.send(era.done(2, OK))
        await hook_reached(tmp_path)
        cancel = notification("notifications/cancelled", requestId=2)
        await one.agent.send(cancel)
        assert await one.server.line() == cancel
        await release_hook(tmp_path)
        message = json.loads(await poll(one, 3, era.task_request, era.done(3, OK)))
        await one.server.deliver(era.done(2, SECRET))
        _, answered = await one.finish()
    assert texts(era.output(message)) == ["done", "noted"]
    assert answered == b""
    assert log.events == ["PostToolUse"]


@both
async def test_a_cancelled_poll_ends_nothing_and_its_late_response_is_dropped(era: Era, log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, era)
        await one.agent.send(request(2, era.task_request, taskId="T"))
        await one.server.line()
        await one.agent.send(notification("notifications/cancelled", requestId=2))
        await one.server.line()
        await one.server.deliver(era.done(2, SECRET) + era.done(2, SECRET))
        line = era.done(3, OK)
        assert await poll(one, 3, era.task_request, line) == line
        await one.server.deliver(era.done(3, SECRET))
        _, answered = await one.finish()
    assert answered == b""
    assert log.events == ["PreToolUse", "PostToolUse"]


@both
async def test_a_task_that_the_servers_exit_ends_is_a_failure_once(era: Era, log: Log) -> None:
    async with rig(log.group(), settings=log.settings) as one:
        await start_task(one, era)
        await one.agent.send(request(2, era.task_request, taskId="T"), request(3, "tasks/get", taskId="T"))
        await one.server.line()
        await one.server.line()
        one.proxy.handle_server_exit("exited with status 1")
        await idle(one)
        answers = [await one.agent.message(), await one.agent.message()]
    assert {each["id"] for each in answers} == {2, 3}
    assert all("error" in each for each in answers)
    assert log.events == ["PreToolUse", "PostToolUseFailure"]
    assert log.results == ["pending", "lost"]


@both
async def test_the_servers_exit_while_hooks_run_changes_nothing(era: Era, tmp_path: Path, log: Log) -> None:
    async with rig(gated(tmp_path, log, feedback=["noted"])) as one:
        await start_task(one, era)
        await one.agent.send(request(2, era.task_request, taskId="T"))
        await one.server.line()
        await one.server.send(era.done(2, OK))
        await hook_reached(tmp_path)
        one.proxy.handle_server_exit("exited with status 1")
        await release_hook(tmp_path)
        message = await one.agent.message()
        await idle(one)
    assert texts(era.output(message)) == ["done", "noted"]
    assert log.events == ["PostToolUse"]


@both
async def test_hooks_that_are_ended_leave_the_output_withheld(era: Era, tmp_path: Path, log: Log) -> None:
    async with rig(gated(tmp_path, log), settings=log.settings) as one:
        await start_task(one, era)
        await one.agent.send(request(2, era.task_request, taskId="T"))
        await one.server.line()
        await one.server.send(era.done(2, SECRET))
        await hook_reached(tmp_path)
        one.proxy.calls.end_all("The test is over")
        error = (await one.agent.message())["error"]["message"]
        assert (
            error == "The test is over. The server has answered the request about a task, but the response is withheld."
        )
        assert b"SECRET" not in await poll(one, 3, era.task_request, era.done(3, SECRET))
    assert log.results == ["pending", "cancelled"]
    assert log.events == ["PostToolUse"]


@both
async def test_if_an_audit_is_required_no_output_passes_without_it(era: Era, tmp_path: Path, log: Log) -> None:
    settings = Settings(audit_file=str(log.audit), audit_required=True)
    async with rig(gated(tmp_path, log), settings=settings) as one:
        await start_task(one, era)
        await one.agent.send(request(2, era.task_request, taskId="T"))
        await one.server.line()
        await one.server.send(era.done(2, SECRET))
        await hook_reached(tmp_path)
        log.audit.unlink()
        log.audit.mkdir()
        await release_hook(tmp_path)
        assert b"SECRET" not in await one.agent.line()


@pytest.mark.parametrize(
    "handle",
    [
        b'{"task":{"taskId":"T","result":{"content":["SECRET"]}}}',
        b'{"task":{"taskId":"T","taskID":"U"}}',
        b'{"task":{"taskId":"T"},"Task":{"taskId":"SECRET"}}',
        b'{"task":{"taskId":"T\\u0000SECRET"}}',
        b'{"task":{"taskId":["SECRET"]}}',
        b'{"task":{"taskId":"\\ud800SECRET"}}',
        b'{"task":{"taskId":"T","taskId":"SECRET"}}',
    ],
)
async def test_a_response_that_names_its_task_ambiguously_is_withheld(handle: bytes, log: Log) -> None:
    async with rig(log.group()) as one:
        await one.agent.send(Old.call)
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % handle)
        line = await one.agent.line()
    assert b'"error"' in line
    assert b"SECRET" not in line


async def test_the_task_of_one_call_is_not_anothers(log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, New)
        await one.agent.send(New.call.replace(b'"id": 1', b'"id": 5'))
        await one.server.line()
        await one.server.send(New.handle.replace(b'"id": 1', b'"id": 5'))
        assert b'"error"' in await one.agent.line()


async def test_a_response_that_hooks_saw_as_a_result_has_no_output_later(log: Log) -> None:
    plain = request(1, "tools/call", name="write", arguments={})
    async with rig(log.group()) as one:
        await one.agent.send(plain)
        await one.server.line()
        await one.server.send(Old.handle)
        assert await one.agent.line() == Old.handle
        assert log.events == ["PreToolUse", "PostToolUse"]
        assert b"SECRET" not in await poll(one, 2, "tasks/result", Old.done(2, SECRET))
        assert b"SECRET" not in await poll(one, 3, "tasks/get", New.done(3, SECRET))
    assert log.events == ["PreToolUse", "PostToolUse"]


async def test_an_immediate_response_for_the_model_is_removed(log: Log) -> None:
    meta = {"io.modelcontextprotocol/model-immediate-response": "SECRET", "x": 1}
    async with rig(log.group()) as one:
        await one.agent.send(Old.call)
        await one.server.line()
        await one.server.send(result(1, task={"taskId": "T"}, _meta=meta))
        assert (await one.agent.message())["result"] == {"task": {"taskId": "T"}, "_meta": {"x": 1}}


async def test_tasks_of_tools_without_hooks_pass(log: Log) -> None:
    async with rig(stub_group(stub(PRE))) as one:
        await start_task(one, New)
        await idle(one)
        assert not one.proxy.router.tasks
        line = New.done(2, SECRET)
        assert await poll(one, 2, "tasks/get", line) == line


async def test_tasks_beyond_the_limit_are_forgotten_and_their_output_is_withheld(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookproxy.protocol.tasks._MAX_TASKS", 1)
    async with rig(log.group()) as one:
        await start_task(one, New)
        await one.agent.send(New.call.replace(b'"id": 1', b'"id": 5'))
        await one.server.line()
        await one.server.send(New.handle.replace(b'"id": 1', b'"id": 5').replace(b'"T"', b'"U"'))
        await one.agent.line()
        assert len(one.proxy.router.tasks) == 1
        await one.agent.send(request(6, "tasks/get", taskId="T"))
        assert "so long ago" in (await one.agent.message())["error"]["message"]
        await one.server.deliver(notification("notifications/tasks", taskId="T", status="completed", result=SECRET))
        _, answered = await one.finish()
    assert answered == b""
    assert any("no longer followed" in text for text in one.reports)


@pytest.mark.parametrize(
    "line",
    [
        b'[{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"T"}}]\n',
        b'{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"T","taskId":"U"}}\n',
        b'{"jsonrpc":"2.0","id":2,"method":"tasks\\/get","params":{"taskID":"T"}}\n',
        b'{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":["T"]}\n',
        b'{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":7}}\n',
        b'{"jsonrpc":"2.0","id":null,"method":"tasks/get","params":{"taskId":"T"}}\n',
    ],
)
async def test_a_request_that_names_its_task_ambiguously_is_refused(line: bytes, log: Log) -> None:
    async with rig(log.group()) as one:
        await start_task(one, New)
        await one.agent.send(line)
        assert "error" in await one.agent.message()
        received, _ = await one.finish()
    assert received == b""


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"T","result":{}},"params":{"a":"SECRET"}}\n',
        b'{"jsonrpc":"2.0","method":"x","Method":"notifications/tasks","params":{"a":"SECRET"}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"T","Result":"SECRET"}}\n',
        b'{"jsonrpc":"2.0","\\u006dethod":"notifications\\/tasks","params":{"taskId":"T","taskid":"SECRET"}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"status":"completed","result":{"a":"SECRET"}}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"T","content":["SECRET"]}}\n',
        b'[{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"T","result":{"a":"SECRET"}}}]\n',
        b'{"jsonrpc":"2.0","id":2,"result":{},"method":"notifications/tasks","params":{"taskId":"T","x":"SECRET"}}\n',
        b'{"jsonrpc":"2.0","id":2,"method":"notifications/tasks","params":{"taskId":"T","result":{"a":"SECRET"}}}\n',
    ],
)
@pytest.mark.parametrize("cut", [False, True])
async def test_output_in_what_some_agents_take_for_a_notification_is_dropped(line: bytes, cut: bool, log: Log) -> None:
    long = line.replace(b"SECRET", b"SECRET" * 20_000) if cut else line
    async with rig(log.group(hides=True)) as one:
        await start_task(one, New)
        await one.agent.send(request(2, "ping"))
        await one.server.line()
        for start in range(0, len(long), 50_000):
            await one.server.deliver(long[start : start + 50_000])
        await idle(one)
        _, answered = await one.finish()
    assert b"SECRET" not in answered


async def test_post_hooks_get_the_rewritten_arguments_of_a_stateless_call(log: Log) -> None:
    rewrites = stub_group(stub(PRE, arguments={"a": 2}))
    async with rig(rewrites, log.group()) as one:
        await start_task(one, New)
        await poll(one, 2, "tasks/get", New.done(2, OK))
    assert log.hook_inputs[-1]["arguments"] == {"a": 2}
