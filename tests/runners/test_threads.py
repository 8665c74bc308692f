"""Threads for functions that may block."""

from __future__ import annotations

import threading

import anyio
import pytest

from hookproxy.runners.python import Threads, TooManyStuck

pytestmark = pytest.mark.anyio


async def test_threads_are_used_again_and_end() -> None:
    before = threading.active_count()
    threads = Threads()
    names = {await threads.run(lambda: str(threading.get_ident()).encode(), 5) for _ in range(100)}
    assert len(names) == 1
    threads.close()
    assert threading.active_count() == before


async def test_a_function_that_hangs_is_counted_until_it_returns() -> None:
    threads, go = Threads(), threading.Event()

    def hang() -> bytes:
        go.wait(20)
        return b"late"

    with pytest.raises(TimeoutError):
        await threads.run(hang, 0.01)
    with anyio.move_on_after(0.01):
        await threads.run(hang, 60)
    assert threads.stuck == 2
    assert await threads.run(lambda: b"others go on", 5) == b"others go on"
    go.set()
    with anyio.fail_after(10):
        while threads.stuck:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.001)
    threads.close()


async def test_functions_that_always_hang_do_not_fill_memory_with_threads() -> None:
    threads, go = Threads(), threading.Event()
    for _ in range(32):
        with pytest.raises(TimeoutError):
            await threads.run(lambda: go.wait(20) and b"", 0.001)
    with pytest.raises(TooManyStuck, match="32 calls"):
        await threads.run(lambda: b"", 5)
    go.set()
    threads.close()
