"""Lists that the gateways with the same store publish for each other: each one under its own name, and sealed.

A list is in the store for some seconds only, as its gateway may be killed; the set of names tells which gateways have
published one. Whoever reads the lists removes the names of gateways that have none any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec import Struct

from .sealed_values import SealedValues

if TYPE_CHECKING:
    from .store import Store

_T = TypeVar("_T")

_MOST_GATEWAYS: Final = 1024
"""With one store, those that were killed included: each of them is asked for by name."""


class PublishedLists(Struct, Generic[_T], frozen=True, kw_only=True):
    """The lists of one kind. Functions raise StoreUnavailable."""

    store: Store
    sealed: SealedValues
    own: str
    """The name of this gateway."""
    type_: type[list[_T]]
    kind: str
    names: str
    """The set with the names of the gateways, without the prefix of keys."""
    milliseconds: int
    """How long a list stays in the store."""

    async def publish(self, values: Sequence[_T]) -> None:
        """Publish the list of this gateway."""
        sealed = self.sealed.seal(list(values), self.kind, self.own)
        await self.store.ask("SET", self._key(self.own), sealed, "PX", self.milliseconds)
        await self.store.ask("SADD", self._key_of_names, self.own)

    async def withdraw(self) -> None:
        """Remove the list of this gateway."""
        await self.store.ask("DEL", self._key(self.own))
        await self.store.ask("SREM", self._key_of_names, self.own)

    async def of_others(self) -> AsyncIterator[list[_T]]:
        """The list of each other gateway that has published one."""
        names = self.store.checked(frozenset[bytes], await self.store.ask("SMEMBERS", self._key_of_names))
        if len(names) > _MOST_GATEWAYS:
            raise self.store.nonsense()
        for raw_name in sorted(names):
            name = raw_name.decode(errors="replace")
            if name == self.own:
                continue
            sealed = await self.store.ask("GET", self._key(name))
            if sealed is None:
                await self.store.ask("SREM", self._key_of_names, raw_name)
            if (values := self.sealed.open(sealed, self.type_, self.kind, name)) is not None:
                yield values

    def _key(self, name: str) -> str:
        return self.store.key(self.kind, name)

    @property
    def _key_of_names(self) -> str:
        return f"{self.store.prefix}{self.names}"
