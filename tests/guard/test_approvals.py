"""A call of an agent whose hooks cannot ask a person waits on a console that is open; else it is refused in words."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pytest

from hookproxy.console.follow import Follower
from hookproxy.dialects.agent_side import HookOutput
from hookproxy.guard import approvals
from hookproxy.guard.current_policy import CurrentPolicy, Read
from hookproxy.guard.exchange import Request
from hookproxy.guard.judge import Judge
from hookproxy.live import messages
from hookproxy.live.messages import Action, AnswerTaken
from hookproxy.model.errors import UserError
from hookproxy.model.hooks import Permission
from hookproxy.session.live_feed import LiveFeed
from tests.dialects.tables import agents
from tests.guard.test_judge import before, configured, permission, records
from tests.session.test_live_feed import until
from tests.support.webhook_receiver import SECRET, receiver, send

pytestmark = pytest.mark.anyio

ASKS: Final = '[permissions]\nask = ["Bash(rm *)"]'
RUN: Final = messages.Run(messages.VERSION, "guard", os.getpid(), 0.0, ("hookproxy", "guard"))
CODEX: Final = agents()["codex"].before


class Watched:
    """A judge with its feed, and a console that follows it."""

    def __init__(self, judge: Judge, feed: LiveFeed, console: Follower) -> None:
        self.judge, self.feed, self.console = judge, feed, console
        self.outputs: list[HookOutput] = []

    async def approval(self) -> messages.WaitingApproval:
        await until(self.console.state, lambda: bool(self.console.state.approvals))
        (waiting,) = self.console.state.approvals.values()
        return waiting.approval

    async def give(self, action: Action, reason: str = "", arguments: str = "") -> AnswerTaken:
        waiting = await self.approval()
        return await self.console.answer("guard", waiting.id, action, reason, "a test", arguments)

    async def judged(self, request: Request) -> None:
        self.outputs.append(await self.judge.judge(request))


@asynccontextmanager
async def watched(folder: Path, text: str = ASKS, *, follows: bool = True) -> AsyncIterator[Watched]:
    runs = folder / "runs"
    runs.mkdir(0o700)
    reports: list[str] = []
    async with anyio.create_task_group() as tasks:
        feed = LiveFeed(RUN, reports.append)
        feed.listen(str(runs))
        tasks.start_soon(feed.serve)
        judge = Judge(configured(folder, text), tasks, reports.append, feed)
        console = Follower(str(runs), reports.append)
        if follows:
            tasks.start_soon(console.follow)
            await until(console.state, lambda: bool(console.state.runs))
        yield Watched(judge, feed, console)
        await judge.aclose()
        feed.close()
        tasks.cancel_scope.cancel()
    assert reports == []


def codex(command: str, call: str = "c1") -> Request:
    document = {**CODEX, "tool_input": {"command": command}, "tool_use_id": call}
    return Request("codex", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(document).encode())


async def test_a_yes_on_a_console_lets_the_call_of_such_an_agent_run(tmp_path: Path) -> None:
    async with watched(tmp_path) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(one.judged, before("codex"))
        waiting = await one.approval()
        assert (waiting.tool, waiting.alias, waiting.agent) == ("Bash", "Bash", "codex")
        assert json.loads(bytes(waiting.arguments))["command"] == "rm x"
        assert waiting.call
        assert (await one.give("allow")).accepted
    assert permission("codex", one.outputs[0]) is not Permission.DENY
    record = records(tmp_path)[0]
    assert (record["decision"], record["asked_by"]) == (
        "asked-allow",
        "the permission rule Bash(rm *) of hookproxy.toml",
    )
    assert str(record["answered_by"]).endswith("at a test")


async def test_a_no_is_read_by_the_agent_with_its_reason(tmp_path: Path) -> None:
    async with watched(tmp_path) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(one.judged, before("codex"))
        assert (await one.give("deny", "not on a Friday")).accepted
    assert permission("codex", one.outputs[0]) is Permission.DENY
    assert b"The user says: not on a Friday" in one.outputs[0].stdout
    (record,) = records(tmp_path)
    assert (record["decision"], record["cause"], record["reason"]) == ("asked-deny", "declined", "not on a Friday")


async def test_without_a_console_it_is_refused_at_once_and_says_what_helps(tmp_path: Path) -> None:
    async with watched(tmp_path, follows=False) as one:
        await one.judged(before("codex"))
    assert permission("codex", one.outputs[0]) is Permission.DENY
    assert b"hookproxy console" in one.outputs[0].stdout


async def test_an_agent_that_can_ask_asks_itself_unless_the_console_is_preferred(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        await one.judged(before("claude"))
        assert permission("claude", one.outputs[0]) is Permission.ASK
    (other := tmp_path / "other").mkdir()
    async with watched(other, f'on_ask = "console"\n{ASKS}') as one, anyio.create_task_group() as tasks:
        tasks.start_soon(one.judged, before("claude"))
        assert (await one.give("allow")).accepted
    assert permission("claude", one.outputs[0]) is Permission.ALLOW  # it does not ask again


async def test_nobody_is_asked_for_longer_than_the_agent_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "patience", lambda _side: 0.01)
    async with watched(tmp_path) as one:
        await one.judged(before("codex"))
        assert one.feed.approvals.here() == []
    assert b"no answer came" in one.outputs[0].stdout
    assert records(tmp_path)[0]["cause"] == "not answered"


async def test_a_call_whose_agent_has_gone_no_longer_waits(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.judged, before("codex"))
            waiting = await one.approval()
            tasks.cancel_scope.cancel()
        await until(one.console.state, lambda: not one.console.state.approvals)
        late = await one.console.answer("guard", waiting.id, "allow", "", "a test")
        assert not late.accepted
    assert one.outputs == []


async def test_a_yes_for_the_session_holds_for_its_later_calls(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.judged, codex("rm -r a"))
            assert (await one.give("allow_session")).accepted
        await one.judged(codex("rm -r b", "c2"))
    assert [permission("codex", output) for output in one.outputs] != [Permission.DENY] * 2
    assert permission("codex", one.outputs[1]) is not Permission.DENY


async def test_a_yes_for_calls_like_it_holds_for_these_only(tmp_path: Path) -> None:
    async with watched(tmp_path, '[permissions]\nask = ["Bash"]') as one:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.judged, codex("git push origin"))
            assert (await one.approval()).similar == "Bash(git push *)"
            assert (await one.give("allow_similar")).accepted
        await one.judged(codex("git push fork", "c2"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.judged, codex("rm x", "c3"))
            assert (await one.give("deny")).accepted
    given = [permission("codex", output) for output in one.outputs]
    assert Permission.DENY not in given[:2]
    assert given[2] is Permission.DENY


@pytest.mark.parametrize(("agent", "may_edit"), [("claude", True), ("windsurf", False)])
async def test_the_arguments_can_be_changed_where_the_agent_lets_hooks_do_so(
    tmp_path: Path, agent: str, may_edit: bool
) -> None:
    name = "cascade" if agent == "windsurf" else agent
    async with watched(tmp_path, f'on_ask = "console"\n{ASKS}') as one, anyio.create_task_group() as tasks:
        tasks.start_soon(one.judged, before(name))
        waiting = await one.approval()
        assert waiting.may_edit is may_edit
        changed: Mapping[str, object] = {**json.loads(bytes(waiting.arguments)), "command": "rm y"}
        taken = await one.give("allow", arguments=json.dumps(changed))
        assert taken.accepted is may_edit
        if not may_edit:
            assert (await one.give("deny")).accepted
    if may_edit:
        assert b'"command":"rm y"' in one.outputs[0].stdout.replace(b": ", b":")
        assert records(tmp_path)[0]["edited"] is True


async def test_changed_arguments_are_judged_by_rules(tmp_path: Path) -> None:
    text = 'on_ask = "console"\n[permissions]\nask = ["Bash(rm *)"]\ndeny = ["Bash(rm /)"]'
    async with watched(tmp_path, text) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(one.judged, before("claude"))
        shown = json.loads(bytes((await one.approval()).arguments))
        assert (await one.give("allow", arguments=json.dumps({**shown, "command": "rm /"}))).accepted
    assert permission("claude", one.outputs[0]) is Permission.DENY


async def test_a_program_that_asks_is_asked_for_the_agents_own_tools_too(tmp_path: Path) -> None:
    ask = tmp_path / "ask.sh"
    ask.write_text(f"#!/bin/sh\ncat >{tmp_path}/asked\nexit 0\n")
    ask.chmod(0o755)
    text = f'{ASKS}\n[on_ask_fallback]\ncommand = ["./ask.sh"]'
    async with watched(tmp_path, text, follows=False) as one:
        await one.judged(before("codex"))
    assert permission("codex", one.outputs[0]) is not Permission.DENY
    assert json.loads((tmp_path / "asked").read_text())["tool"] == "Bash"
    assert records(tmp_path)[0]["answered_by"] == f"the program {ask}"


async def test_a_webhook_is_asked_about_an_agents_own_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROVAL_SECRET", SECRET.decode())
    with receiver() as service:
        text = f'{ASKS}\n[approvals.webhook]\nurl = "{service.url}"\nsecret = "env:APPROVAL_SECRET"'
        async with watched(tmp_path, text, follows=False) as one, anyio.create_task_group() as tasks:
            tasks.start_soon(one.judged, before("codex"))
            posted = await anyio.to_thread.run_sync(service.message)
            assert (posted["server"], posted["tool"], posted["agent"]) == ("", "Bash", "codex")
            answer = partial(send, posted["answer_url"], {"decision": "allow"})
            assert (await anyio.to_thread.run_sync(answer))[0] == 200
    assert permission("codex", one.outputs[0]) is not Permission.DENY
    assert str(records(tmp_path)[0]["answered_by"]).startswith("the webhook http://127.0.0.1:")


async def test_a_secret_that_cannot_be_read_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    text = f'{ASKS}\n[approvals.webhook]\nurl = "https://chat.example/x"\nsecret = "env:NO_SUCH_SECRET"'
    loaded = configured(tmp_path, text)
    async with anyio.create_task_group() as tasks:
        with pytest.raises(UserError, match=r"approvals\.webhook\.secret: the environment variable NO_SUCH_SECRET"):
            CurrentPolicy(lambda: Read(loaded, {}), tasks, print, LiveFeed(RUN, print))
