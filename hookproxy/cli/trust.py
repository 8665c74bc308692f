"""`hookproxy trust FILE`: shows what has changed in a hook file and the scripts it starts, and remembers their hashes.

It never asks: whoever is not sure adds `--dry-run`. Exit status: 0 done; 1 `--dry-run` found something to trust, or
`--list` something that is not as it was trusted; 2 it could not be done.

The store is a file of the user's: an agent that may write there can trust what it likes. See
`hookproxy.trust.trusted_files`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..config.load import user_layer
from ..model.errors import EXIT_FINDINGS, UserError, printable
from ..trust import trusted_files
from ..trust.sources import FileContext, FileSnapshot, store_path
from ..trust.trust_store import MAX_TEXT_LENGTH, TrustEntry, locked_entries, read_store
from ..trust.trusted_files import Dependencies
from .common import here, parser, show

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy trust [--dry-run] [DIALECT=]FILE... | --list | --forget FILE..."
_INSIDE: Final = "what these files themselves load and run, from their own folders too"
_INDENT: Final = "    "  # of what stands in a file


def main(arguments: Sequence[str]) -> int:
    """Do what the options say; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    file_context = FileContext(os.environ, here())
    store = store_path(file_context.environ, file_context.home)
    if chosen.list and chosen.files:
        raise UserError("--list takes no file", f"hookproxy trust --dry-run {' '.join(chosen.files)}")
    if chosen.list:
        return _list(store)
    if not chosen.files:
        raise UserError("no file is named", f"usage: {USAGE}")
    if chosen.forget:
        return _forget(store, chosen.files, file_context)
    found = _covered(chosen.files, file_context)
    if chosen.dry_run:
        return EXIT_FINDINGS if _show(found, read_store(store), file_context, remembered=False)[1] else 0
    with locked_entries(store) as entries:
        seen, _ = _show(found, entries, file_context, remembered=True)
        _remember(entries, found, seen, file_context)
    return 0


def _remember(
    entries: dict[str, TrustEntry], found: Dependencies, seen: Mapping[str, FileSnapshot], file_context: FileContext
) -> None:
    """Put what was shown into the store; what these files lead to no more goes out of it."""
    names = set(found.files.values())
    for path, entry in list(entries.items()):
        gone = path in found.files or entry.hooks
        if path not in seen and gone and not names.isdisjoint(entry.of):
            left = tuple(one for one in entry.of if one not in names)
            del entries[path]
            show(f"forgotten  {visible(path)}\n")
            if left and path not in found.files:
                entries[path] = replace(entry, of=left)
    for path, name in found.files.items():
        if path in seen:
            before = entries[path].of if path in entries else ()
            of = tuple(dict.fromkeys((*before, name)))
            entries[path] = TrustEntry(
                trusted_files.digest(seen[path]), _text(seen[path]), of, path in file_context.files_read
            )


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "trust",
        USAGE,
        "Show what has changed in a hook file, or a hookproxy.toml with the hook files that it names, and in the "
        "scripts that they start; and remember all of it as trusted, for require_trust.",
    )
    taken.add_argument("files", metavar="[DIALECT=]FILE", nargs="*", help="a hookproxy.toml, or a hook file as it is")
    how = taken.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="show what would be trusted, and remember nothing")
    how.add_argument("--list", action="store_true", help="show all that is trusted, and what has changed since")
    how.add_argument("--forget", action="store_true", help="trust FILE no more, nor what only it starts")
    return taken


def _covered(files: Sequence[str], file_context: FileContext) -> Dependencies:
    """What these files come to. A name that ends in .toml is a file of ours, unless a dialect stands before it."""
    whole = Dependencies()
    for item in files:
        ours = item.endswith(".toml") and "=" not in os.path.basename(item)
        layer = user_layer(
            file_context.find(item, file_context.cwd) if ours else "",
            () if ours else (item,),
            None,
            file_context,
            "hookproxy trust",
        )
        one = trusted_files.dependencies(layer, layer.groups, file_context)
        for path, name in one.files.items():
            whole.files.setdefault(path, name)
        whole.not_covered += [text for text in one.not_covered if text not in whole.not_covered]
    return whole


