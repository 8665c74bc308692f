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
from ..model.errors import ConfigError, look
from ..model.hooks import HookSpec
from . import scripts
from .scripts import module_files
from .sources import FileContext, FileSnapshot, Layer, StatSignature, stat_signature, store_path
from .trust_store import TrustEntry, read_store

MAX_BYTES: Final = 64 * 1024 * 1024  # bytes of a file that is hashed: more than any script, and most programs
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe is not waited for
_SYSTEM_FOLDERS: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/nix/store/", "/System/")
"""Where programs of the system lie: root's own are not hashed, for updates change them, and no agent does."""
_NO_PYCACHE: Final = "/dev/null/hookproxy"  # no folder can be there: compiled modules are neither read nor written


class Dependencies(Struct):
    """What a layer's hooks hang on."""

    files: dict[str, str] = field(default_factory=dict)
    """The path of each file that must be trusted, with the FILE to give to `hookproxy trust`."""
    by_hook: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By the hook's identity as an object: its files."""
    prompter_files: tuple[str, ...] = ()
    """The files of the program that asks the person."""
    missing_programs: list[str] = field(default_factory=list)
    """Where nothing may appear: PATH leads there first. They stand among the files of the hooks that they concern."""
    imports: dict[str, frozenset[str]] = field(default_factory=dict)
    """Folders in which no other module may appear, as of `scripts.Files`. They, too, stand among the files of hooks."""
    not_covered: list[str] = field(default_factory=list)
    """What is run besides and cannot be covered, in a few words each."""


def dependencies(layer: Layer, groups: Sequence[Group], file_context: FileContext) -> Dependencies:
    """The files of a layer, of these groups, and all others that have been read: a hook file without hooks had some.

    As far as can be told. What is managed is root's, and left out.
    """
    found, environ = Dependencies(), dict(file_context.environ)
    environ["CLAUDE_PROJECT_DIR"] = environ.get("CLAUDE_PROJECT_DIR") or file_context.cwd  # as hooks get it
    if layer.source:
        found.files[layer.source] = layer.source
        prompter_files = scripts.files_of_command(layer.settings.prompter, os.path.dirname(layer.source), environ)
        found.prompter_files = (layer.source, *_add(found, layer.source, prompter_files))
    for group in groups:
        if group.managed:
            continue
        name = layer.by_option.get(group.source) or layer.source or group.source
        found.files.setdefault(group.source, name)
        for spec in group.hooks:
            paths = _add(found, name, scripts.files_of_hook(spec, environ))
            found.by_hook[id(spec)] = (group.source, *paths)
    for path in file_context.files_read:
        found.files.setdefault(path, layer.by_option.get(path) or layer.source or path)
    found.not_covered = list(dict.fromkeys(found.not_covered))
    return found


def _add(found: Dependencies, name: str, files: scripts.CommandFiles) -> list[str]:
    paths = [path for path in files.all if not _belongs_to_system(path)]
    for path in paths:
        found.files.setdefault(path, name)
    found.not_covered += files.not_covered
    found.not_covered += [f"{path}, which belongs to the system" for path in files.programs if path not in paths]
    missing_programs = [path for path in files.missing_programs if not _belongs_to_system(f"{os.path.dirname(path)}/")]
    found.missing_programs += missing_programs
    for folder, names in files.imports.items():
        found.imports[folder] = found.imports.get(folder, frozenset()) | names
    return [*paths, *missing_programs, *files.imports]


def _belongs_to_system(path: str) -> bool:
    """By its own name: a link of somebody's that leads to a program of the system is that somebody's."""
    with suppress(OSError, ValueError):
        return path.startswith(_SYSTEM_FOLDERS) and os.lstat(path).st_uid == 0 and os.stat(path).st_uid == 0
    return False


# --- reading and hashing ---


