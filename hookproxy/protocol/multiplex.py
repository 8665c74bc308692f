"""Several clients use one server process, and each gets what a server of its own would have given it (law 2).

It is a state machine without I/O, like the router. Its rules:

1. A response, progress and a task go to the client that asked for them, and to nobody else.
2. No client can name a request, a progress token, a subscription or a task of another client.
3. A line that two readers could take differently is refused (from a client) or dropped (from the server).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

SERVER: Final = 0
"""The receiver of a line that is for the server; clients have numbers from 1."""


class Send(Struct, frozen=True):
    """One line, and who gets it."""

    to: int
    """The number of a client, or SERVER."""
    line: bytes
    """It ends with a line end."""


class Multiplexer:
    """The clients of one server process: what each of them awaits, and where each line goes.

    `one_owner` says that all clients belong to one principal, so that a message of the server that names no request
    may go to several of them. If it is False, such a message goes to a client only while no other client has a request
    that the server may still be working on, because it could contain another person's data. `report` gets a sentence,
    without a full stop, about what is dropped; each sentence comes once.
    """

    def __init__(self, one_owner: bool, report: Callable[[str], None]) -> None:
        raise NotImplementedError

    def attach(self) -> int:
        """Return the number of a new client. A number is never used again."""
        raise NotImplementedError

    def detach(self, client: int) -> list[Send]:
        """Forget a client; return lines for the server.

        They cancel the client's requests in flight, end subscriptions that no other client has, lower the log level
        if no other client wants as much, and answer the requests of the server that the client has not answered.
        """
        raise NotImplementedError

    def from_client(self, client: int, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of a client: to the server, or back to the same client."""
        raise NotImplementedError

    def from_server(self, line: bytes) -> list[Send]:
        """Return what is sent for one whole line of the server: to clients, or back to the server."""
        raise NotImplementedError

    def lost_from_server(self, raw_id: bytes, size: int, limit: int) -> list[Send]:
        """Return the error for the request to which a line of `size` bytes, over the limit, was the response."""
        raise NotImplementedError

    def awaits_response(self, client: int) -> bool:
        """True if a request of the client is in flight, other than one that only ends with the subscription."""
        raise NotImplementedError
