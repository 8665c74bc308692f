"""Which servers `hookproxy lock` asks, and how each of them is started or reached.

An entry of an agent is taken as hookproxy would run it: of a wrapped one, the server behind it. What stands in the
files of a project is started here because a person has asked for it: each command line is shown before.
"""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ..checks.server_description import Described, describe_channel, describe_process
from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError, UserError, printable
from ..model.settings import Settings
from ..secrets.mask import Masking
from ..trust.sources import FileContext
from ..wrapping import agent_files, known_agents
from ..wrapping.agent_files import AgentFile
from ..wrapping.find_servers import Entry, Kind, NoServers
from ..wrapping.known_agents import AGENTS, AGENTS_BY_NAME
from ..wrapping.remote_entry import NotTranslatable, of_entry
from ..wrapping.wrap_entry import CONNECT, Wrapping, parse_wrapping
from . import run_url
from .agent_entry import expanded, variables
from .lock_place import Reader, common, file_of, of_run
from .run import server_name

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel

LINE: Final = "the command line"
_GOODBYE_SECONDS: Final = 2.0  # until a server has closed a session that is over


class Target(Struct, frozen=True):
    """A server to be asked."""

    name: str
    place: str
    """Where it comes from, for people."""
    what: str
    """Its command line or address. It may have secrets: people see it as `shown`."""
    ask: Callable[[float], Awaitable[Described]]
    """Ask it, within so many seconds. Raises UserError."""
    readers: tuple[Reader, ...] = (Reader(why="it is not wrapped"),)
    """What reads the lock of it: several, if it is in the files of several agents."""

    @property
    def shown(self) -> str:
        """Its command line or address without what looks like a secret: logs keep what is shown."""
        return Masking().text(self.what)


class Targets(Struct, frozen=True):
    """The servers to be asked, and a sentence on each that is not."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()
    file: str = ""
    """The lock that those read whose servers they are; empty: none, or several."""


def of_line(options: Namespace, command: Sequence[str], cwd: str) -> Targets:
    """The server of the command line. Raises UserError."""
    if options.url is None:
        name = options.name or server_name(command)
        return Targets((_process(name, LINE, tuple(command), os.environ, cwd),))
    run_url.check(options)
    return Targets((_remote(options.name, LINE, options, os.environ),))


def of_gateway(config: GatewayConfig, options: Namespace) -> Targets:
    """The servers of a gateway's file. Raises UserError."""
    servers = [config.servers[name] for name in selected(config.servers, options.server, config.path)]
    file = file_of(config.path, FileContext(os.environ, os.path.dirname(config.path)))
    notes = [
        f"{server.name} is not asked: it runs as the user, who starts it"
        for server in servers
        if server.table.from_caller
    ]
    asked = tuple(_of_gateway(config, server, file) for server in servers if not server.table.from_caller)
    return Targets(asked, tuple(notes), file)


def of_agents(agent: str | None, names: Sequence[str], cwd: str) -> Targets:
    """The servers in the files of an agent, or of the project. Raises UserError."""
    home = os.path.expanduser("~")
    agents = AGENTS if agent is None else [_agent(agent)]
    files = [
        file
        for file in known_agents.config_files(os.environ, home, cwd, agents)
        if agent is not None or file.in_project
    ]
    found = agent_files.read(files)
    for file in found:
        if file.error is not None and not isinstance(file.error, NoServers):
            raise file.error
    if not any(file.has_servers for file in found):
        if agent is not None:
            raise agent_files.not_found(AGENTS_BY_NAME[agent], files, found, home)
        hint = f"name an agent, --agent {AGENTS[0].name}, or a server: hookproxy lock --name NAME -- COMMAND"
        raise UserError(f"no agent's file with servers is in {cwd}", hint)
    return _of_files(found, names, cwd)


def _agent(name: str) -> known_agents.Agent:
    if name not in AGENTS_BY_NAME:
        hint = suggestion(name, AGENTS_BY_NAME) or f"the agents: {', '.join(AGENTS_BY_NAME)}"
        raise UserError(f"--agent: there is no agent {name!r}", hint)
    return AGENTS_BY_NAME[name]


