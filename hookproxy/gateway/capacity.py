"""How many sessions, and how much memory of servers, users may have: who gets room at once, who waits, who is refused.

Each bound counts for each user alone, or for all of its users together. A session needs room in all bounds that are
about it, and has a `Claim` on it until it ends. Where there is no room, it may wait in a queue until a deadline: then
the one whose user has the fewest sessions is next, so nobody's many sessions hold up another one's first. A user's
place in the queue is bounded, too.

Who has room may have to wait for a turn to start a server (`Starts`): many that start at once take all processors.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import anyio
from msgspec import Struct, field

from ..model.counts import counted
from ..model.sizes import shown_size
from ..session.change_event import ChangeEvent

if TYPE_CHECKING:
    from ..model.principal import Principal
    from ..policy.bounds import Bound

_MOST_WAITING: Final = 256
"""Of all users together: each one keeps a connection and a short request."""

_MOST_WAITING_OF_USER: Final = 32  # an agent that starts opens a session for each of its servers

_STARTS: Final = max(2, (os.cpu_count() or 1) // 2)
"""Of one user's servers at a time: the other processors are for everybody else. The servers of an agent are all there
about as soon as if they started together."""

_START_SECONDS: Final = 1.5
"""After which the next server may start, if one has said nothing: perhaps nobody has asked it yet, and it is idle. With
as many sessions as a user usually may have, the last one starts within half a minute, in which agents wait."""

_Count = tuple["Bound", str]
"""A bound, and the id of the user for whom it counts; empty: for all together."""


Expected = Callable[["Principal", str], "int | None"]


class Full(Exception):
    """There is no room: the message says where, for people, without a full stop."""

    def __init__(self, bound: Bound, message: str) -> None:
        super().__init__(message)
        self.bound = bound


class Claim(Struct, eq=False):
    """Room for one session."""

    principal: Principal
    server: str
    _counts: tuple[_Count, ...]
    _memory: int
    """Bytes that its server will use, as far as is known, until it was measured."""
    is_used: bool = False
    """A session has it."""


class _Waiting(Struct, eq=False):
    """A session that waits for room."""

    principal: Principal
    server: str
    claim: Claim | None = None
    has_room: anyio.Event = field(default_factory=anyio.Event)


class Capacity:
    """The bounds in force, and what is taken of them."""

    def __init__(self, bounds: Sequence[Bound], expected: Expected = lambda _principal, _server: 0) -> None:
        """`expected` returns how many bytes one more session of this user at a server is likely to use; None: it starts
        nothing here, and may be opened however much memory is used.
        """
        self._bounds = bounds
        self._expected = expected
        self._claims: set[Claim] = set()
        self._sessions = Counter[_Count]()
        self._starting = Counter[_Count]()  # bytes of servers that were not measured yet
        self._memory = Counter[_Count]()  # bytes that were measured
        self._of_user = Counter[str]()  # sessions
        self._queue: list[_Waiting] = []

    @property
    def waiting(self) -> int:
        """How many sessions wait for room."""
        return len(self._queue)

    def change(self, bounds: Sequence[Bound]) -> None:
        """Put other bounds into force. Those who have more than they may now keep it."""
        self._bounds = bounds
        self._count_again()

    def change_user(self, user: Principal) -> None:
        """A user has other groups than before."""
        changed = False
        for claim in self._claims:
            if claim.principal.id == user.id and claim.principal != user:
                claim.principal, changed = user, True
        if changed:
            self._count_again()

    def _count_again(self) -> None:
        self._sessions.clear()
        self._starting.clear()
        self._memory.clear()  # until they are measured again
        for claim in self._claims:
            claim._counts = tuple(self._counts(claim.principal, claim.server))
            self._add(claim)
        self._serve_queue()

    def claim(self, principal: Principal, server: str) -> Claim:
        """Take room for a session now. Raises Full."""
        counts = tuple(self._counts(principal, server))
        expected = self._expected(principal, server)
        for bound, whose in counts:
            if problem := self._problem(bound, whose, principal, expected):
                raise Full(bound, problem)
        claim = Claim(principal, server, counts, expected or 0)
        self._claims.add(claim)
        self._of_user[principal.id] += 1
        self._add(claim)
        return claim

    async def wait(self, principal: Principal, server: str, seconds: float) -> Claim:
        """Take room for a session, as soon as there is some. Raises Full, after so many seconds or at once."""
        try:
            return self.claim(principal, server)
        except Full as full:
            of_user = sum(waiting.principal.id == principal.id for waiting in self._queue)
            if not seconds or of_user >= _MOST_WAITING_OF_USER or len(self._queue) >= _MOST_WAITING:
                raise
            problem = full
        waiting = _Waiting(principal, server)
        self._queue.append(waiting)
        try:
            with anyio.move_on_after(seconds):
                await waiting.has_room.wait()
        except BaseException:
            if waiting.claim is not None:
                self.release(waiting.claim)
            raise
        finally:
            if waiting in self._queue:
                self._queue.remove(waiting)
        if waiting.claim is None:
            raise Full(problem.bound, f"{problem}; it has waited {seconds:g} s for room")
        return waiting.claim

    def release(self, claim: Claim) -> None:
        """A session has ended, or was not opened."""
        if claim not in self._claims:
            return
        self._claims.discard(claim)
        self._sessions.subtract(claim._counts)
        self._starting.subtract(dict.fromkeys(claim._counts, claim._memory))
        self._of_user[claim.principal.id] -= 1
        if not self._of_user[claim.principal.id]:
            del self._of_user[claim.principal.id]
        self._sessions += Counter()  # what is 0 is forgotten
        self._starting += Counter()
        self._serve_queue()

    # --- memory ---

    def begin_measurement(self) -> list[Claim]:
        """Return the claims whose servers have started before it, for `note_memory`."""
        return [claim for claim in self._claims if claim.is_used and claim._memory]

    def note_memory(self, sizes: Iterable[tuple[Principal | None, str, int]], measured: Iterable[Claim]) -> None:
        """Note how many bytes servers' processes use: whose each one is (None: everybody's), and of which server."""
        self._memory.clear()
        for principal, server, size in sizes:
            for count in self._counts(principal, server):
                self._memory[count] += size
        for claim in measured:
            self._starting.subtract(dict.fromkeys(claim._counts, claim._memory))
            claim._memory = 0
        self._starting += Counter()
        self._serve_queue()

    def over_memory(self) -> list[tuple[Bound, str]]:
        """The bounds whose servers use more memory than they may, each with the id of the user; empty: all together."""
        return [
            (bound, whose)
            for (bound, whose), size in self._memory.items()
            if bound.memory is not None and size > bound.memory
        ]

    # --- how it counts ---

    def _counts(self, principal: Principal | None, server: str) -> Iterator[_Count]:
        for bound in self._bounds:
            if bound.is_about(principal, server):
                yield bound, "" if bound.together or principal is None else principal.id

    def _add(self, claim: Claim) -> None:
        self._sessions.update(claim._counts)
        if claim._memory:
            self._starting.update(dict.fromkeys(claim._counts, claim._memory))

    def _problem(self, bound: Bound, whose: str, principal: Principal, expected: int | None) -> str:
        """Why there is no room in a bound, for people; empty: there is."""
        who = _who(bound, principal)
        if bound.sessions is not None and self._sessions[bound, whose] >= bound.sessions:
            return f"{who} {counted(bound.sessions, 'session')}, and may not have more ({bound.name})"
        if bound.memory is not None and expected is not None:
            used = self._memory[bound, whose] + self._starting[bound, whose]
            if used and used + expected > bound.memory:
                size, most = shown_size(used), shown_size(bound.memory)
                return f"{who} servers that use {size} of memory, and may use {most} ({bound.name})"
        return ""

    def _serve_queue(self) -> None:
        """Give room to those who wait: first to those whose users have the fewest sessions."""
        sessions = Counter(self._of_user)
        places: list[tuple[int, int]] = []
        for number, waiting in enumerate(self._queue):
            places.append((sessions[waiting.principal.id], number))
            sessions[waiting.principal.id] += 1
        for waiting in [self._queue[number] for _, number in sorted(places)]:
            try:
                waiting.claim = self.claim(waiting.principal, waiting.server)
            except Full:
                continue
            self._queue.remove(waiting)
            waiting.has_room.set()


class _Start(Struct, eq=False):
    """A server that starts."""

    since: float


class _Starting(Struct, eq=False, weakref=True):
    """What a user starts now."""

    starts: list[_Start] = []
    """In their order."""
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    """Of the one who is next; the others wait for it in order."""
    changes: ChangeEvent = field(default_factory=ChangeEvent)


class Starts:
    """The servers that start now: a few of each user at a time. The others wait, and the first one is next."""

    def __init__(self, at_once: int = _STARTS, seconds: float = _START_SECONDS) -> None:
        self._at_once = at_once
        self._seconds = seconds
        self._of_user = WeakValueDictionary[str, _Starting]()  # those who wait, and the ends of starts, keep them

    async def turn(self, user: str) -> Callable[[], None]:
        """Wait until a server of this user may start. Call what is returned when it has, or has ended."""
        starting = self._of_user.get(user)
        if starting is None:
            starting = self._of_user[user] = _Starting()
        async with starting.turn:
            while self._is_full(starting):
                with anyio.CancelScope(deadline=starting.starts[0].since + self._seconds):
                    await starting.changes.until(lambda: not self._is_full(starting))
        start = _Start(anyio.current_time())
        starting.starts.append(start)
        return partial(_end, starting, start)

    def _is_full(self, starting: _Starting) -> bool:
        """Whether no further one may start now."""
        old = anyio.current_time() - self._seconds
        starting.starts = [start for start in starting.starts if start.since > old]
        return len(starting.starts) >= self._at_once


def _end(starting: _Starting, start: _Start) -> None:
    if start in starting.starts:
        starting.starts.remove(start)
        starting.changes.notify()


def _who(bound: Bound, principal: Principal) -> str:
    """The beginning of a sentence about what somebody has."""
    if not bound.together:
        return f"{principal.name} has"
    if bound.users:
        return f"{' and '.join(bound.users)} together have"
    if bound.servers:
        return f"the server{'s' if len(bound.servers) > 1 else ''} {' and '.join(sorted(bound.servers))} together have"
    return "all users together have"
