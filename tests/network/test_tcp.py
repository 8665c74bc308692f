"""TCP connections over direct callbacks behave as asyncio's own: each test runs on both; real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

import anyio
import pytest

from hookproxy.network import tcp
from hookproxy.network.epoll_loop import DirectLoop
from hookproxy.transports.event_loop import new_loop

LONG = bytes(range(256)) * 40_000


class Peer(asyncio.Protocol):
    """Notes what it is told."""

    transport: asyncio.Transport
    stays_open = False

    def __init__(self) -> None:
        self.received = bytearray()
        self.told: list[str] = []
        self.ended = asyncio.Event()
        self.came = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.came.set()

    def eof_received(self) -> bool:
        self.told.append("eof")
        self.came.set()
        return self.stays_open

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(f"lost {type(exc).__name__}" if exc else "lost")
        self.ended.set()

    def pause_writing(self) -> None:
        self.told.append("full")

    def resume_writing(self) -> None:
        self.told.append("not full")


def on_both_loops(test: Callable[[Peer, Peer], object]) -> Callable[[bool], None]:
    """Run a test with a connection between two peers, on a direct loop and on asyncio's own."""

    def run(direct: bool) -> None:
        async def with_peers() -> None:
            with anyio.fail_after(30), socket.create_server(("127.0.0.1", 0)) as listening:
                listening.setblocking(False)
                accepted = asyncio.get_running_loop().create_future()

                def accept() -> Peer:
                    accepted.set_result(peer := Peer())
                    return peer

                loop = asyncio.get_running_loop()
                if isinstance(loop, DirectLoop):
                    tcp.Acceptor(listening, tcp.direct(accept, loop), loop)
                else:
                    await loop.create_server(accept, sock=listening)
                there = await tcp.connect(Peer, "127.0.0.1", listening.getsockname()[1], None)
                here = await accepted
                await test(here, there)  # type: ignore[misc]  # the tests are coroutine functions
                for peer in (here, there):
                    if not peer.ended.is_set():
                        peer.transport.abort()
                        await peer.ended.wait()

        with asyncio.Runner(loop_factory=new_loop if direct else None) as runner:
            runner.run(with_peers())

    return pytest.mark.parametrize("direct", [True, False])(run)


async def _until(peer: Peer, condition: Callable[[], bool]) -> None:
    while not condition():
        peer.came.clear()
        await peer.came.wait()


@on_both_loops
async def test_all_bytes_arrive_in_order_and_a_full_peer_is_told(here: Peer, there: Peer) -> None:
    there.transport.pause_reading()
    here.transport.writelines([LONG[:1000], LONG[1000:-1], LONG[-1:]])
    here.transport.write(b"end")
    assert here.told == ["full"]
    assert here.transport.get_write_buffer_size() > 0
    there.transport.resume_reading()
    await _until(there, lambda: len(there.received) == len(LONG) + 3)
    assert bytes(there.received) == LONG + b"end"
    assert here.told == ["full", "not full"]
    assert here.transport.get_write_buffer_size() == 0


@on_both_loops
async def test_short_and_long_pieces_in_turn_arrive_whole(here: Peer, there: Peer) -> None:
    sent = b""
    for piece in (b"short", LONG[:3_000_000], b"a", LONG[:300_000], b"b", b"c"):
        here.transport.write(piece)
        sent += piece
        await _until(there, lambda: len(there.received) == len(sent))  # noqa: B023  # it is awaited at once
        assert bytes(there.received) == sent
    here.transport.close()
    await there.ended.wait()
    assert there.told == ["eof", "lost"]


@on_both_loops
async def test_close_sends_what_is_queued(here: Peer, there: Peer) -> None:
    here.transport.write(LONG)
    here.transport.close()
    assert here.transport.is_closing()
    await there.ended.wait()
    assert bytes(there.received) == LONG
    assert (there.told, here.told[-1]) == (["eof", "lost"], "lost")


@on_both_loops
async def test_the_end_of_input_is_told_once_and_the_other_direction_goes_on(here: Peer, there: Peer) -> None:
    there.stays_open = True
    here.transport.write(b"last")
    here.transport.write_eof()
    await _until(there, lambda: "eof" in there.told)
    there.transport.write(b"response")
    await _until(here, lambda: bool(here.received))
    assert (bytes(there.received), bytes(here.received), there.told) == (b"last", b"response", ["eof"])


@on_both_loops
async def test_a_peer_that_breaks_off_is_lost(here: Peer, there: Peer) -> None:
    there.transport.pause_reading()
    here.transport.write(LONG)
    there.transport.abort()
    await here.ended.wait()
    assert here.told[-1].startswith("lost ")
    here.transport.write(b"dropped")


@on_both_loops
async def test_what_a_protocol_raises_ends_its_connection_alone(here: Peer, there: Peer) -> None:
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))

    def fail(data: bytes) -> None:
        raise RuntimeError(data.decode())

    there.data_received = fail  # type: ignore[method-assign]  # as a protocol with a defect
    here.transport.write(b"x")
    await there.ended.wait()
    assert there.told == ["lost RuntimeError"]
    assert [str(one["exception"]) for one in failures] == ["x"]


@on_both_loops
async def test_nothing_is_read_while_reading_is_paused(here: Peer, there: Peer) -> None:
    there.transport.pause_reading()
    here.transport.write(b"a")
    for _ in range(5):
        await asyncio.sleep(0)
    assert there.received == b""
    there.transport.resume_reading()
    await _until(there, lambda: bool(there.received))


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_connections_that_cannot_be_accepted_for_now_are_accepted_later(
    few_descriptors: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    monkeypatch.setattr(tcp, "_ACCEPT_AGAIN_SECONDS", 0.01)
    failures: list[object] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DirectLoop)
        loop.set_exception_handler(lambda _loop, context: failures.append(context["message"]))
        accepted = asyncio.Event()

        def accept() -> Peer:
            accepted.set()
            return Peer()

        with socket.create_server(("127.0.0.1", 0)) as listening, anyio.fail_after(30):
            listening.setblocking(False)
            acceptor = tcp.Acceptor(listening, tcp.direct(accept, loop), loop)
            with socket.create_connection(listening.getsockname()) as client:
                most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, most))
                attempts = set[object]()
                while len(attempts) < 5:
                    attempts.add(acceptor._again)
                    await asyncio.sleep(0.001)
                assert not accepted.is_set()
                assert failures == ["A connection cannot be accepted"], "it is reported once"
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
                await accepted.wait()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
