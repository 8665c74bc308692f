"""Requests to the addresses that servers name: real servers on loopback."""

from __future__ import annotations

import pytest

from hookproxy.authorization.fetch import fetching
from tests.support.http_server import Request, Server, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/"


async def answer(request: Request) -> None:
    await request.json(b'{"found": true}')


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Moved", "308 Moved"])
async def test_a_document_is_not_looked_for_at_another_origin(status: str) -> None:
    """Another port of this machine is another origin, and a service there may act on a GET."""

    async def redirect(request: Request) -> None:
        await request.status(status, f"Location: {url(other)}\r\n")

    async with serving(answer) as other, serving(redirect) as server, fetching(url(server)) as fetch:
        response = await fetch.get("resource_metadata", url(server))
        assert str(response.status_code) == status[:3]
        assert (len(server.requests), other.connections) == (1, 0)


async def test_a_document_may_have_another_path_at_the_same_origin() -> None:
    async def redirect(request: Request) -> None:
        if request.target == "/moved":
            await answer(request)
        else:
            await request.status("307 Moved", "Location: /moved\r\n")

    async with serving(redirect) as server, fetching(url(server)) as fetch:
        assert (await fetch.get("resource_metadata", url(server))).json() == {"found": True}


@pytest.mark.parametrize("status", ["302 Found", "307 Moved", "308 Moved"])
async def test_a_form_with_secrets_is_sent_to_one_address_only(status: str) -> None:
    async def redirect(request: Request) -> None:
        await request.status(status, f"Location: {url(other)}\r\n")

    async with serving(answer) as other, serving(redirect) as server, fetching(url(server)) as fetch:
        found, _ = await fetch.post(url(server), {}, b"refresh_token=secret")
        assert str(found) == status[:3]
        assert (len(server.requests), other.connections) == (1, 0)