def read_for_hashing(path: str) -> FileSnapshot | None:
    """The file; None where there is none. Raises ConfigError for what cannot be trusted, because it is no file."""
    try:
        opened = os.open(path, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(path, f"cannot be read, and so not be trusted: {error.strerror}", look(path, error)) from None
    before = os.fstat(opened)
    if not stat.S_ISREG(before.st_mode):
        os.close(opened)
        raise ConfigError(path, "is no regular file, and cannot be trusted", "put a file in its place")
    with os.fdopen(opened, "rb") as file:
        raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(path, f"is longer than {MAX_BYTES} bytes, and cannot be trusted", "name a shorter one")
        if stat_signature(os.fstat(opened)) != stat_signature(before):
            raise ConfigError(path, "is being written, and cannot be trusted", "try again when it is complete")
        return FileSnapshot(raw, stat_signature(before))


def digest(seen: FileSnapshot) -> str:
    """The hash of what was read."""
    return sha256(seen.data).hexdigest()


def _current_signature(path: str) -> StatSignature | None:
    try:
        return stat_signature(os.stat(path))
    except (OSError, ValueError):
        return None


def _listing_signature(paths: Sequence[str]) -> StatSignature:
    """What tells these files from others by their names."""
    return (int.from_bytes(sha256("\0".join(paths).encode(errors="surrogateescape")).digest(), "big"), 0, 0, 0, 0)


# --- at start-up ---


def trusted(groups: Sequence[Group], given: Layer, file_context: FileContext) -> Trust:
    """What is to be watched while hooks run. Raises ConfigError where something is not as it was trusted."""
    store = store_path(file_context.environ, file_context.home)
    entries = read_store(store)
    found = dependencies(given, groups, file_context)
    known: dict[str, StatSignature | None] = {}
    problems: list[tuple[str, str]] = []
    for path, name in found.files.items():
        seen = file_context.files_read.get(path) or read_for_hashing(path)  # what has been parsed is what is judged
        known[path] = seen.signature if seen else None
        if problem := _problem(path, seen, entries):
            problems.append((problem, name))
    known = {path: _current_signature(path) for path in found.missing_programs} | known
    for folder, imported in found.imports.items():
        known[folder] = _listing_signature([path for path in module_files(folder, imported) if path in found.files])
    problems += _missing(found, entries)
    if problems:
        names = " ".join(dict.fromkeys(name for _, name in problems))
        more = f", and so {len(problems) - 1} more" if len(problems) > 1 else ""
        path, _, what = problems[0][0].partition(": ")
        raise ConfigError(path, what + more, f"hookproxy trust {names} shows what it is, and remembers it")
    return Trust(store, known, found)


def _missing(found: Dependencies, entries: Mapping[str, TrustEntry]) -> Iterator[tuple[str, str]]:
    """Hook files that were trusted with what is in use, and are not read any more: somebody has taken guards away."""
    names = set(found.files.values())
    for path, entry in entries.items():
        if entry.hooks and path not in found.files:
            yield from (
                (f"{path}: was trusted with {one}, which leads to it no more", one) for one in entry.of if one in names
            )


def _problem(path: str, seen: FileSnapshot | None, entries: Mapping[str, TrustEntry]) -> str:
    """Why the file is not used; empty: it is what was trusted, or never was there."""
    entry = entries.get(path)
    if seen is None:
        return f"{path}: is gone" if entry else ""
    if entry is None:
        return f"{path}: is not trusted yet"
    return "" if entry.sha256 == digest(seen) else f"{path}: has changed since it was trusted"


# --- while hooks run ---


class FileCheck(Struct, frozen=True):
    """What the files of a hook were at one moment."""

    signatures: tuple[StatSignature | None, ...]
    failure: str = ""
    """Why the hook must not run, in one sentence without a full stop."""
    rewritten: bool = False
    """Some file was written or replaced since this hook's last time, with the same content: what runs may be older."""


class Trust:
    """The files that hooks hang on, as they were when they were hashed."""

    def __init__(self, store: str, known: dict[str, StatSignature | None], found: Dependencies) -> None:
        self._store = store
        self._known = known
        self._found = found
        self._last = {id_: tuple(known[path] for path in paths) for id_, paths in found.by_hook.items()}

    @property
    def dependencies(self) -> Dependencies:
        """What it watches."""
        return self._found

    def check(self, spec: HookSpec) -> FileCheck:
        """Look at the hook's files, and hash again those that are not the same as before."""
        one = self._check(self._found.by_hook.get(id(spec), ()))
        if one.failure:
            return one
        before, self._last[id(spec)] = self._last.get(id(spec)), one.signatures
        return replace(one, rewritten=before is not None and before != one.signatures)

    def prompter_failure(self) -> str:
        """Why the user's prompter must not run, in one sentence without a full stop; empty: it may."""
        return self._check(self._found.prompter_files).failure

    def _check(self, paths: Sequence[str]) -> FileCheck:
        for path in paths:
            if self._current_signature(path) != self._known[path] and (failure := self._recheck(path)):
                return FileCheck((), failure)
        return FileCheck(tuple(self._known[path] for path in paths))

    def failure_after(self, check: FileCheck, spec: HookSpec) -> str:
        """Why what a hook said that began at this mark does not count; empty: its files are the same."""
        now = tuple(map(self._current_signature, self._found.by_hook.get(id(spec), ())))
        return (
            ""
            if now == check.signatures
            else "had a file of its own changed while it ran, so that what ran is not known"
        )

    def _recheck(self, path: str) -> str:
        hint = f"hookproxy trust {self._found.files.get(path, 'FILE')} shows what it is now"
        beside = module_files(path, self._found.imports[path]) if path in self._found.imports else None
        try:
            entries, seen = read_store(self._store), None
            if beside is None:
                seen = read_for_hashing(path)
                problem = _problem(path, seen, entries)
            else:
                problem = next(filter(None, (_problem(one, read_for_hashing(one), entries) for one in beside)), "")
        except ConfigError as error:
            return f"is not run, for {error.message}"
        if problem:
            return f"is not run, for {problem.replace(': ', ' ', 1)}: {hint}"
        self._known[path] = _listing_signature(beside) if beside is not None else seen.signature if seen else None
        return ""

    def _current_signature(self, path: str) -> StatSignature | None:
        names = self._found.imports.get(path)
        return _current_signature(path) if names is None else _listing_signature(module_files(path, names))

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Python functions are imported here: from the text that was hashed, and not from what was compiled of it.

        Raises ConfigError where a file has changed meanwhile.
        """
        before = sys.pycache_prefix, sys.dont_write_bytecode
        sys.pycache_prefix, sys.dont_write_bytecode = _NO_PYCACHE, True
        try:
            yield
        finally:
            sys.pycache_prefix, sys.dont_write_bytecode = before
        for path, stamp in self._known.items():
            if self._current_signature(path) != stamp and (failure := self._recheck(path)):
                raise ConfigError(path, failure, "try again: it has been changed just now")
