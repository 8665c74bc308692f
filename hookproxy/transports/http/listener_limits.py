"""What one peer of the listener, and all peers together, may take."""

from __future__ import annotations

import sys

from msgspec import Struct


class ListenerLimits(Struct, frozen=True):
    """What one peer, and all peers together, may take. Sizes are in bytes, times in seconds."""

    connections: int = 10_000
    """Open connections; for one more, an idle one is closed, or it gets a 503. Ten thousand idle streams take about
    100 MB."""
    strangers: int = 1_024
    """Of them, those of whom nobody knows who they are. Each takes up to 100 KB while TLS begins. More wait in the
    kernel, or the oldest are closed."""
    strangers_of_network: int = 256
    """The same from one IPv4 address, or one /64 of IPv6: all agents behind a company's address may begin at once."""
    connections_of_user: int = 512
    """Of one user: as many as sessions and requests in flight by default. For one more, an idle one is closed (429)."""
    head_bytes: int = 64 * 1024
    """Of a request's target and headers (431), and of what may come between two bytes of a body (trailers, extensions
    of chunks). It is eight times what other servers allow, because tokens and arguments travel in headers."""
    headers: int = 128
    """Headers of a request (431): agents send about 15, proxies add some."""
    body_bytes: int = 8 * 1024 * 1024
    """Of one body (413), twice as much as in the MCP SDKs: arguments of a call hold a file, but no film."""
    long_bytes: int = sys.maxsize
    """Of a body that is given on in pieces, for whoever takes it so."""
    held_bytes: int = 64 * 1024 * 1024
    """Of all requests that are not handled yet (503): eight of the longest bodies."""
    held_bytes_each: int = 16 * 1024 * 1024
    """The same of one user (429), or of one network whose senders nobody knows: two of the longest."""
    pipelined_bytes: int = 64 * 1024
    """Of requests that come before the response to an earlier one has ended. A peer that sends more is disconnected: no
    agent sends requests ahead, and reading must go on, because only it shows that a peer is gone."""
    pipelined_requests: int = 16
    """Requests in one read that wait for the response to the first: each takes more memory than its bytes."""
    head_seconds: float = 10.0
    """From the first byte of a request, or from the start of the connection, to the end of the head (408). Over the
    worst networks a head takes three round trips of a second."""
    body_seconds: float = 20.0
    """That a short body may take, and any pause of a longer one (408), as in Apache's mod_reqtimeout."""
    body_bytes_per_second: float = 500.0
    """How fast a longer body must come, as there: the slowest modem is faster. To be faster earns no longer pause."""
    idle_seconds: float = 75.0
    """That a connection stays open without a request. Balancers close theirs after 60: they must be first, or a request
    meets a connection that is being closed."""
    drain_idle_seconds: float = 5.0
    """The same once `close_when_idle` was called: a connection in use has its next request before, and learns of the
    end by the response to it."""
    write_seconds: float = 120.0
    """That a peer may take none of the bytes that wait for it, before it is disconnected."""
    linger_seconds: float = 2.0
    """That the rest of a refused request is read and thrown away, so that the peer can read why it was refused: to
    close at once would make its system forget the response."""
    dead_seconds: int = 120
    """After which TCP ends the connection of a peer that is gone without a word: its silence is probed four times in
    the second half. Less would end connections of laptops that change their network."""
