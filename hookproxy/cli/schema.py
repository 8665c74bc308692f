"""`hookproxy schema`: prints the JSON Schema of hookproxy.toml, with which editors complete and check that file.

`scripts/docs` makes the schema from the configuration's models, and a test checks that it is up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .common import new_parser, show

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy schema [--path]"

SCHEMA: Final = Path(__file__).resolve().parents[1] / "hookproxy.schema.json"
"""The installed file."""


def main(arguments: Sequence[str]) -> int:
    """Print the schema or its path. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    show(f"{SCHEMA}\n" if options.path else SCHEMA.read_text("utf-8"))
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of this verb's command line."""
    parser = new_parser("schema", USAGE, "Print the JSON Schema of hookproxy.toml.")
    parser.add_argument(
        "--path", action="store_true", help="print the path of the schema instead, for an editor's settings"
    )
    return parser
