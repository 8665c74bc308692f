"""What a connection to the gateway's socket says first, and what is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.gateway import preamble
from hookproxy.gateway.preamble import MAX_BYTES, NotAPreamble, Preamble


def test_a_preamble_names_a_server_a_folder_and_whether_pipes_are_wanted() -> None:
    assert preamble.read(b"hookproxy 1\nserver git\n\n") == Preamble("git")
    assert preamble.read(b"hookproxy 1\nserver git\ncwd /a b\npipes\n\n") == Preamble("git", "/a b", True)


def test_a_folder_that_is_not_utf_8_is_text_all_the_same() -> None:
    assert preamble.read(b"hookproxy 1\nserver git\ncwd /\xff\n\n").cwd == "/\ufffd"


@pytest.mark.parametrize(
    ("received", "said"),
    [
        (b"hookproxy 2\nserver a\n\n", "does not fit"),
        (b"hookproxy 1 \nserver a\n\n", "does not fit"),
        (b"hookproxy 1\n\n", "which server"),
        (b"hookproxy 1\nserver \xff\n\n", "which server"),
        (b"hookproxy 1\nserver a\nserver b\n\n", "says twice 'server'"),
        (b"hookproxy 1\nserver a\ncwd /\ncwd /\n\n", "says twice 'cwd'"),
        (b"hookproxy 1\nserver a\nuid 0\n\n", "does not know 'uid'"),
        (b"hookproxy 1\nServer a\n\n", "does not know 'Server'"),
        (b"hookproxy 1\n\x1b[2K x\n\n", r"does not know '\\x1b\[2K'"),
        ("hookproxy 1\n\u2028 x\n\n".encode(), r"does not know '\\u2028'"),
    ],
)
def test_anything_else_is_refused_with_a_word(received: bytes, said: str) -> None:
    with pytest.raises(NotAPreamble, match=said):
        preamble.read(received)


def test_its_end_is_an_empty_line() -> None:
    whole = b"hookproxy 1\nserver git\n\n"
    for size in range(len(whole)):
        assert preamble.end_of(whole[:size]) == -1
    assert preamble.end_of(whole) == preamble.end_of(whole + b"{}\n\n") == len(whole)


@pytest.mark.parametrize("received", [b"G", b"{", b"hookproxy 2", b"hookproxy 1\n" + b"x" * MAX_BYTES])
def test_what_can_become_no_preamble_is_refused_at_once(received: bytes) -> None:
    with pytest.raises(NotAPreamble, match="socket of a hookproxy gateway"):
        preamble.end_of(received)


@given(st.binary(max_size=200))
def test_nothing_else_is_ever_raised(received: bytes) -> None:
    for text in (received, b"hookproxy 1\n" + received + b"\n\n"):
        with suppress(NotAPreamble):
            end = preamble.end_of(text)
            if end >= 0:
                preamble.read(text[:end])


@given(st.text(max_size=3000))
def test_an_error_is_one_line_that_connect_reads_whole(text: str) -> None:
    reply = preamble.error(text)
    assert reply.startswith(b"error ")
    assert reply.count(b"\n") == 1
    assert len(reply) < 2048
