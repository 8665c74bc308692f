"""The handshake of a shared server, which takes place once, with the first client's version, name and capabilities.

    NONE ──initialize──▶ PENDING ──result──▶ AGREED
      ▲                    │
      └───────error────────┘

While it is PENDING, other clients that initialize wait. Then they get its result, if they ask for the version that was
asked for or the one agreed on; after an error, the next of them begins it anew. The server gets the first
`notifications/initialized`, and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct, field

from ..jsonrpc import raw_json
from ..jsonrpc.raw_json import Span
from . import calls, feedback, shared_messages
from .shared_messages import Message, Send, refused
from .shared_tables import SERVER, Owner


class Stage(Enum):
    """How far the handshake is."""

    NONE = auto()  # the server has no `initialize`, or has refused the last one
    PENDING = auto()  # it has not answered it yet
    AGREED = auto()  # its result is known


class Client(Struct, eq=False):
    """One client of the shared server."""

    number: int
    owner: Owner
    is_open: bool = False
    """It may get messages that it did not ask for: it has the handshake, or is of the stateless era."""
    has_handshake: bool = False
    """Its `initialize` is answered."""
    initialized: bytes = b""
    """Its `notifications/initialized`, while the result of `initialize` is still awaited."""
    capabilities: bytes = b"{}"
    """As it announced them."""


Forward = Callable[[Client, Message], Send]
"""Gives a request its number, and returns it for the server."""


class SharedHandshake(Struct, eq=False):
    """The handshake, and the clients that wait for its result."""

    stage: Stage = Stage.NONE
    client: Client | None = None
    """The client whose `initialize` the server has, while it is PENDING."""
    version: str = ""
    """The protocol version that this client asks for."""
    capabilities: bytes = b""
    """The client's capabilities, as the server has got them."""
    result: bytes = b""
    """The line of the server's result."""
    id_span: Span = (0, 0)
    versions: frozenset[str] = frozenset()
    """The protocol versions for which a client gets this result: the one asked for, and the one agreed on."""
    is_complete: bool = False
    """The server has `notifications/initialized`."""
    waiting: list[tuple[Client, Message]] = field(default_factory=list)

    @property
    def is_agreed(self) -> bool:
        """The result is known."""
        return self.stage is Stage.AGREED

    def leave(self, who: Client) -> None:
        """A client has left; the server may still have its `initialize`."""
        self.waiting = [(client, message) for client, message in self.waiting if client is not who]

    def _waiting_of(self, who: Client) -> Message | None:
        """The client's `initialize` that waits; a client has one at most."""
        return next((message for client, message in self.waiting if client is who), None)

    def awaits_response(self, who: Client, key: bytes) -> bool:
        """True if the client's `initialize` with an id of this key waits: it may still get a number."""
        waiting = self._waiting_of(who)
        return waiting is not None and calls.id_key(waiting.id) == key

    def initialize(self, who: Client, message: Message, forward: Forward) -> list[Send]:
        """Handle a client's `initialize`."""
        if who.has_handshake or self.client is who or self._waiting_of(who) is not None:
            return [refused(who.number, message.line, message.id, "The session has been initialized already.")]
        who.capabilities = message.param("capabilities") or b"{}"
        if self.stage is Stage.AGREED:
            return [self._recorded_result(who, message)]
        if self.stage is Stage.PENDING:
            self.waiting.append((who, message))
            return []
        self.stage, self.client = Stage.PENDING, who
        self.version, self.capabilities = message.text_param("protocolVersion"), who.capabilities
        return [forward(who, message)]

    def _recorded_result(self, who: Client, message: Message) -> Send:
        """The result that the first client has got; an error if the client asks for another version."""
        if message.text_param("protocolVersion") not in self.versions:
            requested, supported = message.param("protocolVersion"), sorted(self.versions)
            return Send(who.number, feedback.other_version(message.id, requested, supported))
        who.is_open = who.has_handshake = True
        return Send(who.number, raw_json.splice(self.result, [(self.id_span, message.id)]))

    def answered(self, message: Message, forward: Forward) -> list[Send]:
        """Return what follows from the response to `initialize`, besides the response to its client itself."""
        first, waiting = self.client, self.waiting
        self.stage, self.client, self.waiting = Stage.NONE, None, []
        version = shared_messages.place_in_result(message, "protocolVersion")
        if message.is_error or version is None:
            return [send for who, request in waiting for send in self.initialize(who, request, forward)]
        agreed = raw_json.text(message.line[slice(*version)]) or ""
        self.stage, self.result, self.id_span = Stage.AGREED, message.line, message.id_span
        self.versions = frozenset((agreed, self.version)) - {""}
        sends: list[Send] = []
        if first is not None:
            first.is_open = first.has_handshake = True
        for who, request in waiting:
            sends.append(self._recorded_result(who, request))
            if who.has_handshake and who.initialized and not self.is_complete:
                self.is_complete = True
                sends.append(Send(SERVER, who.initialized))
        return sends

    def initialized(self, who: Client, message: Message) -> list[Send]:
        """Pass on the first `notifications/initialized`."""
        if self._waiting_of(who) is not None:
            who.initialized = message.line
            return []
        if self.is_complete or (self.is_agreed and not who.has_handshake):
            return []
        self.is_complete = self.is_agreed or self.client is who
        return [Send(SERVER, message.line)]
