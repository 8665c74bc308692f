"""Reads configuration files, each of them once, and defines what one layer of the configuration contains.

A file that is named and cannot be read is an error (law 3).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ..dialects.dialect import Group
from ..model.errors import ConfigError, UserError, file_hint
from ..model.model_endpoint import ModelEndpoint
from ..model.pack_settings import NamedPacks
from ..model.policy_source import PolicySource
from ..model.settings import Settings
from ..model.similar_names import similar_file

StatSignature = tuple[int, int, int, int, int]
"""Differs when a file is changed or replaced: device, inode, size, and the times of the last changes."""


def stat_signature(state: os.stat_result) -> StatSignature:
    """It includes ctime, which only root can set back."""
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


class FileSnapshot(Struct, frozen=True):
    """A file as it was read."""

    data: bytes
    signature: StatSignature


FileReader = Callable[[str], FileSnapshot]
"""Reads a file. Raises OSError, ValueError, ConfigError."""


def read(path: str) -> FileSnapshot:
    """Read any file that this process may read."""
    with open(path, "rb") as file:
        signature = stat_signature(os.fstat(file.fileno()))  # before reading: a change during the reading shows later
        return FileSnapshot(file.read(), signature)


class FileContext(Struct, frozen=True):
    """Determines which file a path means, and how files are read."""

    environ: Mapping[str, str]
    cwd: str
    read: FileReader = read
    files_read: dict[str, FileSnapshot] = field(default_factory=dict)
    """All files that have been read, by path."""
    project: str = ""
    """The folder that `--project` names; empty: hook files determine theirs by their place."""
    managed: bool = False
    """The files are the administrator's: none of their commands may start from a folder of the user."""
    isolated: bool = False
    """The administrator's files, the user's own file and the trust store do not count: only what is named does."""
    pack_folders: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By the name of a pack: the folder of the version that is tried in place of the installed one, and that of its
    environment, which may be empty."""
    makes_lock: bool = False
    """The lock is about to be made: a file that `[lock]` names need not be there."""

    @property
    def home(self) -> str:
        """The home folder; empty if there is none."""
        home = self.environ.get("HOME") or os.path.expanduser("~")
        return home if os.path.isabs(home) else ""

    def expand(self, path: str) -> str:
        """The path with `~` at its start replaced by the home folder."""
        first, slash, rest = path.partition("/")
        return self.home + slash + rest if first == "~" and self.home else path

    def find(self, path: str, folder: str) -> str:
        """The absolute path of a path that starts from `folder`."""
        return os.path.normpath(os.path.join(folder, self.expand(path)))

    def text(self, path: str, named_by: str = "") -> str:
        """The text of the file. Raises ConfigError, which says where the file is named."""
        data = self._read_bytes(path, f"{named_by} names it" if named_by else "")
        try:
            return data.decode("utf-8-sig")  # with or without a byte order mark
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            how = f": iconv -f UTF-16 -t UTF-8 {path}" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
            raise ConfigError(f"{path}:{line}", "is not UTF-8", f"save it as UTF-8{how}") from None

    def _read_bytes(self, path: str, hint: str) -> bytes:
        try:
            self.files_read[path] = snapshot = self.read(path)
        except FileNotFoundError:
            hint = " ".join(filter(None, (similar_file(path), hint))) or "hookproxy init writes a hookproxy.toml"
            raise ConfigError(path, "there is no such file", hint) from None
        except IsADirectoryError:
            raise ConfigError(path, "is a folder, not a file", hint or "name the file in it") from None
        except OSError as error:
            raise ConfigError(path, f"cannot be read: {error.strerror}", hint or file_hint(path, error)) from None
        except ValueError:
            raise ConfigError(repr(path), "is not a path: it contains a NUL character", hint or "remove it") from None
        return snapshot.data


def state_folder(environ: Mapping[str, str], home: str) -> str:
    """The folder of what hookproxy keeps between runs; empty if there is no home folder."""
    folder = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):  # the XDG specification says that a relative path is ignored
        if not home:
            return ""
        folder = os.path.join(home, ".local", "state")
    return os.path.join(folder, "hookproxy")


def data_folder(environ: Mapping[str, str], home: str) -> str:
    """The folder of what the user has installed for hookproxy. Raises UserError if there is no home folder."""
    folder = environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(folder):  # as of XDG_STATE_HOME
        if not home:
            raise UserError("there is no folder for packs", "set HOME or XDG_DATA_HOME")
        folder = os.path.join(home, ".local", "share")
    return os.path.join(folder, "hookproxy")


def store_path(environ: Mapping[str, str], home: str) -> str:
    """The path of the trust store, which records what is trusted. Raises UserError if there is no home folder."""
    return _in_state_folder("trust.json", "the trust store", environ, home)


def logins_folder(environ: Mapping[str, str], home: str) -> str:
    """The folder of the logins at remote servers. Raises UserError if there is no home folder."""
    return _in_state_folder("logins", "logins", environ, home)


def _in_state_folder(name: str, subject: str, environ: Mapping[str, str], home: str) -> str:
    folder = state_folder(environ, home)
    if not folder:
        raise UserError(f"there is no folder for {subject}", "set HOME or XDG_STATE_HOME")
    return os.path.join(folder, name)


class Layer(Struct, frozen=True):
    """The configuration of one hookproxy.toml, or of the user's file and the command line together."""

    source: str
    """The path of the file; empty if there is none."""
    settings: Settings = field(default_factory=Settings)
    set_by: Mapping[str, str] = field(default_factory=dict)
    """The fields of `settings` that it sets, each with the place that sets it: `FILE: KEY`, or an option."""
    groups: tuple[Group, ...] = ()
    by_option: Mapping[str, str] = field(default_factory=dict)
    """The hook files that `--hooks` names, by path, each as `DIALECT=FILE`."""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """As in `HookList`."""
    managed_only: bool = False
    """Only managed hooks run."""
    require_trust: bool = False
    policy: PolicySource | None = None
    """Where a signed policy comes from; None: the file names none."""
    next: Layer | None = None
    """The layer of the file that `[monitor]` names, which is only watched."""
    packs: NamedPacks | None = None
    """The packs that count, and whose signatures; None: the file says nothing of packs."""
    pinned: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The folders of its packs, each with the SHA-256 of its files as they were verified: their hooks only run so."""
    model: ModelEndpoint | None = None
    """The model that hooks of the files ask which it names; None: it names none."""

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """Its groups, and those of the file that is only watched."""
        return self.groups if self.next is None else (*self.groups, *self.next.groups)


class Watched(Struct, frozen=True):
    """A policy that is only watched: what it would have decided is recorded, and nothing is changed by it."""

    settings: Settings
    groups: tuple[Group, ...] = ()
    files: tuple[str, ...] = ()
    """The files of `[monitor]`, each watched in place of the policy in force; none: parts of that with a mode."""
    notes: tuple[str, ...] = ()
    """What start-up says about these files."""

    @property
    def replaces(self) -> bool:
        """It stands in the place of the policy in force; else it would be added to it."""
        return bool(self.files)


class ManagedSummary(Struct, frozen=True):
    """What the administrator's files set. Nothing else can weaken it."""

    files: tuple[str, ...]
    set_by: Mapping[str, str]
    """The managed settings, each with the place that sets it, as in `Layer`."""
    managed_only: bool = False
