"""Which file `hookproxy lock` writes: the one that the runs of the entries read, if they read the same one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ..config import load
from ..config.load import find_own_file
from ..lock import lock_file
from ..model.errors import printable
from ..trust.sources import FileContext


class Reader(Struct, frozen=True):
    """What reads the lock of a server: the run of an entry, or a gateway."""

    file: str = ""
    """The lock that it reads once that exists; empty: none."""
    why: str = ""
    """Why it reads none."""


def of_run(config: str | None, environ: Mapping[str, str], cwd: str) -> Reader:
    """`hookproxy run` in this folder with this `--config`; None: it has none. Raises ConfigError.

    The administrator's `[lock]` counts instead of the user's.
    """
    context = FileContext(environ, cwd)
    if managed := _of_administrator(context):
        return Reader(managed)
    path = find_own_file(context) if config is None else context.find(config, cwd)
    return Reader(file_of(path, context)) if path else Reader(why="there is no hookproxy.toml")


def _of_administrator(context: FileContext) -> str:
    """The lock of the administrator's file; empty: there is no `[lock]`, or it cannot be read. Raises ConfigError."""
    path = os.path.join(load.MANAGED_FOLDER, "managed.toml")
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):  # a run says what is wrong with it
        return ""
    from ..config.parse import read_tables

    table = read_tables(path, text).get("lock")
    if not isinstance(table, dict):
        return ""
    named = table.get("file")
    return context.find(named if isinstance(named, str) else lock_file.NAME, os.path.dirname(path))


def file_of(path: str, context: FileContext) -> str:
    """The lock that the configuration at this path means, whether it exists or not. Raises ConfigError."""
    from ..config.parse import read_tables

    folder = os.path.dirname(path)
    table = read_tables(path, context.text(path)).get("lock") if os.path.exists(path) else None
    named = table.get("file") if isinstance(table, dict) else None
    return context.find(named if isinstance(named, str) else lock_file.NAME, folder)


def common(readers: Iterable[Reader]) -> str:
    """The file that all read which read one; empty: there is none, or there are several."""
    files = {reader.file for reader in readers if reader.file}
    return files.pop() if len(files) == 1 else ""


def not_read_by(path: str, readers: Mapping[str, Sequence[Reader]]) -> str:
    """A sentence on the servers, by name, whose runs do not read the lock at this path; empty: all do."""
    real = os.path.realpath(path)
    others = [
        f"{name} ({f'reads {reader.file}' if reader.file else reader.why})"
        for name, its in readers.items()
        for reader in dict.fromkeys(its)
        if not reader.file or os.path.realpath(reader.file) != real
    ]
    return printable(f"{path} is not read by the runs of: {', '.join(others)}") if others else ""
