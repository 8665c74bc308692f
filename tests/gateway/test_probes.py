"""What operators ask over HTTP: real requests to a real listener."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.config.gateway_models import GatewayTable
from hookproxy.gateway.http_listeners import is_trusted
from hookproxy.gateway.probes import is_own_host, may_ask
from hookproxy.transports.http.request_reader import Peer, Request
from tests.gateway.test_http_agents import Rig


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


TABLE = GatewayTable(
    probes="http://metrics.internal:9090", public_url="https://mcp.example.com:8443/x", probe_hosts=["Gateway.svc"]
)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        (b"localhost", True),
        (b"LOCALHOST:1", True),
        (b"127.0.0.1:9090", True),
        (b"10.1.2.3", True),
        (b"[::1]:9090", True),
        (b"[fd00::7]", True),
        (b"metrics.internal:9090", True),
        (b"mcp.example.com", True),
        (b"gateway.svc:80", True),
        (os.uname().nodename.encode(), True),
        (b"evil.example:9090", False),
        (b"127.0.0.1.evil.example", False),
        (b"localhost.evil.example:9090", False),
        (b"evil.example#localhost", False),
        (b"user@localhost", False),
        (b"localhost:9090:1", False),
        (b"localhost/", False),
        (b"[evil]", False),
        (b"", False),
        (b":9090", False),
        (b"\xc3\xa9", False),
    ],
)
def test_a_name_that_a_web_page_may_have_given_us_is_not_ours(host: bytes, is_own: bool) -> None:
    assert is_own_host(host, TABLE) is is_own
    assert not is_own_host(b"metrics.internal", GatewayTable())


async def status_of(rig: Rig, path: str, *headers: str) -> int:
    with anyio.fail_after(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write("\r\n".join([f"GET {path} HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
        response = await reader.read()
        writer.close()
    return int(response.split()[1])


@pytest.mark.anyio
async def test_where_agents_come_no_web_page_gets_an_answer(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "s", lambda: 0)
    async with rig.serving('command = ["cat"]\n'):
        own = f"Host: 127.0.0.1:{rig.port}"
        for path in ("/metrics", "/healthz", "/readyz"):
            assert await status_of(rig, path, own) == 200
            assert await status_of(rig, path, "Host: evil.example") == 421
            assert await status_of(rig, path, own, "Origin: https://evil.example") == 403


@pytest.mark.anyio
async def test_behind_a_proxy_everybody_comes_from_this_machine_so_nobody_is_answered(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "s", lambda: 0)
    async with rig.serving('command = ["cat"]\n', 'trusted_proxies = ["10.0.0.1"]\n'):
        assert await status_of(rig, "/metrics", f"Host: 127.0.0.1:{rig.port}") == 401


@pytest.mark.anyio
async def test_a_gateway_that_no_signed_policy_is_in_force_at_is_not_ready(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "s", lambda: 0)
    async with rig.serving('command = ["cat"]\n'):
        gateway = rig._gateway
        gateway.config = replace(gateway.config, closed="the policy has expired")
        own = f"Host: 127.0.0.1:{rig.port}"
        assert [await status_of(rig, path, own) for path in ("/readyz", "/healthz", "/metrics")] == [503, 200, 200]
