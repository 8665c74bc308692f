"""An approval is posted to a webhook and answered once at its URL: real HTTP on both sides."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest
from msgspec.structs import replace

from hookproxy.approvals import ways, webhook
from hookproxy.audit.call_record import Record
from hookproxy.live import messages
from hookproxy.model.approval_settings import ApprovalSettings, WebhookSettings
from hookproxy.model.secret_settings import Source
from hookproxy.model.settings import Arguments, ConsoleUse, OnAsk, Settings
from hookproxy.session.live_feed import LiveFeed
from tests.session.test_live_feed import ASKS, Watched, call, handshake, watched
from tests.support.free_ports import free_port
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, Rig, rig, stub_group
from tests.support.webhook_receiver import SECRET, Receiver, receiver, send

pytestmark = pytest.mark.anyio

Result = TypeVar("Result")
NOWHERE: Final = "http://127.0.0.1:9/hook"  # the port of discard, at which nobody listens


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROVAL_SECRET", SECRET.decode())


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def hooked(url: str, listen: str = "127.0.0.1:0", **members: object) -> Settings:
    """Settings with a webhook at this address; consoles are asked only while they are open."""
    hook = WebhookSettings(url, Source("env", "APPROVAL_SECRET"), listen)
    return replace(Settings(approvals=ApprovalSettings(webhook=hook)), **members)


async def in_thread(function: Callable[[], Result]) -> Result:
    with anyio.fail_after(TIMEOUT):
        return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)


async def message(service: Receiver) -> dict[str, Any]:
    return await in_thread(service.message)


async def give(url: str, body: object, method: str = "POST", **headers: str) -> tuple[int, dict[str, Any]]:
    return await in_thread(partial(send, url, body, method, **headers))


@asynccontextmanager
async def asked(
    folder: Path, settings: Callable[[str], Settings] = hooked, *, follows: bool = False, **arguments: object
) -> AsyncIterator[tuple[Watched, Receiver, dict[str, Any]]]:
    """A call that waits, and what the service was told about it."""
    with receiver() as service:
        async with watched(folder, stub_group(ASKS), settings=settings(service.url), follows=follows) as one:
            await handshake(one)
            await one.agent.send(call(1, "write", **(arguments or {"to": "ann"})))
            yield one, service, await message(service)


async def test_a_yes_at_the_answers_url_lets_the_call_pass(tmp_path: Path) -> None:
    async with asked(tmp_path) as (one, _, posted):
        assert posted.keys() == {"id", "server", "tool", "arguments", "reason", "agent", "answer_url", "expires"}
        assert (posted["server"], posted["tool"], posted["arguments"]) == ("files", "write", {"to": "ann"})
        assert (posted["reason"], posted["agent"]) == ("sure?", "Lean")
        left = datetime.fromisoformat(posted["expires"]) - datetime.now(UTC)
        assert 3500 < left.total_seconds() <= 3600
        assert await give(posted["answer_url"], {"decision": "allow"}) == (200, {"taken": True})
        assert await one.server.line() == call(1, to="ann")
        status, said = await give(posted["answer_url"], {"decision": "allow"})
        assert (status, said["taken"], "no longer waits" in said["why"]) == (409, False, True), "it counts once"


async def test_a_no_has_a_reason_for_the_model(tmp_path: Path) -> None:
    async with asked(tmp_path) as (one, service, posted):
        ended: list[Record] = []
        one.proxy.policy.audit.on_ended = ended.append
        await give(posted["answer_url"], {"decision": "deny", "reason": "not on a Friday"})
        assert (await one.refusal()).endswith("The user says: not on a Friday")
        origin = f"http://{urlsplit(service.url).netloc}"
        assert [(record.answer, record.answered_by) for record in ended] == [("deny", f"the webhook {origin}")]


async def test_arguments_can_be_changed_and_those_that_do_not_fit_are_told(tmp_path: Path) -> None:
    async with asked(tmp_path) as (one, _, posted):
        status, said = await give(posted["answer_url"], {"decision": "allow", "arguments": [1]})
        assert (status, "not a JSON object" in said["why"]) == (409, True)
        assert (await give(posted["answer_url"], {"decision": "allow", "arguments": {"to": "bob"}}))[0] == 200
        assert json.loads(await one.server.line())["params"]["arguments"] == {"to": "bob"}


async def test_secrets_are_masked_and_stay_what_they_are(tmp_path: Path) -> None:
    settings = partial(hooked, audit_arguments=Arguments.MASKED)
    async with asked(tmp_path, settings, to="ann", password="hunter2hunter2") as (one, _, posted):
        assert posted["arguments"] == {"to": "ann", "password": "[masked: name]"}
        changed = {**posted["arguments"], "to": "bob"}
        assert (await give(posted["answer_url"], {"decision": "allow", "arguments": changed}))[0] == 200
        sent = json.loads(await one.server.line())["params"]["arguments"]
        assert sent == {"to": "bob", "password": "hunter2hunter2"}


async def test_what_is_not_an_answer_changes_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path) as (one, _, posted):
        url, yes = posted["answer_url"], {"decision": "allow"}
        head, _, token = url.rpartition("/")
        base, _, name = head.rpartition("/")
        for other in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            assert (await give(url, yes, other))[0] == 405, "chat programs fetch links that they show"
        assert (await give(url, yes, Origin="https://evil.example"))[0] == 403
        assert (await give(url, b"decision=allow", Content_Type="application/x-www-form-urlencoded"))[0] == 415
        wrong = "A" * len(token)
        for target in (f"{head}/{wrong}", f"{head}/{token}x", f"{base}/{name}9/{token}", base, f"{base}/../{name}"):
            assert (await give(target, yes))[0] in (404, 409)
        for body in (b"", b"null", b"{", b'{"decision":"allow","decision":"deny"}', b"\x00" * 1000):
            assert (await give(url, body))[0] == 400
        assert (await give(url, b"x" * (webhook.LONGEST_ANSWER + 1)))[0] == 413
        assert [waiting.tool for waiting in one.feed.approvals.here()] == ["write"]
        assert (await give(url, yes))[0] == 200


async def test_of_many_answers_at_once_one_counts(tmp_path: Path) -> None:
    async with asked(tmp_path) as (_, _, posted):
        statuses: list[int] = []

        async def say(decision: str) -> None:
            statuses.append((await give(posted["answer_url"], {"decision": decision}))[0])

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(say, "deny" if number % 2 else "allow")
        assert sorted(statuses) == [200, *[409] * 7]


async def test_a_console_and_the_webhook_are_asked_at_once_and_the_second_is_told(tmp_path: Path) -> None:
    async with asked(tmp_path, follows=True) as (one, _, posted):
        assert (await one.say(await one.approval(), "deny")).accepted
        status, said = await give(posted["answer_url"], {"decision": "allow"})
        assert (status, said["taken"]) == (409, False)
        await one.refusal()
        await one.until(lambda: not one.console.state.approvals)
    (other := tmp_path / "other").mkdir()
    async with asked(other, follows=True) as (one, _, posted):
        approval = await one.approval()
        assert (await give(posted["answer_url"], {"decision": "deny"}))[0] == 200
        await one.until(lambda: not one.console.state.approvals)
        assert not (await one.say(approval, "allow")).accepted
        assert one.console.state.settled["run", approval.id].by.startswith("the webhook http://127.0.0.1:")
        await one.refusal()


@pytest.mark.slow  # it waits for a deadline
async def test_after_its_time_nothing_is_taken(tmp_path: Path) -> None:
    async with asked(tmp_path, partial(hooked, ask_seconds=1.0)) as (one, _, posted):
        assert "no answer came" in await one.refusal()
        assert (await give(posted["answer_url"], {"decision": "allow"}))[0] == 409
        assert await one.finish() == (b"", b"")


async def test_a_call_that_was_cancelled_no_longer_waits(tmp_path: Path) -> None:
    async with asked(tmp_path) as (one, _, posted):
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        await one.agent.send(json.dumps(cancelled).encode() + b"\n")
        await one.proxy.changes.until(lambda: not one.proxy.has_open_calls)
        assert (await give(posted["answer_url"], {"decision": "allow"}))[0] == 409
        assert await one.finish() == (b"", b"")


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404, 500, 503])
async def test_a_webhook_that_refuses_is_reported_and_the_call_is_refused(tmp_path: Path, status: int) -> None:
    with receiver() as elsewhere, receiver() as service:
        service.status, service.location = status, elsewhere.url if status < 400 else ""
        async with watched(tmp_path, stub_group(ASKS), settings=hooked(service.url), follows=False) as one:
            await handshake(one)
            await one.agent.send(call(1))
            await one.refusal()
            assert any(f"status {status}" in text for text in one.reports), one.reports
            assert elsewhere.bodies.empty(), "no redirect is followed"
            assert one.feed.approvals.here() == []


async def test_where_nobody_listens_the_next_way_is_asked_and_in_the_end_the_call_is_refused(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=hooked(NOWHERE), follows=False) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert "cannot ask" in await one.refusal()
        assert any("cannot ask about a call of write" in text for text in one.reports)
    (other := tmp_path / "other").mkdir()
    async with watched(other, stub_group(ASKS), settings=hooked(NOWHERE)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert (await one.say(await one.approval(), "allow")).accepted, "an open console"
        assert await one.server.line() == call(1)
    ask = tmp_path / "ask.sh"
    ask.write_text("#!/bin/sh\nexit 0\n")
    ask.chmod(0o755)
    settings = hooked(NOWHERE, prompter=(str(ask),), console=ConsoleUse.NEVER)
    (third := tmp_path / "third").mkdir()
    async with watched(third, stub_group(ASKS), settings=settings, follows=False) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert await one.server.line() == call(1), "a program"


async def test_an_agent_that_can_ask_asks_unless_consoles_are_preferred(tmp_path: Path) -> None:
    with receiver() as service:
        for on_ask in (OnAsk.ELICIT, OnAsk.CONSOLE):
            (folder := tmp_path / on_ask).mkdir()
            settings = hooked(service.url, on_ask=on_ask)
            async with watched(folder, stub_group(ASKS), settings=settings, follows=False) as one:
                await handshake(one, {"elicitation": {}})
                await one.agent.send(call(1))
                if on_ask is OnAsk.ELICIT:
                    assert (await one.agent.message())["method"] == "elicitation/create"
                    assert service.bodies.empty()
                else:
                    posted = await message(service)
                    assert (await give(posted["answer_url"], {"decision": "allow"}))[0] == 200
                    assert await one.server.line() == call(1)


async def test_a_slow_service_holds_up_nobody_who_answers_elsewhere(tmp_path: Path) -> None:
    with receiver() as service:
        service.gate.clear()
        async with watched(tmp_path, stub_group(ASKS), settings=hooked(service.url)) as one:
            await handshake(one)
            await one.agent.send(call(1))
            assert (await one.say(await one.approval(), "allow")).accepted
            assert await one.server.line() == call(1)


async def test_a_slow_answer_holds_up_nobody(tmp_path: Path) -> None:
    async with asked(tmp_path) as (one, _, posted):
        parts = urlsplit(posted["answer_url"])
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as slow:
            slow.sendall(f"POST {parts.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode())
            assert (await give(posted["answer_url"], {"decision": "allow"}))[0] == 200
            assert await one.server.line() == call(1, to="ann")


async def test_runs_with_the_same_port_pass_answers_on_to_each_other(tmp_path: Path) -> None:
    port = free_port()
    settings = partial(hooked, listen=f"127.0.0.1:{port}")
    with receiver() as service:
        async with two_runs(tmp_path, settings(service.url)) as (first, second):
            for number, one in enumerate((first, second)):
                await handshake(one)
                await one.agent.send(call(number))
            posted = [await message(service), await message(service)]
            for told in posted:
                assert urlsplit(told["answer_url"]).port == port
                assert (await give(told["answer_url"], {"decision": "allow"}))[0] == 200
            assert await first.server.line() == call(0)
            assert await second.server.line() == call(1)
            head, _, _ = posted[1]["answer_url"].rpartition("/")
            assert (await give(f"{head}/{'A' * 43}", {"decision": "allow"}))[0] == 404


async def test_a_port_that_a_stranger_has_is_not_used(tmp_path: Path) -> None:
    with receiver() as service, receiver() as stranger:
        settings = hooked(service.url, listen=f"127.0.0.1:{urlsplit(stranger.url).port}")
        async with watched(tmp_path, stub_group(ASKS), settings=settings, follows=False) as one:
            await handshake(one)
            await one.agent.send(call(1))
            await one.refusal()
            assert any("no other run of hookproxy has it" in text for text in one.reports)
            assert service.bodies.empty(), "nothing was posted"


async def test_what_an_administrator_asks_is_posted_to_the_administrators_webhook_only(tmp_path: Path) -> None:
    with receiver() as own, receiver() as admins:
        managed = hooked(admins.url, console=ConsoleUse.NEVER, ask=("write",))
        settings = replace(hooked(own.url), managed=managed)
        async with watched(tmp_path, settings=settings) as one:
            await handshake(one)
            await one.agent.send(call(1))
            posted = await message(admins)
            assert own.bodies.empty()
            assert one.console.state.approvals == {}, "whoever runs the agent may open a console"
            forged = messages.Answer(posted["id"], "allow")
            assert not (await one.feed.approvals.answer(forged, "a console", os.geteuid())).accepted
            assert (await give(posted["answer_url"], {"decision": "allow"}))[0] == 200
            assert await one.server.line() == call(1)


async def test_at_a_gateway_with_approvers_the_webhook_is_not_asked(tmp_path: Path) -> None:
    with receiver() as service:
        settings = hooked(service.url, approvers=("@leads",))
        async with watched(tmp_path, stub_group(ASKS), settings=settings, follows=False) as one:
            await handshake(one)
            await one.agent.send(call(1))
            await one.refusal()
            assert service.bodies.empty()


async def test_an_agent_cannot_flood_a_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "_MOST_POSTED", 2)
    with receiver() as service:
        async with watched(tmp_path, stub_group(ASKS), settings=hooked(service.url), follows=False) as one:
            await handshake(one)
            for number in (1, 2):
                await one.agent.send(call(number))
                await message(service)
            await one.agent.send(call(3))
            assert "cannot ask" in await one.refusal()
            assert service.bodies.empty()
            assert any("2 calls wait for the webhook" in text for text in one.reports)


async def test_an_approver_does_not_change_what_another_person_asked_for(tmp_path: Path) -> None:
    settings = Settings(console=ConsoleUse.ALWAYS, approvers=("@leads",))
    async with watched(tmp_path, stub_group(ASKS), settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, to="ann"))
        approval = await one.approval()
        assert not approval.may_edit
        given = messages.Answer(approval.id, "allow", arguments='{"to": "bob"}')
        assert not (await one.feed.approvals.answer(given, "lena", os.geteuid())).accepted


@asynccontextmanager
async def two_runs(folder: Path, settings: Settings) -> AsyncIterator[tuple[Rig, Rig]]:
    """Two runs of the same account, each with a proxy."""
    os.chmod(folder, 0o700)
    async with (
        rig(stub_group(ASKS), settings=settings) as first,
        rig(stub_group(ASKS), settings=settings) as second,
        anyio.create_task_group() as tasks,
    ):
        feeds = []
        for name, one in (("1-00000001", first), ("1-00000002", second)):
            feed = LiveFeed(messages.Run(messages.VERSION, name, 1, 0.0), one.reports.append)
            feed.listen(str(folder))
            feed.add_session(one.proxy)
            tasks.start_soon(feed.serve)
            feeds.append(feed)
        yield first, second
        for feed in feeds:
            feed.close()
        tasks.cancel_scope.cancel()
