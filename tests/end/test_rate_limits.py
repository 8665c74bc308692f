"""How many calls a run lets through, and what the model and the audit file get."""

from __future__ import annotations

import json
import re

import pytest

from tests.end.agent import INITIALIZED, STATELESS, Agent, Json, Scene, call, request, text_of

pytestmark = pytest.mark.anyio


def limits(*each: tuple[str, int, str], more: str = "") -> str:
    tables = "".join(f'[[limits]]\ntool = "{tool}"\ncalls = {calls}\nper = "{per}"\n' for tool, calls, per in each)
    return tables + '[audit]\nfile = "audit.jsonl"\n' + more


async def begun(scene: Scene, text: str) -> Agent:
    agent = scene.run("--name=lean", scene.config(text))
    await agent.initialize()
    return agent


def audited(scene: Scene, folder: str = "file1") -> list[Json]:
    return [json.loads(line) for line in (scene.folder / folder / "audit.jsonl").read_text().splitlines()]


async def test_calls_pass_up_to_the_limit_and_the_next_refusal_says_when_to_retry(scene: Scene) -> None:
    agent = await begun(scene, limits(("ec*", 2, "hour")))
    for number in (1, 2):
        assert not (await agent.ask(call(number, "echo", n=number)))["result"].get("isError")
    answer = await agent.ask(call(3, "echo"))
    assert answer["result"]["isError"] is True
    text = re.fullmatch(
        r"Blocked by limits\[0\] of hookproxy\.toml: no more than 2 calls of ec\* per hour\. The tool was not run\. "
        r"Try again in (\d+) seconds\.",
        text_of(answer),
    )
    assert text
    assert 3580 <= int(text[1]) <= 3600
    assert len(scene.calls_received()) == 2
    assert not (await agent.ask(call(4, "free")))["result"].get("isError")
    *_, line = audited(scene)
    assert (line["decision"], line["by"], line["result"]) == ("deny", "limits[0]", "refused")
    assert line["reason"] == "no more than 2 calls of ec* per hour"


async def test_concurrent_calls_do_not_get_around_a_limit(scene: Scene) -> None:
    agent = await begun(scene, limits(("echo", 5, "session")))
    await agent.send(*(call(number, "echo") for number in range(40)))
    answers = [await agent.answer(number) for number in range(40)]
    assert sum(not one["result"].get("isError") for one in answers) == 5
    assert len(scene.calls_received()) == 5


async def test_a_call_that_a_hook_or_a_rule_refuses_does_not_count(scene: Scene) -> None:
    hook = """jq -e .tool_input.bad >/dev/null && exit 2; exit 0"""
    own = f"[[hooks.PreToolUse]]\ncommand = '''{hook}'''\n[permissions]\ndeny = [\"echo(secret)\"]\n"
    agent = await begun(scene, limits(("echo", 1, "session"), more=own))
    assert "PreToolUse hook" in text_of(await agent.ask(call(1, "echo", bad=True)))
    assert "permission rule" in text_of(await agent.ask(call(2, "echo", a="secret")))
    assert not (await agent.ask(call(3, "echo", a="b")))["result"].get("isError")
    assert "limits[0]" in text_of(await agent.ask(call(4, "echo", a="b")))


async def test_an_alias_is_counted_with_the_tools_that_share_it(scene: Scene) -> None:
    aliases = '[tools.echo]\nas = "Bash"\n[tools.open]\nas = "Bash"\n'
    agent = await begun(scene, limits(("Bash", 1, "day"), more=aliases))
    assert not (await agent.ask(call(1, "echo")))["result"].get("isError")
    assert "limits[0]" in text_of(await agent.ask(call(2, "open")))


async def test_no_person_is_asked_about_a_call_that_a_limit_refuses_and_rounds_count_once(scene: Scene) -> None:
    agent = scene.run("--name=lean", scene.config(limits(("echo", 1, "session"), more='[permissions]\nask = ["echo"]')))
    meta = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    params = {"name": "echo", "arguments": {"n": 1}, "_meta": meta}
    first = (await agent.ask(request(1, "tools/call", **params)))["result"]
    other = (await agent.ask(request(2, "tools/call", **params)))["result"]
    yes = {name: {"action": "accept", "content": {"decision": "allow once"}} for name in first["inputRequests"]}

    async def goes_on(number: int, result: Json) -> Json:
        state = result["requestState"]
        return await agent.ask(request(number, "tools/call", **params, inputResponses=yes, requestState=state))

    assert json.loads(text_of(await goes_on(3, first))) == {"n": 1}
    assert "limits[0]" in text_of(await goes_on(4, other))  # both were asked before either ran
    third = await agent.ask(request(5, "tools/call", **params))
    assert "limits[0]" in text_of(third)
    assert len(scene.calls_received()) == 1
    assert [line["decision"] for line in audited(scene)] == ["asked", "asked", "asked-allow", "asked-deny", "deny"]


