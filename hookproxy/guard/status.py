"""The state of a guard, as `hookproxy guard status` shows it to people. Pure."""

from __future__ import annotations

from msgspec import Struct


class NativeSessionStatus(Struct, frozen=True):
    """A session of an agent that the guard knows."""

    agent: str
    session: str
    """The agent's id of it."""


class Status(Struct, frozen=True, kw_only=True):
    """One guard. Times are seconds since 1970."""

    v: int = 1
    """The number of this form."""
    pid: int
    since: float
    version: str
    """Of the hookproxy that runs, which may be older than the one that is installed."""
    config: str
    """The path of the configuration; empty: there is none."""
    problem: str
    """Why the configuration cannot be read, and nothing is judged; empty: it can."""
    fails_closed: bool
    """The configuration wants calls refused where no guard can judge them: entries that are installed now do so."""
    idle_seconds: float = 0.0
    """It ends after so many seconds without an event; 0: never by itself."""
    sessions: tuple[NativeSessionStatus, ...] = ()
    clients: int = 0
    """Events that are judged now."""
    open_calls: int = 0
    """Calls that may run, and whose end is not known yet."""
