"""The content of a response, as hooks after a call get it."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from hookproxy.dialects.shared.input import result_text, tool_response
from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Elicitation, Outcome
from hookproxy.protocol import responses
from hookproxy.protocol.actions import ElicitationSeen
from hookproxy.protocol.calls import Call
from hookproxy.protocol.responses import Response
from hookproxy.protocol.tool_results import ParsedResponse, read

CALL = Call(b"7", b"7", b"", "write", b"{}", {}, stateless=False, task=False)


def answered(result: bytes, stateless: bool = False, task: bool = False) -> ParsedResponse:
    call = replace(CALL, stateless=stateless, task=task)
    call.response = Response(result=raw_json.fields(result))
    return read(call)


def test_a_success_has_its_content_and_structured_content() -> None:
    reading = answered(b'{"content":[{"type":"text","text":"a\\/b"}],"structuredContent":{"a":1}}')
    assert (reading.final, reading.failed) == (True, False)
    whole = b'{"content":[{"type":"text","text":"a/b"}],"structuredContent":{"a":1}}'
    assert reading.outcome == Outcome(
        content=b'[{"type":"text","text":"a/b"}]', structured=b'{"a":1}', whole=whole, has_result=True
    )


def test_the_text_of_a_failure_is_the_error() -> None:
    reading = answered(b'{"content":[{"type":"text","text":"no"},{"type":"text","text":"disk"}],"isError":true}')
    assert reading.failed
    assert reading.outcome.error == "no\ndisk"
    assert answered(b'{"content":[],"isError":true}').outcome.error == "The tool reported an error without a message."


def test_an_error_is_a_failure_without_a_result() -> None:
    call = replace(CALL)
    call.response = Response(error=raw_json.fields(b'{"e":{"code":-32000,"message":"no"}}')["e"])
    assert read(call) == ParsedResponse(True, True, Outcome(error="MCP error -32000: no"))
    call.response = Response(error=raw_json.fields(b'{"e":5}')["e"])
    assert read(call).outcome.error == "MCP error: 5"


TEXT = '{"type":"text","text":%s}'


@pytest.mark.parametrize(
    ("result", "more"),
    [
        ('{"content":[]}', False),
        ('{"content":[],"isError":false,"_meta":{"a":1},"resultType":"complete"}', False),
        ('{"content":[%s],"structuredContent":{"a":[1,"x y"]}}' % (TEXT % json.dumps('{"a":[1,"x y"]}')), False),
        ('{"content":[%s],"structuredContent":{"b":2,"a":1}}' % (TEXT % json.dumps('{ "a": 1,\n "b": 2 }')), False),
        ('{"content":[%s],"structuredContent":{"result":"abc"}}' % (TEXT % '"abc"'), False),
        ('{"content":[%s],"structuredContent":{"result":5}}' % (TEXT % '"5"'), False),
        ('{"content":[%s],"structuredContent":{"result":["a"]}}' % (TEXT % '"a"'), False),
        ('{"content":[%s],"structuredContent":{"a":"x y"}}' % (TEXT % json.dumps('{"a":"xy"}')), True),
        ('{"content":[%s],"structuredContent":{"a":true}}' % (TEXT % json.dumps('{"a":1}')), True),
        ('{"content":[%s],"structuredContent":{"result":"abcd"}}' % (TEXT % '"abc"'), True),
        ('{"content":[{"type":"image","text":"a"}],"structuredContent":{"result":"a"}}', True),
        ('{"content":[],"structuredContent":{"a":"SECRET"}}', True),
        ('{"structuredContent":{"a":"SECRET"}}', True),
        ('{"toolResult":"SECRET"}', True),
        ('{"content":[],"other":{"a":"SECRET"}}', True),
        ('{"content":[],"isError":"SECRET"}', True),
        ('{"content":[],"resultType":"SECRET"}', True),
        ('"SECRET"', True),
        ('["SECRET"]', True),
    ],
)
def test_hooks_see_the_whole_result_if_it_has_more_than_content_blocks(result: str, more: bool) -> None:
    call = replace(CALL)
    call.response = responses.Response(result={}, other=msgspec.Raw(result.encode()))
    if result.startswith("{"):
        call.response = Response(result=raw_json.fields(result.encode()))
    outcome = read(call).outcome
    assert json.loads(outcome.whole or b"null") == (json.loads(result) if more else None)
    assert json.loads(tool_response(outcome)) == (json.loads(result) if more else json.loads(result)["content"])
    for text in (tool_response(outcome).decode(), result_text(outcome)):
        assert ("SECRET" in text) is ("SECRET" in result)


def test_what_is_beside_the_text_of_a_failure_is_in_its_error() -> None:
    image = '{"type":"resource","resource":{"text":"IN RESOURCE"},"text":"own text"}'
    result = '{"content":[%s,%s],"structuredContent":{"a":"IN STRUCTURED"},"x":"IN MORE","isError":true}'
    error = answered((result % (TEXT % '"IN TEXT"', image)).encode()).outcome.error
    for part in ("IN TEXT", "IN RESOURCE", "IN STRUCTURED", "IN MORE"):
        assert part in error
    failed = replace(CALL)
    for raw in (b'{"code":-1,"message":"m","data":{"a":"IN DATA"}}', b'{"message":{"a":"IN DATA"}}', b'"IN DATA"'):
        failed.response = Response(error=msgspec.Raw(raw))
        assert "IN DATA" in read(failed).outcome.error


@pytest.mark.parametrize("place", ['{"content":[%s]}', '{"content":[],"x":%s}', '{"structuredContent":{"a":%s}}'])
def test_a_result_that_is_nested_too_deep_for_hooks_is_unreadable_to_them(place: str) -> None:
    call = replace(CALL)
    call.response = Response(result=raw_json.fields((place % ("[" * 70 + "]" * 70)).encode()))
    assert read(call).final
    with pytest.raises(raw_json.Unreadable, match="max_depth"):
        read(call, max_depth=64)


def test_an_ambiguous_response_is_unreadable() -> None:
    with pytest.raises(raw_json.Unreadable):
        read(replace(CALL))


@pytest.mark.parametrize(
    ("result", "stateless", "task", "final"),
    [
        (b'{"resultType":"input_required"}', True, False, False),
        (b'{"resultType":"input_required","content":[]}', True, False, True),
        (b'{"resultType":"input_required"}', False, False, True),
        (b'{"resultType":"complete","content":[]}', True, False, True),
        (b'{"task":{"taskId":"1"}}', False, True, False),
        (b'{"task":{"taskId":"1"}}', False, False, True),
    ],
)
def test_a_call_that_continues_has_no_outcome_yet(result: bytes, stateless: bool, task: bool, final: bool) -> None:
    assert answered(result, stateless, task).final is final


def test_elicitations_are_reported() -> None:
    request = b'{"method":"elicitation/create","params":{"message":"Which?"}}'
    reading = answered(b'{"resultType":"input_required","inputRequests":{"a":%b}}' % request, stateless=True)
    assert reading == ParsedResponse(
        False, needs_input=True, elicitations=(ElicitationSeen("Which?", elicitation=Elicitation("Which?")),)
    )


@pytest.mark.parametrize("key", ["Content", "ResultType", "structuredcontent", "ISERROR", "content\\u0000"])
def test_a_member_that_some_readers_take_for_a_known_one_makes_it_unreadable(key: str) -> None:
    with pytest.raises(raw_json.Unreadable):
        answered(b'{"resultType":"task","taskId":"1","%b":[]}' % key.encode(), stateless=True)


def test_a_task_without_an_id_is_not_a_task() -> None:
    assert answered(b'{"resultType":"task"}', stateless=True).final


@pytest.mark.parametrize(("failed", "known"), [(b"true", True), (b"false", False)])
def test_of_a_result_that_no_hook_gets_only_its_own_members_are_read(failed: bytes, known: bool) -> None:
    twins = b'{"content":[{"type":"text","text":"a","text":"b"}],"isError":%b}' % failed
    call = replace(CALL)
    call.response = Response(result=raw_json.fields(twins))
    assert read(call, observed=False) == ParsedResponse(True, known, Outcome(has_result=True))
    with pytest.raises(raw_json.DuplicateKeys):
        read(call)
    call.response = Response(result=raw_json.fields(b'{"IsError":true}'))
    with pytest.raises(raw_json.Unreadable, match="differs only in case"):
        read(call, observed=False)


def test_an_error_that_no_hook_gets_is_a_failure() -> None:
    call = replace(CALL)
    call.response = Response(error=raw_json.fields(b'{"e":{"code":1,"code":2}}')["e"])
    assert read(call, observed=False) == ParsedResponse(True, True)
