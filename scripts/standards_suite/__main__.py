"""Plays the cases of standards, and writes how many passed into docs/standards.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

IN_FOLDER = ("interceptors",)
"""Standards whose cases are in no package: whoever plays them has them in a folder."""


def main() -> int:
    """Play the cases of the standard that the command line names."""
    parser = argparse.ArgumentParser("scripts/standards", description=__doc__)
    parser.add_argument("standard", choices=("agent-hooks", *IN_FOLDER))
    parser.add_argument("folder", type=Path, nargs="?", help="of interceptors: where the cases are, as *.json")
    parser.add_argument("--write", action="store_true", help="write the numbers into the page")
    options = parser.parse_args()
    if (options.standard in IN_FOLDER) is (options.folder is None):
        parser.error("cases of interceptors are in a FOLDER of yours, and those of agent-hooks in their package")
    if options.standard == "interceptors":
        import interceptor_cases

        return interceptor_cases.main(options.folder, write=options.write)
    import agent_hooks_vectors

    return agent_hooks_vectors.main(write=options.write)


sys.exit(main())
