"""Secrets of the server stay there: agent, hooks and records get placeholders, and only some tools get values."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.jsonrpc import raw_json
from hookproxy.lock import lock_file
from hookproxy.lock.description import Description, Kind, entry, identity
from hookproxy.model.decision import ApprovalRequest
from hookproxy.model.hooks import Elicitation, Event, EventContext, Verdict
from hookproxy.model.lock_settings import LockSettings
from hookproxy.model.secret_settings import SecretSettings, SecretsOff, SecretsRestore
from hookproxy.model.settings import Arguments, Results, Settings
from hookproxy.policy.shared_state import SharedSecrets, StoreUnavailable
from hookproxy.secrets.finder import Finder
from hookproxy.session.approval_details import ApprovalDetails
from hookproxy.session.hidden_secrets import HiddenSecrets
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, Rig, rig, stub, stub_group

TOKEN: Final = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
VALUE: Final = 'Kd83&xQ/+2.mT"uw\\zé'
SETTINGS: Final = SecretSettings(
    off=(SecretsOff("raw_*"),),
    restore=(SecretsRestore("push", "*", ("github-*",)), SecretsRestore("elsewhere", "other")),
)
FINDER: Final = Finder(SETTINGS, {"MY_KEY": VALUE.encode()})
WORD: Final = "x9Qw72Lk0zVb31TyMnA4"
"""A secret that only the word before it tells."""
PLACEHOLDER: Final = re.compile(r"\{\{secret:[\w.-]+:[0-9a-f]{8}\}\}")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def hidden(
    server: str = "files", shared: SharedSecrets | None = None, settings: SecretSettings = SETTINGS
) -> HiddenSecrets:
    return HiddenSecrets(settings, FINDER, server, shared)


def request(method: str, params: object, number: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def call(tool: str, arguments: object, number: int = 1) -> bytes:
    return request("tools/call", {"name": tool, "arguments": arguments}, number)


def response(result: object, number: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


def text(*texts: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": item} for item in texts], **more}


async def ask(one: Rig, line: bytes, answer: bytes) -> bytes:
    """Send a request, answer it, and return what the agent gets."""
    await one.agent.send(line)
    await one.server.line()
    await one.server.send(answer)
    return await one.agent.line()


async def placeholder_of(one: Rig, value: str = TOKEN) -> str:
    """The placeholder by which the agent knows a value."""
    line = await ask(one, call("read", {}, 77), response(text(value), 77))
    placeholder: str = PLACEHOLDER.findall(line.decode())[0]
    return placeholder


async def test_a_message_without_a_secret_passes_byte_for_byte() -> None:
    odd = b'{ "id":1 ,"jsonrpc":"2.0","result":{"content":[{"text":"\\u0041\\/ 1.50 \\n","type":"text"}],"x":1e2 } }\n'
    async with rig(secrets=hidden()) as one:
        assert await ask(one, call("read", {}), odd) == odd


@pytest.mark.parametrize(
    "result",
    [
        text(f"token {TOKEN}"),
        text("mirrored", structuredContent={"token": TOKEN, TOKEN: 1}),
        text(json.dumps({"token": TOKEN})),
        text(json.dumps(json.dumps({"token": VALUE}))),
        text(f"half {TOKEN[:20]}", f"{TOKEN[20:]} half"),
        {"contents": [{"uri": f"https://{TOKEN}@example.com/x", "text": f"x {TOKEN}"}]},
        {"contents": [{"uri": "file:///x", "blob": base64.b64encode(f"key={TOKEN}\n".encode()).decode()}]},
        {"messages": [{"role": "user", "content": {"type": "text", "text": VALUE}}]},
        {"completion": {"values": [TOKEN]}},
        {"contents": [{"uri": "a:b", "blob": base64.b64encode(f"# caf\xe9\n{TOKEN}".encode("latin-1")).decode()}]},
        text(TOKEN[:9], TOKEN[9:24], TOKEN[24:], structuredContent={"result": [TOKEN[:9], TOKEN[9:24], TOKEN[24:]]}),
        {"content": [{"type": "resource_link", "uri": f"x://{TOKEN}", "name": TOKEN}]},
        {"tools": [{"name": "x", "description": f"use {TOKEN}", "inputSchema": {"type": "object"}}]},
        {"instructions": f"use {VALUE}"},
    ],
)
async def test_no_part_of_a_result_has_the_secret(result: dict[str, object]) -> None:
    async with rig(secrets=hidden()) as one:
        line = await ask(one, request("x/y", {}), response(result))
    decoded = line.decode().replace('\\"', '"').replace("\\\\", "\\")
    blobs = b"".join(base64.b64decode(blob) for blob in re.findall(r'"blob": "([^"]*)"', line.decode()))
    assert TOKEN not in decoded
    assert VALUE not in decoded
    assert TOKEN.encode() not in blobs
    assert "aB3dE6gH9jK2mN5p" not in decoded
    assert "8sT1vW4yZ7bC0eF3hI6" not in decoded
    assert "{{secret:" in decoded or b"{{secret:" in blobs
    json.loads(line)


@pytest.mark.parametrize(
    "line",
    [
        {"id": 1, "error": {"code": -32000, "message": f"bad {TOKEN}", "data": {"header": TOKEN}}},
        {"method": "notifications/message", "params": {"level": "info", "data": f"log {TOKEN}"}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1, "message": TOKEN}},
        {"method": "notifications/resources/updated", "params": {"uri": f"x://{TOKEN}"}},
        {"id": "s", "method": "sampling/createMessage", "params": {"systemPrompt": TOKEN, "messages": []}},
        {"id": "s", "method": "elicitation/create", "params": {"message": TOKEN, "requestedSchema": {}}},
    ],
)
async def test_errors_notifications_and_requests_of_the_server_are_masked(line: dict[str, object]) -> None:
    async with rig(secrets=hidden()) as one:
        await one.agent.send(request("x/y", {}))
        await one.server.line()
        await one.server.send(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
        got = await one.agent.message()
    assert TOKEN not in json.dumps(got)
    assert "{{secret:github-pat:" in json.dumps(got)
    assert got.get("id") == line.get("id")
    assert got.get("method") == line.get("method")


@pytest.mark.parametrize(
    "line",
    [
        {"method": f"notifications/{TOKEN}"},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": TOKEN, "total": [TOKEN]}},
        {"method": "notifications/message", "jsonrpc": TOKEN, "params": {}},
        {"id": 1, "error": {"code": [TOKEN], "message": "x"}},
    ],
)
async def test_no_member_hides_a_secret_in_what_it_cannot_be(line: dict[str, object]) -> None:
    async with rig(secrets=hidden()) as one:
        await one.agent.send(request("x/y", {}))
        await one.server.line()
        await one.server.deliver(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" + response({}))
        assert TOKEN.encode() not in await one.agent.line()


async def test_the_same_value_has_one_placeholder_in_a_session_and_another_one_in_the_next() -> None:
    seen = []
    for _ in range(2):
        async with rig(secrets=hidden()) as one:
            line = await ask(
                one, call("read", {}), response(text(json.dumps({"t": TOKEN}), structuredContent={"t": TOKEN}))
            )
            assert len(set(PLACEHOLDER.findall(line.decode()))) == 1
            seen.append(PLACEHOLDER.findall(line.decode())[0])
    assert seen[0] != seen[1]


async def test_a_placeholder_becomes_the_value_only_for_a_tool_that_may_have_it() -> None:
    async with rig(secrets=hidden()) as one:
        known = await placeholder_of(one)
        nested = {"a": f"Bearer {known}", "b": json.dumps({"c": known}), known: [known]}
        await one.agent.send(call("push", nested, 2))
        restored = json.loads(await one.server.line())["params"]["arguments"]
        assert restored == {"a": f"Bearer {TOKEN}", "b": json.dumps({"c": TOKEN}), TOKEN: [TOKEN]}
        for tool in ("fetch", "elsewhere", "Push"):
            line = call(tool, nested, 3 + len(tool))
            await one.agent.send(line)
            assert await one.server.line() == line


async def test_a_placeholder_of_another_rule_or_of_nobody_stays() -> None:
    async with rig(secrets=hidden()) as one:
        other = await placeholder_of(one, VALUE)
        line = call("push", {"a": other, "b": "{{secret:github-pat:00000000}}", "c": "{{secret:"}, 2)
        await one.agent.send(line)
        assert await one.server.line() == line


async def test_a_restored_value_is_spelled_as_its_place_needs_it() -> None:
    settings = SecretSettings(restore=(SecretsRestore("push"),))
    async with rig(secrets=hidden(settings=settings)) as one:
        known = await placeholder_of(one, VALUE)
        arguments = {"a": known, "b": json.dumps({"c": json.dumps([known])}), "d": '{"open' + known}
        await one.agent.send(call("push", arguments, 2))
        sent = json.loads(await one.server.line())["params"]["arguments"]
    assert (sent["a"], sent["d"]) == (VALUE, '{"open' + VALUE)
    assert json.loads(json.loads(sent["b"])["c"]) == [VALUE]


async def test_what_a_tool_echoes_is_masked_again() -> None:
    async with rig(secrets=hidden()) as one:
        known = await placeholder_of(one)
        await one.agent.send(call("push", {"a": known}, 2))
        await one.server.line()
        await one.server.send(response(text(f"sent {TOKEN}"), 2))
        assert (await one.agent.message())["result"] == text(f"sent {known}")


async def test_a_tool_that_encodes_what_it_got_shows_nothing_either() -> None:
    word = WORD
    settings = SecretSettings(restore=(SecretsRestore("push"),))
    async with rig(secrets=hidden(settings=settings)) as one:
        line = await ask(one, call("read", {}, 77), response(text(f'api_key = "{word}"'), 77))
        known = PLACEHOLDER.findall(line.decode())[0]
        await one.agent.send(call("push", {"a": known}, 2))
        assert word.encode() in await one.server.line()
        encoded = [word, word.encode().hex(), base64.b64encode(b"x" + word.encode()).decode(), f"%78{word[1:]}"]
        await one.server.send(response(text(*encoded), 2))
        got = (await one.agent.line()).decode()
    assert not any(item[3:-3] in got for item in encoded)


async def test_results_of_a_tool_that_is_off_are_not_looked_at() -> None:
    async with rig(secrets=hidden()) as one:
        answer = response(text(TOKEN), 5)
        assert await ask(one, call("raw_read", {}, 5), answer) == answer


@pytest.mark.parametrize("again", [request("resources/read", {"uri": "a:b"}, 5), call("read", {}, 5)])
async def test_an_id_that_is_used_again_is_not_that_of_a_tool_that_is_off(again: bytes) -> None:
    async with rig(secrets=hidden()) as one:
        await ask(one, call("raw_read", {}, 5), response(text("x"), 5))
        assert TOKEN.encode() not in await ask(one, again, response(text(TOKEN), 5))


async def test_more_values_than_are_known_in_every_spelling_are_found_as_they_are() -> None:
    words = [f"x9Qw{number:02}Lk0zVb31TyMnA4" for number in range(70)]
    settings = SecretSettings(restore=(SecretsRestore("push"),))
    async with rig(secrets=hidden(settings=settings)) as one:
        listed = await ask(one, call("read", {}, 77), response(text(*(f'api_key = "{word}"' for word in words)), 77))
        known = PLACEHOLDER.findall(listed.decode())
        assert len(known) == len(words)
        await one.agent.send(call("push", {"a": known}, 2))
        await one.server.line()
        await one.server.send(response(text(*words, structuredContent={"all": words}), 2))
        got = await one.agent.message()
    assert got["result"] == text(*known, structuredContent={"all": known})


async def test_a_value_that_a_tool_has_got_is_known_after_a_reload() -> None:
    settings = SecretSettings(restore=(SecretsRestore("push"),))
    secrets = hidden(settings=settings)
    async with rig(secrets=secrets) as one:
        known = await placeholder_of(one, f'api_key = "{WORD}"')
        await one.agent.send(call("push", {"a": known}, 2))
        assert WORD.encode() in await one.server.line()
        secrets.use(settings, FINDER)
        await one.server.send(response(text(WORD, WORD.encode().hex()), 2))
        assert (await one.agent.message())["result"]["content"][0] == {"type": "text", "text": known}


@pytest.mark.parametrize(
    ("written", "undone"),
    [
        (str.upper, ".lower()"),
        (lambda text: text.replace("secret", "sec~ret"), ".replace('~', '')"),
        (lambda text: text.replace("{", "%7B"), ".replace('%7B', '{')"),
    ],
)
@pytest.mark.parametrize("sees_values", [False, True])
async def test_what_a_hook_makes_a_placeholder_of_stays_one(
    written: Callable[[str], str], undone: str, sees_values: bool
) -> None:
    program = "import json,sys; b=json.load(sys.stdin)['arguments']['b']; "
    program += f"print(json.dumps(dict(arguments=dict(b=b{undone}))))"
    pre = replace(stub(Event.PRE_TOOL_USE, f'python3 -c "{program}"'), sees_values=sees_values)
    async with rig(stub_group(pre), secrets=hidden()) as one:
        listed = await ask(one, request("resources/read", {"uri": "a:b"}, 77), response(text(TOKEN), 77))
        known = PLACEHOLDER.findall(listed.decode())[0]
        await one.agent.send(call("fetch", {"b": written(known)}, 2))
        assert json.loads(await one.server.line())["params"]["arguments"] == {"b": known}


@pytest.mark.slow
async def test_a_value_that_a_hook_has_seen_is_masked_in_what_it_prints_and_in_records(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    settings = Settings(
        audit_file=str(audit), audit_arguments=Arguments.FULL, audit_results=Results.FULL, audit_all_calls=True
    )
    program = "import json,re,sys; w=re.findall('x9Qw.{16}', sys.stdin.read()); print(w, file=sys.stderr); "
    program += "print(json.dumps({'feedback': w}))"
    hooks = [
        replace(stub(event, f'python3 -c "{program}"'), sees_values=True)
        for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE)
    ]
    async with rig(stub_group(*hooks), settings=settings, secrets=hidden()) as one:
        line = await ask(one, request("resources/read", {"uri": "a:b"}), response(text(f'api_key = "{WORD}"')))
        known = PLACEHOLDER.findall(line.decode())[0]
        line = await ask(one, call("read", {"x": known}, 2), response(text(f'api_key = "{WORD}"'), 2))
        one.proxy.policy.audit.flush()
    for kept in (line.decode(), audit.read_text()):
        assert WORD not in kept
        assert known in kept
    assert WORD not in "".join(one.reports)


async def test_hooks_get_placeholders_and_what_they_print_is_masked(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    pre = stub(Event.PRE_TOOL_USE, f'cat >> {seen}; printf \'%s\' \'{{"reason": "{TOKEN}", "permission": "deny"}}\'')
    async with rig(stub_group(pre), secrets=hidden()) as one:
        await one.agent.send(call("push", {"a": TOKEN}, 2))
        refusal = await one.agent.line()
    assert TOKEN not in seen.read_text()
    assert "{{secret:github-pat:" in seen.read_text()
    assert TOKEN.encode() not in refusal
    assert b"{{secret:github-pat:" in refusal


async def test_the_server_gets_what_agent_and_hooks_write_themselves() -> None:
    pre = stub(Event.PRE_TOOL_USE, arguments={"own": TOKEN, "n": 1})
    async with rig(stub_group(pre), secrets=hidden()) as one:
        await one.agent.send(call("fetch", {"a": 1}, 2))
        assert json.loads(await one.server.line())["params"]["arguments"] == {"own": TOKEN, "n": 1}
    async with rig(secrets=hidden()) as one:
        line = call("fetch", {"a": TOKEN}, 2)
        await one.agent.send(line)
        assert await one.server.line() == line


@pytest.mark.slow
async def test_a_rewrite_keeps_what_the_agent_wrote_and_restores_no_placeholder() -> None:
    program = "import json,sys; a=json.load(sys.stdin)['arguments']; print(json.dumps({'arguments': {**a, 'more': 1}}))"
    for sees_values in (False, True):
        pre = replace(stub(Event.PRE_TOOL_USE, f'python3 -c "{program}"'), sees_values=sees_values)
        async with rig(stub_group(pre), secrets=hidden()) as one:
            await one.agent.send(call("read", {}, 77))
            await one.server.line()
            await one.server.send(response(text(TOKEN), 77))
            known = PLACEHOLDER.findall((await one.agent.line()).decode())[0]
            await one.agent.send(call("fetch", {"a": VALUE, "b": known}, 2))
            assert json.loads(await one.server.line())["params"]["arguments"] == {"a": VALUE, "b": known, "more": 1}


async def test_a_hook_that_may_sees_values(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    hooks = [
        replace(stub(event, f"cat >> {seen}; echo '{{}}'"), sees_values=True)
        for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE)
    ]
    async with rig(stub_group(*hooks), secrets=hidden()) as one:
        line = await ask(one, call("read", {}), response(text(TOKEN)))
        known = PLACEHOLDER.findall(line.decode())[0]
        assert TOKEN in seen.read_text()
        seen.write_text("")
        await ask(one, call("push", {"a": known}, 2), response(text("ok"), 2))
        assert json.loads(seen.read_text().splitlines()[0])["arguments"] == {"a": TOKEN}


async def test_nothing_unmasked_is_in_the_audit_or_reported(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    settings = Settings(
        audit_file=str(audit), audit_arguments=Arguments.FULL, audit_results=Results.FULL, audit_all_calls=True
    )
    hooks = (
        replace(stub(Event.PRE_TOOL_USE, f"echo {TOKEN} >&2; cat >/dev/null; echo '{{}}'"), sees_values=True),
        stub(Event.POST_TOOL_USE, feedback=[f"see {TOKEN}"]),
    )
    async with rig(stub_group(*hooks), settings=settings, secrets=hidden()) as one:
        known = await placeholder_of(one)
        await ask(one, call("push", {"a": known, "b": VALUE}, 2), response(text(f"sent {TOKEN} {VALUE}"), 2))
        await one.agent.send(
            b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x","name":"%b"}}\n' % TOKEN.encode()
        )
        await one.agent.line()
        await one.server.deliver(f"debug: {TOKEN}\n".encode())
        one.proxy.policy.audit.flush()
        kept, reports = audit.read_text(), "\n".join(one.reports)
    assert TOKEN not in kept
    assert TOKEN not in reports
    assert VALUE not in kept
    assert json.dumps(VALUE)[1:-1] not in kept
    assert len(kept.splitlines()) == 3
    assert known in kept
    assert "{{secret:MY_KEY:" in kept
    assert known in reports


async def test_a_member_that_cannot_hold_a_placeholder_is_left_out_and_a_required_one_withholds_the_result() -> None:
    def listed(required: list[str]) -> bytes:
        schema = {
            "type": "object",
            "properties": {
                "t": {"type": "string", "pattern": "^ghp_"},
                "n": {"type": "number"},
                "s": {"type": "string"},
            },
            "required": required,
        }
        tool = {"name": "read", "inputSchema": {"type": "object"}, "outputSchema": schema}
        return response({"tools": [tool]}, 50)

    answer = response(text("x", structuredContent={"n": 1, "t": TOKEN, "s": f"a {TOKEN}"}))
    async with rig(secrets=hidden()) as one:
        await ask(one, request("tools/list", {}, 50), listed(["n"]))
        result = json.loads(await ask(one, call("read", {}), answer))["result"]
        assert result["structuredContent"].keys() == {"n", "s"}
        assert TOKEN not in json.dumps(result)
    async with rig(secrets=hidden()) as one:
        await ask(one, request("tools/list", {}, 50), listed(["n", "t"]))
        result = json.loads(await ask(one, call("read", {}), answer))["result"]
        assert result["isError"]
        assert "withheld" in result["content"][0]["text"]
        assert TOKEN not in json.dumps(result)


async def test_the_server_gets_its_own_handles_back() -> None:
    async with rig(secrets=hidden()) as one:
        uri = f"https://{TOKEN}@example.com/\\u00e9"
        raw = b'{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"%b","name":"x"}],"nextCursor":"%b"}}\n'
        listed = json.loads(await ask(one, request("resources/list", {}), raw % (uri.encode(), TOKEN.encode())))[
            "result"
        ]
        shown = listed["resources"][0]["uri"]
        assert TOKEN not in json.dumps(listed)
        await one.agent.send(request("resources/read", {"uri": shown}, 2))
        assert json.loads(await one.server.line())["params"]["uri"] == json.loads(f'"{uri}"')
        await one.agent.send(request("resources/list", {"cursor": listed["nextCursor"]}, 3))
        assert json.loads(await one.server.line())["params"]["cursor"] == TOKEN
        reference = {"type": "ref/resource", "uri": shown}
        argument = {"name": "a", "value": shown}
        await one.agent.send(request("completion/complete", {"ref": reference, "argument": argument}, 7))
        sent = json.loads(await one.server.line())["params"]
        assert (sent["ref"]["uri"], sent["argument"]["value"]) == (json.loads(f'"{uri}"'), shown)
        wanted = {"resourceSubscriptions": ["x:y", shown]}
        await one.agent.send(request("subscriptions/listen", {"notifications": wanted}, 8))
        sent = json.loads(await one.server.line())["params"]
        assert sent["notifications"]["resourceSubscriptions"] == ["x:y", json.loads(f'"{uri}"')]
        line = request("resources/read", {"uri": f"evil://{listed['nextCursor']}"}, 4)
        await one.agent.send(line)
        assert await one.server.line() == line


async def test_a_lock_compares_what_the_server_says_and_the_agent_gets_placeholders(tmp_path: Path) -> None:
    tool = {"name": "read", "description": f"for example {TOKEN}", "inputSchema": {"type": "object"}}
    server = {"serverInfo": {"name": "s"}, "instructions": f"use {TOKEN}", "capabilities": {}}
    described = Description(
        identity(raw_json.fields(json.dumps(server).encode())),
        {(Kind.TOOL, "read"): entry(Kind.TOOL, json.dumps(tool).encode())},
    )
    data = lock_file.text_of({SESSION.server: described}).encode()
    settings = Settings(lock=LockSettings(str(tmp_path / "hookproxy.lock"), data))
    async with rig(settings=settings, secrets=hidden()) as one:
        for method, result in (("initialize", server), ("tools/list", {"tools": [tool]})):
            line = await ask(one, request(method, {}), response(result))
            assert json.loads(PLACEHOLDER.sub(TOKEN, line.decode()))["result"] == result
            assert TOKEN.encode() not in line
        line = await ask(one, call("read", {}, 3), response(text(TOKEN), 3))
        assert TOKEN.encode() not in line
        await one.server.deliver(response({"tools": [tool]}))  # once more, unasked
        one.proxy.policy.audit.flush()
        assert TOKEN not in "\n".join(one.reports)


async def test_a_long_message_is_masked_whole() -> None:
    long = "word " * 600_000
    async with rig(secrets=hidden()) as one:
        await one.agent.send(call("read", {}))
        await one.server.line()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.server.send, response(text(f"{long}{TOKEN}{long}")))
            got = await one.agent.line()
    assert TOKEN.encode() not in got
    assert len(got) > 6_000_000


class _Guard:
    """What several runs of a session share."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.away = False

    async def key(self) -> bytes:
        if self.away:
            raise StoreUnavailable("it has ended")
        return b"k" * 32

    async def keep(self, values: Mapping[str, str]) -> None:
        if self.away:
            raise StoreUnavailable("it has ended")
        self.values.update(values)

    async def value_of(self, placeholder: str) -> str | None:
        await anyio.lowlevel.checkpoint()
        return self.values.get(placeholder)


