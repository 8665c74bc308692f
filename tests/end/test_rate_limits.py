"""How many calls a run lets through, and what the model and the audit file get."""

from __future__ import annotations

import json
import re

import pytest

from tests.end.agent import STATELESS, Agent, Json, Scene, call, request, text_of

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
