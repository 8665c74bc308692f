"""Who is connected to a listener, and what each of them takes: without I/O, and without a clock of its own.

A connection is a *stranger* from `accept` on, also while TLS begins, until a request of it has come from somebody who
is known. Strangers are counted by their network, connections of known users by the user. What must hold: nobody who is
unknown keeps anybody from connecting, so a new connection is never refused in favour of an old stranger. Beyond a
limit, the oldest strangers of the same network go; those that have just come are spared, because most of them are about
to say who they are. A user's own connections make room for each other in the same way.

Bytes of requests that are not handled yet are counted for a *payer*: a network, or a user.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, Protocol

from msgspec import Struct

YOUNG_SECONDS: Final = 1.0
"""In which a connection can say who sends its first request over nearly every network, TLS included. A younger stranger
goes only where there are far too many."""

_FAR_TOO_MANY: Final = 2  # times the limit: what young strangers of one network may be, as after a restart behind a NAT
_NETWORK_BITS: Final = 64  # of an IPv6 address: whoever has one has all that begin with these


@lru_cache(maxsize=1024)  # most peers come again at once; a flood of others costs some microseconds for each
def network_of(address: str) -> str:
    """The network that counts as one peer: an IPv4 address, the /64 of an IPv6 one; other text is as it is."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))


class Connected(Protocol):
    """A connection, or what becomes one."""

    def shed(self, why: str) -> None:
        """Go, because others need the place; `why` is a part of a sentence."""

    @property
    def is_idle(self) -> bool:
        """No request is in progress."""


class _Place(Struct):
    """Where a connection is counted."""

    owner: str
    since: float
    is_known: bool = False


class Crowd:
    """All connections of a listener. They are in the order in which they came, for each owner."""

    def __init__(self, most: int, most_strangers: int, most_of_network: int, most_of_user: int) -> None:
        self._most = most
        self._most_strangers = most_strangers
        self._most_of_network = most_of_network
        self._most_of_user = most_of_user
        self._places: dict[Connected, _Place] = {}
        self._strangers: dict[Connected, None] = {}
        self._of: dict[tuple[bool, str], dict[Connected, None]] = {}

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._places)

    @property
    def strangers(self) -> int:
        """How many of them nobody knows."""
        return len(self._strangers)

    def enter(self, one: Connected, network: str, now: float) -> bool:
        """Count a new connection; others may have to go. An empty network is counted as a whole only, not by itself.

        False: there is no room, and it is not counted.
        """
        self._make_room(network, now)
        if len(self._places) >= self._most and not self.make_room(1):
            return False
        self._places[one] = _Place(network, now)
        self._strangers[one] = None
        self._of.setdefault((False, network), {})[one] = None
        return True

    def replace(self, old: Connected, new: Connected) -> None:
        """What was counted as `old` is `new` from now on, as if it had come at the same time."""
        place = self._places.pop(old, None)
        if place is None:
            return
        self._places[new] = place
        for group in (self._strangers, self._of[place.is_known, place.owner]):
            del group[old]
            group[new] = None

    def is_counted(self, one: Connected) -> bool:
        """True from `enter` to `leave`."""
        return one in self._places

    def leave(self, one: Connected) -> None:
        """Forget a connection; it may be forgotten already."""
        if (place := self._places.pop(one, None)) is None:
            return
        self._strangers.pop(one, None)
        self._discard(one, place)

    def know(self, one: Connected, user: str) -> bool:
        """A request of this user has come on a connection. False: the user has too many, and all of them are busy.

        An empty user stands for all who come through a proxy: they are many.
        """
        place = self._places.get(one)
        if place is None or (place.is_known and place.owner == user):
            return True
        own = self._of.get((True, user), {})
        if user and len(own) >= self._most_of_user:
            idle = next((other for other in own if other.is_idle), None)
            if idle is None:
                return False
            idle.shed("its user has opened too many others")
            self.leave(idle)
        self._strangers.pop(one, None)
        self._discard(one, place)
        place.owner, place.is_known = user, True
        self._of.setdefault((True, user), {})[one] = None
        return True

    def make_room(self, count: int) -> bool:
        """Let so many connections go: strangers, then those that do nothing. False: there are none."""
        least = [*islice(self._least_needed(), count)]
        for one in least:
            one.shed("there is no room for so many connections")
            self.leave(one)
        return bool(least)

    def _least_needed(self) -> Iterator[Connected]:
        yield from self._strangers
        for one, place in self._places.items():
            if place.is_known and one.is_idle:
                yield one

    def is_crowded(self, now: float) -> bool:
        """There are as many strangers as may be, and all have just come."""
        if len(self._strangers) < self._most_strangers:
            return False
        return now - self._places[next(iter(self._strangers))].since < YOUNG_SECONDS

    def _make_room(self, network: str, now: float) -> None:
        own = self._of.get((False, network), {}) if network else {}
        if len(own) >= self._most_of_network:
            oldest = next(iter(own))
            is_young = now - self._places[oldest].since < YOUNG_SECONDS
            if not is_young or len(own) >= _FAR_TOO_MANY * self._most_of_network:
                oldest.shed("its address has opened too many others without a token")
                self.leave(oldest)
        if len(self._strangers) >= self._most_strangers:
            oldest = next(iter(self._strangers))
            oldest.shed("too many connections are open without a token")
            self.leave(oldest)

    def _discard(self, one: Connected, place: _Place) -> None:
        key = place.is_known, place.owner
        del self._of[key][one]
        if not self._of[key]:
            del self._of[key]


class HeldBytes:
    """The bytes of requests that are not handled yet, by whoever has sent them."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._of: dict[str, int] = {}
        self.total = 0

    def change(self, payer: str, size: int) -> None:
        """Count this many more, or fewer."""
        self.total += size
        left = self._of.get(payer, 0) + size
        if left:
            self._of[payer] = left
        else:
            self._of.pop(payer, None)

    def of(self, payer: str) -> int:
        """What this one holds."""
        return self._of.get(payer, 0)

    def is_over(self, payer: str) -> bool:
        """This one holds more than anybody may."""
        return self.of(payer) > self._most_each

    @property
    def is_full(self) -> bool:
        """All together hold more than they may."""
        return self.total > self._most

    def may_go_on(self, payer: str) -> bool:
        """Whether more may come of a request: of one payer a share is never refused, whatever others hold."""
        return not self.is_over(payer) and not (self.is_full and self.of(payer) > self._most // _SHARES)


_SHARES: Final = 64  # of all bytes: a payer who holds less than one goes on, even while others fill the rest
