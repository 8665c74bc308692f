"""Random streams cut anywhere: every byte comes out in order, in whole lines, within the limit."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.protocol.fast_scan import response_id
from hookproxy.transports.lines import Lines, StreamedLine, split_line

LIMIT: Final = 1024
ANSWER: Final = b'{"jsonrpc":"2.0","id":7,"result":{"x":"%b"}}\n'


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({at % (len(stream) + 1) for at in cuts})
    return [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]


@given(
    st.lists(st.binary(max_size=30).map(lambda one: one.replace(b"\n", b"\r")), max_size=8),
    st.binary(max_size=20).map(lambda one: one.replace(b"\n", b"\x0b")),
    st.lists(st.integers(0, 400), max_size=12),
)
def test_every_byte_is_read_in_order_and_only_in_whole_lines(whole: list[bytes], tail: bytes, cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in whole) + tail
    lines = Lines(LIMIT, response_id)
    blocks = [lines.feed(piece) for piece in cut(stream, cuts)]
    assert all(block == b"" or block.endswith(b"\n") for block in blocks)
    assert lines.begun == len(tail)
    assert b"".join(blocks) + lines.take() == stream
    assert lines.lost == []
    assert lines.begun == 0


@given(
    st.lists(st.integers(0, 2200), min_size=1, max_size=6),
    st.lists(st.integers(0, 8000), max_size=40),
)
def test_lines_beyond_the_limit_are_reported_and_the_others_arrive_whole(sizes: list[int], cuts: list[int]) -> None:
    stream = b"".join(b"x" * size + b"\n" for size in sizes)
    lines = Lines(LIMIT, response_id)
    pieces = [part for piece in cut(stream, cuts) for part in cut(piece, list(range(0, len(piece), 500)))]
    came = b"".join(map(lines.feed, pieces)).split(b"\n")[:-1]
    assert [lost.size for lost in lines.lost] == [size + 1 for size in sizes if size + 1 > LIMIT]
    assert [len(line) for line in came] == [size for size in sizes if size + 1 <= LIMIT]
    assert lines.begun == 0


@given(st.integers(1, 3000), st.lists(st.integers(0, 6000), max_size=10), st.sampled_from((b"", b"next\n", b"n")))
def test_a_long_line_passes_in_pieces_to_its_end_and_no_further(length: int, cuts: list[int], after: bytes) -> None:
    line = ANSWER % (b"x" * length)
    head, rest = line[:40], line[40:] + after
    streamed = StreamedLine(True, head)
    passed = streamed.add(head)
    pieces = [piece for piece in cut(rest, cuts) if piece]
    for number, piece in enumerate(pieces):
        part, left, ended = split_line(piece)
        passed += streamed.add(part, hold=number % 3 == 2)
        if ended:
            passed += streamed.take()
            assert left + b"".join(pieces[number + 1 :]) == after
            break
        assert left == b""
    assert passed == line
    assert streamed.clear_id() == streamed.id
