"""What `hookproxy sessions`, `users` and others ask of a running gateway, and its replies: one JSON line each. Pure.

They connect to the gateway's administration socket, where the kernel says who asks. After `console`, the connection is
one of `live.messages`; with the reply to `audit` come descriptors of the files.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct

from ..model.counts import counted
from ..model.errors import UserError

VERSION: Final = 1

LONGEST: Final = 64 * 1024
"""Bytes of a request: names and ids are short."""

MOST_FILES: Final = 64
"""Audit files whose descriptors come with a reply: one for each server, and those that were rotated."""

SHOWN_OF_ID: Final = 8
"""Characters of a session's id that people see: enough to tell sessions apart, as in the log."""

Act = Literal["sessions", "end", "users", "block", "allow", "reload", "audit", "console"]


class Request(Struct, frozen=True, omit_defaults=True):
    """What is asked."""

    v: int
    act: Act
    user: str = ""
    """Whose sessions end; who is blocked or allowed."""
    session: str = ""
    """Which session ends: its id, or the beginning of it."""


class OpenSession(Struct, frozen=True):
    """A session, for people."""

    id: str
    user: str
    server: str
    since: float
    """When it was opened, in seconds since 1970."""
    calls: int
    last: float
    """When its last call came, within a few seconds, in seconds since 1970; 0: it had none."""
    over: str = ""
    """`unix` or `http`."""
    gateway: str = ""
    """The name of the gateway that has it."""
    user_id: str = ""

    @property
    def described(self) -> str:
        """In words."""
        shown = self.id[:SHOWN_OF_ID]
        return f"the session {shown} of {self.user} at {self.server}, after {counted(self.calls, 'call')}"


class BlockedUser(Struct, frozen=True):
    """A user who is blocked."""

    user: str
    since: float
    by: str


class Reply(Struct, frozen=True, omit_defaults=True):
    """What became of it."""

    ok: bool
    says: tuple[str, ...] = ()
    """Sentences for people; if it is refused, one."""
    hint: str = ""
    sessions: tuple[OpenSession, ...] = ()
    users: tuple[BlockedUser, ...] = ()
    files: tuple[str, ...] = ()
    """The paths of the audit files."""


def encode(message: Request | Reply) -> bytes:
    """The message as a line."""
    return msgspec.json.encode(message) + b"\n"


def read_request(line: bytes) -> Request:
    """The request in a line. Raises UserError."""
    try:
        request = msgspec.json.decode(line, type=Request)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UserError("the request cannot be read", "this version of hookproxy does not fit the gateway") from None
    if request.v != VERSION:
        raise UserError("the request is of another version", "use the gateway's version of hookproxy")
    return request


def read_reply(line: bytes) -> Reply:
    """The reply in a line. Raises UserError, also if it is a refusal."""
    try:
        reply = msgspec.json.decode(line, type=Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UserError("the gateway gave no reply that can be read", "its log says more") from None
    if not reply.ok:
        raise UserError(reply.says[0] if reply.says else "the gateway has refused it", reply.hint)
    return reply
