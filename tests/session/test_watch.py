"""What is only watched changes no byte, and what is recorded of it is what enforcing it decides."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.audit.log import Audit
from hookproxy.dialects.dialect import Group
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Event
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from hookproxy.session.proxy import Proxy
from hookproxy.session.watch import WatchedPolicy
from hookproxy.transports.pipe import open_channel
from hookproxy.trust.sources import Watched
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, TIMEOUT, Peer, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


class Rig:
    """As `proxy_rig.Rig`, with a policy that is only watched beside the one in force."""

    watched: Watched

    def __init__(self, groups: Sequence[Group], settings: Settings) -> None:
        self.agent, self.server, self.reports = Peer(), Peer(), list[str]()
        self.agent_ended, self.server_ended = anyio.Event(), anyio.Event()
        watched = replace(self.watched, settings=replace(self.watched.settings, audit_file=settings.audit_file))
        self.proxy = Proxy(
            open_channel(self.agent.theirs_in, self.agent.theirs_out),
            open_channel(self.server.theirs_in, self.server.theirs_out),
            Hooks(groups, settings, SESSION.server, os.environ),
            settings,
            SESSION,
            Audit(settings),
            self.reports.append,
            watch=WatchedPolicy(watched, SESSION.server, os.environ).watch,
        )

    async def finish(self) -> None:
        """Wait for all that is watched, and write its records."""
        assert self.proxy.watch is not None
        with anyio.fail_after(TIMEOUT):
            await self.proxy.watch.wait()
            await self.proxy.changes.until(lambda: not self.proxy.has_open_calls)
        await self.proxy.aclose()


def rig_with(policy: Watched) -> Any:  # noqa: ANN401  # a class that stands in the place of another one
    class WatchedRig(Rig):
        watched = policy

    return WatchedRig


def watched_rules(**rules: object) -> Watched:
    return Watched(replace(Settings(), **rules))


def call(number: int, tool: str = "write_file", **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


def result(number: int, text: str = "done") -> bytes:
    content = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": content}).encode() + b"\n"


INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}\n'
)
INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
CAPABILITIES: Final = (
    b'{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tools":{}},"protocolVersion":"2025-11-25"}}\n'
)
LIST: Final = b'{"jsonrpc":"2.0","id":"l","method":"tools/list"}\n'
TOOLS: Final = (
    b'{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"write_file","inputSchema":{"type":"object"}},'
    b'{"name":"read_file","inputSchema":{"type":"object"}}]}}\n'
)

DENIES: Final = stub_group(stub(Event.PRE_TOOL_USE, permission="deny", reason="no"))
EFFECTS: Final = {
    "denies": DENIES,
    "stops": stub_group(stub(Event.PRE_TOOL_USE, stop=True, reason="no")),
    "asks": stub_group(stub(Event.PRE_TOOL_USE, permission="ask", reason="sure?")),
    "rewrites": stub_group(stub(Event.PRE_TOOL_USE, arguments={"path": "elsewhere"})),
    "comments": stub_group(stub(Event.PRE_TOOL_USE, feedback=["careful"])),
    "tells the person": stub_group(stub(Event.PRE_TOOL_USE, messages=["look"])),
    "fails": stub_group(stub(Event.PRE_TOOL_USE, "exit 7")),
    "replaces the result": stub_group(stub(Event.POST_TOOL_USE, replacement=[{"type": "text", "text": "other"}])),
    "hides the result": stub_group(stub(Event.POST_TOOL_USE, hides=True)),
    "comments on the result": stub_group(stub(Event.POST_TOOL_USE, feedback=["hm"])),
    "repeats": stub_group(replace(stub(Event.POST_TOOL_USE, retry=True), max_retries=2)),
    "adds context": stub_group(stub(Event.SESSION_START, feedback=["you are watched"])),
    "changes _meta": stub_group(stub(Event.PRE_MCP_TOOL_CALL, meta={"a": 1})),
    "allows for the person": stub_group(stub(Event.PERMISSION_REQUEST, permission="allow")),
}
STRICT: Final = Settings(on_failure=OnFailure.DENY, fail_closed=True)


@pytest.mark.parametrize("effect", EFFECTS)
async def test_a_hook_that_is_only_watched_changes_no_byte(effect: str, tmp_path: Path) -> None:
    settings = Settings(audit_file=str(tmp_path / "audit"))
    async with rig(settings=settings, kind=rig_with(Watched(STRICT, (EFFECTS[effect],)))) as one:
        for sent, answer in (
            (INITIALIZE, CAPABILITIES),
            (INITIALIZED + LIST, TOOLS),
            (call(1, path="x"), result(1)),
            (call(2, "read_file"), b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}\n'),
        ):
            await one.agent.send(sent)
            got = b""
            while len(got) < len(sent):
                got += await one.server.line()
            assert got == sent
            await one.server.send(answer)
            assert await one.agent.line() == answer
        await one.finish()
        assert one.agent.partial == b""
        assert one.server.partial == b""


OWN: Final = watched_rules(
    deny=("write_*", "read_file(secret*)"), ask=("read_*",), limits=(Limit("*", 1, Per.HOUR, "l"),)
)
LINES: Final = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"") + b"\n"),
    st.sampled_from(
        [
            INITIALIZE,
            INITIALIZED,
            LIST,
            call(1, path="secret"),
            call(1, "read_file", path="secret"),
            call(2, "read_file"),
            b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write_file","name":"x","arguments":{}}}\n',
            b'{"jsonrpc":"2.0","id":4,"method":"tools\\/call","params":{"name":"write_file","arguments":{"a":1,"a":2}}}\n',
            b"[" + call(5).rstrip() + b"]\n",
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n',
            b'{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"file:///secret"}}\r\n',
            '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write_file","arguments":{"t":"\u2028"}}}\n'.encode(),
            b"\n",
        ]
    ),
)
ANSWERS: Final = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"") + b"\n"),
    st.sampled_from(
        [
            CAPABILITIES,
            TOOLS,
            result(1),
            result(2),
            result(7),
            b'{"jsonrpc":"2.0","id":1,"id":2,"result":{}}\n',
            b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"messages":[]}}\n',
            b'{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}\n',
            b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n',
            b"not json\n",
        ]
    ),
)


async def passed(sent: bytes, answers: bytes, size: int, watched: Watched | None) -> tuple[bytes, bytes, list[str]]:
    """What the server and the agent get of what the other one sends, and what people read of what is watched."""
    async with rig(settings=Settings(), **({} if watched is None else {"kind": rig_with(watched)})) as one:
        for at in range(0, max(len(sent), len(answers)), size):
            await one.agent.send(sent[at : at + size])
            await one.server.send(answers[at : at + size])
        one.agent.stop_writing()
        with anyio.fail_after(TIMEOUT):
            await one.agent_ended.wait()
        one.proxy.relay.server.end_output()
        for_server = await one.server.rest()
        one.server.stop_writing()
        with anyio.fail_after(TIMEOUT):
            await one.server_ended.wait()
        one.proxy.relay.agent.end_output()
        for_agent = await one.agent.rest()
        if (watch := one.proxy.watch) is not None:
            watch.end_all("it is over")
            with anyio.fail_after(TIMEOUT):
                await watch.wait()
        return for_server, for_agent, [text for text in one.reports if text.startswith("only watched")]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LINES, ANSWERS), max_size=8), st.integers(1, 40), st.booleans())
@pytest.mark.slow
def test_whatever_both_sides_send_passes_as_without_a_policy(
    turns: list[tuple[bytes, bytes]], size: int, is_cut: bool
) -> None:
    sent, answers = b"".join(line for line, _ in turns), b"".join(answer for _, answer in turns)
    sent += b'{"jsonrpc":' if is_cut else b""
    backend, options = DIRECT_LOOP
    watched, plain = (
        anyio.run(passed, sent, answers, size, policy, backend=backend, backend_options=dict(options))
        for policy in (OWN, None)
    )
    assert watched[:2] == plain[:2]
    assert not [text for text in watched[2] if "not watched" in text or "has failed" in text]


CALLS: Final = (
    call(1, path="x"),
    call(2, "read_file", path="secret.txt"),
    call(3, "read_file", path="y"),
    call(4, "delete", path="z"),
    call(5, "delete"),
)


async def decisions(watched: Watched, in_force: Watched, file: Path) -> tuple[list[dict[str, Any]], bytes]:
    """The audit lines of CALLS, and what the server got."""
    groups, own = in_force.groups, replace(in_force.settings, audit_file=str(file))
    async with rig(*groups, settings=own, kind=rig_with(watched)) as one:
        got = b""
        for sent, answer in ((INITIALIZE, CAPABILITIES), (INITIALIZED + LIST, TOOLS)):
            await one.agent.send(sent)
            for _ in range(sent.count(b"\n")):
                await one.server.line()
            await one.server.send(answer)
            await one.agent.line()
        for number, line in enumerate(CALLS, 1):
            await one.agent.send(line)
            async with anyio.create_task_group() as tasks:

                async def serve(number: int = number) -> None:
                    nonlocal got
                    got += await one.server.line()
                    await one.server.send(result(number))

                tasks.start_soon(serve)
                while "result" not in (message := await one.agent.message()) and "error" not in message:
                    said = {"action": "accept", "content": {"decision": "allow once"}}
                    approval = {"jsonrpc": "2.0", "id": message["id"], "result": said}
                    await one.agent.send(json.dumps(approval).encode() + b"\n")
                tasks.cancel_scope.cancel()
        await one.finish()
    return [line for line in audited(file) if "tool" in line], got


def audited(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


POLICIES: Final = {
    "rules": OWN,
    "deny": watched_rules(deny=("*",)),
    "a limit": watched_rules(limits=(Limit("*", 2, Per.HOUR, "l"),)),
    "asking is denied": watched_rules(ask=("read_*",), on_ask=OnAsk.DENY),
    "asking is allowed": watched_rules(ask=("read_*",), on_ask=OnAsk.ALLOW),
    **{name: Watched(STRICT, (EFFECTS[name],)) for name in ("denies", "stops", "rewrites", "fails", "comments")},
    "both": Watched(replace(STRICT, deny=("read_*",), allow=("delete",)), (EFFECTS["asks"], EFFECTS["rewrites"])),
}
NOTHING: Final = Watched(Settings())


@pytest.mark.parametrize("name", POLICIES)
async def test_what_is_recorded_is_what_enforcing_decides(name: str, tmp_path: Path) -> None:
    policy = POLICIES[name]
    enforced, _ = await decisions(NOTHING, policy, tmp_path / "enforced")
    watched, got = await decisions(policy, NOTHING, tmp_path / "watched")
    assert got == b"".join(CALLS)
    would = {line["id"]: line["monitor"] for line in watched}
    for line in enforced:
        of_call = would.pop(line["id"])
        refused, asked = line["decision"].endswith("deny"), line["decision"] == "asked-allow"
        asked = asked and policy.settings.on_ask is not OnAsk.ALLOW and line["tool"] not in policy.settings.allow
        assert of_call["decision"] == ("deny" if refused else "ask" if asked else "allow")
        assert [of_call.get(key, "") for key in ("cause", "by", "place", "reason")] == [
            line.get(key, "") for key in ("cause", "by", "place", "reason")
        ]
        assert of_call.get("rewritten") == line.get("rewritten")
    assert not would


async def test_a_call_that_both_judge_has_one_line(tmp_path: Path) -> None:
    in_force = Watched(Settings(deny=("delete",)), (EFFECTS["comments"],))
    lines, _ = await decisions(Watched(Settings(deny=("read_*",))), in_force, tmp_path / "audit")
    assert [(line["id"], line["decision"], line.get("monitor", {}).get("would")) for line in lines] == [
        (1, "allow", None),
        (2, "allow", ["refused"]),
        (3, "allow", ["refused"]),
        (4, "deny", None),
        (5, "deny", None),
    ]
    assert [len(line["hooks"]) for line in lines] == [1] * 5


async def test_a_file_in_place_of_the_policy_in_force_may_allow_what_that_refuses(tmp_path: Path) -> None:
    following = Watched(Settings(ask=("delete",), deny=("write_*",)), files=("/next.toml",))
    lines, _ = await decisions(following, watched_rules(deny=("delete", "read_*")), tmp_path / "audit")
    would = {line["id"]: line.get("monitor", {}) for line in lines}
    assert would[1]["would"] == ["refused"]
    assert would[4]["would"] == ["asked about"]
    assert would[4]["policy"] == "/next.toml"


async def test_a_required_line_has_what_is_watched(tmp_path: Path) -> None:
    in_force = watched_rules(deny=("delete",), ask=("nothing",), allow=("*",), audit_required=True)
    policy = Watched(STRICT, (DENIES,))
    lines, _ = await decisions(policy, in_force, tmp_path / "audit")
    ended = [line for line in lines if line["result"] != "begun"]
    assert [line["monitor"]["decision"] for line in ended] == ["deny"] * 5


async def test_a_hook_that_is_a_tool_of_the_server_is_not_called(tmp_path: Path) -> None:
    tool = replace(hook(""), type="mcp_tool", server="files", tool="check")
    settings = Settings(audit_file=str(tmp_path / "audit"))
    async with rig(settings=settings, kind=rig_with(Watched(STRICT, (group(tool),)))) as one:
        await one.agent.send(INITIALIZE)
        await one.server.line()
        await one.server.send(CAPABILITIES)
        await one.agent.line()
        await one.agent.send(INITIALIZED + call(1))
        assert await one.server.line() + await one.server.line() == INITIALIZED + call(1)
        await one.finish()
    (line,) = audited(tmp_path / "audit")
    assert "is not called: it is a tool of the server" in line["monitor"]["reason"]


async def test_a_denial_hides_no_tool(tmp_path: Path) -> None:
    async with rig(settings=Settings(), kind=rig_with(watched_rules(deny=("*",)))) as one:
        await one.agent.send(INITIALIZE + INITIALIZED + LIST)
        await one.server.send(CAPABILITIES, TOOLS)
        assert await one.agent.line() + await one.agent.line() == CAPABILITIES + TOOLS


async def test_limits_that_are_watched_do_not_use_up_those_in_force(tmp_path: Path) -> None:
    limit = Limit("*", 3, Per.HOUR, "limits[0]")
    both = watched_rules(limits=(limit,))
    lines, _ = await decisions(both, both, tmp_path / "audit")
    assert [line["decision"] for line in lines] == ["allow"] * 3 + ["deny"] * 2
    assert [line["monitor"]["decision"] for line in lines] == ["allow"] * 3 + ["deny"] * 2


@pytest.mark.slow
async def test_slow_hooks_that_are_watched_hold_up_nobody_and_one_another_only_shortly(tmp_path: Path) -> None:
    slow = stub_group(stub(Event.PRE_TOOL_USE, "sleep 0.5; exit 3"))
    settings = Settings(audit_file=str(tmp_path / "audit"))
    async with rig(settings=settings, kind=rig_with(Watched(STRICT, (slow,)))) as one:
        await one.agent.send(INITIALIZE)
        await one.server.line()
        await one.server.send(CAPABILITIES)
        await one.agent.line()
        await one.agent.send(INITIALIZED)
        await one.server.line()
        for number in range(1, 21):
            await one.agent.send(call(number))
            assert await one.server.line() == call(number)
            await one.server.send(result(number))
            assert await one.agent.line() == result(number)
        one.agent.stop_writing()
        await one.finish()
    assert {line["id"] for line in audited(tmp_path / "audit") if line["monitor"]["decision"] == "deny"} == {
        *range(1, 21)
    }


async def test_what_is_not_judged_any_more_at_the_end_is_noted(tmp_path: Path) -> None:
    settings = Settings(audit_file=str(tmp_path / "audit"))
    async with rig(
        settings=settings, kind=rig_with(Watched(STRICT, (stub_group(stub(Event.PRE_TOOL_USE, "sleep 60")),)))
    ) as one:
        await one.agent.send(INITIALIZE + INITIALIZED + b"".join(call(number) for number in range(1, 41)))
        for _ in range(42):
            await one.server.line()
        assert one.proxy.watch is not None
        one.proxy.watch.end_all("the session has ended")
        await one.finish()
    lines = audited(tmp_path / "audit")
    assert [line["note"] for line in lines if "note" in line and "calls not judged" in line["note"]]


READ: Final = b'{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///secret"}}\n'
CONTENTS: Final = b'{"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"file:///secret","text":"x"}]}}\n'
SAMPLING: Final = b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}\n'
SAMPLED: Final = (
    b'{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}\n'
)


@pytest.mark.parametrize("in_force", [Settings(), Settings(deny=("Read(**/other)", "sampling/other", "delete"))])
async def test_requests_of_all_methods_are_watched(in_force: Settings, tmp_path: Path) -> None:
    settings = replace(in_force, audit_file=str(tmp_path / "audit"))
    policy = watched_rules(deny=("resources/read(**/secret)", "sampling/*"))
    async with rig(settings=settings, kind=rig_with(policy)) as one:
        await one.agent.send(INITIALIZE)
        assert await one.server.line() == INITIALIZE
        await one.server.send(CAPABILITIES)
        assert await one.agent.line() == CAPABILITIES
        await one.agent.send(INITIALIZED + READ)
        assert await one.server.line() + await one.server.line() == INITIALIZED + READ
        await one.server.send(CONTENTS + SAMPLING)
        assert await one.agent.line() + await one.agent.line() == CONTENTS + SAMPLING
        await one.agent.send(SAMPLED)
        assert await one.server.line() == SAMPLED
        await one.finish()
    records = {line["method"]: line for line in audited(tmp_path / "audit")}
    assert {name: (line["decision"], line["monitor"]["would"]) for name, line in records.items()} == {
        "resources/read": ("allow", ["refused"]),
        "sampling/createMessage": ("allow", ["refused"]),
    }


async def test_a_message_that_cannot_be_read_for_certain_passes_with_a_note(tmp_path: Path) -> None:
    settings = Settings(audit_file=str(tmp_path / "audit"))
    unclear = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write_file","name":"x"}}\n'
    async with rig(settings=settings, kind=rig_with(OWN)) as one:
        await one.agent.send(INITIALIZE + INITIALIZED + unclear)
        assert [await one.server.line() for _ in range(3)] == [INITIALIZE, INITIALIZED, unclear]
        await one.finish()
    (line,) = audited(tmp_path / "audit")
    assert "a message of the agent would have been refused" in line["note"]


async def test_a_defect_in_what_is_watched_reaches_nobody(tmp_path: Path) -> None:
    def broken(name: str) -> bool:
        if name.endswith("write_file"):
            raise RuntimeError("broken matcher")
        return False

    policy = Watched(STRICT, (group(replace(hook("exit 0"), matches=broken)),))
    async with rig(settings=Settings(audit_file=str(tmp_path / "audit")), kind=rig_with(policy)) as one:
        await one.agent.send(INITIALIZE + INITIALIZED + call(1) + call(2))
        assert [await one.server.line() for _ in range(4)] == [INITIALIZE, INITIALIZED, call(1), call(2)]
        await one.server.send(CAPABILITIES + result(1) + result(2))
        assert [await one.agent.line() for _ in range(3)] == [CAPABILITIES, result(1), result(2)]
        await one.finish()
    assert [text for text in one.reports if "what follows in this session is not watched" in text]


async def test_a_watched_sink_records_what_it_would_have_refused(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    source = Source(FlowMatch(tools=("read_file",)), ("secret",), "flow.sources[0]")
    sink = Sink(FlowMatch(tools=("write_file",)), ("secret",), "flow.sinks[0]", "deny")
    policy = watched_rules(flow_sources=(source,), flow_sinks=(sink,))
    async with rig(settings=Settings(audit_file=str(audit)), kind=rig_with(policy)) as run:
        for number, tool in ((1, "read_file"), (2, "write_file")):
            await run.agent.send(call(number, tool))
            assert await run.server.line() == call(number, tool)
            await run.server.send(result(number))
            assert await run.agent.line() == result(number)
        await run.finish()
    (record,) = [one for one in map(json.loads, audit.read_text().splitlines()) if one["tool"] == "write_file"]
    assert record["decision"] == "allow"
    assert record["monitor"]["would"] == ["refused"]
    assert "would send what `read_file` read" in record["monitor"]["reason"]
