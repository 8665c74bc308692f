"""`hookproxy convert`: writes a hook file of one system as another's, with a list of what the other cannot say."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..config.hook_files import Use, dialect_named, read_use
from ..convert.hook_file import Converted, convert
from ..dialects.agent_side import AgentSide, agent_side, names
from ..dialects.shared.hook_file import CANNOT_FIRE
from ..model.errors import EXIT_FINDINGS, UserError, printable
from ..trust.sources import FileContext
from .common import new_parser, show, working_directory

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

USAGE = "hookproxy convert FILE --to DIALECT [--from DIALECT] [--project DIR [--write]]"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = new_parser(
        "convert",
        USAGE,
        "Write the hooks of FILE as a hook file of another system. Each hook stays the program that it is: the new "
        "file runs it by `hookproxy hook`, which gives it the document that it was written for. What the other system "
        "cannot say goes to standard error.",
    )
    parser.add_argument("file", metavar="FILE", help="a hook file, or a folder of hook files")
    parser.add_argument("--to", metavar="DIALECT", required=True, help=f"the other system: {', '.join(names())}")
    parser.add_argument(
        "--from",
        dest="dialect",
        metavar="DIALECT",
        help="the system of FILE (default: recognised from its content and its folder)",
    )
    parser.add_argument(
        "--project", metavar="DIR", help="the project that gets the new file (default: the working directory)"
    )
    parser.add_argument(
        "--write", action="store_true", help="write it to its place in the project, unless there is such a file already"
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Convert a file. Returns 0; 1 if the new file cannot say all that the old one says."""
    options = build_parser().parse_args(arguments)
    target = _target(options.to)
    cwd = working_directory()
    dialect = dialect_named(options.dialect, "--from") if options.dialect else None
    use = Use(options.file, cwd, options.file, dialect)
    loaded = list(read_use(use, FileContext(os.environ, cwd)))
    project = os.path.normpath(os.path.join(cwd, options.project or ""))
    converted = convert([one.group for one in loaded], target, project)
    notes = [*(_left_out(note) for one in loaded for note in (*one.notes, *one.remarks)), *converted.notes]
    for note in notes:
        sys.stderr.write(f"{printable(note)}\n")
    if not converted.hooks:
        raise UserError(f"{options.file}: no hook of it can run in {target.name}", "see the notes above")
    if options.write:
        _write(converted, project)
    else:
        _print(converted, target)
    return EXIT_FINDINGS if notes else 0


def _left_out(note: str) -> str:
    """A note about a file, in the words for a conversion: the new file is for an agent, not for hookproxy."""
    place, cannot_fire, _ = note.partition(f" {CANNOT_FIRE}: ")
    return f"{place} is left out: only hooks of tool calls are converted" if cannot_fire else note


def _target(name: str) -> AgentSide:
    found = agent_side(name)
    if found is None:
        raise UserError(f"--to: hookproxy cannot write hook files of {name!r}", f"expected one of {', '.join(names())}")
    return found


def _print(converted: Converted, target: AgentSide) -> None:
    """Print the file; several files cannot be printed as one."""
    if len(converted.files) > 1:
        paths = ", ".join(converted.files)
        raise UserError(f"{target.name} needs several files: {paths}", "write them with --write --project DIR")
    show(next(iter(converted.files.values())))


def _write(converted: Converted, project: str) -> None:
    """Write the files. Raises UserError for one that exists: nothing is overwritten."""
    paths = {os.path.join(project, path): text for path, text in converted.files.items()}
    existing = [path for path in paths if os.path.lexists(path)]
    if existing:
        raise UserError(f"{existing[0]} exists already", "without --write the new file is printed: merge it by hand")
    for path, text in paths.items():
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if text.startswith("#!") else 0o644)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UserError(
                f"{path} cannot be written: {error.strerror}", "name a project folder that is yours"
            ) from None
        show(f"{path}\n")
