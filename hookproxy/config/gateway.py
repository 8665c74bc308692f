"""Reads gateway.toml: for each server its command or address, who may use it, and its hooks, rules, limits and audit.

Nobody but root and the gateway's own account may be able to change the file or a hook file that it names (law 3).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec.json
from msgspec import Struct
from msgspec.structs import replace

from ..model import shown_tools
from ..model.env_references import REFERENCE
from ..model.errors import ConfigError, UserError
from ..model.hooks import Session
from ..model.principal import Principal
from ..model.settings import DEFAULTS, OnAsk, OnFailure, RootsRule, Settings
from ..policy.bounds import Bound
from ..processes import service
from ..processes.process_tree import available_memory
from ..protocol.request_state import SealKey
from ..sandbox.installation import Surroundings
from ..sandbox.table import Sandbox
from ..trust.managed_files import Ownership, check_programs, read_owned, resolved
from ..trust.sources import FileContext, FileSnapshot, Layer, Watched
from .errors import place_of
from .gateway_limits import bounds, check_limits, check_store, with_people
from .gateway_models import GatewayFile, GatewayTable, Roles, ServerTable, UserRules
from .load import Loaded, complete, layer_of
from .models import ConfigFile, Mode
from .parse import read_tables, tables_of_server, validated
from .people import check_people, check_permission_rules_for_users, rules_for_users
from .policy_digest import PolicyParts, contents_of, parts_of, version_of
from .sandbox_profiles import Launch, Profiled, profiled
from .secret_files import with_credentials_folder
from .server_sandbox import (
    NOWHERE,
    check_sandboxes,
    hooks_of_all,
    own_files,
    sandbox_of,
    surroundings,
    trusted_files,
    why_not,
)

if TYPE_CHECKING:
    from ..model.policy_source import PolicyBundle, PolicySource
    from .policy_in_force import InForce

_ADDED: Final = (
    *("allow", "ask", "deny", "agent_rules", "aliases", "limits", "flow_sources", "flow_sinks"),
    *("audit_redact", "audit_redact_keys"),
)
"""Settings of a server that are added to those for all servers. All others replace them."""

_SHORTEST_KEY: Final = 32  # bytes: the output of SHA-256
_LONGEST_KEY: Final = 4096  # bytes: a longer file is something else
_FEWEST_BYTES: Final = 8  # different ones: 32 random bytes have more, a placeholder has fewer

POLICY_FOLDER: Final = "/var/lib/hookproxy/policy"
"""Where a gateway keeps the signed policies that it has taken: in the folder that systemd makes for its state."""


class GatewayServer(Struct, frozen=True):
    """A server behind the gateway, and what holds for it."""

    name: str
    table: ServerTable
    cwd: str
    """The absolute path of the folder in which it runs."""
    real_cwd: str
    """The same, as its links led when the file was read: another server may write the folder that it lies in."""
    credentials: Mapping[str, str]
    """The absolute path of the file of each secret, by its name."""
    loaded: Loaded
    rules_for_users: tuple[tuple[UserRules, Mapping[str, str]], ...]
    """Permission rules for some people only, each table with the places of its rules, as `Settings.rule_places`."""
    sandbox: Sandbox | None
    """What its process may reach; None: everything, or it has no process."""
    surroundings: Surroundings
    """What no server may reach, for the search for what its program needs."""
    mechanism: str
    """What confines it, as `gateway.sandbox`."""
    signed_rules: tuple[tuple[UserRules, Mapping[str, str]], ...] = ()
    """Those of `rules_for_users` that stand in the signed policy."""
    profile: Profiled | None = None
    """What its sandbox has from a profile; None: it has none, or the configuration says what its sandbox shows."""

    def allows(self, principal: Principal) -> bool:
        """Whether this user may use the server."""
        return self.table.users is None or principal.is_among(self.table.users)

    def starts_differently(self, other: GatewayServer) -> bool:
        """Whether a process or a connection of the other one would not be what is meant here."""
        keys = ("command", "url", "headers", "ca", "cert", "key", "allow_http", "env", "user", "share", "from_caller")
        return (
            any(getattr(self.table, key) != getattr(other.table, key) for key in keys)
            or self.cwd != other.cwd
            or self.sandbox != other.sandbox
            or self.credentials != other.credentials
            or self.loaded.settings.roots != other.loaded.settings.roots
        )

    @property
    def command(self) -> tuple[str, ...]:
        """Its command line, by which tools may be recognised; empty: it has an address, or its user starts it."""
        return tuple(self.table.command or ())

    def loaded_for(self, principal: Principal) -> Loaded:
        """All that judges the calls of this user: what `serve` evaluates is what `check`, `try` and others show."""
        loaded, watched = self.loaded, self.loaded.watched
        if watched is None and any(rules.mode == "monitor" for rules, _places in self.rules_for_users):
            names = ("allow", "ask", "deny", "agent_rules", "limits", "flow_sources", "flow_sinks")
            without_rules = dict.fromkeys(names, ())
            watched = Watched(replace(loaded.settings, **without_rules, managed=None))
        if watched is not None:
            watched = replace(watched, settings=self._for_user(principal, watched.settings, "monitor"))
        return replace(loaded, settings=self.settings_for(principal), watched=watched)

    def session(self, session_id: str, principal: Principal | None) -> Session:
        """A session of this user, as hooks see it; None: it is tried for nobody in particular."""
        return Session(
            id=session_id,
            server=self.name,
            cwd=self.cwd,
            project_dir=self.cwd,
            command=self.command,
            url=self.table.url or "",
            principal=principal,
        )

    def settings_for(self, principal: Principal) -> Settings:
        """The settings of a session of this user."""
        return self._for_user(principal, self.loaded.settings, "enforce")

    def _for_user(self, principal: Principal, settings: Settings, mode: Mode) -> Settings:
        if any(limit.users or limit.servers for limit in settings.limits):
            mine = (
                limit
                for limit in settings.limits
                if (not limit.users or principal.may_be_among(limit.users))
                and (not limit.servers or self.name in limit.servers)
            )
            settings = replace(settings, limits=tuple(mine))
        signed = {id(rules) for rules, _ in self.signed_rules}
        for rules, places in self.rules_for_users:
            if rules.mode != mode or not principal.may_be_among(rules.users):
                continue
            if id(rules) in signed and settings.managed is not None:
                # the policy's own default is a managed one: only managed rules open it
                managed = _with_default(_with_allowed(settings.managed, rules, places, principal), rules, places)
                settings = replace(settings, managed=managed)
                if settings.default_permission == "allow":  # otherwise the policy would open the gateway's own default
                    settings = _with_allowed(settings, rules, places, principal)
            else:
                settings = _with_default(_with_allowed(settings, rules, places, principal), rules, places)
            settings = replace(
                settings,
                ask=(*settings.ask, *rules.ask),
                deny=(*settings.deny, *rules.deny),
            )
        return settings


def _with_allowed(settings: Settings, rules: UserRules, places: Mapping[str, str], principal: Principal) -> Settings:
    """The settings with what is allowed to some people, if the user is certainly one of them."""
    allow = rules.allow if principal.is_among(rules.users) else ()
    own = {name: place for name, place in places.items() if name != "default"}
    return replace(settings, allow=(*settings.allow, *allow), rule_places={**own, **settings.rule_places})


def _with_default(settings: Settings, rules: UserRules, places: Mapping[str, str]) -> Settings:
    """The settings with the default for some people, if it is the stricter one."""
    default = rules.default
    if default is None or DEFAULTS.index(default) <= DEFAULTS.index(settings.default_permission):
        return settings
    at = {**settings.rule_places, "default": places.get("default", "")}
    return replace(settings, default_permission=default, rule_places=at)


class GatewayConfig(Struct, frozen=True):
    """The whole of a gateway.toml."""

    path: str
    gateway: GatewayTable
    servers: Mapping[str, GatewayServer]
    bounds: tuple[Bound, ...]
    """What users may have at a time."""
    roles: Roles
    people: tuple[tuple[str, str], ...]
    """Each name of a user or a group, the latter with `@` in front, and the key in the file that has it."""
    seal_keys: tuple[SealKey, ...]
    """The keys of approvals; empty: the process makes its own."""
    version: str
    """The SHA-256 of all that decides, in hexadecimal (`policy_digest`): two that differ are different policies."""
    policy: str
    """The SHA-256 of what holds for calls: the same for gateways whose files differ only in the table `[gateway]`."""
    notes: tuple[str, ...]
    """What does not do what its author wrote, and what can never happen behind MCP; as `Loaded`."""
    source: PolicySource | None = None
    """Where the signed policy comes from; None: there is none."""
    bundle: PolicyBundle | None = None
    """The signed policy in force."""
    closed: str = ""
    """Why no server may be used, a sentence without a full stop; empty: they may."""
    parts: PolicyParts = {}
    """The files that decide, as `version` covers them."""
    tables: Mapping[str, object] = {}
    """What stands in the file, before validation."""


def load_gateway(  # noqa: PLR0913  # it is for several verbs
    path: str,
    environ: Mapping[str, str],
    cwd: str,
    candidate: str = "",
    sockets: Iterable[str] = (),
    *,
    makes_lock: bool = False,
    isolated: bool = False,
) -> GatewayConfig:
    """Read gateway.toml and the hook files that it names. Raises ConfigError and UserError.

    With the signed policy in the folder `candidate`, in place of the one that was taken last. `sockets` are the paths
    of systemd's sockets, at which the gateway listens whatever the file says. With `makes_lock` the files that its
    tables `lock` name need not be there yet. With `isolated` the
    administrator's files do not count: for tests of the policy.
    """
    file_context = FileContext(environ, cwd, _read, makes_lock=makes_lock, isolated=isolated)
    path = file_context.find(path, cwd)
    text = file_context.text(path, "--config")
    tables = read_tables(path, text)
    file = validated(path, text, tables, GatewayFile)
    _check_administration(file, path)
    people = [*_check_roles(file.roles, path), *check_permission_rules_for_users(file.permissions, path, ())]
    people += check_limits(file, path, text)
    if not file.servers:
        raise ConfigError(path, "names no server", 'add one: [servers.NAME] with command = ["…"] or url = "…"')
    hook_environ = service.environment(service.own_account(), {})
    layer = with_people(layer_of(file, tables, path, text, file_context), file.limits)
    for_all = check_programs(layer, hook_environ, _ownership())
    source, bundle = _signed_policy(for_all, file_context, hook_environ, candidate)
    people += bundle.people if bundle is not None else ()
    for name, table in file.servers.items():
        people += _check_server(table, path, text, ("servers", name))
    reader = _Servers(path, text, tables, file, for_all, file_context, hook_environ, bundle)
    servers = {name: reader.server(name, table) for name, table in file.servers.items()}
    if file.gateway.store is not None:
        for server in servers.values():
            check_store(server.loaded.settings)
    notes = dict.fromkeys(
        note for server in servers.values() for note in (*server.loaded.notes, *server.loaded.remarks)
    )  # those of the keys for all servers are the same for each
    file = replace(file, gateway=_with_secret_paths(file.gateway, path, environ))
    own = own_files(path, file.gateway, servers, source, environ, sockets)
    read = (*file_context.files_read, *trusted_files(path, file.gateway, servers, source))
    check_sandboxes(path, text, servers, own, read)
    servers = _with_profiles(servers, tables, own, read)
    around = surroundings(servers, own)
    servers = {name: replace(server, surroundings=around) for name, server in servers.items()}
    loaded = [server.loaded for server in servers.values()]
    parts = parts_of(file_context.files_read, loaded, hook_environ, os.path.dirname(path))
    return GatewayConfig(
        path,
        file.gateway,
        servers,
        tuple(bounds(file, available_memory)),
        file.roles,
        tuple(people),
        tuple(_seal_keys(file.gateway, path, environ)),
        version_of(parts),
        _policy_version(path, tables, parts),
        (*notes, *_notes_about_sharing(file.gateway), *_notes_about_probes(file.gateway)),
        source,
        None if bundle is None else bundle.bundle,
        "" if bundle is None else bundle.closed,
        parts,
        tables,
    )


class _Servers(Struct, frozen=True):
    """What all servers of a file have in common, from which each of them is made."""

    path: str
    text: str
    tables: Mapping[str, object]
    file: GatewayFile
    for_all: Layer
    file_context: FileContext
    hook_environ: Mapping[str, str]
    bundle: InForce | None

    def server(self, name: str, table: ServerTable) -> GatewayServer:
        """The server of this name. Raises ConfigError and UserError."""
        path, text, within, folder = self.path, self.text, ("servers", name), os.path.dirname(self.path)
        own = layer_of(table, tables_of_server(self.tables, name), path, text, self.file_context, within)
        layer = check_programs(with_people(own, table.limits, within), self.hook_environ, _ownership())
        layer = _with_default_roots(_overlaid(self.for_all, layer), table)
        signed = None if self.bundle is None else self.bundle.for_server(name)
        signed_rules = () if signed is None else signed.rules
        loaded = complete(layer, self.file_context, bundle=signed)
        cwd = self.file_context.find(table.cwd or ".", folder)
        return GatewayServer(
            name=name,
            table=_with_absolute_paths(table, folder),
            cwd=cwd,
            real_cwd=os.path.realpath(cwd),
            credentials={
                key: _secret_path(file, path, f"servers.{name}.credentials.{key}", self.file_context.environ)
                for key, file in table.credentials.items()
            },
            loaded=_of_gateway(loaded, self.file.roles, f"{path}: servers.{name}"),
            rules_for_users=(
                *rules_for_users(self.file.permissions, path, text, ()),
                *rules_for_users(table.permissions, path, text, within),
                *signed_rules,
            ),
            sandbox=sandbox_of(table, path, text, within),
            surroundings=NOWHERE,
            mechanism=self.file.gateway.sandbox,
            signed_rules=signed_rules,
        )


def _of_gateway(loaded: Loaded, roles: Roles, place: str) -> Loaded:
    """The settings as those of a gateway. Raises ConfigError for those that would approve calls without approvers."""
    called, approvers = "the gateway's configuration", tuple(roles.approver)
    settings = replace(
        loaded.settings,
        called=called,
        approvers=approvers,
        # a call of somebody else must not be lost with the process that ran it
        audit_begun=loaded.settings.audit_begun or "audit_begun" not in loaded.set_by,
    )
    if loaded.watched is not None:
        watched = replace(loaded.watched.settings, called=called, approvers=approvers)
        loaded = replace(loaded, watched=replace(loaded.watched, settings=watched))
    if roles.approver:
        hint = 'remove it, or write "deny"; roles.approver says who approves calls'
        if settings.on_ask is OnAsk.ALLOW:
            raise ConfigError(place, 'on_ask = "allow" would approve calls that only roles.approver may', hint)
        if settings.on_ask_fallback is OnFailure.ALLOW:
            raise ConfigError(place, 'on_ask_fallback = "allow" would approve calls that only roles.approver may', hint)
    return replace(loaded, settings=settings)


def gateway_table(path: str, environ: Mapping[str, str], cwd: str) -> tuple[str, GatewayTable]:
    """The table `[gateway]` of a gateway.toml alone, and the file's absolute path. Raises ConfigError."""
    file_context = FileContext(environ, cwd, _read)
    path = file_context.find(path, cwd)
    text = file_context.text(path, "--store")
    file = validated(path, text, read_tables(path, text), GatewayFile)
    return path, _with_secret_paths(file.gateway, path, environ)


