"""An approval that waits at one gateway is answered on a console of another one: real sockets, and a real store."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import pytest

from hookproxy.config.gateway_models import StoreTable
from hookproxy.console.follow import Follower
from hookproxy.gateway import shared_approvals
from hookproxy.gateway.metrics import Metrics
from hookproxy.gateway.shared_approvals import SharedApprovals
from hookproxy.gateway.store import Store
from hookproxy.live import messages
from hookproxy.live.messages import Answer, AnswerTaken, GivenAnswer, WaitingApproval
from hookproxy.model.hooks import Event
from hookproxy.model.principal import Principal
from hookproxy.model.settings import ConsoleUse, Settings
from hookproxy.protocol.request_state import SealKey
from hookproxy.session.live_feed import LiveFeed
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub, stub_group
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="neither valkey-server nor redis-server is installed"),
]

PATIENCE: Final = 30.0
KEY: Final = SealKey(b"k" * 32)
OTHER_KEY: Final = SealKey(b"o" * 32)
ASKS: Final = stub(Event.PRE_TOOL_USE, permission="ask", reason="sure?")
CALL: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write", "arguments": {"a": "s3"}}}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateways look often."""
    monkeypatch.setattr(shared_approvals, "_LOOK_SECONDS", 0.05)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    (tmp_path / "store").mkdir()
    process = StoreProcess(tmp_path / "store")
    try:
        yield process
    finally:
        process.kill()


async def until(condition: Callable[[], object]) -> None:
    """Wait until it holds. Both gateways look at the store once a second, and nothing shows when."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110  # there is nothing that could be waited for
            await anyio.sleep(0.01)


@dataclass
class Gateways:
    """Two gateways: at `here` a call waits, and at `there` a console is open."""

    here: LiveFeed
    there: LiveFeed
    rig: Rig
    console: Follower
    reports: list[str]
    shared: tuple[SharedApprovals, SharedApprovals]

    async def ask(self, **arguments: object) -> None:
        """A call that needs an approval."""
        message = {**CALL, "params": {"name": "write", "arguments": arguments or {"a": "s3"}}}
        await self.rig.agent.send(json.dumps(message).encode() + b"\n")

    async def approval(self) -> WaitingApproval:
        """The approval that the other gateway's console shows."""
        await until(lambda: self.console.state.approvals)
        [waiting] = self.console.state.approvals.values()
        return waiting.approval

    async def say(self, approval: WaitingApproval, action: messages.Action, reason: str = "") -> AnswerTaken:
        with anyio.fail_after(PATIENCE):
            return await self.console.answer("there", approval.id, action, reason, "a test")

    async def refusal(self) -> str:
        with anyio.fail_after(PATIENCE):
            return json.dumps(await self.rig.agent.message())


@asynccontextmanager
async def two(server: StoreProcess, folder: Path, key_there: SealKey | None = KEY) -> AsyncIterator[Gateways]:
    reports: list[str] = []
    async with (
        rig(stub_group(ASKS), settings=Settings(console=ConsoleUse.ALWAYS)) as one,
        anyio.create_task_group() as tasks,
    ):
        feeds, shared = [], []
        for name, key in (("here", KEY if key_there else None), ("there", key_there)):
            place = folder / name
            place.mkdir(mode=0o700)
            feeds.append(feed := LiveFeed(messages.Run(messages.VERSION, name, os.getpid(), 0.0), reports.append))
            feed.listen(str(place))
            store = Store(StoreTable(server.url), "/", reports.append, Metrics())
            tasks.start_soon(store.keep_in_touch)
            await store.look()
            shared.append(SharedApprovals(store, feed, partial(list, [key] if key else []), reports.append))
            tasks.start_soon(feed.serve)
            tasks.start_soon(shared[-1].share)
        here, there = feeds
        here.add_session(one.proxy, "alice")
        console = Follower(str(folder / "there"), reports.append)
        tasks.start_soon(console.follow)
        await until(lambda: there.is_watched)
        yield Gateways(here, there, one, console, reports, (shared[0], shared[1]))
        here.close()
        there.close()
        tasks.cancel_scope.cancel()


