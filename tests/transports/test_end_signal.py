"""Whoever asks when something ends is told once, also if it has ended already."""

from __future__ import annotations

from hookproxy.transports.channel import EndSignal


def test_a_listener_is_told_once_when_it_ends() -> None:
    one, told = EndSignal(), list[str]()
    one.tell(lambda: told.append("ended"))
    before = one.is_set, list(told)
    one.set()
    one.set()
    assert before == (False, [])
    assert (one.is_set, told) == (True, ["ended"])


def test_a_listener_that_comes_late_is_told_at_once() -> None:
    one, told = EndSignal(), list[str]()
    one.set()
    one.tell(lambda: told.append("ended"))
    assert told == ["ended"]
