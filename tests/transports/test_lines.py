"""A byte stream cut into lines at line feeds and nothing else, whatever the pieces it comes in."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.protocol.fast_scan import response_id
from hookproxy.transports.lines import Lines, StreamedLine, TooLong

LIMIT: Final = 1024
RESPONSE: Final = b'{"jsonrpc":"2.0","id":7,"result":{"x":"%b"}}\n'


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({at % (len(stream) + 1) for at in cuts})
    return [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]


def test_one_byte_at_a_time_makes_the_same_lines() -> None:
    stream = RESPONSE % b"a" + b"\r\n" + RESPONSE % b"b"
    lines = Lines(LIMIT, response_id)
    assert b"".join(lines.feed(stream[at : at + 1]) for at in range(len(stream))) == stream


@pytest.mark.parametrize(
    "line",
    [
        RESPONSE % (b"x" * 5000),
        b'{"id":7,"result":"%b"}\n' % (b"x" * 5000),
        b'{ "jsonrpc" : "2.0" , "id" : 7 , "error" : "%b"}\n' % (b"x" * 5000),
        b'{"result":{"x":"%b"},"jsonrpc":"2.0","id":7}\n' % (b"x" * 5000),
        b'{"jsonrpc":"2.0","result":{"x":"%b"},"id":7}\r\n' % (b"x" * 5000),
        b'{"result":{"x":"%b"},"id":7,"jsonrpc":"2.0"}\n' % (b"x" * 5000),
    ],
)
def test_the_id_of_a_too_long_response_is_found_wherever_servers_write_it(line: bytes) -> None:
    lines = Lines(LIMIT, response_id)
    for piece in cut(line, list(range(0, len(line), 700))):
        assert lines.feed(piece) == b""
    assert lines.lost == [TooLong(b"7", len(line))]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"x","params":{"id":7,"result":"%b"}}\n',
        b'{"method":"x","params":{"a":"%b","b":{"id":7}}}\n',
        b'{"a":"%b","b":[{"id":7}]}\n',
        b'{"result":"%b","ids":7}\n',
        b'{"result":"%b,\\"id\\":7}"}\n',
        b'noise %b {"id":7}}\n',
    ],
)
def test_an_id_inside_a_message_is_not_taken_for_its_own(line: bytes) -> None:
    whole = line % (b"x" * 2000)
    assert response_id(whole[:512], whole[-512:]) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"method":"sampling/createMessage","params":{"x":"%b"},"jsonrpc":"2.0","id":7}\n',
        b'{"method":"sampling/createMessage","params":{"x":"%b"},"id":7}\n',
        b'{"jsonrpc":"2.0","method":"elicitation/create","params":{"x":"%b"},"id":7}\n',
        b'{"id":7,"jsonrpc":"2.0","method":"sampling/createMessage","params":{"x":"%b"}}\n',
    ],
)
def test_the_id_of_a_request_is_not_taken_for_that_of_a_response(line: bytes) -> None:
    """Both sides number their requests from the same start."""
    whole = line % (b"x" * 2000)
    streamed = StreamedLine(True, whole[:700])
    assert streamed.add(whole[:700]) + streamed.add(whole[700:]) + streamed.take() == whole
    assert streamed.id is None
    assert streamed.clear_id() == b""


def test_memory_is_bounded_by_the_limit_however_long_a_line_is() -> None:
    lines = Lines(LIMIT, response_id)
    for _ in range(1000):
        assert lines.feed(b"x" * 500) == b""
        assert sum(map(len, lines._parts)) <= LIMIT + 500
    assert lines.begun == 500_000
    assert lines.head == b""
    assert lines.take() == b"", "half of it would be another message"
    assert lines.feed(b"ab\n") == b"ab\n"


def test_the_rest_of_a_too_long_line_is_dropped_too() -> None:
    lines = Lines(LIMIT, response_id)
    lines.feed(b"x" * 2000)
    assert lines.feed(b"yyy\nshort\nbeg") == b"short\n"
    assert lines.feed(b"un\n") == b"begun\n"
    assert [lost.size for lost in lines.lost] == [2004]


def test_the_size_and_the_head_of_the_unfinished_line_are_known() -> None:
    lines = Lines(LIMIT, response_id)
    assert (lines.begun, lines.head) == (0, b"")
    lines.feed(b'x\n{"a"')
    assert (lines.begun, lines.head) == (4, b'{"a"')
    assert lines.take() == b'{"a"'
    lines.feed(b"[")
    assert lines.head == b"["


@pytest.mark.parametrize("size", [600, 100_000])
@pytest.mark.parametrize("shape", [RESPONSE, b'{"result":{"x":"%b"},"jsonrpc":"2.0","id":7}\n'])
def test_the_id_of_a_streamed_line_is_known_at_its_end(size: int, shape: bytes) -> None:
    line = shape % (b"x" * size)
    streamed = StreamedLine(True, line[:550])
    passed = streamed.add(line[:550])
    for at in range(550, len(line), 3):
        passed += streamed.add(line[at : at + 3])
        assert line.startswith(passed)
        assert len(passed) > min(at, len(line) - 40) - 3, "only the end is kept back"
    assert passed + streamed.take() == line
    assert (streamed.id, streamed.clear_id()) == (b"7", b"7")
