"""What stops `serve` before it listens, as one list: `check` looks at the same, and listens nowhere.

Law: what `check` finds nothing wrong with starts, unless something outside of the files is in its way, such as an
address that is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ..model.errors import ConfigError, UserError
from . import hooks_account
from .authentication import authenticator, tokens_of_file
from .http_listeners import http_addresses, networks, probes_address, tls_context
from .metrics import Metrics
from .start_problems import check_servers
from .unix_listeners import check_places

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig


def _report_nothing(_text: str) -> None:
    """What is no error is reported when the gateway runs."""


def _check_users(config: GatewayConfig) -> None:
    """Who connects over HTTP can be known."""
    if http_addresses(config):
        authenticator(config, tokens_of_file(config, _report_nothing), _report_nothing)


def _check_store(config: GatewayConfig) -> None:
    table = config.gateway.store
    if table is not None:
        import os

        from .store import Store

        Store(table, os.path.dirname(config.path), _report_nothing, Metrics())


def _check_audit_export(config: GatewayConfig) -> None:
    if config.gateway.audit_export is not None:
        from .audit_export import AuditExport

        AuditExport(config, _report_nothing, Metrics())


_Check = Callable[["GatewayConfig"], object]
"""Raises UserError."""

_OF_POLICY: Final[tuple[_Check, ...]] = (hooks_account.use, check_servers)
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
    for check in (*_OF_POLICY, *_OF_LISTENING, check_places):  # the last one's sockets may be systemd's
        try:
            _run(check, config)
        except ConfigError as problem:
            if problem.message not in seen:
                seen.add(problem.message)
                yield problem


def _run(check: _Check, config: GatewayConfig) -> None:
    """Raise ConfigError that names the file, whatever the check raises."""
    try:
        check(config)
    except ConfigError:
        raise
    except UserError as problem:
        raise ConfigError(config.path, problem.message, problem.hint) from None
