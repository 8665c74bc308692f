"""What a message says about a task, and how its output is edited in place."""

from __future__ import annotations

import json

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Outcome
from hookproxy.protocol import tasks
from hookproxy.protocol.tasks import TaskStatus
from hookproxy.protocol.tool_results import ParsedResponse


def status(text: str, *, whole: bool = False, holder: str = "result") -> TaskStatus:
    return tasks.status_of(raw_json.fields(text.encode()), holder, whole=whole)


def test_a_status_alone_is_not_output() -> None:
    task_status = status('{"taskId":"T","status":"working","result":null}')
    assert task_status == TaskStatus(frozenset({"T"}), "working")
    assert not task_status.ends
    assert status('{"taskId":"T","status":"cancelled"}').ends
    assert status('{"taskId":"T","status":"failed","error":null}').ends
    assert not status('{"taskId":"T","status":"failed","error":{}}').ends


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"status":"completed","result":{"content":[]}}', ("result", "result")),
        ('{"status":"failed","error":{"code":1}}', ("result", "error")),
        ('{"status":"working","result":{}}', ("result", "result")),
        ('{"status":"working","content":[]}', ()),
        ('{"structuredContent":{}}', ()),
    ],
)
def test_output_is_found_in_every_place_where_an_agent_finds_it(text: str, place: tuple[str, ...]) -> None:
    task_status = status(text)
    assert task_status.response is not None
    assert task_status.path == place


def test_a_whole_result_is_output_and_its_meta_names_the_task() -> None:
    task_status = status('{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}}}', whole=True)
    assert task_status.ids == {"T"}
    assert not task_status.path
    assert task_status.response is not None


@pytest.mark.parametrize(
    "text",
    [
        '{"result":{},"error":{}}',
        '{"result":{},"content":[]}',
        '{"result":"text"}',
        '{"result":{"a":1,"a":2}}',
        '{"Result":{}}',
        '{"STATUS":"completed"}',
        '{"error\\u0000x":{}}',
        '{"ta\\u017fkId":"T"}',
        '{"taskId":7}',
        '{"taskId":""}',
        '{"taskId":"T","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"U"}}}',
        '{"_meta":{"io.modelcontextprotocol/related-task":{}}}',
    ],
)
def test_an_ambiguous_message_is_unreadable(text: str) -> None:
    with pytest.raises((raw_json.Unreadable, raw_json.DuplicateKeys)):
        status(text)


def test_output_outside_the_params_of_a_notification_is_unreadable() -> None:
    with pytest.raises(raw_json.Unreadable):
        status('{"content":[]}', holder="params")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('{"task":{"taskId":"T"}}', ["T"]),
        ('{"resultType":"task","taskId":"T"}', ["T"]),
        ('{"task":{"taskId":"T"},"taskId":"U"}', ["T", "U"]),
        ('{"task":{"taskId":"T","error":null}}', ["T"]),
        ('{"task":"buy milk","result":{}}', []),
        ('{"task":{"result":1},"Task":{}}', []),
    ],
)
def test_the_task_handles_in_a_result_are_found(text: str, ids: list[str]) -> None:
    assert list(tasks.task_ids(raw_json.fields(text.encode()))) == ids


@pytest.mark.parametrize("text", ['{"Task":{"taskId":"T"}}', '{"taskId":"T","result":{}}', '{"task":{"TaskId":"T"}}'])
def test_ambiguous_task_handles_are_unreadable(text: str) -> None:
    with pytest.raises(raw_json.Unreadable):
        list(tasks.task_ids(raw_json.fields(text.encode())))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b'{ "jsonrpc":"2.0","id":7, "result":{"a":1, "result": {"content":[]},"z":2}}\n', ("result", "result")),
        (b'{"method":"x","params":{"result":{"content":[]}}}\n', ("params", "result")),
    ],
)
def test_an_edit_changes_only_the_output(line: bytes, place: tuple[str, ...]) -> None:
    answer = tasks.output_as_response(line, place)
    assert json.loads(answer)["result"] == {"content": []}
    edited = tasks.with_output(line, place, answer.replace(b"[]", b"[7]"))
    assert edited == line.replace(b"[]", b"[7]")
    assert tasks.with_output(line, place, answer) == line


def test_a_whole_response_is_its_own_output() -> None:
    assert tasks.output_as_response(b"line", ()) == b"line"
    assert tasks.with_output(b"line", (), b"other") == b"other"


def test_different_outputs_have_different_digests() -> None:
    readings = [
        ParsedResponse(True, False, Outcome(content=b"[]", has_result=True)),
        ParsedResponse(True, True, Outcome(content=b"[]", has_result=True)),
        ParsedResponse(True, False, Outcome(content=b"[]")),
        ParsedResponse(True, False, Outcome(content=b"[1]", has_result=True)),
        ParsedResponse(True, False, Outcome(content=b"[", structured=b"]", has_result=True)),
        ParsedResponse(True, False, Outcome(content=b"[]", error="e", has_result=True)),
    ]
    assert len({tasks.outcome_digest(one) for one in readings}) == len(readings)
    assert tasks.outcome_digest(readings[0]) == tasks.outcome_digest(
        ParsedResponse(True, False, Outcome(has_result=True, duration_ms=7))
    )


def test_a_handle_without_an_immediate_response_is_unchanged() -> None:
    for line in (b'{"id":1,"result":{"task":{}}}\n', b'{"id":1,"result":{"_meta":{"a":1}}}\n'):
        assert tasks.without_immediate_response(line) == line


@pytest.mark.parametrize("holder", ["result", "params"])
@pytest.mark.parametrize("name", ["result", "error"])
def test_nothing_that_may_repeat_it_remains_beside_the_replaced_output_of_a_task(holder: str, name: str) -> None:
    inner = {
        "taskId": "T",
        "statusMessage": "SECRET",
        "status": "completed",
        name: {"x": "SECRET"},
        "ttl": 5,
        "y": "SECRET",
    }
    line = json.dumps({"note": "SECRET", "jsonrpc": "2.0", "id": 1, holder: inner, "z": ["SECRET"]}).encode() + b"\n"
    response = b'{"jsonrpc":"2.0","id":0,"%b":"clean"}' % name.encode()
    edited = tasks.with_output(line, (holder, name), response, alone=True)
    kept = {"taskId": "T", "status": "completed", name: "clean", "ttl": 5}
    assert json.loads(edited) == {"jsonrpc": "2.0", "id": 1, holder: kept}
    commented = json.loads(tasks.with_output(line, (holder, name), response))
    assert (commented["note"], commented[holder]["statusMessage"]) == ("SECRET", "SECRET")
