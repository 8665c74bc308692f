"""Our hooks and rules as interceptors: what a host is answered about its messages."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from hookproxy.config.load import load_isolated
from hookproxy.interceptors.policy import MUTATES, VALIDATES, PolicyInterceptors
from hookproxy.interceptors.service import Service
from hookproxy.model.hooks import Session

pytestmark = pytest.mark.anyio

Ask = Callable[..., Coroutine[None, None, dict[str, Any]]]

POLICY = """
[permissions]
deny = ["delete_*", "resources/read(file:///etc/*)"]
ask = ["write_*"]

[audit]
file = "audit.jsonl"

[[hooks.PreToolUse]]
matcher = "echo"
type = "python"
call = "guards:upper"

[[hooks.PostToolUse]]
matcher = "echo|hidden"
type = "python"
call = "guards:after"
"""

GUARDS = """
ran = []

def upper(document):
    ran.append(document["tool_name"])
    note = document["tool_input"].get("note", "")
    if note.isupper():
        return None
    new = {**document["tool_input"], "note": note.upper()}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": new}}

def after(document):
    if document["tool_name"] == "hidden":
        raise RuntimeError("broken")
    blocks = [{"type": "text", "text": "replaced"}]
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": blocks}}
"""


@pytest.fixture
async def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ask]:
    monkeypatch.setattr(sys, "path", [*sys.path])  # hooks of type python add their folder
    (tmp_path / "hookproxy.toml").write_text(POLICY)
    (tmp_path / "guards.py").write_text(GUARDS)
    loaded = load_isolated(str(tmp_path / "hookproxy.toml"), [], {}, str(tmp_path))
    async with anyio.create_task_group() as tasks:
        session = Session("s", "files", str(tmp_path), str(tmp_path))
        policy = PolicyInterceptors(loaded, session, {}, tasks, lambda _text: None)
        service = Service(policy.offered(), lambda _text: None)

        async def send(method: str, **params: object) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            response = await service.respond(json.dumps(message).encode())
            assert response is not None
            answer: dict[str, Any] = json.loads(response)
            return answer

        yield send
        await policy.aclose()
    sys.modules.pop("guards", None)


async def invoke(
    ask: Ask, name: str, payload: object, event: str = "tools/call", phase: str = "request"
) -> dict[str, Any]:
    answer = await ask("interceptor/invoke", name=name, event=event, phase=phase, payload=payload)
    given: dict[str, Any] = answer["result"] if "result" in answer else answer["error"]
    return given


async def test_it_lists_a_validation_and_a_mutation(ask: Ask) -> None:
    listed = (await ask("interceptors/list"))["result"]["interceptors"]
    assert [(each["name"], each["type"]) for each in listed] == [(MUTATES, "mutation"), (VALIDATES, "validation")]
    assert listed[1]["hooks"][0] == {"events": ["tools/call", "resources/read"], "phase": "request"}
    assert (await ask("interceptors/list", event="prompts/get"))["result"]["interceptors"] == []


async def test_its_capability_names_the_events(ask: Ask) -> None:
    result = (await ask("initialize", protocolVersion="2025-06-18"))["result"]
    assert result["protocolVersion"] == "2025-06-18"
    events = result["capabilities"]["extensions"]["io.modelcontextprotocol/interceptors"]["supportedEvents"]
    assert events == ["resources/read", "tools/call"]


@pytest.mark.parametrize(
    ("payload", "event", "valid"),
    [
        ({"name": "delete_x", "arguments": {}}, "tools/call", False),
        ({"method": "tools/call", "params": {"name": "delete_x"}}, "tools/call", False),
        ({"name": "write_x", "arguments": {}}, "tools/call", False),
        ({"name": "read", "arguments": {}}, "tools/call", True),
        ({"uri": "file:///etc/passwd"}, "resources/read", False),
        ({"uri": "file:///srv/a"}, "resources/read", True),
        ({"arguments": {}}, "tools/call", False),
        ([], "tools/call", False),
        ("x", "tools/call", False),
        ({"method": "tools/list", "params": {"name": "read"}}, "tools/call", False),
        ({"method": "tools/call", "params": {"name": "read"}, "name": "delete_x"}, "tools/call", False),
    ],
)
async def test_a_request_is_valid_if_it_would_be_forwarded(ask: Ask, payload: object, event: str, valid: bool) -> None:
    result = await invoke(ask, VALIDATES, payload, event)
    assert result["valid"] is valid
    assert valid or (result["severity"] == "error" and result["messages"][0]["severity"] == "error")


async def test_twin_keys_are_refused(ask: Ask) -> None:
    result = await invoke(ask, VALIDATES, {"name": "read", "arguments": {"path": 1, "Path": 2}})
    assert "take its arguments 'path' and 'Path' for the same" in json.dumps(result)
    raw = b'{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{"name":"a","name":"b"}}'
    service = Service([], lambda _text: None)
    answer = await service.respond(raw)
    assert answer is not None
    assert b'"error"' in answer


async def test_a_mutation_gives_the_payload_in_its_own_form(ask: Ask) -> None:
    result = await invoke(ask, MUTATES, {"name": "echo", "arguments": {"note": "hi", "n": 1}})
    assert result["modified"] is True
    assert result["payload"] == {"name": "echo", "arguments": {"note": "HI", "n": 1}}
    whole = {"method": "tools/call", "params": {"name": "echo", "arguments": {"note": "hi"}}}
    assert (await invoke(ask, MUTATES, whole))["payload"]["params"]["arguments"] == {"note": "HI"}


async def test_hooks_run_once_for_a_host_that_mutates_and_then_validates(ask: Ask) -> None:
    mutated = await invoke(ask, MUTATES, {"name": "echo", "arguments": {"note": "hi"}})
    assert (await invoke(ask, VALIDATES, mutated["payload"]))["valid"] is True
    assert sys.modules["guards"].ran == ["echo"]


async def test_other_arguments_than_those_of_the_mutation_are_judged_anew(ask: Ask) -> None:
    await invoke(ask, MUTATES, {"name": "echo", "arguments": {"note": "hi"}})
    result = await invoke(ask, VALIDATES, {"name": "echo", "arguments": {"note": "other"}})
    assert result["valid"] is False
    assert MUTATES in result["messages"][0]["message"]


async def test_the_mutation_of_a_denied_request_fails(ask: Ask) -> None:
    error = await invoke(ask, MUTATES, {"name": "delete_x", "arguments": {}})
    assert error["code"] == -32603
    assert "delete_*" in error["message"]


async def test_a_response_is_judged_with_the_request_of_its_session(ask: Ask) -> None:
    await invoke(ask, VALIDATES, {"name": "echo", "arguments": {"note": "HI"}})
    result = {"content": [{"type": "text", "text": "secret"}]}
    assert (await invoke(ask, VALIDATES, result, phase="response"))["valid"] is True
    mutated = await invoke(ask, MUTATES, result, phase="response")
    assert mutated["payload"] == {"content": [{"type": "text", "text": "replaced"}]}


async def test_a_result_whose_hook_failed_is_not_valid(ask: Ask) -> None:
    await invoke(ask, VALIDATES, {"name": "hidden", "arguments": {}})
    result = {"content": [{"type": "text", "text": "secret"}]}
    assert (await invoke(ask, VALIDATES, result, phase="response"))["valid"] is False
    assert (await invoke(ask, MUTATES, result, phase="response"))["code"] == -32603


async def test_a_response_to_nothing_that_was_asked_is_an_error(ask: Ask) -> None:
    assert (await invoke(ask, VALIDATES, {"content": []}, phase="response"))["code"] == -32603


@pytest.mark.parametrize(
    ("name", "event", "phase"),
    [("nobody", "tools/call", "request"), (VALIDATES, "tools/list", "request"), (VALIDATES, "tools/call", "before")],
)
async def test_an_invocation_that_is_not_one_has_invalid_params(ask: Ask, name: str, event: str, phase: str) -> None:
    assert (await invoke(ask, name, {}, event, phase))["code"] == -32602


async def test_what_is_judged_is_recorded(ask: Ask, tmp_path: Path) -> None:
    await invoke(ask, VALIDATES, {"name": "delete_x", "arguments": {}})
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(each["tool"], each["decision"]) for each in records if "tool" in each] == [("delete_x", "deny")]


async def test_hooks_that_only_choose_what_is_sent_beside_a_call_are_told(tmp_path: Path) -> None:
    hooks = {"version": 1, "hooks": {"preMcpToolCall": [{"type": "command", "bash": "true"}]}}
    (tmp_path / "hooks.json").write_text(json.dumps(hooks))
    (tmp_path / "hookproxy.toml").write_text('[[use]]\nfile = "hooks.json"\ndialect = "copilot"\n')
    loaded, told = load_isolated(str(tmp_path / "hookproxy.toml"), [], {}, str(tmp_path)), list[str]()
    async with anyio.create_task_group() as tasks:
        session = Session("s", "files", str(tmp_path), str(tmp_path))
        await PolicyInterceptors(loaded, session, {}, tasks, told.append).aclose()
    assert [text for text in told if "never runs here" in text and "preMcpToolCall" in text]
