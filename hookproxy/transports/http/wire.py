"""What the state machine of a remote session asks of whoever does its I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..channel import Passage
from .exchange import Exchange


class Wire(Protocol):
    """The I/O of a `Client`."""

    def send(self, exchange: Exchange) -> None:
        """Send the request; `Client.head`, `body`, `complete` and `lost` tell what comes of it."""

    def close_exchange(self, exchange: Exchange) -> None:
        """Close the connection of an exchange, or forget it if it is not sent yet. Nothing more comes of it."""

    def deliver(self, lines: bytes) -> None:
        """Give the agent's side whole lines."""

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        """Give the agent's side the response to a call that was read already; `line` has no line end."""

    def open_passage(self, raw_id: bytes) -> Passage | None:
        """Begin to pass on the response to a request before its end has come; None: it must come whole."""

    def deliver_failure(self, line: bytes) -> None:
        """Give the agent's side an error that stands for the server's response."""

    def report(self, text: str) -> None:
        """Tell people something in one line."""

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back later, unless the channel is closed by then."""

    def authorize(self, exchange: Exchange, challenge: str) -> None:
        """Ask for other credentials, once; `Client.authorized` or `Client.not_authorized` follows."""

    def same_origin_target(self, base: bytes, location: str) -> bytes | None:
        """Return path and query of an address relative to another; None: it is of another origin."""

    def finished(self) -> None:
        """The session is over, and nothing more comes."""
