"""What a server prints on standard error, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator

import anyio
import anyio.lowlevel
import pytest

from hookproxy.transports.line_log import relay_lines


class Lines(list[str]):
    """Lines that were reported; tests wait for so many."""

    def __init__(self) -> None:
        super().__init__()
        self._more = anyio.Event()

    def __call__(self, text: str) -> None:
        self.append(text)
        self._more.set()

    async def reach(self, number: int) -> None:
        with anyio.fail_after(30):
            while len(self) < number:
                self._more = anyio.Event()
                await self._more.wait()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    source, sink = os.pipe()
    yield source, sink
    for one in (source, sink):
        try:
            os.close(one)
        except OSError:
            continue


async def test_each_line_is_reported_and_the_last_one_without_an_end_too(pipe: tuple[int, int]) -> None:
    lines = Lines()
    relay_lines(pipe[0], lines)
    os.write(pipe[1], b"one\ntw")
    await lines.reach(1)
    assert lines == ["one"]
    os.write(pipe[1], b"o\nthree")
    os.close(pipe[1])
    await lines.reach(3)
    assert lines == ["one", "two", "three"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pipe[0])


async def test_a_line_without_end_is_reported_in_pieces(pipe: tuple[int, int]) -> None:
    lines = Lines()
    relay_lines(pipe[0], lines)
    os.write(pipe[1], b"x" * 20_000)
    await lines.reach(4)
    os.close(pipe[1])
    with anyio.fail_after(30):
        while sum(map(len, lines)) < 20_000:
            await anyio.lowlevel.checkpoint()
    assert max(map(len, lines)) <= 4096


async def test_no_control_character_is_left(pipe: tuple[int, int]) -> None:
    lines = Lines()
    relay_lines(pipe[0], lines)
    os.write(pipe[1], "a\rb\x1b[2K\u2028c\x85\0\n".encode())
    os.close(pipe[1])
    await lines.reach(1)
    assert lines[0].isprintable()


async def test_a_flood_of_lines_leaves_time_for_others_and_is_reported_whole(pipe: tuple[int, int]) -> None:
    lines = Lines()
    relay_lines(pipe[0], lines)
    os.write(pipe[1], b"x\n" * 6000)
    os.close(pipe[1])
    await lines.reach(1)
    assert len(lines) < 5000  # others have had a turn
    await lines.reach(6000)
    assert len(lines) == 6000


async def test_what_is_to_be_removed_is_found_wherever_a_long_line_is_cut(pipe: tuple[int, int]) -> None:
    secret = b"sekret-4711-value"
    for before in range(4096 - len(secret) - 1, 4096 + 2):
        source, sink = os.pipe()
        lines = Lines()
        relay_lines(source, lines, lambda data: data.replace(secret, b"[]"), len(secret))
        os.write(sink, b"x" * before + secret[:5])
        await anyio.lowlevel.checkpoint()
        os.write(sink, secret[5:] + b"y" * 5000)
        os.close(sink)
        with anyio.fail_after(30):
            while not "".join(lines).endswith("y" * 5000):
                await anyio.lowlevel.checkpoint()
        assert "".join(lines) == "x" * before + "[]" + "y" * 5000