async def test_what_one_server_gave_is_restored_at_another_one_of_the_session() -> None:
    guard = _Guard()
    async with rig(secrets=hidden("a", guard)) as first, rig(secrets=hidden("b", guard)) as second:
        known = await placeholder_of(first)
        await first.proxy.secrets.publish()  # type: ignore[union-attr]  # it is there
        await second.agent.send(call("push", {"a": known}, 2), call("push", {"a": "b"}, 3))
        assert json.loads(await second.server.line())["params"]["arguments"] == {"a": TOKEN}
        assert json.loads(await second.server.line())["id"] == 3
        await second.server.send(response(text(f"sent {TOKEN}"), 2))
        assert (await second.agent.message())["result"] == text(f"sent {known}")


async def test_without_the_guard_a_run_has_a_key_of_its_own_and_tells_what_it_has_hidden_once_there_is_one() -> None:
    guard = _Guard()
    guard.away = True
    async with rig(secrets=hidden("a", guard)) as one, rig(secrets=hidden("b", guard)) as other:
        known = await placeholder_of(one)
        assert guard.values == {}
        guard.away = False
        await placeholder_of(one, VALUE)
        await one.proxy.secrets.publish()  # type: ignore[union-attr]  # it is there
        assert guard.values[known] == TOKEN
        await other.agent.send(call("push", {"a": known}, 2))
        assert json.loads(await other.server.line())["params"]["arguments"] == {"a": TOKEN}
        await other.server.send(response(text(TOKEN), 2))
        assert (await other.agent.message())["result"] == text(known), "also under another key"


