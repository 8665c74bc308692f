"""What a run of the proxy has in common with its agent's other runs and its native hooks, by way of the guard.

How it works: the run connects to a guard that listens already, when the agent has opened the session and before each
judged call; it never starts one. Requests go in turn over one connection (`run_messages`), which is opened anew if it
was lost. Whoever listens must have this account. Without a guard each run has its own, as if there were no guard:
what it has counted and what a person has allowed in it counts in any case. Nothing of it is imported, but for this
file, until somebody listens.

What the guard says only adds to what the run knows: it may say that a limit is exceeded, and that a person has allowed
calls for which the person's own configuration asks. What the administrator requires, the run decides alone (law 1).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio

from .. import __version__
from ..policy.shared_state import Approved, Shared, StoreUnavailable

if TYPE_CHECKING:
    from ..config.load import Loaded
    from ..model.hooks import EventContext, Session, Tool
    from ..model.limits import CountedCall, Limit
    from ..model.reported_call import ReportedCall
    from ..policy.rate_limits import LimitReached
    from ..policy.shared_state import SharedLabels
    from ..transports.line_client import LineClient
    from .limit_windows import LimitWindows
    from .run_messages import Claim, Limits, Request, Response

# until a guard counts as away: it answers within a millisecond, and on a busy machine within seconds, as it starts. Not
# less: without it, what it has judged is judged again, and limits are those of this run alone for _RETRY_SECONDS
_SECONDS: Final = 5.0
_ABSENT_SECONDS: Final = 0.02  # until it is looked for again: to look takes as long as a tenth of a call in a burst
_RETRY_SECONDS: Final = 10.0  # until a guard is asked again that did not answer: each call would wait for it
_NO_GUARD: Final = "no guard runs"
_LONGEST_SECRET: Final = 64 * 1024  # bytes: a private key has four thousand, and a line a million
_MOST_APPROVED: Final = 1024  # as in a run without a guard


class GuardLink:
    """The connection of one run to the guard, if there is one. `NativeCalls` of its hooks."""

    def __init__(self, path: str, session: Session, loaded: Loaded) -> None:
        """`path` is the guard's socket; `session` is the run's own, whose id it has if it is alone."""
        self._path, self._session, self._loaded = path, session, loaded
        self.session = session.id
        """The id of the session."""
        self.on_session: Callable[[str], None] = lambda _session: None
        """Called with that id, when it is another one than before."""
        self.spawn: Callable[[Callable[[], Coroutine[object, object, None]]], None] = lambda _function: None
        """Runs a function beside the calls."""
        self._tools: dict[str, Tool] = {}
        self._server_name = ""
        self._connection: LineClient | None = None
        self._opening = anyio.Lock()
        self._not_before = 0.0
        self.connections = 0
        """How often it has reached a guard."""

    @property
    def shared(self) -> Shared:
        """What the hooks of the run share."""
        return Shared(
            limits=LinkedLimits(self),
            approvals=LinkedApprovals(self),
            secrets=LinkedSecrets(self),
            native=self,
            new_labels=self._labels,
        )

    def _labels(self) -> SharedLabels:
        from .linked_labels import LinkedLabels  # only where something says where data may go

        return LinkedLabels(self)

    @property
    def is_away(self) -> bool:
        """As in NativeCalls: nobody listens, or did not when it was last looked, `_ABSENT_SECONDS` ago at most."""
        if self._connection is not None and not self._connection.is_lost:
            return False
        if (now := monotonic()) < self._not_before:
            return True
        if _exists(self._path):
            return False
        self._not_before = now + _ABSENT_SECONDS
        return True

    async def join(self) -> None:
        """Wait until it is known to which session of the agent this run belongs, if there is a guard."""
        with suppress(StoreUnavailable):
            await self._connected()

    def note_tools(self, tools: Sequence[Tool], server_name: str) -> None:
        """The server has listed these tools: hooks of the agent's own events may know them by what it says of them."""
        self._tools.update((tool.name, tool) for tool in tools)
        self._server_name = server_name
        if self._connection is None or self._connection.is_lost:
            self.spawn(self.join)
        else:
            self._report_tools(self._connection, tools)

    async def claim(self, context: EventContext, listed: Tool | None, call_id: str) -> ReportedCall | None:
        """As in NativeCalls."""
        try:
            connection = await self._connected()
            reported = (await self._answered(connection, _claim_of(context, listed, call_id))).reported
        except StoreUnavailable:
            return None
        if reported is not None and self._loaded.managed is not None:  # whoever has answered: it is judged here
            from msgspec.structs import replace

            return replace(reported, decided=False)
        return reported

    def note_end(self, reported: ReportedCall, decision: str, result: str, size: int, seconds: float) -> None:
        """As in NativeCalls."""
        from msgspec.json import encode

        from .run_messages import Ended

        if self._connection is not None:
            self._connection.tell(encode(Ended(reported.record, decision, result, size, seconds)))

    async def ask(self, request: Request) -> Response:
        """The guard's response. Raises StoreUnavailable: there is no guard, or it does not answer."""
        return await self._answered(await self._connected(), request)

    def close(self) -> None:
        """The run has ended."""
        if self._connection is not None:
            self._connection.close()

    async def _connected(self) -> LineClient:
        """A connection on which the run has said who it is. Raises StoreUnavailable."""
        connection = self._connection
        if connection is not None and not connection.is_lost:
            return connection
        if self.is_away:
            raise StoreUnavailable(_NO_GUARD)
        async with self._opening:
            if self._connection is connection:  # else another call has opened it
                self._connection = await self._open()
        if self._connection is None:
            raise StoreUnavailable(_NO_GUARD)
        return self._connection

    async def _open(self) -> LineClient:
        """Raises StoreUnavailable."""
        from ..config.digest import digest_of
        from ..transports import line_client  # not before somebody listens
        from .exchange import write_control
        from .run_messages import LONGEST, Join

        try:
            connection = await line_client.connect(self._path, write_control("run"), LONGEST)
        except OSError as problem:
            raise StoreUnavailable(_NO_GUARD) from problem
        own = self._session
        try:
            await self._answered(
                connection, Join(__version__, own.server, own.id, own.command, digest_of(self._loaded))
            )
        except StoreUnavailable:  # it would say the same to each call
            self._not_before = monotonic() + _RETRY_SECONDS
            raise
        self.connections += 1
        if self._tools:
            self._report_tools(connection, tuple(self._tools.values()))
        return connection

    def _report_tools(self, connection: LineClient, tools: Sequence[Tool]) -> None:
        from msgspec.json import encode

        from .run_messages import Listed

        connection.tell(encode(Listed(tuple(tools), self._server_name)))

    async def _answered(self, connection: LineClient, request: Request) -> Response:
        from msgspec.json import decode, encode

        from .run_messages import Response

        try:
            with anyio.fail_after(_SECONDS):
                response = decode(await connection.ask(encode(request)), type=Response)
        except TimeoutError:  # so would each call have to wait
            self._not_before = monotonic() + _RETRY_SECONDS
            connection.close()
            raise StoreUnavailable(f"the guard has not answered for {_SECONDS:g} s") from None
        except (OSError, ValueError) as problem:
            connection.close()
            raise StoreUnavailable("the guard has ended, or is of another version") from problem
        if response.session != self.session:
            self.session = response.session
            self.on_session(response.session)
        return response


