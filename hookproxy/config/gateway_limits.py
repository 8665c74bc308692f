"""The limits of gateway.toml: which calls count for whom, and what users may have at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..model.errors import ConfigError
from ..model.limits import Measure
from ..model.sizes import size_in_bytes
from ..policy.bounds import Bound
from .errors import place_of
from .people import check_people
from .validate import dotted

if TYPE_CHECKING:
    from ..model.settings import Settings
    from ..trust.sources import Layer
    from .gateway_models import GatewayFile, GatewayLimit, GatewayTable, ServerTable

_DEFAULT_SESSIONS: Final = 32  # of one user

_SHARE_OF_MEMORY: Final = 0.75
"""Of what may be used, for servers: the rest is for the gateway, hooks and files that are read again and again."""


def check_limits(file: GatewayFile, path: str, text: str) -> list[tuple[str, str]]:
    """Raise ConfigError for a limit that says nothing, or that contradicts itself. Returns whom limits name,
    as `GatewayConfig.people`.
    """
    people: list[tuple[str, str]] = []
    if file.gateway.max_sessions_per_user is not None and file.gateway.per_user.sessions is not None:
        problem = "gateway.max_sessions_per_user and gateway.per_user.sessions are two names of the same"
        raise ConfigError(path, problem, "remove max_sessions_per_user")
    for within, table in _all_limits(file):
        key = f"{'.'.join(map(str, within[:-1]))}[{within[-1]}]"
        where = place_of(path, text, within)
        _check_limit(table, where, key)
        _check_servers(table, where, key, file.servers, is_of_server=within[0] == "servers")
        people += check_people(table.users, where, f"{key}.users")
    return people


def with_people(layer: Layer, tables: Sequence[GatewayLimit], within: tuple[str, ...] = ()) -> Layer:
    """The layer whose limits of calls know for whom they count. `within` are the names on the way to the tables."""
    by_key = {dotted((*within, "limits", number)): table for number, table in enumerate(tables)}
    limits = (
        replace(limit, users=tuple(table.users), servers=tuple(table.servers), together=table.together)
        for limit in layer.settings.limits
        for table in (by_key[limit.by],)
    )
    return replace(layer, settings=replace(layer.settings, limits=tuple(limits)))


def bounds(file: GatewayFile, available_memory: Callable[[], int]) -> Iterator[Bound]:
    """What may be had at a time. `available_memory` returns how many bytes all that we start may use."""
    gateway = file.gateway
    yield Bound("gateway.per_user", sessions_per_user(gateway), size_in_bytes(gateway.per_user.memory))
    yield Bound("gateway.total", gateway.total.sessions, _total_memory(gateway, available_memory), together=True)
    for name, server in file.servers.items():
        yield Bound(f"servers.{name}.max_sessions", server.max_sessions, servers=frozenset({name}), together=True)
    for within, table in _all_limits(file):
        if table.sessions is not None or table.memory is not None:
            yield Bound(
                f"{'.'.join(map(str, within[:-1]))}[{within[-1]}]",
                table.sessions,
                size_in_bytes(table.memory) if table.memory is not None else None,
                tuple(table.users),
                frozenset({str(within[1])} if within[0] == "servers" else table.servers),
                table.together,
            )


def sessions_per_user(gateway: GatewayTable) -> int:
    """How many sessions one user may have."""
    return gateway.per_user.sessions or gateway.max_sessions_per_user or _DEFAULT_SESSIONS


def _total_memory(gateway: GatewayTable, available_memory: Callable[[], int]) -> int:
    if gateway.total.memory is not None:
        return size_in_bytes(gateway.total.memory)
    return int(available_memory() * _SHARE_OF_MEMORY)


def _all_limits(file: GatewayFile) -> Iterator[tuple[tuple[str | int, ...], GatewayLimit]]:
    """All limits, each with the names on the way to it."""
    yield from ((("limits", number), table) for number, table in enumerate(file.limits))
    for name, server in file.servers.items():
        yield from ((("servers", name, "limits", number), table) for number, table in enumerate(server.limits))


def _check_limit(table: GatewayLimit, where: str, key: str) -> None:
    measures = [measure for measure in Measure if getattr(table, measure) is not None]
    if not measures and table.sessions is None and table.memory is None:
        raise ConfigError(
            where, f"{key} limits nothing", 'add calls = 100 and per = "minute", sessions = 4 or memory = "1GiB"'
        )
    for name in ("tool", "per", "window", "within"):
        if not measures and getattr(table, name) is not None:
            raise ConfigError(where, f"{key}.{name} is for limits of calls and bytes", "add calls = 100, or remove it")
    if measures and table.per is None and table.window is None and table.within is None:
        raise ConfigError(where, f"{key}.{measures[0]} needs a period", 'add per = "minute"')
    if table.together and (table.per == "session" or table.within is not None):
        raise ConfigError(
            where, f"{key}.together has no meaning for each session alone", "remove it, or choose another per"
        )


def check_store(settings: Settings) -> None:
    """Raise ConfigError for a limit that a gateway with a store does not count together with others."""
    for limit in settings.limits:
        if limit.measure in (Measure.SECONDS, Measure.RESULT_BYTES):
            why = f"{limit.measure} are counted by each gateway alone, and gateway.store is for several"
            raise ConfigError(limit.place or limit.by, why, "limit calls or bytes, or remove gateway.store")
    for inner in (settings.managed, settings.watched_rules):
        if inner is not None:
            check_store(inner)


def _check_servers(
    table: GatewayLimit, where: str, key: str, servers: Mapping[str, ServerTable], *, is_of_server: bool
) -> None:
    if is_of_server and table.servers:
        raise ConfigError(where, f"{key}.servers is for [[limits]]: this one is about one server", "remove it")
    for number, name in enumerate(table.servers):
        if name not in servers:
            raise ConfigError(where, f"{key}.servers[{number}]: there is no server {name}", _suggestion(name, servers))


def _suggestion(name: str, servers: Collection[str]) -> str:
    near = get_close_matches(name, servers, 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(servers)}"
