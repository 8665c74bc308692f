"""Sessions that were not used for long end, and nobody looks at one before its time may have come."""

from __future__ import annotations

import anyio
import pytest

from hookproxy.gateway.unused_sessions import UnusedSessions

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Session:
    """A session; `looks` counts how often it was asked whether it is in use."""

    def __init__(self, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        self.since: float | None = anyio.current_time()
        self.looks = 0

    @property
    def unused_since(self) -> float | None:
        self.looks += 1
        return self.since


def sessions() -> tuple[UnusedSessions[Session], list[Session]]:
    ended: list[Session] = []
    return UnusedSessions(ended.append), ended


async def test_a_session_ends_when_its_time_is_over_and_not_before() -> None:
    unused, ended = sessions()
    short, long, now = Session(10), Session(100), anyio.current_time()
    unused.add(short)
    unused.add(long)
    unused.look(now + 9)
    assert (ended, short.looks) == ([], 0)
    unused.look(now + 12)
    assert (ended, long.looks) == ([short], 0)
    unused.look(now + 102)
    assert ended == [short, long]


async def test_a_session_in_use_and_one_that_was_used_again_live_on() -> None:
    unused, ended = sessions()
    busy, again, now = Session(10), Session(10), anyio.current_time()
    busy.since, again.since = None, now + 8
    unused.add(busy)
    unused.add(again)
    unused.look(now + 12)
    assert ended == []
    busy.since = now + 13
    unused.look(now + 20)
    assert ended == [again]
    unused.look(now + 23)
    assert ended == [again], "it was in use at 12 and at 13"
    unused.look(now + 25)
    assert ended == [again, busy]


async def test_a_discarded_session_is_not_looked_at() -> None:
    unused, ended = sessions()
    one = Session(10)
    unused.add(one)
    unused.discard(one)
    unused.discard(one)
    unused.look(anyio.current_time() + 20)
    assert (ended, one.looks) == ([], 0)


async def test_a_changed_time_is_in_force_at_once() -> None:
    unused, ended = sessions()
    one, now = Session(1000), anyio.current_time()
    unused.add(one)
    one.idle_seconds = 10
    unused.look_again()
    unused.look(now + 12)
    assert ended == [one]


@pytest.mark.slow
async def test_it_waits_for_the_next_time_and_for_new_sessions() -> None:
    ended: list[Session] = []
    ends = anyio.Event()

    def end(session: Session) -> None:
        ended.append(session)
        ends.set()

    unused = UnusedSessions(end)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(unused.end_unused)
        await anyio.wait_all_tasks_blocked()
        unused.add(Session(1000))
        await anyio.wait_all_tasks_blocked()
        unused.add(short := Session(0.1))
        with anyio.fail_after(30):
            await ends.wait()
        assert ended == [short]
        tasks.cancel_scope.cancel()
