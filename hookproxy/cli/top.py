"""`hookproxy top`: the calls of all runs in a terminal, and answers to the approvals that wait."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..live import registry
from ..model.errors import UserError
from .administration import add_gateway, console_of
from .common import folder_of_runs
from .options import Parser


def main(arguments: Sequence[str]) -> int:
    """Show the calls until the person quits. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    from ..console.call_filter import CallFilter
    from ..console.top import Top, place  # its extra may be missing, and the help is shown all the same

    if not all(map(os.isatty, (0, 1, 2))):  # it draws on standard error
        raise UserError(
            "top needs a terminal", "hookproxy audit prints calls, hookproxy console shows them in a browser"
        )
    folder, open_run = "", console_of(options)
    if open_run is None:
        folder = folder_of_runs()
        registry.prepare_folder(folder)
    calls = CallFilter.from_query({name: value or "" for name, value in vars(options).items() if name != "gateway"})
    Top(folder, calls, place(), open_run).run()
    return 0


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "top",
        "Show the calls of all runs of this user as they happen, in the terminal. Enter opens a call; w opens the "
        "oldest approval that waits, which is answered there: allow once, allow for this session, or deny with a "
        "reason.",
    )
    for name, about in (("server", "server"), ("tool", "tool"), ("agent", "agent")):
        parser.add_argument(
            f"--{name}", metavar="NAME", help=f"only calls whose {about} has this in its name, or fits a pattern"
        )
    parser.add_argument(
        "--decision",
        choices=("allowed", "refused", "asked", "rewritten", "failed"),
        help="only calls that ended so",
    )
    parser.add_argument(
        "--text", metavar="WORDS", help="only calls with these words in their tool, arguments or reason"
    )
    add_gateway(parser, "show the calls of a running gateway to its auditors, and what waits to its approvers")
    return parser
