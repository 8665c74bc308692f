"""Starts the process of a server: in its sandbox, or, where the administrator says so, without one.

Law: a server that has a sandbox is never started without it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..config.sandbox_profiles import own_value
from ..config.server_sandbox import binds_cwd
from ..model.errors import UserError
from ..model.sizes import shown_size
from ..processes import process, service
from ..sandbox.available import Landlock
from ..sandbox.bubblewrap import TEMPORARY
from ..sandbox.cgroups import find_groups
from ..sandbox.folders import SYSTEM, is_within
from ..sandbox.installation import find_installation
from ..sandbox.places import own_folder
from ..sandbox.prepare import Prepared, Task, mechanism, prepared
from ..sandbox.table import Layout, Sandbox
from ..trust.sources import state_folder

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..processes.process import Server
    from ..processes.service import Account
    from ..sandbox.cgroups import Groups


def check(config: GatewayConfig) -> None:
    """Raise UserError if servers should run in a sandbox and there is none."""
    names = [server.name for server in config.servers.values() if server.sandbox is not None]
    if not names:
        return
    try:
        mechanism(config.gateway.sandbox)
    except UserError as problem:
        several = "s" if len(names) > 1 else ""
        why = f"{config.path}: there is no sandbox for the server{several} {', '.join(names)}: {problem.message}"
        hint = f'{problem.hint}; or, where a server may do whatever the gateway can, sandbox = "off" in its table'
        raise UserError(why, hint) from None


def notes(config: GatewayConfig) -> Iterator[str]:
    """A sentence on each server that runs without a sandbox, or with a profile of one, without a full stop."""
    for server in config.servers.values():
        if server.table.command is not None and server.sandbox is None:
            account = f"the account {server.table.user}" if server.table.user else "the gateway's account"
            yield f"{config.path}: servers.{server.name} runs without a sandbox: it can do whatever {account} can"
        if (profile := server.profile) is not None:
            opened = profile.opened or "nothing is here that it opens"
            yield f"{config.path}: servers.{server.name}: its sandbox has the profile {profile.name}: {opened}"
            for path in profile.left_out:
                yield f"{config.path}: servers.{server.name}: the profile {profile.name} does not open {path}"


limit_groups = cache(find_groups)
"""Where each server process has a cgroup, or why none has. It is looked for late, because it moves this process."""


def limits_kind(config: GatewayConfig) -> str:
    """What holds servers in sandboxes to their memory and processes: "cgroup", or "rlimits"; empty: there are none."""
    if all(server.sandbox is None for server in config.servers.values()):
        return ""
    return "cgroup" if limit_groups()[0] is not None else "rlimits"


class Started(Struct, frozen=True):
    """A server process that runs."""

    server: Server
    ended: Callable[[], str] = lambda: ""
    """To be called when it has ended; it may say why, as a sentence without a full stop."""
    watched: Sandbox | None = None
    """Whose limits must be watched from here; None: something else holds them, or there are none."""


def kinds(config: GatewayConfig) -> dict[str, str]:
    """What confines each server that has a process: the name of a sandbox, or `off`."""
    processes = [server for server in config.servers.values() if server.table.command is not None]
    if all(server.sandbox is None for server in processes):
        return {server.name: "off" for server in processes}
    kind = "landlock" if isinstance(mechanism(config.gateway.sandbox), Landlock) else "bubblewrap"
    return {server.name: "off" if server.sandbox is None else kind for server in processes}


def start(server: GatewayServer, user: str, account: Account, values: Mapping[str, str], stderr: int) -> Started:
    """Start a process for this user (empty: for all), with these variables. Raises UserError.

    Its standard error goes to the descriptor `stderr`.
    """
    command = server.table.command or ()
    try:
        if server.sandbox is None:
            return Started(service.start(command, service.environment(account, values), server.cwd, account, stderr))
        return _start_confined(server, server.sandbox, user, account, values, stderr)
    except UserError as problem:
        from ..secrets.mask import Masking  # its words may be in the command line, and logs keep the error

        start_of_text = "the gateway cannot start the server: "
        why = Masking().text(problem.message.removeprefix(start_of_text))
        raise UserError(start_of_text + why, problem.hint) from None


def _start_confined(
    server: GatewayServer, sandbox: Sandbox, user: str, account: Account, values: Mapping[str, str], stderr: int
) -> Started:
    home = _home(server, user, account)
    passed = {name: own_value(value, home) for name, value in sandbox.variables.items()}
    passed |= {name: os.environ[name] for name in sandbox.env if name in os.environ}
    env = {**passed, **service.environment(account, {"HOME": home, **values})}
    writable = (*sandbox.write, *_of_its_own(server, home))
    around = server.surroundings
    around = replace(around, writable=(*around.writable, *writable), shown=(*sandbox.read, *writable))
    installed = find_installation(server.table.command or (), env.get("PATH"), server.cwd, around)
    layout = Layout(
        server.real_cwd if server.table.cwd is not None else home,
        (*installed.paths, *sandbox.read),
        writable,
        {path: os.path.isdir(path) for path in _hidden(server, installed.paths) if os.path.exists(path)},
        installed.links,
    )
    own = [home] if home != TEMPORARY else []
    is_other = service.is_other(account)
    groups, _ = limit_groups()
    task = Task(
        sandbox, layout, installed.command, env, around.protected, account.uid, own, is_other, groups is not None
    )
    with prepared(task, server.mechanism) as ready:
        if groups is None:
            return Started(_start(ready, account, stderr), watched=sandbox)
        return _start_in_group(groups, sandbox, lambda: _start(ready, account, stderr))


def _start(ready: Prepared, account: Account, stderr: int) -> Server:
    return service.start(ready.command, ready.env, ready.cwd, account, stderr, ready.inherited, ready.start)


def _start_in_group(groups: Groups, sandbox: Sandbox, start: Callable[[], Server]) -> Started:
    """Start a process that waits until it is in its group. Raises UserError: without its group it does not go on."""
    try:
        group = groups.make(sandbox)
    except OSError as error:
        raise UserError(f"its cgroup cannot be made: {error}", "the gateway's administrator must look at it") from None
    try:
        server = start()
    except BaseException:
        groups.end_group(group)
        raise
    try:
        group.put_process(server.pid, server.to_server)
    except OSError as error:
        process.close_all((server.to_server, server.from_server))
        process.signal_group(server.pid, signal.SIGKILL)
        process.reap_killed(server.pid)
        groups.end_group(group)
        raise UserError(
            f"it cannot be put into its cgroup: {error}", "it may have ended at once; see the log"
        ) from None

    def ended() -> str:
        too_large = group.was_too_large()
        groups.end_group(group)
        return f"it used more than {shown_size(sandbox.memory)} of memory (sandbox.memory)" if too_large else ""

    return Started(server, ended)


def _home(server: GatewayServer, user: str, account: Account) -> str:
    """The folder of its own; where there is no place for it, that for temporary files, which ends with the process.

    An account that is not the gateway's cannot enter the gateway's state.
    """
    with suppress(OSError):
        state = state_folder(os.environ, os.environ.get("HOME") or service.own_account().home)
        if state and not service.is_other(account):
            return own_folder(state, server.name, user)
    return TEMPORARY


def _of_its_own(server: GatewayServer, home: str) -> Iterator[str]:
    """The folders besides those that its sandbox names which it writes."""
    if home != TEMPORARY:
        yield home
    if binds_cwd(server):
        yield server.real_cwd


def _hidden(server: GatewayServer, shown: list[str]) -> list[str]:
    """What is the gateway's own in folders that this server sees."""
    own = server.surroundings.protected
    return [path for path in own if any(is_within(path, folder) and path != folder for folder in (*SYSTEM, *shown))]
