"""The policy that `check`, `try`, `replay` and `explain` look at: of hookproxy.toml, or of a gateway for one user.

A gateway's file is known by its name or its tables. What is read from it is what `serve` reads, by the same functions:
no gateway need run.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..model.errors import EXIT_FINDINGS, EXIT_NO_POLICY, ConfigError, UserError
from ..model.hooks import Session
from .common import load_named

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..config.load import Loaded
    from ..gateway.identities import Identity

DEFAULT_GATEWAY: Final = "/etc/hookproxy/gateway.toml"
"""Where docs and the systemd unit have a gateway's file: what `--user` alone means."""

_OPTIONS: Final = ("server", "user", "groups")
_NO_GROUPS: Final = "-"  # as in the token file
_MOST_BYTES: Final = 16 * 1024 * 1024  # a longer file is not a configuration, and need not be read to know that


class OfflinePolicy(Struct, frozen=True):
    """What judges calls, with what hooks inherit; of a gateway also at which server, and whose calls they are."""

    loaded: Loaded
    environ: Mapping[str, str]
    server: GatewayServer | None = None
    identity: Identity | None = None
    """Who calls; None: nobody in particular."""

    def session(self, session_id: str, name: str, cwd: str) -> Session:
        """A session as hooks see it; the name and the folder are for a policy that is not a gateway's."""
        if self.server is not None:
            return self.server.session(session_id, self.identity.principal if self.identity else None)
        project = os.environ.get("CLAUDE_PROJECT_DIR") or cwd
        return Session(session_id, name, cwd, project).in_project(self.loaded.project)


def gateway_named(options: Namespace, cwd: str) -> GatewayConfig | None:
    """The gateway's configuration that the options name; None: they name none. Raises UserError."""
    given = [f"--{name}" for name in _OPTIONS if getattr(options, name) is not None]
    if options.config is None and given:
        options.config = DEFAULT_GATEWAY
    if options.config is None or not is_gateway_file(os.path.join(cwd, options.config)):
        if given and options.config == DEFAULT_GATEWAY:
            raise UserError(f"{given[0]}: there is no {DEFAULT_GATEWAY}", "name the gateway's file: --config FILE")
        if given:
            hint = "name the gateway's file: --config gateway.toml"
            hint += "; here, --name says whose tools are meant" * ("--server" in given and hasattr(options, "name"))
            raise UserError(f"{given[0]} is for a gateway's file, and {options.config} has no server", hint)
        return None
    for name in ("name", "hooks", "project", "fail_closed"):
        if getattr(options, name, None):
            option = f"--{name.replace('_', '-')}"
            hint = "--server names the server" if name == "name" else f"remove {option}"
            raise UserError(f"{option} is not for a gateway's file, which says all that counts", hint)
    from ..config.gateway import load_gateway

    config = load_gateway(options.config, os.environ, cwd)
    if config.closed:
        raise ConfigError(config.path, config.closed, f"hookproxy policy update --config {options.config}")
    return config


def is_gateway_file(path: str) -> bool:
    """Whether there is a gateway's file at this path: by its name, or because it has the tables of one."""
    if os.path.basename(path) == "gateway.toml":
        return True
    if not path.endswith(".toml") or not os.path.isfile(path):  # a pipe could be read only once
        return False
    from ..model.toml import parse_toml

    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES)
        if b"gateway" not in data and b"servers" not in data:
            return False
        tables = parse_toml(data.decode())
    except (OSError, ValueError):
        return False
    return "gateway" in tables or "servers" in tables


def groups_named(options: Namespace) -> list[str] | None:
    """The groups that the command line gives to the user; None: it gives none. Raises UserError."""
    if options.groups is None:
        return None
    if options.user is None:
        raise UserError("--groups are the groups of a user", "name the user, too: --user NAME")
    names = (
        [] if options.groups == _NO_GROUPS else [name.strip().removeprefix("@") for name in options.groups.split(",")]
    )
    if not all(names):
        hint = f"write --groups developers,oncall, or --groups {_NO_GROUPS} for none"
        raise UserError(f"--groups {options.groups!r} has an empty name", hint)
    return names


