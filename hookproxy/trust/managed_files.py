"""The administrator's files, read so that nobody but root has a say in them.

Every folder from / on, every link and the file itself must belong to root and be writable by nobody else. What is
checked is what is read: each step is opened from the one before, and the file's state asked of the open file.
Whatever is there and cannot be read, or is not root's, stops start-up: a guard that is missing guards nothing (law 3).
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..model.errors import ConfigError, look
from .scripts import files_of_hook, program_path
from .sources import FileContext, FileSnapshot, Layer, stat_signature

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where managed hooks find programs: with the user's own PATH the user would choose them."""

SCREEN: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables without which no prompter finds the person."""

_NO_HOME: Final = "/nonexistent"  # as Debian calls it; nobody but root could make it
_ROOT: Final = 0  # the user who owns what nobody else may change
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_MAX_LINKS: Final = 40  # on the way to a file, as the system itself follows
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # no pipe to wait for

_SERVER_NAME: Final = re.compile(r"mcp__[^*.\[(]")  # and not a pattern in its place

ReadLayer = Callable[[str, FileContext], Layer]
"""What one file of ours configures, as `config.layer`."""


def layers(folder: str, layer: ReadLayer, environ: Mapping[str, str]) -> Sequence[Layer]:
    """What `managed.toml` and `managed.d/*.toml`, by name, in the folder configure. Raises ConfigError."""
    if not _exists(folder):
        return ()
    clean = environment(environ, at_home=True)
    file_context = FileContext(clean, folder, read)
    return [_checked_layer(layer(path, file_context), clean) for path in _files(folder)]


def environment(environ: Mapping[str, str], allowed: Sequence[str] = (), *, at_home: bool = False) -> dict[str, str]:
    """What managed hooks inherit: nothing of the user's, for any variable may make a program do something else.

    So may what lies in the user's home folder: Python starts with usercustomize.py, git with .gitconfig. `at_home`:
    the folder is told, for files and for the program that finds the person's screen. `allowed` are names of variables
    that the administrator wants from the user.
    """
    import pwd

    try:
        account = pwd.getpwuid(os.getuid())
        name, home = account.pw_name, account.pw_dir
    except KeyError:  # an account without a name
        name, home = str(os.getuid()), "/"
    kept = {key: value for key, value in environ.items() if key in allowed}
    return {
        **kept,
        "PATH": PATH,
        "HOME": home if at_home else _NO_HOME,
        "USER": name,
        "LOGNAME": name,
        "LANG": "C.UTF-8",
    }


def _files(folder: str) -> Iterator[str]:
    first = os.path.join(folder, "managed.toml")
    if _exists(first):
        yield first
    more = os.path.join(folder, "managed.d")
    if _exists(more):
        names = sorted(name for name in _list_folder(more) if name.endswith(".toml") and not name.startswith("."))
        yield from (os.path.join(more, name) for name in names)


def _exists(path: str) -> bool:
    """Something is there, whatever it is. Raises ConfigError where its folder is not root's."""
    try:
        place = walk(path)
    except FileNotFoundError:
        if os.path.lexists(path):  # a file system that is not mounted must not look like nobody's will
            raise ConfigError(
                path, "leads to nothing", "what is managed is never left out: mend or remove it"
            ) from None
        return False
    except OSError as error:
        raise _unreadable(path, error) from None
    place.close()
    return True


def _list_folder(folder: str) -> list[str]:
    try:
        place = walk(folder)
        try:
            opened = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.folder)
        finally:
            place.close()
        try:
            _check(folder, os.fstat(opened))
            return os.listdir(opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: str, error: OSError) -> ConfigError:
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = f"whoever runs hookproxy must be able to read what is managed: chmod go+rX {path}, and its folders"
        return ConfigError(path, f"cannot be read: {error.strerror}", hint)
    return ConfigError(path, f"cannot be read: {error.strerror}", "what is managed is never left out")


# --- files that are root's ---


def read(path: str) -> FileSnapshot:
    """A file that is root's, as `sources.Read`; hook files that the administrator's files name are read so, too."""
    place = walk(path)
    try:
        opened = os.open(place.name, _FILE, dir_fd=place.folder)
    except PermissionError as error:
        raise _unreadable(path, error) from None
    finally:
        place.close()
    try:
        state = os.fstat(opened)
        _check(path, state)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(state.st_mode):
            raise ConfigError(path, "is no regular file", "the administrator's files are files")
        with open(opened, "rb", closefd=False) as file:
            return FileSnapshot(file.read(), stat_signature(state))
    finally:
        os.close(opened)


