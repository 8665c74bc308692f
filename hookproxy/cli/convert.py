"""`hookproxy convert`: writes a hook file of one system as another's, with a list of what the other cannot say.

Before a file is written to its place, each of its entries runs once on a harmless call. Exit status: 0 done; 1 the new
file cannot say all that the old one says; 2 it failed, and nothing was written.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from ..config.hook_files import LoadedHookFile, Use, dialect_named, is_own_configuration, read_use
from ..config.load import find_project
from ..convert.hook_file import Converted, Place, convert
from ..dialects.agent_side import AgentSide, convertible, side_of
from ..dialects.registry import DIALECTS, INTERCEPTORS, STANDARDS
from ..dialects.shared.hook_file import CANNOT_FIRE, suggestion
from ..model.errors import EXIT_FINDINGS, UserError
from ..model.similar_names import similar_file
from ..trust.sources import FileContext, state_folder
from ..wrapping import files, written
from ..wrapping.wrap_entry import PROGRAM
from . import wrap
from .common import create, show, tell, working_directory
from .options import Parser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def build_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(
        "convert",
        "Write the hooks of FILE as a hook file of another system. Each hook stays the program that it is: the new "
        "file runs it by `hookproxy hook`, which gives it the document that it was written for. What the other system "
        "cannot say goes to standard error.",
    )
    parser.add_argument("file", metavar="FILE", help="a hook file, or a folder of hook files")
    parser.add_argument("--to", metavar="DIALECT", required=True, help=f"the other system: {', '.join(convertible())}")
    parser.add_argument(
        "--from",
        dest="dialect",
        metavar="DIALECT",
        help="the system of FILE (default: recognised from its content and its folder); with a standard, FILE is a "
        "hookproxy.toml that has such hooks",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--project", metavar="DIR", help="the project that gets the new file (default: the working directory)"
    )
    place.add_argument("--user", action="store_true", help="the new file is your own, for all projects")
    parser.add_argument(
        "--portable",
        action="store_true",
        help="for a file to commit: hookproxy by its name, and the hooks by paths in the project "
        "(default: absolute paths)",
    )
    parser.add_argument(
        "--fail-closed",
        action="store_true",
        help="the agent's call is refused where a hook fails, or where hookproxy is missing",
    )
    parser.add_argument(
        "--write", action="store_true", help="write it to its place, unless there is another such file already"
    )
    parser.add_argument(
        "--no-try", action="store_true", help="with --write: do not run each entry once on a harmless call before"
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Convert a file. Returns 0; 1 if the new file cannot say all that the old one says."""
    options = build_parser().parse_args(arguments)
    target = _target(options)
    cwd = working_directory()
    file_context = FileContext(os.environ, cwd)
    loaded = _loaded(options, file_context)
    folder = _folder(options, target, cwd, file_context.home)
    place = _place(options, loaded, folder, cwd, file_context.home)
    if target.name == INTERCEPTORS:
        from ..convert.interceptor_file import as_interceptors

        converted = as_interceptors(loaded, target, place)
    else:
        converted = convert([file.group for file in loaded], target, place)
    notes = [*(_left_out(note) for file in loaded for note in (*file.notes, *file.remarks)), *converted.notes]
    tell(*notes, prefix="")
    if not converted.hooks:
        raise UserError(f"{options.file}: none of its hooks can run in {target.name}", "see the notes above")
    if wrap.in_cache() and not options.portable:
        tell(f"{sys.executable} is in a cache: if it is cleared, the hooks no longer run", prefix="")
    if options.write:
        paths = _paths(converted, target, folder, options.user)
        _write(paths, lambda: None if options.no_try else _try(converted, target, folder))
    else:
        _print(converted, target)
    return EXIT_FINDINGS if notes else 0


def _loaded(options: Namespace, file_context: FileContext) -> list[LoadedHookFile]:
    """The hooks of FILE. Raises UserError."""
    path = file_context.find(options.file, file_context.cwd)
    if options.dialect in STANDARDS:
        from ..convert.standard_file import read_standard

        served = options.to == INTERCEPTORS
        if served and options.dialect == options.to:
            raise UserError(f"{path}: has interceptors already", "name another system with --to")
        return read_standard(options.dialect, path, file_context, served=served)
    if options.dialect is None and is_own_configuration(path):
        hint = f"name what to convert of it: {' or '.join(f'--from {name}' for name in STANDARDS)}"
        raise UserError(f"{path}: is hookproxy's own configuration", hint)
    dialect = dialect_named(options.dialect, "--from") if options.dialect else None
    if not os.path.lexists(path):
        hint = similar_file(path) or "name the hook file that is to be converted"
        raise UserError(f"{path}: there is no such file", hint)
    use = Use(options.file, file_context.cwd, options.file, dialect, naming="--from {dialect}")
    return list(read_use(use, file_context))


