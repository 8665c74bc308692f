"""What will not work once agents come, found when gateway.toml is read: missing programs, hooks and secrets.

Law: an administrator learns at the start what users would otherwise learn from a failed call. Nothing is run for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..checks import commands
from ..checks.report import ConfiguredHook
from ..model.errors import ConfigError, UserError
from ..processes import service
from ..processes.process import find_program
from .hooks_account import environment_account
from .secrets import read_secrets

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer


def check_accounts(config: GatewayConfig) -> None:
    """Raise UserError for a server that would have to run as an account that this process cannot become."""
    for server in config.servers.values():
        if server.table.user is None or not service.is_other(service.account_named(server.table.user)):
            continue
        if os.geteuid() != 0:
            own = service.own_account().name
            problem = f"servers.{server.name}.user needs a gateway that runs as root, and this one runs as {own}"
            raise ConfigError(config.path, problem, "remove it, or User= in the systemd unit")


def start_problems(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each problem that is certain, without a full stop."""
    found = dict.fromkeys(
        text for server in config.servers.values() for text in (*_of_server(server), *_of_hooks(server))
    )  # hooks for all servers are the same for each
    yield from (f"{config.path}: {text}" for text in found)


def _of_server(server: GatewayServer) -> Iterator[str]:
    key, table = f"servers.{server.name}", server.table
    try:
        read_secrets(server.credentials)
    except UserError as problem:
        yield f"{key}: {problem.message}"
    if table.command is None:
        return
    if not os.path.isdir(server.cwd):
        yield f"{key}.cwd: there is no folder {server.cwd}"
        return
    account = service.account_named(table.user) if table.user else service.own_account()
    path = service.environment(account, table.env).get("PATH")
    if find_program(table.command[0], path, server.cwd) is None:
        yield f"{key}.command: there is no program {table.command[0]}"


def _of_hooks(server: GatewayServer) -> Iterator[str]:
    environ = service.environment(environment_account(), {})
    for group in server.loaded.groups:
        for spec in group.hooks:
            key = spec.source.removeprefix(f"{group.source}: ")
            for problem in commands.problems(ConfiguredHook(spec, group, server.loaded.settings, environ)):
                yield f"{key}: {problem}"
