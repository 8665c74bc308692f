"""What the agent sees of tools that `[tools.X]` hides, renames or describes anew, and what the server gets."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.model.shown_tools import ShownTool
from tests.support.call_spellings import CARRIERS, SPELLINGS, calls_seen
from tests.support.proxy_rig import DIRECT_LOOP, Rig, group, hook, rig

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

SHOWN: Final = (
    ShownTool("hidden", hidden=True),
    ShownTool("drop_table", name="ask_the_admin"),
    ShownTool("read", description='Reads "one" file.'),
)
LIST: Final = b'{"jsonrpc":"2.0","id":"l","method":"tools/list"}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(tool: str, number: int = 7, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, **params}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def listing(*tools: bytes, raw_id: bytes = b'"l"') -> bytes:
    return b'{"jsonrpc":"2.0", "id":%b,"result":{"tools":[%b],"nextCursor":"\\u0063"}}\n' % (raw_id, b" ,".join(tools))


def shown(*tools: ShownTool, **more: Any) -> Settings:  # noqa: ANN401
    return Settings(shown_tools=tools or SHOWN, **more)


async def listed(proxied: Rig, *tools: bytes) -> bytes:
    await proxied.agent.send(LIST)
    assert await proxied.server.line() == LIST
    await proxied.server.send(listing(*tools))
    return await proxied.agent.line()


READ: Final = b'{"name": "read", "description":"x","inputSchema":{"type":"object", "n":1.0},"_meta":{"a":1}}'
DROP: Final = b'{"inputSchema":{"type" : "object"},"na\\u006de":"drop_t\\u0061ble","title":"Drop"}'
OTHER: Final = b'{"name":"other","inputSchema":{}}'
HIDDEN: Final = b'{"inputSchema":{},"name":"hidden"}'


async def test_only_the_name_and_the_description_of_a_listed_tool_change_and_a_hidden_one_is_left_out() -> None:
    async with rig(settings=shown()) as proxied:
        got = await listed(proxied, HIDDEN, READ, DROP, OTHER)
        drop = b'{"inputSchema":{"type" : "object"},"na\\u006de":"ask_the_admin","title":"Drop"}'
        assert got == listing(READ.replace(b'"x"', b'"Reads \\"one\\" file."'), drop, OTHER)
        assert await listed(proxied, OTHER) == listing(OTHER)


async def test_a_description_is_added_where_the_server_has_none() -> None:
    async with rig(settings=shown(ShownTool("other", description="d"))) as proxied:
        assert await listed(proxied, OTHER) == listing(b'{"name":"other","inputSchema":{},"description":"d"}')


async def test_a_renamed_tool_is_called_by_its_new_name_and_all_other_bytes_of_the_call_stay() -> None:
    async with rig(settings=shown()) as proxied:
        odd = b'{ "id":"a", "jsonrpc":"2.0","params":{"arguments":{"n":1.0},"n\\u0061me":"ask_the\\u005fadmin","_meta":'
        odd += b'{"progressToken":1}},"method":"tools\\/call"}\n'
        await proxied.agent.send(odd)
        assert await proxied.server.line() == odd.replace(b"ask_the\\u005fadmin", b"drop_table")
        for number in (1, 2):  # the second one would be on the fast path
            await proxied.agent.send(call("ask_the_admin", number, arguments={"name": "ask_the_admin"}))
            assert await proxied.server.line() == call("drop_table", number, arguments={"name": "ask_the_admin"})
            answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % number
            await proxied.server.send(answer)
            assert await proxied.agent.line() == answer


@pytest.mark.parametrize("tool", ["hidden", "drop_table"])
async def test_the_name_of_a_hidden_or_renamed_tool_is_unknown(tool: str) -> None:
    async with rig(settings=shown()) as proxied:
        for number in (1, 2):
            await proxied.agent.send(call("other", 10 + number), call(tool, number), call(tool, 20 + number, task={}))
            assert await proxied.server.line() == call("other", 10 + number)
            for raw_id in (number, 20 + number):
                assert await proxied.agent.message() == {
                    "jsonrpc": "2.0",
                    "id": raw_id,
                    "error": {"code": -32602, "message": f"Unknown tool: {tool}"},
                }
        assert await proxied.finish() == (b"", b"")


@pytest.mark.slow
async def test_no_spelling_of_a_call_of_a_hidden_tool_reaches_the_server() -> None:
    for spelling in (*SPELLINGS, *CARRIERS):
        async with rig(settings=shown(ShownTool("danger", hidden=True))) as proxied:
            await proxied.agent.send(spelling.text)
            received, _ = await proxied.finish()
            assert not calls_seen(received), str(spelling)


@pytest.mark.slow
async def test_no_spelling_of_a_call_by_the_new_name_reaches_the_server_under_that_name() -> None:
    arrived = 0
    for spelling in SPELLINGS:
        async with rig(settings=shown(ShownTool("wipe", name="danger"))) as proxied:
            await proxied.agent.send(spelling.text)
            received, answered = await proxied.finish()
            assert not calls_seen(received), str(spelling)
            assert received or answered, str(spelling)
            arrived += b'"wipe"' in received
    assert arrived > len(SPELLINGS) // 8


async def test_names_may_be_exchanged() -> None:
    async with rig(settings=shown(ShownTool("a", name="b"), ShownTool("b", name="a"))) as proxied:
        got = await listed(proxied, b'{"name":"a","title":"1"}', b'{"name":"b","title":"2"}')
        assert got == listing(b'{"name":"b","title":"1"}', b'{"name":"a","title":"2"}')
        await proxied.agent.send(call("a", 1), call("b", 2), call("a", 3))
        assert [await proxied.server.line() for _ in range(3)] == [call("b", 1), call("a", 2), call("b", 3)]


async def test_another_tool_with_the_new_name_is_left_out_and_people_are_told_once() -> None:
    async with rig(settings=shown()) as proxied:
        rival = b'{"name":"ask_the_admin"}'
        assert await listed(proxied, rival, DROP) == listing(DROP.replace(b"drop_t\\u0061ble", b"ask_the_admin"))
        assert await listed(proxied, rival) == listing()
        assert [report for report in proxied.reports if "ask_the_admin" in report] == [
            "the server's own tool ask_the_admin is left out of the list: this is the name that [tools.drop_table] "
            "gives to drop_table (choose another one)"
        ]


@pytest.mark.parametrize(
    "tool",
    [b'{"name":"hidden","name":"x"}', b'{"name":"x","Name":"hidden"}', b'{"name":"x","Description":"d"}', b"{}", b"7"],
)
async def test_a_tool_that_can_be_read_in_two_ways_is_left_out(tool: bytes) -> None:
    async with rig(settings=shown()) as proxied:
        assert await listed(proxied, OTHER, tool, OTHER) == listing(OTHER, OTHER)
        assert any("cannot be renamed" in report for report in proxied.reports)


@pytest.mark.parametrize(
    "result",
    [
        b'{"tools":[%b],"tools":[]}' % HIDDEN,
        b'{"tools":[],"Tools":[%b]}' % HIDDEN,
        b'{"\\u0054ools":[%b]}' % HIDDEN,
        b'{"tools":{"0":%b}}' % HIDDEN,
        b'{"tools":[%b' % HIDDEN + b"}",
    ],
)
async def test_a_list_that_can_be_read_in_two_ways_is_withheld(result: bytes) -> None:
    async with rig(settings=shown()) as proxied:
        await proxied.agent.send(LIST)
        await proxied.server.line()
        await proxied.server.send(b'{"jsonrpc":"2.0","id":"l","result":%b}\n' % result)
        await proxied.server.send(b'{"jsonrpc":"2.0","method":"notifications/x"}\n')
        got = await proxied.agent.line()
        assert b"hidden" not in got
        assert b'"error"' in got or b"notifications/x" in got


@pytest.mark.parametrize(
    "response",
    [
        b'{"jsonrpc":"2.0","id":"l","id":1,"result":{"tools":[%b]}}\n' % HIDDEN,
        b'{"jsonrpc":"2.0","id":1,"id":"l","result":{"tools":[%b]}}\n' % HIDDEN,
        b'{"jsonrpc":"2.0","id":1,"ID":"l","result":{"tools":[%b]}}\n' % HIDDEN,
        b'{"jsonrpc":"2.0","id":"l","result":{},"result":{"tools":[%b]}}\n' % HIDDEN,
        b'[{"jsonrpc":"2.0","id":"l","result":{"tools":[%b]}}]\n' % HIDDEN,
    ],
)
async def test_no_form_of_a_response_carries_a_hidden_tool(response: bytes) -> None:
    async with rig(settings=shown()) as proxied:
        await proxied.agent.send(LIST, call("other", 1))
        await proxied.server.line()
        await proxied.server.line()
        await proxied.server.send(response)
        _, answered = await proxied.finish()
        assert b"hidden" not in answered


async def test_the_late_response_to_a_cancelled_list_is_dropped() -> None:
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}\n'
    async with rig(settings=shown()) as proxied:
        await proxied.agent.send(LIST, cancelled)
        await proxied.server.send(listing(HIDDEN))
        assert b"hidden" not in (await proxied.finish())[1]


async def test_a_list_is_not_asked_for_in_a_batch_or_under_the_id_of_another_request() -> None:
    async with rig(settings=shown()) as proxied:
        await proxied.agent.send(b"[%b]\n" % LIST.strip(), LIST, LIST.replace(b"tools/list", b"ping"))
        assert await proxied.server.line() == LIST
        assert "separate message" in (await proxied.agent.message())["error"]["message"]
        assert "in flight" in (await proxied.agent.message())["error"]["message"]
        await proxied.server.send(listing(OTHER, HIDDEN))
        assert await proxied.agent.line() == listing(OTHER)


async def test_hooks_and_the_audit_know_the_name_of_the_server() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.jsonl"
        guard = group(hook("exit 2", Event.PRE_TOOL_USE, "drop_table"), hook("exit 2", Event.PRE_TOOL_USE, "x.*"))
        async with rig(guard, settings=shown(audit_file=str(file))) as proxied:
            await proxied.agent.send(call("ask_the_admin", 1))
            assert (await proxied.agent.message())["result"]["isError"] is True
            await proxied.agent.send(call("hidden", 2))
            await proxied.agent.message()
            assert await proxied.finish() == (b"", b"")
        first, second = map(json.loads, file.read_bytes().splitlines())
        assert (first["tool"], first["decision"]) == ("drop_table", "deny")
        assert (second["result"], second["reason"]) == ("refused", "Unknown tool: hidden")


async def test_a_reload_changes_the_names() -> None:
    async with rig(settings=shown()) as proxied:
        proxied.proxy.change_policy(proxied.proxy.policy.hooks, Settings(), proxied.proxy.policy.audit)
        await proxied.agent.send(call("hidden", 1), call("ask_the_admin", 2))
        assert [await proxied.server.line() for _ in range(2)] == [call("hidden", 1), call("ask_the_admin", 2)]
        assert await listed(proxied, HIDDEN, DROP) == listing(HIDDEN, DROP)


async def test_a_table_for_a_tool_with_a_misspelled_name_is_reported_once_the_whole_list_is_known() -> None:
    tables = (ShownTool("raed", hidden=True), ShownTool("of_another_server", hidden=True), ShownTool("other", name="o"))
    aliases = (Alias("drop_tables", "Bash"), Alias("READ", "Read"))
    async with rig(settings=Settings(shown_tools=tables, aliases=aliases)) as proxied:
        for _ in range(2):
            await listed(proxied, READ, DROP)
            assert not any("[tools." in line for line in proxied.reports)
            more = LIST.replace(b'"tools/list"', b'"tools/list","params":{"cursor":"c"}')
            await proxied.agent.send(more)
            assert await proxied.server.line() == more
            await proxied.server.send(listing(OTHER).replace(b',"nextCursor":"\\u0063"', b""))
            await proxied.agent.line()
            if _ == 0:
                reports = [line for line in proxied.reports if "[tools." in line]
                proxied.reports.clear()
        assert reports == [
            "[tools.drop_tables] is about no tool that the server files lists: did you mean 'drop_table'?",
            "[tools.raed] is about no tool that the server files lists: did you mean 'read'?",
        ]
        assert not any("[tools." in line for line in proxied.reports)
