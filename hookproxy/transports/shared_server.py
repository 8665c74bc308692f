"""One server process for several sessions: each session gets a channel of its own to it.

The multiplexer decides where each line goes. A session that does not read holds up no other: beyond a limit it is ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..protocol.multiplex import Multiplexer
from .channel import Channel

MAX_QUEUED_BYTES: Final = 4 * 1024 * 1024
"""Bytes that wait for one session that does not read; at more, the session is ended."""


class SharedServer:
    """A server that several sessions use. `limit` is the length of the longest line, in bytes."""

    def __init__(
        self,
        server: Channel,
        multiplexer: Multiplexer,
        limit: int,
        report: Callable[[str], None],
        max_queued: int = MAX_QUEUED_BYTES,
    ) -> None:
        raise NotImplementedError

    def start(self, on_end: Callable[[], None]) -> None:
        """Start to read from the server. `on_end` is called when its output has ended and every session knows."""
        raise NotImplementedError

    def open_channel(self) -> Channel:
        """Return a channel to the server for one more session (`SessionChannel`).

        It also has what `session.server_end.RemoteServer` needs of a channel: `ended`, `is_ending`, `abandon`.
        """
        raise NotImplementedError

    @property
    def sessions(self) -> int:
        """How many sessions use the server now; the caller may end the server when there are none."""
        raise NotImplementedError