async def test_an_answer_on_another_gateways_console_lets_the_call_pass(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask()
        approval = await both.approval()
        assert (approval.tool, json.loads(bytes(approval.arguments))) == ("write", {"a": "s3"})
        assert approval.user == "alice"
        assert await both.say(approval, "allow") == AnswerTaken(approval.id, accepted=True)
        with anyio.fail_after(PATIENCE):
            assert json.loads(await both.rig.server.line()) == CALL


async def test_a_denial_reaches_the_model_with_its_reason(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask()
        approval = await both.approval()
        taken = await both.say(approval, "deny", "Not on a Friday.")
        assert taken == AnswerTaken(approval.id, accepted=True)
        assert "Not on a Friday." in await both.refusal()


async def test_the_first_answer_of_all_consoles_counts(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask()
        approval = await both.approval()
        assert (await both.here.approvals.take(GivenAnswer(Answer(approval.id, "deny"), "somebody here"))).accepted
        late = await both.say(approval, "allow")
        assert not late.accepted
        assert late.why
        assert "somebody" not in await both.refusal()


async def test_two_answers_from_elsewhere_do_not_both_count(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask()
        approval = await both.approval()
        first = await both.shared[1].answer(GivenAnswer(Answer(approval.id, "deny"), "one"))
        second = await both.shared[1].answer(GivenAnswer(Answer(approval.id, "allow"), "two"))
        assert (first.accepted, second.accepted) == (True, False)
        assert "did not allow it" in await both.refusal()


class Leads:
    """As Approvers: those in the group leads, and nobody his own calls."""

    def __init__(self, *groups: str) -> None:
        self.groups = groups

    async def who(self, uid: int) -> Principal:
        return Principal(f"uid:{uid}", "lena", self.groups)

    def why_not(self, person: Principal, approval: WaitingApproval, _action: messages.Action) -> str:
        if not person.is_among(["@leads"]):
            return "You are no lead."
        return "It is your own." * (approval.user == person.name)


async def test_both_gateways_look_at_who_answers_elsewhere(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        both.here.approvals.approvers = Leads("leads")
        await both.ask()
        approval = await both.approval()
        unknown = await both.shared[1].answer(GivenAnswer(Answer(approval.id, "allow"), "one"))
        assert not unknown.accepted
        assert "not known" in unknown.why
        assert both.here.approvals.here()
        both.there.approvals.approvers = Leads()
        refused = await both.say(approval, "allow")
        assert (refused.accepted, refused.why) == (False, "You are no lead.")


async def test_an_approver_at_one_gateway_answers_what_waits_at_another(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        both.here.approvals.approvers = both.there.approvals.approvers = Leads("leads")
        await both.ask()
        approval = await both.approval()
        assert (await both.say(approval, "allow")).accepted
        with anyio.fail_after(PATIENCE):
            assert json.loads(await both.rig.server.line()) == CALL


async def test_an_approval_that_is_answered_disappears_elsewhere(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask()
        approval = await both.approval()
        await both.here.approvals.take(GivenAnswer(Answer(approval.id, "deny"), "somebody here"))
        await until(lambda: not both.console.state.approvals)


async def test_nothing_in_the_store_can_be_read_or_answered_without_the_key(
    server: StoreProcess, tmp_path: Path
) -> None:
    async with two(server, tmp_path, OTHER_KEY) as both:
        await both.ask(secret="hunter2-of-a-call")
        await until(lambda: b"approvals" in server.ask("KEYS", "*approvals*"))
        await both.shared[1].look()
        assert list(both.there.approvals.everywhere()) == []
        [approval] = both.here.approvals.here()
        forged = await both.shared[1].answer(GivenAnswer(Answer(approval.id, "allow"), "a forger"))
        assert not forged.accepted
        assert "has not confirmed" in forged.why
        assert [one.id for one in both.here.approvals.here()] == [approval.id]
        assert b"hunter2" not in server.ask("GET", both.shared[0]._store.key("approvals", "here"))


async def test_a_long_approval_stays_at_its_gateway_which_says_so(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask(text="x" * 300_000)
        await until(lambda: any("only this gateway's consoles show it" in text for text in both.reports))
        await both.shared[1].look()
        assert list(both.there.approvals.everywhere()) == []


async def test_without_the_store_each_gateway_shows_its_own_approvals(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path) as both:
        await both.ask()
        approval = await both.approval()
        server.kill()
        await until(lambda: not both.console.state.approvals)
        answer = await both.shared[1].answer(GivenAnswer(Answer(approval.id, "allow"), "one"))
        assert not answer.accepted
        assert "could not be passed on" in answer.why
        assert (await both.here.approvals.take(GivenAnswer(Answer(approval.id, "deny"), "somebody here"))).accepted


async def test_a_gateway_that_was_killed_is_forgotten(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path):
        server.ask("SADD", "hookproxy:gateways", "gone")
        await until(lambda: b"gone" not in server.ask("SMEMBERS", "hookproxy:gateways"))


async def test_a_gateway_without_seal_keys_publishes_nothing(server: StoreProcess, tmp_path: Path) -> None:
    async with two(server, tmp_path, None) as both:
        await both.ask()
        await until(both.here.approvals.here)
        for shared in both.shared:
            await shared.look()
        assert b"approvals" not in server.ask("KEYS", "*approvals*")
        assert list(both.there.approvals.everywhere()) == []
        [approval] = both.here.approvals.here()
        assert (await both.here.approvals.take(GivenAnswer(Answer(approval.id, "deny"), "somebody here"))).accepted
