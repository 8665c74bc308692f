"""What is used only as it was trusted: hook files and the scripts that they start, each by the hash of its content.

A file is opened once: what is hashed is what was read from that descriptor. Before each run of a hook its files are
looked at, and hashed again where they are not the same any more; after the run they must still be what they were, or
what it said is trouble that blocks. So a file that is swapped for the moment of the start, and back, is found out, for
nobody sets back the time at which a file's entry changed. What is left: a folder or a link on the way to it, or a new
module beside it, that is there only while a hook starts; what scripts run by themselves, or load otherwise than by
Python's import from their own folder, compiled modules in `__pycache__` too; programs that belong to the system; and
the store itself, which whoever may write in the state folder can write, an agent with a file tool too. Where agents may
write there, guards belong into the administrator's files.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.errors import ConfigError, file_hint
from ..model.hooks import HookSpec
from . import scripts
from .scripts import modules
from .sources import FileContext, Layer, Seen, Stamp, stamp_of, store_path
from .trust_store import Entry, read_store

LONGEST: Final = 64 * 1024 * 1024  # bytes of a file that is hashed: more than any script, and most programs
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe is not waited for
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/nix/store/", "/System/")
"""Where programs of the system lie: root's own are not hashed, for updates change them, and no agent does."""
_NOWHERE: Final = "/dev/null/hookproxy"  # no folder can be there: compiled modules are neither read nor written


class Covered(Struct):
    """What a layer's hooks hang on."""

    files: dict[str, str] = field(default_factory=dict)
    """The path of each file that must be trusted, with the FILE to give to `hookproxy trust`."""
    of_hooks: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By the hook's identity as an object: its files."""
    prompter: tuple[str, ...] = ()
    """The files of the program that asks the person."""
    absent: list[str] = field(default_factory=list)
    """Where nothing may appear: PATH leads there first. They stand among the files of the hooks that they concern."""
    imports: dict[str, frozenset[str]] = field(default_factory=dict)
    """Folders in which no other module may appear, as of `scripts.Files`. They, too, stand among the files of hooks."""
    unknown: list[str] = field(default_factory=list)
    """What is run besides and cannot be covered, in a few words each."""


def covered(layer: Layer, groups: Sequence[Group], file_context: FileContext) -> Covered:
    """The files of a layer, of these groups, and all others that have been read: a hook file without hooks had some.

    As far as can be told. What is managed is root's, and left out.
    """
    found, environ = Covered(), dict(file_context.environ)
    environ["CLAUDE_PROJECT_DIR"] = environ.get("CLAUDE_PROJECT_DIR") or file_context.cwd  # as hooks get it
    if layer.source:
        found.files[layer.source] = layer.source
        prompter = scripts.of_command(layer.settings.prompter, os.path.dirname(layer.source), environ)
        found.prompter = (layer.source, *_add(found, layer.source, prompter))
    for group in groups:
        if group.managed:
            continue
        name = layer.by_option.get(group.source) or layer.source or group.source
        found.files.setdefault(group.source, name)
        for spec in group.hooks:
            paths = _add(found, name, scripts.of_hook(spec, environ))
            found.of_hooks[id(spec)] = (group.source, *paths)
    for path in file_context.seen:
        found.files.setdefault(path, layer.by_option.get(path) or layer.source or path)
    found.unknown = list(dict.fromkeys(found.unknown))
    return found


def _add(found: Covered, name: str, files: scripts.Files) -> list[str]:
    paths = [path for path in files.all if not _is_systems(path)]
    for path in paths:
        found.files.setdefault(path, name)
    found.unknown += files.unknown
    found.unknown += [f"{path}, which belongs to the system" for path in files.programs if path not in paths]
    absent = [path for path in files.absent if not _is_systems(f"{os.path.dirname(path)}/")]
    found.absent += absent
    for folder, names in files.imports.items():
        found.imports[folder] = found.imports.get(folder, frozenset()) | names
    return [*paths, *absent, *files.imports]


def _is_systems(path: str) -> bool:
    """By its own name: a link of somebody's that leads to a program of the system is that somebody's."""
    with suppress(OSError, ValueError):
        return path.startswith(_SYSTEM) and os.lstat(path).st_uid == 0 and os.stat(path).st_uid == 0
    return False


# --- reading and hashing ---


