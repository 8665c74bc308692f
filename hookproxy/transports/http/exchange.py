"""One HTTP request and its response: what it is for, what is known of it so far, and what is asked of its I/O."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol

from msgspec import Struct

from ...jsonrpc.known_secrets import KnownSecrets, known_secrets
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
MAX_ADDRESS_SHOWN: Final = 200  # characters: enough to recognise an address
_NOT_ACTED: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 426, 428, 429, 431})
_GETS: Final = (Kind.LISTEN, Kind.RESUME, Kind.ENDPOINT)


class Exchange(Struct, eq=False):
    """One HTTP request and its response. `client` changes it; `channel` sends it."""

    kind: Kind
    message: Message | None = None
    body: bytes = b""
    ids: dict[bytes, bytes] = {}  # each has its own
    """The requests that are not answered yet: each id as spelled, by its key."""
    target: bytes = b""
    """Path and query after a redirect; empty: those of the URL."""
    last_event_id: bytes = b""
    retry: float = 0.0
    sent_at: float = 0.0
    """When it was sent last, by the loop's clock."""
    sent_session: bytes = b""
    """The session id that it was sent with."""
    session_lost: bool = False
    """The server did not know its session once already."""
    redirects: int = 0
    failures: int = 0
    """Attempts to resume that failed since the last one that succeeded."""
    resumed_for: float = 0.0
    """Seconds that were waited for its stream since its last message."""
    authorized: bool = False
    """It was refused, and sent again with other credentials."""
    used_authorization: str | None = None
    is_done: bool = False
    # what `restart` forgets:
    sent: bool = False
    """The server may have got it."""
    call_id: bytes = b""
    """The id of the one call that it brings, if that was read already and this is the first attempt to send it. It is
    its own key."""
    status: int = 0
    headers: dict[bytes, bytes] = {}  # as above
    content_type: bytes = b""
    reader: EventReader | None = None
    collected: bytes | bytearray = b""
    passage: Passage | None = None
    """Its response is on its way to the agent, although its end has not come."""
    passed: int = -1
    """Bytes of the response that were passed on; -1: nobody has asked yet whether they may."""

    def __post_init__(self) -> None:
        if self.message is not None:
            self.body = self.message.body
            if self.message.ids:
                self.ids = keys_of(self.message.ids)

    def restart(self) -> None:
        """Forget the response, to send the request again."""
        self.sent, self.call_id = False, b""
        self.status, self.headers, self.content_type = 0, {}, b""
        self.reader, self.collected, self.passage, self.passed = None, b"", None, -1

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

    def error_text(self, secrets: KnownSecrets) -> str:
        """What the server says about an error, after a colon; empty: it says nothing that can be shown."""
        body = bytes(self.collected)
        text = error_message(body)
        if not text and self.content_type == b"text/plain":
            text = body.decode(errors="replace")
        text = self._shown(text, secrets, _MAX_ERROR_SHOWN)
        text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return f": {text.rstrip('.')}" if text else ""

    def shown_location(self, secrets: KnownSecrets) -> str:
        """Where the server redirects to, for a report or an error."""
        return self._shown(self.headers.get(b"location", b"").decode("latin-1"), secrets, MAX_ADDRESS_SHOWN)

    def _shown(self, text: str, secrets: KnownSecrets, longest: int) -> str:
        """The beginning of what the server has sent, without what it may have from us."""
        if self.used_authorization:
            text = known_secrets([self.used_authorization]).removed_from(text)
        return secrets.shortened(text, longest)


class Wire(Protocol):
    """The I/O of a `Client`."""

    @property
    def secrets(self) -> KnownSecrets:
        """What must not be in our own texts about the server."""

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
