"""The router's actions are performed: over real pipes, with real hooks; the test is agent and server."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path
from typing import Final, NoReturn

import anyio
import pytest

from hookproxy.dialects.claude import input
from hookproxy.model.hooks import Event
from hookproxy.model.settings import OnFailure, Settings
from tests.support.call_spellings import calls_seen
from tests.support.held import held_long_texts
from tests.support.proxy_rig import DIRECT_LOOP, Rig, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio

INITIALIZE: Final = b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"clientInfo":{"name":"Lean"}}}\n'
INITIALIZED: Final = b'{"jsonrpc":"2.0","id":"i","result":{"capabilities":{},"instructions":"Be kind."}}\n'
PING: Final = b'{"jsonrpc":"2.0","id":99,"method":"ping"}\n'
PONG: Final = b'{"jsonrpc":"2.0","id":99,"result":{}}\n'

ALLOW: Final = group(hook("exit 0"))
DENY: Final = group(hook("echo no rm >&2; exit 2", matcher="danger"))


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(number: object, tool: str = "danger", arguments: str = '{"a":1}') -> bytes:
    params = f'{{"name":"{tool}","arguments":{arguments}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}\n'.encode()


def answer(number: object, text: str = "done") -> bytes:
    content = f'[{{"type":"text","text":"{text}"}}]'
    return f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":{content}}}}}\n'.encode()


def cancel(number: object) -> bytes:
    params = f'{{"requestId":{number}}}'
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}\n'.encode()


class Gate:
    """Hooks that wait at a named pipe until the test lets them go on."""

    def __init__(self, folder: Path) -> None:
        self.here, self.go = folder / "here", folder / "go"
        os.mkfifo(self.here)
        os.mkfifo(self.go)
        self.arrivals = os.open(self.here, os.O_RDWR | os.O_NONBLOCK)
        self.releases = os.open(self.go, os.O_RDWR | os.O_NONBLOCK)

    def hook(self, then: str = "exit 0") -> str:
        here, go = shlex.quote(str(self.here)), shlex.quote(str(self.go))
        return f"echo here > {here}; read word < {go}; {then}"

    async def arrived(self) -> None:
        with anyio.fail_after(30):
            await anyio.wait_readable(self.arrivals)
            os.read(self.arrivals, 5)

    def release(self) -> None:
        os.write(self.releases, b"go\n")

    def close(self) -> None:
        os.close(self.arrivals)
        os.close(self.releases)


@pytest.fixture
async def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


async def idle(proxied: Rig) -> None:
    with anyio.fail_after(30):
        await proxied.proxy.changes.until(lambda: not proxied.proxy.has_open_calls)


async def test_without_hooks_bytes_are_equal_in_both_directions() -> None:
    async with rig() as proxied:
        sent = INITIALIZE + b"nonsense\n\r\n" + call(1) + b'{"id":1,"id":2}\n' + b"tail"
        await proxied.agent.send(sent)
        await proxied.server.send(INITIALIZED, b'{"id":77,"result":1e400,"result":2}\n', answer(1))
        got = [await proxied.agent.line() for _ in range(3)]
        assert b"".join(got) == INITIALIZED + b'{"id":77,"result":1e400,"result":2}\n' + answer(1)
        received, rest = await proxied.finish()
    assert received == sent
    assert rest == b""
    assert proxied.reports == []


async def test_an_allowed_call_is_forwarded_as_it_came() -> None:
    line = b' {"jsonrpc": "2.0", "x": 1e400, "id": "a", "method": "tools\\/call", "params": {"name": "t"}}\t\n'
    async with rig(ALLOW) as proxied:
        await proxied.agent.send(line)
        assert await proxied.server.line() == line
        await proxied.server.send(answer('"a"'))
        assert await proxied.agent.line() == answer('"a"')


async def test_a_denied_call_gets_a_response_and_other_lines_pass() -> None:
    async with rig(DENY) as proxied:
        await proxied.agent.send(INITIALIZE, call(7), PING)
        refused = await proxied.agent.message()
        assert refused["id"] == 7
        assert refused["result"]["isError"] is True
        assert "guard" in refused["result"]["content"][0]["text"]
        assert "no rm" in refused["result"]["content"][0]["text"]
        assert await proxied.server.line() == INITIALIZE
        assert await proxied.server.line() == PING


async def test_pings_overtake_slow_hooks(gate: Gate) -> None:
    async with rig(group(hook(gate.hook(), matcher="danger"))) as proxied:
        await proxied.agent.send(call(1))
        await gate.arrived()
        await proxied.agent.send(PING, call(2, "safe"))
        assert await proxied.server.line() == PING
        assert await proxied.server.line() == call(2, "safe")
        await proxied.server.send(PONG, answer(2))
        assert await proxied.agent.line() == PONG
        assert await proxied.agent.line() == answer(2)
        gate.release()
        assert await proxied.server.line() == call(1)
        await proxied.server.send(answer(1))
        assert await proxied.agent.line() == answer(1)
    gate.close()


async def test_many_calls_at_once_each_get_their_own_response() -> None:
    async with rig(ALLOW) as proxied:
        await proxied.agent.send(b"".join(call(number) for number in range(30)))
        lines = [await proxied.server.line() for _ in range(30)]
        assert sorted(lines) == sorted(call(number) for number in range(30))
        await proxied.server.send(*(answer(number, str(number)) for number in range(29, -1, -1)))
        got = {await proxied.agent.line() for _ in range(30)}
        assert got == {answer(number, str(number)) for number in range(30)}


async def test_a_call_cancelled_while_its_hook_runs_is_neither_forwarded_nor_answered(gate: Gate) -> None:
    async with rig(group(hook(gate.hook()))) as proxied:
        await proxied.agent.send(call(1))
        await gate.arrived()
        await proxied.agent.send(cancel(1))
        await idle(proxied)
        await proxied.agent.send(PING)
        received, answered = await proxied.finish()
    assert (received, answered) == (PING, b"")
    gate.close()


async def test_a_call_cancelled_at_once_leaves_nothing_behind(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with rig(ALLOW, settings=Settings(audit_file=str(audit))) as proxied:
        await proxied.agent.deliver(call(1) + cancel(1) + PING)
        await idle(proxied)
        assert proxied.proxy.calls._backpressure._bytes == 0
        received, answered = await proxied.finish()
    assert (received, answered) == (PING, b"")
    (record,) = [json.loads(line) for line in audit.read_bytes().splitlines()]
    assert (record["id"], record["result"]) == (1, "cancelled")


async def test_the_cancellation_of_a_forwarded_call_reaches_the_server_and_its_late_response_is_dropped() -> None:
    async with rig(ALLOW) as proxied:
        await proxied.agent.send(call(1))
        await proxied.server.line()
        await proxied.agent.send(cancel(1))
        assert await proxied.server.line() == cancel(1)
        await proxied.server.send(answer(1), PONG.replace(b"result", b"params").replace(b'"id":99', b'"method":"x"'))
        assert b'"method":"x"' in await proxied.agent.line()
        _, answered = await proxied.finish()
    assert answered == b""
    assert any("dropped" in text for text in proxied.reports)


@pytest.mark.parametrize(
    "inside",
    [b"\r%b\r" % call(66).strip(), '"\u2028"'.encode(), '"\u2029"'.encode(), '"\x85"'.encode()],
    ids=["CR", "LS", "PS", "NEL"],
)
async def test_the_cancellation_of_a_forwarded_call_is_one_line_to_every_reader(inside: bytes) -> None:
    line = cancel(1).replace(b'"requestId":1', b'"requestId":1,"x":[%b]' % inside)
    async with rig(group(hook("exit 0", matcher="other"), hook("exit 2", matcher="danger"))) as proxied:
        await proxied.agent.send(call(1, "other"))
        assert await proxied.server.line() == call(1, "other")
        await proxied.agent.send(line)
        received, _ = await proxied.finish()
    assert b"cancelled" in received
    assert calls_seen(received) == []
    assert len(received.decode().splitlines()) == 1


async def test_an_unterminated_cancellation_does_not_run_into_what_follows(gate: Gate) -> None:
    async with rig(group(hook("exit 0", matcher="other"), hook(gate.hook(), matcher="danger"))) as proxied:
        await proxied.agent.send(call(1, "other"))
        await proxied.server.line()
        await proxied.agent.send(call(2))
        await gate.arrived()
        await proxied.agent.send(cancel(1).strip())
        proxied.agent.stop_writing()
        assert await proxied.server.line() == cancel(1)
        gate.release()
        assert await proxied.server.line() == call(2)
    gate.close()


async def test_responses_to_no_request_are_dropped_and_audited(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with rig(DENY, settings=Settings(audit_file=str(audit))) as proxied:
        await proxied.agent.send(PING)
        await proxied.server.line()
        await proxied.server.send(answer(5), PONG, PONG)
        _, answered = await proxied.finish()
    assert answered == PONG
    notes = [json.loads(line)["note"] for line in audit.read_bytes().splitlines()]
    assert len(notes) == 2
    assert all(note.startswith("dropped") for note in notes)


async def test_output_that_is_not_json_is_reported_and_cut() -> None:
    async with rig(DENY) as proxied:
        await proxied.server.send(b"listening \xff " + b"x" * 10_000 + b"\n" + PING)
        assert await proxied.agent.line() == PING
    (report,) = proxied.reports
    assert "listening \ufffd" in report
    assert len(report) < 2100


async def test_refused_messages_are_reported_too() -> None:
    async with rig(DENY) as proxied:
        await proxied.agent.send(b"nonsense\n")
        refused = await proxied.agent.message()
        await proxied.agent.send(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}\n')
        malformed = await proxied.agent.message()
    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    assert (malformed["id"], malformed["error"]["code"]) == (5, -32600)
    assert all("refused" in text for text in proxied.reports)


async def test_a_defect_in_a_call_ends_this_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(ALLOW) as proxied:

        async def broken(*_arguments: object) -> None:
            raise RuntimeError("out of luck")

        with monkeypatch.context() as patch:
            patch.setattr(proxied.proxy.policy.hooks, "run_pre_hooks", broken)
            await proxied.agent.send(call(1))
            response = await proxied.agent.message()
        assert response["id"] == 1
        assert "out of luck" in response["error"]["message"]
        assert any("Traceback" in text for text in proxied.reports)
        await proxied.agent.send(call(2))
        assert await proxied.server.line() == call(2), "and never the call whose hooks did not run"


async def test_reading_pauses_while_too_many_bytes_wait_and_then_resumes(gate: Gate) -> None:
    settings = Settings(max_message_bytes=100_000)
    big = call(1, arguments='{"a":"%s"}' % ("x" * 60_000))
    async with rig(group(hook(gate.hook(), matcher="danger")), settings=settings) as proxied:
        await proxied.agent.send(big, big.replace(b'"id":1', b'"id":2'))
        for _ in range(2):
            await gate.arrived()
        await proxied.agent.send(PING)
        with anyio.move_on_after(0.05) as waited:
            await proxied.server.line()
        assert waited.cancelled_caught, "the ping waits behind 120 KB that hooks hold"
        for _ in range(2):
            gate.release()
        with anyio.fail_after(30):  # the server sends no response: forwarded calls no longer wait for hooks
            lines = [await proxied.server.line() for _ in range(3)]
        assert sorted(map(len, lines)) == sorted([len(PING), len(big), len(big)])
    gate.close()


async def test_when_the_server_exits_every_call_gets_an_error(gate: Gate) -> None:
    async with rig(group(hook(gate.hook(), matcher="danger"), hook("exit 0", matcher="other"))) as proxied:
        await proxied.agent.send(call(1), call(2, "other"))
        await gate.arrived()
        await proxied.server.line()
        proxied.proxy.handle_server_exit("exited with status 3")
        ids = {(await proxied.agent.message())["id"]: True for _ in range(2)}
        assert set(ids) == {1, 2}
        await idle(proxied)
        assert await_gone(proxied)
    gate.close()


def await_gone(proxied: Rig) -> bool:
    return proxied.proxy.router.calls == {} and not proxied.proxy.has_open_calls


async def test_calls_after_the_servers_exit_get_an_error_too() -> None:
    async with rig(ALLOW) as proxied:
        proxied.proxy.handle_server_exit("exited with status 3")
        await proxied.agent.send(call(1))
        response = await proxied.agent.message()
    assert "exited with status 3" in response["error"]["message"]


async def test_a_hook_that_stops_the_turn_denies_the_waiting_calls_and_nothing_else(gate: Gate) -> None:
    stop = """echo '{"continue":false,"stopReason":"enough"}'"""
    groups = group(hook(gate.hook(), matcher="held"), hook(stop, matcher="stop"), hook("exit 0", matcher="forwarded"))
    async with rig(groups) as proxied:
        await proxied.agent.send(call(1, "forwarded"), call(2, "held"))
        await proxied.server.line()
        await gate.arrived()
        await proxied.agent.send(call(3, "stop"))
        texts = {}
        for _ in range(2):
            message = await proxied.agent.message()
            texts[message["id"]] = message["result"]["content"][0]["text"]
        assert set(texts) == {2, 3}
        assert all("enough" in text for text in texts.values())
        await proxied.server.send(answer(1))
        assert await proxied.agent.line() == answer(1)
    gate.close()


# --- the session ---


START: Final = group(hook("echo Mind the gap", Event.SESSION_START), hook("exit 0"))


async def test_feedback_of_session_start_hooks_goes_into_the_instructions() -> None:
    async with rig(START) as proxied:
        await proxied.agent.send(INITIALIZE)
        assert await proxied.server.line() == INITIALIZE
        await proxied.server.send(INITIALIZED)
        line = await proxied.agent.line()
        assert line == INITIALIZED.replace(b"Be kind.", b"Be kind.\\n\\nMind the gap")


async def test_the_response_to_initialize_waits_for_session_start_hooks_and_nothing_else_does(gate: Gate) -> None:
    async with rig(group(hook(gate.hook("echo Hello"), Event.SESSION_START))) as proxied:
        await proxied.agent.send(INITIALIZE, PING)
        await gate.arrived()
        await proxied.server.send(INITIALIZED, PONG)
        assert await proxied.agent.line() == PONG
        gate.release()
        assert b"Hello" in await proxied.agent.line()
    gate.close()


async def test_in_a_stateless_session_the_first_call_carries_feedback_of_session_start_hooks() -> None:
    meta = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name"'
    async with rig(START) as proxied:
        for number, expected in ((1, True), (2, False)):
            await proxied.agent.send(call(number).replace(b'"name"', meta))
            await proxied.server.line()
            await proxied.server.send(answer(number))
            assert (b"Mind the gap" in await proxied.agent.line()) is expected


async def test_a_probe_that_never_opens_a_session_runs_no_hook(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    async with rig(group(hook(f"touch {ran}", Event.SESSION_START))) as proxied:
        await proxied.agent.send(b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}\n', PING)
        await proxied.finish()
    assert not ran.exists()


async def test_a_call_of_an_agent_without_a_handshake_does_not_wait_for_ever() -> None:
    async with rig(START) as proxied:
        await proxied.agent.send(call(1))
        with anyio.move_on_after(20) as waited:
            await proxied.server.line()
        assert not waited.cancelled_caught


async def test_messages_for_people_are_log_messages_if_the_server_declared_logging() -> None:
    tell = """echo '{"systemMessage":"look out"}'"""
    async with rig(group(hook(tell))) as proxied:
        await proxied.agent.send(INITIALIZE)
        await proxied.server.line()
        await proxied.server.send(INITIALIZED.replace(b'"capabilities":{}', b'"capabilities":{"logging":{}}'))
        await proxied.agent.line()
        await proxied.agent.send(call(1))
        note = await proxied.agent.message()
        assert note["method"] == "notifications/message"
        assert note["params"]["data"] == "look out"
        await proxied.server.line()
    assert "guard: look out" in proxied.reports


async def test_without_logging_messages_for_people_go_to_standard_error_only() -> None:
    tell = """echo '{"systemMessage":"look out"}'"""
    async with rig(group(hook(tell))) as proxied:
        await proxied.agent.send(call(1))
        await proxied.server.line()
        await proxied.server.send(answer(1))
        assert await proxied.agent.line() == answer(1)
    assert proxied.reports == ["guard: look out"]


async def test_a_hooks_failure_is_reported_with_its_source() -> None:
    async with rig(group(hook("exit 1")), settings=Settings(on_failure=OnFailure.DENY)) as proxied:
        await proxied.agent.send(call(1))
        refused = await proxied.agent.message()
    assert refused["result"]["isError"] is True
    assert any("hooks.json: PreToolUse" in text and "status 1" in text for text in proxied.reports)


# --- a side that does not read ---


async def test_an_agent_that_does_not_read_pauses_the_server_and_the_other_direction_goes_on() -> None:
    async with rig(DENY) as proxied:
        flood = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"%b"}}\n' % (b"x" * 60_000)
        async with anyio.create_task_group() as tasks:
            sent = anyio.Event()

            async def flooding() -> None:
                for _ in range(100):
                    await proxied.server.send(flood)
                sent.set()

            tasks.start_soon(flooding)
            for number in range(20):
                await proxied.agent.send(PING.replace(b"99", b"%d" % number))
                await proxied.server.line()
            assert not sent.is_set()
            assert proxied.proxy.relay.agent.queued < 1_000_000
            for _ in range(100):
                assert await proxied.agent.line() == flood
            with anyio.fail_after(30):
                await sent.wait()


async def test_a_server_that_does_not_read_pauses_the_agent_and_the_other_direction_goes_on() -> None:
    async with rig(DENY) as proxied:
        flood = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"%b"}}\n' % (b"x" * 60_000)
        async with anyio.create_task_group() as tasks:

            async def flooding() -> None:
                for _ in range(100):
                    await proxied.agent.send(flood)

            tasks.start_soon(flooding)
            for _ in range(20):
                await proxied.server.send(PING)
                assert await proxied.agent.line() == PING
            assert proxied.proxy.relay.server.queued < 1_000_000
            for _ in range(100):
                assert await proxied.server.line() == flood


def ended() -> set[str]:
    """Processes of ours that have ended and are not reaped."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return {pid for pid in children if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"}


