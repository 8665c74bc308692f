"""What stops `serve` before it listens, as one list: `check` looks at the same, and listens nowhere.

Law: what `check` finds nothing wrong with starts, unless something outside of the files is in its way, such as an
address that is in use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ..model.errors import ConfigError, UserError
from . import hooks_account, server_process
from .authentication import authenticator, tokens_of_file
from .http_listeners import addresses_in_use, check_hosts, http_addresses, networks, probes_address, tls_context
from .metrics import Metrics
from .secrets import read_secrets, repair
from .start_problems import check_servers
from .unix_listeners import check_places, places_to_watch

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig


def _report_nothing(_text: str) -> None:
    """What is not an error is reported when the gateway runs."""


def _check_users(config: GatewayConfig) -> None:
    """Who connects over HTTP can be known."""
    if http_addresses(config):
        authenticator(config, tokens_of_file(config, _report_nothing), _report_nothing)


def _check_store(config: GatewayConfig) -> None:
    table = config.gateway.store
    if table is not None:
        from .store import Store

        _check_secret("gateway.store.password", table.password)
        Store(table, os.path.dirname(config.path), _report_nothing, Metrics())


def _check_secret(key: str, path: str | None) -> None:
    """Raise UserError if this secret cannot be read; None: there is none."""
    try:
        read_secrets({} if path is None else {key: path})
    except UserError as problem:
        raise UserError(f"{key}: {problem.message}", repair(path or "")) from None


def _check_audit_export(config: GatewayConfig) -> None:
    if config.gateway.audit_export is not None:
        from .audit_export import AuditExport

        _check_secret("gateway.audit_export.token", config.gateway.audit_export.token)
        AuditExport(config, _report_nothing, Metrics())


def _check_hidden_secrets(config: GatewayConfig) -> None:
    if any(server.loaded.settings.secrets is not None for server in config.servers.values()):
        from .finders import check_secrets  # for such configurations only

        check_secrets(config)


_Check = Callable[["GatewayConfig"], object]
"""Raises UserError."""

_OF_POLICY: Final[tuple[_Check, ...]] = (hooks_account.use, check_servers, _check_hidden_secrets)
"""What is looked at again with each reload."""

_OF_LISTENING: Final[tuple[_Check, ...]] = (
    http_addresses, networks, tls_context, probes_address, _check_users, _check_store, _check_audit_export,
)  # fmt: skip


def check_policy(config: GatewayConfig) -> None:
    """Raise ConfigError for the first thing that makes this policy impossible."""
    for check in _OF_POLICY:
        _run(check, config)


def check_listening(config: GatewayConfig) -> None:
    """Raise ConfigError for the first thing that keeps the gateway from listening, or from knowing who connects."""
    for check in _OF_LISTENING:
        _run(check, config)


def start_errors(config: GatewayConfig) -> Iterator[ConfigError]:
    """Everything that would stop `serve`, one after another; each one once."""
    seen = set[str]()
    for check in (*_OF_POLICY, server_process.check, *_OF_LISTENING, check_places, check_hosts):
        try:
            _run(check, config)
        except ConfigError as problem:
            if problem.message not in seen:
                seen.add(problem.message)
                yield problem


def start_notes(config: GatewayConfig) -> Iterator[str]:
    """What may be as it should be: because it is chosen, this gateway runs, or systemd will do it. There must be no
    error.
    """
    yield from server_process.notes(config)
    yield from places_to_watch(config)
    yield from addresses_in_use(config)
    said: list[str] = []
    tokens_of_file(config, said.append)
    yield from said


def _run(check: _Check, config: GatewayConfig) -> None:
    """Raise ConfigError that names the file, whatever the check raises."""
    try:
        check(config)
    except ConfigError:
        raise
    except UserError as problem:
        raise ConfigError(config.path, problem.message.removeprefix(f"{config.path}: "), problem.hint) from None