async def test_a_repeated_call_counts_once(scene: Scene) -> None:
    retry = scene.prints({"retry": True})
    hooks = {"hooks": {"PostToolUse": [{"command": retry, "timeout": 9000, "name": "again"}]}}
    file = scene.file("hooks.json", json.dumps(hooks))
    text = limits(("echo", 1, "session"), more=f'[[use]]\nfile = "{file}"\ndialect = "code-assist"\nmax_retries = 3\n')
    agent = await begun(scene, text)
    assert not (await agent.ask(call(1, "echo")))["result"].get("isError")
    assert len(scene.calls_received()) == 4
    assert "limits[0]" in text_of(await agent.ask(call(2, "echo")))


async def test_what_a_limit_refuses_is_a_tools_call_in_any_spelling(scene: Scene) -> None:
    agent = await begun(scene, limits(("echo", 1, "session")))
    await agent.ask(call(1, "echo"))
    await agent.send(b'{"jsonrpc":"2.0","id":2,"method":"tools\\/call","params":{"name":"\\u0065cho"}}\n')
    assert "limits[0]" in text_of(await agent.answer(2))
    await agent.send(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"Echo"}}\n')
    assert "limits[0]" in text_of(await agent.answer(3))  # a server may read it as the same name


async def test_a_call_without_a_limit_passes_as_it_came(scene: Scene) -> None:
    agent = await begun(scene, limits(("other", 1, "second")))
    odd = b'{ "id" : 1, "method":"tools/call","jsonrpc":"2.0","params":{"arguments":{"n":1.0e0},"name":"echo"}}'
    await agent.send(odd + b"\n")
    await agent.answer(1)
    assert odd in scene.received()


# --- loops and budgets ---

LOOP = '[[limits]]\nsame = 2\nwindow = "10m"\n[audit]\nfile = "audit.jsonl"\n'


async def test_an_agent_in_a_loop_is_stopped_and_reads_what_to_do(scene: Scene) -> None:
    agent = await begun(scene, LOOP)
    for number in (1, 2):
        assert not (await agent.ask(call(number, "echo", a=1, b=2)))["result"].get("isError")
    answer = text_of(await agent.ask(call(3, "echo", b=2, a=1)))
    assert answer.startswith("Blocked by limits[0] of hookproxy.toml: no more than 2 times the same call within 10 m")
    assert "change your approach" in answer
    assert not (await agent.ask(call(4, "echo", a=1, b=3)))["result"].get("isError")
    assert not (await agent.ask(call(5, "free", a=1, b=2)))["result"].get("isError")
    assert [line["decision"] for line in audited(scene)] == ["allow", "allow", "deny", "allow", "allow"]


async def test_concurrent_same_calls_do_not_get_around_the_limit(scene: Scene) -> None:
    agent = await begun(scene, LOOP)
    await agent.send(*(call(number, "echo", n=1) for number in range(20)))
    answers = [await agent.answer(number) for number in range(20)]
    assert sum(not one["result"].get("isError") for one in answers) == 2


async def test_the_bytes_of_results_and_the_seconds_of_calls_count_after_the_call(scene: Scene) -> None:
    config = (
        '[[limits]]\ntool = "echo"\nresult_bytes = "300B"\nper = "hour"\n[[limits]]\ntool = "free"\nseconds = 1e-9\n'
    )
    agent = await begun(scene, config)
    assert not (await agent.ask(call(1, "echo", text="x" * 400)))["result"].get("isError")
    refused = text_of(await agent.ask(call(2, "echo")))
    assert "no more than 300 B of results of echo per hour" in refused
    assert not (await agent.ask(call(3, "free")))["result"].get("isError")
    refused = text_of(await agent.ask(call(4, "free")))
    assert "seconds of calls of free per session. The tool was not run. Do not try again in this session." in refused


def asking(then: str = "ask") -> str:
    return f'[[limits]]\ntool = "echo"\ncalls = 1\nthen = "{then}"\n[audit]\nfile = "audit.jsonl"\n'


async def with_forms(scene: Scene, config: str) -> Agent:
    agent = scene.run("--name=lean", scene.config(config))
    who = {"name": "lean-agent", "version": "1"}
    elicits: Json = {"elicitation": {}}
    hello = request("init", "initialize", protocolVersion="2025-11-25", capabilities=elicits, clientInfo=who)
    await agent.ask(hello)
    await agent.send(INITIALIZED)
    return agent


