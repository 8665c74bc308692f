"""Starts the process of a server: in its sandbox, or, where the administrator says so, without one.

Law: a server that has a sandbox is never started without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..config.server_sandbox import binds_cwd
from ..model.errors import UserError
from ..processes import service
from ..processes.confined import Confinement, Starter, landlock_abi, start_once
from ..sandbox.available import Landlock, find_sandbox
from ..sandbox.bubblewrap import TEMPORARY, Tools, arguments
from ..sandbox.folders import SYSTEM, is_within
from ..sandbox.installation import find_installation
from ..sandbox.landlock import HANDLED, OLDEST_ABI, SCOPES, without
from ..sandbox.landlock import rights as layout_rights
from ..sandbox.limits import limited
from ..sandbox.places import close_all, open_all, open_rules, own_folder, rule
from ..sandbox.system_calls import namespaced
from ..sandbox.table import Layout, Sandbox
from ..trust.sources import state_folder

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..processes.process import Server
    from ..processes.service import Account


@cache
def mechanism(wanted: str) -> Tools | Landlock:
    """What confines servers. It is looked for once. Raises UserError that says why there is none."""
    return find_sandbox(wanted)


@cache
def _starter() -> Starter:
    """The thread that starts bubblewrap. What that keeps apart by names is kept apart by rules, too, where there are.

    A process that dies with its parent dies with the thread that has started it, so there is one for all.
    """
    scopes = SCOPES if landlock_abi() >= OLDEST_ABI else 0
    return Starter(Confinement(scoped=scopes, filter=namespaced(os.uname().machine), drops_capabilities=False))


def check(config: GatewayConfig) -> None:
    """Raise UserError if servers should run in a sandbox and there is none."""
    names = [server.name for server in config.servers.values() if server.sandbox is not None]
    if not names:
        return
    try:
        mechanism(config.gateway.sandbox)
    except UserError as problem:
        several = "s" if len(names) > 1 else ""
        why = f"{config.path}: there is no sandbox for the server{several} {', '.join(names)}: {problem.message}"
        hint = f'{problem.hint}; or, where a server may do whatever the gateway can, sandbox = "off" in its table'
        raise UserError(why, hint) from None


def notes(config: GatewayConfig) -> Iterator[str]:
    """A sentence on each server that runs without a sandbox, without a full stop."""
    for server in config.servers.values():
        if server.table.command is not None and server.sandbox is None:
            account = f"the account {server.table.user}" if server.table.user else "the gateway's account"
            yield f"{config.path}: servers.{server.name} runs without a sandbox: it can do whatever {account} can"


def kinds(config: GatewayConfig) -> dict[str, str]:
    """What confines each server that has a process: the name of a sandbox, or `off`."""
    processes = [server for server in config.servers.values() if server.table.command is not None]
    if all(server.sandbox is None for server in processes):
        return {server.name: "off" for server in processes}
    kind = "landlock" if isinstance(mechanism(config.gateway.sandbox), Landlock) else "bubblewrap"
    return {server.name: "off" if server.sandbox is None else kind for server in processes}


def start(server: GatewayServer, user: str, account: Account, values: Mapping[str, str], stderr: int) -> Server:
    """Start a process for this user (empty: for all), with these variables. Raises UserError.

    Its standard error goes to the descriptor `stderr`.
    """
    command = server.table.command or ()
    if server.sandbox is None:
        return service.start(command, service.environment(account, values), server.cwd, account, stderr)
    try:
        return _start_confined(server, server.sandbox, user, account, values, stderr)
    except UserError as problem:
        start_of_text = "the gateway cannot start the server: "
        raise UserError(start_of_text + problem.message.removeprefix(start_of_text), problem.hint) from None


class _Plan(Struct, frozen=True):
    """What is to be started confined, and where."""

    server: GatewayServer
    sandbox: Sandbox
    account: Account
    layout: Layout
    command: tuple[str, ...]
    env: Mapping[str, str]
    stderr: int


def _start_confined(
    server: GatewayServer, sandbox: Sandbox, user: str, account: Account, values: Mapping[str, str], stderr: int
) -> Server:
    tools = mechanism(server.mechanism)
    home = _home(server, user, account)
    passed = {name: os.environ[name] for name in sandbox.env if name in os.environ}
    env = {**passed, **service.environment(account, {"HOME": home, **values})}
    installed = find_installation(server.table.command or (), env.get("PATH"), server.cwd, server.surroundings)
    layout = Layout(
        os.path.realpath(server.cwd) if server.table.cwd is not None else home,
        (*installed.paths, *sandbox.read),
        (*sandbox.write, *_of_its_own(server, home)),
        {path: os.path.isdir(path) for path in _hidden(server, installed.paths) if os.path.exists(path)},
        installed.links,
    )
    plan = _Plan(server, sandbox, account, layout, installed.command, env, stderr)
    return _start_by_landlock(plan, tools) if isinstance(tools, Landlock) else _start_by_bubblewrap(plan, tools)


def _start_by_bubblewrap(plan: _Plan, tools: Tools) -> Server:
    account, layout = plan.account, plan.layout
    # Another account opens what it sees by itself: through a link it would reach nothing that it may not read anyway.
    descriptors = {} if service.is_other(account) else open_all((*layout.readable, *layout.writable))
    try:
        for path, real in tools.system_files.items():
            if os.path.isfile(real):
                descriptors[path] = os.open(real, os.O_RDONLY | os.O_CLOEXEC)
        if account.uid == 0:
            tools = replace(tools, read_only_proc=True)
        words = arguments(tools, layout, plan.sandbox, descriptors, plan.command)
        inherited = tuple(descriptors.values())
        return service.start(words, plan.env, "/", account, plan.stderr, inherited, _starter().start)
    finally:
        close_all(descriptors.values())


def _start_by_landlock(plan: _Plan, landlock: Landlock) -> Server:
    layout, env = plan.layout, dict(plan.env)
    if layout.cwd == TEMPORARY:
        problem = "there is no folder in which it could work, and Landlock gives it no /tmp of its own"
        raise UserError(problem, "its administrator must name one that it may write: cwd")
    if env["HOME"] == TEMPORARY:
        env["HOME"] = layout.cwd
    temporary = os.path.join(env["HOME"], ".tmp")
    with suppress(OSError):  # what it may not write is said by what it writes
        os.makedirs(temporary, 0o700, exist_ok=True)
    env.setdefault("TMPDIR", temporary)
    hidden = plan.server.surroundings.protected
    own = set(layout.writable)
    rights = layout_rights(layout)
    descriptors = {} if service.is_other(plan.account) else open_all({*layout.readable, *own})
    shown = {path: allowed for path, allowed in rights.items() if path not in descriptors}
    rules = [rule(descriptor, rights[path]) for path, descriptor in descriptors.items()]
    try:
        rules += open_rules(without(shown, hidden))
        confinement = Confinement(HANDLED, SCOPES, rules, landlock.filters[plan.sandbox.network])
        words = limited(plan.sandbox, plan.command)
        starts = partial(start_once, confinement)
        return service.start(words, env, layout.cwd, plan.account, plan.stderr, (), starts)
    except OSError as error:
        raise UserError(f"its sandbox cannot be made: {error.strerror}", "the gateway's log may say more") from None
    finally:
        close_all(descriptor for descriptor, _ in rules)


def _home(server: GatewayServer, user: str, account: Account) -> str:
    """The folder of its own; where there is no place for it, that for temporary files, which ends with the process.

    An account that is not the gateway's cannot enter the gateway's state.
    """
    with suppress(OSError):
        state = state_folder(os.environ, os.environ.get("HOME") or service.own_account().home)
        if state and not service.is_other(account):
            return own_folder(state, server.name, user)
    return TEMPORARY


def _of_its_own(server: GatewayServer, home: str) -> Iterator[str]:
    """The folders besides those that its sandbox names which it writes."""
    if home != TEMPORARY:
        yield home
    if binds_cwd(server):
        yield os.path.realpath(server.cwd)


def _hidden(server: GatewayServer, shown: list[str]) -> list[str]:
    """What is the gateway's own in folders that this server sees."""
    own = server.surroundings.protected
    return [path for path in own if any(is_within(path, folder) and path != folder for folder in (*SYSTEM, *shown))]
