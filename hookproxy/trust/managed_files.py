"""Reads the administrator's files, and makes sure that nobody but root can change them.

Every folder from / on, every link and the file itself must belong to root, and nobody else may be able to write them.
What is checked is what is read: each step is opened from the one before, and the owner is read from the open file.
A file that exists and cannot be read, or does not belong to root, stops start-up (law 3).
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..files.open_flags import READ_FILE
from ..model.errors import ConfigError, file_hint
from ..processes.platforms import SYSTEM_PATH, UTF_8
from .scripts import files_of_hook, program_path
from .sources import FileContext, FileSnapshot, Layer, stat_signature

PATH: Final = SYSTEM_PATH
"""Where managed hooks find programs. With the user's own PATH, the user could replace them."""

DISPLAY_VARIABLES: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that a prompter needs to show a dialog to the person."""

_NO_HOME: Final = "/nonexistent"  # Debian's name for it; only root could create it
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_MAX_LINKS: Final = 40  # on the way to a file, as in the kernel
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_SERVER_NAME: Final = re.compile(r"mcp__[^*.\[(]")  # not a pattern that matches any server

ReadLayer = Callable[[str, FileContext], Layer]
"""Reads one hookproxy.toml, like `config.load.read_layer`."""


def layers(folder: str, read_layer: ReadLayer, environ: Mapping[str, str]) -> Sequence[Layer]:
    """Read `managed.toml` and then `managed.d/*.toml`, sorted by name, in the folder. Raises ConfigError."""
    if not _exists(folder):
        return ()
    clean = environment(environ, real_home=True)
    file_context = FileContext(clean, folder, read_root_owned, managed=True)
    checked = (check_programs(read_layer(path, file_context), clean) for path in _files(folder))
    return [replace(layer, notes=(*layer.notes, *_server_name_notes(layer))) for layer in checked]


def environment(environ: Mapping[str, str], allowed: Sequence[str] = (), *, real_home: bool = False) -> dict[str, str]:
    """The environment of managed hooks. It has nothing from the user: a variable can change what a program does.

    So can files in the user's home folder: Python runs usercustomize.py, git reads .gitconfig. HOME is therefore a
    folder that does not exist, unless `real_home` is set, for file names and for the prompter. `allowed` names
    variables that the administrator takes from the user.
    """
    import pwd

    try:
        account = pwd.getpwuid(os.getuid())
        name, home = account.pw_name, account.pw_dir
    except KeyError:  # the account has no name
        name, home = str(os.getuid()), "/"
    kept = {key: value for key, value in environ.items() if key in allowed}
    return {
        **kept,
        "PATH": PATH,
        "HOME": home if real_home else _NO_HOME,
        "USER": name,
        "LOGNAME": name,
        **UTF_8,
    }


def _files(folder: str) -> Iterator[str]:
    """The paths of the administrator's files, in their order."""
    first = os.path.join(folder, "managed.toml")
    if _exists(first):
        yield first
    more = os.path.join(folder, "managed.d")
    if _exists(more):
        names = sorted(name for name in _list_folder(more) if name.endswith(".toml") and not name.startswith("."))
        yield from (os.path.join(more, name) for name in names)


def _exists(path: str) -> bool:
    """Whether the path exists, as a file of any kind. Raises ConfigError if its folder does not belong to root."""
    try:
        with resolved(path):
            return True
    except FileNotFoundError:
        if os.path.lexists(path):  # a file system that is not mounted must not look like an absent file
            raise ConfigError(
                path, "is a broken link", "repair or remove it: managed files are never skipped"
            ) from None
        return False
    except OSError as error:
        raise _unreadable(path, error) from None


def _list_folder(folder: str) -> list[str]:
    try:
        with resolved(folder) as (parent, name):
            opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            ROOT_ONLY.check(folder, os.fstat(opened))
            return os.listdir(opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: str, error: OSError) -> ConfigError:
    """The error for a file of the administrator's that is there."""
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = f"all users must be able to read managed files: chmod go+rX {path}, and the folders above it"
        return ConfigError(path, f"cannot be read: {error.strerror}", hint)
    return ConfigError(path, f"cannot be read: {error.strerror}", "repair it: managed files are never skipped")


# --- files that belong to root ---


class Ownership(Struct, frozen=True):
    """Who may own a file, the links to it and the folders above it; nobody else may be able to write them."""

    owners: frozenset[int]
    owner: str
    """Who that is, for people, and for `chown`."""
    files: str
    """What the files are, for people."""
    sticky_folders: bool = False
    """Everybody may write folders in which only its owner can remove or replace a file, such as /tmp."""
    secret: bool = False
    """Files may be readable for their owner and their group only."""

    def check(self, path: str, state: os.stat_result) -> None:
        """Raise ConfigError unless only the owner can change the file."""
        self.check_owner(path, state)
        if self.sticky_folders and stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX:
            return
        if state.st_mode & _WRITABLE_BY_OTHERS:
            who = "others" if state.st_mode & stat.S_IWOTH else "its group"
            raise ConfigError(path, f"is writable by {who}, so {self.files} are not safe", f"chmod go-w {path}")
        if self.secret and stat.S_ISREG(state.st_mode) and state.st_mode & stat.S_IRWXO:
            raise ConfigError(path, "is readable by others, but it is a secret", f"chmod o-rwx {path}")

    def check_owner(self, path: str, state: os.stat_result) -> None:
        """Raise ConfigError if somebody else owns the file."""
        if state.st_uid not in self.owners:
            owner = f"user {state.st_uid}"
            hint = f"chown {'-h ' if stat.S_ISLNK(state.st_mode) else ''}{self.owner}: {path}"
            raise ConfigError(path, f"belongs to {owner} and not to {self.owner}, so {self.files} are not safe", hint)


