"""What an HTTP request of an agent must satisfy before anything acts on it: pure and synchronous.

The body is what counts. Whatever in the head says the same as the body must agree with it, because others choose by the
head where a request goes and what it may do. What two readers could read differently is refused.
Sources: MCP 2025-03-26, 2025-06-18 and 2025-11-25, basic/transports; MCP 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from .listener import Headers
from .mirror_headers import ParameterHeaders

STATELESS_VERSIONS: Final = ("2026-07-28",)
"""Versions without a handshake that are known here. A later one is refused: it may have further headers to check."""

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

Parameters = Callable[[str, str], ParameterHeaders | None]
"""From the names of a server and a tool to the arguments that have their own headers; None: the tool is not known."""


class Era(Enum):
    """How the agent speaks: with sessions, or with requests that stand alone."""

    HANDSHAKE = auto()
    STATELESS = auto()


class Kind(Enum):
    """What an accepted request asks for."""

    MESSAGE = auto()  # POST: it brings a message
    STREAM = auto()  # GET: it opens, or resumes, a stream of the server's messages
    END = auto()  # DELETE: it ends a session


class Rules(Struct, frozen=True):
    """What is allowed at one address."""

    servers: frozenset[str]
    """Names: each is reached at `/mcp/NAME`."""
    hosts: frozenset[bytes]
    """Values of `Host`, in lower case; see `allowed_hosts`."""
    origins: frozenset[bytes]
    """Values of `Origin`, in lower case; see `allowed_origins`. A request without one comes from no web page."""
    max_depth: int = 128
    """Brackets of a message that are open at once. Some readers (serde_json) go no deeper."""


class Accepted(Struct, frozen=True):
    """A request that may be acted on. Nothing is known yet of who sends it."""

    kind: Kind
    server: str
    era: Era
    version: str = ""
    """The value of `MCP-Protocol-Version`; empty: absent, which means 2025-03-26 or `initialize`."""
    line: bytes = b""
    """The message as it came, without line ends. (Those between its tokens have become blanks.)"""
    method: str = ""
    """The method of the message; empty: it is a response."""
    id: bytes = b""
    """The id of a request or a response, as spelled; empty: the message is a notification."""
    session: str = ""
    """`Mcp-Session-Id`; empty: absent, or of no meaning in this era."""
    last_event: bytes = b""
    """`Last-Event-ID` of a GET; empty: absent."""
    token: str = ""
    """The bearer token; empty: there is none, or other credentials that nobody here understands."""
    unknown_parameters: tuple[tuple[bytes, bytes], ...] = ()
    """Headers `mcp-param-…` that belong to no argument known here: they must be passed on."""


class Rejected(Struct, frozen=True):
    """The response to a request that must not be acted on. The body is a JSON-RPC error."""

    status: int
    headers: Headers
    body: bytes
    reason: str
    """The same for the log, in a sentence; it contains nothing of the request."""


def allowed_hosts(port: int, public_url: str = "", *, tls: bool = False) -> frozenset[bytes]:
    """Return the values of `Host` for a listener at `port`: the names of loopback, and the host of `public_url`."""
    raise NotImplementedError


def allowed_origins(port: int, public_url: str = "", *, tls: bool = False) -> frozenset[bytes]:
    """Return the values of `Origin` for a listener at `port`: as `allowed_hosts`, each with its scheme."""
    raise NotImplementedError


def check(
    method: bytes, target: bytes, headers: Headers, body: bytes, rules: Rules, parameters: Parameters
) -> Accepted | Rejected:
    """Return what a request asks for, or the response that refuses it. It raises nothing, whatever the request is."""
    raise NotImplementedError


_ = Mapping
