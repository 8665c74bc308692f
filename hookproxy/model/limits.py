"""Limits of calls: what one counts, of whose calls, in which time, and what follows beyond it. Frozen values."""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import Final

from msgspec import Struct

from .counts import counted
from .durations import shown_duration
from .sizes import shown_size


class Per(StrEnum):
    """The period in which a limit counts."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    SESSION = "session"  # one run of the proxy, or one session of an agent


SECONDS: Final = {Per.SECOND: 1.0, Per.MINUTE: 60.0, Per.HOUR: 3600.0, Per.DAY: 86_400.0, Per.SESSION: inf}
"""The length of each period."""


class Within(StrEnum):
    """Whose calls count together."""

    SESSION = "session"
    AGENT = "agent"  # its session, with all its subagents
    SUBAGENT = "subagent"  # each subagent alone, and the main agent alone


class Beyond(StrEnum):
    """What follows if a call exceeds a limit."""

    DENY = "deny"
    ASK = "ask"
    COMMENT = "comment"  # the call runs, and the model reads of it


class Measure(StrEnum):
    """What a limit counts. Each has a key of this name in the configuration."""

    CALLS = "calls"
    SAME = "same"  # calls of one tool with the same arguments
    SECONDS = "seconds"  # that calls took
    RESULT_BYTES = "result_bytes"
    BYTES = "bytes"  # of arguments and results, at a gateway

    @property
    def known_after(self) -> bool:
        """It is known only after a call how much it was."""
        return self not in (Measure.CALLS, Measure.SAME)


class Limit(Struct, frozen=True):
    """The most that calls of these tools may be together in one period. Each run of the proxy counts its own."""

    tool: str
    """A glob over the names of tools, like a permission rule without parentheses."""
    most: float
    """How much the measure may be: a number of calls, seconds or bytes."""
    per: Per
    by: str
    """Its table in the configuration, for people: `limits[0]`."""
    place: str = ""
    """File, line and key of it, for people; empty if not known."""
    users: tuple[str, ...] = ()
    """At a gateway: whom it is about, as `Principal.is_among` has it; empty: everybody."""
    servers: tuple[str, ...] = ()
    """At a gateway: the servers that it is about; empty: all."""
    together: bool = False
    """At a gateway: all its users count together, and not each one alone."""
    watched: bool = False
    """It is only watched: it refuses nothing, and counts for itself."""
    measure: Measure = Measure.CALLS
    window: float = 0.0
    """Seconds of the period, in place of `per`, which is SESSION then; 0: `per` is the period."""
    within: Within | None = None
    """Whose calls count together; None: those of the run, and at a gateway those of a user."""
    beyond: Beyond = Beyond.DENY

    @property
    def period(self) -> float:
        """Seconds in which it counts; infinite: the session."""
        return self.window or SECONDS[self.per]

    @property
    def of_session(self) -> bool:
        """It counts the calls of one session alone, also where others are counted for a user."""
        return self.within is not None or self.period == inf

    @property
    def key(self) -> str:
        """What distinguishes it from all others of its configuration: one table may have several measures."""
        return f"{self.place or self.by}: {self.measure}"

    @property
    def amount(self) -> str:
        """How much it allows, for people."""
        match self.measure:
            case Measure.CALLS:
                return counted(self.most, "call")
            case Measure.SAME:
                return f"{self.most:.0f} times the same call" if self.most > 1 else "once the same call"
            case Measure.SECONDS:
                return f"{counted(self.most, 'second')} of calls"
            case Measure.RESULT_BYTES:
                return f"{shown_size(int(self.most))} of results"
            case Measure.BYTES:
                return f"{shown_size(int(self.most))} of arguments and results"

    @property
    def span(self) -> str:
        """In which time, and of whom alone, for people: `per hour`, `within 10 minutes by each subagent`."""
        time = f"within {shown_duration(self.window)}" if self.window else f"per {self.per}"
        return f"{time} by each subagent" if self.within is Within.SUBAGENT else time

    @property
    def summary(self) -> str:
        """All of it in one line, for people: `Bash: 20 calls per hour, then ask`."""
        then = "" if self.beyond is Beyond.DENY else f", then {self.beyond}"
        return f"{self.tool}: {self.amount} {self.span}{then}"

    def __str__(self) -> str:
        """What it allows, for people and for the model, to follow `no more than`."""
        of_tool = "" if self.tool == "*" else f" of {self.tool}"
        return f"{self.amount}{of_tool} {self.span}"


class CountedCall(Struct, frozen=True):
    """What tells a call from others that the same limit counts."""

    tool: str = ""
    """The tool, with what distinguishes it from one of the same name elsewhere."""
    arguments: bytes = b""
    """Normalised JSON of those that tell it from other calls of the tool (`same_calls.compared`)."""
    subagent: str = ""
    """Who makes it; empty: the main agent, or it is not known."""


ANY_CALL: Final = CountedCall()
"""A call of which nothing else is known."""
