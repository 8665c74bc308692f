"""`hookproxy schema`: the JSON Schema of hookproxy.toml, with which editors complete and check it.

`scripts/docs` makes the file from the configuration's models, and a test holds that it is what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .common import parser, show

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy schema [--path]"

SCHEMA: Final = Path(__file__).resolve().parents[1] / "hookproxy.schema.json"
"""Where it lies, as installed."""


def main(arguments: Sequence[str]) -> int:
    """Print the schema, or where it lies; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    show(f"{SCHEMA}\n" if chosen.path else SCHEMA.read_text("utf-8"))
    return 0


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser("schema", USAGE, "Print the JSON Schema of hookproxy.toml.")
    taken.add_argument("--path", action="store_true", help="print where it lies instead, for an editor's settings")
    return taken
