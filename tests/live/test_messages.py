"""The lines between a run and a console."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hookproxy.live import messages
from hookproxy.live.messages import Answer, AnswerTaken, CallInFlight, Changes, Counts, Run, Settled, WaitingApproval


def test_what_a_run_says_is_read_as_it_was_meant() -> None:
    call = CallInFlight("a-1", "s", 1.5, "push", "hooks", 1.5, Raw(b'{"a": 1}'), 8)
    approval = WaitingApproval("q", "a-1", "s", "git", "push", Raw(b"{}"), "really?", "rule", 1.0, 2.0)
    for message in (
        Run(1, "r", 7, 0.5, ("uvx", "git")),
        Changes(Counts(calls=3), calls=(call,), asked=(approval,), settled=(Settled("p", "deny", "me"),), gone=("a",)),
        AnswerTaken("q", accepted=False, why="too late"),
    ):
        line = messages.encode(message)
        assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
        assert messages.from_run(line) == message


def test_members_of_a_later_version_are_ignored() -> None:
    assert messages.from_console(b'{"type":"answer","approval":"q","action":"deny","mood":1}') == Answer("q", "deny")
    assert messages.from_run(b'{"type":"changes","weather":[]}') == Changes()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"type":"answer","approval":"q","action":"perhaps"}',
        b'{"type":"answer","approval":1,"action":"deny"}',
        b'{"type":"answer","approval":"q","action":"deny","reason":"%b"}' % (b"x" * 4001),
        b'{"type":"answer","approval":"\xff","action":"deny"}',
    ],
)
def test_an_answer_that_cannot_be_read_is_no_answer(line: bytes) -> None:
    with pytest.raises(messages.Unreadable):
        messages.from_console(line)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(line: bytes) -> None:
    for read in (messages.from_console, messages.from_run):
        with suppress(messages.Unreadable):
            read(line)
