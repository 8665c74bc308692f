"""How verbs ask a running gateway: over its administration socket, where the kernel says who asks."""

from __future__ import annotations

import os
import socket
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ..config.gateway_models import DEFAULT_SOCKET
from ..gateway.admin_messages import MOST_FILES, VERSION, Reply, Request, encode, read_reply
from ..gateway.unix_listeners import admin_path
from ..model.errors import UserError
from ..trust.sources import state_folder
from .options import Parser

_PIECE: Final = 65_536  # bytes per read: most replies fit
_LONGEST: Final = 64 * 1024 * 1024  # bytes of a reply: a hundred thousand sessions
_SECONDS: Final = 30.0  # that a reply may take: a reload waits for files, a list for other gateways


USUAL: Final = "-"
"""The value of an option that names no path: the usual place."""

HELP: Final = f"for agents or for administration (default: $HOOKPROXY_SOCKET, else {DEFAULT_SOCKET})"


def add_socket(parser: Parser) -> None:
    """Add the option that names the gateway."""
    parser.add_argument("--socket", metavar="PATH", help=f"the gateway's socket, {HELP}")


def add_gateway(parser: Parser, about: str) -> None:
    """Add the option by which a verb is about a running gateway."""
    text = f"{about}; PATH is its socket, {HELP}"
    parser.add_argument("--gateway", metavar="PATH", nargs="?", const=USUAL, help=text)


def ask(request: Request, path: str | None) -> Reply:
    """Ask the gateway at this path. Raises UserError, also if it refuses."""
    reply, files = ask_for_files(request, path)
    for file in files:
        os.close(file)
    return reply


def ask_for_files(request: Request, path: str | None) -> tuple[Reply, Sequence[int]]:
    """As `ask`, with the descriptors that come with the reply."""
    with connect(path) as connection:
        connection.settimeout(_SECONDS)
        files: list[int] = []
        received = bytearray()
        try:
            with suppress(OSError):  # it has refused us already, and says why
                connection.sendall(encode(request))
            while not received.endswith(b"\n") and len(received) < _LONGEST:
                piece, descriptors, _, _ = socket.recv_fds(connection, _PIECE, MOST_FILES)
                files += descriptors
                received += piece
                if not piece:
                    break
        except OSError as error:
            raise UserError(f"the gateway does not reply: {error.strerror or error}", "its log says more") from None
        if not received:
            raise UserError("the gateway has closed the connection", "its log says more, or too many are open")
        return read_reply(bytes(received)), files


def console_of(options: Namespace) -> Callable[[], socket.socket] | None:
    """What opens a console of the gateway that `--gateway` names; None: there is no such option. Raises UserError if it
    cannot be opened now.
    """
    if options.gateway is None:
        return None
    open_console(options.gateway).close()
    return partial(open_console, options.gateway)


def open_console(path: str | None) -> socket.socket:
    """A connection on which the gateway speaks as to a console. Raises UserError."""
    connection = connect(path)
    try:
        connection.settimeout(_SECONDS)
        with suppress(OSError):  # as above
            connection.sendall(encode(Request(VERSION, "console")))
        reply = bytearray()
        while not reply.endswith(b"\n") and (piece := connection.recv(1)):  # what follows is for the console
            reply += piece
        read_reply(bytes(reply))
        connection.setblocking(False)
    except OSError as error:
        connection.close()
        raise UserError(f"the gateway does not reply: {error.strerror or error}", "its log says more") from None
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: str | None) -> socket.socket:
    """Connect to the administration socket that belongs to this path, or to the default. Raises UserError."""
    place = place_of(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(place)
    except OSError as error:
        connection.close()
        hint = "start it: hookproxy serve --config FILE; --socket or HOOKPROXY_SOCKET names another place"
        if isinstance(error, PermissionError):
            hint = "only root and the gateway's account may, and those whom [roles] in gateway.toml names"
        raise UserError(f"cannot reach the gateway at {place}: {error.strerror}", hint) from None
    return connection


def place_of(path: str | None) -> str:
    """The path of the administration socket."""
    given = (path if path != USUAL else "") or os.environ.get("HOOKPROXY_SOCKET")
    beside = admin_path([given or DEFAULT_SOCKET], {}, "")
    if given is not None and (given == beside or (os.path.exists(given) and not os.path.exists(beside))):
        return given
    if given is None and not os.path.exists(beside):  # a gateway without a Unix socket for agents
        own = admin_path([], {}, state_folder(os.environ, os.path.expanduser("~")))
        return own if own and os.path.exists(own) else beside
    return beside
