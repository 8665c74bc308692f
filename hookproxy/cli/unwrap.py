"""`hookproxy unwrap`: takes out what `wrap` put in, and gives back every byte that was there.

The diff is standard output, everything else is said on standard error. Exit status: 0 done, or nothing to do; 2 it
could not be done, and nothing was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..wrapping import edit_plan, files
from .common import parser
from .wrap import add_choice, carry_out

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy unwrap FILE [--server NAME]... [--dry-run]"


def main(arguments: Sequence[str]) -> int:
    """Unwrap the servers of a file; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    snapshot = files.read(chosen.file)
    plan = edit_plan.unwrap(edit_plan.read(chosen.file, snapshot.text), chosen.server)
    carry_out(snapshot, plan, chosen.dry_run, "unwrapped")
    return 0


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "unwrap",
        USAGE,
        "Take hookproxy out of an agent's configuration again, and show the diff. What others changed since stays.",
    )
    taken.add_argument("file", metavar="FILE", help="an agent's configuration: JSON, TOML or YAML")
    add_choice(taken)
    return taken
