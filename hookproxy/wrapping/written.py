"""Records what `wrap`, `setup` and `convert` write on this machine, so that `uninstall` finds all of it again.

The record is one small file in the state folder, for its owner alone. It has no text of other files, except what was
inserted into them, and entries that reach a gateway over HTTP now: all other wrapped entries keep themselves what
`unwrap` needs. Where it cannot be written, such an entry is not changed; other changes stand, and this is reported.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..files.create import missing_folders
from ..files.folder_lock import lock_folder
from ..files.replace import replace_file
from ..model.errors import ConfigError, UserError, file_hint, not_written
from .http_entry import Replaced

FILE = "written.json"
"""Its name in the state folder."""


class Written(Struct, frozen=True, omit_defaults=True):
    """All that was written, and is not undone yet. Paths are absolute."""

    wrapped: tuple[str, ...] = ()
    """Configurations of agents, with entries that start hookproxy."""
    created: Mapping[str, str] = {}
    """Files that are wholly ours: the SHA-256 of each one's content."""
    inserted: Mapping[str, tuple[str, ...]] = {}
    """The texts that were inserted into a file, in this order."""
    folders: tuple[str, ...] = ()
    """Folders that were made for these files, and for this record."""
    replaced: Mapping[str, Mapping[str, Replaced]] = {}
    """Entries of a configuration that reach a gateway over HTTP, by their key paths."""

    def with_wrapped(self, path: str) -> Written:
        """The record with one more wrapped file."""
        return replace(self, wrapped=tuple(dict.fromkeys((*self.wrapped, path))))

    def with_created(self, texts: Mapping[str, str], folders: Sequence[str]) -> Written:
        """The record with more files that are wholly ours."""
        created = {**self.created, **{path: digest(text) for path, text in texts.items()}}
        return replace(self, created=created, folders=tuple(dict.fromkeys((*self.folders, *folders))))

    def with_inserted(self, path: str, text: str) -> Written:
        """The record with one more text in a file."""
        return replace(self, inserted={**self.inserted, path: (*self.inserted.get(path, ()), text)})

    def with_replaced(self, path: str, entries: Mapping[str, Replaced]) -> Written:
        """The record with more entries of a file that are not as they were."""
        return replace(self, replaced={**self.replaced, path: {**self.replaced.get(path, {}), **entries}})

    def without_replaced(self, path: str, key_paths: Collection[str]) -> Written:
        """The record without these entries of a file, which are as they were."""
        left = {key: entry for key, entry in self.replaced.get(path, {}).items() if key not in key_paths}
        others = {name: entries for name, entries in self.replaced.items() if name != path}
        return replace(self, replaced={**others, path: left} if left else others)

    def without(self, paths: Sequence[str]) -> Written:
        """The record without these files, in which everything is undone, and without folders that are gone."""
        gone = frozenset(paths)
        return Written(
            tuple(path for path in self.wrapped if path not in gone),
            {path: value for path, value in self.created.items() if path not in gone},
            {path: texts for path, texts in self.inserted.items() if path not in gone},
            tuple(path for path in self.folders if os.path.isdir(path)),
            {path: entries for path, entries in self.replaced.items() if path not in gone},
        )


def digest(text: str) -> str:
    """The SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(folder: str) -> Written:
    """The record in this state folder; an empty one if there is none. Raises ConfigError."""
    path = os.path.join(folder, FILE)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Written)
    except FileNotFoundError:
        return Written()
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
        hint = "move it away: then only wrapped entries of known agents are found"
        raise ConfigError(path, f"is not a record of hookproxy: {error}", hint) from None
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None


def update(folder: str, change: Callable[[Written], Written]) -> None:
    """Change the record in this state folder, and remove it if nothing is left. Raises UserError."""
    if not folder:
        raise UserError("nothing can be recorded without a home folder", "set HOME or XDG_STATE_HOME")
    try:
        made = missing_folders(folder)
        lock = lock_folder(folder)
        try:
            _write(folder, change(read(folder)).with_created({}, made))
        finally:
            os.close(lock)
    except OSError as error:
        raise not_written(os.path.join(folder, FILE), error) from None


def _write(folder: str, written: Written) -> None:
    path = os.path.join(folder, FILE)
    if not (written.wrapped or written.created or written.inserted or written.replaced):
        if os.path.lexists(path):
            os.unlink(path)
        return
    replace_file(path, msgspec.json.format(msgspec.json.encode(written), indent=2) + b"\n")
