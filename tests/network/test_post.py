"""One POST: what it sends, and what it takes for a response."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from hookproxy.network.post import poster

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def posted(response: bytes, *, close: bool = True) -> tuple[tuple[int, bytes], bytes]:
    """The result of a POST to a server that answers with these bytes, and what the server got."""
    got = b""

    async def answer(stream: SocketStream) -> None:
        nonlocal got
        async with stream:
            while not got.endswith(b"a=b"):
                got += await stream.receive()
            await stream.send(response)
            if not close:
                await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = listener.extra(SocketAttribute.local_port)  # a socket, no database
        post = poster({}, _no_tls)
        try:
            result = await post(f"http://127.0.0.1:{port}/token?x=1", {"Authorization": "Basic eA=="}, b"a=b")
        finally:
            group.cancel_scope.cancel()
    return result, got


def _no_tls() -> ssl.SSLContext:
    raise AssertionError("the address is http")


async def test_it_sends_one_request_and_returns_status_and_body() -> None:
    result, got = await posted(OK, close=False)
    assert result == (200, b"{}")
    head, _, body = got.partition(b"\r\n\r\n")
    assert body == b"a=b"
    assert head.startswith(b"POST /token?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nContent-Length: 3\r\n" in head
    assert b"\r\nAuthorization: Basic eA==\r\n" in head


async def test_a_redirect_is_a_response() -> None:
    moved = b"HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    assert (await posted(moved))[0] == (307, b"")


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"nonsense\r\n\r\n",
        OK.replace(b"2\r", b"2000000\r") + b"x" * 1_999_998,
    ],
)
async def test_no_response_a_short_one_and_an_endless_one_are_errors(response: bytes) -> None:
    with pytest.raises(ConnectionError):
        await _unwrapped(posted, response)


async def _unwrapped(function: Callable[[bytes], Awaitable[object]], response: bytes) -> None:
    try:
        await function(response)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def test_a_port_where_nobody_listens_is_an_error() -> None:
    with pytest.raises(ConnectionError):
        await poster({}, _no_tls)("http://127.0.0.1:1/token", {}, b"")
