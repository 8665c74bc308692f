"""A channel over real pipes, files and devices: peers that are slow, that stop reading, and that go away."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from hookproxy.transports.channel import HIGH_WATER, LOW_WATER, READ_SIZE
from hookproxy.transports.event_loop import new_loop
from hookproxy.transports.pipe import Pipe, open_channel, reopen_nonblocking
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio

TEST_TIMEOUT: Final = 30.0  # seconds: other tests run beside these


PORTABLE_LOOP: Final = ("asyncio", {"loop_factory": asyncio.SelectorEventLoop})


@pytest.fixture(params=[DIRECT_LOOP, PORTABLE_LOOP], ids=["epoll", "portable"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


class Peer:
    """A channel, the other ends of its pipes, and the calls that it made."""

    def __init__(self, source: int | None = None, sink: int | None = None) -> None:
        self.reader = self.writer = -1
        if source is None:
            source, self.writer = os.pipe()
        if sink is None:
            self.reader, sink = os.pipe()
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        for fd in (self.reader, self.writer):
            if fd >= 0:
                os.set_blocking(fd, False)
        self.source, self.sink = source, sink
        self.channel = Pipe(source, sink, asyncio.get_running_loop())
        self.pieces: list[bytes] = []
        self.full: list[bool] = []
        self.ended = 0
        self.gone = 0
        self.woken = anyio.Event()

    def start(self) -> Peer:
        self.channel.start(self.on_bytes, self.on_end, self.on_full, self.on_gone)
        return self

    def stir(self) -> None:
        self.woken.set()
        self.woken = anyio.Event()

    def on_bytes(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.stir()

    def on_end(self) -> None:
        self.ended += 1
        self.stir()

    def on_full(self, full: bool) -> None:
        self.full.append(full)
        self.stir()

    def on_gone(self) -> None:
        self.gone += 1
        self.stir()

    async def until_read(self, size: int) -> bytes:
        with anyio.fail_after(TEST_TIMEOUT):
            while sum(map(len, self.pieces)) < size:
                await self.woken.wait()
        return b"".join(self.pieces)

    async def until_ended(self) -> None:
        with anyio.fail_after(TEST_TIMEOUT):
            while not self.ended:
                await self.woken.wait()

    async def until_gone(self) -> None:
        with anyio.fail_after(TEST_TIMEOUT):
            while not self.gone:
                await self.woken.wait()

    async def take(self, size: int) -> bytes:
        """Read what the channel writes, as its peer."""
        taken = b""
        with anyio.fail_after(TEST_TIMEOUT):
            while len(taken) < size:
                await anyio.wait_readable(self.reader)
                piece = os.read(self.reader, min(65536, size - len(taken)))
                if not piece:
                    break
                taken += piece
        return taken

    def close(self) -> None:
        self.channel.close()
        for fd in (self.reader, self.writer):
            if fd >= 0:
                os.close(fd)


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@asynccontextmanager
async def peer(source: int | None = None, sink: int | None = None) -> AsyncIterator[Peer]:
    one = Peer(source, sink).start()
    try:
        yield one
    finally:
        one.close()
    assert not is_open(one.source)
    assert not is_open(one.sink), "it closes what it was given"


async def test_bytes_come_in_pieces_as_they_arrive_and_the_end_once() -> None:
    async with peer() as one:
        os.write(one.writer, b"abc\n")
        assert await one.until_read(4) == b"abc\n"
        os.write(one.writer, b"def")
        assert await one.until_read(7) == b"abc\ndef"
        os.close(one.writer)
        one.writer = -1
        await one.until_ended()
        one.channel.resume()
        await anyio.lowlevel.checkpoint()
        assert one.ended == 1


async def test_what_is_written_goes_out_at_once() -> None:
    async with peer() as one:
        one.channel.write(b"abc\n")
        assert os.read(one.reader, 100) == b"abc\n"
        assert one.channel.queued == 0


async def test_a_peer_that_does_not_read_gets_all_bytes_in_order_once_it_does() -> None:
    async with peer() as one:
        written = b"".join(os.urandom(10_000) for _ in range(100))
        for at in range(0, len(written), 10_000):
            one.channel.write(written[at : at + 10_000])
        assert one.full == [True], "reported once"
        assert one.channel.queued > HIGH_WATER
        assert await one.take(len(written)) == written
        assert one.full == [True, False]
        assert one.channel.queued == 0


async def test_the_other_side_resumes_once_the_queue_is_short_again() -> None:
    async with peer() as one:
        one.channel.write(bytes(HIGH_WATER + 200_000))
        assert one.full == [True]
        while one.channel.queued > LOW_WATER + 70_000:
            await one.take(10_000)
            assert one.full == [True]
        await one.take(80_000)
        assert one.channel.queued <= LOW_WATER
        assert one.full == [True, False]


async def test_while_one_direction_is_blocked_the_other_continues() -> None:
    async with peer() as one:
        one.channel.write(bytes(1_000_000))
        os.write(one.writer, b"still here\n")
        assert await one.until_read(11) == b"still here\n"


async def test_nothing_is_read_while_paused() -> None:
    async with peer() as one:
        one.channel.pause()
        one.channel.pause()
        os.write(one.writer, b"abc")
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert one.pieces == []
        one.channel.resume()
        one.channel.resume()
        assert await one.until_read(3) == b"abc"


async def test_flushing_waits_until_the_peer_has_everything() -> None:
    async with peer() as one:
        await one.channel.flushed()  # nothing is queued
        one.channel.write(bytes(300_000))
        async with anyio.create_task_group() as tasks:
            flushed = anyio.Event()

            async def flush() -> None:
                await one.channel.flushed()
                flushed.set()

            tasks.start_soon(flush)
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            assert not flushed.is_set()
            await one.take(300_000)
            with anyio.fail_after(TEST_TIMEOUT):
                await flushed.wait()


async def test_flushing_ends_when_the_peer_goes_away() -> None:
    async with peer() as one:
        one.channel.write(bytes(300_000))
        os.close(one.reader)
        one.reader = -1
        with anyio.fail_after(TEST_TIMEOUT):
            await one.channel.flushed()
        assert one.channel.gone
        assert one.gone == 1


async def test_output_ends_after_what_is_queued() -> None:
    async with peer() as one:
        one.channel.write(bytes(300_000))
        one.channel.end_output()
        assert one.gone == 0
        assert len(await one.take(1_000_000)) == 300_000
        assert one.gone == 1
        one.channel.write(b"more")
        assert os.read(one.reader, 10) == b""


async def test_output_ends_at_once_where_nothing_is_queued_and_reading_goes_on() -> None:
    async with peer() as one:
        one.channel.end_output()
        assert os.read(one.reader, 10) == b""
        os.write(one.writer, b"bytes")
        assert await one.until_read(5) == b"bytes"


async def test_a_peer_that_closes_its_reading_side_is_noticed_although_nothing_is_written() -> None:
    async with peer() as one:
        os.close(one.reader)
        one.reader = -1
        await one.until_gone()
        assert one.channel.gone
        one.channel.write(b"into the void")
        assert one.channel.queued == 0
        os.write(one.writer, b"I still talk")
        assert await one.until_read(12) == b"I still talk"
        assert one.gone == 1


async def test_the_other_side_resumes_when_a_slow_peer_goes_away() -> None:
    async with peer() as one:
        one.channel.write(bytes(HIGH_WATER * 2))
        assert one.full == [True]
        os.close(one.reader)
        one.reader = -1
        await one.until_gone()
        assert one.full == [True, False]
        assert one.channel.queued == 0


async def test_a_write_that_meets_a_closed_pipe_is_no_error() -> None:
    async with peer() as one:
        os.close(one.reader)
        one.reader = -1
        one.channel.write(b"x")
        assert one.channel.gone
        assert one.gone == 1


async def test_all_available_bytes_can_be_drained_at_once() -> None:
    async with peer() as one:
        os.write(one.writer, b"last words")
        one.channel.drain()
        assert one.pieces == [b"last words"]
        assert one.ended == 0
        os.close(one.writer)
        one.writer = -1
        one.channel.drain()
        assert one.ended == 1
        one.channel.drain()
        assert one.ended == 1


async def test_draining_ends_although_a_writer_continues() -> None:
    """A grandchild of the server may hold its output, and print much."""
    async with peer() as one:
        rounds = 0

        def more(_piece: bytes) -> None:
            nonlocal rounds
            rounds += 1
            if rounds < 500:
                os.write(one.writer, bytes(READ_SIZE))

        one.channel._on_bytes = more
        os.write(one.writer, bytes(READ_SIZE))
        one.channel.drain()
        assert rounds < 50, "not more than a pipe holds"


async def test_a_file_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "input"
    text = os.urandom(READ_SIZE * 3 + 5)
    file.write_bytes(text)
    async with peer(source=os.open(file, os.O_RDONLY)) as one:
        await one.until_ended()
        assert b"".join(one.pieces) == text
        assert max(map(len, one.pieces)) <= READ_SIZE
        assert one.ended == 1


async def test_reading_a_file_can_be_paused(tmp_path: Path) -> None:
    file = tmp_path / "input"
    text = os.urandom(READ_SIZE * 6)
    file.write_bytes(text)
    async with peer(source=os.open(file, os.O_RDONLY)) as one:
        for size in range(1, 5):
            await one.until_read(READ_SIZE * size)
            one.channel.pause()
            seen = len(one.pieces)
            for _ in range(4):
                await anyio.lowlevel.checkpoint()
            assert len(one.pieces) == seen
            one.channel.resume()
            one.channel.pause()
            one.channel.resume()
        await one.until_ended()
        assert b"".join(one.pieces) == text
        assert one.ended == 1


async def test_reading_a_file_lets_other_callbacks_run(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(bytes(READ_SIZE * 50))
    async with peer(source=os.open(file, os.O_RDONLY)) as one:
        executor = 0
        while not one.ended:
            await anyio.lowlevel.checkpoint()
            executor += 1
        assert executor > 25


async def test_dev_null_is_at_its_end_and_takes_everything() -> None:
    source, sink = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    async with peer(source, sink) as one:
        one.channel.write(bytes(1_000_000))
        assert one.channel.queued == 0
        await one.until_ended()
        assert not one.channel.gone


async def test_a_file_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "output"
    async with peer(sink=os.open(file, os.O_WRONLY | os.O_CREAT)) as one:
        one.channel.write(b"abc")
        one.channel.write(bytes(1_000_000))
        assert one.channel.queued == 0
        one.channel.end_output()
    assert file.stat().st_size == 1_000_003


async def test_a_socket_serves_as_both() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    fd = ours.detach()
    async with peer(source=fd, sink=os.dup(fd)) as one:
        theirs.send(b"abc")
        assert await one.until_read(3) == b"abc"
        one.channel.write(b"def")
        assert theirs.recv(10) == b"def"
        theirs.close()
        await one.until_ended()


async def test_a_terminal_whose_other_side_is_gone_is_at_its_end() -> None:
    ours, theirs = os.openpty()
    async with peer(source=theirs) as one:
        os.close(ours)
        await one.until_ended()


async def test_closing_stops_everything_and_can_be_done_twice() -> None:
    async with peer() as one:
        one.channel.write(bytes(300_000))
        one.channel.close()
        one.channel.close()
        assert one.channel.gone
        assert one.channel.queued == 0
        one.channel.resume()
        one.channel.drain()
        with pytest.raises(BrokenPipeError):
            os.write(one.writer, b"x")


async def test_a_reopened_descriptor_does_not_share_its_flags() -> None:
    reader, writer = os.pipe()
    shared = os.dup(writer)
    own = reopen_nonblocking(writer, os.O_WRONLY)
    assert os.get_blocking(shared)
    assert not os.get_blocking(own)
    assert not os.get_inheritable(own)
    os.write(own, b"x")
    assert os.read(reader, 1) == b"x"
    assert own == writer or not is_open(writer)
    for fd in (reader, shared, own):
        os.close(fd)


async def test_a_descriptor_that_cannot_be_reopened_becomes_non_blocking_itself() -> None:
    ours, theirs = socket.socketpair()
    fd = ours.detach()
    assert reopen_nonblocking(fd, os.O_RDWR) == fd
    assert not os.get_blocking(fd)
    os.close(fd)
    theirs.close()


def test_a_channel_owns_both_descriptors_and_blocks_on_neither() -> None:
    source, theirs = os.pipe()
    part, sink = os.pipe()

    async def open_and_close() -> None:
        channel = open_channel(source, sink)
        assert isinstance(channel, Pipe)
        channel.start(lambda _piece: None, lambda: None, lambda _full: None, lambda: None)
        channel.write(b"x")
        assert os.read(part, 1) == b"x"
        channel.close()

    before = set(os.listdir("/proc/self/fd"))
    anyio.run(open_and_close, backend_options={"loop_factory": new_loop})
    assert len(set(os.listdir("/proc/self/fd"))) == len(before) - 2
    os.close(theirs)
    os.close(part)