def _claim_of(context: EventContext, listed: Tool | None, call_id: str) -> Claim:
    from . import seen  # only where a guard is
    from .run_messages import Claim

    arguments = seen.digest_of_arguments(context.arguments)
    return Claim(context.tool, arguments, call_id, seen.digest_of(context, listed))


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True


class LinkedLimits:
    """`SharedLimits`: the calls of the whole session count, and those of this run also if the guard is away."""

    def __init__(self, link: GuardLink) -> None:
        self._link = link

    @cached_property
    def _own(self) -> LimitWindows:
        from .limit_windows import LimitWindows  # not before a call is counted

        return LimitWindows()

    async def exceeded(self, limits: Sequence[Limit], call: CountedCall) -> Sequence[LimitReached]:
        """As in SharedLimits."""
        from .run_messages import Limits

        own = self._own.exceeded(limits, keys := _keys(limits, call))
        elsewhere = await self._elsewhere(limits, Limits(tuple(limits), keys))
        known = {reached.limit for reached in elsewhere}
        return (*elsewhere, *(reached for reached in own if reached.limit not in known))

    async def count(
        self, limits: Sequence[Limit], call: CountedCall, approved: Iterable[str] = ()
    ) -> LimitReached | None:
        """As in SharedLimits."""
        from ..policy.rate_limits import refusing
        from .run_messages import Count

        keys, approved = _keys(limits, call), tuple(approved)
        if (reached := refusing(self._own.exceeded(limits, keys), approved)) is not None:
            return reached
        for reached in await self._elsewhere(limits, Count(tuple(limits), keys, approved)):
            return reached
        return self._own.count(limits, keys, approved)

    async def _elsewhere(self, limits: Sequence[Limit], request: Limits) -> Sequence[LimitReached]:
        """What counts in the session; nothing if the guard is away: what this run has counted holds."""
        from ..policy.rate_limits import LimitReached

        try:
            exceeded = (await self._link.ask(request)).exceeded
        except StoreUnavailable:
            return ()
        return [
            LimitReached(limits[limit.number], limit.retry_after)
            for limit in exceeded
            if 0 <= limit.number < len(limits)
        ]


