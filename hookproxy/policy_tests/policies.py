"""The policy that cases are about: a hookproxy.toml with hook files, or a gateway.toml, as `run` and `serve` read it.

Nothing else of the machine decides a case: neither the administrator's files, nor the user's own configuration, nor the
trust store. Hooks keep the environment, because they need it, but for what other agents and runs of ours have set.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..config.load import Loaded, failing_closed, find_own_file, load_isolated
from ..hooks.idle import name_of
from ..hooks.watched import summary
from ..model.errors import ConfigError, UserError
from ..model.hooks import Session
from ..model.settings import Settings
from ..policy.matchers import plain_names
from ..trust.sources import FileContext
from .cases import RECORDED, Case
from .parts import Part

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer

DEFAULT_SERVER: Final = "server"
"""The server's name as hooks see it, if a case names none: as in `try`."""

STATE: Final = "XDG_STATE_HOME"
"""The variable with the folder of what is kept between runs."""

_FOREIGN: Final = ("CLAUDE", "HOOKPROXY_")
"""How variables begin that an agent or another run has set: they would change what hooks see."""


class NotAdmitted(Exception):
    """Who calls would find no such server; the text says why."""


class CasePolicy(Struct, frozen=True):
    """What judges a case."""

    loaded: Loaded
    environ: Mapping[str, str]
    session: Session


OtherPeople = tuple[Part, str, "PolicyUnderTest"]
"""A list of people, how it is changed, and the policy with the changed one."""


class PolicyUnderTest(Struct, frozen=True):
    """A policy, with a way to make what judges one case."""

    path: str
    """The file with it; empty: only hook files are named."""
    folder: str
    """Where cases run that need no folder of their own."""
    for_case: Callable[[Case, str], CasePolicy]
    """What judges a case that runs in this folder. Raises NotAdmitted, UserError."""
    all_loaded: Sequence[Loaded]
    """All that may judge a case: of a gateway, for each server, and for each list of people."""
    of_other_people: Callable[[Sequence[Case]], Iterable[OtherPeople]] = lambda _cases: ()
    """Of a gateway: policies that differ from it in a list of people, each for these cases."""

    @property
    def notes(self) -> Sequence[str]:
        """What does not do what its author wrote."""
        return list(dict.fromkeys(note for loaded in self.all_loaded for note in (*loaded.notes, *loaded.remarks)))

    @property
    def names(self) -> Sequence[str]:
        """The names of tools, and globs over them, that rules, limits, aliases and matchers have."""
        names: list[str] = []
        for loaded in self.all_loaded:
            settings = loaded.settings
            rules = (*settings.deny, *settings.ask, *settings.allow, *(limit.tool for limit in settings.limits))
            names += [*map(name_of, rules), *(alias.tool for alias in settings.aliases)]
            names += [name for group in loaded.groups for spec in group.hooks for name in plain_names(spec.matcher)]
        return list(dict.fromkeys(names))

    @property
    def only_watched(self) -> Sequence[str]:
        """What is only watched, in sentences: it decides no case."""
        return list(dict.fromkeys(summary(loaded.watched) for loaded in self.all_loaded if loaded.watched is not None))

    @property
    def is_empty(self) -> bool:
        """Nothing could ever refuse or see a call."""
        return not any(loaded.has_policy for loaded in self.all_loaded)


