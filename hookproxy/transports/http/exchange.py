"""One HTTP request and its response: what it is for, and what is known of it so far."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from ..channel import Passage
from .messages import Message, answered_ids, error_message, key_of, keys_of
from .sse import EventReader


class Kind(Enum):
    """What an exchange is for."""

    REQUEST = auto()  # POST of requests of the agent, which await responses
    MESSAGE = auto()  # POST of a notification, or of a response to the server
    LISTEN = auto()  # GET: what the server sends by itself
    RESUME = auto()  # GET: the rest of a response stream that has ended early
    ENDPOINT = auto()  # GET of HTTP+SSE (2024-11-05): it names the address for messages, and carries all responses
    REOPEN = auto()  # POST of the recorded `initialize`, because the server has lost the session
    DELETE = auto()  # the end of the session


_MAX_ERROR_SHOWN: Final = 500  # characters of a server's error text in ours: a page of HTML would only take tokens
_NOT_ACTED: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 426, 428, 429, 431})
_GETS: Final = (Kind.LISTEN, Kind.RESUME, Kind.ENDPOINT)


class Exchange:
    """One HTTP request and its response. `client` changes it; `channel` sends it."""

    __slots__ = (
        "authorized",
        "body",
        "call_id",
        "collected",
        "content_type",
        "failures",
        "headers",
        "ids",
        "is_done",
        "kind",
        "last_event_id",
        "message",
        "passage",
        "passed",
        "reader",
        "redirects",
        "resumed_for",
        "retry",
        "sent",
        "sent_at",
        "sent_session",
        "session_lost",
        "status",
        "target",
        "used_authorization",
    )

    def __init__(self, kind: Kind, message: Message | None = None) -> None:
        self.kind = kind
        self.message = message
        self.body = message.body if message else b""
        self.ids: dict[bytes, bytes] = keys_of(message.ids) if message is not None and message.ids else {}
        """The requests that are not answered yet: each id as spelled, by its key."""
        self.target = b""
        """Path and query after a redirect; empty: those of the URL."""
        self.last_event_id = b""
        self.retry = 0.0
        self.sent_at = 0.0
        """When it was sent last, by the loop's clock."""
        self.sent_session = b""
        """The session id that it was sent with."""
        self.session_lost = False
        """The server did not know its session once already."""
        self.redirects = 0
        self.failures = 0
        """Attempts to resume that failed since the last one that succeeded."""
        self.resumed_for = 0.0
        """Seconds that were waited for its stream since its last message."""
        self.authorized = False
        """It was refused, and sent again with other credentials."""
        self.used_authorization: str | None = None
        self.is_done = False
        self.restart()

    def restart(self) -> None:
        """Forget the response, to send the request (again)."""
        self.sent = False
        """The server may have got it."""
        self.call_id = b""
        """The id of the one call that it brings, if that was read already and this is the first attempt to send it. It
        is its own key."""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.content_type = b""
        self.reader: EventReader | None = None
        self.collected: bytes | bytearray = b""
        self.passage: Passage | None = None
        """Its response is on its way to the agent, although its end has not come."""
        self.passed = -1
        """Bytes of the response that were passed on; -1: nobody has asked yet whether they may."""

    @property
    def is_get(self) -> bool:
        """It is a GET request, whose response is a stream."""
        return self.kind in _GETS

    @property
    def method(self) -> str:
        """The MCP method of its message; empty: it has none."""
        return self.message.method if self.message else ""

    @property
    def is_batch(self) -> bool:
        """It brings a batch of the agent."""
        return self.message is not None and self.message.body.lstrip()[:1] == b"["

    @property
    def kept(self) -> int:
        """Bytes of its response that are in memory."""
        return len(self.collected) + (self.reader.kept if self.reader is not None else 0)

    def collect(self, piece: bytes) -> int:
        """Add to the body; return its size."""
        if not self.collected:
            self.collected = piece
        else:
            if not isinstance(self.collected, bytearray):
                self.collected = bytearray(self.collected)
            self.collected += piece
        return len(self.collected)

    @property
    def is_refused_unread(self) -> bool:
        """Its status is one with which a server refuses a request before it acts on it."""
        return self.status in _NOT_ACTED

    def is_response(self, body: bytes) -> bool:
        """Whether this text is the response to one of its requests."""
        return any(key_of(raw_id) in self.ids for raw_id in answered_ids(body) or ())

    def error_text(self) -> str:
        """What the server says about an error, after a colon; empty: it says nothing that can be shown."""
        body = bytes(self.collected)
        text = error_message(body)
        if not text and self.content_type == b"text/plain":
            text = body.decode(errors="replace")
        text = " ".join("".join(char if char.isprintable() else " " for char in text[:_MAX_ERROR_SHOWN]).split())
        return f": {text.rstrip('.')}" if text else ""