def policy_of_gateway(path: str, environ: Mapping[str, str], cwd: str) -> PolicySource | None:
    """The table `[policy]` of a gateway.toml alone; None: it has none. Raises ConfigError."""
    from .policy_in_force import with_folder

    file_context = FileContext(environ, cwd, _read)
    path = file_context.find(path, cwd)
    text = file_context.text(path, "--config")
    tables = read_tables(path, text)
    policy = layer_of(validated(path, text, tables, GatewayFile), tables, path, text, file_context).policy
    return None if policy is None else with_folder(policy, POLICY_FOLDER)


def policy_in_force_at_gateway(policy: PolicySource) -> InForce:
    """The policy that a gateway with the files of this account would use. Raises ConfigError."""
    from . import policy_file
    from .policy_in_force import Reading, in_force

    return in_force(policy, Reading(_read, policy_file.read, service.environment(service.own_account(), {})))


def _signed_policy(
    for_all: Layer, file_context: FileContext, hook_environ: Mapping[str, str], candidate: str
) -> tuple[PolicySource | None, InForce | None]:
    """Where the signed policy comes from, and the one in force, if the file has a table `[policy]`."""
    if for_all.policy is None:
        return None, None
    from . import policy_file
    from .policy_in_force import Reading, in_force, with_folder

    source = with_folder(for_all.policy, POLICY_FOLDER)
    bundle = in_force(source, Reading(_read, policy_file.read, hook_environ), candidate)
    if bundle.manifest is not None:
        file_context.files_read[bundle.manifest_path] = bundle.manifest
    return source, bundle.checked(lambda layer: check_programs(layer, hook_environ, _ownership()))


