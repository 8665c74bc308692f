"""The sessions of all gateways with the same store and seal keys: an operator at one of them lists and ends all.

Nothing is published until somebody asks. What is in the store is sealed: it says who uses what, and ends sessions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from ..policy.shared_state import StoreUnavailable
from .admin_messages import OpenSession
from .published_lists import PublishedLists
from .sealed_values import SealedValues

if TYPE_CHECKING:
    from .store import Store

_LOOK_SECONDS: Final = 1.0
"""How often it is looked whether an operator asks: two commands each time."""

_PUBLISHED_SECONDS: Final = _LOOK_SECONDS + 0.4
"""After which all gateways that can be reached have looked and published."""

_WANTED_MILLISECONDS: Final = 3000  # that a question stays
_SHOWN_MILLISECONDS: Final = 5000  # that a list stays
_END_MILLISECONDS: Final = 60_000
"""That the wish to end something stays: a gateway that cannot reach the store for so long has learned nothing."""


class EndSessions(Struct, frozen=True):
    """An operator ends sessions: all that a gateway has when it learns of it. No times are compared: clocks differ."""

    by: str
    """For people."""
    by_id: str
    number: str
    """Of this wish: the same may be wanted again."""
    session: str = ""
    """The one with this id."""
    user: str = ""
    """Those of this user."""


class SharedSessions:
    """What operators at one gateway ask of all."""

    def __init__(
        self,
        store: Store,
        sealed: SealedValues,
        run: str,
        own: Callable[[], Iterable[OpenSession]],
        end: Callable[[EndSessions], object],
    ) -> None:
        """`run` names this process; `own` returns its sessions, and `end` ends some of them."""
        self._store = store
        self._sealed = sealed
        self._published = PublishedLists(
            store=store,
            sealed=sealed,
            own=run,
            type_=list[OpenSession],
            kind="sessions",
            names="sessions-of",
            milliseconds=_SHOWN_MILLISECONDS,
        )
        self._own = own
        self._end = end
        self._wanted = f"{store.prefix}sessions-wanted"
        self._ends = f"{store.prefix}sessions-end"
        self._done: frozenset[bytes] | None = None
        """The wishes that are carried out, or were there before us; None: it was not looked yet."""

    async def share(self) -> None:
        """Look again and again. Runs until it is cancelled."""
        while True:
            await self.look()
            await anyio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Publish what somebody wants to see, and end what somebody wants to end."""
        if self._store.failure or not self._sealed.keys():
            return
        try:
            if await self._store.ask("GET", self._wanted) is not None:
                await self._published.publish(list(self._own()))
            ends = self._store.checked(frozenset[bytes], await self._store.ask("SMEMBERS", self._ends))
        except StoreUnavailable:  # the store has reported it
            return
        for raw in ends - (self._done if self._done is not None else ends):
            if (wish := self._sealed.open(raw, EndSessions, "end", self._ends)) is not None:
                self._end(wish)
        self._done = ends

    async def elsewhere(self) -> tuple[Sequence[OpenSession], str]:
        """The sessions of the other gateways, and why they are not known; empty: they are."""
        if not self._sealed.keys():
            return (), "the sessions of other gateways are not shown: there are no gateway.seal_keys"
        sessions: list[OpenSession] = []
        try:
            await self._store.ask("SET", self._wanted, 1, "PX", _WANTED_MILLISECONDS)
            await anyio.sleep(_PUBLISHED_SECONDS)
            async for of_gateway in self._published.of_others():
                sessions += of_gateway
        except StoreUnavailable as problem:
            return sessions, f"the sessions of other gateways are not known: {problem}"
        return sessions, ""

    async def end(self, by: str, by_id: str, *, session: str = "", user: str = "") -> str:
        """Let other gateways end sessions within a second. Returns why that is not possible, or nothing."""
        if not self._sealed.keys():
            return "other gateways do not end them: there are no gateway.seal_keys"
        sealed = self._sealed.seal(EndSessions(by, by_id, os.urandom(8).hex(), session, user), "end", self._ends)
        try:
            await self._store.ask("SADD", self._ends, sealed)
            await self._store.ask("PEXPIRE", self._ends, _END_MILLISECONDS)
        except StoreUnavailable as problem:
            return f"other gateways do not end them: {problem}"
        return ""
