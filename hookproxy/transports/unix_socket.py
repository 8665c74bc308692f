"""Listens on a Unix socket that nobody else can put in place, and asks the kernel who has connected.

The kernel names the account that connected, whoever holds the descriptor later. Process ids are reused, so only the
account counts.
"""

from __future__ import annotations

import asyncio
import errno
import grp
import os
import socket
import stat
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

import anyio

from ..model.errors import UserError

_Result = TypeVar("_Result")

_PEER: Final = struct.Struct("iII")  # of SO_PEERCRED: process id, user id, group id
_NO_UID: Final = 0xFFFF_FFFF  # of a connection that no account of this machine has made, such as one over TCP
_SOL_LOCAL: Final = 0  # sys/un.h of macOS, as the next four
_LOCAL_PEERCRED: Final = 1
_LOCAL_PEERPID: Final = 2
_XUCRED: Final = struct.Struct("IIh2x64x")  # version, user id, number of groups; and the groups, which nobody asks for
_XUCRED_VERSION: Final = 0
_BACKLOG: Final = 1024  # connections that wait to be accepted: all agents of a box after a restart
_FIRST_INHERITED: Final = 3  # systemd passes its sockets from this descriptor on (sd_listen_fds)


def listen(path: str, mode: int, group: str | None) -> socket.socket:
    """Listen at this path, in place of a socket that nobody listens at any more. Raises UserError.

    Nobody else can write the folder, so that nobody can put another socket in the place of this one.
    """
    check_folder(os.path.dirname(path))
    _remove_abandoned(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    mask = os.umask(0o177)  # nobody else connects before the mode is set
    try:
        listener.bind(path)
        if group is not None:
            _give_to_group(path, group)
        os.chmod(path, mode)
        listener.listen(_BACKLOG)
    except (OSError, UserError) as error:
        listener.close()
        if isinstance(error, UserError):
            raise
        hint = f"let this account write the folder: chown {os.geteuid()} {os.path.dirname(path)}"
        hint = hint if isinstance(error, PermissionError) else "name another path"
        raise UserError(f"cannot listen at {path}: {error.strerror or error}", hint) from None
    finally:
        os.umask(mask)
    return listener


def inherited_listeners(environ: Mapping[str, str], pid: int) -> list[socket.socket]:
    """The sockets at which systemd listens for this process; empty if it is started in another way.

    The variables that announce them are for us alone: children must not get them. Raises UserError for one that is no
    Unix socket: nothing else says who connects.
    """
    if environ.get("LISTEN_PID") != str(pid) or not environ.get("LISTEN_FDS", "").isdecimal():
        return []
    sockets = [socket.socket(fileno=_FIRST_INHERITED + number) for number in range(int(environ["LISTEN_FDS"]))]
    for listening in sockets:
        if listening.family != socket.AF_UNIX or listening.type != socket.SOCK_STREAM:
            problem = f"descriptor {listening.fileno()} from systemd is not the stream socket of a path"
            raise UserError(problem, "ListenStream= names a path; HTTP addresses belong into gateway.listen")
        listening.set_inheritable(False)
        listening.setblocking(False)
    return sockets


async def accepted(
    listener: socket.socket, retry_seconds: float, on_failure: Callable[[str], None]
) -> AsyncIterator[socket.socket]:
    """Each connection that comes, which does not block, until it is cancelled.

    `on_failure` gets the reason if one cannot be accepted, for want of descriptors for example; then it is tried again
    after `retry_seconds`.
    """
    while True:
        await anyio.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except BlockingIOError:  # it has gone
            continue
        except OSError as problem:
            on_failure(problem.strerror or str(problem))
            await anyio.sleep(retry_seconds)
            continue
        connection.setblocking(False)
        yield connection


async def while_connected(connection: socket.socket, work: Callable[[], Awaitable[_Result]]) -> _Result:
    """The result of `work`. If the peer goes, or sends anything, it is cancelled, and ConnectionResetError raised."""
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as working:
        loop.add_reader(connection, working.cancel)
        try:
            return await work()
        finally:
            loop.remove_reader(connection)
    raise ConnectionResetError


def uid_of_peer(connection: socket.socket) -> int:
    """The user id of the account that has connected. Raises OSError."""
    if sys.platform == "darwin":
        return uid_of_xucred(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    else:  # noqa: RET505 - so that type checkers see two ways
        _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if uid == _NO_UID:
            raise OSError(errno.EINVAL, "the system does not say who has connected")
        return int(uid)


def process_of_peer(connection: socket.socket) -> int:
    """The id of the process that has connected; 0 if the system does not say it. Raises OSError."""
    if sys.platform == "darwin":
        return int(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID))
    else:  # noqa: RET505 - so that type checkers see two ways
        pid, _, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        return int(pid)


def uid_of_xucred(raw: bytes) -> int:
    """As `uid_of_peer`, from what a Mac says of a peer. Raises OSError."""
    if len(raw) != _XUCRED.size:
        raise OSError(errno.EINVAL, "the system does not say who has connected")
    version, uid, count = _XUCRED.unpack(raw)
    if version != _XUCRED_VERSION or count < 1:
        raise OSError(errno.EINVAL, "the system does not say who has connected")
    return int(uid)


def _give_to_group(path: str, group: str) -> None:
    """Give the socket to this group. Raises UserError."""
    try:
        os.chown(path, -1, group_id(group))
    except PermissionError:
        hint = f"put it into the group, or add SupplementaryGroups={group} to its systemd unit"
        problem = f"gateway.socket_group: the gateway's account is not in the group {group}"
        raise UserError(problem, hint) from None


def group_id(name: str) -> int:
    """The id of this group. Raises UserError if there is none."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        command = "dseditgroup -o create" if sys.platform == "darwin" else "groupadd --system"
        raise UserError(f"gateway.socket_group: there is no group {name}", f"{command} {name}") from None


def check_folder(folder: str) -> None:
    """Raise UserError unless the folder belongs to root or to us, and nobody else can write it."""
    try:
        state = os.stat(folder)
    except OSError as error:
        hint = f"create it: install -d -m 0755 {folder}; systemd does it with RuntimeDirectory=hookproxy"
        raise UserError(f"the folder of the socket, {folder}: {error.strerror}", hint) from None
    if state.st_uid not in (0, os.geteuid()):
        hint = "another account could replace the socket by its own"
        raise UserError(f"the folder of the socket, {folder}, belongs to user {state.st_uid}", hint)
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"others can write the folder of the socket, {folder}"
        if state.st_mode & stat.S_ISVTX:  # such as /tmp, which must stay as it is
            raise UserError(problem, "name a folder that only the gateway's account can write")
        raise UserError(problem, f"chmod go-w {folder}")


def check_replaceable(path: str) -> None:
    """Raise UserError if there is something else than a socket at this path."""
    try:
        state = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"cannot listen at {path}: {error.strerror}", "name another path") from None
    if not stat.S_ISSOCK(state.st_mode):
        raise UserError(f"cannot listen at {path}: there is something else", f"name another path, or: rm -i {path}")


def is_in_use(path: str) -> bool:
    """Whether somebody listens at this path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:  # somebody listens, and is busy
            return True
        except OSError:
            return False
    return True


def _remove_abandoned(path: str) -> None:
    """Remove a socket at which nobody listens. Raises UserError for anything else in its place."""
    check_replaceable(path)
    if is_in_use(path):
        hint = "end it (systemctl stop hookproxy), or name another path"
        raise UserError(f"cannot listen at {path}: a gateway listens there already", hint)
    with suppress(FileNotFoundError):
        os.unlink(path)