def selected(known: Mapping[str, object], names: Sequence[str], place: str) -> list[str]:
    """The names that are selected; none: all. Raises ConfigError for one that is not known."""
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"the servers: {', '.join(map(printable, known))}"
            raise ConfigError("--server", f"there is no server {name!r} in {place}", hint)
    return list(dict.fromkeys(names)) or list(known)


def _of_files(found: Sequence[AgentFile], names: Sequence[str], cwd: str) -> Targets:
    by_name: dict[str, tuple[Target | str, str]] = {}
    for file in found:
        if file.configuration is None:
            continue
        folder = _folder(file, cwd)
        for entry in file.configuration.entries:
            path = file.config_file.path
            target = _with_reader(entry, _of_entry(entry, path, file.configuration.syntax.name, folder), folder)
            name = target.name if isinstance(target, Target) else entry.name
            what = target.what if isinstance(target, Target) else target
            if (other := by_name.get(name)) is None or isinstance(other[0], str):
                by_name[name] = target, what
            elif isinstance(target, Target) and other[1] == what:
                by_name[name] = replace(other[0], readers=(*other[0].readers, *target.readers)), what
            elif isinstance(target, Target):
                places = f"{other[0].place} and {path}"
                raise UserError(
                    f"{printable(name)} is another server in each of {places}",
                    "name the agent: --agent NAME; or rename one of them",
                )
    chosen = [by_name[name][0] for name in selected(by_name, names, "the agents' files")]
    return Targets(
        tuple(target for target in chosen if isinstance(target, Target)),
        tuple(note for note in chosen if isinstance(note, str)),
        common(reader for target, _ in by_name.values() if isinstance(target, Target) for reader in target.readers),
    )


def _with_reader(entry: Entry, target: Target | str, folder: str) -> Target | str:
    """The target with what reads the lock of it: the run of its entry, if that is wrapped. Raises ConfigError."""
    wrapping = parse_wrapping(entry.argv)
    if isinstance(target, str) or wrapping is None:
        return target
    config = None if wrapping.options.config is None else expanded(wrapping.options.config, os.environ)
    reader = of_run(config, {**os.environ, **variables(entry)}, _working_folder(entry, folder))
    return replace(target, readers=(reader,))


def _working_folder(entry: Entry, folder: str) -> str:
    cwd = entry.values.get("cwd")
    return os.path.join(folder, cwd) if isinstance(cwd, str) else folder


def _folder(file: AgentFile, cwd: str) -> str:
    return cwd if file.config_file.in_project else os.path.expanduser("~")


def _of_entry(entry: Entry, path: str, syntax: str, folder: str) -> Target | str:
    """How the server of an entry is reached, or why it is not."""
    where = f"{path}: {entry.key_path}"
    if entry.disabled:
        return f"{where} is not asked: it is disabled"
    environ = {**os.environ, **variables(entry)}
    wrapping = parse_wrapping(entry.argv)
    if wrapping is not None and wrapping.verb == CONNECT:
        return f"{where} is not asked: the gateway has it; hookproxy lock --config gateway.toml pins its servers"
    given = _value(wrapping.options.name) if wrapping is not None else ""
    if wrapping is not None and wrapping.is_remote:
        return _remote_of(given, where, wrapping.options.others, environ)
    if entry.kind is Kind.STARTED:
        command = tuple(expanded(word, os.environ) for word in entry.argv[wrapping.count if wrapping else 0 :])
        name = given or (server_name(command) if wrapping else entry.name)
        place = _working_folder(entry, folder)
        if words := _sandbox_words(entry, wrapping):
            return _confined(name, where, words, command, environ, place)
        return _process(name, where, command, environ, place)
    if entry.kind is Kind.OTHER:
        return f"{where} is not asked: it has neither a command nor an address"
    try:
        remote = of_entry(entry, syntax)
    except NotTranslatable as error:
        return f"{where} is not asked: it {error}"
    values = {name: expanded(value, os.environ) for name, value in remote.variables.items()}
    return _remote_of(entry.name, where, remote.options, {**environ, **values})


