"""Random answers and calls with members too many, too few and twice: what is read is what every reader reads."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from hookproxy import calls, wire
from hookproxy.wire import TwinKeys, Unreadable
from tests.random.documents import Pairs, members_of, read
from tests.spellings import calls_seen

MEMBERS: Final = (
    '"jsonrpc":"2.0"',
    '"jsonrpc":""',
    '"jsonrpc":"1"',
    '"id":7',
    '"id":7',
    '"id":8888',
    '"id":88888',
    '"id":"7"',
    '"result":{"a":1}',
    '"result":{"a":1}',
    '"result":{"a":1,"a":2}',
    '"result":{"a":{"b":1,"b":2}}',
    '"result":{}',
    '"result":1',
    '"error":{}',
    '"error":1',
    '"error":{"code":1}',
    '"x":1',
    '"\\u0069d":7',
    '"ID":7',
)


@st.composite
def envelopes(draw: st.DrawFn, members: tuple[str, ...]) -> bytes:
    chosen = draw(st.lists(st.sampled_from(members), max_size=5))
    comma, end = draw(st.sampled_from(((",", ""), (", ", ""), (",", " "), (" ,", "\r"))))
    return ("{" + comma.join(chosen) + "}" + end + "\n").encode()


@settings(max_examples=500)
@given(envelopes(MEMBERS))
def test_an_answer_that_is_read_has_nothing_twice_and_says_one_thing(line: bytes) -> None:
    try:
        found = calls.read_answer(line)
    except (Unreadable, TwinKeys):
        return
    keys = [key for key, _ in members_of(line)]
    assert len(set(keys)) == len(keys)
    if found is None:
        return
    raw_id, said = found
    assert read(raw_id) == dict(members_of(line))["id"]
    assert not {"result", "error"} <= set(keys)
    assert (said.result is None) == ("result" not in keys)
    result = dict(members_of(line)).get("result")
    if isinstance(result, Pairs):
        assert said.result is not None
        assert [(key, read(bytes(raw))) for key, raw in said.result.items()] == list(result)


CALL_MEMBERS: Final = (
    '"jsonrpc":"2.0"',
    '"id":7',
    '"id":7.0',
    '"method":"tools/call"',
    '"method":"tools/call"',
    '"method":"ping"',
    '"\\u006dethod":"tools/call"',
    '"Method":"tools/call"',
    '"params":{"name":"danger"}',
    '"params":{"name":"danger","arguments":{"a":1}}',
    '"params":{"name":"safe","name":"danger"}',
    '"params":{"name":"safe"}',
    '"params":["danger"]',
    '"Params":{"name":"danger"}',
    '"x": {"z": 0, "id": 1, "method": "ping", "params": 1}',
    '"x":1',
    '"result":{}',
)


@settings(max_examples=500)
@given(envelopes(CALL_MEMBERS))
def test_a_call_that_some_reader_sees_is_a_call_or_cannot_be_read(line: bytes) -> None:
    if not calls_seen(line):
        return
    try:
        members = wire.fields(line)
        calls.check_spelling(members)
        assert calls.method(members) == calls.METHOD
        assert calls.read(members).tool == "danger"
    except (Unreadable, TwinKeys):
        return