def _left_out(note: str) -> str:
    """A note about a file, in the words for a conversion: the new file is for an agent, not for hookproxy."""
    place, cannot_fire, _ = note.partition(f" {CANNOT_FIRE}: ")
    return f"{place} is left out: only hooks of tool calls are converted" if cannot_fire else note


def _target(options: Namespace) -> AgentSide:
    found = side_of(options.to)
    if found is None:
        near = "" if options.to in DIALECTS else suggestion(options.to, convertible())
        hint = near or f"expected one of {', '.join(convertible())}"
        raise UserError(f"--to: hookproxy cannot write hook files of {options.to!r}", hint)
    if options.user and found.user_folder is None:
        raise UserError(f"--user: {found.name} reads no hook file in the home folder", "use --project DIR")
    if options.user and options.portable:
        raise UserError("--portable is for a project's file, and --user for your own", "leave out one of them")
    if options.no_try and not options.write:
        raise build_parser().wrong("--no-try is for --write")
    return found


def _folder(options: Namespace, target: AgentSide, cwd: str, home: str) -> str:
    """The folder to which the paths of the new files are relative."""
    if not options.user:
        return find_project(options.project, cwd) or cwd
    if not home:
        raise UserError("--user: there is no home folder", "set HOME")
    return home


def _place(options: Namespace, loaded: Sequence[LoadedHookFile], folder: str, cwd: str, home: str) -> Place:
    of_user = all(_is_users_own(file, home) for file in loaded)
    return Place(
        project=("" if not of_user else cwd) if options.user else folder,
        folder=folder,
        program=(PROGRAM,) if options.portable else wrap.own_program().start,
        portable=options.portable,
        of_user=options.user,
        any_folder=of_user,
        fails_closed=options.fail_closed,
    )


def _is_users_own(file: LoadedHookFile, home: str) -> bool:
    """Whether it is a person's own file, whose hooks run in whatever project there is."""
    folder = os.path.realpath(os.path.dirname(file.group.source))
    return bool(home) and any(
        folder == os.path.realpath(os.path.join(home, inner)) for inner in file.group.dialect.folders
    )


def _paths(converted: Converted, target: AgentSide, folder: str, of_user: bool) -> dict[str, str]:
    """The texts of the new files by their absolute paths."""
    moved = os.environ.get(target.user_variable, "") if of_user else ""
    if os.path.isabs(moved):
        return {os.path.join(moved, path.partition("/")[2]): text for path, text in converted.files.items()}
    return {os.path.join(folder, path): text for path, text in converted.files.items()}


def _print(converted: Converted, target: AgentSide) -> None:
    """Print the file; several files cannot be printed as one."""
    if len(converted.files) > 1:
        paths = ", ".join(converted.files)
        raise UserError(f"{target.name} needs several files: {paths}", "write them with --write --project DIR")
    show(next(iter(converted.files.values())))


def _write(texts: Mapping[str, str], dry_call: Callable[[], None]) -> None:
    """Write the files after a dry call, and record them. Raises UserError; then nothing was written.

    Only a file that this verb wrote, and nobody changed since, is replaced.
    """
    existing = {path: _content(path) for path in texts if os.path.lexists(path)}
    if existing == texts:
        for path in texts:
            show(f"{path}: nothing to do\n")
        return
    outdated = [path for path, text in existing.items() if text != texts[path]]
    state = state_folder(os.environ, os.path.expanduser("~"))
    ours = written.read(state).created if outdated and state else {}
    for path in outdated:
        if ours.get(path) != written.digest(existing[path]):
            raise UserError(f"{path} exists already", "without --write the new file is printed: merge it by hand")
    dry_call()
    for path in outdated:
        os.unlink(files.replace(files.read(path), texts[path]))  # without a backup: it is our own file
    new = {path: text for path, text in texts.items() if path not in existing}
    folders = create(new, "try again")  # it was not there a moment ago
    wrap.remember(lambda record: record.with_created(texts, folders), "rm", *texts)
    for path in texts:
        show(f"{path}\n")


def _content(path: str) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return files.read(path).text
    except UserError:
        return ""


def _try(converted: Converted, target: AgentSide, folder: str) -> None:
    """Run each entry once, in the folder where agents start hooks. Raises UserError if one fails."""
    from ..convert.dry_call import failures, listing_failure

    failed = failures(converted, target, folder, os.environ)
    if converted.server:
        failed = listing_failure(converted, folder, os.environ)
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        hint = "nothing was written; correct the hook, or write the file as it is with --no-try"
        raise UserError(f"{failed[0]}{more}", hint)
