"""The stored logins: a file for each server, readable only by its owner; the secrets in it, or in the system's keyring.

Files are replaced atomically. Whoever renews or removes a login holds the lock of its server, so that several runs
renew it once, and none of them overwrites what another has stored. The lock is a file beside the login's.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Final

import anyio
import msgspec

from ..files.open_flags import READ_FILE
from ..files.replace import replace_file
from ..model.errors import ConfigError, UserError, file_hint, not_written
from .stored_login import Secrets, StoredLogin
from .system_keyring import SystemKeyring, find_keyring

LOCK_TIMEOUT: Final = 45.0
"""Seconds to wait for the lock: longer than `credentials.RENEWAL_TIMEOUT`, for which another run may hold it."""

Signature = tuple[int, int, int, int]
"""Differs if a file has been replaced or changed."""

_LOCK_POLL: Final = 0.02  # seconds between two tries to take the lock: a renewal takes 50 to 500 ms
_FOLDER_MODE: Final = 0o700
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_SIZE: Final = 1_000_000  # bytes of a login's file: far more than all tokens together may have
_ENDING: Final = ".json"
_HINT: Final = "remove it, and log in again"


class LoginStore:
    """The logins in a folder, which is created when the first one is stored."""

    def __init__(self, folder: str, keyring: Callable[[], SystemKeyring | None] = find_keyring) -> None:
        self._folder = folder
        self._find_keyring = keyring
        self._paths: dict[str, str] = {}  # by server: each message to a server asks for its file

    def path(self, server: str) -> str:
        """The file of the login at this server."""
        if (path := self._paths.get(server)) is None:
            path = os.path.join(self._folder, sha256(server.encode()).hexdigest()[:32] + _ENDING)
            self._paths[server] = path
        return path

    def signature(self, server: str) -> Signature | None:
        """The signature of this server's file; None if there is none. It costs one system call."""
        try:
            state = os.stat(self.path(server), follow_symlinks=False)
        except OSError:
            return None
        return (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)

    async def read(self, server: str) -> StoredLogin | None:
        """The login at this server with its secrets; None if there is none.

        Raises UserError if the file or its folder could have been written by others, or the keyring cannot be read.
        """
        login = self.read_without_secrets(server)
        if login is None or login.secrets is not None:
            return login
        text = await anyio.to_thread.run_sync(self._from_keyring, server, abandon_on_cancel=True)  # it may ask a person
        if text is None:
            return None
        try:
            return msgspec.structs.replace(login, secrets=msgspec.json.decode(text, type=Secrets))
        except msgspec.MsgspecError:
            raise UserError("the system's keyring has an unreadable entry for hookproxy", "log in again") from None

    async def write(self, login: StoredLogin, *, keyring: bool) -> None:
        """Store the login in place of the one at its server. The caller holds the lock. Raises UserError."""
        system = await anyio.to_thread.run_sync(self._find_keyring) if keyring else None
        if system is not None and login.secrets is not None:
            text = msgspec.json.encode(login.secrets).decode()
            await anyio.to_thread.run_sync(system.set, login.server, text)
            login = msgspec.structs.replace(login, secrets=None)
        else:
            await self._forget_in_keyring(login.server)
        self._write_file(self.path(login.server), msgspec.json.format(msgspec.json.encode(login), indent=1))

    async def delete(self, server: str) -> bool:
        """Remove the login at this server. The caller holds the lock. False: there was none. Raises UserError."""
        path = self.path(server)
        await self._forget_in_keyring(server)
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise not_written(path, error, "cannot be removed") from None
        return True

    def read_without_secrets(self, server: str) -> StoredLogin | None:
        """The login at this server, without what is in the keyring; None if there is none. Raises UserError."""
        login = self._read_file(self.path(server))
        return login if login is not None and login.server == server else None

    def in_keyring(self, server: str) -> bool:
        """True if the secrets of this login are in the system's keyring. Raises UserError."""
        login = self.read_without_secrets(server)
        return login is not None and login.secrets is None

    def all(self) -> tuple[list[tuple[str, StoredLogin]], list[tuple[str, ConfigError]]]:
        """All logins with their files, without what is in the keyring; and the files that cannot be used, with why.

        Raises UserError if the folder cannot be read.
        """
        try:
            names = sorted(os.listdir(self._folder))
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        except OSError as error:
            hint = file_hint(self._folder, error)
            raise UserError(f"{self._folder}: cannot be read: {error.strerror}", hint) from None
        logins, unusable = [], []
        for path in (os.path.join(self._folder, name) for name in names if name.endswith(_ENDING)):
            try:
                login = self._read_file(path)
            except ConfigError as error:
                unusable.append((path, error))
            else:
                logins += [(path, login)] if login else []
        return sorted(logins, key=lambda pair: pair[1].server), unusable

    @asynccontextmanager
    async def lock(self, server: str) -> AsyncIterator[None]:
        """Hold the lock of this server's login among all processes. Raises UserError, also if it is not free in time.

        On cancel while it waits, nothing has happened.
        """
        fd = self._open_lock(self.path(server).removesuffix(_ENDING) + ".lock")
        try:
            with anyio.move_on_after(LOCK_TIMEOUT) as waiting:
                while not _try_lock(fd):  # noqa: ASYNC110  # the system has no event for it
                    await anyio.sleep(_LOCK_POLL)
            if waiting.cancelled_caught:
                raise UserError(
                    f"another process has been renewing the login for {LOCK_TIMEOUT:.0f} s", "end it, and try again"
                )
            yield
        finally:
            os.close(fd)

    async def _forget_in_keyring(self, server: str) -> None:
        """Remove the secrets of this login from the keyring, if they are there. Raises UserError."""
        try:
            if not self.in_keyring(server):
                return
        except ConfigError:  # a file that cannot be read is replaced or removed like others
            return
        system = await anyio.to_thread.run_sync(self._find_keyring)
        if system is None:
            raise UserError("the tokens are in a system keyring, and there is none here", "install hookproxy[keyring]")
        await anyio.to_thread.run_sync(system.delete, server)

    # --- files ---

    def _from_keyring(self, server: str) -> str | None:
        system = self._find_keyring()
        if system is None:
            raise UserError("there is no system keyring here, which has the tokens", "hookproxy login --no-keyring URL")
        return system.get(server)

    def _read_file(self, path: str) -> StoredLogin | None:
        try:
            opened = os.open(path, READ_FILE)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ConfigError(path, f"cannot be read: {error.strerror}", _HINT) from None
        with os.fdopen(opened, "rb") as file:
            self._check_folder()
            _check_file(path, os.fstat(opened))
            raw = file.read(_MAX_SIZE)
        try:
            return msgspec.json.decode(raw, type=StoredLogin)
        except msgspec.MsgspecError:
            raise ConfigError(path, "is not a stored login of hookproxy", _HINT) from None

    def _write_file(self, path: str, document: bytes) -> None:
        self._make_folder()
        try:
            replace_file(path, document)
        except OSError as error:
            raise not_written(path, error) from None

    def _make_folder(self) -> None:
        try:
            os.makedirs(self._folder, mode=_FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise not_written(self._folder, error, "cannot be used") from None
        self._check_folder()

    def _check_folder(self) -> None:
        """Raise ConfigError if others could put files into the folder."""
        state = os.stat(self._folder, follow_symlinks=False)
        if not stat.S_ISDIR(state.st_mode):
            raise ConfigError(
                self._folder, "is not a folder (a link is not followed)", "move it away, and log in again"
            )
        _check(self._folder, state, stat.S_IWGRP | stat.S_IWOTH, "is writable by others", "go-w")

    def _open_lock(self, path: str) -> int:
        self._make_folder()
        try:
            fd = os.open(path, _LOCK, 0o600)
        except OSError as error:
            raise not_written(path, error, "cannot be opened") from None
        return fd


def _check_file(path: str, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise ConfigError(path, "is not a regular file", _HINT)
    _check(path, state, 0o077, "can be read or written by others", "go=")


def _check(place: str, state: os.stat_result, forbidden: int, what: str, mode: str) -> None:
    if state.st_uid != os.geteuid():
        raise ConfigError(place, "belongs to another user, so its content cannot be trusted", _HINT)
    if state.st_mode & forbidden:
        raise ConfigError(place, what, f"chmod {mode} {place} and log in again: somebody may have used it")


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
