"""`hookproxy trust FILE`: shows what has changed in a hook file and the scripts it starts, and stores their hashes.

It never asks for confirmation: `--dry-run` shows the changes first. Exit status: 0 done; 1 `--dry-run` found something
to trust, or `--list` found something that has changed; 2 it failed.

The store is a file of the user: an agent that may write to it can trust whatever it likes. See
`hookproxy.trust.check_unchanged`.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ..config.hook_files import parse_option
from ..config.load import find_project, user_layer, with_used_packs
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError, printable
from ..model.similar_names import similar_file
from ..trust import check_unchanged
from ..trust.check_unchanged import Dependencies
from ..trust.sources import FileContext, FileSnapshot, store_path
from ..trust.trust_store import MAX_TEXT_LENGTH, TrustEntry, locked_entries, read_store
from .common import show, show_line, tell, working_directory
from .layout import shortened
from .options import Parser

_NOT_COVERED: Final = "what these files themselves load and run, even from their own folders"
_INDENT: Final = "    "  # of a file's details


def main(arguments: Sequence[str]) -> int:
    """Do what the options require. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    cwd = working_directory()
    file_context = FileContext(os.environ, cwd, project=find_project(options.project, cwd))
    store = store_path(file_context.environ, file_context.home)
    if options.list and options.files:
        raise UserError("--list does not take a file", f"hookproxy trust --dry-run {' '.join(options.files)}")
    with shortened(verbose=options.verbose, end=0 if options.list else 1):
        return _carry_out(options, store, file_context)


def _carry_out(options: Namespace, store: str, file_context: FileContext) -> int:
    if options.list:
        return _list(store)
    if not options.files:
        raise build_parser().wrong("no file is named")
    if options.forget:
        return _forget(store, options.files, file_context)
    found = _covered(options.files, file_context)
    if options.dry_run:
        return EXIT_FINDINGS if _show(found, read_store(store), file_context, recorded=False)[1] else 0
    with locked_entries(store) as entries:
        seen, _ = _show(found, entries, file_context, recorded=True)
        _record(entries, found, seen, file_context)
    return 0


def _record(
    entries: dict[str, TrustEntry], found: Dependencies, seen: Mapping[str, FileSnapshot], file_context: FileContext
) -> None:
    """Store what was shown, and remove what these files no longer refer to."""
    names = set(found.files.values())
    for path, entry in list(entries.items()):
        removable = path in found.files or entry.hooks
        if path not in seen and removable and not names.isdisjoint(entry.of):
            others = tuple(name for name in entry.of if name not in names)
            del entries[path]
            show_line(f"forgotten  {path}")
            if others and path not in found.files:
                entries[path] = replace(entry, of=others)
    for path, name in found.files.items():
        if path in seen:
            before = entries[path].of if path in entries else ()
            of = tuple(dict.fromkeys((*before, name)))
            entries[path] = TrustEntry(
                check_unchanged.digest(seen[path]), _text(seen[path]), of, path in file_context.files_read
            )


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "trust",
        "Show what has changed in a hook file, or in a hookproxy.toml and the hook files that it names, and in the "
        "scripts that these start; and record all of it as trusted, for require_trust.",
    )
    parser.add_argument("files", metavar="[DIALECT=]FILE", nargs="*", help="a hookproxy.toml, or a hook file")
    parser.add_argument("--project", metavar="DIR", help="the folder in which the hooks run, as for hookproxy run")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--dry-run", action="store_true", help="show what would be trusted, and record nothing")
    action.add_argument("--list", action="store_true", help="show all trusted files, and which of them have changed")
    action.add_argument("--forget", action="store_true", help="no longer trust FILE and what only it starts")
    parser.add_common("--verbose")
    return parser


def _covered(files: Sequence[str], file_context: FileContext) -> Dependencies:
    """These files and what they start. A name that ends in .toml is a hookproxy.toml, unless a dialect precedes it."""
    covered = Dependencies()
    for item in files:
        _check_there(item, file_context)
        is_config = item.endswith(".toml") and "=" not in os.path.basename(item)
        layer = user_layer(
            file_context.find(item, file_context.cwd) if is_config else "",
            () if is_config else (item,),
            None,
            file_context,
            "hookproxy trust",
        )
        layer = with_used_packs(layer, (), file_context)
        of_item = check_unchanged.dependencies(layer, layer.all_groups, file_context)
        for path, name in of_item.files.items():
            covered.files.setdefault(path, name)
        covered.not_covered += [text for text in of_item.not_covered if text not in covered.not_covered]
    return covered


