"""The end of a login in the browser: a redirect to this machine (RFC 8252 section 7.3), or its address, pasted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import compare_digest
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute

from ..model.errors import UserError

if TYPE_CHECKING:
    from anyio.abc import Listener, SocketStream

_HOST: Final = "127.0.0.1"  # not localhost, which may lead elsewhere
_PATH: Final = "/callback"
_MAX_HEAD: Final = 65_536  # bytes of a request: some codes are long
_READ_TIMEOUT: Final = 10.0  # seconds: browsers open connections in advance and send nothing
_PAGE: Final = (
    b"<!doctype html><meta charset=utf-8><title>hookproxy</title>"
    b"<p style='font:1.2em sans-serif;margin:3em'>%s You can close this window.</p>"
)


class Redirect(NamedTuple):
    """What the authorization server has put into the redirect."""

    code: str
    state: str
    issuer: str | None
    error: str
    """Empty: there is none."""


def read_redirect(address: str) -> Redirect | None:
    """The redirect in an address or in the target of a request; None if it is none."""
    try:
        parts = urlsplit(address.strip())
        members = parse_qs(parts.query, max_num_fields=50)
    except ValueError:
        return None
    if parts.path != _PATH or not (members.keys() & {"code", "error"}):
        return None
    first = {name: values[0] for name, values in members.items()}
    error = ": ".join(first[name] for name in ("error", "error_description") if name in first)
    return Redirect(first.get("code", ""), first.get("state", ""), first.get("iss"), error)


class Redirects:
    """The redirects that come to this machine, and those that a person pastes. Only one with the right state counts."""

    def __init__(self, listener: Listener[SocketStream], state: str) -> None:
        port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610  # a socket, no database
        self.address = f"http://{_HOST}:{port}{_PATH}"
        self.mistaken = 0
        """How many redirects had another state: any page in the browser can send such."""
        self._listener = listener
        self._state = state
        self._found: Redirect | None = None
        self._event = anyio.Event()

    def offer(self, address: str) -> bool:
        """Take an address; False if it is not a redirect of this login."""
        redirect = self._matching(address)
        self._take(redirect)
        return redirect is not None

    async def first(self) -> Redirect:
        """Wait for the redirect of this login."""
        await self._event.wait()
        assert self._found is not None  # the event says so
        return self._found

    async def serve(self) -> None:
        """Answer the browser's requests until it is cancelled."""
        await self._listener.serve(self._answer)

    async def _answer(self, stream: SocketStream) -> None:
        async with stream:
            redirect = None
            with anyio.move_on_after(_READ_TIMEOUT):
                try:
                    redirect = self._matching(await _target(stream))
                    await stream.send(_response(redirect is not None))
                except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                    pass  # the browser has closed the connection; it may open another one
            self._take(redirect)  # the page is sent by now: the login ends with this

    def _matching(self, address: str) -> Redirect | None:
        redirect = read_redirect(address)
        if redirect is None:
            return None
        if not compare_digest(redirect.state.encode(), self._state.encode()):
            self.mistaken += 1
            return None
        return redirect

    def _take(self, redirect: Redirect | None) -> None:
        if redirect is not None and self._found is None:
            self._found = redirect
            self._event.set()


@asynccontextmanager
async def listening(port: int, state: str) -> AsyncIterator[Redirects]:
    """Listen on this machine for redirects with this state; port 0 is any free one. Raises UserError."""
    try:
        listener = await anyio.create_tcp_listener(local_host=_HOST, local_port=port)
    except OSError as error:
        raise UserError(f"port {port} of {_HOST} cannot be used: {error.strerror}", "name another --port") from None
    async with listener:
        yield Redirects(listener, state)


async def _target(stream: SocketStream) -> str:
    """The target of a GET request; empty for anything else."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) <= _MAX_HEAD:
        head += await stream.receive()
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    return words[1] if len(words) == 3 and words[0] == "GET" else ""


def _response(taken: bool) -> bytes:
    """A page that repeats nothing of the request."""
    page = _PAGE % (b"hookproxy has what it needs." if taken else b"This is not the login that hookproxy waits for.")
    head = (
        f"HTTP/1.1 {'200 OK' if taken else '400 Bad Request'}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + page
