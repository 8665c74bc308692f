"""The HTTP server to which the webhook's answers come.

How it works: it listens at an address of this machine, from the first approval on that is posted, and takes `POST
…/APPROVAL/TOKEN` only. A fixed port may belong to another run of ours, because each server of an agent has its own:
that one passes the answers on, to the run whose name begins the approval's id, over the socket at which consoles find
it. Whoever holds the port must know the webhook's secret, which `GET …/holder/NONCE` proves: else nothing is posted.

What must hold: only the right token answers; a GET changes nothing, because chat programs fetch the links that they
show; no page of a browser can answer; bodies, heads and connections are bounded in size, number and time (law 1).
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NoReturn

import anyio

from ..jsonrpc import raw_json
from ..live.messages import Answer, AnswerTaken
from ..network import address
from ..network.post import CollectedResponse, request_head, send_alone
from ..transports.http.accepting import Accepting, serve_sockets
from ..transports.http.listener import Listener
from ..transports.http.listener_limits import ListenerLimits
from ..transports.http.request_reader import Request
from ..transports.http.responder import Headers, Responder
from . import webhook

PATH: Final = "/approvals"
"""The path of the listener's own address."""

_LIMITS: Final = ListenerLimits(
    connections=64, strangers=64, strangers_of_network=64, head_bytes=8192, body_bytes=webhook.LONGEST_ANSWER,
    held_bytes=4 * webhook.LONGEST_ANSWER, held_bytes_each=4 * webhook.LONGEST_ANSWER, pipelined_requests=1,
)  # fmt: skip
"""People answer one approval after another, and all of them through one tunnel."""

_TARGET: Final = re.compile(rb"(?:/[!-~]*)?/([A-Za-z0-9-]{1,40})/([A-Za-z0-9_-]{43})")
"""An approval's id, which begins with the name of its run, and its token."""

_HOLDER: Final = re.compile(rb"(?:/[!-~]*)?/holder/([A-Za-z0-9_-]{43})")
_PROOF_SECONDS: Final = 5.0  # for a process of this machine
_LONGEST_PROOF: Final = 256  # bytes
_TOKEN_BYTES: Final = 32  # of an answer's URL: 256 bits cannot be guessed
_HEADERS: Final[Headers] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


def is_answer(target: bytes) -> bool:
    """The target of a request is the URL of an answer. A reverse proxy may have changed the beginning of it."""
    return _TARGET.fullmatch(target) is not None


Answering = Callable[[Answer], Awaitable[AnswerTaken | None]]
"""Takes an answer, or passes it on; None: there is no such approval, or its token is another one."""


Spawn = Callable[..., None]
"""Starts a task with these arguments."""


class PortTaken(Exception):
    """Another program listens at the port. The text says so."""


