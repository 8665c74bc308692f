"""The HTTP of `hookproxy login`, and of a gateway for its issuer's keys: small documents, errors in one line.

No redirect to another origin is followed.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx2

from ..model.errors import UserError, file_hint, printable
from . import addresses

_TIMEOUT: Final = 20.0  # seconds for one request: discovery tries up to six addresses, and a person waits
_MAX_BODY: Final = 1_048_576  # bytes: a server may send without end; metadata has a few thousand
_MAX_REDIRECTS: Final = 5


class Fetch:
    """Sends requests to addresses that `addresses.check_endpoint` accepts for this server."""

    def __init__(self, client: httpx2.AsyncClient, server: str) -> None:
        self._client = client
        self._server = server

    async def get(self, name: str, url: str) -> httpx2.Response:
        """The response to a GET of what a server calls `name`. Redirects within the origin are followed.

        Raises UserError if the address must not be contacted, or if there is no response.
        """
        for _ in range(_MAX_REDIRECTS):
            addresses.check_endpoint(name, url, self._server)
            response = await self._send(httpx2.Request("GET", url, headers={"Accept": "application/json"}))
            following = response.next_request
            if following is None or addresses.origin(str(following.url)) != addresses.origin(url):
                break
            url = str(following.url)
        return response

    async def send(self, name: str, request: httpx2.Request) -> httpx2.Response:
        """The response to a request, without redirects. Raises UserError as `get`."""
        addresses.check_endpoint(name, str(request.url), self._server)
        return await self._send(request)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """As `credentials.Post`, with the checks of `send`."""
        response = await self.send("token_endpoint", httpx2.Request("POST", url, headers=dict(headers), content=body))
        return response.status_code, response.content

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """The whole response, at most 1 MiB of it. Raises UserError."""
        shown = addresses.shown(str(request.url))
        try:
            with anyio.fail_after(_TIMEOUT):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                try:
                    body = b""
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > _MAX_BODY:
                            break
                finally:
                    await response.aclose()
        except TimeoutError:
            raise UserError(f"{shown} has not responded within {_TIMEOUT:.0f} s", "try again later") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            why = printable(str(error)) or type(error).__name__
            raise UserError(f"{shown} cannot be reached: {why}", "check the address and the network") from None
        whole = httpx2.Response(response.status_code, headers=_kept(response.headers), content=body, request=request)
        whole.next_request = response.next_request
        return whole


def _kept(headers: httpx2.Headers) -> list[tuple[str, str]]:
    """The headers of the response without those of a body that is decoded already."""
    gone = ("content-encoding", "content-length", "transfer-encoding")
    return [(name, value) for name, value in headers.multi_items() if name.lower() not in gone]


@asynccontextmanager
async def fetching(server: str, ca_file: str = "") -> AsyncIterator[Fetch]:
    """Open a client; with a `ca_file`, its certificates are trusted besides those of the system. Raises UserError."""
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except ssl.SSLError:
            raise UserError(f"{ca_file}: has no certificates", "name a file with certificates as PEM") from None
        except OSError as error:
            hint = file_hint(ca_file, error)
            raise UserError(f"{ca_file}: cannot be read: {error.strerror}", hint) from None
    async with httpx2.AsyncClient(verify=context, timeout=_TIMEOUT) as client:
        yield Fetch(client, server)
