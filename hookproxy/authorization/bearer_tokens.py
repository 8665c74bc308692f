"""The bearer tokens of a token file that are in force now: whose token is this?

A change of the file is in force at the next request. A file that cannot be used changes nothing: the tokens that were
read before stay in force, and the reason is reported once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from time import time
from typing import Final

from msgspec import Struct

from ..model.errors import ConfigError
from ..model.principal import Principal
from .token_file import digest_of, read_tokens

Signature = tuple[int, int, int, int]
"""Differs if the file has been replaced or changed."""

_USER: Final = "token:"  # before the user in the id of a principal: ids of other origins begin differently


class KnownToken(Struct, frozen=True):
    """A token in force, or one that has expired."""

    id: str
    """The one in the file, for logs."""
    principal: Principal
    expires: float
    """Seconds since 1970; infinite: never."""


class BearerTokens:
    """The tokens of one file."""

    def __init__(self, path: str, report: Callable[[str], None], *, now: Callable[[], float] = time) -> None:
        """Read the file. Raises ConfigError if it cannot be used. `report` gets lines for people."""
        self._path = path
        self._report = report
        self._now = now
        self._signature = self._signature_now()
        self._tokens = self._read()

    def find(self, token: bytes) -> KnownToken | None:
        """The token if it is in the file now; it may have expired: `is_expired`.

        Its digest is looked up, not its text: the time that this takes says nothing about other tokens.
        """
        if self._signature_now() != self._signature:  # one system call, 1 µs: a revoked token ends at once
            self._reload()
        return self._tokens.get(digest_of(token))

    def is_expired(self, token: KnownToken) -> bool:
        """Whether its time is over."""
        return self._now() >= token.expires

    def _signature_now(self) -> Signature | None:
        try:
            state = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return None
        return (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)

    def _reload(self) -> None:
        self._signature = self._signature_now()  # before the file is read: a change meanwhile is seen next time
        try:
            self._tokens = self._read()
        except ConfigError as error:
            self._report(f"{error.message}; the tokens that were read before stay in force ({error.hint})")

    def _read(self) -> dict[bytes, KnownToken]:
        found = read_tokens(self._path)
        if found.mode & stat.S_IROTH:
            self._report(f"{self._path}: everybody can read who has tokens (chmod o-r {self._path})")
        return {
            record.digest: KnownToken(
                record.id,
                Principal(f"{_USER}{record.user}", record.user, record.groups),
                float("inf") if record.expires is None else record.expires,
            )
            for record in found.records.values()
        }