def answer_to(question: Json, decision: str) -> Json:
    result = {"action": "accept", "content": {"decision": decision}}
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


async def test_a_person_is_asked_about_each_call_beyond_a_limit(scene: Scene) -> None:
    agent = await with_forms(scene, asking())
    assert not (await agent.ask(call(1, "echo")))["result"].get("isError")
    for number, decision in ((2, "allow once"), (3, "deny")):
        await agent.send(call(number, "echo"))
        question = await agent.notified("elicitation/create")
        assert "limits[0] of hookproxy.toml" in question["params"]["message"]
        assert "more than 1 call of echo per session" in question["params"]["message"]
        await agent.send(answer_to(question, decision))
        assert bool((await agent.answer(number))["result"].get("isError")) is (decision == "deny")
    lines = audited(scene)
    assert [line["decision"] for line in lines] == ["allow", "asked-allow", "asked-deny"]
    (exceeds,) = lines[1]["exceeds"]
    assert exceeds.endswith(":1: limits[0]: calls")
    assert lines[2]["by"] == "limits[0] of hookproxy.toml"


async def test_a_person_may_lift_a_limit_for_the_session(scene: Scene) -> None:
    agent = await with_forms(scene, asking())
    await agent.ask(call(1, "echo"))
    await agent.send(call(2, "echo"))
    question = await agent.notified("elicitation/create")
    await agent.send(answer_to(question, "allow this tool for this session"))
    await agent.answer(2)
    assert not (await agent.ask(call(3, "echo")))["result"].get("isError")


async def test_what_is_allowed_for_a_session_because_of_a_rule_lifts_no_limit(scene: Scene) -> None:
    agent = await with_forms(scene, f'[permissions]\nask = ["echo"]\n{asking()}')
    for number in (1, 2):
        await agent.send(call(number, "echo"))
        question = await agent.notified("elicitation/create")
        assert ("limits[0]" in question["params"]["message"]) is (number == 2)
        await agent.send(answer_to(question, "allow this tool for this session"))
        await agent.answer(number)
    assert len(scene.calls_received()) == 2


async def test_an_agent_that_cannot_ask_is_refused_beyond_a_limit_that_asks(scene: Scene) -> None:
    agent = await begun(scene, asking())
    await agent.ask(call(1, "echo"))
    answer = text_of(await agent.ask(call(2, "echo")))
    assert answer.startswith(
        "Blocked: limits[0] of hookproxy.toml requires the user's approval: more than 1 call of echo"
    )


async def test_a_stateless_agent_asks_in_its_next_round_about_two_limits_at_once(scene: Scene) -> None:
    two = asking() + '[[limits]]\ntool = "*"\nsame = 1\nwindow = "1h"\nthen = "ask"\n'
    agent = scene.run("--name=lean", scene.config(two))
    meta = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    params = {"name": "echo", "arguments": {"n": 1}, "_meta": meta}
    assert json.loads(text_of(await agent.ask(request(1, "tools/call", **params)))) == {"n": 1}
    asked = (await agent.ask(request(2, "tools/call", **params)))["result"]
    (name,) = asked["inputRequests"]
    message = asked["inputRequests"][name]["params"]["message"]
    assert "more than 1 call of echo per session; more than once the same call within 1 hour" in message
    yes = {name: {"action": "accept", "content": {"decision": "allow once"}}}
    state = asked["requestState"]
    answer = await agent.ask(request(3, "tools/call", **params, inputResponses=yes, requestState=state))
    assert json.loads(text_of(answer)) == {"n": 1}


async def test_the_model_reads_with_the_result_that_a_limit_is_exceeded(scene: Scene) -> None:
    agent = await begun(scene, asking("comment"))
    assert "limits[0]" not in json.dumps(await agent.ask(call(1, "echo")))
    second = await agent.ask(call(2, "echo"))
    assert not second["result"].get("isError")
    assert "Note of limits[0] of hookproxy.toml: this was more than 1 call of echo per session." in json.dumps(second)
    first, last = audited(scene)
    assert "exceeds" not in first
    assert (last["decision"], len(last["exceeds"])) == ("allow", 1)


async def test_a_limit_that_is_only_watched_says_what_it_would_have_asked(scene: Scene) -> None:
    agent = await begun(scene, asking().replace("[audit]", 'mode = "monitor"\n[audit]'))
    for number in (1, 2):
        assert not (await agent.ask(call(number, "echo")))["result"].get("isError")
    agent.go()
    await agent.ended()
    line = audited(scene)[1]
    assert line["decision"] == "allow"
    assert "limits[0]" in json.dumps(line["monitor"])
