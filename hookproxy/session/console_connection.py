"""A console that is connected: what it is sent, and the answers that it sends.

It never holds up a call: what happens is noted, and what the console does not know yet is written at each tick. If it
does not read, changes are summed up, and calls that have ended are counted only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

import anyio
from msgspec.structs import replace

from ..audit.call_record import Record
from ..live import messages
from ..live.messages import (
    NOTHING,
    Answer,
    AnswerTaken,
    CallInFlight,
    Changes,
    Counts,
    Run,
    RunSession,
    Settled,
    WaitingApproval,
)
from .live_session import LiveSession, size

if TYPE_CHECKING:
    import socket

    from msgspec import Raw

_TICK_SECONDS: Final = 0.05
"""Between two looks at the calls while a console is connected: people see no difference to at once."""

_MOST_WAITING: Final = 500
"""Calls that have ended and wait to be sent to a console: at 1,000 calls a second, ten ticks."""

_MOST_BYTES_WAITING: Final = 16 * 1024 * 1024
"""Bytes of the texts of these calls: they stay in memory while a console does not read."""

_LINE_BYTES: Final = 4 * 1024 * 1024
"""After so many bytes, what is left comes with the next line. One approval may be longer: it is whole in any case."""

_MOST_RESPONSES: Final = 100
"""Answers of a console whose results it has not read: a person gives one after another."""

_READ_SIZE: Final = 65_536


class Feed(Protocol):
    """What a console shows: a `LiveFeed`."""

    run: Run

    @property
    def counts(self) -> Counts:
        """The sums until now."""

    def sessions(self) -> Iterable[LiveSession]:
        """All sessions."""

    def approvals(self) -> Iterable[WaitingApproval]:
        """All approvals that wait, here and elsewhere."""

    def is_waiting(self, call: str) -> bool:
        """Whether a person is asked about this call."""

    async def answer(self, answer: Answer, by: str) -> AnswerTaken:
        """Take an answer of the person. The first one counts."""


class Console:
    """A console that is connected."""

    def __init__(self, feed: Feed, connection: socket.socket, who: str) -> None:
        """`who` has connected, as the kernel says."""
        self._feed = feed
        self._connection = connection
        self._who = who
        self._responses: list[AnswerTaken] = []
        self._ended: deque[tuple[LiveSession, Record]] = deque()
        self._gone: list[str] = []
        self._ended_bytes = 0
        self._settled: list[Settled] = []
        self._known_sessions: dict[str, RunSession] = {}
        self._known_calls: dict[str, CallInFlight] = {}
        self._known_approvals: set[str] = set()
        self._known_counts = Counts()

    def note_ended(self, session: LiveSession, record: Record) -> None:
        """A call has ended. If too many wait, the oldest ones are only counted."""
        self._ended.append((session, record))
        self._ended_bytes += size(record)
        while len(self._ended) > _MOST_WAITING or self._ended_bytes > _MOST_BYTES_WAITING:
            _, oldest = self._ended.popleft()
            self._ended_bytes -= size(oldest)
            if oldest.call in self._known_calls:
                self._gone.append(oldest.call)

    def note_settled(self, settled: Settled) -> None:
        """An approval waits no more. That of an approval which the console does not know yet is not sent."""
        if settled.approval in self._known_approvals:
            self._settled.append(settled)

    async def write(self) -> None:
        """Say who runs, and then what changes. Raises OSError when the console has gone."""
        await self._send(messages.encode(self._feed.run))
        while True:
            for response in self._take_responses():
                await self._send(messages.encode(response))
            if (changes := self._changes()) is not None:
                await self._send(messages.encode(changes))
            await anyio.sleep(_TICK_SECONDS)

    def _take_responses(self) -> list[AnswerTaken]:
        responses, self._responses = self._responses, []
        return responses

    async def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[self._connection.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._connection)

    def _changes(self) -> Changes | None:
        """What the console does not know yet; None: nothing."""
        ended, gone = self._take_ended()
        changes = Changes(
            self._feed.counts,
            sessions=tuple(self._new_sessions()),
            ended_sessions=tuple(self._ended_sessions()),
            calls=tuple(self._new_calls()),
            ended=ended,
            gone=gone,
            asked=tuple(self._new_approvals()),
            settled=tuple(self._settled),
        )
        self._settled.clear()
        if changes == Changes(self._known_counts):
            return None
        self._known_counts = changes.counts
        return changes

    def _take_ended(self) -> tuple[tuple[Raw, ...], tuple[str, ...]]:
        ended: list[Raw] = []
        gone, self._gone = self._gone, []
        length = 0
        while self._ended and length < _LINE_BYTES:
            session, record = self._ended.popleft()
            self._ended_bytes -= size(record)
            line = session.line(record)
            if line is None:
                gone.append(record.call)
            else:
                ended.append(line)
                length += len(line)
            self._known_calls.pop(record.call, None)
        for name in gone:
            self._known_calls.pop(name, None)
        return tuple(ended), tuple(gone)

    def _new_sessions(self) -> Iterator[RunSession]:
        for session in self._feed.sessions():
            described = session.described
            if self._known_sessions.get(described.session) != described:
                self._known_sessions[described.session] = described
                yield described

    def _ended_sessions(self) -> list[str]:
        open_sessions = {session.proxy.session.id for session in self._feed.sessions()}
        ended = [name for name in self._known_sessions if name not in open_sessions]
        for name in ended:
            del self._known_sessions[name]
        return ended

    def _new_calls(self) -> Iterator[CallInFlight]:
        length = 0
        for session in self._feed.sessions():
            for call in session.calls(self._feed.is_waiting):
                known = self._known_calls.get(call.call)
                if known == call or length >= _LINE_BYTES:
                    continue
                self._known_calls[call.call] = call
                length += len(bytes(call.arguments)) + len(bytes(call.rewritten))
                yield call if known is None else replace(call, arguments=NOTHING)

    def _new_approvals(self) -> list[WaitingApproval]:
        approvals: list[WaitingApproval] = []
        waiting = list(self._feed.approvals())
        self._known_approvals.intersection_update(one.id for one in waiting)
        length = 0
        for approval in waiting:
            if approval.id not in self._known_approvals and length < _LINE_BYTES:
                self._known_approvals.add(approval.id)
                approvals.append(approval)
                length += len(bytes(approval.arguments))
        return approvals

    async def read(self, scope: anyio.CancelScope) -> None:
        """Read the person's answers, until the console has gone or says something else; then end the scope."""
        begun = bytearray()
        while True:
            await anyio.wait_readable(self._connection)
            try:
                piece = self._connection.recv(_READ_SIZE)
            except BlockingIOError:
                continue
            begun += piece
            *lines, rest = bytes(begun).split(b"\n")
            begun[:] = rest
            try:
                for line in lines:
                    await self._answer(messages.from_console(line))
            except messages.Unreadable:
                piece = b""
            if not piece or len(begun) > messages.LONGEST_ANSWER or len(self._responses) > _MOST_RESPONSES:
                scope.cancel()
                return

    async def _answer(self, answer: Answer) -> None:
        place = answer.place[:200] or "a console"
        taken = await self._feed.answer(answer, f"{self._who}, at {place}")
        self._responses.append(taken)
