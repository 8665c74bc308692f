"""A call ends in one value, and what the audit records of it is derived from that."""

from __future__ import annotations

import json

import anyio
import anyio.lowlevel
import pytest

from hookproxy.audit.call_record import Record
from hookproxy.model.call_end import CallEnd, Cancelled, Failed, Refused, Responded
from hookproxy.model.decision import Proceed, Refuse
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.protocol.calls import Call
from hookproxy.session import running_calls
from hookproxy.session.call import handle_call
from hookproxy.session.call_context import CallServices
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub, stub_group

pytestmark = pytest.mark.anyio

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write","arguments":{}}}\n'
REFUSAL = Refuse("a hook", "all stop", stop=True)
POST = stub_group(stub(Event.POST_TOOL_USE, feedback=["noted"]))


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[CallEnd]:
    ends: list[CallEnd] = []

    async def note_end(call: Call, services: CallServices) -> CallEnd:
        ends.append(await handle_call(call, services))
        return ends[-1]

    monkeypatch.setattr(running_calls, "handle_call", note_end)
    return ends


async def respond(one: Rig, **members: object) -> bytes:
    await one.agent.send(CALL)
    await one.server.line()
    await one.server.send(json.dumps({"jsonrpc": "2.0", "id": 7, **members}).encode() + b"\n")
    return await one.agent.line()


async def test_a_call_with_a_response_ends_in_what_the_agent_got(ends: list[CallEnd]) -> None:
    async with rig(POST) as one:
        line = await respond(one, result={"content": []})
        failed = await respond(one, error={"code": 1, "message": "no"})
    assert ends == [Responded(line), Responded(failed, "error")]


async def test_a_refused_call_ends_in_who_refused_it_and_why(ends: list[CallEnd]) -> None:
    async with rig(stub_group(stub(Event.PRE_TOOL_USE, permission="deny", reason="no writes"))) as one:
        await one.agent.send(CALL)
        line = await one.agent.line()
    assert ends == [Refused(line, "no writes", "denied", "stub")]


async def test_a_call_that_the_server_cannot_answer_any_more_fails(ends: list[CallEnd]) -> None:
    async with rig(POST) as one:
        await one.agent.send(CALL)
        await one.server.line()
        one.proxy.handle_server_exit("The server has ended")
        line = await one.agent.line()
    (end,) = ends
    assert isinstance(end, Failed)
    assert (end.line, end.result) == (line, "lost")


async def test_a_forwarded_call_that_the_agent_cancels_ends_without_a_response(ends: list[CallEnd]) -> None:
    async with rig(POST) as one:
        await one.agent.send(CALL)
        await one.server.line()
        await one.agent.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n')
        await one.server.line()
        await one.proxy.changes.until(lambda: not one.proxy.has_open_calls)
    (end,) = ends
    assert isinstance(end, Cancelled)
    assert "cancelled" in end.reason


async def test_a_call_that_hooks_stop_while_it_waits_for_a_long_line_is_recorded_as_refused() -> None:
    records: list[Record] = []
    settings = Settings(audit_all_calls=True)
    async with rig(settings=settings) as one:
        one.proxy.policy.audit.on_ended = records.append
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(one.proxy.relay), "passing", property(lambda _relay: True))
            await one.agent.deliver(CALL)
            (call,) = one.proxy.router.calls.values()
            one.proxy.calls.refuse_other_calls(
                Call(b"", b"", b"", "other", b"{}", {}, stateless=False, task=False), REFUSAL
            )
            with anyio.fail_after(30):
                while not records:  # its response waits behind the long line
                    await anyio.lowlevel.checkpoint()
    assert [(record.decision, record.result, record.cause) for record in records] == [("deny", "refused", "stopped")]
    assert call.stopped_by is REFUSAL


@pytest.mark.parametrize(
    ("proceed", "end", "words"),
    [
        (None, Cancelled("gone"), ("", "cancelled", "gone", "")),
        (Proceed(), Responded(b""), ("allow", "ok", "", "")),
        (Proceed(asked=True), Responded(result="sent"), ("asked-allow", "sent", "", "")),
        (None, Responded(b"", "pending", "why", asks=True), ("asked", "pending", "why", "")),
        (Proceed(), Failed(b"", "lost it", "lost"), ("allow", "lost", "lost it", "")),
        (Proceed(asked=True), Refused(b"", "full", "audit"), ("deny", "refused", "full", "audit")),
        (None, Refused(b"", "no", "declined", "rule", asked=True), ("asked-deny", "refused", "no", "declined")),
    ],
)
def test_the_words_of_the_audit_follow_from_how_a_call_ended(
    proceed: Proceed | None, end: CallEnd, words: tuple[str, ...]
) -> None:
    record = Record("session", "files", "write", b"7", b"{}")
    if proceed is not None:
        record.note_allowed(proceed)
    record.note_end(end)
    assert (record.decision, record.result, record.reason, record.cause) == words


def test_what_a_person_said_stays_where_the_end_needs_no_reason() -> None:
    record = Record("session", "files", "write", b"7", b"{}", reason="only today")
    record.note_end(Responded(b""))
    assert record.reason == "only today"