def _with_absolute_paths(table: ServerTable, folder: str) -> ServerTable:
    paths = {name: os.path.join(folder, one) for name in ("ca", "cert", "key") if (one := getattr(table, name))}
    return replace(table, **paths)


@contextmanager
def about_key(path: str, key: str) -> Iterator[None]:
    """Whatever is wrong in this block is wrong with this key of the file at this path. Raises ConfigError."""
    try:
        yield
    except UserError as problem:
        message = problem.message if problem.message.startswith("gateway.") else f"{key}: {problem.message}"
        raise ConfigError(path, message, problem.hint) from None


def check_folder(path: str) -> None:
    """Raise ConfigError if another account can put something else in the place of this folder; it may be missing."""
    with suppress(FileNotFoundError), resolved(path, _ownership()):
        pass


def _read(path: str) -> FileSnapshot:
    return read_owned(path, _ownership())


def _ownership() -> Ownership:
    owners = frozenset({0, os.geteuid()})
    owner = "root" if owners == {0} else service.own_account().name
    return Ownership(owners, owner, "the gateway's files", True)


def _policy_version(path: str, tables: Mapping[str, object], parts: PolicyParts) -> str:
    """As `GatewayConfig.policy`. Where the files lie does not matter, nor the version of hookproxy."""
    digest = hashlib.sha256()
    own = {name: table for name, table in tables.items() if name != "gateway"}
    digest.update(hashlib.sha256(msgspec.json.encode(own, order="deterministic")).digest())
    digest.update(contents_of(parts, path))
    return digest.hexdigest()


