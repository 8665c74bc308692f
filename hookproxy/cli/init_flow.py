"""`hookproxy init flow -- COMMAND`: starts the server, lists its tools, and proposes where their data may go.

What is proposed is for a person to review (`checks.flow_proposal`). What a hookproxy.toml says already stays. If it has
tables of `[flow]`, a tool that stands anywhere in it, also in a comment, is not proposed again: a person has reviewed
it. Exit status: 0 the tables are there, 2 they are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..checks import flow_proposal
from ..model.errors import UserError
from . import server_proposal
from .common import show
from .layout import label, new_page
from .options import Parser
from .server_proposal import Present

NAME: Final = flow_proposal.SOURCE

_TABLE: Final = re.compile(r"^[# ]*\[\[flow\.", re.MULTILINE)
"""The beginning of a table, also of one in a comment."""
_SERVER: Final = re.compile(r"^[# ]*server *=(.*)$", re.MULTILINE)
_QUOTED: Final = re.compile(r'"([^"\\\n]+)"')


def main(arguments: Sequence[str]) -> int:
    """Ask the server, write the tables, and show what to do next. Returns the exit status."""
    request = server_proposal.read_request(build_parser(), arguments, "whose tools read and send data?", NAME)
    present = server_proposal.read_present(request)
    asked = server_proposal.ask_server(request)
    if not asked.tools:
        raise UserError("the server lists no tools, so there is nothing to propose", "nothing was written")
    proposal = flow_proposal.propose(
        asked.tools,
        asked.descriptions,
        request.command,
        asked.name,
        asked.server_info,
        known=_known(present, request.only_server),
    )
    is_first = present.text is None or _TABLE.search(present.text) is None
    text = flow_proposal.text_of(proposal, request.only_server, with_head=is_first)
    shown, page = server_proposal.shown_path(present, request), new_page()
    if text:
        server_proposal.show_written(page, shown, server_proposal.write(present, text, NAME))
    else:
        page.line(f"nothing to add to {shown}" if present.text is not None else "nothing was written")
    for name, groups in (("source", proposal.sources), ("sink", proposal.sinks)):
        for group in groups:
            shown_as = "comment" if group.is_suggestion else name
            server_proposal.show_tools(page, shown_as, group.tools, ", ".join(group.labels))
    server_proposal.show_tools(page, "neither", proposal.others, "nothing says that they read or send what matters")
    server_proposal.show_tools(page, "known", proposal.known, "they stand in the file, which stays")
    server_proposal.show_unnamed(page, "left out", proposal.unnamed)
    page.row(label("review"), "names and descriptions are the server's own words: a tool may do what they do not say")
    server_proposal.show_next(
        page, shown, request, "remove sources that nobody minds, and sinks that may get everything"
    )
    show(page.text)
    return 0


def build_parser() -> Parser:
    """The parser of this command line."""
    return server_proposal.build_parser(
        NAME,
        "Start the server with COMMAND, list its tools, and propose which of them are sources of data, and which are "
        "sinks that a person must approve. A hookproxy.toml that is there keeps what it says, and gets what it lacks. "
        "Review the proposal: it follows from names, annotations and arguments.",
    )


def _known(present: Present, server: str) -> frozenset[str]:
    """The names in quotes in the tables of `[flow]` that may be about this server (empty: any), also in comments."""
    known: set[str] = set()
    for table in _TABLE.split(present.text or "")[1:]:
        servers = [name for names in _SERVER.findall(table) for name in _QUOTED.findall(names)]
        if not (server and servers) or server in servers:
            known.update(_QUOTED.findall(table))
    return frozenset(known)
