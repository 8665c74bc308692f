"""Opens the folders that a sandbox shows, and makes the one that a server has of its own.

Law: a folder is what it was when it was configured. What a server can write may be a link by now: each step on the way
is opened from the one before, and no link is followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from ..model.errors import UserError
from .landlock import of_file

_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_SHOWN_OF_USER: Final = 32  # characters of a user's name in the name of a folder: enough to recognise it
_DIGEST: Final = 16  # characters: 64 bits tell users apart whose names look alike in a folder's name
_EVERYBODY: Final = "everybody"


def open_unlinked(path: str) -> int:
    """A descriptor of what is at this real path. Raises UserError if it is missing, or leads through a link by now."""
    at = os.open("/", _STEP)
    try:
        for name in path.split(os.sep):
            if name:
                outer = at
                try:
                    at = os.open(name, _STEP, dir_fd=outer)
                finally:
                    os.close(outer)
                if stat.S_ISLNK(os.fstat(at).st_mode):
                    raise UserError(
                        f"{path} leads through a link by now, at {name}", "the gateway's administrator must look at it"
                    )
    except OSError as error:
        problem = f"{path}, which the server's sandbox shows, cannot be opened: {error.strerror}"
        raise UserError(problem, "the gateway's administrator must make it, or remove it from the sandbox") from None
    except BaseException:
        with suppress(OSError):
            os.close(at)
        raise
    return at


def open_all(paths: Iterable[str]) -> dict[str, int]:
    """A descriptor of each path. Raises UserError as `open_unlinked`."""
    opened: dict[str, int] = {}
    try:
        for path in paths:
            opened[path] = open_unlinked(path)
    except BaseException:
        close_all(opened.values())
        raise
    return opened


def open_rules(rights: Mapping[str, int]) -> list[tuple[int, int]]:
    """For Landlock: a descriptor of each path that is there, links followed, and its rights. Raises OSError."""
    rules: list[tuple[int, int]] = []
    for path, allowed in rights.items():
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            rules.append(rule(os.open(path, _STEP & ~os.O_NOFOLLOW), allowed))
    return rules


def rule(descriptor: int, allowed: int) -> tuple[int, int]:
    """The descriptor with as many of these rights as it can have."""
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    return descriptor, allowed if is_folder else of_file(allowed)


def close_all(descriptors: Iterable[int]) -> None:
    """Close each of them."""
    for descriptor in descriptors:
        os.close(descriptor)


def own_folder(state: str, server: str, user: str) -> str:
    """The folder that this server has for this user; empty: for everybody. It is made if it is missing.

    Nobody but us can enter what is above it. Raises OSError.
    """
    above = os.path.join(state, "servers")
    folder = os.path.join(above, server, _folder_name(user))
    os.makedirs(above, 0o700, exist_ok=True)
    os.makedirs(folder, 0o700, exist_ok=True)
    if os.stat(above).st_mode & 0o077:
        os.chmod(above, 0o700)
    return os.path.realpath(folder)


def _folder_name(user: str) -> str:
    if not user:
        return _EVERYBODY
    shown = re.sub(r"[^A-Za-z0-9_]+", "-", user)[:_SHOWN_OF_USER].strip("-")
    return f"{shown}-{hashlib.sha256(user.encode(errors='surrogateescape')).hexdigest()[:_DIGEST]}"
