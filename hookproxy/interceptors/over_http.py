"""Serves hosts on this machine over HTTP: each POST is one message, and gets the response to it.

Only addresses of this machine are listened at, and only requests that name one are accepted: a page in a browser, or
another machine, can have nothing judged and read nothing (DNS rebinding). uvicorn reads the requests, as for `console`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ..dialects.shared.handler_types import is_loopback
from ..model.errors import UserError
from ..transports.uvicorn_server import serving
from .service import Service

if TYPE_CHECKING:
    from starlette.requests import Request

_LARGEST_PORT: Final = 65535


def listen(address: str) -> socket.socket:
    """A socket that listens at HOST:PORT. Raises UserError; port 0 is any free one."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LARGEST_PORT and host):
        raise UserError(f"--listen: {address!r} is not HOST:PORT", "write --listen 127.0.0.1:8650")
    if not is_loopback(host):
        hint = "write --listen 127.0.0.1:PORT; whoever reaches it can have everything judged and recorded"
        raise UserError(f"--listen: {host} is not an address of this machine alone", hint)
    try:
        family = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else without TCP_NODELAY
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen()
    except OSError as error:
        raise UserError(f"--listen {address}: {error.strerror or error}", "choose another port") from None
    return listener


async def serve(service: Service, listener: socket.socket, longest: int, started: Callable[[], None]) -> None:
    """Respond to requests until cancelled; then hooks are ended. `longest` in bytes, of a message."""
    async with serving(_application(service, longest), listener):
        started()
        await anyio.sleep_forever()


def _application(service: Service, longest: int) -> Starlette:
    async def respond(request: Request) -> Response:
        named = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if not is_loopback(named.removeprefix("[").removesuffix("]")) or "origin" in request.headers:
            return PlainTextResponse("This server is for programs of this machine.", 403)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return PlainTextResponse("A message is application/json.", 415)
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > longest:
                return PlainTextResponse("This message is too long.", 413)
        response = await service.respond(bytes(body))
        return Response(status_code=202) if response is None else Response(response, media_type="application/json")

    return Starlette(routes=[Route("/{path:path}", respond, methods=["POST"])])
