"""The calls of agents that may run, from the event before each to the event after it (law 1).

How it works: a call is known by its agent, session and id, and by what it does: server, tool and a digest of its exact
arguments, as the agent sends them. The event after it is found by the id, or, for agents without ids, by what it does.
An event of several parts is a call for each part.

A run of the proxy that gets the same call *claims* it. What must hold:

- Only a run below the process whose hook has reported the call claims it, for its own server, and once. A tool of the
  agent's own belongs to no server: what a person has allowed of it, or refused in the agent, says nothing about a
  server's tool of the same name.
- Everything that the call does is the same. If the agent sends its id along, that is the same, too.
- A call claims nothing that was reported long ago, nor what was reported before the same act was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

from msgspec import Struct

from ..audit.call_record import Record
from ..hooks.evaluate import Hooks
from ..model.decision import Proceed
from ..model.hooks import EventContext
from ..model.settings import MAX_ASK_SECONDS
from ..processes.ancestry import Process

_MOST: Final = 4096  # calls that wait for their end: an agent whose hooks see no end leaves all of them
_SECONDS: Final = 600.0  # from an event to its call: the agent itself may ask the person meanwhile

Key = tuple[str, str, str]
"""Agent, session and the call's id, which may be empty."""

Act = tuple[str, str, bytes]
"""Server, tool, and a digest of the arguments."""


class OpenCall(Struct, eq=False):
    """A call that may run now."""

    key: Key
    act: Act
    process: Process | None
    """Its agent."""
    context: EventContext
    """Its event, as hooks got it, with the arguments that the agent sends."""
    hooks: Hooks
    decision: Proceed
    policy: str
    """The digest of the configuration by which it was judged."""
    seen: str
    """What its hooks have got besides, as `seen.digest_of` says."""
    record: Record | None
    """None: it is not recorded, or somebody else records it."""
    started: float
    allowed: float
    """By `perf_counter`: when its event came, and when it could begin."""
    at: float = 0.0
    """By the clock of the table."""
    asked: bool = False
    """The agent asks the person first."""
    claimed: bool = False
    """It cannot be claimed any more."""
    taken_over: bool = False
    """The run that has claimed it does everything that is left to do: hooks after it, and its record."""


class OpenCalls:
    """All of them under one configuration."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` returns seconds and never goes back."""
        self._clock = clock
        self._calls: dict[OpenCall, None] = {}
        self._by_key: dict[Key, list[OpenCall]] = {}
        self._by_act: dict[tuple[str, bytes], list[OpenCall]] = {}  # without the server: agents may not name it

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[OpenCall]:
        return iter(self._calls)

    def open_call(self, call: OpenCall) -> OpenCall | None:
        """A call may run from now on. Returns the oldest of too many, which is not open any more."""
        oldest = next(iter(self._calls)) if len(self._calls) >= _MOST else None
        if oldest is not None:
            self._remove(oldest)
        call.at = self._clock()
        self._calls[call] = None
        self._by_key.setdefault(call.key, []).append(call)
        self._by_act.setdefault(call.act[1:], []).append(call)
        return oldest

    def end_call(self, key: Key, act: Act) -> OpenCall | None:
        """The call that an event after it is about, which is not open any more; None: none is known."""
        calls = self._by_key.get(key, ())
        alike = [call for call in calls if call.act == act]
        by_id = [call for call in calls if key[2] and call.act[:2] == act[:2]]  # the agent may have changed arguments
        call = next(iter((*alike, *by_id)), None)
        if call is not None:
            self._remove(call)
        return call

    def refused(self, process: Process | None, act: Act) -> None:
        """Such a call was refused: earlier ones, which the agent has not sent yet, are not what it sends next."""
        for call in self._by_act.get(act[1:], ()):
            call.claimed = call.claimed or call.process == process

    def claim(self, process: Process, act: Act, call_id: str) -> OpenCall | None:
        """The call that a run gets now, which this agent has started; None: nobody has reported it.

        `call_id` is the agent's own id, if the call has it along: then it is also found where the agent has
        another name for the server. Else it is empty.
        """
        now = self._clock()
        for call in reversed(self._by_act.get(act[1:], ())):
            old = now - call.at > (MAX_ASK_SECONDS if call.asked else _SECONDS)
            of_server = call.act[0] == act[0] or (not call.act[0] and not call.context.own_tool)
            same = call.key[2] == call_id and bool(of_server or call.act[0]) if call_id else of_server
            if same and not (call.claimed or old) and call.process == process:
                call.claimed = True
                return call
        return None

    def _remove(self, call: OpenCall) -> None:
        del self._calls[call]
        of_key, of_act = self._by_key[call.key], self._by_act[call.act[1:]]
        of_key.remove(call)
        of_act.remove(call)
        if not of_key:
            del self._by_key[call.key]
        if not of_act:
            del self._by_act[call.act[1:]]