def _with_profiles(
    servers: Mapping[str, GatewayServer],
    tables: Mapping[str, object],
    own: Mapping[str, str],
    files_read: Iterable[str],
) -> dict[str, GatewayServer]:
    """The servers, each with what a profile opens unless its table says what its sandbox shows."""
    hooks = cache(lambda: hooks_of_all(servers, files_read))
    changed = dict(servers)
    for name, server in servers.items():
        if server.sandbox is None or "sandbox" in tables_of_server(tables, name):
            continue
        with suppress(UserError):  # there is no such account: said where it is needed
            user = server.table.user
            home = (service.account_named(user) if user else service.own_account()).home
            launch = Launch(server.command, server.cwd, home, server.table.env)
            profile = profiled(launch, server.sandbox, lambda path, writes: why_not(path, writes, own, hooks()))
            if profile is not None:
                changed[name] = replace(server, sandbox=profile.sandbox, profile=profile)
    return changed


def _overlaid(base: Layer, over: Layer) -> Layer:
    """The layer for all servers with that of one server over it. Hooks for all run first."""
    values = {
        name: getattr(base.settings, name) + getattr(over.settings, name)
        if name in _ADDED
        else getattr(over.settings, name)
        for name in over.set_by
    }
    values["shown_tools"] = shown_tools.merged(base.settings.shown_tools, over.settings.shown_tools)
    places = {**base.settings.rule_places, **over.settings.rule_places}
    if over.settings.watched_rules is not None:
        from .managed_merge import merged_rules

        values["watched_rules"] = merged_rules(base.settings.watched_rules, over.settings.watched_rules)
    following = base.next or over.next
    if base.next is not None and over.next is not None:
        following = _overlaid(base.next, over.next)
    return replace(
        base,
        next=following,
        settings=replace(base.settings, **values, rule_places=places),
        set_by={**base.set_by, **over.set_by},
        groups=base.groups + over.groups,
        notes=base.notes + over.notes,
        remarks=base.remarks + over.remarks,
    )


