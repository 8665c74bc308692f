"""A person may change the arguments of a call before allowing it: what was judged is what is forwarded (law 1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import anyio
import pytest

from hookproxy.live.messages import Answer, AnswerTaken, WaitingApproval
from hookproxy.model.settings import Arguments, ConsoleUse, Settings
from tests.session.test_live_feed import ASKS, FALLBACK, PRE, Watched, answer, call, handshake, watched
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, stub, stub_group

pytestmark = pytest.mark.anyio

SCHEMA: Final = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def edit(one: Watched, approval: WaitingApproval, arguments: object) -> AnswerTaken:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return await one.console.answer("run", approval.id, "allow", "", "a test", text)


async def list_tools(one: Watched) -> None:
    await one.agent.send(b'{"jsonrpc":"2.0","id":99,"method":"tools/list"}\n')
    await one.server.line()
    result = {"tools": [{"name": "write", "inputSchema": SCHEMA}]}
    await one.server.send(json.dumps({"jsonrpc": "2.0", "id": 99, "result": result}).encode() + b"\n")
    await one.agent.line()


async def forwarded(one: Watched) -> object:
    with anyio.fail_after(TIMEOUT):
        return json.loads(await one.server.line())["params"]["arguments"]


async def test_the_server_gets_what_the_person_has_written_and_the_model_is_told(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1, to="all"))
        approval = await one.approval()
        assert approval.may_edit
        assert (await edit(one, approval, {"to": "ann"})).accepted
        assert await forwarded(one) == {"to": "ann"}
        await one.server.send(answer(1))
        text = (await one.agent.line()).decode()
        assert "The user has changed the arguments of this call before allowing it. They are now: " in text
        assert r"{\"to\":\"ann\"}" in text
        await one.until(lambda: bool(one.console.state.ended))
        record = one.console.state.ended[-1].record
        assert (record.decision, record.changed, record.edited) == ("asked-allow", ("arguments", "result"), True)
        assert bytes(record.rewritten) == b'{"to":"ann"}'
        assert record.asked_by == "the PreToolUse hook stub"
        assert record.answered_by.endswith("at a test")


async def test_the_same_arguments_are_no_change(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1, to="all"))
        assert (await edit(one, await one.approval(), '{ "to" : "\\u0061ll" }')).accepted
        assert await one.server.line() == call(1, to="all")


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "they are not a JSON object"),
        ('{"to": "a", "to": "b"}', "to"),
        ('{"to": 1}', "1 is not of type 'string'"),
        ("{}", "'to' is a required property"),
        ('{"to": "\\ud800"}', "surrogate"),
        ('{"to": NaN}', "NaN"),
        ('{"to": "a", "x": ' + "[" * 2000 + "]" * 2000 + "}", "deep"),
    ],
)
async def test_what_the_tool_cannot_get_is_not_taken_and_the_call_goes_on_waiting(
    tmp_path: Path, typed: str, why: str
) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await list_tools(one)
        await one.agent.send(call(1, to="all"))
        approval = await one.approval()
        taken = await edit(one, approval, typed)
        assert not taken.accepted
        assert taken.why.startswith("These arguments cannot be used: ")
        assert why in taken.why
        assert [waiting.id for waiting in one.feed.approvals.here()] == [approval.id]
        assert (await one.say(approval, "allow")).accepted
        assert await one.server.line() == call(1, to="all")


async def test_a_deny_rule_refuses_changed_arguments(tmp_path: Path) -> None:
    settings = Settings(console=ConsoleUse.ALWAYS, ask=("write",), deny=("write(root)",))
    async with watched(tmp_path, settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, to="ann"))
        assert (await edit(one, await one.approval(), {"to": "root"})).accepted
        refusal = await one.refusal()
        assert "write(root)" in refusal
        assert await one.finish() == (b"", b"")


async def test_a_managed_rule_refuses_changed_arguments(tmp_path: Path) -> None:
    managed = Settings(deny=("write(root)",))
    settings = Settings(console=ConsoleUse.ALWAYS, ask=("write",), managed=managed)
    async with watched(tmp_path, settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, to="ann"))
        assert (await edit(one, await one.approval(), {"to": "root"})).accepted
        assert "write(root)" in await one.refusal()


async def test_what_the_administrator_asks_about_is_not_allowed_by_an_answer_to_something_else(tmp_path: Path) -> None:
    managed = Settings(console=ConsoleUse.NEVER, ask=("write(root)",))
    settings = Settings(console=ConsoleUse.ALWAYS, ask=("write",), managed=managed)
    async with watched(tmp_path, settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, to="ann"))
        assert (await edit(one, await one.approval(), {"to": "root"})).accepted
        assert "administrator's configuration names no other way" in await one.refusal()


async def test_hooks_judge_changed_arguments_and_what_they_make_of_them_is_asked_about_again(tmp_path: Path) -> None:
    script = """grep -q '"to": *"root"' && printf '%s' '{"permission": "deny", "reason": "not to root"}' || true"""
    rewrites = """grep -q '"to": *"bob"' && printf '%s' '{"arguments": {"to": "bob", "cc": "log"}}' || true"""
    group = stub_group(stub(PRE, script), stub(PRE, rewrites))
    settings = Settings(console=ConsoleUse.ALWAYS, ask=("write",))
    async with watched(tmp_path, group, settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, to="ann"))
        assert (await edit(one, await one.approval(), {"to": "root"})).accepted
        assert "not to root" in await one.refusal()
        await one.until(lambda: not one.console.state.approvals)
        await one.agent.send(call(2, to="ann"))
        first = await one.approval()
        assert (await edit(one, first, {"to": "bob"})).accepted
        await one.until(lambda: any(key[1] != first.id for key in one.console.state.approvals))
        (waiting,) = [shown for shown in one.console.state.approvals.values() if shown.approval.id != first.id]
        assert json.loads(bytes(waiting.approval.arguments)) == {"to": "bob", "cc": "log"}
        assert (await one.say(waiting.approval, "allow")).accepted
        assert await forwarded(one) == {"to": "bob", "cc": "log"}


async def test_masked_parts_stay_what_they_are(tmp_path: Path) -> None:
    settings = Settings(console=ConsoleUse.ALWAYS, audit_arguments=Arguments.MASKED)
    async with watched(tmp_path, stub_group(ASKS), settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, to="all", password="hunter2hunter2"))
        approval = await one.approval()
        shown = json.loads(bytes(approval.arguments))
        assert shown["password"] == "[masked: name]"
        moved = await edit(one, approval, {"to": "[masked: name]"})
        assert not moved.accepted
        assert (await edit(one, approval, {**shown, "to": "ann"})).accepted
        assert await forwarded(one) == {"to": "ann", "password": "hunter2hunter2"}


@pytest.mark.parametrize("action", ["allow_session", "allow_similar"])
async def test_changed_arguments_are_allowed_once_only(tmp_path: Path, action: str) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1, "Bash", command="git push origin"))
        approval = await one.approval()
        given = Answer(approval.id, "allow_session", "", "", '{"command": "ls"}')
        if action == "allow_similar":
            given = Answer(approval.id, "allow_similar", "", "", '{"command": "ls"}')
        taken = await one.feed.approvals.answer(given, "a test", 0)
        assert (taken.accepted, taken.why) == (False, "With other arguments a call can be allowed once only.")


async def test_calls_like_one_are_allowed_for_the_session_from_a_console(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1, "Bash", command="git push origin"))
        approval = await one.approval()
        assert approval.similar == "Bash(git push *)"
        assert (await one.say(approval, "allow_similar")).accepted
        await one.server.line()
        await one.agent.send(call(2, "Bash", command="git push fork"))
        assert await forwarded(one) == {"command": "git push fork"}
        await one.agent.send(call(3, "Bash", command="rm -r x"))
        other = await one.approval()
        assert json.loads(bytes(other.arguments)) == {"command": "rm -r x"}
        assert not other.similar or other.similar != approval.similar


async def test_without_calls_like_it_nothing_is_allowed_as_such(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1, path="a"))
        taken = await one.say(await one.approval(), "allow_similar")
        assert not taken.accepted
        assert "cannot be said which calls are like this one" in taken.why


async def test_of_two_people_who_change_the_arguments_at_once_the_first_wins(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await list_tools(one)
        await one.agent.send(call(1, to="all"))
        approval = await one.approval()
        taken: list[AnswerTaken] = []

        async def give(to: str) -> None:
            given = Answer(approval.id, "allow", "", "", json.dumps({"to": to}))
            taken.append(await one.feed.approvals.answer(given, to, 0))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give, "ann")
            tasks.start_soon(give, "bob")
        assert sorted(each.accepted for each in taken) == [False, True]
        assert await forwarded(one) in ({"to": "ann"}, {"to": "bob"})
        await one.server.send(answer(1))
        await one.agent.line()
        assert await one.finish() == (b"", b"")


async def test_methods_other_than_tool_calls_keep_their_params(tmp_path: Path) -> None:
    settings = Settings(console=ConsoleUse.ALWAYS, ask=("resources/read",))
    async with watched(tmp_path, settings=settings) as one:
        await handshake(one)
        read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file:///a"}}
        await one.agent.send(json.dumps(read).encode() + b"\n")
        approval = await one.approval()
        assert not approval.may_edit
        taken = await edit(one, approval, {"uri": "file:///b"})
        assert (taken.accepted, "cannot be changed" in taken.why) == (False, True)
