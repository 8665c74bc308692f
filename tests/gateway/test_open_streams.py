"""Streams that may no longer be open are ended; while there are none, nothing wakes up."""

from __future__ import annotations

import anyio
import pytest

from hookproxy.gateway import open_streams
from hookproxy.gateway.open_streams import OpenStreams

pytestmark = pytest.mark.anyio


class Stream:
    def __init__(self) -> None:
        self.is_open = True
        self.is_cut = False

    def cut(self) -> None:
        self.is_open, self.is_cut = False, True


def test_only_streams_that_may_not_stay_are_ended() -> None:
    streams, mine, theirs, gone = OpenStreams(), Stream(), Stream(), Stream()
    may = {mine: True, theirs: True}
    streams.add(mine, lambda: may[mine])
    streams.add(theirs, lambda: may[theirs])
    streams.add(gone, lambda: pytest.fail("it is gone"))
    gone.is_open = False
    streams.look()
    may[theirs] = False
    streams.look()
    streams.look()
    assert (mine.is_cut, theirs.is_cut, gone.is_cut) == (False, True, False)


async def test_they_are_looked_at_as_long_as_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_streams, "LOOK_SECONDS", 0.001)
    streams, one = OpenStreams(), Stream()
    ended = anyio.Event()

    def may_stay() -> bool:
        ended.set()
        return False

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(streams.end_forbidden)
        await anyio.lowlevel.checkpoint()
        streams.add(one, may_stay)
        with anyio.fail_after(30):
            await ended.wait()
        tasks.cancel_scope.cancel()
    assert one.is_cut


def test_streams_that_end_at_once_are_not_kept_until_the_next_look() -> None:
    streams, stays = OpenStreams(), [Stream() for _ in range(100)]
    for one in stays:
        streams.add(one, lambda: True)
    for _ in range(1000):
        streams.add(ends := Stream(), lambda: True)
        ends.is_open = False
    assert len(streams) < 250
    streams.look()
    assert len(streams) == 100
    assert not any(one.is_cut for one in stays)
