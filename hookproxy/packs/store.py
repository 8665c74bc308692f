"""The folder of the packs that are installed: for each of them, which version counts, its files, and its environments.

    packs/NAME/state.json             which version counts, and what must be remembered
    packs/NAME/removed.json           what must be remembered of a pack that was removed
    packs/NAME/VERSION-DIGEST/…       the files of a version; DIGEST is the beginning of the hash of its manifest
    packs/NAME/environments/KEY/…     what its hooks need: `environment`

- A version is written beside the others, onto the disk, and gets its name by one rename; `state.json` is replaced as a
  whole. So the version before counts, or the new one, and no half of either.
- Nothing in the folder of a version is writable, and whoever uses it reads all of it and verifies it again.
- Whoever changes something holds the lock of the pack's folder.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from ..archives.folder import files_of
from ..archives.listed import Refused
from ..dialects.shared.hook_file import suggestion
from ..files.folder_lock import lock_folder
from ..files.open_flags import NEW_FILE
from ..files.replace import replace_file, sync_folder
from ..model.errors import ConfigError, UserError, file_hint, not_written
from ..signing.keys import PublicKey
from .manifest import NAME, Memory, Pack, verify

STATE: Final = "state.json"
REMOVED: Final = "removed.json"
ENVIRONMENTS: Final = "environments"
_FORMAT: Final = 1
_NEW: Final = ".new-"  # of folders that are being written
_FOLDER: Final = 0o755  # while it is filled
_CLOSED: Final = 0o555
_READABLE: Final = 0o444
_SHOWN: Final = 16  # characters of a hash in the name of a folder; the whole of it is in the state
_LARGEST_STATE: Final = 256 * 1024  # bytes: it has a few hundred


_State = TypeVar("_State")


class Installed(Struct, frozen=True):
    """What is remembered of a pack."""

    format: Literal[1]
    version: str
    digest: str
    source: str
    """Where it came from: an absolute path."""
    highest: str
    """The highest version that ever was installed."""
    highest_digest: str
    signed_by: str = ""
    """The line of the key that has signed it; empty: nobody has."""
    environment: str = ""
    """The key of its environment; empty: it needs none."""
    previous: str = ""
    """The name of the folder of the version before, with which runs that began earlier go on; empty: there is none."""
    previous_environment: str = ""

    @property
    def memory(self) -> Memory:
        """What a successor is compared with."""
        return Memory(self.highest, self.highest_digest, self.signed_by)


class Store:
    """The folder of all packs. Raises UserError and ConfigError, as documented."""

    def __init__(self, folder: str) -> None:
        self.folder: Final = folder

    def place(self, name: str, *parts: str) -> str:
        """The path of something of a pack. Raises UserError for a name that no pack can have."""
        if not re.match(NAME, name):
            raise UserError(f"{name!r} is not the name of a pack", "a name has small letters, digits and -")
        return os.path.join(self.folder, name, *parts)

    def names(self) -> list[str]:
        """All packs that are installed."""
        with suppress(OSError):
            return sorted(name for name in os.listdir(self.folder) if re.match(NAME, name) and self.installed(name))
        return []

    def installed(self, name: str) -> Installed | None:
        """What is remembered of a pack; None: it is not installed. Raises ConfigError if it cannot be read."""
        hint = f"remove {self.place(name)}, and install the pack again"
        return _remembered(self.place(name, STATE), Installed, "is not the state of a pack", hint)

    def memory(self, name: str) -> Memory | None:
        """What a version is compared with that is installed now, also after the pack was removed; None: nothing is
        known of the pack. Raises ConfigError if it cannot be read."""
        if (state := self.installed(name)) is not None:
            return state.memory
        hint = f"hookproxy pack remove {name} --forget, and install the pack again"
        return _remembered(self.place(name, REMOVED), Memory, "does not say which version was installed", hint)

    def files(self, name: str, version: str, digest: str) -> str:
        """The folder with the files of a version."""
        return self.place(name, f"{version}-{digest[:_SHOWN]}")

    def pack(self, name: str, version: str, digest: str, keys: Sequence[PublicKey] | None) -> Pack:
        """The files of a version, verified. Raises ConfigError if they are not what was installed, or not signed."""
        folder = self.files(name, version, digest)
        again = f"install it again: hookproxy init --from PACK --install, after removing {self.place(name)}"
        try:
            files, _executable = files_of(folder, leave_out=False)
            pack = verify(files, keys)
        except Refused as problem:
            raise ConfigError(folder, f"the pack cannot be used: {problem}", again) from None
        if pack.digest != digest or pack.name != name:
            raise ConfigError(folder, "the pack cannot be used: it is not what was installed", again)
        return pack

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """While the block runs, no other process changes this pack. Raises UserError."""
        folder = self.place(name)
        try:
            lock = lock_folder(folder)
        except OSError as error:
            raise not_written(folder, error, "cannot be used") from None
        try:
            yield
        finally:
            os.close(lock)

    def write_files(self, pack: Pack) -> str:
        """Write the files of a version, unless they are there. Returns their folder. Raises UserError.

        It does not count before `make_current`. Only under the lock.
        """
        folder = self.files(pack.name, pack.version, pack.digest)
        try:
            if os.path.isdir(folder):
                with suppress(UserError):
                    self.pack(pack.name, pack.version, pack.digest, None)
                    return folder
                remove(folder)
            self._write(pack, folder)
        except OSError as error:
            raise not_written(error.filename or folder, error, first="nothing was installed") from None
        return folder

    def _write(self, pack: Pack, folder: str) -> None:
        new = os.path.join(os.path.dirname(folder), f"{_NEW}{os.urandom(8).hex()}")
        os.mkdir(new, _FOLDER)
        try:
            for name, content in pack.files.items():
                path = os.path.join(new, name)
                os.makedirs(os.path.dirname(path), _FOLDER, exist_ok=True)
                file = pack.manifest.files.get(name)
                with open(os.open(path, NEW_FILE, 0o600), "wb") as out:
                    out.write(content)
                    out.flush()
                    os.fchmod(out.fileno(), _CLOSED if file is not None and file.executable else _READABLE)
                    os.fsync(out.fileno())
            for here, _folders, _files in os.walk(new, topdown=False):
                os.chmod(here, _CLOSED)
                sync_folder(here)
            os.rename(new, folder)
        except BaseException:
            remove(new)
            raise
        sync_folder(os.path.dirname(folder))

    def make_current(self, pack: Pack, source: str, environment: str) -> None:
        """Let this version count from now on. What neither it nor the version before needs is removed.

        Only under the lock. Raises UserError.
        """
        before = self.installed(pack.name)
        current = os.path.basename(self.files(pack.name, pack.version, pack.digest))
        last = os.path.basename(self.files(pack.name, before.version, before.digest)) if before is not None else ""
        state = Installed(
            format=_FORMAT,
            version=pack.version,
            digest=pack.digest,
            source=source,
            highest=pack.version,
            highest_digest=pack.digest,
            signed_by=pack.signed_by.line if pack.signed_by is not None else "",
            environment=environment,
            previous=last,
            previous_environment=before.environment if before is not None else "",
        )
        path = self.place(pack.name, STATE)
        try:
            replace_file(path, msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
        except OSError as error:
            raise not_written(path, error, first="nothing has changed") from None
        with suppress(FileNotFoundError):
            os.unlink(self.place(pack.name, REMOVED))  # the state says at least as much
        self._keep(self.place(pack.name), {STATE, ENVIRONMENTS, current, last})
        self._keep(self.place(pack.name, ENVIRONMENTS), {state.environment, state.previous_environment})

    @staticmethod
    def _keep(folder: str, names: set[str]) -> None:
        with suppress(FileNotFoundError):
            for name in set(os.listdir(folder)) - names:
                remove(os.path.join(folder, name))

    def remove(self, name: str, *, forget: bool = False) -> None:
        """Remove all of a pack but what must be remembered of it: an older version, or one that somebody else has
        signed, does not get in by removing it first. `forget` removes that, too.

        Raises UserError if it is not installed, and with `forget` if nothing is known of it.
        """
        state = self.installed(name)
        if state is None and not (forget and os.path.lexists(self.place(name, REMOVED))):
            raise UserError(f"there is no pack {name}", self.hint(name))
        if forget or state is None:
            remove(self.place(name))
            return
        path = self.place(name, REMOVED)
        try:
            replace_file(path, msgspec.json.format(msgspec.json.encode(state.memory), indent=1) + b"\n")
            os.unlink(self.place(name, STATE))  # from here on it is not installed
        except OSError as error:
            raise not_written(path, error, first="nothing has changed") from None
        self._keep(self.place(name), {REMOVED})

    def hint(self, name: str) -> str:
        """What to do where there is no such pack."""
        known = self.names()
        near = suggestion(name, known) or (f"these are installed: {', '.join(known)}" if known else "")
        return near or "none is installed; hookproxy init --from PACK --install installs one"

    def forget(self, pack: Pack) -> None:
        """Remove the files of a version that does not count after all. Only under the lock."""
        state = self.installed(pack.name)
        if state is None or state.digest != pack.digest:
            remove(self.files(pack.name, pack.version, pack.digest))


def _remembered(path: str, form: type[_State], problem: str, hint: str) -> _State | None:
    """What this file remembers; None: there is none. Raises ConfigError, with this hint for one of another form."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_LARGEST_STATE), type=form)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    except (ValueError, RecursionError) as why:
        raise ConfigError(path, f"{problem}: {why}", hint) from None


def remove(folder: str) -> None:
    """Remove a folder in which nothing is writable, as far as it goes."""
    for here, folders, _files in os.walk(folder):
        for name in ("", *folders):
            path = os.path.join(here, name) if name else here
            with suppress(OSError):
                if not stat.S_ISLNK(os.lstat(path).st_mode):
                    os.chmod(path, _FOLDER)
    shutil.rmtree(folder, ignore_errors=True)
