"""A response that is needed whole: it is collected, up to a limit."""

# ruff: noqa: D102  # methods without a docstring are described by Handler
from __future__ import annotations

import asyncio
from collections.abc import Callable


class ResponseTooLong(ConnectionError):
    """The response has more bytes than may be."""


def _accept(_status: int, _headers: dict[bytes, bytes]) -> None:
    """Every head is as good as another."""


class CollectedResponse:
    """The Handler of one response. `check_head` raises for a response that is refused: its rest is not collected."""

    def __init__(self, limit: int, check_head: Callable[[int, dict[bytes, bytes]], None] = _accept) -> None:
        self.body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """All of it; or what `check_head` has raised, ResponseTooLong, or ConnectionError."""
        self.status = 0
        self.has_ended = False
        """The connection is free for another request, or closed."""
        self._limit = limit
        self._check_head = check_head
        self._pieces: list[bytes] = []
        self._size = 0

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self.status = status
        try:
            self._check_head(status, headers)
        except Exception as refused:  # whoever waits for the body gets it
            self._fail(refused)

    def on_body(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._fail(ResponseTooLong("the response is too long"))
        elif not self.body.done():
            self._pieces.append(piece)

    def on_complete(self) -> None:
        self.has_ended = True
        if not self.body.done():
            self.body.set_result(b"".join(self._pieces))

    def takes_whole(self, size: int) -> bool:
        """Its head has been checked, since it is that of an earlier response."""
        return size <= self._limit

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        self.status, self.has_ended = 200, True
        if not self.body.done():
            self.body.set_result(body)

    def on_lost(self, why: str) -> None:
        self.has_ended = True
        self._fail(ConnectionError(why))

    def _fail(self, error: Exception) -> None:
        if not self.body.done():
            self.body.set_exception(error)