def read(path: str) -> Seen | None:
    """The file; None where there is none. Raises ConfigError for what cannot be trusted, because it is no file."""
    try:
        opened = os.open(path, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(
            path, f"cannot be read, and so not be trusted: {error.strerror}", file_hint(path, error)
        ) from None
    before = os.fstat(opened)
    if not stat.S_ISREG(before.st_mode):
        os.close(opened)
        raise ConfigError(path, "is no regular file, and cannot be trusted", "put a file in its place")
    with os.fdopen(opened, "rb") as file:
        raw = file.read(LONGEST + 1)
        if len(raw) > LONGEST:
            raise ConfigError(path, f"is longer than {LONGEST} bytes, and cannot be trusted", "name a shorter one")
        if stamp_of(os.fstat(opened)) != stamp_of(before):
            raise ConfigError(path, "is being written, and cannot be trusted", "try again when it is complete")
        return Seen(raw, stamp_of(before))


def digest(seen: Seen) -> str:
    """The hash of what was read."""
    return sha256(seen.raw).hexdigest()


def _stamp(path: str) -> Stamp | None:
    try:
        return stamp_of(os.stat(path))
    except (OSError, ValueError):
        return None


def _listed(paths: Sequence[str]) -> Stamp:
    """What tells these files from others by their names."""
    return (int.from_bytes(sha256("\0".join(paths).encode(errors="surrogateescape")).digest(), "big"), 0, 0, 0, 0)


# --- at start-up ---


def trusted(groups: Sequence[Group], given: Layer, file_context: FileContext) -> Trust:
    """What is to be watched while hooks run. Raises ConfigError where something is not as it was trusted."""
    store = store_path(file_context.environ, file_context.home)
    entries = read_store(store)
    found = covered(given, groups, file_context)
    known: dict[str, Stamp | None] = {}
    problems: list[tuple[str, str]] = []
    for path, name in found.files.items():
        seen = file_context.seen.get(path) or read(path)  # what has been parsed is what is judged
        known[path] = seen.stamp if seen else None
        if problem := _problem(path, seen, entries):
            problems.append((problem, name))
    known = {path: _stamp(path) for path in found.absent} | known
    for folder, imported in found.imports.items():
        known[folder] = _listed([path for path in modules(folder, imported) if path in found.files])
    problems += _missing(found, entries)
    if problems:
        names = " ".join(dict.fromkeys(name for _, name in problems))
        more = f", and so {len(problems) - 1} more" if len(problems) > 1 else ""
        path, _, what = problems[0][0].partition(": ")
        raise ConfigError(path, what + more, f"hookproxy trust {names} shows what it is, and remembers it")
    return Trust(store, known, found)


def _missing(found: Covered, entries: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """Hook files that were trusted with what is in use, and are not read any more: somebody has taken guards away."""
    names = set(found.files.values())
    for path, entry in entries.items():
        if entry.hooks and path not in found.files:
            yield from (
                (f"{path}: was trusted with {one}, which leads to it no more", one) for one in entry.of if one in names
            )


def _problem(path: str, seen: Seen | None, entries: Mapping[str, Entry]) -> str:
    """Why the file is not used; empty: it is what was trusted, or never was there."""
    entry = entries.get(path)
    if seen is None:
        return f"{path}: is gone" if entry else ""
    if entry is None:
        return f"{path}: is not trusted yet"
    return "" if entry.sha256 == digest(seen) else f"{path}: has changed since it was trusted"


# --- while hooks run ---


class Mark(Struct, frozen=True):
    """What the files of a hook were at one moment."""

    stamps: tuple[Stamp | None, ...]
    failure: str = ""
    """Why the hook must not run, in one sentence without a full stop."""
    touched: bool = False
    """Some file was written or replaced since this hook's last time, with the same content: what runs may be older."""


class Trust:
    """The files that hooks hang on, as they were when they were hashed."""

    def __init__(self, store: str, known: dict[str, Stamp | None], found: Covered) -> None:
        self._store = store
        self._known = known
        self._found = found
        self._last = {id_: tuple(known[path] for path in paths) for id_, paths in found.of_hooks.items()}

    @property
    def covered(self) -> Covered:
        """What it watches."""
        return self._found

    def mark(self, spec: HookSpec) -> Mark:
        """Look at the hook's files, and hash again those that are not the same as before."""
        one = self._mark(self._found.of_hooks.get(id(spec), ()))
        if one.failure:
            return one
        before, self._last[id(spec)] = self._last.get(id(spec)), one.stamps
        return replace(one, touched=before is not None and before != one.stamps)

    def prompter_failure(self) -> str:
        """Why the user's prompter must not run, in one sentence without a full stop; empty: it may."""
        return self._mark(self._found.prompter).failure

    def _mark(self, paths: Sequence[str]) -> Mark:
        for path in paths:
            if self._stamp(path) != self._known[path] and (failure := self._again(path)):
                return Mark((), failure)
        return Mark(tuple(self._known[path] for path in paths))

    def failure_since(self, mark: Mark, spec: HookSpec) -> str:
        """Why what a hook said that began at this mark does not count; empty: its files are the same."""
        now = tuple(map(self._stamp, self._found.of_hooks.get(id(spec), ())))
        return "" if now == mark.stamps else "had a file of its own changed while it ran, so that what ran is not known"

    def _again(self, path: str) -> str:
        hint = f"hookproxy trust {self._found.files.get(path, 'FILE')} shows what it is now"
        beside = modules(path, self._found.imports[path]) if path in self._found.imports else None
        try:
            entries, seen = read_store(self._store), None
            if beside is None:
                seen = read(path)
                problem = _problem(path, seen, entries)
            else:
                problem = next(filter(None, (_problem(one, read(one), entries) for one in beside)), "")
        except ConfigError as error:
            return f"is not run, for {error.message}"
        if problem:
            return f"is not run, for {problem.replace(': ', ' ', 1)}: {hint}"
        self._known[path] = _listed(beside) if beside is not None else seen.stamp if seen else None
        return ""

    def _stamp(self, path: str) -> Stamp | None:
        names = self._found.imports.get(path)
        return _stamp(path) if names is None else _listed(modules(path, names))

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Python functions are imported here: from the text that was hashed, and not from what was compiled of it.

        Raises ConfigError where a file has changed meanwhile.
        """
        before = sys.pycache_prefix, sys.dont_write_bytecode
        sys.pycache_prefix, sys.dont_write_bytecode = _NOWHERE, True
        try:
            yield
        finally:
            sys.pycache_prefix, sys.dont_write_bytecode = before
        for path, stamp in self._known.items():
            if self._stamp(path) != stamp and (failure := self._again(path)):
                raise ConfigError(path, failure, "try again: it has been changed just now")