ROOT_ONLY: Final = Ownership(frozenset({0}), "root", "managed settings")
"""Of the administrator's files."""


def read_root_owned(path: str) -> FileSnapshot:
    """Read a file that must belong to root. A `sources.FileReader`, for managed files and the hook files they name."""
    return read_owned(path, ROOT_ONLY)


def read_owned(path: str, ownership: Ownership) -> FileSnapshot:
    """Read a file that nobody else can change. Raises OSError, ConfigError."""
    with resolved(path, ownership) as (folder, name):
        try:
            opened = os.open(name, READ_FILE, dir_fd=folder)
        except PermissionError as error:
            if ownership is ROOT_ONLY:
                raise _unreadable(path, error) from None
            hint = f"{ownership.owner} must be able to read it: chgrp {ownership.owner} {path}; chmod 640 {path}"
            raise ConfigError(path, f"cannot be read: {error.strerror}", hint) from None
    try:
        state = os.fstat(opened)
        ownership.check(path, state)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(state.st_mode):
            raise ConfigError(path, "is not a regular file", "replace it with a regular file")
        with open(opened, "rb", closefd=False) as file:
            return FileSnapshot(file.read(), stat_signature(state))
    finally:
        os.close(opened)


@contextmanager
def resolved(path: str, ownership: Ownership = ROOT_ONLY) -> Iterator[tuple[int, str]]:
    """The end of a path with every link followed: a folder, open until the block ends, and the name of the file in it.

    Everything on the way from / on, and the file itself, must belong to the owner. Raises OSError, ConfigError that
    names the fix, and ValueError for an invalid path.
    """
    folder_fd = os.open("/", _FOLDER)
    folder_path, links = "/", 0
    parts = [part for part in reversed(path.split("/")) if part]
    try:
        ownership.check("/", os.fstat(folder_fd))
        while True:
            name = parts.pop() if parts else "."
            state = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            full_path = os.path.join(folder_path, name)
            if stat.S_ISLNK(state.st_mode):
                ownership.check_owner(full_path, state)
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(name, dir_fd=folder_fd)
                parts += [part for part in reversed(target.split("/")) if part]
                if target.startswith("/"):
                    folder_fd, folder_path = _enter_folder(folder_fd, "/"), "/"
                continue
            ownership.check(full_path, state)
            if not parts:
                break
            folder_fd, folder_path = _enter_folder(folder_fd, name), full_path
            ownership.check(folder_path, os.fstat(folder_fd))
        yield folder_fd, name
    finally:
        os.close(folder_fd)


def _enter_folder(folder_fd: int, name: str) -> int:
    """Open a folder inside an open one, and close that one."""
    inner = os.open(name, _FOLDER, dir_fd=folder_fd)
    os.close(folder_fd)
    return inner


# --- programs of managed hooks ---


def check_programs(layer: Layer, environ: Mapping[str, str], ownership: Ownership = ROOT_ONLY) -> Layer:
    """The layer with notes. Raises ConfigError if others can change a program or script that its hooks start."""
    notes: list[str] = []
    for spec in (spec for group in layer.groups for spec in group.programs):
        files = files_of_hook(spec, environ)
        for program in files.programs:
            _check_program(program, spec.source, ownership)
        notes += [
            f"{spec.source} starts {program}: hookproxy cannot check that it belongs to {ownership.owner}"
            for program in files.unresolved_programs
        ]
    if layer.settings.prompter:
        program = program_path(layer.settings.prompter[0], os.path.dirname(layer.source), environ)
        _check_program(program, f"{layer.source}: on_ask_fallback", ownership)
    following = None if layer.next is None else check_programs(layer.next, environ, ownership)
    return replace(layer, notes=(*layer.notes, *notes), next=following)


def _check_program(path: str, source: str, ownership: Ownership) -> None:
    try:
        # Only the owner can create a missing one: the folder is the owner's.
        with suppress(FileNotFoundError, NotADirectoryError), resolved(path, ownership):
            pass
        if ownership.sticky_folders:  # where everybody can put a missing program, or a module beside a script
            _check_folder_of(path, replace(ownership, sticky_folders=False))
    except ConfigError as problem:
        raise ConfigError(source, f"starts {path}, and {problem.message}", problem.hint) from None
    except OSError as error:
        raise ConfigError(
            source, f"starts {path}, which cannot be checked: {error.strerror}", file_hint(path, error)
        ) from None


def _check_folder_of(path: str, ownership: Ownership) -> None:
    """Check the folder that the path is in, or would be in. Raises OSError, ConfigError."""
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    ownership.check(folder, os.stat(folder))


def _server_name_notes(layer: Layer) -> Iterator[str]:
    """A note for each rule, limit and matcher with the server's name, which the user who starts the server chooses."""
    settings = layer.settings
    entries = [
        (f"{layer.source}: permissions.{kind}[{number}]", rule)
        for kind in ("deny", "ask", "allow")
        for number, rule in enumerate(getattr(settings, kind))
    ]
    entries += [(f"{layer.source}: {limit.by}", limit.tool) for limit in settings.limits]
    entries += [(f"{spec.source}: its matcher", spec.matcher) for group in layer.groups for spec in group.hooks]
    for place, text in entries:
        if _SERVER_NAME.search(text):
            yield f"{place} {text!r} depends on the server's name, which --name can change: use the tool's own name"
