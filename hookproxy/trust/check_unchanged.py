"""Uses hook files, and the scripts that they start, only as they were trusted, by the hash of their content.

A file is opened once: what is hashed is what was read from that descriptor. Before each run of a hook its files are
compared with their last state, and hashed again if that has changed. After the run they must still be the same, or the
hook has failed and the failure blocks. So a file that is replaced only while the hook starts is detected, because only
root can set back the ctime of a file.

The files of a pack are held in the same way by the hashes with which the pack was verified at the start: all of them
for each of its hooks, trusted or not.

A Python script depends on the modules in its folder that its import statements name, wherever these statements are; on
all modules in its folder if it computes what it imports.

These are not detected: a folder or a link on the path, or a new module in the folder, that exists only while a hook
starts; files that scripts run, or load by other means than Python's import from their own folder; compiled modules in
`__pycache__`; programs of the system; changes to the store itself. Whoever may write in the state folder can change the
store, an agent with a file tool included. Where agents may write there, put guards into the administrator's files.
"""

from __future__ import annotations

import os
import shlex
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
from .scripts import module_files
from .sources import FileContext, FileSnapshot, Layer, StatSignature, stat_signature, store_path
from .trust_store import TrustEntry, read_store

MAX_BYTES: Final = 64 * 1024 * 1024  # more than any script and most programs have
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # does not wait for a pipe
_SYSTEM_FOLDERS: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/nix/store/", "/System/")
"""Programs of the system that belong to root are not hashed: updates change them, and agents cannot."""
_AGAIN: Final = "hookproxy init --from PACK --install installs the pack again"


class Dependencies(Struct):
    """The files that the hooks of a layer depend on."""

    files: dict[str, str] = field(default_factory=dict)
    """The path of each file that must be trusted, with the argument for `hookproxy trust`."""
    by_hook: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The paths that each hook depends on, by the `id()` of the HookSpec."""
    prompter_files: tuple[str, ...] = ()
    """The files of the program that asks the person."""
    missing_programs: list[str] = field(default_factory=list)
    """Paths where no program may appear, because PATH leads there first. They are also in `by_hook`."""
    imports: dict[str, frozenset[str]] = field(default_factory=dict)
    """Folders in which no further module may appear, as in `CommandFiles`. They are also in `by_hook`."""
    not_covered: list[str] = field(default_factory=list)
    """Descriptions of what else runs and cannot be checked."""


def dependencies(layer: Layer, groups: Sequence[Group], file_context: FileContext) -> Dependencies:
    """Find the files of a layer and of these groups, and all files that were read, as far as they can be determined.

    A hook file without hooks counts, because it may have had some. Managed files belong to root and are left out.
    """
    found, environ = Dependencies(), dict(file_context.environ)
    environ["CLAUDE_PROJECT_DIR"] = environ.get("CLAUDE_PROJECT_DIR") or file_context.cwd  # the value that hooks get
    if layer.source:
        found.files[layer.source] = layer.source
        prompter_files = scripts.files_of_command(layer.settings.prompter, os.path.dirname(layer.source), environ)
        found.prompter_files = (layer.source, *_add_files(found, layer.source, prompter_files))
    for group in groups:
        if group.managed:
            continue
        name = layer.by_option.get(group.source) or layer.source or group.source
        found.files.setdefault(group.source, name)
        for spec in group.programs:
            paths = _add_files(found, name, scripts.files_of_hook(spec, environ))
            found.by_hook[id(spec)] = (group.source, *paths)
    for path in file_context.files_read:
        found.files.setdefault(path, layer.by_option.get(path) or layer.source or path)
    found.not_covered = list(dict.fromkeys(found.not_covered))
    return found


def _add_files(found: Dependencies, name: str, files: scripts.CommandFiles) -> list[str]:
    """Add the files of one command to `found`, and return their paths."""
    paths = [path for path in files.all if not belongs_to_system(path)]
    for path in paths:
        found.files.setdefault(path, name)
    found.not_covered += files.not_covered
    found.not_covered += [f"{path}, which belongs to the system" for path in files.programs if path not in paths]
    missing_programs = [path for path in files.missing_programs if not belongs_to_system(f"{os.path.dirname(path)}/")]
    found.missing_programs += missing_programs
    for folder, names in files.imports.items():
        found.imports[folder] = found.imports.get(folder, frozenset()) | names
    return [*paths, *missing_programs, *files.imports]


def belongs_to_system(path: str) -> bool:
    """Judged by the path itself: a user's link to a program of the system belongs to that user."""
    with suppress(OSError, ValueError):
        return path.startswith(_SYSTEM_FOLDERS) and os.lstat(path).st_uid == 0 and os.stat(path).st_uid == 0
    return False


