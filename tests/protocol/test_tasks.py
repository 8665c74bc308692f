"""The table of tasks, case by case; `random/test_tasks.py` has random schedules."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.protocol import tasks
from hookproxy.protocol.actions import PASS, CallAnswered, CancelCall, Dropped, Refused, StartCall
from hookproxy.protocol.calls import Call
from hookproxy.protocol.router import Router
from hookproxy.protocol.tasks import TaskRequest, TaskStage

CALL: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger","task":{}}}\n'
HANDLE: Final = b'{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"T","status":"working"}}}\n'
TASK_REQUEST: Final = b'{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"T"}}\n'
RESULT: Final = b'{"jsonrpc":"2.0","id":8,"result":{"content":[]}}\n'
NOTIFICATION: Final = b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"T","result":{}}}\n'
CANCEL: Final = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}\n'


@pytest.fixture
def router() -> Router:
    return Router(lambda tool: tool == "danger")


def start(router: Router, line: bytes) -> Call:
    effect = router.from_agent(line)
    assert isinstance(effect, StartCall)
    return effect.call


def handed(router: Router, call: bytes = CALL, handle: bytes = HANDLE) -> Call:
    """A judged call whose handle is with the agent."""
    one = start(router, call)
    router.calls.release(one)
    assert router.from_server(handle) == CallAnswered(one)
    for task in router.tasks.take_new(one):
        task.stage = TaskStage.OPEN
    router.calls.finish(one)
    return one


def test_without_a_task_no_message_about_tasks_is_read(router: Router) -> None:
    assert router.from_agent(TASK_REQUEST) is PASS
    assert router.scan_from_server(RESULT)
    assert router.scan_from_server(NOTIFICATION)
    assert router.may_pass_in_pieces(b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{')


def test_with_a_task_every_line_of_the_server_is_read_in_full(router: Router) -> None:
    handed(router)
    assert not router.calls
    assert not router.scan_from_server(NOTIFICATION)
    assert not router.may_pass_in_pieces(b'{"jsonrpc":"2.0","method":"notifications/x"')


def test_a_task_request_is_held_like_a_call(router: Router) -> None:
    handed(router)
    task_request = start(router, TASK_REQUEST)
    assert isinstance(task_request, TaskRequest)
    assert (task_request.task_id, task_request.method, task_request.id, task_request.line) == (
        "T",
        tasks.RESULT_METHOD,
        b"8",
        TASK_REQUEST,
    )
    assert isinstance(router.from_server(RESULT), Dropped), "before the question"
    assert router.calls.release(task_request)
    assert router.from_server(RESULT) == CallAnswered(task_request)
    assert isinstance(router.from_server(RESULT), Dropped), "a second answer"
    assert router.calls.finish(task_request)
    assert isinstance(router.from_server(RESULT), Dropped), "a third one"


def test_a_cancelled_task_request_gets_no_response(router: Router) -> None:
    handed(router)
    task_request = start(router, TASK_REQUEST)
    router.calls.release(task_request)
    assert router.from_agent(CANCEL) == CancelCall(task_request, forward=True)
    assert isinstance(router.from_server(RESULT), Dropped)
    assert not router.calls.finish(task_request)
    assert "T" in router.tasks


def test_no_other_request_can_have_the_id_of_a_task_request(router: Router) -> None:
    handed(router)
    router.from_agent(b'{"jsonrpc":"2.0","id":8,"method":"ping"}\n')
    assert isinstance(router.from_agent(TASK_REQUEST), Refused)
    other = TASK_REQUEST.replace(b":8", b":9")
    start(router, other)
    assert isinstance(router.from_agent(other), Refused)
    assert isinstance(router.from_agent(b'{"jsonrpc":"2.0","id":"9","method":"ping"}\n'), Refused)


def test_a_task_is_known_as_soon_as_its_handle_arrives(router: Router) -> None:
    call = start(router, CALL)
    router.calls.release(call)
    router.from_server(HANDLE)
    assert router.tasks["T"].stage is TaskStage.AWAITED
    action = router.from_server(NOTIFICATION)
    assert isinstance(action, StartCall)
    assert isinstance(action.call, TaskRequest)
    assert (action.call.task_id, action.call.id, action.call.line) == ("T", b"", NOTIFICATION)
    assert isinstance(router.from_server(NOTIFICATION), Dropped), "one at a time"
    router.tasks.notification_done(action.call)
    assert isinstance(router.from_server(NOTIFICATION), StartCall)


def test_a_notification_before_the_handle_is_held_if_a_handle_may_come(router: Router) -> None:
    plain = start(router, CALL.replace(b',"task":{}', b""))
    router.calls.release(plain)
    assert router.from_server(NOTIFICATION) is PASS, "this call cannot become a task"
    call = start(router, CALL.replace(b":7", b":6"))
    assert router.from_server(NOTIFICATION) is PASS, "the server does not know it"
    router.calls.release(call)
    assert isinstance(router.from_server(NOTIFICATION), StartCall)


def test_the_number_of_held_notifications_is_limited(router: Router) -> None:
    router.calls.release(start(router, CALL))
    lines = [NOTIFICATION.replace(b'"T"', b'"%d"' % number) for number in range(100)]
    effects = [router.from_server(line) for line in lines]
    assert sum(isinstance(effect, StartCall) for effect in effects) == 64
    assert sum(isinstance(effect, Dropped) for effect in effects) == 36


def test_a_handle_with_the_id_of_another_task_is_ambiguous(router: Router) -> None:
    handed(router)
    call = start(router, CALL.replace(b":7", b":6"))
    router.calls.release(call)
    router.from_server(HANDLE.replace(b":7", b":6"))
    assert call.response is None


def test_judged_tasks_are_forgotten_first_and_their_output_never_passes(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_MAX_TASKS", 2)
    for number in range(4):
        handed(
            router,
            CALL.replace(b":7", b":1%d" % number),
            HANDLE.replace(b":7", b":1%d" % number).replace(b"T", b"T%d" % number),
        )
    router.tasks["T1"].stage = router.tasks["T3"].stage = TaskStage.JUDGED
    router.tasks["T3"].guarded = False
    assert {task.id for task in router.tasks.drop_surplus()} == {"T1", "T3"}
    assert router.tasks.keys() == {"T0", "T2"}
    assert isinstance(router.from_agent(TASK_REQUEST.replace(b'"T"', b'"T1"')), Refused)
    assert isinstance(router.from_server(NOTIFICATION.replace(b'"T"', b'"T1"')), Dropped)
    assert router.from_server(NOTIFICATION.replace(b'"T"', b'"T3"')) is PASS
    assert isinstance(router.from_agent(TASK_REQUEST.replace(b'"T"', b'"T3"')), StartCall)


def test_after_very_many_forgotten_tasks_no_unknown_task_passes(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed(router)
    assert router.from_server(NOTIFICATION.replace(b'"T"', b'"X"')) is PASS
    monkeypatch.setattr(tasks, "_MAX_FORGOTTEN", -1)
    assert isinstance(router.from_server(NOTIFICATION.replace(b'"T"', b'"X"')), Dropped)
    assert isinstance(router.from_agent(TASK_REQUEST.replace(b'"T"', b'"X"')), Refused)
    start(router, TASK_REQUEST)


def test_a_deeply_nested_response_to_another_request_passes(router: Router) -> None:
    handed(router)
    router.from_agent(b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
    deep = b'{"jsonrpc":"2.0","id":9,"result":{"tasks":%b,"x":"\\"method\\""}}\n' % (b"[" * 50_000 + b"]" * 50_000)
    assert router.from_server(deep) is PASS


def test_messages_that_only_mention_tasks_pass(router: Router) -> None:
    handed(router)
    for line in (
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"tasks \\n"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"tasks":[{"result":{}}]}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks","params":[]}\n',
    ):
        assert router.from_server(line) is PASS


def answered(line: bytes, answer: bytes) -> TaskRequest:
    router = Router(lambda tool: tool == "danger")
    handed(router)
    task_request = start(router, line)
    assert isinstance(task_request, TaskRequest)
    router.calls.release(task_request)
    assert router.from_server(answer) == CallAnswered(task_request)
    return task_request


@pytest.mark.parametrize("method", [b"tasks/get", b"tasks/cancel", b"tasks/list"])
def test_an_error_is_the_tasks_own_only_in_the_response_to_tasks_result(method: bytes) -> None:
    refused = b'{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"x"}}\n'
    assert tasks.read(answered(TASK_REQUEST.replace(b"tasks/result", method), refused)).request_failed
    status = tasks.read(answered(TASK_REQUEST, refused))
    assert (status.request_failed, status.response is None) == (False, False)


def test_an_ambiguous_response_is_not_read() -> None:
    task_request = answered(TASK_REQUEST, b'{"jsonrpc":"2.0","id":8,"result":{"a":1,"a":2}}\n')
    with pytest.raises(raw_json.Unreadable):
        tasks.read(task_request)


@pytest.mark.parametrize("listed", [b'[{"result":{}}]', b'[{"Status":1}]', b"[7]", b"7"])
def test_a_list_of_tasks_contains_no_output(listed: bytes) -> None:
    task_request = answered(
        TASK_REQUEST.replace(b"tasks/result", b"tasks/list"), RESULT.replace(b'"content":[]', b'"tasks":' + listed)
    )
    with pytest.raises((raw_json.Unreadable, raw_json.DuplicateKeys)):
        tasks.read(task_request)