def _with_default_roots(layer: Layer, table: ServerTable) -> Layer:
    """Without a word of the configuration, no root of an agent reaches a server, unless it has the agent's rights."""
    if "roots" in layer.set_by or table.from_caller:
        return layer
    return replace(layer, settings=replace(layer.settings, roots=RootsRule(())))


# --- what several gateways share ---


def _seal_keys(gateway: GatewayTable, path: str, environ: Mapping[str, str]) -> Iterator[SealKey]:
    """The keys of approvals. Raises ConfigError."""
    ownership = replace(_ownership(), files="the keys of approvals", secret=True)
    for number, text in enumerate(gateway.seal_keys):
        key = f"gateway.seal_keys[{number}]"
        file = _secret_path(text, path, key, environ)
        owner = ownership.owner
        hint = f"make it: install -m 600 -o {owner} /dev/null {file}; openssl rand -base64 -out {file} 32"
        try:
            data = read_owned(file, ownership).data
        except OSError as error:
            raise ConfigError(path, f"{key}: {file} cannot be read: {error.strerror}", hint) from None
        if not _SHORTEST_KEY <= len(data) <= _LONGEST_KEY or len(set(data)) < _FEWEST_BYTES:
            raise ConfigError(path, f"{key}: {file} has no random key of at least {_SHORTEST_KEY} bytes", hint)
        yield SealKey(data.rstrip(b"\r\n"))


