"""Runs a hook that is a web service: the document is posted, and what comes back with 2xx is the answer.

Connections are kept. Nothing is sent to whom the configuration does not name: no redirect is followed, no proxy of the
environment is used (the document may hold secrets, and who sets HTTPS_PROXY need not be who wrote the hook), no
cookie is kept and no .netrc read. TLS is verified against the system's certificates, or SSL_CERT_FILE.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import anyio
import httpx2

from ..dialects.kinds import VARIABLE
from ..errors import ConfigError
from ..model import Document, Ended, HookResult, HookSpec
from ..process import OUTPUT_LIMIT
from .base import Kept, Say

_IDLE: Final = 60.0  # seconds that a connection is kept: whether the other side has closed it is seen before its use
_CONNECTING: Final = 0.4  # of the timeout, for a connection and for its handshake
_LONGEST_CONNECTING: Final = 10.0  # seconds
_TRACE: Final = ("TRACEPARENT", "TRACESTATE")
"""Variables by which commands go on with a call's trace: here, headers of the same names."""

_OURS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is unpacked has no limit
    "User-Agent": "hookproxy",
}


def keep(hooks: list[HookSpec], _say: Say) -> Kept:
    """As `base.Keep`. Connects when the first document is to be posted."""
    addresses = {spec.url: _address(spec) for spec in hooks}
    context = ssl.create_default_context() if any(one.scheme == "https" for one in addresses.values()) else False
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=_IDLE)
    transport = httpx2.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)
    # verify=False is for plain HTTP alone: without it all authorities would be loaded, which takes 20 ms

    async def run(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ended, body, detail = Ended.FAILED, b"", ""
        try:
            request = _request(spec, addresses[spec.url], document, env)
            with anyio.fail_after(spec.timeout):
                body = await _posted(transport, request)
            ended = Ended.EXITED
        except TimeoutError:
            ended = Ended.TIMED_OUT
        except _NoAnswer as problem:
            detail = str(problem)
        except httpx2.HTTPError as problem:
            detail = f"could not be asked: {_reason(problem)}"
        return HookResult(ended, stdout=body, ms=(loop.time() - begun) * 1000, detail=detail)

    return Kept(run, transport.aclose)


class _NoAnswer(Exception):
    """There is no answer; the message says why, to stand as `Verdict.trouble`."""


def _address(spec: HookSpec) -> httpx2.URL:
    """The address as it is connected to, which must be what the configuration was judged by. Raises ConfigError."""
    address = httpx2.URL(spec.url)
    loopback = address.host == "localhost" or address.host == "::1" or address.host.startswith("127.")
    if address.userinfo or not (address.scheme == "https" or (address.scheme == "http" and loopback)):
        raise ConfigError(spec.source, f"{spec.url!r} is no address of a hook", 'write "https://host/path"')
    return address


def _headers(spec: HookSpec, document: Document, env: Mapping[str, str]) -> dict[str, str]:
    """The headers with their variables' values. Raises _NoAnswer where one has none that can be sent."""
    headers = _OURS | {name.lower(): document.env[name] for name in _TRACE if document.env.get(name)}
    for name, written in spec.headers:
        for found in VARIABLE.finditer(written):
            variable = found[1] or found[2]
            value = env.get(variable, "")
            if not value or not value.isascii() or not value.isprintable():
                why = "holds what no header can" if value else "is not set"
                raise _NoAnswer(f"is not asked: the variable {variable}, which its header {name} needs, {why}")
        value = VARIABLE.sub(lambda found: env[found[1] or found[2]], written)
        for same in [one for one in headers if one.lower() == name.lower()]:
            del headers[same]
        headers[name] = value
    return headers


def _request(spec: HookSpec, address: httpx2.URL, document: Document, env: Mapping[str, str]) -> httpx2.Request:
    """Raises _NoAnswer. Its own limit for connecting ends before ours: a handshake that is cancelled is not closed."""
    limits = {"timeout": {"connect": min(spec.timeout * _CONNECTING, _LONGEST_CONNECTING)}}
    headers = _headers(spec, document, env)
    return httpx2.Request("POST", address, headers=headers, content=bytes(document.stdin), extensions=limits)


async def _posted(transport: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> bytes:
    """The answer's body. Raises _NoAnswer and HTTPError."""
    response = await transport.handle_async_request(request)
    try:
        return await _body(response)
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


async def _body(response: httpx2.Response) -> bytes:
    if not 200 <= response.status_code < 300:
        redirects = ", and redirects are not followed" if 300 <= response.status_code < 400 else ""
        raise _NoAnswer(f"answered with status {response.status_code}{redirects}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _NoAnswer("answered with a packed body, which was not asked for")
    if response.headers.get("content-type", "").startswith("text/html"):
        raise _NoAnswer("answered with a page for people: is the address the hook's?")
    pieces, size = [], 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > OUTPUT_LIMIT:
            raise _NoAnswer(f"answered with more than {OUTPUT_LIMIT} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _reason(problem: httpx2.HTTPError) -> str:
    """In a few words; the deepest error says most."""
    deepest: BaseException = problem
    while (cause := deepest.__cause__ or deepest.__context__) is not None:
        deepest = cause
    return str(deepest).partition("\n")[0] or str(problem) or type(deepest).__name__
