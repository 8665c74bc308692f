"""The server's requests that rules, limits and hooks of calls name: what is refused is never shown to the agent."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import OnAsk, OnFailure, RootsRule, Settings
from tests.session.test_approval import handshake
from tests.support.proxy_rig import DIRECT_LOOP, Rig, group, hook, rig

pytestmark = pytest.mark.anyio

PING: Final = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'
SAMPLE: Final = b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}\n'
ELICIT: Final = b'{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{"message":"Token?"}}\n'
ROOTS: Final = b'{"jsonrpc":"2.0","id":9,"method":"roots/list"}\n'
SAMPLED: Final = (
    b'{"jsonrpc":"2.0", "id":7,"result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}}\n'
)
GIVEN: Final = b'{"jsonrpc":"2.0","id":9,"result":{"roots":[{"uri":"file:///a"}]}}\n'
ACCEPTED: Final = b'{"jsonrpc":"2.0","id":8,"result":{"action":"accept","content":{"x":"1"}}}\n'

FORMS: Final[dict[bytes, dict[str, Any]]] = {
    SAMPLE: {"error": {"code": -1, "message": "User rejected sampling request"}},
    ELICIT: {"result": {"action": "decline"}},
    ROOTS: {"result": {"roots": []}},
}
ANSWERS: Final = {SAMPLE: SAMPLED, ELICIT: ACCEPTED, ROOTS: GIVEN}
METHODS: Final = {SAMPLE: "sampling/createMessage", ELICIT: "elicitation/create", ROOTS: "roots/list"}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def prints(output: dict[str, object], event: Event, matcher: str) -> HookSpec:
    name = {"hookEventName": str(event), **output}
    return hook(f"echo {shlex.quote(json.dumps({'hookSpecificOutput': name}))}", event, matcher)


def body(line: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(line)
    return {key: value for key, value in message.items() if key in ("result", "error")}


async def nothing_for_agent(run: Rig) -> None:
    await run.server.send(PING)
    assert await run.agent.line() == PING


async def records(run: Rig, audit: Path) -> list[dict[str, Any]]:
    await run.finish()
    return written(audit)


def written(audit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit.read_text().splitlines()]


# --- rules ---


@pytest.mark.parametrize("request_line", FORMS)
@pytest.mark.parametrize("rule", ["own", "*/*", "escaped"])
async def test_a_denied_request_is_never_shown_and_the_server_gets_the_methods_own_refusal(
    request_line: bytes, rule: str, tmp_path: Path
) -> None:
    pattern = "*/*" if rule == "*/*" else METHODS[request_line]
    sent = (
        request_line.replace(b"/", b"\\/").replace(b'"method"', b'"m\\u0065thod"')
        if rule == "escaped"
        else request_line
    )
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=Settings(deny=(pattern,), audit_file=str(audit))) as run:
        await run.server.send(sent)
        answer = await run.server.line()
        assert body(answer) == FORMS[request_line]
        assert json.loads(answer)["id"] == json.loads(request_line)["id"]
        await nothing_for_agent(run)
        (record,) = await records(run, audit)
    assert (record["tool"], record["decision"], record["by"]) == (METHODS[request_line], "deny", pattern)


async def test_a_request_behind_what_is_not_json_is_judged_as_the_request(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=Settings(deny=("sampling/*",), audit_file=str(audit))) as run:
        await run.server.send(b"\v" + SAMPLE)
        assert body(await run.server.line()) == FORMS[SAMPLE]
        (record,) = await records(run, audit)
    assert record["decision"] == "deny"


@pytest.mark.parametrize("depth", [70, 500, 3000, 60_000])
@pytest.mark.parametrize(
    "form", [b'{"jsonrpc":"2.0","id":7,"method":"%b","params":%b}', b'{"method":"%b","params":%b,"id":7}']
)
@pytest.mark.parametrize("request_line", FORMS)
async def test_a_request_that_is_nested_too_deep_gets_an_error(request_line: bytes, form: bytes, depth: int) -> None:
    params = b'{"messages":' + b"[" * depth + b"]" * depth + b"}"
    async with rig(settings=Settings(deny=("*/*",))) as run:
        await run.server.send(form % (METHODS[request_line].encode(), params) + b"\n")
        answer = json.loads(await run.server.line())
        assert (answer["id"], answer["error"]["code"]) == (7, -32602)
        assert "nested" in answer["error"]["message"]
        await nothing_for_agent(run)
        assert any("nested" in line for line in run.reports)


async def test_a_request_too_deep_under_the_id_of_another_one_gets_no_answer_that_may_be_for_that() -> None:
    async with rig(settings=Settings(ask=("*/*",))) as run:
        await handshake(run)
        await run.server.send(ROOTS)
        asked = await run.agent.message()
        deep = b"[" * 3000 + b"]" * 3000
        await run.server.send(b'{"jsonrpc":"2.0","id":9,"method":"roots/list","params":%b}\n' % deep)
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        await run.agent.send(json.dumps(answer).encode() + b"\n")
        assert body(await run.server.line()) == FORMS[ROOTS]
        assert any("some readers take" in line for line in run.reports)


async def test_a_session_ends_while_the_person_is_asked_about_a_request(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=Settings(ask=("*/*",), audit_file=str(audit))) as run:
        await handshake(run)
        await run.server.send(SAMPLE)
        asked = await run.agent.message()
        assert asked["method"] == "elicitation/create"
        run.proxy.calls.end_waiting("The session has ended")
        assert body(await run.server.line()) == FORMS[SAMPLE]
        await run.finish()
    (record,) = written(audit)
    assert (record["tool"], record["decision"]) == ("sampling/createMessage", "asked-deny")


@pytest.mark.parametrize("pattern", ["*", "sampling*", "Read", "sampling/other", "prompts/*"])
async def test_a_rule_that_names_no_such_method_is_not_about_it(pattern: str) -> None:
    async with rig(settings=Settings(deny=(pattern,))) as run:
        for request_line, answer in ANSWERS.items():
            await run.server.send(request_line)
            assert await run.agent.line() == request_line
            await run.agent.send(answer)
            assert await run.server.line() == answer


@pytest.mark.parametrize(("on_ask", "passes"), [(OnAsk.ALLOW, True), (OnAsk.DENY, False)])
async def test_an_ask_rule_asks_and_without_an_answer_nothing_passes(on_ask: OnAsk, passes: bool) -> None:
    async with rig(settings=Settings(ask=("*/*",), on_ask=on_ask)) as run:
        await run.server.send(SAMPLE)
        if passes:
            assert await run.agent.line() == SAMPLE
            await run.agent.send(SAMPLED)
            assert await run.server.line() == SAMPLED
        else:
            assert body(await run.server.line()) == FORMS[SAMPLE]


async def test_a_person_who_cannot_be_asked_cancels_an_elicitation() -> None:
    async with rig(settings=Settings(ask=("elicitation/create",))) as run:
        await run.server.send(ELICIT)
        assert body(await run.server.line()) == {"result": {"action": "cancel"}}


async def test_a_rate_limit_counts_requests_of_the_server() -> None:
    limit = Limit("sampling/*", 1, Per.HOUR, "limits[0]")
    async with rig(settings=Settings(limits=(limit,))) as run:
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED
        await run.server.send(SAMPLE)
        assert body(await run.server.line()) == FORMS[SAMPLE]
        await nothing_for_agent(run)


async def test_all_calls_are_audited_means_all_requests_of_the_server_too(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=Settings(audit_all_calls=True, audit_file=str(audit))) as run:
        for request_line, answer in ANSWERS.items():
            await run.server.send(request_line)
            assert await run.agent.line() == request_line
            await run.agent.send(answer)
            assert await run.server.line() == answer
        lines = await records(run, audit)
    assert [(line["tool"], line["decision"], line["result"]) for line in lines] == [
        (method, "allow", "ok") for method in METHODS.values()
    ]
    assert lines[0]["arguments"] == {"messages": [], "maxTokens": 5}


# --- hooks ---


async def test_a_hook_denies_and_another_rewrites_only_what_it_changes() -> None:
    rewrite = prints({"updatedInput": {"messages": [], "maxTokens": 1}}, Event.PRE_TOOL_USE, "sampling/createMessage")
    deny = hook("echo no >&2; exit 2", Event.PRE_TOOL_USE, "elicitation/.*")
    spaced = SAMPLE.replace(b'"params":{', b'"params" : { "_meta":{"a":1.0}, ')
    async with rig(group(rewrite, deny)) as run:
        await run.server.send(spaced)
        assert await run.agent.line() == spaced.replace(b'"maxTokens":5', b'"maxTokens":1')
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED
        await run.server.send(ELICIT)
        assert body(await run.server.line()) == FORMS[ELICIT]
        await run.server.send(ROOTS)
        assert await run.agent.line() == ROOTS


async def test_hooks_see_params_and_the_answer_under_the_methods_name(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    events = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
    hooks = [hook(f"cat >>{seen}; echo >>{seen}", event, "sampling/createMessage") for event in events]
    async with rig(group(*hooks)) as run:
        await run.server.send(SAMPLE)
        await run.agent.line()
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED
        await run.server.send(SAMPLE)
        await run.agent.line()
        failed = b'{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}\n'
        await run.agent.send(failed)
        assert await run.server.line() == failed
    documents = [json.loads(line) for line in seen.read_text().splitlines() if line]
    assert [one["hook_event_name"] for one in documents] == [events[0], events[1], events[0], events[2]]
    assert {one["tool_name"] for one in documents} == {"sampling/createMessage"}
    assert documents[0]["tool_input"] == {"messages": [], "maxTokens": 5}
    assert "hi" in json.dumps(documents[1]["tool_response"])
    assert "no" in documents[3]["error"]


@pytest.mark.parametrize("request_line", ANSWERS)
async def test_an_answer_that_no_hook_has_judged_reaches_no_server(request_line: bytes) -> None:
    fails = hook("exit 3", Event.POST_TOOL_USE, "*/*")
    async with rig(group(fails), settings=Settings(on_failure=OnFailure.DENY)) as run:
        await run.server.send(request_line)
        await run.agent.line()
        await run.agent.send(ANSWERS[request_line])
        assert body(await run.server.line()) == FORMS[request_line]


async def test_an_answer_is_replaced_exactly() -> None:
    new = {"roots": [{"uri": "file:///b"}]}
    replace = prints({"updatedMCPToolOutput": new}, Event.POST_TOOL_USE, "roots/list")
    text = prints({"updatedMCPToolOutput": "bye"}, Event.POST_TOOL_USE, "sampling/*")
    wrong = prints({"updatedMCPToolOutput": {"x": 1}}, Event.POST_TOOL_USE, "elicitation/create")
    async with rig(group(replace, text, wrong)) as run:
        await run.server.send(ROOTS)
        await run.agent.line()
        await run.agent.send(GIVEN)
        assert await run.server.line() == GIVEN.replace(b"/a", b"/b")
        await run.server.send(SAMPLE)
        await run.agent.line()
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED.replace(b"hi", b"bye")
        await run.server.send(ELICIT)
        await run.agent.line()
        await run.agent.send(ACCEPTED)
        assert body(await run.server.line()) == FORMS[ELICIT]


async def test_hooks_of_elicitations_run_after_the_rules_allowed_it() -> None:
    accept = prints({"action": "accept", "content": {"x": "2"}}, Event.ELICITATION, "")
    see = hook("exit 0", Event.PRE_TOOL_USE, "elicitation/create")
    async with rig(group(accept, see)) as run:
        await run.server.send(ELICIT)
        assert body(await run.server.line()) == {"result": {"action": "accept", "content": {"x": "2"}}}
        await nothing_for_agent(run)
    async with rig(group(accept), settings=Settings(deny=("elicitation/*",))) as run:
        await run.server.send(ELICIT)
        assert body(await run.server.line()) == FORMS[ELICIT]


async def test_a_rule_denies_what_the_configuration_would_answer() -> None:
    given = RootsRule((("file:///a", "a"),))
    for deny, answer in (
        (("roots/list",), FORMS[ROOTS]),
        (("x",), {"result": {"roots": [{"uri": "file:///a", "name": "a"}]}}),
    ):
        async with rig(settings=Settings(deny=deny, roots=given, audit_all_calls=True)) as run:
            await run.server.send(ROOTS)
            assert body(await run.server.line()) == answer
            await nothing_for_agent(run)


# --- hostile servers and agents ---

DENY: Final = Settings(deny=("sampling/*",))


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"id":6,"method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage\\u0000","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"Method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","id":null,"method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","id":7.5,"method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"result":{},"method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"method":"sampling/createMessage","params":{}}',
        b'[{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}]',
        b'[{"jsonrpc":"2.0","id":7,"method":"sampling\\/createMessage","params":{}},{"jsonrpc":"2.0","method":"x"}]',
    ],
)
async def test_what_some_reader_takes_for_a_denied_request_is_not_shown(line: bytes) -> None:
    async with rig(settings=DENY) as run:
        await run.agent.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        await run.server.line()
        await run.server.send(line + b"\n" + PING)
        seen = b""
        while PING not in seen:
            seen += await run.agent.line()
        assert b"sampling" not in seen


@pytest.mark.parametrize(
    "params",
    [
        b'{"messages":[],"messages":[1]}',
        b'{"Messages":[]}',
        b'{"messages":[{"a":1,"a":2}]}',
        b"[]",
        b'{"x":' + b"[" * 100 + b"]" * 100 + b"}",
    ],
)
async def test_what_hooks_would_read_otherwise_than_the_agent_is_refused(params: bytes) -> None:
    async with rig(group(hook("exit 0", Event.PRE_TOOL_USE, "sampling/*"))) as run:
        await run.server.send(b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":%b}\n' % params)
        assert json.loads(await run.server.line())["error"]["code"] in (-1, -32602)
        await nothing_for_agent(run)


async def test_a_long_request_is_judged_although_it_begins_like_a_response() -> None:
    async with rig(settings=DENY) as run:
        await run.agent.send(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
        await run.server.line()
        line = b'{"jsonrpc":"2.0","id":7,"params":{"messages":["%b"]},"method":"sampling/createMessage"}\n'
        await run.server.send(line % (b"x" * 200_000))
        assert body(await run.server.line()) == FORMS[SAMPLE]
        await run.server.send(b'{"jsonrpc":"2.0","id":7,"result":{}}\n')
        assert json.loads(await run.agent.line()) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize("same", [b"7", b'"7"', b"7.0"])
async def test_an_id_is_that_of_one_request_only(same: bytes) -> None:
    async with rig(group(hook("exit 0", Event.PRE_TOOL_USE, "sampling/*"))) as run:
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        for line in (SAMPLE, ELICIT.replace(b"8", b"7")):
            await run.server.send(line.replace(b'"id":7', b'"id":' + same))
        await nothing_for_agent(run)
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED


async def test_the_agent_answers_once_and_only_what_it_was_asked(tmp_path: Path) -> None:
    hold = hook("exit 0", Event.POST_TOOL_USE, "sampling/*")
    async with rig(group(hold)) as run:
        early = SAMPLED.replace(b"hi", b"early")
        await run.agent.send(early)
        assert "error" in json.loads(await run.agent.line())
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        await run.agent.send(b"[" + SAMPLED.strip() + b"]\n")
        assert "error" in json.loads(await run.agent.line())
        await run.agent.send(SAMPLED.replace(b'"id":7', b'"id":7,"method":"x"'))
        assert "error" in json.loads(await run.agent.line())
        await run.agent.send(SAMPLED + SAMPLED.replace(b"hi", b"again"))
        assert await run.server.line() == SAMPLED
        assert "error" in json.loads(await run.agent.line())
        await run.server.send(ELICIT)
        assert await run.agent.line() == ELICIT
        await run.agent.send(ACCEPTED)
        assert await run.server.line() == ACCEPTED


@pytest.mark.slow
async def test_ten_thousand_requests_at_once_end_in_as_many_answers() -> None:
    async with rig(settings=Settings(deny=("sampling/*",))) as run:
        await run.server.send(b"".join(SAMPLE.replace(b'"id":7', b'"id":%d' % number) for number in range(10_000)))
        answers = [json.loads(await run.server.line()) for _ in range(10_000)]
        assert {answer["id"] for answer in answers} == set(range(10_000))
        assert all("error" in answer for answer in answers)
        await nothing_for_agent(run)


async def test_a_request_that_the_server_withdraws_is_recorded_and_its_answer_dropped(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'
    async with rig(settings=Settings(audit_all_calls=True, audit_file=str(audit))) as run:
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        await run.server.send(cancelled)
        assert await run.agent.line() == cancelled
        await run.agent.send(SAMPLED + PING)
        assert await run.server.line() == PING
        lines = await records(run, audit)
    assert [line.get("result") or line["note"] for line in lines] == [
        "cancelled",
        "dropped the answer to a request that the server has withdrawn",
    ]


async def test_after_a_reload_without_the_rule_requests_pass_and_those_that_wait_end() -> None:
    async with rig(settings=Settings(ask=("x",), audit_all_calls=True)) as run:
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        proxy = run.proxy
        proxy.change_policy(proxy.policy.hooks, Settings(), proxy.policy.audit)
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        await run.agent.send(SAMPLED + PING)
        assert await run.server.line() + await run.server.line() == SAMPLED + PING
        assert run.proxy.router.elicitations is not None
        assert not run.proxy.router.elicitations.judged


@pytest.mark.parametrize("before", [("x",), ("roots/list",)])
async def test_what_the_agent_was_asked_before_a_reload_it_may_still_answer_once(before: tuple[str, ...]) -> None:
    async with rig(settings=Settings(deny=before)) as run:
        await run.server.send(SAMPLE)
        assert await run.agent.line() == SAMPLE
        settings = Settings(deny=("sampling/*",))
        run.proxy.change_policy(Hooks((), settings, "files", {}), settings, run.proxy.policy.audit)
        await run.agent.send(SAMPLED)
        assert await run.server.line() == SAMPLED
        await run.agent.send(SAMPLED)
        assert "answers no request" in (await run.agent.message())["error"]["message"]
        await run.server.send(SAMPLE)
        assert body(await run.server.line()) == FORMS[SAMPLE]
