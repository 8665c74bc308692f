"""`hookproxy reload`: puts a changed configuration of a gateway into force, and says what has changed.

Exit status: 0, or 2 if the configuration cannot be used; then the old one stays in force.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from ..gateway.admin_messages import VERSION, Request
from . import administration, connect
from .common import show_line
from .options import Parser

_PIECE: Final = 65_536  # bytes per read: more than the gateway says


def main(arguments: Sequence[str]) -> int:
    """Ask the gateway to read its configuration again. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    path = options.socket or os.environ.get("HOOKPROXY_SOCKET") or connect.DEFAULT_SOCKET
    if os.path.exists(place := administration.place_of(options.socket)) and (place == path or not os.path.exists(path)):
        for sentence in administration.ask(Request(VERSION, "reload"), place).says:
            show_line(sentence)
        return 0
    gateway = connect.open_socket(path)
    connect.ask(gateway, ["reload"])
    text = b""
    while piece := gateway.recv(_PIECE):
        text += piece
    for line in text.decode("utf-8", "replace").splitlines():
        show_line(line)
    return 0


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "reload",
        "Let a gateway read its configuration again: it applies to new calls, and no call is lost. A configuration "
        "that cannot be used is refused, and the old one stays in force. Only root, the account of the gateway and its "
        "operators may do this.",
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        help=f"the gateway's socket (default: $HOOKPROXY_SOCKET, else {connect.DEFAULT_SOCKET})",
    )
    return parser
