"""What is known of all runs now: calls in flight, calls that have ended, and approvals. Pure; lists are bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import astuple, replace

from ..audit.records import CallRecord
from ..live.messages import NOTHING, CallInFlight, Changes, Counts, Run, RunSession, Settled, WaitingApproval
from .call_filter import ALL, CallFilter

MAX_ENDED: Final = 2000
"""Calls that have ended and can be looked at: more than a person scrolls through; all of them are in the audit."""

MAX_ENDED_BYTES: Final = 64 * 1024 * 1024
"""Bytes that these calls may have together: arguments may be long."""

MAX_SETTLED: Final = 200
"""Approvals that have been answered, which are kept to tell a second person who has answered them."""

_CALL: Final = msgspec.json.Decoder(CallRecord)
_UNKNOWN: Final = RunSession("", "")


class EndedCall(Struct, frozen=True):
    """A call that has ended."""

    number: int
    """Rises by one with each call that ends: what came after a number that is known is new."""
    run: str
    record: CallRecord
    size: int
    """Bytes of the record."""


class ShownApproval(Struct, frozen=True):
    """An approval with its run."""

    run: str
    approval: WaitingApproval


class RunState(Struct):
    """A run that can be reached."""

    run: Run
    counts: Counts = field(default_factory=Counts)
    sessions: dict[str, RunSession] = field(default_factory=dict)
    calls: dict[str, CallInFlight] = field(default_factory=dict)
    """In flight, in the order in which they came."""

    @property
    def servers(self) -> str:
        """The names of its servers, for people."""
        return ", ".join(dict.fromkeys(session.server for session in self.sessions.values()))

    @property
    def agents(self) -> str:
        """The names of its agents, for people."""
        return ", ".join(dict.fromkeys(session.agent for session in self.sessions.values() if session.agent))

    def session(self, name: str) -> RunSession:
        """The session with this id; one without names if it is not known any more."""
        return self.sessions.get(name, _UNKNOWN)


class State:
    """All runs. `apply` and `forget` change it; everything else reads it."""

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self.ended: deque[EndedCall] = deque()
        """The newest last."""
        self.approvals: dict[tuple[str, str], ShownApproval] = {}
        """What waits for a person, by run and approval, the oldest first."""
        self.settled: dict[tuple[str, str], Settled] = {}
        """The last approvals that have been settled."""
        self.about_lock: set[tuple[str, str]] = set()
        """Those of them that asked about what a server says of itself."""
        self.version = 0
        """Rises with each change."""
        self.number = 0
        """Of the last call that has ended."""
        self.left_out = 0
        """How many calls have ended that cannot be looked at here."""
        self.past = Counts()
        """The sums of runs that have ended."""
        self._bytes = 0
        self._listeners: list[Callable[[], None]] = []

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call this after each change. Returns a function that ends it."""
        self._listeners.append(on_change)
        return lambda: self._listeners.remove(on_change)

    @property
    def counts(self) -> Counts:
        """The sums over all runs, also of those that have ended."""
        return _sum([self.past, *(run.counts for run in self.runs.values())])

    def in_flight(self, calls: CallFilter = ALL) -> Iterator[tuple[RunState, CallInFlight]]:
        """The calls that have not ended and that the filter shows."""
        for run in self.runs.values():
            for call in run.calls.values():
                session = run.session(call.session)
                known = CallRecord(server=session.server, tool=call.tool, agent=session.agent, arguments=call.arguments)
                if calls.matches(known):
                    yield run, call

    @property
    def in_flight_count(self) -> int:
        """How many calls have not ended."""
        return sum(len(run.calls) for run in self.runs.values())

    def agent_of(self, waiting: ShownApproval) -> str:
        """The name of the agent whose call waits; empty if it is not known."""
        run = self.runs.get(waiting.run)
        return waiting.approval.agent or (run.session(waiting.approval.session).agent if run else "")

    def apply(self, run: str, message: Run | Changes) -> None:
        """Take what a run says. A line of a run that has not said who it is has no effect."""
        if isinstance(message, Run):
            self.runs[run] = RunState(message)
        elif run in self.runs:
            self._change(run, self.runs[run], message)
        self._changed()

    def forget(self, run: str) -> None:
        """The run has ended, or cannot be reached: the approvals that waited in it are withdrawn."""
        state = self.runs.pop(run, None)
        if state is None:
            return
        self.past = _sum([self.past, state.counts])
        for key in [key for key in self.approvals if key[0] == run]:
            self._settle(run, Settled(key[1], "withdrawn"))
        self._changed()

    def _change(self, run: str, state: RunState, message: Changes) -> None:
        state.counts = message.counts
        state.sessions.update({session.session: session for session in message.sessions})
        for name in message.ended_sessions:
            state.sessions.pop(name, None)
        for call in message.calls:
            before = state.calls.get(call.call)
            if before is not None and call.arguments == NOTHING:
                call = replace(call, arguments=before.arguments, arguments_bytes=before.arguments_bytes)
            state.calls[call.call] = call
        for raw in message.ended:
            self._end(run, state, bytes(raw))
        for name in message.gone:
            state.calls.pop(name, None)
            self.left_out += 1
        self.approvals.update({(run, approval.id): ShownApproval(run, approval) for approval in message.asked})
        for settled in message.settled:
            self._settle(run, settled)

    def _end(self, run: str, state: RunState, raw: bytes) -> None:
        try:
            record = _CALL.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.left_out += 1
            return
        state.calls.pop(record.call, None)
        self.number += 1
        self.ended.append(EndedCall(self.number, run, record, len(raw)))
        self._bytes += len(raw)
        while len(self.ended) > MAX_ENDED or (self._bytes > MAX_ENDED_BYTES and len(self.ended) > 1):
            self._bytes -= self.ended.popleft().size
            self.left_out += 1

    def _settle(self, run: str, settled: Settled) -> None:
        shown = self.approvals.pop((run, settled.approval), None)
        if shown is not None and shown.approval.is_about_lock:
            self.about_lock.add((run, settled.approval))
        self.settled[run, settled.approval] = settled
        while len(self.settled) > MAX_SETTLED:
            oldest = next(iter(self.settled))
            del self.settled[oldest]
            self.about_lock.discard(oldest)

    def _changed(self) -> None:
        self.version += 1
        for on_change in tuple(self._listeners):
            on_change()


def _sum(counts: list[Counts]) -> Counts:
    return Counts(*map(sum, zip(*map(astuple, counts), strict=True)))
