"""The bearer tokens of a token file that are in force now: whose token is this?

A new token is in force at once, and a revoked one for 10 milliseconds at most. A file that cannot be used changes
nothing: the tokens that were read before stay in force, the reason is reported once, and the file is tried again until
it can be used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Set
from time import monotonic, time
from typing import Final

from msgspec import Struct

from ..model.errors import ConfigError
from ..model.principal import Principal
from .token_file import digest_of, read_tokens

Signature = tuple[int, int, int, int]
"""Differs if the file has been replaced or changed."""

_LOOK_INTERVAL: Final = 0.01
"""Seconds between two looks at the file: nobody notices that a revoked token is in force for so long, and to look at
each of 10,000 requests a second would take one and a half hundredths of the time."""
_RETRY_INTERVAL: Final = 1.0  # seconds between two attempts to read a file that cannot be used: it may be large
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

    def __init__(
        self,
        path: str,
        report: Callable[[str], None],
        *,
        now: Callable[[], float] = time,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Read the file. Raises ConfigError if it cannot be used. `report` gets lines for people."""
        self._path = path
        self._report = report
        self._now = now
        self._clock = clock
        self._signature = self._signature_now()  # before the file is read: a change meanwhile is seen next time
        self.revoked: Set[bytes] = frozenset()
        """Digests of the tokens that the file has as revoked."""
        self._tokens = self._read()
        self.revoked_elsewhere: Set[bytes] = frozenset()
        self._found: dict[bytes, KnownToken] = {}  # by the token's text: those in force that were asked for
        self._look_at = 0.0
        self._failure = ""  # why the file cannot be used now
        self._failed: Signature | None = None  # the file that could not be used
        self._retry_at = 0.0

    def find(self, token: bytes) -> KnownToken | None:
        """The token if it is in the file now; it may have expired: `is_expired`.

        Its digest is looked up, not its text: the time that this takes says nothing about other tokens.
        """
        if self._clock() < self._look_at and (known := self._found.get(token)) is not None:
            return known  # it is in force, so the time that it takes to find it says nothing new
        self.refresh()
        digest = digest_of(token)
        known = None if digest in self.revoked_elsewhere else self._tokens.get(digest)
        if known is not None:
            self._found[token] = known
        return known

    def refuse(self, digests: Set[bytes]) -> None:
        """Refuse the tokens with these digests, although the file has them: other gateways have revoked them."""
        self.revoked_elsewhere |= digests
        self._found.clear()

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        self._look_at = self._clock() + _LOOK_INTERVAL
        if self._signature_now() != self._signature:
            self._reload()

    def knows(self, name: str) -> bool:
        """Whether a token is for a user of this name."""
        return any(known.principal.name == name for known in self._tokens.values())

    def knows_users_like(self, user: Principal) -> bool:
        """Whether this is a user of tokens of a file."""
        return user.id.startswith(_USER)

    def users_in_force(self) -> frozenset[Principal]:
        """The users for whom there is a token, each with the groups of one.

        One that has expired counts: its user may get another one, and go on.
        """
        revoked = self.revoked_elsewhere
        return frozenset(known.principal for digest, known in self._tokens.items() if digest not in revoked)

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
        signature = self._signature_now()
        if self._failure and signature == self._failed and self._clock() < self._retry_at:
            return
        try:
            self._tokens = self._read()
        except ConfigError as error:
            if error.message != self._failure:
                self._report(f"{error.message}; the tokens that were read before stay in force ({error.hint})")
            self._failure, self._failed = error.message, signature
            self._retry_at = self._clock() + _RETRY_INTERVAL
        else:
            self._signature, self._failure = signature, ""
            self._found.clear()

    def _read(self) -> dict[bytes, KnownToken]:
        file = read_tokens(self._path)
        if file.mode & stat.S_IROTH:
            self._report(f"{self._path}: everybody can read who has tokens (chmod o-r {self._path})")
        self.revoked = frozenset(record.digest for record in file.records.values() if record.revoked)
        return {
            record.digest: KnownToken(
                record.id,
                Principal(f"{_USER}{record.user}", record.user, tuple(sorted(record.groups))),
                float("inf") if record.expires is None else record.expires,
            )
            for record in file.records.values()
            if not record.revoked
        }