def _value(option: tuple[str, ...]) -> str:
    """The value of an option in one word or in two; empty: there is none."""
    return option[-1].partition("=")[2] if len(option) == 1 else option[-1] if option else ""


def _remote_of(name: str, place: str, words: Sequence[str], environ: Mapping[str, str]) -> Target | str:
    from .run import build_parser

    try:
        options = build_parser().parse_args(list(words))
        address = run_url.address_of(options, environ)
        return _remote(name or run_url.server_name(address), place, options, environ)
    except UserError as error:
        return f"{place} is not asked: {error.message}"


def _process(name: str, place: str, command: tuple[str, ...], environ: Mapping[str, str], cwd: str) -> Target:
    return Target(name, place, " ".join(command), partial(describe_process, command, environ, cwd))


def _sandbox_words(entry: Entry, wrapping: Wrapping | None) -> list[str]:
    """The options of `run` in a wrapped entry, if one of them is of a sandbox, as `run` itself decides it."""
    if wrapping is None:
        return []
    words = [expanded(word, os.environ) for word in entry.argv[len(wrapping.launcher) + 1 : wrapping.count]]
    words = words[:-1] if words[-1:] == ["--"] else words
    return words if any(word.startswith("--sandbox") for word in words) else []


def _confined(
    name: str, place: str, words: Sequence[str], command: tuple[str, ...], environ: Mapping[str, str], cwd: str
) -> Target:
    """A server that is started in the sandbox of these options, or not at all."""

    async def ask(seconds: float) -> Described:
        from . import run_sandbox
        from .options import sandbox_words
        from .run import build_parser

        options = build_parser().parse_args(list(words))
        sandbox_words(options)  # it may refuse them
        starter = partial(run_sandbox.start_asked, options, list(command), environ, cwd)
        return await describe_process(command, environ, cwd, seconds, starter)

    return Target(name, place, f"in its sandbox: {' '.join(command)} ({' '.join(words)})", ask)


def _remote(name: str, place: str, options: Namespace, environ: Mapping[str, str]) -> Target:
    def open_it(report: Callable[[str], None]) -> tuple[Channel, ServerEnd]:
        return run_url.open_at(options, Settings(audit_enabled=False), environ, report)

    return Target(name, place, options.url, partial(_ask, open_it))


def _of_gateway(config: GatewayConfig, server: GatewayServer, file: str) -> Target:
    def open_it(report: Callable[[str], None]) -> tuple[Channel, ServerEnd]:
        from ..gateway.servers import open_alone

        return open_alone(server, report)

    what = server.table.url or " ".join(server.command)
    lock = server.loaded.settings.lock
    reader = Reader(file if lock is None else lock.file)
    return Target(server.name, f"{config.path}: servers.{server.name}", what, partial(_ask, open_it), (reader,))


async def _ask(open_it: Callable[[Callable[[str], None]], tuple[Channel, ServerEnd]], seconds: float) -> Described:
    reports: list[str] = []

    def report(text: str) -> None:
        reports[:] = [*reports, text][-3:]

    channel, end = open_it(report)

    def hint() -> str:
        return f"the last that was said of it: {'; '.join(reports)}" if reports else "hookproxy check shows more of it"

    return await describe_channel(channel, partial(_end, channel, end), hint, seconds)


async def _end(channel: Channel, end: ServerEnd) -> None:
    """End a server: politely first, then at once."""
    ended = anyio.Event()
    async with anyio.create_task_group() as tasks:
        end.watch(tasks, lambda _status: ended.set())
        channel.end_output()
        end.signal(signal.SIGTERM)
        with anyio.move_on_after(_GOODBYE_SECONDS):
            await ended.wait()
        tasks.cancel_scope.cancel()
    await end.kill()
