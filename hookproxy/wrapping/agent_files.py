"""Reads the configurations of known agents that exist on this machine, and plans one change for all of them.

Every file is read and every change is planned before the first file is written. A file that cannot be used does not
hide the others: its error is kept with it, so that it is reported (law 3).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError, UserError
from . import edit_plan, files
from .edit_plan import Configuration, Plan
from .files import Snapshot
from .find_servers import NoServers
from .known_agents import Agent, ConfigFile
from .syntax_tree import printable_name


class AgentFile(Struct, frozen=True):
    """A configuration that exists: as it was read, or else the reason why it cannot be used."""

    config_file: ConfigFile
    snapshot: Snapshot | None = None
    configuration: Configuration | None = None
    error: UserError | None = None
    """NoServers: the file is in order, but has no servers."""

    @property
    def has_servers(self) -> bool:
        """True if it was read and has servers."""
        return self.configuration is not None and bool(self.configuration.entries)


class PlannedFile(Struct, frozen=True):
    """A file with the change that is planned for it."""

    config_file: ConfigFile
    snapshot: Snapshot
    plan: Plan


def read(config_files: Sequence[ConfigFile]) -> list[AgentFile]:
    """Read each file that exists. A file with several names, by symbolic links, is read once, under the first name."""
    agent_files: list[AgentFile] = []
    seen: set[str] = set()
    for config_file in config_files:
        real = os.path.realpath(config_file.path)
        if real in seen or not _exists(config_file.path):
            continue
        seen.add(real)
        agent_files.append(read_one(config_file))
    return agent_files


def read_one(config_file: ConfigFile) -> AgentFile:
    """Read one file. An error is kept, and not raised."""
    try:
        snapshot = files.read(config_file.path)
        return AgentFile(config_file, snapshot, edit_plan.read(config_file.path, snapshot.text))
    except UserError as error:
        return AgentFile(config_file, error=error)


def _exists(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)


def not_found(agent: Agent, config_files: Sequence[ConfigFile], found: Sequence[AgentFile], home: str) -> UserError:
    """The error for an agent without servers: it says where they were looked for."""
    if found:
        paths = ", ".join(short(file.config_file.path, home) for file in found)
        return UserError(
            f"{agent.title} has no servers: there are none in {paths}",
            "add a server first, as the agent's documentation describes, or name another FILE",
        )
    paths = ", ".join(short(file.path, home) for file in config_files)
    return UserError(
        f"{agent.title} has no configuration here: none of these files exists: {paths}",
        "if the agent keeps its servers elsewhere, name that FILE; a project's file is found in the working directory",
    )


def short(path: str, home: str) -> str:
    """The path, with `~` for the home folder."""
    return f"~{path.removeprefix(home)}" if home != "/" and path.startswith(f"{home}/") else path


def plan_all(
    found: Sequence[AgentFile], names: Sequence[str], plan: Callable[[str, Configuration, Sequence[str]], Plan]
) -> tuple[list[PlannedFile], list[UserError]]:
    """Plan the change of each file that has servers; `names` select servers, each in at least one of the files.

    Returns the plans, and the errors of the files that cannot be changed. Raises ConfigError for a name that no file
    has: then nothing is to be changed.
    """
    usable = [file for file in found if file.has_servers]
    if len(usable) > 1:
        _check_names(usable, names)
    errors = [file.error for file in found if file.error is not None and not isinstance(file.error, NoServers)]
    planned: list[PlannedFile] = []
    for file in usable:
        wanted = [name for name in names if len(usable) == 1 or name in _server_names(file)]
        if file.snapshot is None or file.configuration is None or (names and not wanted):
            continue
        try:
            planned.append(
                PlannedFile(file.config_file, file.snapshot, plan(file.config_file.path, file.configuration, wanted))
            )
        except UserError as error:
            errors.append(error)
    return planned, errors


def _check_names(usable: Sequence[AgentFile], names: Sequence[str]) -> None:
    known = {name for file in usable for name in _server_names(file)}
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"the servers: {', '.join(map(printable_name, sorted(known)))}"
            raise ConfigError("--server", f"no configuration has a server {name!r}", hint)


def _server_names(file: AgentFile) -> set[str]:
    return {entry.name for entry in file.configuration.entries} if file.configuration is not None else set()