def _show(
    found: Dependencies, entries: Mapping[str, TrustEntry], file_context: FileContext, *, remembered: bool
) -> tuple[dict[str, FileSnapshot], int]:
    """Print each file with what is new in it; gives the files as they were read, and how many are not trusted."""
    read: dict[str, FileSnapshot] = {}
    news = 0
    for path in found.files:
        seen = file_context.files_read.get(path) or trusted_files.read_for_hashing(path)
        if seen is None:
            show(f"missing    {visible(path)}\n")
            continue
        read[path] = seen
        entry = entries.get(path)
        if entry is not None and entry.sha256 == trusted_files.digest(seen):
            show(f"unchanged  {visible(path)}\n")
            continue
        news += 1
        show(f"{'changed' if entry else 'new':9}  {visible(path)}\n")
        show("".join(f"{_INDENT}{visible(line)}\n" for line in _difference(entry, seen)))
    for text in (*found.not_covered, _INSIDE):
        show(f"not covered: {visible(text)}\n")
    show(f"{len(read)} files trusted\n" if remembered else f"{news} of {len(read)} files would be trusted anew\n")
    return read, news


def _difference(entry: TrustEntry | None, seen: FileSnapshot) -> Iterator[str]:
    from difflib import unified_diff

    text = _text(seen)
    if entry is None:
        yield f"{len(seen.data)} bytes, sha256 {trusted_files.digest(seen)}"
    elif text is None or entry.text is None:
        yield f"no text to compare: {len(seen.data)} bytes, sha256 {trusted_files.digest(seen)}, before {entry.sha256}"
    else:
        lines = unified_diff(entry.text.splitlines(), text.splitlines(), "as trusted", "as it is", lineterm="")
        yield from [*lines] or ["only the ends of its lines differ"]


def _text(seen: FileSnapshot) -> str | None:
    try:
        text = seen.data.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= MAX_TEXT_LENGTH else None


def _list(store: str) -> int:
    found, entries = 0, read_store(store)
    if not entries:
        with contextlib.suppress(OSError, AttributeError):  # nobody reads, or it was closed before we started
            sys.stderr.write("hookproxy: nothing is trusted yet\n")
    for path, entry in sorted(entries.items()):
        try:
            seen = trusted_files.read_for_hashing(path)
            state = (
                "missing" if seen is None else "trusted" if trusted_files.digest(seen) == entry.sha256 else "changed"
            )
        except UserError:
            state = "unusable"
        found += state != "trusted"
        show(f"{state:9}  {visible(path)}\n")
    return EXIT_FINDINGS if found else 0


def _forget(store: str, files: Sequence[str], file_context: FileContext) -> int:
    wanted = {file_context.find(item, file_context.cwd): item for item in files}
    with locked_entries(store) as entries:
        for path, item in wanted.items():
            names = {name for name in (path, item, *_names(entries, path)) if name}
            gone = [one for one, entry in entries.items() if one == path or (entry.of and names.issuperset(entry.of))]
            if not gone:
                raise UserError(f"{item}: is not trusted", "hookproxy trust --list shows what is")
            for one in gone:
                del entries[one]
                show(f"forgotten  {visible(one)}\n")
            for one, entry in entries.items():
                entries[one] = replace(entry, of=tuple(name for name in entry.of if name not in names))
    return 0


def _names(entries: Mapping[str, TrustEntry], path: str) -> list[str]:
    """How the file at this path was called when it was trusted, with its dialect."""
    return [name for entry in entries.values() for name in entry.of if name == path or name.endswith(f"={path}")]


def visible(text: str) -> str:
    """The text with nothing in it that a terminal would obey: a hook file may be anybody's."""
    return "\t".join(map(printable, text.split("\t")))