def _with_secret_paths(gateway: GatewayTable, path: str, environ: Mapping[str, str]) -> GatewayTable:
    """The table with the absolute paths of its secrets. Raises ConfigError, also for a wrong address of the store."""
    store, export = gateway.store, gateway.audit_export
    if export is not None and export.token is not None:
        token = _secret_path(export.token, path, "gateway.audit_export.token", environ)
        gateway = replace(gateway, audit_export=replace(export, token=token))
    if store is None:
        return gateway
    try:
        _ = urlsplit(store.url).port
    except ValueError as problem:
        hint = 'write "redis://HOST:6379/0", "rediss://HOST:6379/0" or "unix:///run/valkey/valkey.sock"'
        raise ConfigError(path, f"gateway.store.url is not an address: {problem}", hint) from None
    if store.password is None:
        return gateway
    password = _secret_path(store.password, path, "gateway.store.password", environ)
    return replace(gateway, store=replace(store, password=password))


def _notes_about_probes(gateway: GatewayTable) -> Iterator[str]:
    """What nobody can ask."""
    if gateway.trusted_proxies and gateway.probes is None:
        yield (
            "gateway.trusted_proxies without gateway.probes: nobody can ask /healthz, /readyz and /metrics, because "
            "behind a proxy everybody comes from the same address"
        )


