"""`hookproxy users`: who is blocked at a gateway; `users block` and `users allow` change it, for all its gateways.

Exit status: 0, or 2 if the gateway refuses it or cannot be reached.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from ..authorization.token_file import shown_time
from ..gateway.admin_messages import VERSION, Act, Request
from ..model.errors import printable
from .administration import add_socket, ask
from .common import show_line, tell
from .layout import shortened
from .options import Parser

_ACTS: Final[dict[str, Act]] = {"block": "block", "allow": "allow"}


def main(arguments: Sequence[str]) -> int:
    """Do what the subverb says, or list who is blocked. Returns the exit status."""
    if arguments and (act := _ACTS.get(arguments[0])) is not None:
        return _change(act, subverb_parsers()[arguments[0]].parse_args(list(arguments[1:])))
    options = build_parser().parse_args(list(arguments))
    users = ask(Request(VERSION, "users"), options.socket).users
    if not users:
        tell("nobody is blocked")
    with shortened(verbose=options.verbose, end=0):
        for one in users:
            show_line(f"{printable(one.user)}  blocked {shown_time(one.since)} by {printable(one.by)}")
    return 0


def _change(act: Act, options: Namespace) -> int:
    for sentence in ask(Request(VERSION, act, user=options.user), options.socket).says:
        show_line(sentence)
    return 0


def build_parser() -> Parser:
    """The parser of the verb alone."""
    parser = Parser(
        "users",
        "List who is blocked at a running gateway. Only root, the gateway's account, and its operators and auditors "
        "may. See also: users block, users allow.",
        rest="[block|allow USER]",
        subverbs=subverb_parsers,
    )
    parser.add_common("--verbose")
    add_socket(parser)
    return parser


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    block = Parser(
        "users block",
        "Block a user: all sessions end at once, and nothing of the user passes any more, by any account or token, at "
        "all gateways that share a store. It outlasts a restart.",
    )
    allow = Parser("users allow", "Allow a user again who was blocked.")
    for parser in (block, allow):
        parser.add_argument("user", metavar="USER", help="the user's name, as hookproxy sessions shows it")
        add_socket(parser)
    return {"block": block, "allow": allow}
