"""`hookproxy unwrap`: removes what `wrap` inserted, and restores every byte that was there.

The diff is written to standard output, all other messages to standard error. Exit status: 0 done, or nothing to do;
2 it failed, and nothing was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..wrapping import edit_plan, files
from .common import new_parser
from .wrap import add_server_options, carry_out

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy unwrap FILE [--server NAME]... [--dry-run]"


def main(arguments: Sequence[str]) -> int:
    """Unwrap the servers of a file. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    snapshot = files.read(options.file)
    plan = edit_plan.unwrap(edit_plan.read(options.file, snapshot.text), options.server)
    carry_out(snapshot, plan, options.dry_run, "unwrapped")
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of this verb's command line."""
    parser = new_parser(
        "unwrap",
        USAGE,
        "Remove hookproxy from an agent's configuration again, and show the diff. Other changes made since then stay.",
    )
    parser.add_argument("file", metavar="FILE", help="an agent's configuration: JSON, TOML or YAML")
    add_server_options(parser)
    return parser
