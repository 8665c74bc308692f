"""What the sandbox of a recognised server shows besides the default, unless gateway.toml says what it shows.

The profiles are the keys `sandbox` of `policy/presets.toml`. A server is recognised by its command line alone, which
the administrator has written: what a server says of itself opens nothing.

Law: a profile opens less than a table could. What a table may not name is left out, and reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..policy.presets import PRESETS, SandboxProfile, preset_for
from ..sandbox.folders import is_within, within_any
from ..sandbox.table import Sandbox

_OWN_HOME: Final = "HOME/"
"""The start of a value in `env` that stands for the server's own folder."""


class Profiled(Struct, frozen=True):
    """A sandbox with what a profile opens."""

    sandbox: Sandbox
    name: str
    """The profile's name."""
    opened: str
    """What it opens, for people; empty: nothing is here that it could open."""
    left_out: tuple[str, ...] = ()
    """What it does not open, each with the reason."""


class Launch(Struct, frozen=True):
    """How a server is started."""

    command: Sequence[str]
    cwd: str
    home: str
    """The home folder of its account."""
    env: Mapping[str, str] = {}
    """The variables that its table sets."""


def profiled(launch: Launch, sandbox: Sandbox, why_not: Callable[[str, bool], str]) -> Profiled | None:
    """The sandbox of a server whose table says nothing about it; None: it has no profile.

    `why_not` says why a server may not have a path, by whether it writes it; empty: it may.
    """
    name, arguments = _recognised(launch.command)
    profile = PRESETS[name].sandbox if name else None
    if profile is None:
        return None
    wanted = dict.fromkeys(_folders(profile, arguments, launch), profile.folders == "write")
    wanted |= dict.fromkeys(_of_files(profile, arguments, launch), True)
    wanted |= {path: False for path in _read(profile, launch) if path not in wanted}
    left_out = tuple(f"{path}: it {why}" for path, writes in wanted.items() if (why := why_not(path, writes)))
    writes = tuple(path for path, may_write in wanted.items() if may_write and not why_not(path, True))
    reads = [path for path, may_write in wanted.items() if not may_write and not why_not(path, False)]
    read = tuple(path for path in reads if not within_any(path, writes))
    variables = dict(_variables(profile, launch, (*read, *writes)))
    result = replace(sandbox, read=read, write=writes, variables=variables)
    return Profiled(result, name, _shown(result), left_out)


def own_value(value: str, home: str) -> str:
    """A variable's value with the server's own folder in its place."""
    return os.path.join(home, value.removeprefix(_OWN_HOME)) if value.startswith(_OWN_HOME) else value


def _recognised(command: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The preset for a command line, and the server's own arguments: those after the word that names it."""
    name = preset_for(command, "")
    for end in range(1, len(command) + 1):
        if name and preset_for(command[:end], "") == name:
            return name, command[end:]
    return "", ()


def _folders(profile: SandboxProfile, arguments: Sequence[str], launch: Launch) -> Iterator[str]:
    """The folders that the server's arguments name."""
    if not profile.folders:
        return
    for argument in arguments:
        value = argument.partition("=")[2] if argument.startswith("-") else argument
        path = os.path.realpath(os.path.join(launch.cwd, _at_home(value, launch.home)))
        if value and os.path.isdir(path):
            yield path


def _of_files(profile: SandboxProfile, arguments: Sequence[str], launch: Launch) -> Iterator[str]:
    """The folders of the files that options and variables name: what is written beside a file belongs to it."""
    values = [launch.env[name] for name in profile.variables if name in launch.env]
    for position, argument in enumerate(arguments):
        option, has_value, value = argument.partition("=")
        if option in profile.options:
            values += [value] if has_value else arguments[position + 1 : position + 2]
    for value in values:
        yield os.path.dirname(os.path.realpath(os.path.join(launch.cwd, _at_home(value, launch.home))))


def _read(profile: SandboxProfile, launch: Launch) -> Iterator[str]:
    for entry in profile.read:
        if os.path.exists(path := os.path.realpath(_at_home(entry, launch.home))):
            yield path


def _variables(profile: SandboxProfile, launch: Launch, shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The variables that the table does not set; those with a folder only if it is shown."""
    for name, value in profile.env.items():
        path = os.path.realpath(_at_home(value, launch.home))
        if name not in launch.env and (not value.startswith("~/") or any(is_within(path, folder) for folder in shown)):
            yield name, path if value.startswith("~/") else value


def _at_home(entry: str, home: str) -> str:
    return home + entry[1:] if entry == "~" or entry.startswith("~/") else entry


def _shown(sandbox: Sandbox) -> str:
    parts = (
        f"it writes {', '.join(sandbox.write)}" if sandbox.write else "",
        f"it reads {', '.join(sandbox.read)}" if sandbox.read else "",
        f"it gets {', '.join(sandbox.variables)}" if sandbox.variables else "",
    )
    return "; ".join(filter(None, parts))
