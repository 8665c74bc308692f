"""A document that is fetched whole from an address, with what its head says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from . import address
from .post import CollectedResponse, request_head, send_alone

if TYPE_CHECKING:
    import ssl


class Document(Struct, frozen=True):
    """A response."""

    status: int
    headers: Mapping[bytes, bytes]
    """Names are in lower case."""
    body: bytes


Get = Callable[[str, Mapping[str, str]], Awaitable[Document]]
"""Gets what is at an address, with these headers of the request. Raises OSError, UserError."""


def getter(environ: Mapping[str, str], tls: Callable[[], ssl.SSLContext], limit: int) -> Get:
    """Return a function that sends a GET. It follows no redirects, and gets at most so many bytes.

    It raises OSError, also for a longer response and for one that is encoded: nothing is unpacked unasked.
    """

    async def get(url: str, headers: Mapping[str, str]) -> Document:
        place = address.parse(url)
        head: dict[bytes, bytes] = {}

        def note_head(_status: int, of_response: dict[bytes, bytes]) -> None:
            head.update(of_response)
            if of_response.get(b"content-encoding", b"identity").lower() != b"identity":
                raise ConnectionError("the response is encoded, although nothing has asked for that")

        response = CollectedResponse(limit, note_head)
        body = await send_alone(place, request_head(b"GET", place, headers), response, environ, tls)
        return Document(response.status, head, body)

    return get
