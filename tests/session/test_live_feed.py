"""What a console sees of a run, and how a person answers there: real sockets, the real follower."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec.structs import replace

from hookproxy.approvals import desktop
from hookproxy.console.follow import Follower
from hookproxy.console.state import State
from hookproxy.dialects.dialect import Group
from hookproxy.live import messages, registry
from hookproxy.live.messages import Action, WaitingApproval
from hookproxy.model.approval_settings import ApprovalSettings
from hookproxy.model.hooks import Event
from hookproxy.model.secret_settings import SecretSettings
from hookproxy.model.settings import Arguments, ConsoleUse, OnAsk, OnFailure, Settings
from hookproxy.secrets.finder import Finder
from hookproxy.session import live_feed
from hookproxy.session.hidden_secrets import HiddenSecrets
from hookproxy.session.live_feed import LiveFeed
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, Rig, rig, stub, stub_group

pytestmark = pytest.mark.anyio

PRE: Final = Event.PRE_TOOL_USE
ASKS: Final = stub(PRE, permission="ask", reason="sure?")
FALLBACK: Final = Settings(console=ConsoleUse.ALWAYS)
FIRST: Final = Settings(on_ask=OnAsk.CONSOLE)
RUN: Final = messages.Run(messages.VERSION, "run", 1, 0.0)


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(number: int, tool: str = "write", **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


def answer(number: int, text: str = "done") -> bytes:
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


async def handshake(one: Rig, capabilities: dict[str, object] | None = None) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": {"name": "Lean"}}
    await one.agent.send(
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode() + b"\n"
    )
    await one.server.line()
    result = {"protocolVersion": "2025-11-25", "capabilities": {}}
    await one.server.send(json.dumps({"jsonrpc": "2.0", "id": 0, "result": result}).encode() + b"\n")
    await one.agent.line()
    await one.agent.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    await one.server.line()


async def until(state: State, condition: Callable[[], bool]) -> None:
    """Wait until the state has changed so."""
    changed = anyio.Event()

    def on_change() -> None:
        if condition():
            changed.set()

    end = state.listen(on_change)
    on_change()
    with anyio.fail_after(TIMEOUT):
        await changed.wait()
    end()


class Watched(Rig):
    """A proxy with its feed, and a console that follows it."""

    feed: LiveFeed
    console: Follower
    folder: str

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(self.console.state, condition)

    async def approval(self) -> WaitingApproval:
        """The approval that waits."""
        await self.until(lambda: bool(self.console.state.approvals))
        (waiting,) = self.console.state.approvals.values()
        return waiting.approval

    async def say(self, approval: WaitingApproval, action: Action, reason: str = "") -> messages.AnswerTaken:
        return await self.console.answer("run", approval.id, action, reason, "a test")

    async def refusal(self) -> str:
        message = await self.agent.message()
        assert message["result"]["isError"] is True
        return str(message["result"]["content"][0]["text"])


@asynccontextmanager
async def watched(
    folder: Path,
    *groups: Group,
    settings: Settings | None = None,
    follows: bool = True,
    secrets: HiddenSecrets | None = None,
) -> AsyncIterator[Watched]:
    os.chmod(folder, 0o700)
    async with (
        rig(*groups, settings=settings, kind=Watched, secrets=secrets) as one,
        anyio.create_task_group() as tasks,
    ):
        assert isinstance(one, Watched)
        one.folder = str(folder)
        one.feed = LiveFeed(RUN, one.reports.append)
        one.feed.listen(one.folder)
        one.feed.add_session(one.proxy)
        one.console = Follower(one.folder, one.reports.append)
        tasks.start_soon(one.feed.serve)
        if follows:
            tasks.start_soon(one.console.follow)
            await one.until(lambda: bool(one.console.state.runs))
        yield one
        one.feed.close()
        tasks.cancel_scope.cancel()


async def test_a_call_is_seen_in_its_hook_at_the_server_and_when_it_has_ended(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    hook = stub(PRE, f"cat {fifo} >/dev/null; printf '%s' '{{\"arguments\": {{\"b\": 2}}}}'")
    async with watched(tmp_path, stub_group(hook)) as one:
        await handshake(one)
        await one.agent.send(call(1, a=1))
        state = one.console.state
        await one.until(lambda: any(seen.hooks for _, seen in state.in_flight()))
        ((run, seen),) = state.in_flight()
        assert (seen.tool, seen.stage, bytes(seen.arguments)) == ("write", "hooks", b'{"a":1}')
        assert seen.hooks[0].source == "stub.json: PreToolUse"
        assert (run.run.run, run.servers) == ("run", "files")
        with fifo.open("w"):
            pass
        await one.server.line()
        await one.until(lambda: any(seen.stage == "sent" for _, seen in state.in_flight()))
        ((_, seen),) = state.in_flight()
        assert (bytes(seen.arguments), json.loads(bytes(seen.rewritten))) == (b'{"a":1}', {"b": 2})
        await one.server.send(answer(1))
        await one.agent.line()
        await one.until(lambda: bool(state.ended))
        record = state.ended[-1].record
        assert (record.tool, record.decision, record.result, record.agent) == ("write", "allow", "ok", "Lean")
        assert (bytes(record.arguments), json.loads(bytes(record.rewritten))) == (b'{"a":1}', {"b": 2})
        assert (record.hooks[0].verdict, record.hooks[0].exit) == ("rewrite", 0)
        assert json.loads(record.hooks[0].input)["arguments"] == {"a": 1}
        assert (state.counts.calls, state.counts.rewritten, list(state.in_flight())) == (1, 1, [])


async def test_consoles_see_placeholders_for_hidden_secrets(tmp_path: Path) -> None:
    token, settings = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6", SecretSettings()
    secrets = HiddenSecrets(settings, Finder(settings, {}), "files")
    hooks = (ASKS, replace(stub(PRE, feedback=[token], arguments={"b": token}), label="rewriter"))
    shows_all = replace(FALLBACK, audit_arguments=Arguments.FULL)
    async with watched(tmp_path, stub_group(*hooks), settings=shows_all, secrets=secrets) as one:
        await handshake(one)
        await one.agent.send(call(1, a=token))
        approval = await one.approval()
        ((_, seen),) = one.console.state.in_flight()
        for shown in (approval.arguments, seen.arguments):
            assert token.encode() not in bytes(shown)
            assert b"{{secret:github-pat:" in bytes(shown)
        assert (await one.say(approval, "allow")).accepted
        assert json.loads(await one.server.line())["params"]["arguments"] == {"b": token}
        await one.server.send(answer(1))
        assert token.encode() not in await one.agent.line()
        await one.until(lambda: bool(one.console.state.ended))
        record = msgspec.json.encode(one.console.state.ended[-1].record)
        assert token.encode() not in record
        assert record.count(b"{{secret:github-pat:") > 3


@pytest.mark.parametrize(("action", "calls_asked"), [("allow", 2), ("allow_session", 1)])
async def test_a_yes_lets_the_call_pass_once_or_for_the_session(
    tmp_path: Path, action: Action, calls_asked: int
) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1, path="a"))
        approval = await one.approval()
        assert (approval.tool, approval.server, bytes(approval.arguments)) == ("write", "files", b'{"path":"a"}')
        assert (approval.reason, approval.asked_by) == ("sure?", "the PreToolUse hook stub")
        assert (await one.say(approval, action)).accepted
        assert await one.server.line() == call(1, path="a")
        await one.server.send(answer(1))
        await one.agent.line()
        await one.until(lambda: bool(one.console.state.ended))
        record = one.console.state.ended[-1].record
        who = f"user {os.geteuid()}, process {os.getpid()}, at a test"
        assert (record.decision, record.answered) == ("asked-allow", f"{action} by {who}")
        await one.agent.send(call(2, path="a"))
        if calls_asked == 2:
            assert (await one.say(await one.approval(), "deny")).accepted
            await one.refusal()
        else:
            assert await one.server.line() == call(2, path="a")
        assert one.feed.counts.asked == calls_asked


async def test_the_model_reads_why_a_person_denies(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert (await one.say(await one.approval(), "deny", "not on a Friday")).accepted
        text = await one.refusal()
        assert "did not allow it" in text
        assert text.endswith("The user says: not on a Friday")


async def test_the_first_answer_counts_and_the_second_is_told_so(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1))
        approval = await one.approval()
        taken = [await one.say(approval, "deny"), await one.say(approval, "allow")]
        assert [each.accepted for each in taken] == [True, False]
        assert "no longer waits" in taken[1].why
        await one.refusal()
        assert await one.finish() == (b"", b"")


async def test_an_approval_waits_for_a_console_that_is_opened_later(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK, follows=False) as one:
        await handshake(one)
        await one.agent.send(call(1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.console.follow)
            assert (await one.say(await one.approval(), "allow")).accepted
            assert await one.server.line() == call(1)
            tasks.cancel_scope.cancel()


async def test_without_an_answer_in_time_the_call_is_denied(tmp_path: Path) -> None:
    settings = replace(FALLBACK, ask_seconds=0.01)
    async with watched(tmp_path, stub_group(ASKS), settings=settings, follows=False) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert "no answer came" in await one.refusal()
        assert await one.finish() == (b"", b"")


async def test_an_agent_that_can_ask_asks_unless_the_console_is_preferred(tmp_path: Path) -> None:
    for settings, on_console in ((FALLBACK, False), (FIRST, True), (Settings(), False)):
        folder = tmp_path / str(settings.on_ask) / str(settings.console)
        folder.mkdir(parents=True)
        async with watched(folder, stub_group(ASKS), settings=settings) as one:
            await handshake(one, {"elicitation": {}})
            await one.agent.send(call(1))
            if on_console:
                assert (await one.say(await one.approval(), "allow")).accepted
                assert await one.server.line() == call(1)
            else:
                assert (await one.agent.message())["method"] == "elicitation/create"


async def test_a_run_that_no_console_can_find_asks_the_agent_or_denies(tmp_path: Path) -> None:
    for can_ask in (False, True):
        async with rig(stub_group(ASKS), settings=FIRST) as one:
            feed = LiveFeed(RUN, one.reports.append)
            feed.listen("")
            feed.add_session(one.proxy)
            await handshake(one, {"elicitation": {}} if can_ask else {})
            await one.agent.send(call(1))
            message = await one.agent.message()
            assert ("method" in message) is can_ask


async def test_an_approval_of_the_administrator_is_not_answered_where_the_administrator_does_not_ask(
    tmp_path: Path,
) -> None:
    managed = Settings(on_ask_fallback=OnFailure.DENY, console=ConsoleUse.NEVER, ask=("write",))
    settings = Settings(console=ConsoleUse.ALWAYS, managed=managed)
    async with watched(tmp_path, settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1))
        refusal = await one.refusal()
        assert "requires the user's approval" in refusal
        assert "administrator's configuration names no other way to ask (on_ask_fallback)" in refusal
        assert one.console.state.approvals == {}


async def test_without_a_key_an_open_console_asks_and_without_one_the_refusal_says_what_helps(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=Settings()) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert (await one.say(await one.approval(), "allow")).accepted
        assert await one.server.line() == call(1)
        await one.server.send(answer(1))
        assert b"done" in await one.agent.line()
    async with watched(tmp_path, stub_group(ASKS), settings=Settings(), follows=False) as one:
        await handshake(one)
        await one.agent.send(call(1))
        refusal = await one.refusal()
        assert 'on_ask_fallback = "auto"' in refusal
        assert "`hookproxy console` or `hookproxy top`" in refusal
    async with watched(tmp_path, stub_group(ASKS), settings=Settings(console=ConsoleUse.NEVER)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert 'With on_ask_fallback = "auto" in hookproxy.toml, such calls wait' in await one.refusal()


async def test_without_a_key_a_call_waits_only_as_long_as_a_console_is_open(tmp_path: Path) -> None:
    for settings, waits in ((Settings(), False), (FALLBACK, True)):
        folder = tmp_path / str(waits)
        folder.mkdir()
        async with watched(folder, stub_group(ASKS), settings=settings, follows=False) as one:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.console.follow)
                await one.until(lambda: bool(one.console.state.runs))
                await handshake(one)
                await one.agent.send(call(1))
                await one.approval()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(TIMEOUT):
                while one.feed.is_watched:
                    await anyio.lowlevel.checkpoint()
            if waits:
                assert [approval.tool for approval in one.feed.approvals.here()] == ["write"]
            else:
                assert "no answer came" in await one.refusal()


async def test_an_approval_is_withdrawn_when_the_agent_cancels_its_call(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        await one.agent.send(call(1))
        approval = await one.approval()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        await one.agent.send(json.dumps(cancelled).encode() + b"\n")
        await one.until(lambda: not one.console.state.approvals)
        assert one.console.state.settled["run", approval.id].action == "withdrawn"
        assert not (await one.say(approval, "allow")).accepted
        assert await one.finish() == (b"", b"")


async def test_two_consoles_see_the_same_and_a_run_that_ends_is_forgotten(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one, anyio.create_task_group() as tasks:
        other = Follower(one.folder, one.reports.append)
        tasks.start_soon(other.follow)
        await handshake(one)
        await one.agent.send(call(1))
        approval = await one.approval()
        await until(other.state, lambda: bool(other.state.approvals))
        assert (await other.answer("run", approval.id, "allow", "", "the other")).accepted
        await one.until(lambda: not one.console.state.approvals)
        assert one.console.state.settled["run", approval.id].by.endswith("at the other")
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_console_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    async with watched(tmp_path, stub_group(stub(PRE)), follows=False) as one:
        with registry.connect(one.folder, "run") or pytest.fail("nobody listens"):
            await handshake(one)
            for number in range(1, 30):
                await one.agent.send(call(number, text="x" * 60_000))
                await one.server.line()
                await one.server.send(answer(number))
                await one.agent.line()
            assert one.feed.counts.calls == 29


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"x" * (messages.LONGEST_ANSWER + 65_536),
        b'{"type":"answer","approval":"q","action":"maybe"}\n',
        messages.encode(messages.Answer("q", "allow", arguments="x" * (messages.LONGEST_EDIT + 1))),
    ],
    ids=["nonsense", "a long line", "an unknown action", "long arguments"],
)
async def test_a_console_that_says_something_else_is_disconnected(tmp_path: Path, line: bytes) -> None:
    async with watched(tmp_path, follows=False) as one:
        connection = registry.connect(one.folder, "run")
        assert connection is not None
        with connection, anyio.fail_after(TIMEOUT):
            try:
                while line:
                    await anyio.wait_writable(connection)
                    line = line[connection.send(line) :]
                await anyio.wait_readable(connection)
                while connection.recv(65_536):
                    await anyio.wait_readable(connection)
            except (ConnectionResetError, BrokenPipeError):
                pass


async def test_more_consoles_than_allowed_and_other_accounts_get_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched(tmp_path, follows=False) as one:
        for reason in ("most", "account"):
            if reason == "most":
                monkeypatch.setattr(live_feed, "_MOST_CONSOLES", 0)
            else:
                monkeypatch.undo()
                monkeypatch.setattr("hookproxy.transports.unix_socket.uid_of_peer", lambda _peer: 54_321)
            connection = registry.connect(one.folder, "run")
            assert connection is not None
            with connection, anyio.fail_after(TIMEOUT):
                await anyio.wait_readable(connection)
                assert connection.recv(100) == b""
    assert one.reports == ["a console was turned away: 0 follow this run", "a console of user 54321 was turned away"]


async def test_what_waits_for_a_console_that_does_not_read_is_bounded_and_the_sums_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "_MOST_BYTES_WAITING", 1000)
    monkeypatch.setattr(live_feed, "_TICK_SECONDS", 60)
    async with watched(tmp_path, stub_group(stub(PRE))) as one:
        await handshake(one)
        for number in range(1, 20):
            await one.agent.send(call(number, text=f"number {number} " + "x" * 300))
            await one.server.line()
            await one.server.send(answer(number))
            await one.agent.line()
        (console,) = one.feed._consoles
        assert 0 < console._ended_bytes <= 1000
        changes = console._changes()
        assert changes is not None
        assert changes.counts.calls == 19
        assert 0 < len(changes.ended) < 19
        assert b"number 19 " in bytes(changes.ended[-1]), "the newest are kept"
        assert console._ended_bytes == 0


async def test_long_lines_are_sent_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "_LINE_BYTES", 100)
    async with watched(tmp_path, stub_group(ASKS), settings=FALLBACK) as one:
        await handshake(one)
        for number in range(1, 6):
            await one.agent.send(call(number, text="x" * 300))
        state = one.console.state
        await one.until(lambda: len(state.approvals) == 5)
        for waiting in list(state.approvals.values()):
            assert len(bytes(waiting.approval.arguments)) > 300
            assert (await one.say(waiting.approval, "deny")).accepted
        await one.until(lambda: len(state.ended) == 5)
        assert list(state.in_flight()) == []
        for _ in range(5):
            await one.refusal()


async def test_a_stateless_agent_waits_for_the_console_or_asks_itself(tmp_path: Path) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    params = {"name": "write", "arguments": {}, "_meta": meta}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n"
    for settings, on_console in ((FIRST, True), (FALLBACK, False)):
        folder = tmp_path / str(on_console)
        folder.mkdir()
        async with watched(folder, stub_group(ASKS), settings=settings) as one:
            await one.agent.send(line)
            if on_console:
                assert (await one.say(await one.approval(), "allow")).accepted
                assert await one.server.line() == line
            else:
                assert (await one.agent.message())["result"]["resultType"] == "input_required"


async def test_a_folder_that_others_may_enter_is_reported_and_the_run_goes_on(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    async with rig(stub_group(stub(PRE))) as one:
        feed = LiveFeed(RUN, one.reports.append)
        feed.listen(str(tmp_path))
        feed.add_session(one.proxy)
        await feed.serve()
        assert not feed.can_ask
        assert one.reports == [
            f"consoles do not see this run: {tmp_path}: others may enter it; chmod 700 {tmp_path}",
        ]
        await one.agent.send(call(1))
        assert await one.server.line() == call(1)


@pytest.mark.parametrize("needed", [True, False])
async def test_a_place_that_cannot_be_had_is_reported_if_a_console_is_needed(tmp_path: Path, needed: bool) -> None:
    (tmp_path / "file").touch()
    reports: list[str] = []
    for folder in ("", str(tmp_path / "file" / "runs")):
        LiveFeed(RUN, reports.append).listen(folder, needed=needed)
    assert [one.partition(": ")[0] for one in reports] == ["consoles do not see this run"] * 2 * needed


async def test_a_run_that_was_killed_is_forgotten_and_its_socket_removed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(registry.socket_path(str(tmp_path), "dead"))
    async with watched(tmp_path) as one:
        assert registry.names(one.folder) == ["run"]
        assert list(one.console.state.runs) == ["run"]
        one.feed.close()


@pytest.mark.parametrize("kept", list(Arguments))
async def test_a_console_sees_no_secret_unless_the_audit_has_everything(tmp_path: Path, kept: Arguments) -> None:
    settings = replace(FALLBACK, audit_arguments=kept)
    given = {"password": "hunter22", "text": "PASSWORD=swordfish9 x", "token": "a; reboot"}
    async with watched(tmp_path, stub_group(ASKS), settings=settings) as one:
        await handshake(one)
        await one.agent.send(call(1, **given))
        approval = await one.approval()
        await one.until(lambda: any(seen.stage == "approval" for _, seen in one.console.state.in_flight()))
        ((_, seen),) = one.console.state.in_flight()
        assert (await one.say(approval, "deny", "hunter22 is weak")).accepted
        await one.refusal()
        await one.until(lambda: bool(one.console.state.ended))
        record = one.console.state.ended[-1].record
        shown = {
            "approval": bytes(approval.arguments).decode(),
            "in flight": bytes(seen.arguments).decode(),
            "ended": repr(record),
        }
        for place, text in shown.items():
            for secret in ("hunter22", "swordfish9"):
                assert (secret in text) is (kept is Arguments.FULL), place
            assert ("reboot" in text) is (kept is Arguments.FULL or place == "approval"), place


async def test_a_notification_says_that_a_call_waits_and_the_call_waits_for_a_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "shown"
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>"{shown}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(desktop, "_PLACES", (str(tmp_path),))
    settings = Settings(approvals=ApprovalSettings(desktop=True))
    for can_ask in (False, True):
        (folder := tmp_path / str(can_ask)).mkdir()
        async with watched(folder, stub_group(ASKS), settings=settings, follows=False) as one:
            await handshake(one, {"elicitation": {}} if can_ask else {})
            await one.agent.send(call(1, path="a secret path"))
            if can_ask:
                assert (await one.agent.message())["method"] == "elicitation/create"
                with anyio.fail_after(TIMEOUT):
                    while "in the agent." not in shown.read_text():
                        await anyio.lowlevel.checkpoint()
            else:
                with anyio.fail_after(TIMEOUT):
                    while not shown.exists() or "of files waits for your answer in hookproxy" not in shown.read_text():
                        await anyio.lowlevel.checkpoint()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(one.console.follow)  # a person opens one
                    assert (await one.say(await one.approval(), "allow")).accepted
                    await one.server.line()
                    tasks.cancel_scope.cancel()
        assert "secret path" not in shown.read_text()


async def test_where_no_notification_can_be_shown_the_call_is_refused_as_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desktop, "_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = Settings(approvals=ApprovalSettings(desktop=True), ask=("write",))
    async with watched(tmp_path, settings=settings, follows=False) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert "cannot ask" in await one.refusal()
        assert any("the desktop does not say so: there is no " in text for text in one.reports)
