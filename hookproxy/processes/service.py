"""Starts a server of the gateway: with an environment of its own, in a session of its own, as a certain account.

Should the gateway be killed, its whole session is ended (`guardian`).
"""

from __future__ import annotations

import grp
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from ..model.errors import UserError
from . import guardian
from .confined import Starts
from .platforms import SYSTEM_PATH, UTF_8
from .process import Server, close_all, find_program, prepare_for_children, why_not_started, widen_pipe

PATH: Final = SYSTEM_PATH
"""Where servers find programs, unless their `env` says otherwise."""

_RIGHTS: Final = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
"""What root needs to start and to end processes of other accounts, with the numbers of capabilities(7)."""

_PIPE_BYTES: Final = 262_144  # as under `run`: long results take a tenth less time


_NICER: Final = 5
"""Than the gateway: where processors are short, it gets three times as much as each server, and all users need it."""

_ENDS_BEFORE_US: Final = "500"
"""For the kernel's choice of a process to end (proc(5)): as if a server used half of the machine's memory more."""


def socket_pair() -> tuple[int, int]:
    """Two connected sockets, for a process of another account.

    A pipe has one lock for both of its ends. Whoever reads or writes it with memory that is not there yet (a file of a
    file system of his own, userfaultfd) holds that lock for as long as he likes, and stops us at the other end, even
    where we do not wait. The two ends of a socket have a lock each. Such a socket cannot be opened by a name such as
    /dev/stdin; agents that are written for Node start servers so, too.
    """
    one, other = socket.socketpair()
    return one.detach(), other.detach()


class Account(Struct, frozen=True):
    """An account of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def why_not_as_others() -> tuple[str, str]:
    """Why this process cannot start and end processes of other accounts, and what to do; both are empty if it can."""
    if os.geteuid() != 0:
        problem = f"needs a gateway that runs as root, and this one runs as {own_account().name}"
        return problem, "remove it, or User= in the systemd unit"
    try:
        with open("/proc/self/status") as status:
            has = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    except (OSError, StopIteration):  # not Linux, where root may do everything
        return "", ""
    if missing := [name for name, number in _RIGHTS.items() if not has >> number & 1]:
        hint = f"CapabilityBoundingSet={' '.join(_RIGHTS)} in the systemd unit"
        return f"needs a gateway with the right {' and '.join(missing)}, and this one runs without", hint
    return "", ""


def account_named(name: str) -> Account:
    """The account of this name. Raises UserError."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        command = "sysadminctl -addUser" if sys.platform == "darwin" else "useradd --system"
        raise UserError(f"there is no account {name}", f"create it: {command} {name}") from None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return Account(name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def own_account() -> Account:
    """The account that we run as."""
    uid = os.geteuid()
    try:
        return account_named(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return Account(str(uid), uid, os.getegid(), tuple(os.getgroups()), "/")


def how_to_let_read(path: str) -> str:
    """The commands by which root lets this account read a file, and nobody else."""
    try:
        group = grp.getgrgid(os.getegid()).gr_name
    except KeyError:  # the group has no name
        group = str(os.getegid())
    return f"chgrp {group} {path}; chmod 640 {path}"


def is_other(account: Account) -> bool:
    """True if this is not the account that we run as."""
    return account.uid != os.geteuid()


def environment(account: Account, values: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server: nothing of ours but these values."""
    names = {"USER": account.name, "LOGNAME": account.name}
    return {"PATH": PATH, "HOME": account.home, **names, **UTF_8, **values}


def start(  # noqa: PLR0913  # what a process is made of
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    account: Account,
    stderr: int,
    inherited: Sequence[int] = (),
    start_process: Starts | None = None,
) -> Server:
    """Start the server. Its standard error goes to the descriptor `stderr`, and it inherits those of `inherited`.

    `start_process` may start it from a thread that has confined itself (`confined`). Raises UserError.
    """
    prepare_for_children()
    program = find_program(argv[0], env.get("PATH"), cwd)
    if program is None:
        problem = f"the gateway cannot start the server: command not found: {argv[0]}"
        raise UserError(problem, "its administrator must install it, or give its full path")
    other = is_other(account)
    new_pair = socket_pair if other else os.pipe
    stdin, to_server = new_pair()
    try:
        from_server, stdout = new_pair()
    except OSError:
        close_all((stdin, to_server))
        raise
    if not other:
        widen_pipe(from_server, _PIPE_BYTES)
    try:
        guardian.prepare_for_hook()

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                list(argv),
                executable=os.path.join(cwd, program),
                env=dict(env),
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                user=account.uid if other else None,
                group=account.gid if other else None,
                extra_groups=account.groups if other else None,
                pass_fds=inherited,
            )

        process = start() if start_process is None else start_process(start)
    except (OSError, ValueError) as error:
        os.close(to_server)
        os.close(from_server)
        why = why_not_started(error, argv[0], cwd)
        problem = f"the gateway cannot start the server: {why}"
        raise UserError(problem, "its administrator must change its command, cwd or user") from None
    finally:
        os.close(stdin)
        os.close(stdout)
    _let_it_yield(process.pid)
    guardian.guard_hook(process.pid)
    process.returncode = 0  # the session waits for it; Popen must not, and must not warn
    return Server(process.pid, to_server, from_server)


def _let_it_yield(pid: int) -> None:
    """Let a server, and what it starts, wait for the gateway's work, and be the first to end where memory is short.

    A server of another account stays as it is: that needs rights which the gateway does not have.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pid, min(os.getpriority(os.PRIO_PROCESS, 0) + _NICER, 19))
    with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as score:
        score.write(_ENDS_BEFORE_US)
