"""Publishes to other gateways which tokens were revoked here, and learns which ones were revoked there.

Law: a revocation that was learned is never forgotten while the process lives, whatever happens to the store. A store
that invents them takes no memory without a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from ..network.store_responses import MOST_VALUES
from ..policy.shared_state import StoreUnavailable

if TYPE_CHECKING:
    from ..authorization.bearer_tokens import BearerTokens
    from .store import Store

_LOOK_SECONDS: Final = 1.0
"""How often it is looked: so soon a token ends at all gateways. One command each time, which is answered in 0.1 ms."""

_DIGEST_BYTES: Final = 32  # of SHA-256


class Revocations:
    """The revoked tokens of all gateways with the same store."""

    def __init__(self, store: Store, tokens: BearerTokens) -> None:
        self._store = store
        self._tokens = tokens
        self._key = f"{store.prefix}revoked"
        self._in_store: frozenset[bytes] = frozenset()

    async def share(self) -> None:
        """Look again and again. Runs until it is cancelled."""
        while True:
            await self.look()
            await anyio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Publish and learn what is new. While the store is away, what is known already stays in force."""
        self._tokens.refresh()
        if self._store.failure:
            return
        try:
            count = self._store.checked(int, await self._store.ask("SCARD", self._key))
            if count == len(self._in_store) and self._tokens.revoked <= self._in_store:
                return
            if self._tokens.revoked:
                await self._store.ask("SADD", self._key, *self._tokens.revoked)
            members = self._store.checked(frozenset[bytes], await self._store.ask("SMEMBERS", self._key))
            if any(len(digest) != _DIGEST_BYTES for digest in members):
                raise self._store.nonsense()
            learned = len(self._tokens.revoked_elsewhere | members)
            if learned > MOST_VALUES:  # such a store invents them
                raise self._store.nonsense()
        except StoreUnavailable:  # the store has reported it
            return
        self._in_store = members
        self._tokens.refuse(self._in_store)
