"""Servers of interceptors as hooks: real processes that list and judge, or fail to."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.interceptors import interceptor_group
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners.interceptor import open_runner

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SERVER: Final = """
import json, os, sys

listed, behaviour = json.loads(sys.argv[1]), sys.argv[2]
for line in sys.stdin:
    message = json.loads(line)
    with open("messages", "a") as file:
        file.write(line)
    if "id" not in message:
        continue
    params, result = message["params"], {}
    if message["method"] == "interceptors/list":
        result = {"interceptors": listed}
    if message["method"] == "interceptor/invoke":
        if behaviour == "exit":
            os._exit(3)
        if behaviour == "hang":
            continue
        if behaviour == "noise":
            print("noise", flush=True)
        payload = params["payload"]
        if params["name"].startswith("mutates"):
            for text in payload.get("content", [payload.get("arguments", {})]):
                text["text"] = text.get("text", "") + params["name"][-1]
            payload.update(json.loads(behaviour or "{}"))
            result = {"modified": True, "payload": payload}
        elif "bad" in json.dumps(payload):
            result = {"valid": False, "severity": "error", "messages": [{"message": "is bad", "severity": "error"}]}
        else:
            result = {"valid": True}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def entry(name: str, kind: str = "validation", **more: object) -> dict[str, object]:
    hooks = [{"events": ["tools/call"], "phase": phase} for phase in ("request", "response")]
    return {"name": name, "type": kind, "hooks": hooks, **more}


def specs(folder: Path, *servers: tuple[list[dict[str, object]], str], timeout: float = 30.0) -> list[HookSpec]:
    (folder / "server.py").write_text(SERVER)
    tables: list[Mapping[str, object]] = [
        {
            "name": f"server{number}",
            "argv": [sys.executable, "server.py", json.dumps(listed), behaviour],
            "timeout": timeout,
        }
        for number, (listed, behaviour) in enumerate(servers)
    ]
    return list(interceptor_group(tables, str(folder / "hookproxy.toml"), "x", str(folder)).hooks)


async def run(hooks: list[HookSpec], event: Event, payload: object, key: str = "k") -> list[HookResult]:
    reports: list[str] = []
    runner = open_runner(hooks, lambda _spec, text: reports.append(text))
    phase = "request" if event is Event.PRE_TOOL_USE else "response"
    message = {"event": "tools/call", "phase": phase, "payload": payload, "key": key, "context": {}}
    document = Document(json.dumps(message).encode(), {})
    try:
        own = [spec for spec in hooks if spec.event is event]
        return [await runner.run(spec, document, {"PATH": ""}) for spec in own]
    finally:
        await runner.aclose()


def printed(result: HookResult) -> dict[str, Any]:
    assert result.ended is Ended.EXITED, result.detail
    read: dict[str, Any] = json.loads(result.stdout)["hookSpecificOutput"] if result.stdout else {}
    return read


def call(text: str) -> dict[str, object]:
    return {"name": "echo", "arguments": {"text": text}}


async def test_a_request_that_is_not_valid_is_denied(tmp_path: Path) -> None:
    [result] = await run(specs(tmp_path, ([entry("v")], "")), Event.PRE_TOOL_USE, call("bad"))
    assert printed(result)["permissionDecision"] == "deny"
    assert printed(result)["permissionDecisionReason"] == "the interceptor v: is bad"


async def test_a_response_that_is_not_valid_is_withheld(tmp_path: Path) -> None:
    content = {"content": [{"type": "text", "text": "bad"}]}
    [result] = await run(specs(tmp_path, ([entry("v")], "")), Event.POST_TOOL_USE, content)
    assert (result.ended, "is bad" in result.detail) == (Ended.FAILED, True)


async def test_priorities_hold_among_all_servers(tmp_path: Path) -> None:
    first = [entry("mutates 2", "mutation", priorityHint=2), entry("v")]
    second = [entry("mutates 1", "mutation", priorityHint=1), entry("mutates 3", "mutation", priorityHint=3)]
    results = await run(specs(tmp_path, (first, ""), (second, "")), Event.PRE_TOOL_USE, call("a"))
    assert printed(results[0])["updatedInput"] == {"text": "a123"}
    assert not results[1].stdout


@pytest.mark.parametrize("member", ["_meta", "task", "method", "progressToken"])
async def test_a_mutation_of_more_than_the_arguments_refuses_the_call(tmp_path: Path, member: str) -> None:
    hooks = specs(tmp_path, ([entry("mutates", "mutation")], json.dumps({member: {"of": "the interceptor"}})))
    [result] = await run(hooks, Event.PRE_TOOL_USE, call("a"))
    assert (result.ended, result.stdout) == (Ended.FAILED, b"")
    assert result.detail == f"changed it so that {member!r} would be sent: of a call, only arguments can be changed"


async def test_a_member_that_no_result_has_is_told(tmp_path: Path) -> None:
    hooks = specs(tmp_path, ([entry("mutates", "mutation")], '{"extra": 1, "isError": true}'))
    payload = {"content": [{"type": "text", "text": "a"}], "own": 1}
    [result] = await run(hooks, Event.POST_TOOL_USE, payload)
    assert printed(result)["updatedToolOutput"]["isError"] is True
    assert json.loads(result.stdout)["systemMessage"] == "'extra' of the result is not delivered as it was changed"