async def test_what_hooks_write_themselves_is_meant_and_what_was_a_placeholder_stays_one() -> None:
    secrets = hidden()
    placeholder = secrets.masks.text(TOKEN)
    asked = Elicitation(f"the token {placeholder}?")
    context = EventContext(Event.ELICITATION, SESSION, elicitation=asked, meta=json.dumps({"t": placeholder}).encode())
    printed = json.dumps({"given": TOKEN, "own": VALUE}).encode()
    masked = secrets.masks.json(printed)
    verdict = Verdict(arguments=masked, meta=masked, content=masked)
    meant = secrets.as_meant(verdict, context, context, printed, masked)
    assert meant.arguments is not None
    assert json.loads(meant.arguments) == {"given": TOKEN, "own": VALUE}, "no argument was a placeholder"
    for raw in (meant.meta, meant.content):
        assert raw is not None
        assert json.loads(raw) == {"given": placeholder, "own": VALUE}
    assert secrets.as_meant(verdict, context, context, masked, masked) == verdict, "the hook has written placeholders"
    started = EventContext(Event.SESSION_START, SESSION)
    for text_of, meant_text in ((TOKEN, TOKEN), (placeholder, placeholder)):
        verdict = Verdict(variables=(("TOKEN", f"x {placeholder}"),))
        raw_output = f"TOKEN=x {text_of}".encode()
        masked = secrets.masks.raw_text(raw_output)
        variables = secrets.as_meant(verdict, started, started, raw_output, masked).variables
        assert variables == (("TOKEN", f"x {meant_text}"),)


