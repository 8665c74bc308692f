"""`hookproxy token`: makes, lists and revokes the tokens by which a gateway knows its users over HTTP.

The token is printed once, on standard output; the file has only its digest. Exit status: 0, or 2 if it failed, and then
nothing has changed.
"""

from __future__ import annotations

import stat
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from ..authorization.token_file import REVOKED, TokenRecord, create_token, read_tokens, revoke_tokens, shown_time
from ..model.errors import printable
from .common import show, show_line, tell
from .layout import show_table
from .options import Parser

_HEADER: Final = ("id", "user", "groups", "created", "expires", "note")


def main(arguments: Sequence[str]) -> int:
    """Do what the subverb says. Returns the exit status."""
    subverbs = {"new": _new, "list": _list, "revoke": _revoke}
    return build_parser().run_subverb(arguments, subverbs, subverb_parsers())


def build_parser() -> Parser:
    """The parser of the verb alone, for its help."""
    return Parser(
        "token",
        "Make, list and revoke the tokens by which a gateway knows its users over HTTP. "
        "See also: token new, token list, token revoke.",
        rest="new|list|revoke --file FILE",
        subverbs=subverb_parsers,
    )


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    new = Parser("token new", "Make a token for a user, and print it: it is shown only this once.")
    new.add_argument("user", metavar="USER", help="the user's name, as rules and the audit have it")
    new.add_argument(
        "--group", metavar="GROUP", action="append", default=[], help="a group of the user; may be given several times"
    )
    new.add_argument(
        "--expires", metavar="DAYS", type=float, help="days until it expires (default: only when it is revoked)"
    )
    new.add_argument("--note", metavar="TEXT", help="what it is for, for hookproxy token list")
    listing = Parser("token list", "Show whose tokens a file has, and until when. It has no token itself.")
    revoke = Parser("token revoke", "Revoke a token: the gateway refuses it from then on. Its line stays.")
    revoke.add_argument("name", metavar="USER|ID", help="all tokens of this user, or the one with this id")
    listing.add_common("--verbose")
    parsers = {"new": new, "list": listing, "revoke": revoke}
    for parser in parsers.values():
        parser.add_argument("--file", metavar="FILE", required=True, help="the file that gateway.tokens names")
    return parsers


def _new(options: Namespace) -> None:
    token, record = create_token(
        options.file, options.user, options.group, options.expires, options.note or "", time.time()
    )
    show(f"{token}\n")
    groups = f" in {', '.join(record.groups)}" if record.groups else ""
    until = "until it is revoked" if record.expires is None else f"until {shown_time(record.expires)}"
    tell(f"token {record.id} is for {record.user}{groups}, {until}; it is shown only now, and stored nowhere")


def _list(options: Namespace) -> None:
    found = read_tokens(options.file)
    if found.mode & stat.S_IROTH:
        tell(f"{options.file}: everybody can read who has tokens (chmod o-r {options.file})")
    rows = [_row(record, time.time()) for record in found.records.values()]
    if not rows:
        tell(f"{options.file} has no tokens")
        return
    show_table((_HEADER, *rows), verbose=options.verbose)


def _row(record: TokenRecord, now: float) -> tuple[str, ...]:
    expires = "-" if record.expires is None else shown_time(record.expires)
    if record.revoked:
        expires = REVOKED
    if record.expires is not None and now >= record.expires:
        expires += " (expired)"
    groups = ", ".join(record.groups) or "-"
    return record.id, record.user, groups, shown_time(record.created), expires, printable(record.note)


def _revoke(options: Namespace) -> None:
    for record in revoke_tokens(options.file, options.name):
        show_line(f"revoked {record.id} of {record.user}")