def _check_there(item: str, file_context: FileContext) -> None:
    """Raise UserError if an item of the command line names one file, and there is none."""
    path = file_context.find(parse_option(item, file_context.cwd, "hookproxy trust").file, file_context.cwd)
    if not set(path) & set("*?[") and not os.path.lexists(path):
        hint = similar_file(path) or "name a hookproxy.toml or a hook file that exists; a path starts from this folder"
        raise UserError(f"{path}: there is no such file", hint)


def _show(
    found: Dependencies, entries: Mapping[str, TrustEntry], file_context: FileContext, *, recorded: bool
) -> tuple[dict[str, FileSnapshot], int]:
    """Print each file and its changes. Returns the files as they were read, and how many of them are not trusted."""
    read: dict[str, FileSnapshot] = {}
    untrusted = 0
    for path in found.files:
        seen = file_context.files_read.get(path) or check_unchanged.read_for_hashing(path)
        if seen is None:
            show_line(f"missing    {path}")
            continue
        read[path] = seen
        entry = entries.get(path)
        if entry is not None and entry.sha256 == check_unchanged.digest(seen):
            show_line(f"unchanged  {path}")
            continue
        untrusted += 1
        show_line(f"{'changed' if entry else 'new':9}  {path}")
        show("".join(f"{_INDENT}{visible(line)}\n" for line in _difference(entry, seen)))
    for text in (*found.not_covered, _NOT_COVERED):
        show_line(f"not covered: {text}")
    files, are = counted(len(read), "file"), "is" if untrusted == 1 else "are"
    show_line(f"{files} trusted" if recorded else f"{untrusted} of {files} {are} new or changed, and would be trusted")
    return read, untrusted


def _difference(entry: TrustEntry | None, seen: FileSnapshot) -> Iterator[str]:
    from difflib import unified_diff

    text = _text(seen)
    if entry is None:
        yield f"{len(seen.data)} bytes, sha256"
        yield check_unchanged.digest(seen)
    elif text is None or entry.text is None:
        yield f"cannot be compared as text: {len(seen.data)} bytes, sha256 now and before"
        yield check_unchanged.digest(seen)
        yield entry.sha256
    else:
        lines = unified_diff(entry.text.splitlines(), text.splitlines(), "as trusted", "as it is", lineterm="")
        yield from [*lines] or ["only its line breaks differ"]


def _text(seen: FileSnapshot) -> str | None:
    """The text that the store keeps for later comparison; None if it is not UTF-8 or too long."""
    try:
        text = seen.data.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= MAX_TEXT_LENGTH else None


def _list(store: str) -> int:
    findings, entries = 0, read_store(store)
    if not entries:
        tell("nothing is trusted yet")
    for path, entry in sorted(entries.items()):
        try:
            seen = check_unchanged.read_for_hashing(path)
            state = (
                "missing" if seen is None else "trusted" if check_unchanged.digest(seen) == entry.sha256 else "changed"
            )
        except UserError:
            state = "unusable"
        findings += state != "trusted"
        show_line(f"{state:9}  {path}")
    return EXIT_FINDINGS if findings else 0


def _forget(store: str, files: Sequence[str], file_context: FileContext) -> int:
    items = {file_context.find(item, file_context.cwd): item for item in files}
    with locked_entries(store) as entries:
        for path, item in items.items():
            names = {name for name in (path, item, *_names(entries, path)) if name}
            removed = [
                known for known, entry in entries.items() if known == path or (entry.of and names.issuperset(entry.of))
            ]
            if not removed:
                raise UserError(f"{item}: is not trusted", "hookproxy trust --list shows the trusted files")
            for known in removed:
                del entries[known]
                show_line(f"forgotten  {known}")
            for known, entry in entries.items():
                entries[known] = replace(entry, of=tuple(name for name in entry.of if name not in names))
    return 0


def _names(entries: Mapping[str, TrustEntry], path: str) -> list[str]:
    """The names under which the file at this path was trusted, with its dialect."""
    return [name for entry in entries.values() for name in entry.of if name == path or name.endswith(f"={path}")]


def visible(text: str) -> str:
    """The text without control characters for the terminal: anybody may have written a hook file."""
    return "\t".join(map(printable, text.split("\t")))
