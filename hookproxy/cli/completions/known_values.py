"""Values that only this machine knows, for a shell that completes an option: names of servers, tools, sessions, calls.

They come from the end of the audit file and from the agents' configuration files. Anybody may have chosen a name, and
the shell puts it on the command line: only names that mean nothing to a shell are returned.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ...model.errors import UserError
from ..common import working_directory

_HARMLESS: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]{0,199}")
_TAIL: Final = 1024 * 1024  # bytes at the end of the audit: some thousand calls, read in 20 ms
_MOST: Final = 200  # values: more than anybody reads


def known_values(kind: str, beginning: str) -> list[str]:
    """The values of a kind that begin so, the newest first; none for an unknown kind, or where nothing can be read."""
    found: dict[str, None] = {}
    with contextlib.suppress(UserError, OSError):
        for value in _SOURCES.get(kind, lambda: iter(()))():
            if value.startswith(beginning) and _HARMLESS.fullmatch(value):
                found.setdefault(value)
            if len(found) == _MOST:
                break
    return list(found)


def _servers() -> Iterator[str]:
    yield from _of_calls("server")
    from ...wrapping import agent_files, known_agents

    files = known_agents.config_files(os.environ, os.path.expanduser("~"), working_directory())
    for file in agent_files.read(files):
        if file.configuration is not None:
            yield from (entry.name for entry in file.configuration.entries)


def _of_calls(member: str) -> Iterator[str]:
    """A member of the calls at the end of the audit file, the newest first."""
    from ...audit.os_user import audit_path
    from ...audit.records import CallRecord, Line, entry
    from ...config.load import load

    settings = load(None, [], None, os.environ, working_directory()).settings
    if not settings.audit_file or not os.path.isfile(path := audit_path(settings.audit_file)):
        return
    with open(path, "rb") as file:
        file.seek(max(os.path.getsize(path) - _TAIL, 0))
        lines = file.read(_TAIL).split(b"\n")
    for line in reversed(lines):  # the first one may have lost its beginning, and is then not a record
        record = entry(Line(0, line))
        if isinstance(record, CallRecord):
            yield str(getattr(record, member))


_SOURCES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "servers": _servers,
    "tools": lambda: _of_calls("tool"),
    "sessions": lambda: _of_calls("session"),
    "calls": lambda: _of_calls("call"),
    "agents": lambda: _of_calls("agent"),
}
KINDS: Final = tuple(_SOURCES)
