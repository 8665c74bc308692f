"""Random responses with additional, missing and duplicate members: what is read is what every reader reads."""

from __future__ import annotations

from typing import Final

from hypothesis import given

from hookproxy.protocol import responses
from tests.random.documents import Pairs, envelopes, members_of, read
from tests.support.examples import examples

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


@examples(150)
@given(envelopes(MEMBERS))
def test_a_response_that_is_read_has_no_duplicate_keys_and_one_meaning(line: bytes) -> None:
    found = responses.read(line, closely=True)  # what it is given is JSON
    keys = [key for key, _ in members_of(line)]
    duplicates = len(set(keys)) < len(keys)
    if found is None:
        assert not {"id", "result", "error"} & set(keys)
        return
    if not found.certain:
        assert found.response is None
        assert duplicates or "ID" in keys
        return
    assert not duplicates
    assert read(found.id) == dict(members_of(line)).get("id"), "without an id, readers take it for null"
    response = found.response
    result = dict(members_of(line)).get("result")
    if response is None:
        inner = [key for key, _ in result] if isinstance(result, Pairs) else []
        assert {"result", "error"} <= set(keys) or len(set(inner)) < len(inner)
        return
    assert not {"result", "error"} <= set(keys)
    assert (response.result is None) == ("result" not in keys)
    assert (response.error is None) == ("result" in keys)
    assert bool(response.error) == ("error" in keys), "a response without content"
    if isinstance(result, Pairs):
        assert response.result is not None
        assert [(key, read(bytes(raw))) for key, raw in response.result.items()] == list(result)
    if response.error:
        assert read(bytes(response.error)) == dict(members_of(line))["error"]


@examples(150)
@given(envelopes(MEMBERS))
def test_both_readings_agree_on_the_id_of_a_response(line: bytes) -> None:
    closely, briefly = responses.read(line, closely=True), responses.read(line, closely=False)
    if closely is not None and closely.certain:
        assert briefly is not None
        assert briefly.id == closely.id
    if closely is None:
        assert briefly is None
