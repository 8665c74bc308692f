"""The requests of a run of the proxy to the guard, and the guard's responses, after the run's greeting. Pure.

A run greets the guard as `exchange` says, and writes its requests, each as a line of JSON; the guard responds to each
in turn with a `Response`, a line as well. The first request is `Join`. A run and a guard of two versions of hookproxy
do not speak to each other.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct

from ..model.flow import ClearedFlow, KnownLabels, Reading
from ..model.hooks import Tool
from ..model.limits import Limit
from ..model.reported_call import ReportedCall

LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a line: the tools that a server lists, and arguments before hooks rewrote them, may be long."""


class Join(Struct, frozen=True, tag=True):
    """A run says who it is."""

    version: str
    """Of hookproxy."""
    server: str
    """The server's name, as hooks see it."""
    session: str
    """The id that its own session has: the guard's, if it is the first of its agent."""
    command: tuple[str, ...] = ()
    """The server's command line, by which its tools may be known; empty: it has none."""
    policy: str = ""
    """A digest of its configuration, as `config.digest` says; empty: the guard's decisions do not count for it."""


class Listed(Struct, frozen=True, tag=True):
    """The server has listed these tools."""

    tools: tuple[Tool, ...]
    server_name: str
    """As in `Hooks.note_tools`."""


class Claim(Struct, frozen=True, tag=True):
    """The run has got a call. Has the agent reported it?"""

    tool: str
    arguments: bytes
    """A digest of its exact arguments."""
    call: str
    """The agent's own id of it; empty: the call has none along."""
    seen: str
    """As `seen.digest_of` says."""


class Ended(Struct, frozen=True, tag=True):
    """A claimed call has ended, and is recorded."""

    record: str
    decision: str
    result: str
    """Both as in a record."""
    size: int
    """Bytes of its response."""
    seconds: float


class Limits(Struct, frozen=True, tag=True):
    """Which of these limits would a call exceed that has these keys (`rate_limits.count_key`)?"""

    limits: tuple[Limit, ...]
    keys: tuple[bytes, ...]


class Count(Limits, frozen=True, tag=True):
    """Count the call, unless one refuses it. It may exceed the limits with the keys that are approved."""

    approved: tuple[str, ...]


class Approvals(Struct, frozen=True, tag=True):
    """What a person has allowed for the session, of the tools of this server."""


class Allow(Struct, frozen=True, tag=True):
    """A person has allowed these calls of the server's tools for the session."""

    calls: Raw
    """An `Approved`."""


class SecretKey(Struct, frozen=True, tag=True):
    """What is the key of the session's placeholders?"""


class KeepSecrets(Struct, frozen=True, tag=True):
    """The values of these placeholders, with a character for each byte."""

    values: dict[str, str]


class SecretOf(Struct, frozen=True, tag=True):
    """What does this placeholder stand for?"""

    placeholder: str


SecretRequest = SecretKey | KeepSecrets | SecretOf


class LabelKey(Struct, frozen=True, tag=True):
    """With which key are prints of the session made?"""


class KnownNow(Struct, frozen=True, tag=True):
    """What sticks to the session, and which of it do these prints carry? None: all of it."""

    prints: tuple[int, ...] | None = ()
    key: bytes = b""
    """With which they were made: those of another key may stand for anything."""


class Read(Struct, frozen=True, tag=True):
    """The agent is about to get this from the run, as in `SharedLabels.add`."""

    reading: Reading
    prints: tuple[int, ...] = ()
    whole: bool = False
    key: bytes = b""


class Clear(Struct, frozen=True, tag=True):
    """A person allows this for the session with this key."""

    cleared: ClearedFlow
    key: bytes


LabelRequest = LabelKey | KnownNow | Read | Clear
Request = Join | Listed | Claim | Ended | Limits | Count | Approvals | Allow | SecretRequest | LabelRequest


class Exceeded(Struct, frozen=True, omit_defaults=True):
    """A limit that a call would exceed."""

    number: int
    """Of the limit among those of the request."""
    retry_after: int


class Response(Struct, frozen=True, omit_defaults=True):
    """The guard's response to a request."""

    session: str
    """The id of the session now."""
    exceeded: tuple[Exceeded, ...] = ()
    approved: tuple[Raw, ...] = ()
    """Each an `Approved`."""
    reported: ReportedCall | None = None
    secret_key: bytes = b""
    secret: str | None = None
    """What a placeholder stands for; None: no run of the session has made it."""
    label_key: bytes = b""
    """To a request about labels: the key with which prints of the session are made, and by which it is known."""
    known: KnownLabels | None = None