def new_token() -> str:
    """The part of an answer's URL that nobody can guess."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


class AnswerServer:
    """Listens at one address from `open` until `aclose`."""

    def __init__(self, secret: bytes, answering: Answering, spawn: Spawn, report: Callable[[str], None]) -> None:
        """`spawn` starts a task in which an answer is taken. `secret` is the webhook's; empty: nobody asks for it."""
        self._secret = secret
        self._answering = answering
        self._spawn = spawn
        self._report = report
        self._listener = Listener(self.handle, _LIMITS)
        self._socket: socket.socket | None = None
        self._accepting: Accepting | None = None
        self.address = ""
        """The URL at which it answers, also if another run of ours holds the port; empty: it is not open."""

    @property
    def is_open(self) -> bool:
        """It listens itself."""
        return self._socket is not None

    async def open(self, listen: str) -> None:
        """Listen at HOST:PORT, or find another run of ours there. Raises PortTaken."""
        if self._socket is not None:
            return
        host, _, port = listen.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("127.0.0.1" if host == "localhost" else host, int(port)))
            listening.listen()
        except OSError as problem:
            listening.close()
            if int(port) and await self._is_ours(url := _url(host, int(port)), int(port)):
                self.address = url
                return
            raise PortTaken(f"{listen}: {problem.strerror}, and no other run of hookproxy has it") from None
        except BaseException:
            listening.close()
            raise
        self._socket = listening
        self.address = _url(host, listening.getsockname()[1])
        self._accepting = await serve_sockets(self._listener, listening, None)

    async def aclose(self) -> None:
        """Listen no more, and break off what is open."""
        if self._accepting is not None:
            await self._accepting.stop()
        self._listener.close()
        if self._socket is not None:
            self._socket.close()
        self._socket, self._accepting, self.address = None, None, ""

    # --- whose port it is ---

    async def _is_ours(self, url: str, port: int) -> bool:
        """Whoever listens there, at this port, knows the webhook's secret, and does not only ask another run for it."""
        nonce = secrets.token_urlsafe(_TOKEN_BYTES)
        place = address.parse(f"{url}/holder/{nonce}")
        response = CollectedResponse(_LONGEST_PROOF)
        try:
            with anyio.fail_after(_PROOF_SECONDS):
                proof = await send_alone(place, request_head(b"GET", place, {}), response, {}, _no_tls)
        except OSError:  # a timeout is one
            return False
        return response.status == HTTPStatus.OK and hmac.compare_digest(proof, self._proof(nonce.encode(), port))

    def _proof(self, nonce: bytes, port: int) -> bytes:
        return hmac.digest(self._secret, b"holder.%d.%b" % (port, nonce), "sha256").hex().encode()

    # --- requests ---

    def handle(self, request: Request, responder: Responder) -> None:
        """Respond to a request, now or later."""
        holder = _HOLDER.fullmatch(request.target) if self._secret and request.method == b"GET" else None
        if holder is not None and self._socket is not None:
            responder.respond(HTTPStatus.OK, _HEADERS, self._proof(holder[1], self._socket.getsockname()[1]))
            return
        match, headers = _TARGET.fullmatch(request.target), dict(request.headers)
        if match is None:
            _respond(responder, HTTPStatus.NOT_FOUND, "there is no such approval")
        elif request.method != b"POST":
            responder.respond(HTTPStatus.METHOD_NOT_ALLOWED, (*_HEADERS, (b"allow", b"POST")), b"")
        elif b"origin" in headers:
            _respond(responder, HTTPStatus.FORBIDDEN, "a page of a browser cannot answer")
        elif headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            _respond(responder, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "an answer is application/json")
        else:
            self._answer(request, match[1].decode(), match[2].decode(), responder)

    def _answer(self, request: Request, approval: str, token: str, responder: Responder) -> None:
        try:
            answer = webhook.read_answer(request.body or b"".join(request.pieces), approval, token)
        except ValueError as problem:
            _respond(responder, HTTPStatus.BAD_REQUEST, str(problem))
            return
        self._spawn(self._take, answer, responder)

    async def _take(self, answer: Answer, responder: Responder) -> None:
        try:
            confirmation = await self._answering(answer)
        except Exception as defect:  # the boundary of one request
            self._report(f"an answer of the webhook could not be taken: {defect!r}")
            _respond(responder, HTTPStatus.INTERNAL_SERVER_ERROR, "hookproxy could not take it")
            return
        if confirmation is None or not confirmation.found:
            _respond(responder, HTTPStatus.NOT_FOUND, "there is no such approval")
        elif confirmation.accepted:
            responder.respond(HTTPStatus.OK, _HEADERS, b'{"taken":true}\n')
        else:
            _respond(responder, HTTPStatus.CONFLICT, confirmation.why)


def _respond(responder: Responder, status: HTTPStatus, why: str) -> None:
    with suppress(ConnectionError):
        responder.respond(status, _HEADERS, raw_json.encode({"taken": False, "why": why}) + b"\n")


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def _no_tls() -> NoReturn:
    raise AssertionError("http needs no TLS")