def end_one(gate: Gate) -> None:
    """Let a hook go on, and wait until it has ended; the loop does not run meanwhile."""
    before = ended()
    gate.release()
    while ended() == before:
        time.sleep(0)


async def test_a_stopped_call_whose_own_hook_ends_at_the_same_time_reaches_no_server(tmp_path: Path) -> None:
    """The task of a stopped call may be about to run on: what it waited for has happened."""
    gates = []
    for name in (names := ("stop", "pass")):
        (tmp_path / name).mkdir()
        gates.append(Gate(tmp_path / name))
    stop = f"printf %s '{json.dumps({'stop': True})}'"
    guard = stub(Event.PRE_TOOL_USE, f"if grep -q stop; then {gates[0].hook(stop)}; else {gates[1].hook('true')}; fi")
    async with rig(stub_group(guard)) as proxied:
        for number, gate in enumerate(gates):
            await proxied.agent.send(call(number, arguments=json.dumps({"a": names[number]})))
            await gate.arrived()
        for gate in gates:  # first ends the hook that stops, then the other, before the loop looks at either
            end_one(gate)
        answers = [await proxied.agent.message(), await proxied.agent.message()]
        assert {each["id"] for each in answers} == {0, 1}
        assert all("wants you to stop here" in each["result"]["content"][0]["text"] for each in answers)
        assert await proxied.finish() == (b"", b"")


