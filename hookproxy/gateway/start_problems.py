"""What will not work once agents come, found when gateway.toml is read: missing programs, hooks and secrets.

Law: an administrator learns at the start what users would otherwise learn from a failed call. Nothing is run for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..audit.os_user import audit_path
from ..checks import commands
from ..checks.people import unknown_people
from ..checks.report import ConfiguredHook
from ..model.errors import ConfigError, UserError
from ..network.address import parse
from ..processes import service
from ..processes.process import find_program
from .hooks_account import environment_account
from .secrets import read_secrets

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..config.gateway_models import ServerTable


def check_servers(config: GatewayConfig) -> None:
    """Raise ConfigError for a server that can never be started or reached: its account or its address is impossible."""
    for server in config.servers.values():
        key = f"servers.{server.name}"
        if server.table.user is not None:
            _check_account(config, f"{key}.user", server.table.user)
        if server.table.url is not None:
            _check_url(config, f"{key}.url", server.table)


def _check_account(config: GatewayConfig, key: str, name: str) -> None:
    try:
        is_other = service.is_other(service.account_named(name))
    except UserError as problem:
        raise ConfigError(config.path, f"{key}: {problem.message}", problem.hint) from None
    why_not, hint = service.why_not_as_others()
    if is_other and why_not:
        raise ConfigError(config.path, f"{key} {why_not}", hint)


def _check_url(config: GatewayConfig, key: str, table: ServerTable) -> None:
    try:
        parse(table.url or "", allow_http=table.allow_http)
    except UserError as problem:
        hint = "write https://HOST/PATH; allow_http = true if everybody on the way may read and change what is sent"
        raise ConfigError(config.path, f"{key}: {problem.message.removeprefix('--url ')}", hint) from None


def start_problems(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each problem that is certain, without a full stop."""
    texts = dict.fromkeys(_of_secrets(config))
    texts |= dict.fromkeys(
        text
        for server in config.servers.values()
        for text in (*_of_server(server), *_of_hooks(server), *_of_audit(server))
    )  # hooks for all servers are the same for each
    texts |= dict.fromkeys(unknown_people(config))
    yield from (text if os.path.isabs(text) else f"{config.path}: {text}" for text in texts)


def _of_secrets(config: GatewayConfig) -> Iterator[str]:
    """Secrets that everybody on the machine can read. The tokens and the seal keys are checked where they are read."""
    for key, path in _secret_files(config):
        try:
            state = os.stat(path)
        except OSError:  # said where it is needed
            continue
        if stat.S_ISREG(state.st_mode) and state.st_mode & stat.S_IROTH:
            yield f"{key}: {path} is readable by others, but it is a secret (chmod o-rwx {path})"


def _secret_files(config: GatewayConfig) -> Iterator[tuple[str, str]]:
    """The key in gateway.toml and the path of each secret."""
    gateway = config.gateway
    if gateway.tls is not None:
        yield "gateway.tls.key", os.path.join(os.path.dirname(config.path), gateway.tls.key)
    if gateway.store is not None and gateway.store.password is not None:
        yield "gateway.store.password", gateway.store.password
    if gateway.audit_export is not None and gateway.audit_export.token is not None:
        yield "gateway.audit_export.token", gateway.audit_export.token
    if config.source is not None and config.source.credential:
        yield "policy.credential", config.source.credential
    for server in config.servers.values():
        yield from ((f"servers.{server.name}.credentials.{name}", path) for name, path in server.credentials.items())
        name = "cert" if server.table.key is None else "key"  # a certificate without a key is in one file with it
        if (path := getattr(server.table, name)) is not None:
            yield f"servers.{server.name}.{name}", path


def _of_server(server: GatewayServer) -> Iterator[str]:
    key, table = f"servers.{server.name}", server.table
    files = {name: path for name, path in server.credentials.items() if not _may_wait(path)}
    try:
        read_secrets(files)
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


def _may_wait(path: str) -> bool:
    """True for a pipe or a device: to read it could take for ever, and what was read once may be gone."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _of_hooks(server: GatewayServer) -> Iterator[str]:
    environ = service.environment(environment_account(), {})
    for group in server.loaded.groups:
        for spec in group.hooks:
            for problem in commands.problems(ConfiguredHook(spec, group, server.loaded.settings, environ)):
                yield f"{spec.source}: {problem}"  # it may be in another file


def _of_audit(server: GatewayServer) -> Iterator[str]:
    settings = server.loaded.settings
    if not settings.audit_enabled or not settings.audit_file:
        return
    path = place = audit_path(settings.audit_file)
    while not os.path.lexists(place):  # missing folders are made
        place = os.path.dirname(place)
    can_be_made = os.path.isdir(place) and place != path and os.access(place, os.W_OK | os.X_OK)
    can_grow = place == path and not os.path.isdir(path) and os.access(path, os.W_OK)
    if not can_be_made and not can_grow:
        effect = ", so calls are refused" if settings.audit_required else ""
        yield f"audit.file: {path} cannot be written{effect}"
