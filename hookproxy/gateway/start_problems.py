"""What will not work once agents come, found when gateway.toml is read: missing programs, hooks and secrets.

Law: an administrator learns at the start what users would otherwise learn from a failed call. Nothing is run for it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..audit.os_user import audit_path
from ..authorization.token_file import read_tokens
from ..checks import commands
from ..checks.people import unknown_people
from ..checks.report import ConfiguredHook
from ..jsonrpc.known_secrets import PART
from ..model.errors import ConfigError, UserError, printable
from ..network.address import parse
from ..processes import service
from ..processes.process import find_program
from . import certificates
from .hooks_account import environment_account
from .secrets import read_secrets, repair
from .settings_without_effect import settings_without_effect

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
    url = table.url or ""
    try:
        parse(url, allow_http=table.allow_http)
    except UserError as problem:
        if "contains credentials" in problem.message:
            hint = 'remove them: headers = { Authorization = "Basic %{LOGIN}" } sends the credential LOGIN'
        elif "://" not in url:
            hint = f'write url = "https://{url}"'
        else:
            hint = "write https://HOST/PATH; allow_http = true if everybody on the way may read and change what is sent"
        raise ConfigError(config.path, f"{key}: {problem.message.removeprefix('--url ')}", hint) from None


def _of_lock(config: GatewayConfig) -> Iterator[str]:
    """Servers that are pinned, and not there: one that was renamed is not pinned any more."""
    locks = {lock for server in config.servers.values() if (lock := server.loaded.settings.lock) and lock.data}
    if locks:
        from ..lock import lock_file

        for lock in locks:
            for name in lock_file.parse(lock.data, lock.file).keys() - config.servers.keys():
                yield f"{lock.file}: {printable(name)} is pinned, and {config.path} has no such server"


def start_problems(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each problem that is certain, without a full stop."""
    texts = dict.fromkeys(
        (
            *_of_secrets(config),
            *_of_tokens(config),
            *_of_tls(config),
            *settings_without_effect(config),
            *_of_lock(config),
        )
    )
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


def _of_tls(config: GatewayConfig) -> Iterator[str]:
    """Certificates of the gateway that agents refuse, and those of an issuer that cannot be read."""
    gateway, folder = config.gateway, os.path.dirname(config.path)
    if gateway.tls is not None:
        path = os.path.join(folder, gateway.tls.certificate)
        if why := certificates.why_not_valid(path):
            yield f"gateway.tls.certificate: {path} {why}"
    if gateway.oidc is not None and gateway.oidc.ca:
        yield from _of_certificates("gateway.oidc", "ca", os.path.join(folder, gateway.oidc.ca))
    if gateway.store is not None and gateway.store.ca:
        yield from _of_certificates("gateway.store", "ca", os.path.join(folder, gateway.store.ca))


def _of_tokens(config: GatewayConfig) -> Iterator[str]:
    """A token file that lets nobody in."""
    gateway = config.gateway
    if gateway.tokens is None or gateway.oidc is not None or not any(map(_is_http, gateway.listen or ())):
        return
    path = os.path.join(os.path.dirname(config.path), gateway.tokens)
    try:
        records = read_tokens(path).records.values()
    except ConfigError:  # it stops the start
        return
    now = time.time()
    if not any(not record.revoked and (record.expires is None or now < record.expires) for record in records):
        hint = f"hookproxy token new USER --file {path}"
        yield f"gateway.tokens: {path} has no token in force, so nobody can connect over HTTP ({hint})"


def _is_http(address: str) -> bool:
    return address.startswith("http")


def _of_server(server: GatewayServer) -> Iterator[str]:
    key, table = f"servers.{server.name}", server.table
    for name, path in server.credentials.items():
        if not _may_wait(path):
            yield from _of_credential(f"{key}.credentials.{name}", name, path)
    if table.url is not None:
        for name, file in (("ca", table.ca), ("cert", table.cert)):
            yield from _of_certificates(key, name, file) if file is not None else ()
    if table.command is not None:
        yield from _of_command(key, server)


def _of_command(key: str, server: GatewayServer) -> Iterator[str]:
    table = server.table
    try:
        account = service.account_named(table.user) if table.user else service.own_account()
    except UserError:  # it stops the start
        return
    if not os.path.isdir(server.cwd):
        yield f"{key}.cwd: there is no folder {server.cwd} (install -d -o {account.name} {server.cwd})"
        return
    path = service.environment(account, table.env)["PATH"]
    if find_program(server.command[0], path, server.cwd) is None:
        yield f"{key}.command: {_why_no_program(server.command[0], path, server.cwd)}"


def _why_no_program(program: str, path: str, cwd: str) -> str:
    if "/" not in program:
        return f"there is no program {program} (install it into a folder of {path}, or write its full path)"
    file = os.path.join(cwd, program)
    if os.path.isfile(file):
        return f"{file} is not executable (chmod +x {file})"
    return f"there is no program {program} (correct its path: a relative one starts from {cwd})"


def _of_credential(key: str, name: str, path: str) -> Iterator[str]:
    try:
        (secret,) = read_secrets({name: path}).values()
    except UserError as problem:
        yield f"{key}: {problem.message} ({repair(path)})"
        return
    if len(secret) < PART:
        effect = "so it stays in the audit, the log and errors, if the server repeats it"
        yield f"{key}: {path} has fewer than {PART} characters, {effect} (make a longer one)"


def _of_certificates(key: str, name: str, path: str) -> Iterator[str]:
    if why := certificates.why_not_read(path):
        yield f"{key}.{name}: {path} {why}"


def _may_wait(path: str) -> bool:
    """True for a pipe or a device: to read it could take for ever, and what was read once may be gone."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _of_hooks(server: GatewayServer) -> Iterator[str]:
    environ = service.environment(environment_account(), {})
    for group in server.loaded.all_groups:
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
        hint = f"name a file in a folder that {service.own_account().name} may write"
        yield f"audit.file: {path} cannot be written{effect} ({hint})"
