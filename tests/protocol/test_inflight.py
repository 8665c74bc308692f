"""Requests in flight that no hook judges: each response ends one, and late responses differ from unexpected ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hookproxy.protocol import fast_scan
from hookproxy.protocol.calls import Call, Phase, Progress
from hookproxy.protocol.inflight import InFlight, JudgedCalls, RequestKind


def heads(block: bytes) -> list[fast_scan.Head]:
    found = fast_scan.heads(block)
    assert found is not None
    return found


def test_a_request_stays_until_it_is_answered() -> None:
    requests = InFlight()
    assert requests.settle(b"1") is None
    requests.note(b"1", RequestKind.TOOLS_LIST)
    assert requests.is_simple
    assert requests == {b"1": RequestKind.TOOLS_LIST}
    assert requests.settle(b"1") is RequestKind.TOOLS_LIST
    assert requests.settle(b"1") is None
    assert requests == {}


@pytest.mark.parametrize("times", [2, 3, 5])
def test_each_of_two_requests_with_the_same_key_gets_a_response(times: int) -> None:
    requests = InFlight()
    for number in range(times):
        requests.note(b"1", RequestKind.OTHER)
        assert requests.is_simple is (number == 0)
    for number in range(times):
        assert requests.is_simple is (number == times - 1)
        assert requests.settle(b"1") is RequestKind.OTHER
    assert requests.settle(b"1") is None
    assert requests == {}
    assert requests.is_simple


def test_many_requests_are_noted_together_or_not_at_all() -> None:
    requests = InFlight()
    assert requests.note_all([b"1", b"2"])
    assert requests == {b"1": RequestKind.OTHER, b"2": RequestKind.OTHER}
    assert not requests.note_all([b"3", b"2"]), "one is there already"
    assert not requests.note_all([b"3", b"3"]), "twice among them"
    requests.cancel(b"4")
    assert not requests.note_all([b"3", b"4"]), "a late answer may come"
    assert requests == {b"1": RequestKind.OTHER, b"2": RequestKind.OTHER}


def test_many_responses_are_settled_together_or_not_at_all() -> None:
    requests = InFlight()
    requests.note_all([b"1", b"2"])
    requests.note(b"3", RequestKind.INITIALIZE)
    before = dict(requests)
    for block in (
        b'{"id":1,"result":{}}\n{"id":3,"result":{}}\n',
        b'{"id":1,"result":{}}\n{"id":4,"result":{}}\n',
        b'{"id":1,"result":{}}\n{"id":2,"method":"ping","result":{}}\n',
        b'{"id":1,"result":{}}\n{"id":"1","result":{}}\n',
        b'{"id":1,"result":{}}\n{"id":1e0,"result":{}}\n{"id":2,"result":{}}\n',
    ):
        assert not requests.settle_all(heads(block))
        assert requests == before
    assert requests.settle_all(heads(b'{"id":"1","result":{}}\n{"method":"x"}\n{"id":2,"error":{}}\n'))
    assert requests == {b"3": RequestKind.INITIALIZE}


def test_a_late_response_to_an_unjudged_request_passes_once() -> None:
    requests = InFlight()
    requests.note(b"9", RequestKind.OTHER)
    assert not requests.take_late_response(b"1")
    requests.cancel(b"1")
    assert requests.was_cancelled(b"1")
    assert not requests.is_blocked(b"1")
    assert requests.passes_unread(None)
    assert requests.take_late_response(b"1")
    assert not requests.take_late_response(b"1")
    assert not requests.was_cancelled(b"1")


@pytest.mark.parametrize("order", [("cancel", "bar"), ("bar", "cancel"), ("bar", "bar")])
def test_an_id_that_a_cancelled_judged_call_had_stays_barred(order: tuple[str, str]) -> None:
    requests = InFlight()
    requests.note(b"9", RequestKind.OTHER)
    for step in order:
        getattr(requests, step)(b"1")
    for _ in range(2):
        assert requests.is_blocked(b"1")
        assert not requests.passes_unread(None)
        assert not requests.take_late_response(b"1")
        assert not requests.note_all([b"1"]), "nobody gets it again"
        assert not requests.note_all([b"1", b"2"])


def test_the_number_of_remembered_cancelled_requests_is_limited_and_barred_ids_are_never_forgotten() -> None:
    requests = InFlight()
    requests.bar(b"judged")
    for number in range(5000):
        requests.cancel(b"%d" % number)
    kept = [number for number in range(5000) if requests.was_cancelled(b"%d" % number)]
    assert kept == list(range(5000 - 1024, 5000)), "the oldest are forgotten"
    for number in range(5000, 10_000):
        requests.bar(b"%d" % number)
    assert requests.is_blocked(b"judged")
    assert all(requests.is_blocked(b"%d" % number) for number in range(5000, 10_000))


@pytest.mark.parametrize("characters", [5, 100_000])
def test_there_is_room_for_so_many_barred_ids_and_no_more(characters: int) -> None:
    requests = InFlight()
    number = 0
    while requests.can_bar_more:
        requests.bar(b"%0*d" % (characters, number))
        number += 1
    assert number * (characters + 150) == pytest.approx(8 * 1024 * 1024, rel=0.02)
    requests.bar(b"%0*d" % (characters, 0))
    assert not requests.can_bar_more


def test_ids_that_never_repeat_need_not_be_barred() -> None:
    requests = InFlight()
    requests.ids_may_repeat = False
    for number in range(100):
        requests.note(b"%d" % number, RequestKind.OTHER)
        requests.settle(b"%d" % number)
        requests.bar(b"%d" % number)
        assert not requests.take_late_response(b"%d" % number), "it passes to nobody"
        assert requests.settle(b"%d" % number) is None
    assert requests.is_simple
    assert not requests._barred


def test_a_tool_call_of_a_hook_is_settled_once_and_blocks_only_until_then() -> None:
    requests = InFlight()
    requests.hook_tool_calls |= {b"h", b"i"}
    assert not requests.is_simple
    assert requests.is_blocked(b"h")
    assert requests.settle_hook_tool_call(b"h")
    assert not requests.settle_hook_tool_call(b"h")
    assert requests.hook_tool_calls == {b"i"}
    assert not requests.is_blocked(b"h")


def test_unanswered_requests_have_their_ids_as_they_were_spelled_but_released_calls_are_not_among_them() -> None:
    requests = InFlight()
    requests.note(b"1", RequestKind.OTHER)
    requests.note(b"2", RequestKind.OTHER, b'"2"')
    requests.note(b"3", RequestKind.OTHER, b"3")
    requests.note_released(b"4", b'"\\u0034"')
    assert requests.spelled == {b"2": b'"2"', b"4": b'"\\u0034"'}
    assert requests.released == {b"4": b'"\\u0034"'}
    assert requests.unanswered() == [b"1", b'"2"', b"3"]


@pytest.mark.parametrize("way", ["settle", "one", "all", "simple"])
def test_what_is_answered_is_forgotten_with_its_spelling(way: str) -> None:
    requests = InFlight()
    requests.note_released(b"1", b'"1"')
    requests.note_released(b"2", b'"2"')
    requests.note(b"3", RequestKind.OTHER)
    ways: dict[str, Callable[[], list[object]]] = {
        "settle": lambda: [requests.settle(b"1"), requests.settle(b"3")],
        "simple": lambda: [requests.settle_simple(b"1"), requests.settle_simple(b"3")],
        "one": lambda: [requests.settle_all(heads(b'{"id":%d,"result":{}}\n' % number)) for number in (1, 3)],
        "all": lambda: [requests.settle_all(heads(b'{"id":1,"result":{}}\n{"id":3,"result":{}}\n'))],
    }
    assert all(ways[way]())
    assert (set(requests), requests.spelled, requests.released) == ({b"2"}, {b"2": b'"2"'}, {b"2": b'"2"'})


@pytest.mark.parametrize("unusual", ["duplicate", "barred", "hook"])
def test_a_response_is_settled_the_simple_way_only_while_nothing_is_unusual(unusual: str) -> None:
    requests = InFlight()
    requests.note(b"1", RequestKind.OTHER)
    assert requests.settle_simple(b"1")
    requests.note(b"1", RequestKind.OTHER)
    if unusual == "duplicate":
        requests.note(b"1", RequestKind.OTHER)
    elif unusual == "barred":
        requests.bar(b"9")
    else:
        requests.hook_tool_calls.add(b"9")
    assert not requests.settle_simple(b"1")
    assert b"1" in requests


def test_a_response_passes_unread_only_to_a_request_that_was_not_judged_and_is_not_blocked() -> None:
    requests = InFlight()
    assert not requests.passes_unread(None)
    requests.note(b"1", RequestKind.OTHER)
    requests.note(b"2", RequestKind.OTHER)
    assert requests.passes_unread(b"1")
    assert requests.passes_unread(None)
    assert not requests.passes_unread(b"3")
    requests.bar(b"1")
    assert not requests.passes_unread(b"1")
    assert requests.passes_unread(b"2")
    assert not requests.passes_unread(None)
    requests.note_released(b"4", b"4")
    assert not requests.passes_unread(b"4")


def judged(key: bytes = b"7", *, spelled: bytes = b"7") -> Call:
    return Call(key, spelled, b"{}", "t", b"{}", {}, stateless=False, task=False)


def test_a_judged_call_that_is_released_unseen_becomes_a_request_like_others() -> None:
    requests = InFlight()
    calls = JudgedCalls(requests)
    call = calls[b"7"] = judged(spelled=b'"7"')
    assert calls.release(call, unseen=True)
    assert (call.phase, call.progress) == (Phase.FORWARDED, Progress.NO_RESPONSE)
    assert calls == {}
    assert (requests, requests.released) == ({b"7": RequestKind.OTHER}, {b"7": b'"7"'})
    assert not calls.release(call), "it is on its way"


def test_a_judged_call_that_is_sent_again_has_an_id_of_ours_and_no_response_yet() -> None:
    requests = InFlight()
    calls = JudgedCalls(requests)
    call = calls[b"7"] = judged()
    assert not calls.prepare_retry(call), "it has no response"
    assert calls.release(call)
    assert calls.awaits_response
    call.phase, call.progress, call.response_line = Phase.ANSWERED, Progress.ANSWERED, b"first"
    assert calls.prepare_retry(call)
    assert (call.phase, call.response_line, call.response) == (Phase.HELD, b"", None)
    assert calls == {b"7": call, call.sent_key: call}
    assert calls.release(call)
    assert call.progress is Progress.ANSWERED, "what it has reached is not forgotten"
    call.phase, first = Phase.ANSWERED, call.sent_key
    assert calls.prepare_retry(call)
    assert calls == {b"7": call, call.sent_key: call}
    assert call.sent_key != first
    assert calls.finish(call)
    assert not calls.finish(call)
    assert calls == {}


@pytest.mark.parametrize("phase", Phase)
def test_the_id_of_a_cancelled_call_is_barred_if_the_server_has_the_call(phase: Phase) -> None:
    requests = InFlight()
    calls = JudgedCalls(requests)
    call = calls[b"7"] = judged()
    call.phase = phase
    has_it = phase in (Phase.FORWARDED, Phase.ANSWERED)
    assert calls.cancel(call) is has_it
    assert requests.is_blocked(b"7") is has_it
    assert call.phase is Phase.CANCELLED
    assert calls == {}


def test_requests_that_pass_the_fast_way_are_counted() -> None:
    requests = InFlight()
    assert requests.unjudged_calls == 0
    assert requests.note_one(b"1")
    assert requests.note_one(b"2")
    assert not requests.note_one(b"2")
    assert requests.unjudged_calls == 2
    assert requests.note_all([b"3", b"4", b"5"])
    assert not requests.note_all([b"5", b"6"])
    assert requests.unjudged_calls == 5
