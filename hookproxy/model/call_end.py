"""How a judged call ends: one value, from which the audit, telemetry and consoles derive their words.

Responded   the agent gets the server's response, perhaps changed by hooks, or one after which the call goes on
Refused     a decision kept the call from the server, and the agent learns why
Cancelled   the agent has cancelled the call, and gets nothing
Failed      the agent gets an error of ours: the call, or its response, could not be completed
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct


class Responded(Struct, frozen=True):
    """The server's response goes to the agent, or a response after which the call goes on in further requests."""

    line: bytes | None = None
    """None: the relay passes it on, and nobody reads it here."""
    result: Literal["ok", "error", "pending", "sent"] = "ok"
    """`pending`: it goes on in further requests; `sent`: nobody reads the response."""
    reason: str = ""
    asks: bool = False
    """It is the request to ask a person, with whose answer the agent sends the call again."""


class Refused(Struct, frozen=True):
    """The call is not forwarded."""

    line: bytes
    reason: str
    cause: str
    """As a `RefusalCause`; `stopped` by a hook that stopped all calls, or `audit`."""
    by: str = ""
    place: str = ""
    asked: bool = False
    """It needed approval and did not get it."""
    result: ClassVar[str] = "refused"


class Cancelled(Struct, frozen=True):
    """Nobody awaits a response any more."""

    reason: str = ""
    line: ClassVar[None] = None
    result: ClassVar[str] = "cancelled"


class Failed(Struct, frozen=True):
    """The call ended early, or its response is withheld."""

    line: bytes | None
    reason: str
    result: Literal["error", "lost", "cancelled"] = "error"
    """`cancelled`: the server never got the call; `lost`: nobody knows what it has done with it."""


CallEnd = Responded | Refused | Cancelled | Failed
