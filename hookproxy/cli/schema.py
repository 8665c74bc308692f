"""`hookproxy schema`: prints the JSON Schema of hookproxy.toml or gateway.toml, with which editors check that file.

`scripts/docs` makes the schemas from the configuration's models, and a test checks that they are up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .common import show
from .layout import shortened
from .options import Parser

SCHEMA: Final = Path(__file__).resolve().parents[1] / "hookproxy.schema.json"
"""The installed file."""

GATEWAY_SCHEMA: Final = SCHEMA.with_name("gateway.schema.json")
"""The one for gateway.toml."""


def main(arguments: Sequence[str]) -> int:
    """Print the schema or its path. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    schema = GATEWAY_SCHEMA if options.gateway else SCHEMA
    with shortened(verbose=options.verbose, end=0):
        show(f"{schema}\n" if options.path else schema.read_text("utf-8"))
    return 0


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser("schema", "Print the JSON Schema of hookproxy.toml, or of gateway.toml.")
    parser.add_argument("--gateway", action="store_true", help="the schema of gateway.toml, for hookproxy serve")
    parser.add_argument(
        "--path", action="store_true", help="print the path of the schema instead, for an editor's settings"
    )
    parser.add_common("--verbose")
    return parser
