"""What is configured, layer by layer, and the files that say so: each is opened once, and judged by what was read.

What has been named and cannot be read is an error (law 3).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ..dialects.dialect import Group
from ..model.errors import ConfigError, UserError, look
from ..model.settings import Settings

StatSignature = tuple[int, int, int, int, int]
"""What tells a file that has been changed, or another in its place: device, number, size, times of change."""


def stat_signature(state: os.stat_result) -> StatSignature:
    """The time of the last change to the file's entry is in it: nobody but root can set that back."""
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


class FileSnapshot(Struct, frozen=True):
    """A file as it was read."""

    data: bytes
    signature: StatSignature


FileReader = Callable[[str], FileSnapshot]
"""Reads a file. Raises OSError, ValueError, ConfigError."""


def read(path: str) -> FileSnapshot:
    """Any file that we may read."""
    with open(path, "rb") as file:
        signature = stat_signature(os.fstat(file.fileno()))  # before it is read: what is written meanwhile shows later
        return FileSnapshot(file.read(), signature)


class FileContext(Struct, frozen=True):
    """What decides which file a path means, and how files are read."""

    environ: Mapping[str, str]
    cwd: str
    read: FileReader = read
    files_read: dict[str, FileSnapshot] = field(default_factory=dict)
    """All files that have been read, by path."""

    @property
    def home(self) -> str:
        """Empty where there is none."""
        home = self.environ.get("HOME") or os.path.expanduser("~")
        return home if os.path.isabs(home) else ""

    def expand(self, path: str) -> str:
        """`~` at the start as the home folder."""
        first, slash, rest = path.partition("/")
        return self.home + slash + rest if first == "~" and self.home else path

    def find(self, path: str, folder: str) -> str:
        """The absolute path of what `folder` calls `path`."""
        return os.path.normpath(os.path.join(folder, self.expand(path)))

    def text(self, path: str, named_by: str = "") -> str:
        """The file's text. Raises ConfigError, which says who named the file."""
        data = self._raw(path, f"{named_by} names it" if named_by else "")
        try:
            return data.decode("utf-8-sig")  # with or without the mark that some editors put first
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{path}:{line}", "is not UTF-8", "save it as UTF-8") from None

    def _raw(self, path: str, hint: str) -> bytes:
        try:
            self.files_read[path] = files_read = self.read(path)
        except FileNotFoundError:
            raise ConfigError(path, "there is no such file", hint or "hookproxy init writes a hookproxy.toml") from None
        except IsADirectoryError:
            raise ConfigError(path, "is a folder, not a file", hint or "name the file in it") from None
        except OSError as error:
            raise ConfigError(path, f"cannot be read: {error.strerror}", hint or look(path, error)) from None
        except ValueError:
            raise ConfigError(repr(path), "is not a path: a NUL character is in it", hint or "take it out") from None
        return files_read.data


def store_path(environ: Mapping[str, str], home: str) -> str:
    """Where it is remembered what is trusted. Raises UserError where there is no home folder."""
    folder = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):  # a relative one is to be ignored, says the XDG specification
        if not home:
            raise UserError("there is no place to remember what is trusted", "set HOME or XDG_STATE_HOME")
        folder = os.path.join(home, ".local", "state")
    return os.path.join(folder, "hookproxy", "trust.json")


class Layer(Struct, frozen=True):
    """What one file of ours, or the user's file and the command line together, configures."""

    source: str
    """The file; empty: there is none."""
    settings: Settings = field(default_factory=Settings)
    set_by: Mapping[str, str] = field(default_factory=dict)
    """The fields of `settings` that it sets, each with who says so: `FILE: KEY`, or an option."""
    groups: tuple[Group, ...] = ()
    by_option: Mapping[str, str] = field(default_factory=dict)
    """The hook files that `--hooks` names, by path, each as `DIALECT=FILE`."""
    notes: tuple[str, ...] = ()
    managed_only: bool = False
    """No hooks but managed ones run."""
    require_trust: bool = False


class ManagedSummary(Struct, frozen=True):
    """What the administrator's files say, which nothing else weakens."""

    files: tuple[str, ...]
    set_by: Mapping[str, str]
    """As in a layer: the settings that are managed, and where they are."""
    managed_only: bool = False
