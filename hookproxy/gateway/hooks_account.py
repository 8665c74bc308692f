"""The account as which hooks of a gateway run (`gateway.hooks_user`).

Law: a hook that should run as another account never runs as the gateway's. What makes that impossible stops the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..model.errors import ConfigError, UserError
from ..processes import service, spawn
from ..processes.process import SHELL
from ..processes.short_command import exit_status

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig
    from ..model.hooks import HookSpec
    from ..processes.service import Account

_CHECK: Final = '[ -r "$1" ] && [ -x "$1" ]'
_CHECK_SECONDS: Final = 10.0  # a few system calls for each folder; one on a network that is away would take for ever
_STARTED: Final = ("command", "warm", "worker", "interceptor")
"""Types of hooks that are processes. Others are requests that the gateway sends, or run inside of it (`python`)."""


def use(config: GatewayConfig) -> None:
    """Start hooks as `gateway.hooks_user` from now on. Raises UserError if that is impossible.

    The account itself cannot change while the gateway runs: a process may still run for the former one.
    """
    name = config.gateway.hooks_user
    present = spawn.hooks_account()
    if name is None:
        if present is not None:
            raise _error(config, "was removed", "restart the gateway")
        return
    try:
        account = service.account_named(name)
    except UserError as unknown:
        raise ConfigError(config.path, f"gateway.hooks_user: {unknown.message}", unknown.hint) from None
    if present is not None and account.uid != present.uid:
        raise _error(config, f"names another account than {present.name}", "restart the gateway")
    problem, hint = service.why_not_as_others()
    if problem:
        raise _error(config, problem, hint)
    if account.uid == 0:
        raise _error(config, "names root, as whom this gateway runs", "name an account that may do nothing else")
    _check_hooks(config, account)
    spawn.start_as(account)


def _check_hooks(config: GatewayConfig, account: Account) -> None:
    """Raise ConfigError for the first hook that cannot run as this account."""
    folders = set[str]()
    for hook, folder in _hooks(config):
        if hook.type == "python":
            problem = f"cannot hold for the hook {hook.target}, which runs inside of the gateway (type python)"
            raise _error(config, problem, "make it a command or a worker")
        folders.add(folder)
    for folder in sorted(folders):
        # only the system itself knows who may enter a folder: it may have access lists
        command, env = (SHELL, "-c", _CHECK, SHELL, folder), service.environment(account, {})
        status = exit_status(command, "/", env, _CHECK_SECONDS, account)
        if status is None:
            raise _error(config, f"is {account.name}, as whom nothing can be started", "the gateway needs CAP_SETUID")
        if status:
            problem = f"is {account.name}, who cannot read {folder}, in which hooks run"
            raise _error(config, problem, "let the account read the folder and enter all folders above it")


def environment_account() -> Account:
    """The account whose HOME, USER and LOGNAME hooks get."""
    return spawn.hooks_account() or service.own_account()


def _error(config: GatewayConfig, problem: str, hint: str) -> ConfigError:
    return ConfigError(config.path, f"gateway.hooks_user {problem}", hint)


def _hooks(config: GatewayConfig) -> Iterator[tuple[HookSpec, str]]:
    """The hooks of all servers that the account matters for, each with its folder."""
    for server in config.servers.values():
        for group in server.loaded.all_groups:
            for hook in group.hooks:
                if hook.type == "python" or hook.type in _STARTED:
                    yield hook, hook.cwd or server.cwd
