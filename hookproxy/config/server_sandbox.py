"""Which files are the gateway's own, and what the sandbox of each server may therefore not contain.

Law: no table of gateway.toml opens the gateway's own files to a server. A folder that overlaps with one of them is an
error that names both. Links are followed before they are compared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from ..audit.os_user import audit_path
from ..live.registry import folder_of_runs
from ..model.errors import ConfigError, UserError
from ..model.sizes import size_in_bytes
from ..processes import service
from ..sandbox.folders import SYSTEM, is_within, overlaps, within_any
from ..sandbox.installation import Surroundings
from ..sandbox.table import Sandbox
from ..trust.scripts import files_of_hook
from ..trust.sources import state_folder
from .errors import place_of
from .gateway_models import DEFAULT_SOCKET, SandboxTable, admin_socket_beside
from .load import MANAGED_FOLDER, Loaded

if TYPE_CHECKING:
    from ..model.policy_source import PolicySource
    from .gateway_models import GatewayTable, ServerTable

_KERNEL: Final = ("/proc", "/sys", "/dev")
"""What the kernel shows of the whole machine; a sandbox has its own of some."""

_NOT_WRITABLE: Final = (*SYSTEM, "/etc", "/boot")
"""What decides how the machine works, also for the gateway."""

_WITHOUT_A_FOLDER: Final = ("/", "/tmp", "/var/tmp")
"""Working folders that every sandbox has, of its own."""

_UNIX: Final = "unix:"

NOWHERE: Final = Surroundings((), (), ())


class ServedProcess(Protocol):
    """What of a server of the gateway matters here."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def table(self) -> ServerTable:
        """Its table."""

    @property
    def cwd(self) -> str:
        """The folder that its relative words start from."""

    @property
    def real_cwd(self) -> str:
        """The same without links."""

    @property
    def credentials(self) -> Mapping[str, str]:
        """The file of each secret."""

    @property
    def loaded(self) -> Loaded:
        """Its hooks and settings."""

    @property
    def sandbox(self) -> Sandbox | None:
        """What its process may reach."""


def surroundings(servers: Mapping[str, ServedProcess], own: Mapping[str, str]) -> Surroundings:
    """What no server's program may contain, and where servers write."""
    accounts = [service.own_account(), *map(_account_of, (server.table for server in servers.values()))]
    homes = {os.path.realpath(account.home) for account in accounts if account is not None}
    writable = {folder for server in servers.values() if server.sandbox for folder in server.sandbox.write}
    writable |= {server.real_cwd for server in servers.values() if binds_cwd(server)}
    return Surroundings(sorted(homes - {"/"}), sorted(own), sorted(writable))


def sandbox_of(table: ServerTable, path: str, text: str, within: tuple[str, ...]) -> Sandbox | None:
    """What the process of a server may reach; None: everything, or it has no process. Raises ConfigError."""
    of_process = table.command is not None
    if not of_process and table.sandbox != SandboxTable():
        where = place_of(path, text, (*within, "sandbox"))
        problem = f"{'.'.join(within)}.sandbox is for a server with a command"
        raise ConfigError(where, problem, "remove it: the gateway starts no process for this server")
    if not of_process or isinstance(table.sandbox, str):
        return None
    given = table.sandbox
    folder = os.path.dirname(path)
    account = _account_of(table)
    home = account.home if account is not None else "/nonexistent"
    return Sandbox(
        tuple(_real_path(entry, folder, home) for entry in given.read),
        tuple(_real_path(entry, folder, home) for entry in given.write),
        given.network == "all",
        tuple(given.env),
        size_in_bytes(given.memory),
        given.processes,
    )


def binds_cwd(server: ServedProcess) -> bool:
    """Whether the working folder that a server names is one that it writes, and not one of every sandbox."""
    cwd = server.real_cwd
    return server.table.cwd is not None and cwd not in _WITHOUT_A_FOLDER and not within_any(cwd, SYSTEM)


