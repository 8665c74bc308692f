"""The folder of bundles that were taken: each in a folder with the hash of its manifest as its name, and which counts.

- A bundle is written beside the others, onto the disk, and gets its name by one rename. `state.json`, which names the
  one in force, is replaced as a whole: after a crash of the machine there is the bundle before or the new one.
- Nothing in a bundle's folder is writable, and whoever uses one reads all of it and verifies it again.
- The last ones are kept, for `rollback`, and those that somebody uses: calls may still be judged by one, and runs end
  with the policy that they began with.
- Whoever changes something holds the folder's lock.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..archives import archive, names
from ..archives.listed import Refused
from ..files.folder_lock import lock_folder
from ..files.folder_use import is_used
from ..files.open_flags import NEW_FILE
from ..files.replace import replace_file, sync_folder
from ..model.errors import ConfigError, file_hint, not_written
from ..signing.keys import PublicKey
from . import manifest
from .manifest import Manifest, Memory, Verified

STATE: Final = "state.json"
_BUNDLES: Final = "bundles"
_HISTORY: Final = "history.jsonl"
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
FETCHING: Final = ".git-"
"""The beginning of the names of folders in which something is being fetched."""

_LONGEST_FETCH: Final = 3600.0  # seconds: a fetch takes minutes at most
_KEPT: Final = 5  # bundles: the one in force, and some to go back to
_MOST_USED: Final = 50  # more: a year of runs with a new policy each week
_FORMAT: Final = 1
_READABLE: Final = 0o444
_EXECUTABLE: Final = 0o555
_FOLDER: Final = 0o755  # while it is filled
UNKNOWN: Final = 1_000_000  # statements: more than there can be
_LARGEST_STATE: Final = 256 * 1024  # bytes: it has a few hundred


class Taken(Struct, frozen=True):
    """A bundle that was taken."""

    digest: str
    version: int
    ring: str
    expires: str
    taken: float
    """In seconds since 1970."""
    signed_by: str = ""
    """The fingerprint of the key."""


class Pin(Struct, frozen=True):
    """The administrator has gone back to an older version, until a newer one than `until` comes."""

    until: int
    by: str
    at: float


class State(Struct, frozen=True):
    """What is remembered between runs."""

    format: int = _FORMAT
    current: Taken | None = None
    kept: tuple[Taken, ...] = ()
    """All that are there, the newest one first; the one in force among them."""
    highest: Mapping[str, tuple[int, str]] = {}
    """By ring: the highest version that was taken, and its digest."""
    highest_chain: Mapping[str, int] = {}
    """By ring: how many statements of keys there were then; UNKNOWN or absent: of other keys of the administrator."""
    keys_of: str = ""
    """`manifest.keys_digest` of the administrator's keys under which `keys_chain` was taken."""
    keys_chain: tuple[str, ...] = ()
    pinned: Pin | None = None
    checked: float = 0.0
    """When the source was asked last, in seconds since 1970."""
    failure: str = ""
    """Why that gave nothing; empty: it did, or there was nothing new."""
    failures: int = 0
    """In a row."""
    came: float = 0.0
    """When the source has sent a bundle last, and not only said that there is no other one."""
    mark: str = ""
    mark_of: str = ""
    """The source whose mark it is."""

    def is_pinned_in(self, ring: str) -> bool:
        """Whether an older version of this ring stays, although a newer one is known."""
        return self.pinned is not None and self.current is not None and self.current.ring == ring

    def memory(self, ring: str, keys_of: str) -> Memory:
        """What must be remembered for this ring and these keys of the administrator."""
        version, digest = self.highest.get(ring, (0, ""))
        if keys_of != self.keys_of:  # the statements are about other keys
            return Memory(version, digest, (), UNKNOWN)
        return Memory(version, digest, self.keys_chain, self.highest_chain.get(ring, UNKNOWN))