async def test_a_lack_of_descriptors_for_hooks_outside_of_calls_is_reported_and_ends_nothing() -> None:
    hooks = [hook("true", Event.SESSION_START), hook("false", Event.SESSION_START)]
    shortage = OSError(24, "Too many open files")

    async def fails(*_: object) -> NoReturn:
        raise shortage

    async with rig(group(*hooks)) as proxied:
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(proxied.proxy.policy.hooks.runners.by_type, "command", fails)
            await proxied.agent.send(INITIALIZE)
            assert await proxied.server.line() == INITIALIZE
            await proxied.server.send(INITIALIZED)
            assert await proxied.agent.line() == INITIALIZED
            await proxied.proxy.session_events.end_session()
    assert "SessionStart hooks could not be run: Too many open files" in proxied.reports


async def test_long_names_of_tools_do_not_fill_memory(tmp_path: Path) -> None:
    settings = Settings(deny=("danger*",), audit_file=str(tmp_path / "audit.jsonl"))
    length, count = 50_000, 12
    kept_parts = input._kept_parts.cache_info()
    async with rig(ALLOW, settings=settings) as one:
        for number in range(count):
            await one.agent.send(call(number, f"danger{number}".ljust(length, "x")))
            assert (await one.agent.message())["result"]["isError"]
            await one.agent.send(call(-1 - number, f"safe{number}".ljust(length, "x")))
            await one.server.line()
            await one.server.send(answer(-1 - number))
            assert (await one.agent.message())["id"] == -1 - number
        assert held_long_texts(one.proxy, length) < count
    assert input._kept_parts.cache_info() == kept_parts


async def test_reports_about_tools_do_not_fill_memory() -> None:
    async with rig(ALLOW) as one:
        for number in range(10_000):
            one.proxy.session_events.report_once(f"tool{number}: was reported")
        assert len(one.proxy.session_events._reported) <= 4096
        reports = len(one.reports)
        one.proxy.session_events.report_once("tool9999: was reported")
        assert len(one.reports) == reports
