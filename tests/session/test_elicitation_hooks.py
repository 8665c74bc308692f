"""Hooks answer the server's elicitations in the person's place, or change the person's answers; other lines pass."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.settings import OnFailure, Settings
from hookproxy.protocol.elicitation_messages import ElicitationResponse
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, Rig, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio

ASKED, RESULT = Event.ELICITATION, Event.ELICITATION_RESULT
SCHEMA = b'{"type":"object","properties":{"branch":{"type":"string"}},"required":["branch"]}'
ASK = (
    b'{"jsonrpc":"2.0", "id":5.0,"method":"elicitation/create","params":{"message":"Which branch?",'
    b'"requestedSchema":%b}}\n' % SCHEMA
)
ANSWER = b'{"jsonrpc": "2.0","id":5.0,"result":{"action":"accept","content":{"branch":"main"},"_meta":{}}}\n'
PING = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


class Gate:
    """Where a hook waits: it writes to one FIFO when it arrives, and goes on when it can read from another."""

    def __init__(self, folder: Path) -> None:
        self.here, self.go = folder / "here", folder / "go"
        for fifo in (self.here, self.go):
            os.mkfifo(fifo)
        self._here = os.open(self.here, os.O_RDWR | os.O_NONBLOCK)
        self._go = os.open(self.go, os.O_RDWR)
        self.script = f"echo >'{self.here}'; read x <'{self.go}'; "

    async def reached(self) -> None:
        with anyio.fail_after(TIMEOUT):
            await anyio.wait_readable(self._here)
            os.read(self._here, 1)

    def open(self) -> None:
        os.write(self._go, b"\n")

    def close(self) -> None:
        os.close(self._here)
        os.close(self._go)


@pytest.fixture
def gate(tmp_path: Path) -> Any:  # noqa: ANN401
    one = Gate(tmp_path)
    yield one
    one.close()


def waiting(gate: Gate, event: Event = ASKED, **verdict: object) -> HookSpec:
    return stub(event, gate.script + f"printf %s {shlex.quote(json.dumps(verdict))}")


def audit_notes(audit: Path) -> list[str]:
    return [json.loads(line).get("note", "") for line in audit.read_text().splitlines()] if audit.exists() else []


async def until(one: Rig, condition: Callable[[], bool]) -> None:
    with anyio.fail_after(TIMEOUT):
        await one.proxy.changes.until(condition)


async def test_a_hook_answers_and_the_agent_never_sees_the_elicitation(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    answers = stub(ASKED, action="accept", content={"branch": "main"})
    unasked_hook = stub(RESULT, f"touch {shlex.quote(str(tmp_path / 'ran'))}")
    async with rig(stub_group(answers, unasked_hook), settings=Settings(audit_file=str(audit))) as one:
        await one.server.send(ASK)
        assert await one.server.line() == (
            b'{"jsonrpc":"2.0","id":5.0,"result":{"action":"accept","content":{"branch": "main"}}}\n'
        )
        assert await one.finish() == (b"", b"")
    report = "stub (stub.json: Elicitation) answered the server's request 'Which branch?' for the person: accept"
    assert one.reports == audit_notes(audit) == [report]
    assert not (tmp_path / "ran").exists(), "ElicitationResult is for the person's answers"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_hook_declines_or_cancels_whatever_the_form(action: str) -> None:
    async with rig(stub_group(stub(ASKED, action=action))) as one:
        await one.server.send(ASK)
        assert (await one.server.message())["result"] == {"action": action}


async def test_without_an_answer_of_hooks_the_elicitation_passes_as_it_came_and_the_person_sees_it(
    tmp_path: Path,
) -> None:
    shown = tmp_path / "shown"
    tells = stub(Event.NOTIFICATION, f"cat > {shlex.quote(str(shown))}")
    async with rig(stub_group(stub(ASKED), tells)) as one:
        await one.server.send(ASK)
        assert await one.agent.line() == ASK
        await one.agent.send(ANSWER)
        assert await one.server.line() == ANSWER
        await until(one, lambda: not one.proxy.has_background_hooks)
    assert json.loads(shown.read_text())["by"] == "elicitation_dialog"
    assert one.reports == []


async def test_an_elicitation_that_hooks_answer_is_shown_to_nobody(tmp_path: Path) -> None:
    tells = stub(Event.NOTIFICATION, f"touch {shlex.quote(str(tmp_path / 'shown'))}")
    async with rig(stub_group(stub(ASKED, action="decline"), tells)) as one:
        await one.server.send(ASK)
        await one.server.line()
        await until(one, lambda: not one.proxy.has_background_hooks)
    assert not (tmp_path / "shown").exists()


async def test_while_hooks_run_on_an_elicitation_all_other_lines_pass_in_order(gate: Gate) -> None:
    async with rig(stub_group(waiting(gate))) as one:
        await one.server.send(ASK + PING + PING)
        await gate.reached()
        assert await one.agent.line() == await one.agent.line() == PING
        await one.agent.send(PING)
        assert await one.server.line() == PING
        assert one.proxy.has_undecided
        gate.open()
        assert await one.agent.line() == ASK
        await until(one, lambda: not one.proxy.has_undecided)


async def test_an_elicitation_that_the_server_cancels_early_reaches_nobody(gate: Gate) -> None:
    async with rig(stub_group(waiting(gate, action="accept"))) as one:
        await one.server.send(ASK)
        await gate.reached()
        await one.server.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}\n' + PING)
        assert await one.agent.line() == PING
        await until(one, lambda: not one.proxy.has_undecided)
        assert await one.finish() == (b"", b"")


async def test_a_cancellation_of_an_elicitation_that_the_agent_has_passes() -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}\n'
    async with rig(stub_group(stub(ASKED), stub(RESULT, action="decline"))) as one:
        await one.server.send(ASK)
        await one.agent.line()
        await one.server.send(cancel)
        assert await one.agent.line() == cancel
        await one.agent.send(ANSWER)  # it was under way already
        assert (await one.server.message())["result"] == {"action": "decline", "_meta": {}}


async def test_the_agent_cannot_answer_what_it_has_not_been_asked(gate: Gate) -> None:
    async with rig(stub_group(waiting(gate, action="decline"))) as one:
        await one.server.send(ASK)
        await gate.reached()
        await one.agent.send(ANSWER)
        assert (await one.agent.message())["error"]["message"].endswith(
            "It answers an elicitation that hooks are still judging, or that has a response already."
        )
        gate.open()
        assert (await one.server.message())["result"] == {"action": "decline"}


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        ({}, ANSWER),
        ({"action": "accept"}, ANSWER),
        (
            {"action": "accept", "content": {"branch": "dev"}},
            ANSWER.replace(b'{"branch":"main"}', b'{"branch": "dev"}'),
        ),
        ({"action": "decline"}, ANSWER.replace(b'"accept","content":{"branch":"main"}', b'"decline"')),
    ],
)
async def test_hooks_change_the_action_and_content_of_the_persons_answer(
    verdict: dict[str, Any], line: bytes, tmp_path: Path
) -> None:
    audit = tmp_path / "audit"
    async with rig(stub_group(stub(RESULT, **verdict)), settings=Settings(audit_file=str(audit))) as one:
        await one.server.send(ASK)
        assert await one.agent.line() == ASK
        await one.agent.send(ANSWER)
        assert await one.server.line() == line
        await until(one, lambda: not one.proxy.has_undecided)
    assert len(audit_notes(audit)) == (line != ANSWER)


async def test_a_person_who_declined_can_be_overruled() -> None:
    declined = b'{"jsonrpc":"2.0","id":5,"result":{"action":"decline"}}\n'
    async with rig(stub_group(stub(RESULT, action="accept", content={"branch": "main"}))) as one:
        await one.server.send(ASK)
        await one.agent.line()
        await one.agent.send(declined)
        assert (await one.server.message())["result"] == {"action": "accept", "content": {"branch": "main"}}


async def test_each_group_gets_the_answer_so_far(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    first = stub_group(stub(RESULT, action="accept", content={"branch": "dev"}))
    second = stub_group(stub(RESULT, f"cat > {shlex.quote(str(recorded))}; echo '{{}}'"))
    async with rig(first, second) as one:
        await one.server.send(ASK)
        await one.agent.line()
        await one.agent.send(ANSWER)
        assert (await one.server.message())["result"]["content"] == {"branch": "dev"}
    assert json.loads(recorded.read_text())["content"] == {"branch": "dev"}


async def test_after_a_decline_no_later_group_runs(tmp_path: Path) -> None:
    later = stub_group(stub(ASKED, f"touch {shlex.quote(str(tmp_path / 'ran'))}"))
    async with rig(stub_group(stub(ASKED, action="decline")), later) as one:
        await one.server.send(ASK)
        assert (await one.server.message())["result"] == {"action": "decline"}
    assert not (tmp_path / "ran").exists()


async def test_an_error_of_the_agent_goes_to_the_server_at_once_and_hooks_run_on_it(tmp_path: Path) -> None:
    error = b'{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no"}}\n'
    async with rig(stub_group(stub(RESULT, action="accept"))) as one:
        await one.server.send(ASK)
        await one.agent.line()
        await one.agent.send(error)
        assert await one.server.line() == error


@pytest.mark.parametrize("content", [{"branch": 7}, {}, {"branch": {}}])
@pytest.mark.parametrize("rule", ["dialect", "deny"])
async def test_content_that_does_not_fit_the_form_is_a_failure(content: object, rule: str) -> None:
    hooks = stub_group(stub(ASKED, action="accept", content=content))
    async with rig(hooks, settings=Settings(on_failure=OnFailure(rule))) as one:
        await one.server.send(ASK)
        if rule == "deny":
            assert (await one.server.message())["result"] == {"action": "decline"}
        else:
            assert await one.agent.line() == ASK
    assert one.reports[0].startswith("Elicitation hook stub (stub.json: Elicitation): gave content that ")


async def test_a_hook_that_crashes_leaves_the_answer_to_the_person_or_declines_as_configured() -> None:
    for closed in (False, True):
        crashing = replace(stub(ASKED, "exit 3"), fails_closed=closed)
        async with rig(stub_group(crashing)) as one:
            await one.server.send(ASK)
            if closed:
                assert (await one.server.message())["result"] == {"action": "decline"}
            else:
                assert await one.agent.line() == ASK


async def test_an_elicitation_of_mode_url_is_accepted_without_values() -> None:
    visit = (
        b'{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"mode":"url","message":"m","url":"u"}}\n'
    )
    async with rig(stub_group(stub(ASKED, action="accept", content={"x": "y"}))) as one:
        await one.server.send(visit)
        assert await one.server.line() == b'{"jsonrpc":"2.0","id":"a","result":{"action":"accept"}}\n'


async def test_hooks_run_twice_on_an_elicitation_sent_twice_and_once_under_one_id(gate: Gate) -> None:
    async with rig(stub_group(waiting(gate, action="decline"))) as one:
        await one.server.send(ASK + ASK + ASK.replace(b"5.0", b"6"))
        await gate.reached()
        gate.open()
        gate.open()
        assert {(await one.server.message())["id"], (await one.server.message())["id"]} == {5, 6}
        await until(one, lambda: not one.proxy.has_undecided)
    assert "dropped a request with the id of one that is still pending" in one.reports


@pytest.mark.slow
async def test_elicitations_beyond_a_limit_are_refused_and_each_refusal_is_in_the_audit(
    gate: Gate, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(stub_group(waiting(gate)), settings=Settings(audit_file=str(audit))) as one:
        await one.server.send(b"".join(ASK.replace(b"5.0", b"%d" % number) for number in range(300)))
        refused = [await one.server.message() for _ in range(44)]
        assert [message["id"] for message in refused] == list(range(256, 300))
        assert all("refused this request" in message["error"]["message"] for message in refused)
    assert len(one.reports) == 1
    assert sum("refused this request" in line for line in audit.read_text().splitlines()) == 44


async def test_elicitations_with_too_many_bytes_are_refused(gate: Gate) -> None:
    long = ASK.replace(b"branch?", b"x" * 700)
    async with rig(stub_group(waiting(gate)), settings=Settings(max_message_bytes=1024)) as one:
        await one.server.send(long + long.replace(b"5.0", b"6"))
        assert "error" in await one.server.message()
        gate.open()
        assert await one.agent.line() == long


async def test_a_slow_observer_delays_no_elicitation(gate: Gate) -> None:
    group = stub_group(waiting(gate))
    observers = replace(group, dialect=replace(group.dialect, output_fields={}))
    async with rig(observers, stub_group(stub(ASKED, action="decline"))) as one:
        await one.server.send(ASK)
        await gate.reached()
        assert (await one.server.message())["result"] == {"action": "decline"}
        gate.open()
        await until(one, lambda: not one.proxy.has_background_hooks)


async def test_an_answer_at_the_end_of_the_agents_input_still_arrives(gate: Gate) -> None:
    async with rig(stub_group(waiting(gate, RESULT, action="decline"))) as one:
        await one.server.send(ASK)
        await one.agent.line()
        await one.agent.send(ANSWER)
        await gate.reached()
        one.agent.stop_writing()
        assert one.proxy.has_undecided
        gate.open()
        assert (await one.server.message())["result"]["action"] == "decline"


async def test_when_the_server_exits_its_elicitations_are_dropped_with_their_hooks(gate: Gate) -> None:
    async with rig(stub_group(waiting(gate))) as one:
        await one.server.send(ASK)
        await gate.reached()
        one.proxy.handle_server_exit("exited")
        await until(one, lambda: not one.proxy.has_undecided)
        one.proxy.relay.agent.end_output()
        assert await one.agent.rest() == b""


async def test_feedback_of_a_hook_waits_for_the_next_result() -> None:
    async with rig(stub_group(stub(ASKED, action="decline", feedback=["Ask Kim."]), stub(Event.PRE_TOOL_USE))) as one:
        await one.server.send(ASK)
        await one.server.line()
        await one.agent.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}\n')
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n')
        assert (await one.agent.message())["result"]["content"] == [{"type": "text", "text": "Ask Kim."}]


async def test_matchers_are_tried_on_the_servers_name() -> None:
    decline = "echo no >&2; exit 2"
    async with rig(group(hook(decline, ASKED, "other"))) as one:
        await one.server.send(ASK)
        assert await one.agent.line() == ASK
    async with rig(group(hook(decline, ASKED, "files"))) as one:
        await one.server.send(ASK)
        assert (await one.server.message())["result"] == {"action": "decline"}


async def test_hooks_answer_all_elicitations_of_a_result_or_none() -> None:
    def result(*messages: str) -> bytes:
        asks = {m: {"method": "elicitation/create", "params": {"message": m}} for m in messages}
        return json.dumps({"resultType": "input_required", "inputRequests": asks}).encode()

    script = """if grep -q 'who'; then echo '{"action": "accept"}'; else echo '{}'; fi"""
    async with rig(stub_group(stub(ASKED, script))) as one:
        answering = one.proxy.calls
        answers = await answering.answer_elicitations(raw_json.fields(result("who", "whose")))
        by = "stub (stub.json: Elicitation)"
        assert answers == {name: ElicitationResponse("accept", b"{}", by) for name in ("who", "whose")}
        assert await answering.answer_elicitations(raw_json.fields(result("who", "why"))) is None
        assert await answering.answer_elicitations({}) is None
    assert len(one.reports) == 2
