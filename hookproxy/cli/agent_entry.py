"""The entry of an agent's own configuration that `--agent NAME --server NAME` means: what the agent would run.

`use_entry` puts the options that stand in the entry into those of the verb, and its variables into our environment:
what is read from there on is what `run` would read. It starts nothing, and changes no file.
"""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..model.errors import UserError
from ..wrapping import wrap_entry
from ..wrapping.agent_files import AgentFile
from ..wrapping.find_servers import Entry
from .common import tell

_EXCLUDED: Final = ("config", "hooks", "project", "name", "user", "groups")
"""Options that the entry has in their place."""

_ENVIRONMENT: Final = ("env", "environment", "envs")
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")


class AgentEntry(Struct, frozen=True):
    """What an agent would run for one of its servers."""

    file: str
    name: str
    """Of the server, as hooks see it."""
    command: tuple[str, ...]
    """The server's own command line; empty: it is at an address."""
    cwd: str
    """Where the agent starts it, as far as the entry says; else the working directory."""
    audit: str | None
    """The value of `--audit`."""


def use_entry(options: Namespace, cwd: str) -> AgentEntry | None:
    """Take from now on what the entry has that the options name; None: they name no agent. Raises UserError."""
    if options.agent is None:
        return None
    for name in _EXCLUDED:
        if getattr(options, name, None):
            raise UserError(f"--{name} and --agent exclude each other", f"the agent's entry has it: remove --{name}")
    file, entry = _entry_named(options.agent, options.server)
    wrapping = wrap_entry.parse_wrapping(entry.argv)
    assert wrapping is not None, "only wrapped entries are chosen"
    if wrapping.verb == wrap_entry.CONNECT:
        problem = f"{entry.key_path} of {file.config_file.path} reaches a gateway, which decides about its calls"
        raise UserError(
            problem, f"where the gateway's file is: --config gateway.toml --server {entry.name} --user NAME"
        )
    folder = entry.values.get("cwd")
    cwd = os.path.join(cwd, os.path.expanduser(_filled(folder, cwd))) if isinstance(folder, str) else cwd
    for variable, value in variables(entry).items():
        os.environ[variable] = _filled(value, cwd)
        if "${" in os.environ[variable]:
            tell(f"{variable} of {entry.key_path} is taken as it is written: only the agent knows what {value} means")
    from .run import build_parser, server_name

    given = build_parser().parse_args([_filled(word, cwd) for word in wrapping.options.words])
    command = wrap_entry.server_command(entry)
    options.config, options.hooks, options.project = given.config, given.hooks, given.project
    options.fail_closed = getattr(options, "fail_closed", False) or given.fail_closed
    options.strict = getattr(options, "strict", False) or given.strict
    options.server = None
    options.name = given.name or (server_name(command) if command else entry.name)
    tell(f"as {options.agent} runs it: {entry.key_path} of {file.config_file.path}")
    if entry.values.get("disabled") is True or entry.values.get("enabled") is False:
        tell(f"{entry.key_path} is disabled: {options.agent} does not start it now")
    return AgentEntry(file.config_file.path, options.name, command, cwd, given.audit)


def wrapped_elsewhere() -> str:
    """The options that name the first wrapped entry of an agent; empty: there is none that can be found."""
    from .wrap import find_files

    try:
        found = find_files(None)
    except UserError:
        return ""
    for file in found:
        for entry in _wrapped([file]):
            agent = file.config_file.agents[0].name if file.config_file.agents else file.config_file.path
            return f"--agent {agent} --server {entry[1].name}"
    return ""


def _entry_named(agent: str, server: str | None) -> tuple[AgentFile, Entry]:
    """The entry of this server in the files of an agent. Raises UserError, also if it could be one of several."""
    files = _files_of(agent)
    found = _of_server(agent, server, files) if server is not None else list(_wrapped(files))
    if not found:
        raise UserError(f"no server of {agent} runs with hookproxy", f"hookproxy wrap {agent}")
    names = sorted({entry.name for _, entry in found})
    if len(names) > 1:
        raise UserError(
            f"{agent} runs several servers with hookproxy", f"name one: --server {' or --server '.join(names)}"
        )
    if len(found) > 1:
        paths = " and ".join(file.config_file.path for file, _ in found)
        raise UserError(f"{agent} has a server {names[0]} in {paths}", "name the file: --agent FILE")
    return found[0]


def _files_of(agent: str) -> list[AgentFile]:
    from .wrap import find_files, near_agent

    try:
        files = find_files(agent)
    except UserError as error:
        raise UserError(error.message, near_agent(agent) or error.hint, error.status) from None
    for file in files:
        if file.error is not None and not file.has_servers:
            tell(f"{file.config_file.path} is not read: {file.error.message}")
    return files


def _of_server(agent: str, server: str, files: Sequence[AgentFile]) -> list[tuple[AgentFile, Entry]]:
    """The wrapped entries of a server. Raises UserError if there are none."""
    from ..dialects.shared.hook_file import suggestion

    entries = [(file, entry) for file in files if file.configuration for entry in file.configuration.entries]
    named = [(file, entry) for file, entry in entries if entry.name == server]
    if not named:
        names = sorted({entry.name for _, entry in entries})
        raise UserError(f"{agent} has no server {server}", suggestion(server, names) or f"it has {', '.join(names)}")
    found = list(_wrapped(files, server))
    if not found:
        where = f"{named[0][1].key_path} of {named[0][0].config_file.path}"
        raise UserError(f"{where} runs without hookproxy: nothing judges its calls", f"hookproxy wrap {agent} {server}")
    return found


def _wrapped(files: Sequence[AgentFile], server: str | None = None) -> Iterator[tuple[AgentFile, Entry]]:
    for file in files:
        for entry in file.configuration.entries if file.configuration else ():
            if wrap_entry.parse_wrapping(entry.argv) is not None and server in (None, entry.name):
                yield file, entry


def variables(entry: Entry) -> dict[str, str]:
    """The variables that an entry sets, with references filled in as most agents do."""
    values = entry.values
    tables = [table for key in _ENVIRONMENT if isinstance(table := values.get(key), dict)]
    return {
        str(name): expanded(str(value), os.environ)
        for table in tables
        for name, value in table.items()
        if isinstance(value, str | int | float)
    }


def expanded(text: str, environ: Mapping[str, str]) -> str:
    """The text with the values of variables, as agents write them; one that is not set stays as it is."""
    return _VARIABLE.sub(lambda match: environ.get(match[1], match[2] if match[2] is not None else match[0]), text)


def _filled(text: str, cwd: str) -> str:
    """The text with references to variables and to the folder of the project filled in."""
    text = text.replace("${workspaceFolder}", cwd).replace("${userHome}", os.path.expanduser("~"))
    return expanded(text, os.environ)
