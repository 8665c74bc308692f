"""How much may wait for the agents of one user."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hookproxy.transports.http.responder import Responder
from hookproxy.transports.user_load import UserLoad

MOST = 1000


class Unread(Responder):
    """The response to an agent that has not taken so many bytes."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def unsent(self) -> Callable[[], int]:
        return lambda: self.size


class Kept:
    def __init__(self, kept: int, begun: int = 0) -> None:
        self.kept, self.begun = kept, begun

    @property
    def kept_bytes(self) -> int:
        return self.kept + self.begun

    def forget_kept(self) -> None:
        self.kept = 0


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def load(reports: list[str]) -> UserLoad:
    return UserLoad(lambda: MOST, reports.append)


def may_ask(load: UserLoad) -> bool:
    return load.may_ask


def test_one_message_may_always_wait_alone(load: UserLoad, reports: list[str]) -> None:
    assert may_ask(load)
    assert load.takes(50 * MOST)
    load.note_full(Unread(50 * MOST), full=True)
    assert not may_ask(load)
    assert not load.takes(1)
    assert len(reports) == 1
    assert "max_unread_bytes" in reports[0]


def test_what_is_read_makes_room(load: UserLoad) -> None:
    slow, slower = Unread(600), Unread(600)
    for one in (slow, slower):
        load.note_full(one, full=True)
    assert not may_ask(load)
    slower.size = 300
    assert may_ask(load)
    assert load.takes(100)
    assert not load.takes(101)
    load.note_full(slow, full=False)
    load.note_full(slow, full=False)
    assert load.takes(700)
    load.note_full(slower, full=False)
    assert not load.has_unread


def test_what_is_only_kept_is_forgotten_for_a_new_message(load: UserLoad, reports: list[str]) -> None:
    kept = Kept(900)
    load.keepers.add(kept)
    assert load.takes(100)
    assert kept.kept == 900
    assert load.takes(101)
    assert kept.kept == 0
    kept.begun = 900
    assert not load.takes(101)
    assert reports
    assert may_ask(load), "nobody has stopped reading"


def test_the_limit_may_change(reports: list[str]) -> None:
    most = [MOST]
    load = UserLoad(lambda: most[0], reports.append)
    load.note_full(Unread(900), full=True)
    assert load.takes(100)
    most[0] = 900
    assert not load.takes(100)
    assert not may_ask(load)
