"""One POST by the standard library, as the transport of a run would send it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping

import anyio


async def post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
    """The POST of a run: without redirects."""
    return await anyio.to_thread.run_sync(_post, url, headers, body)


def _post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, dict(headers), method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