def own_files(
    path: str,
    gateway: GatewayTable,
    servers: Mapping[str, ServedProcess],
    policy: PolicySource | None,
    environ: Mapping[str, str],
    sockets: Iterable[str] = (),
) -> dict[str, str]:
    """The gateway's own files and folders, by their real paths, each with what it is. `sockets` are systemd's."""
    folder = os.path.dirname(path)
    listening = [(what, socket) for agents in sockets for what, socket in _of_socket(agents)]
    named = (*_places(path, environ), *listening, *_of_gateway(gateway), *_of_servers(servers), *_of_policy(policy))
    return {os.path.realpath(os.path.join(folder, file)): what for what, file in named}


def hook_files(servers: Mapping[str, ServedProcess]) -> dict[str, str]:
    """What runs as the gateway's account and may be read, but not written: real paths, each with what it is."""
    environ = service.environment(service.own_account(), {})
    found = {sys.prefix: "hookproxy's own installation", os.path.dirname(os.path.dirname(__file__)): "hookproxy's code"}
    for server in servers.values():
        for group in server.loaded.all_groups:
            for hook in group.programs:
                with suppress(ConfigError):  # too many to be listed: said where trust needs them
                    files = files_of_hook(hook, environ)
                    found |= dict.fromkeys((*files.programs, *files.named, *files.imports), "a part of a hook")
    return {os.path.realpath(name): what for name, what in found.items()}


def hooks_of_all(servers: Mapping[str, ServedProcess], files_read: Iterable[str]) -> dict[str, str]:
    """What a server may read and never write: the files with rules and hooks, and what hooks run."""
    files = map(os.path.realpath, files_read)
    return dict.fromkeys(files, "a file with rules, hooks or certificates") | hook_files(servers)


def check_sandboxes(
    path: str, text: str, servers: Mapping[str, ServedProcess], own: Mapping[str, str], files_read: Iterable[str]
) -> None:
    """Raise ConfigError for the first folder of a sandbox that contains what no server may reach.

    `files_read` are those with rules and hooks: servers may read them.
    """
    hooks = hooks_of_all(servers, files_read)
    for server in servers.values():
        if server.sandbox is None:
            continue
        within = ("servers", server.name)
        table = server.table.sandbox
        assert not isinstance(table, str)
        pairs = ("read", table.read, server.sandbox.read), ("write", table.write, server.sandbox.write)
        given = [
            (f"sandbox.{key}", entry, real, key == "write")
            for key, entries, paths in pairs
            for entry, real in zip(entries, paths, strict=True)
        ]
        if binds_cwd(server):
            given.append(("cwd", server.table.cwd or "", server.real_cwd, True))
        for key, entry, real, writes in given:
            if why := why_not(real, writes, own, hooks):
                where = place_of(path, text, (*within, *key.split(".")))
                shown = entry if real == entry else f"{entry} ({real})"
                raise ConfigError(where, f"{'.'.join(within)}.{key}: {shown} {why}", "name a folder of its own")
        _check_names(server, path)


def why_not(real: str, writes: bool, own: Mapping[str, str], hooks: Mapping[str, str]) -> str:
    """Why a server may not have this; empty: it may."""
    for file, what in own.items():
        if overlaps(real, file):
            return f"{_relation(real, file)} {what}" + ("" if real == file else f": {file}")
        if os.path.dirname(real) == os.path.dirname(file) and os.path.basename(real).startswith(os.path.basename(file)):
            return f"belongs to {what}: {file}"  # as AUDIT.1, or a copy
    if within_any(real, _KERNEL):
        return "shows other processes and the machine itself"
    if not writes:
        return ""
    for file, what in hooks.items():
        if overlaps(real, file):
            return f"{_relation(real, file)} {what}, which the gateway uses: {file}"
    return "belongs to the system" if within_any(real, _NOT_WRITABLE) else ""


def _relation(real: str, file: str) -> str:
    if real == file:
        return "is"
    return "contains" if is_within(file, real) else "lies in"


def _check_names(server: ServedProcess, path: str) -> None:
    """Raise ConfigError for a variable that no server may get."""
    assert server.sandbox is not None
    for number, name in enumerate(server.sandbox.env):
        if "=" in name or "\0" in name or name.startswith(("HOOKPROXY_", "LISTEN_", "NOTIFY_", "CREDENTIALS_")):
            key = f"servers.{server.name}.sandbox.env[{number}]"
            raise ConfigError(path, f"{key}: {name!r} is the gateway's own, or no name", "name another variable")


