"""Read a response so that no agent can read it differently than hooks do."""

from __future__ import annotations

import pytest

from hookproxy.jsonrpc.raw_json import Unreadable
from hookproxy.protocol import responses
from hookproxy.protocol.responses import ResponseFrame

DEEP = b"[" * 1_000_000 + b"]" * 1_000_000


def response_in(line: bytes, closely: bool = True) -> ResponseFrame:
    found = responses.read(line, closely=closely)
    assert found is not None
    return found


@pytest.mark.parametrize("closely", [True, False])
def test_responses_are_distinguished_from_other_messages(closely: bool) -> None:
    for line in (
        b'{"method":"x"}',
        b'{"id":1,"method":"ping"}',
        b'{ "id" : 1, "method" : "ping" }\n',
        b'{"jsonrpc":"2.0"}',
    ):
        assert responses.read(line, closely=closely) is None
    for line in (b'{"result":{}}', b'{ "error" : {"code":1} }'):
        assert response_in(line, closely).id == b"null", "readers take it for a response to nothing"
    for line in (b'{"id":7,"result":{}}', b'{ "method":"x", "error":1, "id" : 7 }', b'{"id":7}'):
        found = response_in(line, closely)
        assert (found.id, found.certain) == (b"7", True)


def test_only_a_close_reading_returns_the_content() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":{"content":[1]}}\n'
    assert response_in(line, closely=False) == ResponseFrame(b"7")
    found = response_in(line)
    assert (found.id, found.certain) == (b"7", True)
    assert found.response is not None
    assert found.response.result is not None
    assert found.response.error is None
    assert bytes(found.response.result["content"]) == b"[1]"


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":7,"result":{"a":1,"a":2}}',
        b'{"id":7,"result":{},"error":{}}',
        b'{"id":7,"result":{"a":1},"error":{}}\n',
        b'{"id":7,"error":{},"result":{"a":1}}\n',
        b'{"jsonrpc":"2.0","id":7,"result":{"a":1},"error":{}}\n',
        b'{ "id": 7, "result": {"a":1,"\\u0061":2} }',
    ],
)
def test_an_ambiguous_response_has_no_content(line: bytes) -> None:
    found = response_in(line)
    assert (found.id, found.response, found.certain) == (b"7", None, True)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":7,"result":{"a":1},"result":{"a":1}}',
        b'{"id":7,"id":7,"result":{}}',
        b'{"id":77777,"id":7,"result":{"a":1}}\n',
        b'{"id":7,"result":{"a":1},"id":77777}\n',
        b'{"jsonrpc":"2.0","id":7,"result":{"a":1},"result":{"a":1}}\n',
        b'{"result": 1,"id":1,"x":1,"y":11,"result":{"z": 0, "id": 1, "x": 1, "y": 1}}',
        b'{"id":7,"method":"ping","method":"x"}',
        b'{"ID":7,"result":{"a":1}}',
        b'{"id":7,"Result":{"a":1},"method":"ping"}',
        b'{"id":7,"e\\u0052ror":{}}',
    ],
)
def test_a_line_that_only_some_readers_take_for_a_response_is_not_certain(line: bytes) -> None:
    found = response_in(line)
    assert (found.response, found.certain) == (None, False)


@pytest.mark.parametrize(
    "line",
    [
        b'{"method":"x","params":1,"params":2}',
        b'{"jsonrpc":"2.0","jsonrpc":"2.0","ID":7,"result":{}}',
        b'{"jsonrpc":"2.0","id\\u0000":7,"result":{}}',
        b'{"jsonrpc":"2.0","id\xff":7,"result":{}}',
        b'{"method":"x","params":"\xff"}',
    ],
)
def test_a_line_that_cannot_be_read_closely_is_not_certain_whatever_it_is(line: bytes) -> None:
    assert response_in(line).certain is False


@pytest.mark.parametrize(
    ("line", "result", "error"),
    [
        (b'{"id":"x","result":{"a":1},"jsonrpc":"2.0"}\n', {"a": b"1"}, None),
        (b'{"id": 7, "result": {"a": 1}}', {"a": b"1"}, None),
        (b'{"id":7,"result":{}}', {}, None),
        (b'{"id":7,"result":[1]}', {}, None),
        (b'{"id":7,"error":{"code":1}}', None, b'{"code":1}'),
        (b'{"id":7}', None, b""),
    ],
)
def test_a_response_has_a_result_or_an_error(line: bytes, result: dict[str, bytes] | None, error: bytes | None) -> None:
    response = response_in(line).response
    assert response is not None
    assert (None if response.result is None else {key: bytes(raw) for key, raw in response.result.items()}) == result
    assert (None if response.error is None else bytes(response.error)) == error


@pytest.mark.parametrize("closely", [True, False])
@pytest.mark.parametrize("line", [b"{", b"{}}", b'{"id":7,"result":{}', b'{"id":7,"result":{}} x', b'{"id":NaN}'])
def test_text_that_is_not_json_is_unreadable(line: bytes, closely: bool) -> None:
    with pytest.raises(Unreadable):
        responses.read(line, closely=closely)


def test_text_that_is_not_utf_8_is_not_certain_to_a_close_reading() -> None:
    found = responses.read(b'{"id":7,"result":{"a":"\xff"}}', closely=True)
    assert found == ResponseFrame(b"7", response=None, certain=False)


@pytest.mark.parametrize("closely", [True, False])
@pytest.mark.parametrize("line", [b'{"id":7,"result":%b}', b'{"jsonrpc":"2.0","result":{"a":%b},"id":7}\n'])
def test_the_id_of_a_response_is_read_at_any_depth_of_nesting(line: bytes, closely: bool) -> None:
    found = response_in(line % DEEP, closely)
    assert (found.id, found.response, found.certain) == (b"7", None, True)


@pytest.mark.parametrize("closely", [True, False])
def test_half_of_a_surrogate_pair_does_not_hide_a_response(closely: bool) -> None:
    found = response_in(b'{"id":7,"result":{"a":"\\ud800"}}', closely)
    assert (found.id, found.certain) == (b"7", True)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{}}\n', True),
        (b'{ "id": 7, "error": {} }', True),
        (b'{"id":7,"result":{},"method":"ping"}', False),
        (b'{"id":7,"result":{},"Method":"ping"}', False),
        (b'{"id":7,"result":{},"params":{}}', False),
    ],
)
def test_a_line_that_is_only_a_response_is_marked(line: bytes, plain: bool) -> None:
    reply = responses.read(line, closely=True)
    assert reply is not None
    assert reply.nothing_else is plain
