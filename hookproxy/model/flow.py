"""Where data may go: sources and sinks as they are configured, and what a session has read since it began.

A *source* gives labels to what it returns, and a *sink* is what some labels may not reach. A *reading* is one result of
a source in a session, and a *chain* is a call that would carry readings to a sink. Values only: `flow` decides.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Label = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z")]
"""A word that says what data is, such as `untrusted`, `private` or `secret`."""

BY_SESSION: Final = "session"
"""`Sink.by`: whatever is sent after a reading carries it."""
BY_ADDRESS: Final = "address"
"""`Sink.by`: only an address that was read itself may not reach the sink."""

MOST_SHOWN: Final = 3  # readings that a chain tells of: more, nobody reads

SEVERAL_SERVERS: Final = "*"
"""`Reading.server` of what stands for readings from several ones: no server has this name."""


class FlowMatch(Struct, frozen=True):
    """What an entry is about: each key that is not empty must match, by one of its values."""

    tools: tuple[str, ...] = ()
    """Globs over names, as those of permission rules."""
    methods: tuple[str, ...] = ()
    """Names of methods, or globs over them: an entry with both is about these tools and these methods."""
    servers: tuple[str, ...] = ()
    """Globs over names of servers; that of an agent's own tools is empty."""
    paths: tuple[str, ...] = ()
    """Patterns of paths, as in the parentheses of permission rules."""
    hosts: tuple[str, ...] = ()
    """Domains, as behind `domain:` in permission rules."""
    resources: tuple[str, ...] = ()
    """Globs over the URIs of resources."""
    annotations: tuple[str, ...] = ()
    """Hints of the server, such as `openWorldHint`, `!readOnlyHint` or `sensitiveHint=high`."""


class Source(Struct, frozen=True):
    """An entry of `[[flow.sources]]`."""

    match: FlowMatch
    labels: tuple[str, ...]
    key: str
    """Its key in the configuration, for people: `flow.sources[0]`."""
    secrets: bool = False
    """Only what looks like a secret gets the labels, and a result without one gets none."""
    seconds: float = 0.0
    """How long its labels stick; 0: as long as the session."""
    place: str = ""
    """File, line and key; empty if not known."""


class Sink(Struct, frozen=True):
    """An entry of `[[flow.sinks]]`."""

    match: FlowMatch
    labels: tuple[str, ...]
    """What may not reach it."""
    key: str
    """As in `Source`."""
    action: Literal["ask", "deny", "comment"] = "ask"
    by: Literal["session", "value", "address"] = "session"
    back_to_origin: bool = False
    """What comes from a server may go back to it."""
    place: str = ""
    watched: bool = False
    """It is only watched: it decides nothing."""
    arguments: tuple[str, ...] = ()
    """What leaves by it: only these arguments, and a call without any of them is not this sink. Empty: all."""


class Reading(Struct, frozen=True, omit_defaults=True):
    """What one result of a source has brought into a session."""

    labels: tuple[str, ...]
    tool: str
    """The tool as the server calls it, or the method."""
    server: str = ""
    place: str = ""
    """From where, as the call said it: a path, an address; empty if it said nothing of the kind."""
    at: float = 0.0
    """When it reached the agent, in seconds since 1970."""
    seconds: float = 0.0
    """How long its labels stick; 0: as long as the session."""
    call: str = ""
    """The id of its call in the audit; empty: it has none."""
    number: int = 0
    """Its number in the session, which whoever keeps the labels gives to it: a later one is higher."""


class Chain(Struct, frozen=True, omit_defaults=True):
    """A call that would carry readings to a sink."""

    readings: tuple[Reading, ...]
    """Those whose labels may not reach it, at least one and at most `MOST_SHOWN`: the newest, the last one last."""
    numbers: tuple[int, ...]
    """The numbers of all of them."""
    labels: tuple[str, ...]
    """The labels of these that the sink does not take."""
    sink: str
    """The key of the sink in the configuration."""
    tool: str
    """The tool that is called, or the method."""
    server: str = ""
    place: str = ""
    """Where to, as the call says it: an address, a path; empty if it says nothing of the kind."""
    managed: bool = False
    """The administrator's configuration has the sink."""


class ClearedFlow(Struct, frozen=True):
    """A person allows that some readings go to a tool for the rest of the session."""

    readings: tuple[int, ...]
    """Their numbers."""
    sink: str
    tool: str
    server: str
    managed: bool = False
    labels: tuple[str, ...] = ()
    """Those that the person was shown: a sink of this name that refuses others is another one."""

    def clears(self, reading: Reading, chain: Chain, refused: frozenset[str]) -> bool:
        """True if this reading may be carried along this chain, whose sink refuses these labels."""
        if not refused.intersection(reading.labels) <= set(self.labels):
            return False
        return reading.number in self.readings and (self.sink, self.tool, self.server, self.managed) == (
            chain.sink,
            chain.tool,
            chain.server,
            chain.managed,
        )


class KnownLabels(Struct, frozen=True):
    """What sticks to a session now."""

    readings: tuple[Reading, ...] = ()
    """The oldest first."""
    carried: frozenset[int] = frozenset()
    """The numbers of those of which the texts in question may have a part."""
    cleared: tuple[ClearedFlow, ...] = ()
