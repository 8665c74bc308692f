"""Requests in flight that no hook judges: each response ends one, and late responses differ from unexpected ones."""

from __future__ import annotations

import pytest

from hookproxy.protocol import fast_scan
from hookproxy.protocol.inflight import InFlight, RequestKind


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