def isolated_environment(environ: Mapping[str, str], state: str) -> dict[str, str]:
    """The environment of hooks in tests; `state` is a new folder for what is kept between runs."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_FOREIGN)}
    return {**kept, STATE: state}


class FilesNamed(Struct, frozen=True):
    """The files with a policy, as the options of `run` name them."""

    config: str | None
    """A hookproxy.toml; None: there are only hook files."""
    hooks: tuple[str, ...] = ()
    project: str | None = None
    fail_closed: bool = False
    """Whatever the files say, a hook that fails refuses."""


def policy_of_files(
    files: FilesNamed, environ: Mapping[str, str], cwd: str, server: str = DEFAULT_SERVER
) -> PolicyUnderTest:
    """The policy of these files; `server` is where a case is that names none. Raises ConfigError, UserError."""
    loaded = load_isolated(files.config, files.hooks, environ, cwd, files.project)
    if files.fail_closed:
        loaded = failing_closed(loaded)
    return policy_of_loaded(loaded, environ, os.path.dirname(loaded.path) if loaded.path else cwd, server)


def policy_of_loaded(
    loaded: Loaded, environ: Mapping[str, str], folder: str, server: str = DEFAULT_SERVER
) -> PolicyUnderTest:
    """The policy of a configuration that is read already; cases run in the folder."""

    def for_case(case: Case, at: str) -> CasePolicy:
        if case.user and not case.file.endswith(RECORDED):
            hint = "remove user and groups, or name a gateway.toml"
            raise ConfigError(case.place, "user is for a gateway.toml", hint)
        session = Session(str(uuid.uuid4()), case.server or server, at, at).in_project(loaded.project)
        return CasePolicy(loaded, environ, session)

    return PolicyUnderTest(loaded.path, folder, for_case, [loaded])


def policy_of_gateway(path: str, environ: Mapping[str, str], cwd: str) -> PolicyUnderTest:
    """The policy of a gateway.toml. Raises ConfigError, UserError."""
    from ..config.gateway import load_gateway
    from ..gateway.hooks_account import environment_account
    from ..processes import service

    config = load_gateway(path, environ, cwd, isolated=True)
    return _of_gateway(config, {**service.environment(environment_account(), {}), STATE: environ.get(STATE, "")})


def _of_gateway(config: GatewayConfig, hook_environ: Mapping[str, str]) -> PolicyUnderTest:
    def for_case(case: Case, _at: str) -> CasePolicy:
        return _at_gateway(config, hook_environ, case)

    def of_other_people(cases: Sequence[Case]) -> Iterator[OtherPeople]:
        users = list(dict.fromkeys(case.user for case in cases if case.user))
        for part, change, changed in _with_other_people(config, users):
            yield part, change, _of_gateway(changed, hook_environ)

    folder = os.path.dirname(config.path)
    return PolicyUnderTest(config.path, folder, for_case, list(_of_all_people(config)), of_other_people)


def _with_other_people(config: GatewayConfig, users: list[str]) -> Iterator[tuple[Part, str, GatewayConfig]]:
    """The gateway with each list of people shorter by one, and with all who call in some case (`users`) in it."""
    for name, server in config.servers.items():
        key = f"servers.{name}.allow"
        for change, listed in _other_lists(server.table.users or (), users):
            table = replace(server.table, users=listed)
            servers = {**config.servers, name: replace(server, table=table)}
            yield Part("people", key, f"{config.path}: {key}"), change, replace(config, servers=servers)
    signed = [rules for server in config.servers.values() for rules, _ in server.signed_rules]
    tables = [entry for server in config.servers.values() for entry in server.rules_for_users]
    for number, (rules, places) in enumerate(tables):
        if (rules, places) in tables[:number] or rules in signed or rules.mode == "monitor":
            continue
        place = next(iter(places.values()), config.path)
        where, _, key = place.rpartition(": ")
        table_key = key.rpartition(".")[0]
        for change, listed in _other_lists(rules.users, users):
            others = {
                name: replace(
                    server,
                    rules_for_users=tuple(
                        (replace(rules, users=listed), places) if entry == (rules, places) else entry
                        for entry in server.rules_for_users
                    ),
                )
                for name, server in config.servers.items()
            }
            yield Part("people", f"{table_key}.users", where), change, replace(config, servers=others)


def _other_lists(listed: Sequence[str], users: list[str]) -> Iterator[tuple[str, list[str]]]:
    """How a list of people can be changed, with the changed one."""
    if listed:
        yield "for everybody", [*listed, *users]
    for name in listed if len(listed) > 1 else ():
        yield f"without {name}", [other for other in listed if other != name]


def _at_gateway(config: GatewayConfig, environ: Mapping[str, str], case: Case) -> CasePolicy:
    from ..model.principal import Principal

    server = _server(config, case)
    if config.closed:
        raise NotAdmitted(f"nothing may pass: {config.closed}")
    principal = Principal(f"user:{case.user}", case.user, tuple(sorted(set(case.groups)))) if case.user else None
    if principal is not None and not server.allows(principal):
        raise NotAdmitted(f"servers.{server.name}.allow leaves out {principal.name}")
    loaded = server.loaded_for(principal or Principal("", ""))
    return CasePolicy(loaded, environ, server.session(str(uuid.uuid4()), principal))


def _server(config: GatewayConfig, case: Case) -> GatewayServer:
    from ..dialects.shared.hook_file import suggestion

    if not case.server and len(config.servers) == 1:
        return next(iter(config.servers.values()))
    if not case.server:
        names = " or ".join(f'server = "{name}"' for name in config.servers)
        raise ConfigError(case.place, f"names none of the servers of {config.path}", f"add {names}")
    if case.server not in config.servers:
        near = suggestion(case.server, config.servers) or f"it has {', '.join(config.servers)}"
        raise ConfigError(case.place, f"{config.path} has no server {case.server!r}", near)
    return config.servers[case.server]


def _of_all_people(config: GatewayConfig) -> Iterator[Loaded]:
    """What judges at each server, with the rules for all lists of people."""
    for server in config.servers.values():
        settings: Settings = server.loaded.settings
        for rules, places in server.rules_for_users:
            settings = replace(
                settings,
                allow=(*settings.allow, *rules.allow),
                ask=(*settings.ask, *rules.ask),
                deny=(*settings.deny, *rules.deny),
                rule_places={**places, **settings.rule_places},
            )
        yield replace(server.loaded, settings=settings)
        for rules, places in server.rules_for_users:
            if rules.default is not None and rules.mode == "enforce":
                at = {**settings.rule_places, "default": places.get("default", "")}
                of_them = replace(settings, default_permission=rules.default, rule_places=at)
                yield replace(server.loaded, settings=of_them)


# --- which files ---


def policy_beside(path: str) -> str:
    """The hookproxy.toml or gateway.toml of a file with cases: in its folder, or in the one above; empty: none.

    Raises UserError if there are both.
    """
    folder = os.path.dirname(os.path.abspath(path))
    for place in (folder, os.path.dirname(folder)):
        files = [name for name in ("hookproxy.toml", "gateway.toml") if os.path.isfile(os.path.join(place, name))]
        if len(files) > 1:
            hint = f'name one: config = "{os.path.join(place, files[0])}" at the top of the file, or --config'
            raise UserError(f"{path}: {' and '.join(files)} are both in {place}", hint)
        if files:
            return os.path.join(place, files[0])
    return ""


def own_file(environ: Mapping[str, str], cwd: str) -> str:
    """The user's own hookproxy.toml; empty: there is none."""
    return find_own_file(FileContext(environ, cwd))