async def test_another_file_has_a_chain_of_its_own_which_judges_what_is_there_when_its_turn_comes(
    tmp_path: Path,
) -> None:
    """The administrator's file comes last, and its server may have the name of a user's."""
    managed = tmp_path / "managed"
    managed.mkdir()
    hooks = [*specs(tmp_path, ([entry("own")], "")), *specs(managed, ([entry("judges")], ""))]
    own, judges = [spec for spec in hooks if spec.event is Event.PRE_TOOL_USE]
    assert own.label == judges.label
    runner = open_runner(hooks, lambda _spec, _text: None)
    try:
        for spec, text, stdout in ((own, "good", b""), (judges, "a bad rewrite", b"the interceptor judges: is bad")):
            params = {"name": "echo", "arguments": {"text": text}}
            message = {"event": "tools/call", "phase": "request", "payload": params, "key": "k", "context": {}}
            result = await runner.run(spec, Document(json.dumps(message).encode(), {}), {"PATH": ""})
            assert stdout in result.stdout
            assert bool(stdout) is bool(result.stdout)
    finally:
        await runner.aclose()


async def test_the_server_that_denies_is_named(tmp_path: Path) -> None:
    results = await run(
        specs(tmp_path, ([entry("mutates x", "mutation")], ""), ([entry("v")], "")), Event.PRE_TOOL_USE, call("bad")
    )
    assert [bool(printed(result)) for result in results] == [False, True]


@pytest.mark.parametrize("behaviour", ["exit", "noise"])
async def test_a_server_that_fails_blocks(tmp_path: Path, behaviour: str) -> None:
    [result] = await run(specs(tmp_path, ([entry("v")], behaviour)), Event.PRE_TOOL_USE, call("a"))
    assert result.ended is Ended.FAILED


@pytest.mark.parametrize("behaviour", ["exit", "noise"])
async def test_an_interceptor_that_fails_open_does_not(tmp_path: Path, behaviour: str) -> None:
    hooks = specs(tmp_path, ([entry("v", failOpen=True)], behaviour))
    [result] = await run(hooks, Event.PRE_TOOL_USE, call("a"))
    assert result.ended is Ended.EXITED


async def test_a_server_that_does_not_answer_blocks(tmp_path: Path) -> None:
    hooks = specs(tmp_path, ([entry("v")], "hang"), timeout=1.0)
    [result] = await run(hooks, Event.PRE_TOOL_USE, call("a"))
    assert result.ended in (Ended.TIMED_OUT, Ended.FAILED)


async def test_an_interceptor_that_fails_open_may_take_too_long(tmp_path: Path) -> None:
    hooks = specs(
        tmp_path, ([entry("v", failOpen=True)], "hang"), timeout=5.0
    )  # the server starts in it, on a busy machine too
    [result] = await run(hooks, Event.PRE_TOOL_USE, call("a"))
    assert result.ended is Ended.EXITED


async def test_a_list_that_cannot_be_read_blocks(tmp_path: Path) -> None:
    hooks = specs(tmp_path, ([entry("v", mode="off")], ""))
    [result] = await run(hooks, Event.PRE_TOOL_USE, call("a"))
    assert (result.ended, "mode" in result.detail) == (Ended.FAILED, True)


async def test_a_server_that_cannot_be_started_blocks(tmp_path: Path) -> None:
    table = {"name": "a", "argv": ["/nowhere/at/all"]}
    hooks = list(interceptor_group([table], "x", "x", str(tmp_path)).hooks)
    [result] = await run(hooks, Event.PRE_TOOL_USE, call("a"))
    assert result.ended is Ended.FAILED


async def test_a_server_is_introduced_and_asked_with_the_session(tmp_path: Path) -> None:
    await run(specs(tmp_path, ([entry("v")], "")), Event.PRE_TOOL_USE, call("a"))
    sent = [json.loads(line) for line in (tmp_path / "messages").read_text().splitlines()]
    methods = ["initialize", "notifications/initialized", "interceptors/list", "interceptor/invoke"]
    assert [message["method"] for message in sent] == methods
    assert sent[-1]["params"]["timeoutMs"] == 30000


def test_two_servers_have_two_names(tmp_path: Path) -> None:
    table = {"name": "a", "argv": ["x"]}
    with pytest.raises(ConfigError, match="name of another"):
        interceptor_group([table, table], "x", "x", str(tmp_path))


async def test_what_one_reading_of_a_message_is_refused_for_no_other_reading_allows(tmp_path: Path) -> None:
    hooks = specs(tmp_path, ([entry("s", "sink")], ""), ([entry("v")], ""))
    runner = open_runner(hooks, lambda _spec, _text: None)
    first, second = (spec for spec in hooks if spec.event is Event.PRE_TOOL_USE)
    common = {"event": "tools/call", "phase": "request", "key": "k", "context": {}}
    try:
        for text in ("bad", "good"):  # the hook of the first server runs once for each
            document = Document(json.dumps({**common, "payload": call(text)}).encode(), {})
            await runner.run(first, document, {"PATH": ""})
        result = await runner.run(second, document, {"PATH": ""})
    finally:
        await runner.aclose()
    assert printed(result)["permissionDecision"] == "deny"
