"""What of a long message is refused before anybody reads it."""

from __future__ import annotations

import json

import pytest

from hookproxy.jsonrpc.survey import MAX_MEMBERS, MAX_NAME_BYTES, MAX_VALUES, why_unreadable


def message(**params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}).encode()


@pytest.mark.parametrize(
    "text",
    [
        message(),
        message(arguments={f"k{number}": 1 for number in range(2 * MAX_MEMBERS)}),
        message(arguments={"a": [1] * 100_000}),
        message(_meta={"a": 1}),
        message(name="x" * (MAX_NAME_BYTES - 2), arguments={"id": "x" * (2 * MAX_NAME_BYTES)}),
        b"[" + message() + b"," + message() + b"]",
        b' {"a" : "\\ud800"}\n',
        '{"a":"é"}'.encode(),
    ],
)
def test_a_message_that_can_be_read_passes(text: bytes) -> None:
    assert why_unreadable(text, 128) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"1", "It is not a JSON object"),
        (b"", "It is not a JSON object"),
        (b"[" * 1000, "It is nested deeper than 128 levels"),
        (b'{"a":' + b"[" * 128, "It is nested deeper than 128 levels"),
        (b"{" + b'"a":1,' * (MAX_VALUES + 1), f"It has more than {MAX_VALUES} JSON values"),
        (b"][" * 1000, "It is not a JSON object"),
        (b"[" + b"][" * 1000, "It is not JSON that can be read"),
        (b'{"a":1,"a":2}', "It has a key twice in one object"),
        (b'{"params":{"a":1,"a":2}}', "It has a key twice in one object"),
        (b'{"params":{"_meta":{"a":1,"a":2}}}', "It has a key twice in one object"),
        (b'{"a":"\xff"}', "It is not JSON that can be read"),
        (b'{"a":1', "It is not JSON that can be read"),
        (b'{"a":1}x', "It is not JSON that can be read"),
        (message(**{f"k{number}": 1 for number in range(MAX_MEMBERS + 1)}), f"more than {MAX_MEMBERS} members"),
        (message(_meta={f"k{number}": 1 for number in range(MAX_MEMBERS + 1)}), f"more than {MAX_MEMBERS} members"),
        (json.dumps({f"k{number}": 1 for number in range(MAX_MEMBERS + 1)}).encode(), f"more than {MAX_MEMBERS} mem"),
        (b'{"id":%b}' % (b"1" * (MAX_NAME_BYTES + 1)), f"Its id has more than {MAX_NAME_BYTES} bytes"),
        (b'{"method":"%b"}' % (b"x" * MAX_NAME_BYTES), f"Its method has more than {MAX_NAME_BYTES} bytes"),
        (message(name="x" * MAX_NAME_BYTES), f"Its name has more than {MAX_NAME_BYTES} bytes"),
        (message(requestId="x" * MAX_NAME_BYTES), f"Its requestId has more than {MAX_NAME_BYTES} bytes"),
        (message(_meta={"progressToken": "x" * MAX_NAME_BYTES}), "Its progressToken has more than"),
        (b"[" + b"{}," * MAX_MEMBERS + b"{}]", f"It is a batch of more than {MAX_MEMBERS} messages"),
    ],
)
def test_what_nobody_needs_to_read_is_refused(text: bytes, why: str) -> None:
    assert why in why_unreadable(text, 128)
