"""What operators ask over HTTP: real requests to a real listener."""

from __future__ import annotations

import pytest

from hookproxy.gateway.http_listeners import is_trusted
from hookproxy.gateway.probes import may_ask
from hookproxy.transports.http.request_reader import Peer, Request


@pytest.mark.parametrize(
    ("address", "may"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("", False),
        ("localhost", False),
    ],
)
def test_only_this_machine_may_ask_where_agents_come(address: str, may: bool) -> None:
    assert may_ask(Request(b"GET", b"/metrics", [], b"", Peer(address))) is may
    assert is_trusted(address, ()) is may
