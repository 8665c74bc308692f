"""What servers of interceptors get: the message, and a key that no other message has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.interceptors import interceptor_group, write_input
from hookproxy.model.hooks import Event, EventContext, Outcome, Session
from hookproxy.model.settings import OnFailure

SESSION = Session("s", "files", "/", "/")


def written(event: Event = Event.PRE_TOOL_USE, **members: object) -> dict[str, Any]:
    spec = interceptor_group([{"name": "a", "argv": ["x"]}], "x", "x", "/").hooks[0]
    context = replace(EventContext(event, SESSION, tool="echo", arguments=b'{"n":1.0}'), **members)
    document: dict[str, Any] = json.loads(write_input(spec, context).stdin)
    return document


def test_calls_with_other_ids_have_other_keys_however_an_agent_spells_them() -> None:
    ids = [("a b", "c"), ("a", "b c"), ('a","b', "c"), ("a", 'b","c')]
    assert len({written(tool_use_id=own, request_id=request)["key"] for own, request in ids}) == len(ids)


def test_a_request_and_its_response_have_one_trace() -> None:
    response = written(Event.POST_TOOL_USE, outcome=Outcome(has_result=True), tool_use_id="a", request_id="1")
    trace = response["context"]["traceId"]
    assert written(tool_use_id="a", request_id="1")["context"]["traceId"] == trace
    assert written(tool_use_id="a", request_id="2")["context"]["traceId"] != trace


@pytest.mark.parametrize(
    ("outcome", "payload"),
    [
        (Outcome(b'[{"type":"text","text":"x"}]', has_result=True), {"content": [{"type": "text", "text": "x"}]}),
        (Outcome(b"[]", has_result=True, structured=b'{"a":1}'), {"content": [], "structuredContent": {"a": 1}}),
        (Outcome(b"[]", has_result=True, error="no"), {"content": [], "isError": True}),
        (Outcome(error="gone"), {"error": {"code": -32603, "message": "gone"}}),
    ],
)
def test_a_response_is_the_result_or_the_error(outcome: Outcome, payload: object) -> None:
    assert written(Event.POST_TOOL_USE, outcome=outcome)["payload"] == payload


def test_other_methods_have_their_params() -> None:
    document = written(tool="resources/read", arguments=b'{"uri":"file:///a"}')
    assert (document["event"], document["payload"]) == ("resources/read", {"uri": "file:///a"})


def test_a_failure_blocks_whatever_the_file_says_of_failures() -> None:
    hooks = interceptor_group([{"name": "a", "argv": ["x"]}], "x", "x", "/").hooks
    assert {(hook.on_failure, hook.withholds) for hook in hooks} == {(OnFailure.DENY, True)}


def test_two_servers_of_the_same_command_are_two() -> None:
    tables = [{"name": name, "argv": ["x"]} for name in ("a", "b")]
    first, second = interceptor_group(tables, "x", "x", "/").hooks[:2]
    assert first.identity != second.identity