def _places(path: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the gateway has wherever it runs, each with its path."""
    yield "the gateway's configuration", path
    yield "the administrator's configuration", MANAGED_FOLDER
    home = environ.get("HOME") or service.own_account().home
    state = state_folder(environ, home)
    if runs := folder_of_runs(environ, state):
        yield "the sockets of the gateway's consoles", runs
    if state:
        yield "the gateway's state", state
    yield "the configuration of the gateway's account", os.path.join(home, ".config", "hookproxy")
    if os.path.isabs(credentials := environ.get("CREDENTIALS_DIRECTORY", "")):
        yield "the gateway's credentials", credentials
    for runtime in filter(os.path.isabs, environ.get("RUNTIME_DIRECTORY", "").split(":")):
        yield "the folder of the gateway's sockets", runtime


def _of_gateway(gateway: GatewayTable) -> Iterator[tuple[str, str]]:
    """What the table `[gateway]` names, each with its path."""
    for address in gateway.listen or [f"{_UNIX}{DEFAULT_SOCKET}"]:
        if address.startswith(_UNIX):
            yield from _of_socket(address.removeprefix(_UNIX))
    if gateway.admin_socket:
        yield "the administration socket", gateway.admin_socket
    for key in gateway.seal_keys:
        yield "a key of approvals", key.removeprefix("file:")
    store, export = gateway.store, gateway.audit_export
    if store is not None and store.url.startswith(_UNIX):
        yield "the socket of the gateway's store", urlsplit(store.url).path
    for what, file in (
        ("the gateway's tokens", gateway.tokens),
        ("the gateway's TLS key", gateway.tls and gateway.tls.key),
        ("the token of the gateway's collector", export and export.token),
        ("the password of the gateway's store", store and store.password),
    ):
        if file:
            yield what, file


def _of_socket(agents: str) -> Iterator[tuple[str, str]]:
    yield "a socket of the gateway", agents
    yield "the administration socket", admin_socket_beside(agents)


def trusted_files(
    path: str, gateway: GatewayTable, servers: Mapping[str, ServedProcess], policy: PolicySource | None
) -> Iterator[str]:
    """The files that say whom the gateway believes."""
    tables = (gateway.oidc, gateway.store, gateway.audit_export, policy, *(server.table for server in servers.values()))
    named = [table.ca for table in tables if table is not None]
    if gateway.tls is not None:
        named.append(gateway.tls.certificate)
    yield from (os.path.join(os.path.dirname(path), file) for file in named if file)


def _of_servers(servers: Mapping[str, ServedProcess]) -> Iterator[tuple[str, str]]:
    """Secrets and records of servers, each with its path."""
    for server in servers.values():
        for name, file in server.credentials.items():
            yield f"the credential {name} of {server.name}", file
        settings = server.loaded.settings
        for what, file in (
            (f"the certificate of {server.name}", server.table.cert or ""),
            (f"the key of {server.name}", server.table.key or ""),
            ("the gateway's audit", audit_path(settings.audit_file) if settings.audit_file else ""),
            ("the key of the gateway's audit", settings.audit_chain_key_file),
            ("the key that signs the gateway's audit", settings.audit_sign_key),
        ):
            if file:
                yield what, file


def _of_policy(policy: PolicySource | None) -> Iterator[tuple[str, str]]:
    """What belongs to a signed policy, each with its path."""
    if policy is not None:
        yield "the folder of signed policies", policy.folder
        if policy.credential:
            yield "the credential of the signed policy", policy.credential


def _account_of(table: ServerTable) -> service.Account | None:
    try:
        return service.account_named(table.user) if table.user else service.own_account()
    except UserError:  # said where the account is needed
        return None


def _real_path(entry: str, folder: str, home: str) -> str:
    if entry == "~" or entry.startswith("~/"):
        entry = home + entry[1:]
    return os.path.realpath(os.path.join(folder, entry))
