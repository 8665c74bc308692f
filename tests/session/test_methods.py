"""Requests of other methods than tools/call: judged where something names them, relayed as they are elsewhere."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.aliases import spelled
from hookproxy.model.hooks import Event, HookSpec, Order
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import OnAsk, Settings
from hookproxy.policy.methods import JUDGED, Direction
from hookproxy.policy.resource_aliases import of_method
from hookproxy.protocol.method_forms import BY_NAME
from tests.support.proxy_rig import DIRECT_LOOP, Rig, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE
STATELESS: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
ERAS: Final = pytest.mark.parametrize("meta", [{}, STATELESS], ids=["2025", "2026"])
URI: Final = "file:///home/a/.env"
PARAMS: Final[dict[str, dict[str, Any]]] = {
    "resources/list": {"cursor": "x"},
    "resources/read": {"uri": URI},
    "resources/subscribe": {"uri": URI},
    "subscriptions/listen": {"notifications": {"resourceSubscriptions": [URI], "toolsListChanged": True}},
    "prompts/get": {"name": "review", "arguments": {"a": "b"}},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}},
}
METHODS: Final = pytest.mark.parametrize("method", PARAMS)


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def request(method: str, params: dict[str, Any], meta: dict[str, Any] | None = None, number: int = 7) -> bytes:
    of_meta = {"_meta": meta} if meta else {}
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **of_meta}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def name_of(method: str) -> str:
    return "resources/subscribe" if method == "subscriptions/listen" else method


def result(of: dict[str, Any], number: int = 7) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": of}, separators=(",", ":")).encode() + b"\n"


async def passes(proxied: Rig, line: bytes) -> None:
    """The server gets the bytes of the line, and the agent those of the response."""
    await proxied.agent.send(line)
    assert await proxied.server.line() == line
    answer = result({"contents": [], "_meta": {"x": 1.0}}, json.loads(line)["id"])
    await proxied.server.send(answer)
    assert await proxied.agent.line() == answer


def denies(matcher: str, reason: str = "no") -> Group:
    return group(hook(f"echo {reason} >&2; exit 2", matcher=matcher))


def test_the_tables_name_the_same_methods() -> None:
    assert set(BY_NAME) == {name for name, direction in JUDGED.items() if direction is Direction.FROM_AGENT}


@METHODS
@ERAS
@pytest.mark.parametrize("settings", [Settings(deny=("*", "tool")), Settings(ask=("other/*",)), Settings()])
async def test_a_method_that_nothing_names_stays_the_bytes_that_came(
    method: str, meta: dict[str, str], settings: Settings
) -> None:
    async with rig(denies(""), denies("*"), denies(".*"), denies("Bash"), settings=settings) as proxied:
        await passes(proxied, request(method, PARAMS[method], meta))
        await passes(proxied, b" " + request(method, {**PARAMS[method], "URI": 1}, meta, number=8))


@METHODS
@ERAS
@pytest.mark.parametrize("whole", [False, True])
async def test_a_rule_denies_a_method_by_its_name(method: str, meta: dict[str, str], whole: bool) -> None:
    rule = "*/*" if whole else name_of(method)
    async with rig(settings=Settings(deny=(rule,))) as proxied:
        await proxied.agent.send(request(method, PARAMS[method], meta))
        error = (await proxied.agent.message())["error"]
        assert error["code"] == -31403
        assert f"the permission rule {rule}" in error["message"]
        assert f"The server did not get this {name_of(method)}." in error["message"]
        assert await proxied.finish() == (b"", b"")


@METHODS
@ERAS
async def test_a_hook_denies_a_method_by_its_name(method: str, meta: dict[str, str]) -> None:
    async with rig(denies(f"Bash|{name_of(method)}", "because")) as proxied:
        await proxied.agent.send(request(method, PARAMS[method], meta))
        error = (await proxied.agent.message())["error"]
        assert "because" in error["message"]
        assert await proxied.finish() == (b"", b"")


async def test_a_hook_sees_the_method_and_its_params(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    async with rig(group(hook(f"cat >> {shlex.quote(str(seen))}", matcher="*/*"))) as proxied:
        await passes(proxied, request("prompts/get", PARAMS["prompts/get"], {"k": "v"}))
    document = json.loads(seen.read_bytes())
    assert document["tool_name"] == "prompts/get"
    assert document["tool_input"] == PARAMS["prompts/get"]


@pytest.mark.parametrize(
    ("method", "matcher", "tool_input"),
    [
        ("resources/read", "ReadMcpResourceTool", {"uri": "FILE:/home/a/%2eenv", "server": "files"}),
        ("resources/read", "Read", {"file_path": "/home/a/.env"}),
        ("resources/subscribe", "Read|Write", {"file_path": "/home/a/.env"}),
        ("resources/list", "ListMcpResourcesTool", {"uri": "FILE:/home/a/%2eenv", "server": "files"}),
    ],
)
async def test_a_hook_knows_a_resource_by_a_familiar_name(
    method: str, matcher: str, tool_input: dict[str, str], tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    async with rig(group(hook(f"(cat; echo) >> {shlex.quote(str(seen))}", matcher=matcher))) as proxied:
        await passes(proxied, request(method, {"uri": "FILE:/home/a/%2eenv"}))
    documents = [json.loads(line) for line in seen.read_text().splitlines() if line]
    assert {document["tool_name"] for document in documents} == {matcher.partition("|")[0]}
    assert tool_input in [document["tool_input"] for document in documents]


def guards_env(*, only_if: str = "") -> HookSpec:
    """A guard that refuses to read one file, by its path."""
    return replace(hook("grep -q '\"/home/a/.env\"' && exit 2; exit 0", matcher="Read"), only_if=only_if)


ODD_SPELLINGS: Final = [
    "file://home/a/.env",
    "file:///home/a/.env;v=1",
    "repo://x/home/a/.env",
    "view-source:file://localhost//home/a/.env",
    "docs://read/all?path=/home/a/.env",
    "file://home/b/%252e%252e/a/.env",
]


@pytest.mark.parametrize("uri", ODD_SPELLINGS)
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
async def test_a_guard_for_files_refuses_each_path_that_a_uri_may_mean(method: str, uri: str) -> None:
    async with rig(group(guards_env())) as proxied:
        await proxied.agent.send(request(method, {"uri": uri}))
        assert "error" in await proxied.agent.message()
        assert await proxied.finish() == (b"", b"")


@pytest.mark.parametrize("uri", ODD_SPELLINGS)
@pytest.mark.parametrize("matcher", ["Read", "Read|resources/read", "resources/read|Read"])
async def test_the_condition_of_a_hook_holds_if_one_path_that_a_uri_may_mean_fulfils_it(uri: str, matcher: str) -> None:
    guard = hook("exit 2", matcher=matcher)
    async with rig(group(replace(guard, only_if="Read(/home/a/.env)"))) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": uri}))
        assert "error" in await proxied.agent.message()


@pytest.mark.parametrize("uri", ODD_SPELLINGS)
@pytest.mark.parametrize("matcher", ["Read", "Read|resources/read", "resources/read|Read"])
@pytest.mark.parametrize("event", [POST, Event.POST_TOOL_USE_FAILURE])
async def test_a_hook_after_a_request_runs_once_if_its_condition_holds_for_one_path(
    uri: str, matcher: str, event: Event, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    observer = hook(f"cat >> {shlex.quote(str(seen))}", event, matcher)
    other = replace(observer, only_if="Read(/home/a/other)")
    async with rig(group(replace(observer, only_if="Read(**/.env)"), other)) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": uri}))
        await proxied.server.line()
        failed = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "no"}}
        await proxied.server.send(result({"contents": []}) if event is POST else json.dumps(failed).encode() + b"\n")
        await proxied.agent.message()
    document = json.loads(seen.read_bytes())
    assert document["tool_name"] == "Read"
    assert document["tool_input"]["file_path"].endswith("/.env")


async def test_the_condition_of_a_hook_after_a_request_is_tried_on_more_paths_than_guards_run_for() -> None:
    deep = "repo://" + "/".join("abcdefghijklmnopqrs")
    observer = replace(hook("echo seen >&2; exit 2", POST, "Read"), only_if="Read(/q/r/s)")
    async with rig(group(observer)) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": deep}))
        await proxied.server.line()
        await proxied.server.send(result({"contents": []}))
        assert "seen" in json.dumps(await proxied.agent.message())


@pytest.mark.parametrize("order", [Order.SERIAL, Order.PARALLEL, Order.PIPELINE, Order.UNTIL_DENIED])
async def test_a_guard_for_files_runs_once_for_each_file(order: Order, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    guard = stub(PRE, f"cat >> {shlex.quote(str(seen))}; echo >> {shlex.quote(str(seen))}")
    runs_once = stub_group(replace(guard, matcher="Read", matches="Read".__eq__), order=order)
    async with rig(runs_once, settings=Settings()) as proxied:
        await passes(proxied, request("resources/read", {"uri": "FILE:///srv/x/../a.txt"}))
        await passes(proxied, request("resources/read", {"uri": "file:///srv/a%20b"}, number=8))
    paths = [json.loads(line)["arguments"]["file_path"] for line in seen.read_text().split("\n") if line]
    assert sorted(paths) == ["/srv/a b", "/srv/a%20b", "/srv/a.txt"]


async def test_a_uri_of_too_many_files_is_refused_where_a_guard_reads_them() -> None:
    deep = "repo://" + "/".join("abcdefghijklmnopqrs")
    async with rig(group(guards_env())) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": deep}))
        assert "more than 32 paths" in (await proxied.agent.message())["error"]["message"]
        assert await proxied.finish() == (b"", b"")


@pytest.mark.parametrize("order", [Order.SERIAL, Order.PARALLEL])
async def test_a_guard_allows_a_file_only_in_each_reading(order: Order) -> None:
    answer = """case "$(cat)" in *'"/srv/a b"'*) echo '{"permission": "allow"}';; esac"""
    guard = replace(stub(Event.PERMISSION_REQUEST, answer), matcher="Read", matches="Read".__eq__)
    settings = Settings(ask=("Read",), on_ask=OnAsk.DENY)
    async with rig(stub_group(guard, order=order), settings=settings) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": "file:///srv/a%20b"}))
        assert "error" in await proxied.agent.message()


@pytest.mark.parametrize("order", [Order.SERIAL, Order.PARALLEL, Order.PIPELINE])
async def test_the_file_that_a_guard_has_chosen_instead_is_read(order: Order) -> None:
    pre = replace(stub(PRE, arguments={"file_path": "/srv/public"}), matcher="Read", matches="Read".__eq__)
    async with rig(stub_group(pre, order=order)) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": "file:///home/a%20b"}))
        assert json.loads(await proxied.server.line())["params"] == {"uri": "file:///srv/public"}


async def test_a_guard_for_files_is_not_asked_about_a_name() -> None:
    async with rig(denies("Read")) as proxied:
        await passes(proxied, request("resources/read", {"uri": "memo://insights"}))
        await proxied.agent.send(request("resources/read", {"uri": "file:///a"}))
        assert "error" in await proxied.agent.message()


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"resources/read","params":{"uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"resources/read","params":{"uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":[1],"method":"resources/read","params":{"uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a","URI":"file:///b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a","uri":"file:///b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"Uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":["file:///a"]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a\\u0000b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a%00b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":["file:///a"]}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read"}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a","task":{}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","Params":{},"params":{"uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","method":"ping","params":{"uri":"file:///a"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources\\/read","params":{"uri":"file:///a","URI":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read\\u0000","params":{"uri":"file:///a"}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a"}}]',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"resources/read"}]',
        b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":'
        b'{"notifications":{"resourceSubscriptions":["file:///a","file:///b"]}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":'
        b'{"notifications":{"resourcesubscriptions":["file:///a"]}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":'
        b'{"notifications":{"resource_subscriptions":["file:///a"]}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"resources/read","arguments":{}}}',
    ],
)
async def test_a_request_that_readers_may_read_differently_is_refused(line: bytes) -> None:
    async with rig(settings=Settings(ask=("resources/*", "Read(**/secret)"), on_ask=OnAsk.ALLOW)) as proxied:
        await proxied.agent.send(line + b"\n")
        message = await proxied.agent.message()
        assert message["error"]["code"] == -32600
        assert await proxied.finish() == (b"", b"")


async def test_an_id_in_flight_is_taken() -> None:
    async with rig(settings=Settings(ask=("resources/*",), on_ask=OnAsk.ALLOW)) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": "file:///a"}))
        await proxied.server.line()
        await proxied.agent.send(request("resources/read", {"uri": "file:///b"}))
        assert "in flight" in (await proxied.agent.message())["error"]["message"]


async def test_a_subscription_to_lists_alone_is_not_judged() -> None:
    line = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, STATELESS)
    async with rig(settings=Settings(deny=("resources/*",))) as proxied:
        await proxied.agent.send(line)
        assert await proxied.server.line() == line


async def test_a_judged_subscription_keeps_nobody_waiting_at_the_end() -> None:
    async with rig(settings=Settings(audit_all_calls=True)) as proxied:
        await proxied.agent.send(request("subscriptions/listen", PARAMS["subscriptions/listen"], STATELESS))
        await proxied.server.line()
        assert not proxied.proxy.router.pending
        assert await proxied.finish() == (b"", b"")


async def test_a_rate_limit_counts_a_method() -> None:
    settings = Settings(limits=(Limit("resources/read", 1, Per.SESSION, "limits[0]"),))
    async with rig(settings=settings) as proxied:
        await passes(proxied, request("resources/read", {"uri": "file:///a"}))
        await proxied.agent.send(request("resources/read", {"uri": "file:///a"}, number=8))
        error = (await proxied.agent.message())["error"]
        assert "no more than 1 call of resources/read per session" in error["message"]


async def test_without_a_person_a_request_that_needs_approval_is_refused() -> None:
    async with rig(settings=Settings(ask=("prompts/get",))) as proxied:
        await proxied.agent.send(request("prompts/get", PARAMS["prompts/get"]))
        error = (await proxied.agent.message())["error"]
        assert "prompts/get" in error["message"]
        assert await proxied.finish() == (b"", b"")


@ERAS
async def test_a_person_approves_a_request(meta: dict[str, Any]) -> None:
    capabilities: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    async with rig(settings=Settings(ask=("resources/read",))) as proxied:
        if not meta:
            await open_with_forms(proxied)
            await proxied.agent.send(request("resources/read", {"uri": "file:///a"}))
            asked = await proxied.agent.message()
            accept = {"action": "accept", "content": {"decision": "allow once"}}
            await proxied.agent.send(
                json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": accept}).encode() + b"\n"
            )
            assert "file:///a" in asked["params"]["message"]
        else:
            line = request("resources/read", {"uri": "file:///a"}, {**meta, **capabilities})
            await proxied.agent.send(line)
            asked = (await proxied.agent.message())["result"]
            (name,) = asked["inputRequests"]
            again = {"uri": "file:///a", "requestState": asked["requestState"]}
            again["inputResponses"] = {name: {"action": "accept", "content": {"decision": "allow once"}}}
            await proxied.agent.send(request("resources/read", again, {**meta, **capabilities}, number=8))
        received = json.loads(await proxied.server.line())
        assert received["method"] == "resources/read"
        assert "requestState" not in received["params"]


async def open_with_forms(proxied: Rig) -> None:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": {"name": "c", "version": "1"},
    }
    await proxied.agent.send(request("initialize", params, number=1))
    await proxied.server.line()
    given = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    await proxied.server.send(result(given, 1))
    await proxied.agent.line()
    await proxied.agent.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    await proxied.server.line()


@METHODS
@ERAS
async def test_a_hook_rewrites_what_the_server_gets(method: str, meta: dict[str, str]) -> None:
    given = dict(PARAMS[method])
    changed = {"uri": "file:///other"} if "listen" in method else {**given, next(iter(given)): "other"}
    if method == "completion/complete":
        changed = {**given, "argument": {"name": "a", "value": "w"}}
    expected = changed
    if "listen" in method:
        expected = {"notifications": {**given["notifications"], "resourceSubscriptions": ["file:///other"]}}
    pre = replace(stub(PRE, arguments=changed), matcher=name_of(method))
    async with rig(stub_group(pre)) as proxied:
        await proxied.agent.send(request(method, given, meta))
        params = json.loads(await proxied.server.line())["params"]
        assert params.pop("_meta", {}) == meta
        assert params == expected


@pytest.mark.parametrize(
    ("method", "changed"),
    [
        ("resources/read", {"uri": 5}),
        ("resources/read", {}),
        ("resources/read", {"uri": "file:///a%00"}),
        ("resources/read", {"uri": "file:///a", "_meta": {}}),
        ("prompts/get", {"name": "x", "arguments": {"a": 5}}),
        ("subscriptions/listen", {"uri": "file:///a", "more": 1}),
    ],
)
async def test_a_rewrite_that_does_not_fit_the_method_is_a_failure(method: str, changed: dict[str, Any]) -> None:
    pre = replace(stub(PRE, arguments=changed), matcher="*/*", fails_closed=True)
    async with rig(stub_group(pre)) as proxied:
        await proxied.agent.send(request(method, PARAMS[method]))
        assert "rewrote" in (await proxied.agent.message())["error"]["message"]
        assert await proxied.finish() == (b"", b"")


async def test_a_guard_for_files_rewrites_the_path() -> None:
    pre = replace(stub(PRE, arguments={"file_path": "/srv/a b"}), matcher="Read", matches="Read".__eq__)
    async with rig(stub_group(pre), settings=Settings(deny=("Read(/nothing/**)",))) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": "file:///home/a"}))
        assert json.loads(await proxied.server.line())["params"] == {"uri": "file:///srv/a%20b"}


async def test_rules_hold_for_what_a_hook_has_written() -> None:
    pre = replace(stub(PRE, arguments={"uri": "file:///a/.env"}), matcher="resources/read")
    async with rig(stub_group(pre), settings=Settings(deny=("Read(**/.env)",))) as proxied:
        await proxied.agent.send(request("resources/read", {"uri": "memo://insights"}))
        assert "Read(**/.env)" in (await proxied.agent.message())["error"]["message"]


RESULTS: Final[dict[str, dict[str, Any]]] = {
    "resources/read": {"contents": [{"uri": URI, "mimeType": "text/plain", "text": "KEY=secret"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "KEY=secret"}}]},
    "completion/complete": {"completion": {"values": ["KEY=secret"]}},
    "resources/list": {"resources": [{"uri": "file:///secret", "name": "KEY=secret"}]},
    "resources/subscribe": {},
}
WITH_RESULT: Final = pytest.mark.parametrize("method", RESULTS)


def post(method: str, **verdict: Any) -> Group:  # noqa: ANN401
    return stub_group(replace(stub(POST, **verdict), matcher=method))


async def response_to(proxied: Rig, method: str, meta: dict[str, str], of: dict[str, Any]) -> dict[str, Any]:
    await proxied.agent.send(request(method, PARAMS[method], meta))
    await proxied.server.line()
    await proxied.server.send(result({**({"resultType": "complete"} if meta else {}), **of}))
    return await proxied.agent.message()


@WITH_RESULT
@ERAS
async def test_a_hook_comments_on_a_result(method: str, meta: dict[str, str]) -> None:
    async with rig(post(method, feedback=["handle with care"])) as proxied:
        given = (await response_to(proxied, method, meta, RESULTS[method]))["result"]
        if method == "resources/read":
            assert given["contents"][:1] == RESULTS[method]["contents"]
            assert given["contents"][1]["text"] == "handle with care"
        elif method == "prompts/get":
            assert given["messages"][:1] == RESULTS[method]["messages"]
            assert given["messages"][1]["content"]["text"] == "handle with care"
        else:
            assert given.pop("_meta") == {"hook_feedback": "handle with care"}
            given.pop("resultType", None)
            assert given == RESULTS[method]


@WITH_RESULT
@ERAS
@pytest.mark.parametrize("verdict", [{"hides": True}, {"replacement": "gone"}])
async def test_what_a_hook_hides_or_replaces_does_not_reach_the_agent(
    method: str, meta: dict[str, str], verdict: dict[str, Any]
) -> None:
    async with rig(post(method, **verdict)) as proxied:
        message = await response_to(proxied, method, meta, RESULTS[method] | {"more": "secret"})
        assert "secret" not in json.dumps(message).replace(URI, "")
        if "hides" in verdict:
            assert "hides its output" in message["error"]["message"]
        else:
            assert "gone" in json.dumps(message)
            assert message.get("result", {}).get("resultType", "") == (
                "complete" if meta and "result" in message else ""
            )


async def test_a_hook_that_fails_withholds_the_result() -> None:
    spec = replace(hook("exit 3", POST), matcher="resources/*", withholds=True)
    async with rig(group(spec)) as proxied:
        message = await response_to(proxied, "resources/read", {}, RESULTS["resources/read"])
        assert "withheld" in message["error"]["message"]
        assert "The tool" not in message["error"]["message"]


@pytest.mark.parametrize(
    "replacement",
    [
        {"contents": [{"uri": "file:///x", "text": "gone"}]},
        [{"uri": "file:///x", "text": "gone"}],
        [{"type": "text", "text": "gone"}],
        {"content": [{"type": "text", "text": "gone"}]},
    ],
)
async def test_a_replacement_may_be_a_result_its_contents_or_blocks(replacement: object) -> None:
    async with rig(post("resources/read", replacement=replacement)) as proxied:
        message = await response_to(proxied, "resources/read", {}, RESULTS["resources/read"])
        assert message["result"]["contents"][0]["text"] == "gone"


@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        ("resources/read", RESULTS["resources/read"]),
        ("ReadMcpResourceTool", RESULTS["resources/read"]),
        ("Read", {"type": "text", "file": {"filePath": "/home/a/.env", "content": "KEY=secret", "numLines": 1}}),
    ],
)
async def test_a_hook_reads_the_contents_of_a_resource(matcher: str, expected: object, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    async with rig(group(hook(f"cat >> {shlex.quote(str(seen))}", POST, matcher))) as proxied:
        await response_to(proxied, "resources/read", {}, RESULTS["resources/read"])
    document = json.loads(seen.read_bytes())
    assert document["tool_name"] == matcher
    response = document["tool_response"]
    if matcher == "Read":
        response["file"] = {name: response["file"][name] for name in ("filePath", "content", "numLines")}
    assert response == expected


async def test_a_hook_reads_the_texts_of_a_prompt(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    spec = replace(stub(POST, f"cat >> {shlex.quote(str(seen))}; echo '{{}}'"), matcher="prompts/get")
    async with rig(stub_group(spec)) as proxied:
        await response_to(proxied, "prompts/get", {}, RESULTS["prompts/get"])
    assert json.loads(seen.read_bytes())["text"] == "KEY=secret"


async def test_a_failed_request_is_the_event_after_failures(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    spec = hook(f"cat >> {shlex.quote(str(seen))}", Event.POST_TOOL_USE_FAILURE, "resources/*")
    async with rig(group(spec)) as proxied:
        await proxied.agent.send(request("resources/read", PARAMS["resources/read"]))
        await proxied.server.line()
        failed = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found"}}\n'
        await proxied.server.send(failed)
        assert await proxied.agent.line() == failed
    assert "Resource not found" in json.loads(seen.read_bytes())["error"]


async def test_a_result_with_a_second_contents_is_withheld() -> None:
    async with rig(post("resources/read", feedback=["x"])) as proxied:
        message = await response_to(proxied, "resources/read", {}, {**RESULTS["resources/read"], "Contents": []})
        assert "withheld" in message["error"]["message"]


def test_a_system_with_names_of_its_own_sees_a_resource_by_these() -> None:
    alias = spelled(of_method("resources/read", "files")[0], DIALECTS["cline"].tool_spellings)
    shown = alias.for_hooks(b'{"uri":"file:///a"}')
    assert alias.name == "access_mcp_resource"
    assert json.loads(shown) == {"uri": "file:///a", "server_name": "files"}
    assert alias.for_server(shown) == b'{"uri":"file:///a"}'
    with pytest.raises(ValueError, match="another server"):
        alias.for_server(shown.replace(b"files", b"other"))


def updated(uri: object, **more: object) -> bytes:
    message = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri, **more}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


@ERAS
async def test_the_agent_learns_no_change_of_a_resource_whose_subscription_was_refused(meta: dict[str, str]) -> None:
    method = "subscriptions/listen" if meta else "resources/subscribe"
    async with rig(settings=Settings(deny=("Read(**/.env)",))) as proxied:
        await proxied.server.send(updated(URI))
        assert await proxied.agent.line() == updated(URI)
        await proxied.agent.send(request(method, PARAMS[method], meta))
        assert "error" in await proxied.agent.message()
        for uri in (URI, "FILE:/home/a/%2eenv", "file://localhost/home/a/x/../.env", f"{URI}/below", ["file:///x"]):
            await proxied.server.send(updated(uri, text="KEY=secret"))
        await proxied.server.send(updated(URI).replace(b"updated", b"upd\\u0061ted"))
        await proxied.server.send(updated("file:///home/a/other"))
        assert await proxied.agent.line() == updated("file:///home/a/other")
        assert len([line for line in proxied.reports if "whose subscription was refused" in line]) == 6


async def test_a_subscription_that_is_allowed_later_brings_its_changes(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/once && exit 0; touch {tmp_path}/once; exit 2"
    async with rig(group(hook(once, matcher="resources/subscribe"))) as run:
        await run.agent.send(request("resources/subscribe", {"uri": "file:///tmp/x"}))
        assert "error" in await run.agent.message()
        await passes(run, request("resources/subscribe", {"uri": "file:///tmp/x"}, number=8))
        await run.server.send(updated("file:///tmp/x"))
        assert await run.agent.line() == updated("file:///tmp/x")
