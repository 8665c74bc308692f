"""Requests in flight that no hook judges: each response ends one, and late responses differ from unexpected ones."""

from __future__ import annotations

import pytest

from hookproxy.protocol import fast_scan
from hookproxy.protocol.calls import id_key
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
    requests.cancel(b"4", late_response_passes=True)
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
        assert not requests.settle_all(heads(block), id_key)
        assert requests == before
    assert requests.settle_all(heads(b'{"id":"1","result":{}}\n{"method":"x"}\n{"id":2,"error":{}}\n'), id_key)
    assert requests == {b"3": RequestKind.INITIALIZE}


def test_a_late_response_to_an_unjudged_request_passes_once() -> None:
    requests = InFlight()
    requests.note(b"9", RequestKind.OTHER)
    assert not requests.take_late_response(b"1")
    requests.cancel(b"1", late_response_passes=True)
    assert requests.was_cancelled(b"1")
    assert not requests.is_blocked(b"1")
    assert requests.passes_unread(None)
    assert requests.take_late_response(b"1")
    assert not requests.take_late_response(b"1")
    assert not requests.was_cancelled(b"1")


@pytest.mark.parametrize("order", [(True, False), (False, True), (False, False)])
def test_a_key_that_a_judged_call_blocks_stays_blocked_for_other_requests_with_it(order: tuple[bool, bool]) -> None:
    requests = InFlight()
    requests.note(b"9", RequestKind.OTHER)
    for passes in order:
        requests.cancel(b"1", late_response_passes=passes)
    assert requests.is_blocked(b"1")
    assert not requests.passes_unread(None)
    assert not requests.take_late_response(b"1")
    assert not requests.is_blocked(b"1")
    assert requests.passes_unread(None)


def test_the_number_of_remembered_cancelled_requests_is_limited_and_blocked_keys_go_last() -> None:
    requests = InFlight()
    requests.cancel(b"judged", late_response_passes=False)
    for number in range(5000):
        requests.cancel(b"%d" % number, late_response_passes=True)
    kept = [number for number in range(5000) if requests.was_cancelled(b"%d" % number)]
    assert kept == list(range(5000 - 1023, 5000)), "the oldest are forgotten"
    assert requests.is_blocked(b"judged")
    for number in range(5000, 10_000):
        requests.cancel(b"%d" % number, late_response_passes=False)
    assert sum(requests.was_cancelled(b"%d" % number) for number in range(10_000)) == 1024
    assert not requests.was_cancelled(b"judged")