class Store:
    """The folder, for one process at a time that changes it."""

    def __init__(self, folder: str) -> None:
        self.folder: Final = folder

    def path_of(self, digest: str) -> str:
        """The folder of a bundle."""
        return os.path.join(self.folder, _BUNDLES, digest)

    def state(self, read: Callable[[str], bytes] | None = None) -> State:
        """What is remembered. Raises UserError if it cannot be read: nothing is decided without it."""
        path = os.path.join(self.folder, STATE)
        try:
            data = (read or _read_small)(path)
        except (FileNotFoundError, NotADirectoryError):
            return State()
        except OSError as error:
            raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
        try:
            state = msgspec.json.decode(data, type=State)
            if state.format != _FORMAT:
                raise ValueError(f"its format is {state.format}")
        except (ValueError, RecursionError) as problem:
            hint = f"remove {self.folder} and fetch the policy anew; set min_version to the version that you know"
            raise ConfigError(path, f"is not the state of a policy: {problem}", hint) from None
        return state

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While the block runs, no other process changes the folder. Raises UserError."""
        try:
            _make_readable(self.folder)
            lock = lock_folder(self.folder)
        except OSError as error:
            first = "make it for the account that fetches the policy, with the mode 755"
            raise not_written(self.folder, error, "cannot be used", first) from None
        try:
            yield
        finally:
            os.close(lock)

    def write(self, state: State) -> None:
        """Remember this. Raises OSError."""
        replace_file(os.path.join(self.folder, STATE), msgspec.json.encode(state), mode=0o644)

    def record(self, what: str, taken: Taken, by: str) -> None:
        """Append a line to the folder's history: what has happened, by whom or from where. Raises OSError."""
        happened = {"time": manifest.formatted_time(time.time()), "event": what, "by": by}
        line = {**happened, "version": taken.version, "ring": taken.ring, "digest": taken.digest}
        descriptor = os.open(os.path.join(self.folder, _HISTORY), _APPEND, 0o644)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(descriptor)

    def unpack(self, verified: Verified, files: Mapping[str, bytes]) -> str:
        """Write the bundle, and return its folder. One that is there already is replaced. Raises OSError."""
        final = self.path_of(verified.digest)
        _make_readable(os.path.dirname(final))
        new = os.path.join(os.path.dirname(final), f".new-{os.urandom(8).hex()}")
        try:
            _write_all(new, verified.manifest, files)
            if os.path.lexists(final):
                _remove(final)
            os.rename(new, final)
            os.chmod(final, _EXECUTABLE)
            sync_folder(os.path.dirname(final))
        except BaseException:
            with suppress(OSError):
                _remove(new)
            raise
        return final

    def forget_old(self, state: State) -> State:
        """Remove bundles that are neither in force nor among the last ones nor in use. Returns the state without them.

        So many that are in use are kept, the newest ones: whoever can read a folder can use it for ever.
        """
        kept = state.kept[:_KEPT]
        if state.current is not None and state.current not in kept:
            kept = (*kept[:-1], state.current)
        digests = {taken.digest for taken in kept}
        folder = os.path.join(self.folder, _BUNDLES)
        with suppress(OSError):
            others = [entry for entry in os.scandir(folder) if entry.name not in digests]
            others.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime, reverse=True)
            used = 0
            for entry in others:
                if used < _MOST_USED and is_used(entry.path):
                    used += 1
                    continue
                with suppress(OSError):  # of another account, which may remove it
                    _remove(entry.path)
        self._remove_left_behind()
        return replace(state, kept=kept)

    def _remove_left_behind(self) -> None:
        """Remove what killed processes have fetched."""
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.name.startswith(FETCHING) and entry.stat().st_mtime < time.time() - _LONGEST_FETCH:
                    _remove(entry.path)


def _make_readable(folder: str) -> None:
    """Make the folder if it is not there, readable for all whatever the umask is: hooks may run as another account."""
    if not os.path.isdir(folder):
        os.makedirs(folder)
        os.chmod(folder, _FOLDER)


def _read_small(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(_LARGEST_STATE + 1)
    if len(data) > _LARGEST_STATE:
        raise ConfigError(path, "is too long for the state of a policy", "remove it, and fetch the policy anew")
    return data


def read_bundle(folder: str, read: Callable[[str], bytes]) -> dict[str, bytes]:
    """All files of an unpacked bundle. Raises OSError, ConfigError, and Refused for what is in no archive.

    Python's compiled modules are not files of a bundle: they are removed where that is possible.
    """
    files: dict[str, bytes] = {}
    for here, folders, present in os.walk(folder, onerror=_raise):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
            with suppress(OSError):
                shutil.rmtree(os.path.join(here, "__pycache__"))
        for name in folders:
            if os.path.islink(os.path.join(here, name)):
                raise Refused(f"{name} is a link")
        for name in present:
            path = os.path.join(here, name)
            files[os.path.relpath(path, folder)] = read(path)
            if len(files) > archive.MOST_FILES:
                raise Refused(f"it has more than {archive.MOST_FILES} files")
    try:
        names.check_all(files)
    except names.BadName as problem:
        raise Refused(str(problem)) from None
    return files


def _raise(error: OSError) -> None:
    raise error


def _write_all(folder: str, of: Manifest, files: Mapping[str, bytes]) -> None:
    folders = {folder}
    os.mkdir(folder, _FOLDER)
    for name, content in sorted(files.items()):
        path = os.path.join(folder, name)
        if os.path.dirname(path) not in folders:
            os.makedirs(os.path.dirname(path), _FOLDER, exist_ok=True)
            folders.add(os.path.dirname(path))
        file = of.files.get(name)
        descriptor = os.open(path, NEW_FILE, 0o600)
        with open(descriptor, "wb") as new:
            new.write(content)
            new.flush()
            os.fchmod(descriptor, _EXECUTABLE if file is not None and file.executable else _READABLE)
            os.fsync(descriptor)
    for here, _, _ in os.walk(folder, topdown=False):
        sync_folder(here)
        os.chmod(here, _EXECUTABLE)
    os.chmod(folder, _FOLDER)  # a folder that is to be renamed must be writable on some systems


def _remove(folder: str) -> None:
    """Remove a bundle's folder, in which nothing is writable. Raises OSError."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        os.unlink(folder)
        return
    for here, _, _ in os.walk(folder):
        os.chmod(here, _FOLDER)
    shutil.rmtree(folder)


def verified_bundle(
    folder: str, read: Callable[[str], bytes], keys: Sequence[PublicKey]
) -> tuple[Verified, dict[str, bytes]]:
    """An unpacked bundle, verified as if it had just come. Raises OSError, ConfigError, Refused."""
    files = read_bundle(folder, read)
    verified = manifest.verify(files, keys)
    if verified.digest != os.path.basename(folder):
        raise Refused("its manifest is another one than the name of its folder says")
    return verified, files
