"""What is known of a remote server before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...model.credentials import Credentials
from ...network.address import Address, Proxy

if TYPE_CHECKING:
    import ssl


class Remote(Struct, frozen=True):
    """A remote server, and how to reach it."""

    address: Address
    credentials: Credentials
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of each request, with their secret values."""
    proxy: Proxy | None = None
    tls: ssl.SSLContext | None = None
    connect_seconds: float = 10.0
    silence_seconds: float = 600.0
    """Seconds without a byte of a response after which a request is given up; 0: never."""
    max_connections: int = 256
    max_bytes: int = 64 * 1024 * 1024
    """The longest message, from either side."""
