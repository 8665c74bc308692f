"""`hookproxy init allow-list -- COMMAND`: starts the server, lists its tools, and writes which of them may be called.

Read-only tools are allowed, about the others a person is asked, and all else is refused (`checks.allow_list`). What a
hookproxy.toml says already stays. Exit status: 0 the rules are there, 2 they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..checks import allow_list
from ..model.errors import UserError
from . import server_proposal
from .common import show, tell
from .layout import label, new_page
from .options import Parser

NAME: Final = allow_list.SOURCE


def main(arguments: Sequence[str]) -> int:
    """Ask the server, write the rules, and show what to do next. Returns the exit status."""
    request = server_proposal.read_request(build_parser(), arguments, "whose tools may be called?", NAME)
    present = server_proposal.read_present(request)
    asked = server_proposal.ask_server(request)
    if not asked.tools:
        raise UserError("the server lists no tools, so there is nothing to allow", "nothing was written")
    rules_there = present.config.permissions if present.config else None
    known = {*rules_there.allow, *rules_there.ask, *rules_there.deny} if rules_there else set()
    only = bool(request.only_server)
    rules = allow_list.propose(
        asked.tools, request.command, asked.name, asked.server_info, with_server=only, known=known
    )
    added = server_proposal.write(present, allow_list.text_of(rules), NAME)
    if wide := sorted(rule for rule in known if set(rule.partition("(")[0]) & set("*?[")):
        tell(f"rules that stood in the file name more tools than one, and hold as before: {', '.join(wide)}")
    shown, page = server_proposal.shown_path(present, request), new_page()
    server_proposal.show_written(page, shown, added)
    server_proposal.show_tools(page, "allow", rules.by_preset, "they only read")
    server_proposal.show_tools(page, "allow", rules.by_annotation, "they only read, as the server says itself")
    server_proposal.show_tools(page, "ask", rules.ask, "a person must say yes")
    server_proposal.show_tools(page, "known", rules.known, "the file has a rule for them, which stays")
    server_proposal.show_unnamed(page, "refused", rules.unnamed)
    rest = "tools that no rule of the file is about are refused, and the agent does not see them"
    page.row(label("rest"), rest, prose=True)
    server_proposal.show_next(page, shown, request, "move tools between allow and ask, or remove them")
    page.line("the same holds for each other server that you put behind this file: run init allow-list for it, too")
    show(page.text)
    return 0


def build_parser() -> Parser:
    """The parser of this command line."""
    return server_proposal.build_parser(
        NAME,
        "Start the server with COMMAND, list its tools, and write a hookproxy.toml in which only these may be called: "
        "its read-only tools at once, the others after a person has said yes. A hookproxy.toml that is there keeps "
        "what it says.",
    )
