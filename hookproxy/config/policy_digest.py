"""What a policy is made of: the files that decide about calls, each with a digest, and what has changed between two.

Everything that decides counts: the configuration and the hook files as they were read, the administrator's files, the
scripts and modules of all hooks as far as their command lines show them (`trust.scripts`), this version of hookproxy,
and its tables of names and servers. Programs of the system do not: updates change them, and users cannot.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .. import __version__
from ..model.errors import ConfigError
from ..trust import scripts
from ..trust.check_unchanged import belongs_to_system, digest, read_for_hashing
from ..trust.managed_files import environment as managed_environment
from ..trust.sources import FileSnapshot, StatSignature, stat_signature
from .load import Loaded

VERSION: Final = "hookproxy"
"""The name in `PolicyParts` that stands for this version with its tables."""

_TABLES: Final = ("policy/presets.toml", "policy/familiar_names.toml", "shell/programs.toml", "shell/options.toml")
_MISSING: Final = "missing"
_MOST_LINES: Final = 40  # of what has changed: more, nobody reads in a log
_LONGEST: Final = 200  # characters of a rule in such a line
_SHOWN: Final = frozenset({"allow", "ask", "deny", "users", "groups", "listen"})
"""Lists whose entries are shown: they hold no secret. Of all other keys, only the names are."""


class PolicyPart(Struct, frozen=True):
    """One file that decides, as it was when the policy was read."""

    digest: str
    """The SHA-256 of its content, or why there is none."""
    signature: StatSignature | None = None
    is_shared: bool = True
    """Gateways with the same policy have the same one: not a file that a command line only names, such as its log."""


PolicyParts = Mapping[str, PolicyPart]
"""The files of a policy, by their absolute paths, and `VERSION`."""


def parts_of(
    read: Mapping[str, FileSnapshot], loaded: Iterable[Loaded], environ: Mapping[str, str], folder: str
) -> PolicyParts:
    """The parts of a policy: files that were `read`, and those on which the hooks of these configurations depend.

    `environ` is that of their hooks. A prompter starts in `folder`.
    """
    parts = {path: PolicyPart(digest(snapshot), snapshot.signature) for path, snapshot in read.items()}
    parts[VERSION] = PolicyPart(_digest_of_version())
    for one in loaded:
        for path, is_shared in _files_of(one, environ, folder):
            if path not in parts:
                parts[path] = replace(part_at(path), is_shared=is_shared)
    return dict(sorted(parts.items()))


def _files_of(loaded: Loaded, environ: Mapping[str, str], folder: str) -> Iterator[tuple[str, bool]]:
    """The files on which hooks and prompters depend, each with `PolicyPart.is_shared`."""
    settings = loaded.settings
    for path in () if loaded.managed is None else loaded.managed.files:
        yield path, True
    for prompter in {settings.prompter, settings.managed.prompter if settings.managed else ()} - {()}:
        yield from _not_of_system(scripts.files_of_command(prompter, folder, environ))
    for group in loaded.all_groups:
        yield group.source, True
        variables = managed_environment(environ) if group.managed else environ
        for spec in group.programs:
            yield from _not_of_system(scripts.files_of_hook(spec, variables))


def _not_of_system(files: scripts.CommandFiles) -> Iterator[tuple[str, bool]]:
    """Programs, the modules that they import, and other files that the command names."""
    modules = {path for folder, names in files.imports.items() for path in scripts.module_files(folder, names)}
    for path in (*files.all, *sorted(modules)):
        if not belongs_to_system(path):
            yield path, path in files.programs or path in modules


def part_at(path: str) -> PolicyPart:
    """The part that this file is now."""
    try:
        snapshot = read_for_hashing(path)
    except ConfigError as problem:
        return PolicyPart(problem.message.removeprefix(f"{path}: "))
    return PolicyPart(_MISSING) if snapshot is None else PolicyPart(digest(snapshot), snapshot.signature)


def _digest_of_version() -> str:
    total = sha256(__version__.encode())
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in _TABLES:
        with open(os.path.join(package, name), "rb") as file:
            total.update(sha256(file.read()).digest())
    return total.hexdigest()


def version_of(parts: PolicyParts) -> str:
    """The digest of the whole policy, in hexadecimal."""
    total = sha256()
    for path, part in parts.items():
        total.update(sha256(path.encode(errors="surrogateescape")).digest())
        total.update(sha256(part.digest.encode()).digest())
    return total.hexdigest()


def contents_of(parts: PolicyParts, without: str) -> bytes:
    """A digest of all contents but this file's: where they lie does not matter."""
    others = (part.digest for path, part in parts.items() if part.is_shared and path not in (without, VERSION))
    return b"".join(sorted(sha256(text.encode()).digest() for text in others))


def changed_since(parts: PolicyParts) -> list[str]:
    """The files that are not as they were when the policy was read, which a stat of each one shows.

    A folder stands for a signed policy, which whoever fetches it compares.
    """
    files = {path: part for path, part in parts.items() if path != VERSION and not os.path.isdir(path)}
    touched = [path for path, part in files.items() if _signature(path) != part.signature]
    return [path for path in touched if part_at(path).digest != parts[path].digest]


def _signature(path: str) -> StatSignature | None:
    with suppress(OSError, ValueError):
        return stat_signature(os.stat(path))
    return None


# --- what has changed ---


def changed_parts(old: PolicyParts, new: PolicyParts, without: str) -> list[str]:
    """A line for each file that has changed, is new or is gone; `without` is compared by its keys instead."""
    lines = []
    for path in sorted({*old, *new} - {without}):
        before, after = old.get(path), new.get(path)
        if path == VERSION and before != after:
            lines.append("changed: this version of hookproxy")
        elif before is None:
            lines.append(f"new: {path}")
        elif after is None:
            lines.append(f"no longer used: {path}")
        elif before.digest != after.digest:
            lines.append(f"changed: {path}" + (" (it is missing now)" if after.digest == _MISSING else ""))
    return _some(lines)


def changed_keys(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """A line for each key of gateway.toml whose value has changed. Values are shown of rules and names alone."""
    return _some(list(_changes("", old, new)))


def _changes(place: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        at = f"{place}.{key}" if place else key
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _changes(at, before, after)
        elif key in _SHOWN and isinstance(before or [], list) and isinstance(after or [], list):
            yield from _changed_list(at, before, after)
        elif _are_tables(before) and _are_tables(after):
            yield from _changed_tables(at, before, after)
        else:
            what = "new" if key not in old else "removed" if key not in new else "changed"
            yield f"{at}: {what}"


def _are_tables(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(table, Mapping) for table in value))


def _changed_tables(place: str, before: object, after: object) -> Iterator[str]:
    """What has changed in an array of tables, by their numbers."""
    old, new = _list(before), _list(after)
    for number in range(max(len(old), len(new))):
        at = f"{place}[{number}]"
        if number >= len(new):
            yield f"{at}: removed"
        elif number >= len(old):
            yield f"{at}: new"
        else:
            table, table_now = old[number], new[number]
            assert isinstance(table, Mapping), table
            assert isinstance(table_now, Mapping), table_now
            yield from _changes(at, table, table_now)


def _changed_list(place: str, before: object, after: object) -> Iterator[str]:
    old, new = _list(before), _list(after)
    added, removed = [entry for entry in new if entry not in old], [entry for entry in old if entry not in new]
    for what, entries in (("removed", removed), ("added", added)):
        if entries:
            yield f"{place}: {what} " + ", ".join(str(entry)[:_LONGEST] for entry in entries)
    if not (added or removed):
        yield f"{place}: in another order"


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"and {len(lines) - _MOST_LINES} more"]