# --- reading and hashing ---


def read_for_hashing(path: str) -> FileSnapshot | None:
    """Read the file; None if it does not exist. Raises ConfigError for what is not a regular file, or too long."""
    try:
        opened = os.open(path, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(path, f"cannot be read or trusted: {error.strerror}", file_hint(path, error)) from None
    before = os.fstat(opened)
    if not stat.S_ISREG(before.st_mode):
        os.close(opened)
        raise ConfigError(path, "is not a regular file, so it cannot be trusted", "replace it with a regular file")
    with os.fdopen(opened, "rb") as file:
        raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(path, f"is longer than {MAX_BYTES} bytes, so it cannot be trusted", "use a shorter file")
        if stat_signature(os.fstat(opened)) != stat_signature(before):
            raise ConfigError(path, "is being written, so it cannot be trusted", "try again when it is complete")
        return FileSnapshot(raw, stat_signature(before))


def digest(snapshot: FileSnapshot) -> str:
    """The hash of the file's content."""
    return sha256(snapshot.data).hexdigest()


def _current_signature(path: str) -> StatSignature | None:
    try:
        return stat_signature(os.stat(path))
    except (OSError, ValueError):
        return None


def _listing_signature(paths: Sequence[str]) -> StatSignature:
    """A signature of the names of these files, in the form of a StatSignature."""
    return (int.from_bytes(sha256("\0".join(paths).encode(errors="surrogateescape")).digest(), "big"), 0, 0, 0, 0)


# --- at start-up ---


def verify(groups: Sequence[Group], user: Layer, file_context: FileContext) -> Trust:
    """Check that all files are as they were trusted. Raises ConfigError if one is not."""
    store = store_path(file_context.environ, file_context.home)
    entries, pinned = read_store(store), user.pinned
    found = dependencies(user, groups, file_context)
    known: dict[str, StatSignature | None] = {}
    problems: list[tuple[str, str]] = []
    for path, name in found.files.items():
        snapshot = file_context.files_read.get(path) or read_for_hashing(path)  # checks the content that was parsed
        known[path] = snapshot.signature if snapshot else None
        if problem := _problem(path, snapshot, entries):
            problems.append((problem, name))
    known = {path: _current_signature(path) for path in found.missing_programs} | known
    for folder, imported in found.imports.items():
        known[folder] = _listing_signature([path for path in module_files(folder, imported) if path in found.files])
    if not file_context.pack_folders:  # a version of a pack that is tried stands in the place of trusted files
        problems += _missing(found, entries)
    if problems:
        names = " ".join(dict.fromkeys(name for _, name in problems))
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        path, _, what = problems[0][0].partition(": ")
        project = f"--project {shlex.quote(file_context.project)} " if file_context.project else ""
        hint = f"hookproxy trust {project}{names} shows what is new or changed, and trusts it"
        raise ConfigError(path, what + more, hint)
    _pin(groups, pinned, found, known)
    return Trust(store, known, found, pinned)


def hold(groups: Sequence[Group], pinned: Mapping[str, Mapping[str, str]]) -> Trust:
    """Check only that files of packs stay as they were verified. Raises ConfigError if one is not."""
    found, known = Dependencies(), dict[str, StatSignature | None]()
    _pin(groups, pinned, found, known)
    return Trust("", known, found, pinned)


def _pin(
    groups: Sequence[Group],
    pinned: Mapping[str, Mapping[str, str]],
    found: Dependencies,
    known: dict[str, StatSignature | None],
) -> None:
    """Let each hook of a pack depend on all files of the pack, and on nothing else being in its folders.

    Raises ConfigError if one is not as it was verified.
    """
    for folder, files in pinned.items():
        known |= {path: _pinned_signature(path, files) for path in files}
        listed = _listed_names(folder, files)
        known |= {place: _listed_signature(place, names) for place, names in listed.items()}
        for group in groups:
            if group.source.startswith(os.path.join(folder, "")):
                for spec in group.programs:
                    own = found.by_hook.get(id(spec), ())
                    found.by_hook[id(spec)] = tuple(dict.fromkeys((*own, *files, *listed)))


def _listed_names(folder: str, files: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The names in each folder of a pack with these files. A slash stands at the end of the folders' paths: the same
    folder may also be one in which modules are looked for, by its path without one."""
    names: dict[str, set[str]] = {}
    for path in files:
        while path != folder:
            parent = os.path.dirname(path)
            names.setdefault(os.path.join(parent, ""), set()).add(os.path.basename(path))
            path = parent
    return {place: frozenset(there) for place, there in names.items()}


def _listed_signature(place: str, names: frozenset[str]) -> StatSignature | None:
    """The state of a folder in which just these names must be. Raises ConfigError."""
    signature = _current_signature(place)
    if problem := _listed_problem(place, names):
        path, _, what = problem.partition(": ")
        raise ConfigError(path, what, _AGAIN)
    return signature


def _listed_problem(place: str, names: frozenset[str]) -> str:
    """What is wrong with a folder in which just these names must be, after a path; empty: nothing is."""
    folder = place.rstrip("/")
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return f"{folder}: is not a folder any more"
        others = sorted(set(os.listdir(folder)) - names)
    except OSError as error:
        return f"{folder}: cannot be read: {error.strerror}"
    return f"{os.path.join(folder, others[0])}: is not in the pack" if others else ""


def _pinned_signature(path: str, files: Mapping[str, str]) -> StatSignature | None:
    snapshot = read_for_hashing(path)
    if problem := _pinned_problem(path, snapshot, files):
        raise ConfigError(path, problem, _AGAIN)
    return snapshot.signature if snapshot else None


def _pinned_problem(path: str, snapshot: FileSnapshot | None, files: Mapping[str, str]) -> str:
    """Why a file in the folder of a pack must not be used; empty if it is as it was verified."""
    if path not in files:
        return "is not in the pack"
    if snapshot is None:
        return "is gone"
    return "" if digest(snapshot) == files[path] else "has changed since the pack was verified"


def _missing(found: Dependencies, entries: Mapping[str, TrustEntry]) -> Iterator[tuple[str, str]]:
    """Hook files that were trusted together with a file in use, and are not used any more: guards have been removed."""
    names = set(found.files.values())
    for path, entry in entries.items():
        if entry.hooks and path not in found.files:
            for name in (name for name in entry.of if name in names):
                yield f"{path}: was trusted with {name}, which no longer uses it", name


def _problem(path: str, snapshot: FileSnapshot | None, entries: Mapping[str, TrustEntry]) -> str:
    """Why the file must not be used; empty if it is as it was trusted, or never existed."""
    entry = entries.get(path)
    if snapshot is None:
        return f"{path}: is gone" if entry else ""
    if entry is None:
        return f"{path}: is not trusted yet"
    return "" if entry.sha256 == digest(snapshot) else f"{path}: has changed since it was trusted"


# --- while hooks run ---


class FileCheck(Struct, frozen=True):
    """The result of checking the files of a hook at one moment."""

    signatures: tuple[StatSignature | None, ...]
    failure: str = ""
    """Why the hook must not run, in one sentence without a full stop."""
    rewritten: bool = False
    """A file was written or replaced since the hook's last run, with the same content: a kept process may be older."""


class Trust:
    """Checks while hooks run that their files are still as they were when they were hashed."""

    def __init__(
        self,
        store: str,
        known: dict[str, StatSignature | None],
        found: Dependencies,
        pinned: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Without a `store`, only the files of packs are held, and nothing must be trusted."""
        self._store = store
        self._known = known
        self._pinned = {path: files for files in pinned.values() for path in files}
        self._listed: dict[str, frozenset[str]] = {}
        for folder, files in pinned.items():
            self._listed |= _listed_names(folder, files)
        self.required = bool(store)
        self.dependencies = found
        self._last = {id_: tuple(known[path] for path in paths) for id_, paths in found.by_hook.items()}

    def check(self, spec: HookSpec) -> FileCheck:
        """Check the hook's files, and hash those again whose state has changed."""
        result = self._check(self.dependencies.by_hook.get(id(spec), ()))
        if result.failure:
            return result
        before, self._last[id(spec)] = self._last.get(id(spec)), result.signatures
        return replace(result, rewritten=before is not None and before != result.signatures)

    def prompter_failure(self) -> str:
        """Why the user's prompter must not run, in one sentence without a full stop; empty: it may."""
        return self._check(self.dependencies.prompter_files).failure

    def _check(self, paths: Sequence[str]) -> FileCheck:
        for path in paths:
            if self._current_signature(path) != self._known[path] and (failure := self._recheck(path)):
                return FileCheck((), failure)
        return FileCheck(tuple(self._known[path] for path in paths))

    def failure_after(self, check: FileCheck, spec: HookSpec) -> str:
        """Why the output of a hook that started after `check` does not count; empty if its files have not changed."""
        now = tuple(map(self._current_signature, self.dependencies.by_hook.get(id(spec), ())))
        if now == check.signatures:
            return ""
        return "had one of its files changed while it ran, so it is not known what ran"

    def _recheck(self, path: str) -> str:
        """Hash a changed file, or the modules of a folder, again. Returns why hooks must not run; empty: unchanged."""
        hint = f"hookproxy trust {self.dependencies.files.get(path, 'FILE')} shows what changed"
        if path in self._listed:
            return self._recheck_listed(path)
        if path in self._pinned and (failure := self._recheck_pinned(path)):
            return failure
        try:
            modules = module_files(path, self.dependencies.imports[path]) if path in self.dependencies.imports else None
            entries, snapshot = read_store(self._store) if self.required else {}, None
            if modules is None:
                snapshot = read_for_hashing(path)
                problem = _problem(path, snapshot, entries) if self.required else ""
            elif not self.required:
                problem = ""
            else:
                problems = (_problem(module, read_for_hashing(module), entries) for module in modules)
                problem = next(filter(None, problems), "")
        except ConfigError as error:
            return f"is not run, because {error.message}"
        if problem:
            return f"is not run, because {problem.replace(': ', ' ', 1)}: {hint}"
        self._known[path] = (
            _listing_signature(modules) if modules is not None else snapshot.signature if snapshot else None
        )
        return ""

    def _recheck_pinned(self, path: str) -> str:
        """As `_recheck`, for a file of a pack, by the hash with which the pack was verified."""
        try:
            problem = _pinned_problem(path, read_for_hashing(path), self._pinned[path])
        except ConfigError as error:
            return f"is not run, because {error.message}"
        return f"is not run, because {path} {problem}: {_AGAIN}" if problem else ""

    def _recheck_listed(self, place: str) -> str:
        """As `_recheck`, for a folder of a pack."""
        signature = _current_signature(place)
        if problem := _listed_problem(place, self._listed[place]):
            return f"is not run, because {problem.replace(': ', ' ', 1)}: {_AGAIN}"
        self._known[place] = signature
        return ""

    def _current_signature(self, path: str) -> StatSignature | None:
        names = self.dependencies.imports.get(path)
        if names is None:
            return _current_signature(path)
        try:
            return _listing_signature(module_files(path, names))
        except ConfigError:  # it has become too large
            return None

    @contextmanager
    def importing(self) -> Iterator[None]:
        """While the block runs, Python imports modules from the text that was hashed, not from compiled files.

        Raises ConfigError if a file has changed meanwhile.
        """
        before = sys.pycache_prefix, sys.dont_write_bytecode
        sys.pycache_prefix, sys.dont_write_bytecode = scripts.NO_PYCACHE, True
        try:
            yield
        finally:
            sys.pycache_prefix, sys.dont_write_bytecode = before
        for path, signature in self._known.items():
            if self._current_signature(path) != signature and (failure := self._recheck(path)):
                raise ConfigError(path, failure, "try again: it was changed just now")
