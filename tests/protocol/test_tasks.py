"""The table of tasks, case by case; `random/test_tasks.py` has the schedules, `test_following.py` the lives."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.protocol import tasks
from hookproxy.protocol.actions import PASS, Answered, CancelCall, Dropped, Refused, StartCall
from hookproxy.protocol.calls import Call
from hookproxy.protocol.router import Switchboard
from hookproxy.protocol.tasks import Poll, Stage

CALL: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger","task":{}}}\n'
HANDLE: Final = b'{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"T","status":"working"}}}\n'
POLL: Final = b'{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"T"}}\n'
RESULT: Final = b'{"jsonrpc":"2.0","id":8,"result":{"content":[]}}\n'
TOLD: Final = b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"T","result":{}}}\n'
CANCEL: Final = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}\n'


@pytest.fixture
def board() -> Switchboard:
    return Switchboard(lambda tool: tool == "danger")


def start(board: Switchboard, line: bytes) -> Call:
    effect = board.from_agent(line)
    assert isinstance(effect, StartCall)
    return effect.call


def handed(board: Switchboard, call: bytes = CALL, handle: bytes = HANDLE) -> Call:
    """A judged call whose handle is with the agent."""
    one = start(board, call)
    board.release(one)
    assert board.from_server(handle) == Answered(one)
    for task in board.tasks.take(one):
        task.stage = Stage.OPEN
    board.finish(one)
    return one


def test_without_a_task_nothing_about_tasks_is_looked_at(board: Switchboard) -> None:
    assert board.from_agent(POLL) is PASS
    assert board.glance_from_server(RESULT)
    assert board.glance_from_server(TOLD)
    assert board.may_pass_in_pieces(b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{')


def test_with_a_task_every_line_of_the_server_is_read_whole(board: Switchboard) -> None:
    handed(board)
    assert not board.calls
    assert not board.glance_from_server(TOLD)
    assert not board.may_pass_in_pieces(b'{"jsonrpc":"2.0","method":"notifications/x"')


def test_a_poll_is_held_as_a_call_is(board: Switchboard) -> None:
    handed(board)
    poll = start(board, POLL)
    assert isinstance(poll, Poll)
    assert (poll.task_id, poll.method, poll.id, poll.line) == ("T", tasks.RESULT, b"8", POLL)
    assert isinstance(board.from_server(RESULT), Dropped), "before the question"
    assert board.release(poll)
    assert board.from_server(RESULT) == Answered(poll)
    assert isinstance(board.from_server(RESULT), Dropped), "a second answer"
    assert board.finish(poll)
    assert isinstance(board.from_server(RESULT), Dropped), "a third one"


def test_a_cancelled_poll_gets_no_answer(board: Switchboard) -> None:
    handed(board)
    poll = start(board, POLL)
    board.release(poll)
    assert board.from_agent(CANCEL) == CancelCall(poll, forward=True)
    assert isinstance(board.from_server(RESULT), Dropped)
    assert not board.finish(poll)
    assert "T" in board.tasks


def test_the_id_of_a_poll_is_nobody_elses(board: Switchboard) -> None:
    handed(board)
    board.from_agent(b'{"jsonrpc":"2.0","id":8,"method":"ping"}\n')
    assert isinstance(board.from_agent(POLL), Refused)
    other = POLL.replace(b":8", b":9")
    start(board, other)
    assert isinstance(board.from_agent(other), Refused)
    assert isinstance(board.from_agent(b'{"jsonrpc":"2.0","id":"9","method":"ping"}\n'), Refused)


def test_a_task_is_known_from_the_moment_its_handle_is_here(board: Switchboard) -> None:
    call = start(board, CALL)
    board.release(call)
    board.from_server(HANDLE)
    assert board.tasks["T"].stage is Stage.AWAITED
    told = board.from_server(TOLD)
    assert isinstance(told, StartCall)
    assert isinstance(told.call, Poll)
    assert (told.call.task_id, told.call.id, told.call.line) == ("T", b"", TOLD)
    assert isinstance(board.from_server(TOLD), Dropped), "one at a time"
    board.tasks.is_told(told.call)
    assert isinstance(board.from_server(TOLD), StartCall)


def test_what_is_told_before_the_handle_is_held_where_a_handle_may_come(board: Switchboard) -> None:
    plain = start(board, CALL.replace(b',"task":{}', b""))
    board.release(plain)
    assert board.from_server(TOLD) is PASS, "this call cannot become a task"
    call = start(board, CALL.replace(b":7", b":6"))
    assert board.from_server(TOLD) is PASS, "the server does not know it"
    board.release(call)
    assert isinstance(board.from_server(TOLD), StartCall)


def test_not_too_many_messages_of_the_server_are_held(board: Switchboard) -> None:
    board.release(start(board, CALL))
    lines = [TOLD.replace(b'"T"', b'"%d"' % number) for number in range(100)]
    effects = [board.from_server(line) for line in lines]
    assert sum(isinstance(effect, StartCall) for effect in effects) == 64
    assert sum(isinstance(effect, Dropped) for effect in effects) == 36


def test_a_handle_with_anothers_id_is_one_that_readers_take_differently(board: Switchboard) -> None:
    handed(board)
    call = start(board, CALL.replace(b":7", b":6"))
    board.release(call)
    board.from_server(HANDLE.replace(b":7", b":6"))
    assert call.said is None


def test_judged_tasks_are_forgotten_first_and_nothing_of_them_passes(
    board: Switchboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_MOST", 2)
    for number in range(4):
        handed(
            board,
            CALL.replace(b":7", b":1%d" % number),
            HANDLE.replace(b":7", b":1%d" % number).replace(b"T", b"T%d" % number),
        )
    board.tasks["T1"].stage = board.tasks["T3"].stage = Stage.JUDGED
    board.tasks["T3"].guarded = False
    assert {task.id for task in board.tasks.shed()} == {"T1", "T3"}
    assert board.tasks.keys() == {"T0", "T2"}
    assert isinstance(board.from_agent(POLL.replace(b'"T"', b'"T1"')), Refused)
    assert isinstance(board.from_server(TOLD.replace(b'"T"', b'"T1"')), Dropped)
    assert board.from_server(TOLD.replace(b'"T"', b'"T3"')) is PASS
    assert isinstance(board.from_agent(POLL.replace(b'"T"', b'"T3"')), StartCall)


def test_after_very_many_forgotten_tasks_no_unknown_one_passes(
    board: Switchboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed(board)
    assert board.from_server(TOLD.replace(b'"T"', b'"X"')) is PASS
    monkeypatch.setattr(tasks, "_FORGOTTEN", -1)
    assert isinstance(board.from_server(TOLD.replace(b'"T"', b'"X"')), Dropped)
    assert isinstance(board.from_agent(POLL.replace(b'"T"', b'"X"')), Refused)
    start(board, POLL)


def test_a_deep_answer_to_another_request_passes(board: Switchboard) -> None:
    handed(board)
    board.from_agent(b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
    deep = b'{"jsonrpc":"2.0","id":9,"result":{"tasks":%b,"x":"\\"method\\""}}\n' % (b"[" * 50_000 + b"]" * 50_000)
    assert board.from_server(deep) is PASS


def test_messages_that_only_mention_tasks_pass(board: Switchboard) -> None:
    handed(board)
    for line in (
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"tasks \\n"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"tasks":[{"result":{}}]}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/tasks","params":[]}\n',
    ):
        assert board.from_server(line) is PASS


def answered(line: bytes, answer: bytes) -> Poll:
    board = Switchboard(lambda tool: tool == "danger")
    handed(board)
    poll = start(board, line)
    assert isinstance(poll, Poll)
    board.release(poll)
    assert board.from_server(answer) == Answered(poll)
    return poll


@pytest.mark.parametrize("method", [b"tasks/get", b"tasks/cancel", b"tasks/list"])
def test_an_error_is_the_tasks_only_where_its_result_is_fetched(method: bytes) -> None:
    refused = b'{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"x"}}\n'
    assert tasks.read(answered(POLL.replace(b"tasks/result", method), refused)).refused
    told = tasks.read(answered(POLL, refused))
    assert (told.refused, told.said is None) == (False, False)


def test_an_answer_that_readers_take_differently_is_not_read() -> None:
    poll = answered(POLL, b'{"jsonrpc":"2.0","id":8,"result":{"a":1,"a":2}}\n')
    with pytest.raises(raw_json.Unreadable):
        tasks.read(poll)


@pytest.mark.parametrize("listed", [b'[{"result":{}}]', b'[{"Status":1}]', b"[7]", b"7"])
def test_a_list_of_tasks_holds_no_output(listed: bytes) -> None:
    poll = answered(POLL.replace(b"tasks/result", b"tasks/list"), RESULT.replace(b'"content":[]', b'"tasks":' + listed))
    with pytest.raises((raw_json.Unreadable, raw_json.TwinKeys)):
        tasks.read(poll)