async def test_hooks_get_placeholders_for_what_a_person_has_answered_and_messages() -> None:
    secrets = hidden()
    content = json.dumps({"pin": VALUE}).encode()
    asked = EventContext(
        Event.ELICITATION_RESULT, SESSION, elicitation=Elicitation("?", content=content), message=f"see {TOKEN}"
    )
    for sees_values in (False, True):
        spec = replace(stub(Event.ELICITATION_RESULT), sees_values=sees_values)
        seen = secrets.context_for(spec, asked)
        assert seen.elicitation is not None
        assert seen.elicitation.content is not None
        assert (json.loads(seen.elicitation.content) == {"pin": VALUE}) is sees_values
        assert (TOKEN in seen.message) is sees_values


async def test_whoever_approves_a_call_sees_no_secret_in_it() -> None:
    async with rig(secrets=hidden()) as one:
        request = ApprovalRequest("a rule", f"because of {TOKEN}")
        details = ApprovalDetails("files", f"run {TOKEN}", raw_json.encode({TOKEN: VALUE}), request, f"run_{TOKEN}(*)")
        shown = one.proxy.calls.approvals.shown(details)
        assert TOKEN not in f"{shown.message}{shown.waiting(1.0, masked=False)}{shown.document}"
        assert shown.own_arguments == details.arguments
