"""Reads the table `[lock]` and the file that it names, or that lies beside hookproxy.toml.

A file that cannot be read, of another version, or edited, stops the start with its line (law 3). It is read once, at
the start and at a reload.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final

from ..lock import lock_file
from ..model.errors import ConfigError
from ..model.lock_settings import LockSettings
from ..trust.sources import FileContext, stat_signature
from .models import LockTable

_ACCESS_LIST: Final = "system.posix_acl_access"
_HINT: Final = "make it: hookproxy lock (of a gateway: with --config FILE), or set lock.create = true"


def lock_settings(table: LockTable | None, where: str, folder: str, file_context: FileContext) -> LockSettings | None:
    """What holds for the servers of a file in this folder; None: nothing is pinned. `where` is the table, for people.

    Raises ConfigError.
    """
    path = file_context.find(table.file or lock_file.NAME if table else lock_file.NAME, folder)
    there = os.path.lexists(path)
    if not there and table is None:
        return None
    table = table or LockTable()
    if not there and not table.create and not file_context.makes_lock:
        raise ConfigError(where, f"there is no file {path}", _HINT)
    data = b""
    if there or table.create:
        _check_folders(path)
    if there:
        checked = check_owner(path)
        file_context.text(path, where)
        read = file_context.files_read[path]
        if checked is not None and stat_signature(checked) != read.signature:
            raise ConfigError(path, "was replaced while it was read", "start again")
        data = read.data
        lock_file.parse(data, path)
    return LockSettings(path, data, table.on_change, table.create, table.hidden_text)


def check_owner(path: str) -> os.stat_result | None:
    """Raise ConfigError if another account than ours and root could have written what the file says."""
    try:
        state = os.stat(path)
    except OSError:
        return None  # whoever reads it says what is wrong
    if not stat.S_ISREG(state.st_mode):
        raise ConfigError(path, "is not a file", "name a file that `hookproxy lock` has written")
    if state.st_uid not in (0, os.geteuid()):
        raise ConfigError(path, "belongs to another account, which could change it", "copy it to a file of your own")
    if state.st_mode & stat.S_IWOTH:
        raise ConfigError(path, "can be changed by everybody", f"chmod o-w {path}")
    if state.st_mode & stat.S_IWGRP and not _is_of_nobody_else(path, state):
        raise ConfigError(path, "can be changed by other accounts of its group", f"chmod g-w {path}")
    return state


def _check_folders(path: str) -> None:
    """Raise ConfigError if another account than ours and root could put another file in the place of this one."""
    folder = os.path.dirname(os.path.realpath(path))
    try:
        state = os.stat(folder)
        above = {each: os.stat(each).st_mode for each in _folders_above(folder)}
    except OSError:
        return  # whoever reads the file says what is wrong
    if state.st_uid not in (0, os.geteuid()):
        raise ConfigError(path, f"is in {folder}, which belongs to another account", "move it to a folder of your own")
    for each, mode in {folder: state.st_mode, **above}.items():
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ConfigError(path, f"is in {each}, which can be changed by everybody", f"chmod o-w {each}")
    if state.st_mode & stat.S_IWGRP and not state.st_mode & stat.S_ISVTX and not _is_of_nobody_else(folder, state):
        raise ConfigError(path, f"is in {folder}, which other accounts of its group can change", f"chmod g-w {folder}")


def _folders_above(folder: str) -> Iterator[str]:
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def _is_of_nobody_else(path: str, state: os.stat_result) -> bool:
    """True if the file's group is its owner's own one, as most Linux systems have it for each user.

    An access list shows in the bits of the group, too.
    """
    import grp  # only for such files
    import pwd

    try:
        group, owner = grp.getgrgid(state.st_gid), pwd.getpwuid(state.st_uid)
    except KeyError:
        return False
    is_own = group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}
    return is_own and not (hasattr(os, "listxattr") and _ACCESS_LIST in os.listxattr(path))