def users_named(options: Namespace, config: GatewayConfig) -> tuple[Identity, ...]:
    """Who calls, once for each list of groups that the user may have; empty: nobody in particular. Raises UserError."""
    groups = groups_named(options)
    if options.user is None:
        return ()
    from ..gateway.identities import identities

    return identities(config, options.user, groups)


def user_named(options: Namespace, config: GatewayConfig) -> Identity | None:
    """Who calls; None: nobody in particular. Raises UserError, also for a user who may have several lists of groups."""
    users = users_named(options, config)
    if len(users) > 1:
        ways = " and ".join(f"{user.known_by} in {', '.join(user.principal.groups) or 'no group'}" for user in users)
        hint = f"say which: --groups {','.join(users[0].principal.groups) or _NO_GROUPS}"
        raise UserError(f"{options.user} is known in several ways: {ways}", hint)
    return users[0] if users else None


def server_named(options: Namespace, config: GatewayConfig) -> GatewayServer:
    """The server that is meant. Raises UserError."""
    from ..dialects.shared.hook_file import suggestion

    if options.server is None:
        if len(config.servers) == 1:
            return next(iter(config.servers.values()))
        raise UserError(
            f"{config.path} has several servers", f"name one: --server {' or --server '.join(config.servers)}"
        )
    if options.server not in config.servers:
        near = suggestion(options.server, config.servers) or f"it has {', '.join(config.servers)}"
        raise UserError(f"{config.path} has no server {options.server}", near)
    return config.servers[options.server]


def policy_at(server: GatewayServer, identity: Identity | None) -> OfflinePolicy:
    """What judges the calls of this user at a gateway's server; None: of nobody in particular."""
    from ..model.principal import Principal

    principal = identity.principal if identity else Principal("", "")
    return OfflinePolicy(server.loaded_for(principal), gateway_environment(), server, identity)


def gateway_environment() -> Mapping[str, str]:
    """What the hooks of a gateway inherit."""
    from ..gateway.hooks_account import environment_account
    from ..processes import service

    return service.environment(environment_account(), {})


def policy_named(options: Namespace, cwd: str) -> OfflinePolicy:
    """The policy that the options name, for verbs that run its hooks: those of a gateway as its `hooks_user`.

    Raises UserError, also for a user who may not use the server.
    """
    config = gateway_named(options, cwd)
    if config is None:
        return OfflinePolicy(load_named(options, cwd), os.environ)
    from ..gateway import hooks_account

    server, identity = server_named(options, config), user_named(options, config)
    if config.closed:
        raise closed(config)
    if identity is not None and not server.allows(identity.principal):
        raise not_admitted(config, server, identity)
    hooks_account.use(config)
    return policy_at(server, identity)


def require_policy(policies: Sequence[Loaded], what: str) -> None:
    """Raise UserError if nothing could ever refuse or see a call: that it is allowed then says nothing.

    `what` completes the sentence: there is nothing to try, or to replay with.
    """
    if any(loaded.has_policy for loaded in policies):
        return
    from .agent_entry import wrapped_elsewhere

    paths = ", ".join(loaded.path for loaded in policies if loaded.path)
    elsewhere = f"what an agent runs: {found}; or " if (found := wrapped_elsewhere()) else ""
    where = f" in {paths}" if paths else ""
    raise UserError(
        f"no policy is loaded{where}: no hook and no rule is configured, so there is nothing {what}",
        f"{elsewhere}name files with --config FILE or --hooks FILE; hookproxy init guard --user writes a first guard",
        EXIT_NO_POLICY,
    )


def closed(config: GatewayConfig) -> UserError:
    """The refusal of everything, while no signed policy may be used."""
    return UserError(f"{config.path}: nothing may pass: {config.closed}", "hookproxy policy status", EXIT_FINDINGS)


def not_admitted(config: GatewayConfig, server: GatewayServer, identity: Identity) -> UserError:
    """The refusal of a user whom the server's `allow` leaves out."""
    name = identity.principal.name
    problem = f"{config.path}: servers.{server.name}.allow leaves out {name}, who finds no server {server.name}"
    return UserError(problem, f'add "{name}" or a group of {name} to it', EXIT_FINDINGS)
