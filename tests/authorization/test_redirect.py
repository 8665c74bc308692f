"""The redirect at the end of a login: which one counts, and what the listener answers."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.authorization.redirect import Redirect, Redirects, listening, read_redirect


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("/callback?code=c&state=s", Redirect("c", "s", None, "")),
        (" http://127.0.0.1:1/callback?state=s&code=c%2F&iss=https://a\n", Redirect("c/", "s", "https://a", "")),
        ("/callback?error=access_denied&error_description=no&state=s", Redirect("", "s", None, "access_denied: no")),
        ("/callback?code=c", Redirect("c", "", None, "")),
        ("/callback?code=&state=s", None),
        ("/callback", None),
        ("/favicon.ico?code=c&state=s", None),
        ("http://[/callback?code=c", None),
        ("/callback?" + "&".join(f"{number}=x" for number in range(99)) + "&code=c", None),
    ],
)
def test_a_redirect_is_known_by_its_path_and_a_code_or_an_error(address: str, found: Redirect | None) -> None:
    assert read_redirect(address) == found


@given(st.text())
@pytest.mark.slow
def test_any_text_can_be_pasted(text: str) -> None:
    read_redirect(text)
    read_redirect(f"/callback?{text}")


async def ask(redirects: Redirects, request: bytes) -> bytes:
    """What a browser gets for these bytes."""
    port = int(redirects.address.split(":")[2].partition("/")[0])
    stream: SocketStream = await anyio.connect_tcp("127.0.0.1", port)
    async with stream:
        await stream.send(request)
        await stream.send_eof()
        got = b""
        try:
            while True:
                got += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return got


async def test_only_the_redirect_with_the_right_state_ends_the_login() -> None:
    async with listening(0, "right") as redirects, anyio.create_task_group() as group:
        group.start_soon(redirects.serve)
        for request in (
            b"",
            b"\r\n\r\n",
            b"GET /favicon.ico HTTP/1.1\r\n\r\n",
            b"POST /callback?code=c&state=right HTTP/1.1\r\n\r\n",
            b"GET /callback?code=<script>&state=wrong HTTP/1.1\r\n\r\n",
            b"GET /callback?code=c&state=\xff HTTP/1.1\r\n\r\n",
            b"x" * 100_000,
        ):
            got = await ask(redirects, request)
            assert not got.startswith(b"HTTP/1.1 200")
            assert b"script" not in got
        assert redirects.mistaken == 2
        got = await ask(redirects, b"GET /callback?code=c&state=right HTTP/1.1\r\nHost: x\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 200 OK\r\n")
        assert await redirects.first() == Redirect("c", "right", None, "")
        await ask(redirects, b"GET /callback?code=second&state=right HTTP/1.1\r\n\r\n")
        assert (await redirects.first()).code == "c"
        group.cancel_scope.cancel()


async def test_a_connection_that_sends_nothing_holds_up_no_other() -> None:
    async with listening(0, "right") as redirects, anyio.create_task_group() as group:
        group.start_soon(redirects.serve)
        port = int(redirects.address.split(":")[2].partition("/")[0])
        async with await anyio.connect_tcp("127.0.0.1", port):
            await ask(redirects, b"GET /callback?code=c&state=right HTTP/1.1\r\n\r\n")
            assert (await redirects.first()).code == "c"
        group.cancel_scope.cancel()
