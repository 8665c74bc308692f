"""`hookproxy sessions`: the open sessions of a gateway; `sessions end` ends one of them, or all of a user.

Exit status: 0, or 2 if the gateway refuses it or cannot be reached.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from ..gateway.admin_messages import SHOWN_OF_ID, VERSION, OpenSession, Request
from ..model.errors import printable
from .administration import add_socket, ask
from .common import show, show_line, tell
from .layout import show_table
from .options import Parser

_HEADER: Final = ("id", "user", "server", "over", "since", "calls", "last")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def main(arguments: Sequence[str]) -> int:
    """List sessions, or end some. Returns the exit status."""
    if arguments and arguments[0] == "end":
        return _end(subverb_parsers()["end"].parse_args(list(arguments[1:])))
    options = build_parser().parse_args(list(arguments))
    reply = ask(Request(VERSION, "sessions"), options.socket)
    for problem in reply.says:
        tell(problem)
    sessions = [
        session
        for session in reply.sessions
        if options.user in (None, session.user) and options.server in (None, session.server)
    ]
    if options.json:
        show(json.dumps([_members(session) for session in sessions], indent=2) + "\n")
        return 0
    if not sessions:
        tell("there is no open session")
        return 0
    now = time.time()
    names = {session.gateway for session in sessions}
    header = (*_HEADER, "gateway") if len(names) > 1 else _HEADER
    show_table([header, *(_row(session, now)[: len(header)] for session in sessions)], verbose=options.verbose)
    return 0


def _members(session: OpenSession) -> dict[str, object]:
    return {name: getattr(session, name) for name in session.__struct_fields__}


def _row(session: OpenSession, now: float) -> tuple[str, ...]:
    last = f"{_ago(now - session.last)} ago" if session.last else "-"
    named = (session.id[:SHOWN_OF_ID], printable(session.user), session.server, session.over)
    return (*named, f"{_ago(now - session.since)} ago", str(session.calls), last, session.gateway)


def _ago(seconds: float) -> str:
    """How long ago, for people."""
    seconds = max(seconds, 0)
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def _end(options: Namespace) -> int:
    if (options.id is None) == (options.user is None):
        raise subverb_parsers()["end"].wrong("either the ID of a session or --user must be given")
    reply = ask(Request(VERSION, "end", user=options.user or "", session=options.id or ""), options.socket)
    for sentence in reply.says:
        show_line(sentence)
    return 0


def build_parser() -> Parser:
    """The parser of the verb alone."""
    parser = Parser(
        "sessions",
        "List the open sessions of a running gateway: whose they are, at which server, since when, how many calls they "
        "had, and when the last one came. Only root, the gateway's account, and its operators and auditors may. "
        "See also: sessions end.",
        rest="[end ID]",
        subverbs=subverb_parsers,
    )
    parser.add_argument("--user", metavar="USER", help="only sessions of this user")
    parser.add_argument("--server", metavar="NAME", help="only sessions at this server")
    parser.add_common("--verbose")
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    add_socket(parser)
    return parser


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    end = Parser(
        "sessions end",
        "End a session at once, or all sessions of a user, who may open new ones: hookproxy users block prevents that.",
    )
    end.add_argument("id", metavar="ID", nargs="?", help="the id of the session, or its beginning")
    end.add_argument("--user", metavar="USER", help="all sessions of this user")
    add_socket(end)
    return {"end": end}