class OpenedPath(Struct):
    """Where a path ends, with every link followed: an open folder, and the name of what is in it."""

    folder: int
    name: str
    state: os.stat_result

    def close(self) -> None:
        """The folder is not needed any more."""
        os.close(self.folder)


def walk(path: str) -> OpenedPath:
    """Follow a path from / on; all that is on the way, and what is at its end, must be root's.

    Raises OSError, ConfigError that names the fix, and ValueError for what is no path. The caller closes the place.
    """
    here = os.open("/", _FOLDER)
    at, links = "/", 0
    todo = [part for part in reversed(path.split("/")) if part]
    try:
        _check("/", os.fstat(here))
        while True:
            name = todo.pop() if todo else "."
            state = os.stat(name, dir_fd=here, follow_symlinks=False)
            whole = os.path.join(at, name)
            if stat.S_ISLNK(state.st_mode):
                _check_owner(whole, state)
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(name, dir_fd=here)
                todo += [part for part in reversed(target.split("/")) if part]
                if target.startswith("/"):
                    here, at = _open_inner(here, "/"), "/"
                continue
            _check(whole, state)
            if not todo:
                return OpenedPath(here, name, state)
            here, at = _open_inner(here, name), whole
            _check(at, os.fstat(here))
    except BaseException:
        os.close(here)
        raise


def _open_inner(here: int, name: str) -> int:
    inner = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return inner


def _check(path: str, state: os.stat_result) -> None:
    """Raise ConfigError unless only root can change it."""
    _check_owner(path, state)
    if state.st_mode & _WRITABLE_BY_OTHERS:
        who = "others" if state.st_mode & stat.S_IWOTH else "its group"
        raise ConfigError(path, f"is writable by {who}, so that what is managed is not safe", f"chmod go-w {path}")


def _check_owner(path: str, state: os.stat_result) -> None:
    if state.st_uid != _ROOT:
        owner = f"user {state.st_uid}"
        hint = f"chown root: {path}" if not stat.S_ISLNK(state.st_mode) else f"chown -h root: {path}"
        raise ConfigError(path, f"belongs to {owner} and not to root, so that what is managed is not safe", hint)


# --- what managed hooks start ---


def _checked_layer(layer: Layer, environ: Mapping[str, str]) -> Layer:
    """The layer, if all programs and scripts that its hooks are certain to start are root's. Raises ConfigError."""
    notes: list[str] = []
    for spec in (spec for group in layer.groups for spec in group.hooks):
        files = files_of_hook(spec, environ)
        for program in files.programs:
            _check_program(program, spec.source)
        notes += [
            f"{spec.source} starts {one}: nobody looks whether that is root's" for one in files.unresolved_programs
        ]
    if layer.settings.prompter:
        program = program_path(layer.settings.prompter[0], os.path.dirname(layer.source), environ)
        _check_program(program, f"{layer.source}: on_ask_fallback")
    return replace(layer, notes=(*layer.notes, *notes, *_server_name_notes(layer)))


def _check_program(path: str, source: str) -> None:
    try:
        walk(path).close()
    except (FileNotFoundError, NotADirectoryError):  # nobody but root can put it there: all that is there is root's
        return
    except ConfigError as problem:
        raise ConfigError(source, f"starts {path}, and {problem.message}", problem.hint) from None
    except OSError as error:
        raise ConfigError(
            source, f"starts {path}, which cannot be looked at: {error.strerror}", look(path, error)
        ) from None


def _server_name_notes(layer: Layer) -> Iterator[str]:
    """A sentence for each rule, limit and matcher that hangs on the server's name, which whoever starts it chooses."""
    settings = layer.settings
    named = [
        (f"{layer.source}: permissions.{kind}[{number}]", rule)
        for kind in ("deny", "ask", "allow")
        for number, rule in enumerate(getattr(settings, kind))
    ]
    named += [(f"{layer.source}: {limit.by}", limit.tool) for limit in settings.limits]
    named += [(f"{spec.source}: its matcher", spec.matcher) for group in layer.groups for spec in group.hooks]
    for place, text in named:
        if _SERVER_NAME.search(text):
            yield f"{place} {text!r} hangs on the server's name, which --name changes: write the tool's own name"
