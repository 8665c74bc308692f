"""Plays the cases of standards, and writes how many passed into docs/standards.md."""

from __future__ import annotations

import argparse
import sys

import agent_hooks_vectors

SUITES = {"agent-hooks": agent_hooks_vectors.main}


def main() -> int:
    """Play the cases of the standard that the command line names."""
    parser = argparse.ArgumentParser("scripts/standards", description=__doc__)
    parser.add_argument("standard", choices=SUITES)
    parser.add_argument("--write", action="store_true", help="write the numbers into the page")
    options = parser.parse_args()
    return SUITES[options.standard](write=options.write)


sys.exit(main())