def _notes_about_sharing(gateway: GatewayTable) -> Iterator[str]:
    """What is not shared although something else is."""
    if gateway.seal_keys and gateway.store is None:
        yield (
            "gateway.seal_keys without [gateway.store]: an approval can be used once at each gateway that has the key, "
            "and once more after each restart"
        )
    if gateway.store is not None and not gateway.seal_keys:
        yield "[gateway.store] without gateway.seal_keys: no gateway continues what another one has asked a person"
    if gateway.store is not None and gateway.store.url.startswith("redis:"):
        host = urlsplit(gateway.store.url).hostname or "localhost"
        if host not in ("localhost", "127.0.0.1", "::1"):
            yield f"gateway.store: to {host} without TLS; who can change what is sent there can approve calls (rediss://)"


# --- what only a gateway's file can contain ---


def _check_administration(file: ConfigFile, path: str, key: str = "") -> None:
    """Raise ConfigError for keys that mean nothing here: the whole file is the administrator's."""
    if key and file.policy is not None:
        raise ConfigError(path, f"{key}policy: the signed policy is for all servers", "write it as [policy]")
    for name in ("managed_only", "require_trust"):
        if getattr(file, name):
            hint = "remove it: only root and the gateway's account can change this file and what it names"
            raise ConfigError(path, f"{key}{name} has no meaning in a gateway's file", hint)


def _check_server(table: ServerTable, path: str, text: str, within: tuple[str, ...]) -> list[tuple[str, str]]:
    """Raise ConfigError for keys of a server that contradict each other. Returns the names as `people`."""
    key = ".".join(within)
    where = place_of(path, text, within)
    kinds = [table.command is not None, table.url is not None, table.from_caller]
    if sum(kinds) != 1:
        problem = "names no server" if not any(kinds) else "says in several ways where the server is"
        raise ConfigError(where, f"{key} {problem}", 'write one of command = ["…"], url = "…" and from_caller = true')
    if table.from_caller and (table.credentials or table.env or table.user or table.headers):
        hint = "remove its credentials, env, headers and user, or start it with a command of the gateway"
        raise ConfigError(where, f"{key} runs as the user, who would get what only the gateway must have", hint)
    if table.headers and table.url is None:
        raise ConfigError(where, f"{key}.headers are for a server with a url", "use env or credentials")
    _check_headers(table, path, text, within)
    for name, given in (("user", table.user is not None), ("share", table.share != "session")):
        if given and table.command is None:
            raise ConfigError(where, f"{key}.{name} is for a server with a command", "remove it")
    people = check_people(table.users or (), path, f"{key}.allow")
    _check_administration(table, path, f"{key}.")
    return people + check_permission_rules_for_users(table.permissions, path, within)


def _check_headers(table: ServerTable, path: str, text: str, within: tuple[str, ...]) -> None:
    """Raise ConfigError for a header that refers to a credential that is not there."""
    key = ".".join(within)
    for name, value in table.headers.items():
        for credential in REFERENCE.findall(value):
            if credential not in table.credentials:
                where = place_of(path, text, (*within, "headers", name))
                hint = f'below [{key}], add credentials = {{ {credential} = "file:/etc/hookproxy/{credential}" }}'
                raise ConfigError(where, f"{key}.headers.{name} needs the credential {credential}", hint)


def _check_roles(roles: Roles, path: str) -> list[tuple[str, str]]:
    """As `check_people`, for all roles."""
    named = {"approver": roles.approver, "auditor": roles.auditor, "operator": roles.operator}
    return [one for name, names in named.items() for one in check_people(names, path, f"roles.{name}")]


def _secret_path(text: str, path: str, key: str, environ: Mapping[str, str]) -> str:
    """The absolute path of a secret's file. Raises ConfigError."""
    file = with_credentials_folder(text.removeprefix("file:"), path, key, environ)
    return os.path.normpath(os.path.join(os.path.dirname(path), file))
