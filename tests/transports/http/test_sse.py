"""The reader of server-sent events, compared with the standard's algorithm, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http.sse import Event, EventReader, LongEvent, PassedEvent

LIMIT = 1 << 20


def read(stream: bytes, *cuts: int, limit: int = LIMIT) -> tuple[list[Event | LongEvent | PassedEvent], EventReader]:
    reader = EventReader(limit)
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    events = [event for start, end in pairwise(edges) for event in reader.feed(stream[start:end])]
    return events, reader


def model(stream: bytes) -> tuple[list[Event], bytes, float | None]:
    """The standard's algorithm, word for word: HTML, section 9.2.6, "Interpreting an event stream"."""
    text = stream.decode("latin-1").removeprefix("\xef\xbb\xbf").replace("\r\n", "\n").replace("\r", "\n")
    events: list[Event] = []
    data, kind, last_id, id_buffer, retry = "", "", "", "", None
    for line in text.split("\n")[:-1]:
        if not line:
            last_id = id_buffer
            if data:
                events.append(
                    Event(data.removesuffix("\n").replace("\n", " ").encode("latin-1"), kind.encode("latin-1"))
                )
            data, kind = "", ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data += value + "\n"
        elif name == "id" and "\0" not in value:
            id_buffer = value
        elif name == "retry" and value.isascii() and value.isdigit():
            retry = int(value) / 1000
    return events, last_id.encode("latin-1"), retry


FIELDS = [
    "data: {}",
    "data:",
    "data",
    "data:  a",
    "data:x\u00e9",
    ":",
    ": keep-alive",
    "",
    "",
    "event: message",
    "event:x",
]
OTHERS = [
    "id: 7",
    "id",
    "id: a\0b",
    "retry: 20",
    "retry: x",
    "retry:",
    " data: no",
    "dataX: no",
    "data : no",
    "\ufeffdata: y",
]
LINES = st.sampled_from(FIELDS) | st.sampled_from(OTHERS)
STREAMS = st.builds(
    lambda lines, bom: (b"\xef\xbb\xbf" if bom else b"") + "".join(f"{line}{end}" for line, end in lines).encode(),
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r", "\r\n"])), max_size=20),
    st.booleans(),
)


@given(STREAMS | st.binary(max_size=60), st.lists(st.integers(min_value=0), max_size=20))
def test_every_stream_is_read_as_the_standard_says_however_it_is_cut(stream: bytes, cuts: list[int]) -> None:
    events, reader = read(stream, *cuts)
    expected, last_id, retry = model(stream)
    # the model knows only whole lines; a CR at the end of the stream may be half of a CRLF, and ends a line either way
    assert events == expected
    assert reader.last_id == last_id
    assert reader.retry == retry


def test_an_event_of_one_byte_pieces_is_the_same_event() -> None:
    stream = b'id: 1\r\nevent: message\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
    assert read(stream, *range(len(stream)))[0] == [Event(b'{"a": 1}', b"message")]


def test_a_large_event_in_many_pieces_is_whole() -> None:
    data = b'"' + b"x" * 500_000 + b'"'
    stream = b"data: " + data + b"\n\n"
    assert read(stream, *range(0, len(stream), 777))[0] == [Event(data)]


@given(st.lists(st.integers(min_value=0), max_size=10), st.booleans())
def test_an_event_over_the_limit_is_dropped_with_both_ends_kept_and_the_next_is_read(
    cuts: list[int], lines: bool
) -> None:
    head, tail = b'{"jsonrpc":"2.0","id":7,"result":"', b'"}'
    filling = b"\ndata: ".join([b"x" * 3000] * 10) if lines else b"x" * 30_000
    stream = b"data: " + head + filling + tail + b"\n\ndata: {}\n\n"
    events, reader = read(stream, *cuts, limit=8192)
    assert isinstance(events[0], LongEvent)
    assert events[0].head.startswith(head)
    assert events[0].tail.endswith(tail)
    assert events[0].size > 30_000
    assert events[1:] == [Event(b"{}")]
    assert reader.kept < 8192


@given(st.lists(st.integers(min_value=0), max_size=10))
def test_an_endless_comment_takes_no_memory_and_hides_no_event(cuts: list[int]) -> None:
    stream = b"data: 1\n:" + b"x" * 50_000 + b"\ndata: 2\n\n"
    events, _ = read(stream, *cuts, limit=4096)
    assert events == [Event(b"1 2")]


def test_many_tiny_data_lines_take_no_more_memory_than_the_limit() -> None:
    reader = EventReader(4096)
    for _ in range(10_000):
        assert not reader.feed(b"data:x\n")
    assert reader.kept <= 4096
    (event,) = reader.feed(b"\n")
    assert isinstance(event, LongEvent)


def test_an_unfinished_event_is_dropped() -> None:
    assert read(b"data: {}\n")[0] == []


def test_an_id_that_would_be_a_header_of_its_own_size_is_not_kept() -> None:
    _, reader = read(b"id: " + b"x" * 100_000 + b"\ndata: 1\n\n")
    assert reader.last_id == b""


_TEXT = st.text("ab {:é", max_size=30).map(str.encode)
_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(_TEXT, st.lists(_TEXT, max_size=2), _ENDS, st.lists(st.integers(0, 200), max_size=8), st.integers(1, 60))
def test_a_message_that_is_passed_on_while_it_comes_has_the_same_bytes(
    first: bytes, more: list[bytes], end: bytes, cuts: list[int], from_bytes: int
) -> None:
    lines = [b"id: 1", b"data: x" + first, *(b"data: " + one for one in more), b"", b"data: next", b"", b""]
    stream = end.join(lines)
    whole, reader = read(stream)
    passed: list[bytes] = []
    found: list[Event | LongEvent | PassedEvent] = []
    passing = EventReader(LIMIT)
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    began = False
    for start, stop in pairwise(edges):
        found += passing.feed(stream[start:stop])
        if not began and not found and len(passing.unfinished_message) >= from_bytes:
            began = True
            passing.pass_on(passed.append)
    assert isinstance(whole[0], Event)
    if began:
        assert (b"".join(passed), found[0]) == (whole[0].data, PassedEvent())
    assert found[1 if began else 0 :] == whole[1 if began else 0 :]
    assert passing.last_id == reader.last_id
