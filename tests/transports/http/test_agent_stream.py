"""One response: what is an event, and what the id of an event is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http.agent_stream import MAX_KEPT_BYTES, AgentStream, stream_and_event
from hookproxy.transports.http.responder import HeaderLines, Headers, Responder
from hookproxy.transports.http.sse import EventReader


class _Responder(Responder):
    """A responder without a connection, that notes what is sent."""

    def __init__(self) -> None:
        self.body = b""

    @property
    def is_open(self) -> bool:
        return True

    def start(
        self,
        status: int,
        headers: Headers | HeaderLines = (),
        piece: bytes = b"",
        length: int | None = None,
        *,
        is_stream: bool = False,
    ) -> None:
        self.body += piece

    def write(self, piece: bytes) -> None:
        self.body += piece

    def end(self, piece: bytes = b"") -> None:
        self.body += piece


def kept(responder: _Responder) -> list[bytes]:
    """The data of all events, as a reader of server-sent events sees them."""
    found = EventReader(MAX_KEPT_BYTES * 4).feed(responder.body)
    return [bytes(one.data) for one in found if one.data]  # type: ignore[union-attr]  # none is too long


@given(st.lists(st.text(st.sampled_from("a\r\u2028\u0085 :\t"), min_size=1), min_size=1, max_size=5))
def test_whatever_a_line_contains_it_is_one_event(texts: list[str]) -> None:
    responder = _Responder()
    stream = AgentStream(responder, number=1)
    for text in texts:
        stream.send(b'{"x":' + text.encode() + b"}\n")
    assert len(kept(responder)) == len(texts)


def test_an_event_is_kept_until_more_bytes_than_allowed_have_come() -> None:
    stream = AgentStream(_Responder(), number=1)
    for number in range(10):
        stream.send(b"%d" % number + b"x" * (MAX_KEPT_BYTES // 4))
    assert stream.kept_bytes <= MAX_KEPT_BYTES
    stream.lose()
    again = _Responder()
    stream.resume(again, 0)
    assert [one[:1] for one in kept(again)] == [b"7", b"8", b"9"]


def test_a_stream_without_a_number_keeps_nothing_and_cannot_be_resumed() -> None:
    stream = AgentStream(_Responder())
    stream.send(b"{}")
    assert stream.kept_bytes == 0
    assert not stream.can_resume


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (b"3-14", (3, 14)),
        (b"3", None),
        (b"-3", None),
        (b"3-", None),
        (b"a-b", None),
        (b"1-1-1", None),
        (b"9" * 41, None),
    ],
)
def test_the_id_of_an_event(text: bytes, numbers: tuple[int, int] | None) -> None:
    assert stream_and_event(text) == numbers