def _keys(limits: Sequence[Limit], call: CountedCall) -> tuple[bytes, ...]:
    from ..policy.rate_limits import count_key

    return tuple(count_key(limit, call) for limit in limits)


class LinkedApprovals:
    """`SharedApprovals`: what was allowed anywhere in the session, and in this run also if the guard is away.

    What the administrator requires is allowed for the run alone that has asked: other processes of this account could
    report to the guard, too, that somebody has approved them.
    """

    def __init__(self, link: GuardLink) -> None:
        self._link = link
        self._own: list[Approved] = []

    async def approved(self) -> Sequence[Approved]:
        """As in SharedApprovals."""
        from .run_messages import Approvals

        try:
            sent = (await self._link.ask(Approvals())).approved
        except StoreUnavailable:
            sent = ()
        return (*self._own, *_read(sent))

    async def allow(self, calls: Approved) -> None:
        """As in SharedApprovals."""
        from msgspec import Raw
        from msgspec.json import encode

        from .run_messages import Allow

        if calls not in self._own and len(self._own) < _MOST_APPROVED:
            self._own.append(calls)
        if not calls.managed:
            with suppress(StoreUnavailable):
                await self._link.ask(Allow(Raw(encode(calls))))


class LinkedSecrets:
    """`SharedSecrets`: what any run of the session has hidden."""

    def __init__(self, link: GuardLink) -> None:
        self._link = link

    async def key(self) -> bytes:
        """As in SharedSecrets."""
        from .run_messages import SecretKey

        return (await self._link.ask(SecretKey())).secret_key

    async def keep(self, values: Mapping[str, str]) -> None:
        """As in SharedSecrets. What is too long for a line stays with this run."""
        from .run_messages import KeepSecrets

        for placeholder, value in values.items():  # each takes a millisecond, and there are few
            if len(value) <= _LONGEST_SECRET:
                await self._link.ask(KeepSecrets({placeholder: value}))

    async def value_of(self, placeholder: str) -> str | None:
        """As in SharedSecrets."""
        from .run_messages import SecretOf

        return (await self._link.ask(SecretOf(placeholder))).secret


def _read(sent: Sequence[bytes]) -> Iterator[Approved]:
    """What counts of what the guard says."""
    if not sent:
        return
    from ..policy.sent_approvals import read_approved  # it reads command lines, too

    for raw in sent:
        with suppress(ValueError, RecursionError):
            if not (calls := read_approved(bytes(raw))).managed:
                yield calls
