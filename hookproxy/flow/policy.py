"""The sources and sinks of one configuration, and which chains a call would make. Pure.

How it works: a call that a source is about gives its result the source's labels (`sources_of`). A call that a sink is
about is compared with the readings of the session: each reading with a label that the sink does not take, and that the
call may carry, makes a chain, unless a person has cleared it or it goes back to its own server (`violations`). With `by
= "session"` a call carries all readings; otherwise those of which a print was found in its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from ..model.flow import BY_SESSION, MOST_SHOWN, Chain, KnownLabels, Reading, Sink, Source
from .arguments import has_arguments
from .matching import Act, Matcher
from .places import place_of

_STRICTEST: Final = ("deny", "ask", "comment")


class Violation(NamedTuple):
    """A chain that a call would make to a sink, and the sink, which says what is done about it."""

    chain: Chain
    sink: Sink

    @property
    def action(self) -> Literal["ask", "deny", "comment"]:
        """What is done about it."""
        return self.sink.action


class FlowPolicy:
    """The sources and sinks of one layer."""

    def __init__(self, sources: Sequence[Source], sinks: Sequence[Sink], *, managed: bool = False) -> None:
        """Raises ValueError for a pattern that is not one of a permission rule."""
        self._sources = [(source, Matcher(source.match)) for source in sources]
        self._sinks = [(sink, Matcher(sink.match)) for sink in sinks]
        self._managed = managed

    def may_have_source(self, server: str, names: Sequence[str]) -> bool:
        """True if some source may be about a tool, or a method, with these names."""
        return any(matcher.may_match(server, names) for _, matcher in self._sources)

    def may_have_sink(self, server: str, names: Sequence[str]) -> bool:
        """True if some sink may be about a tool, or a method, with these names."""
        return any(matcher.may_match(server, names) for _, matcher in self._sinks)

    @property
    def has_sources(self) -> bool:
        """Some source is configured."""
        return bool(self._sources)

    @property
    def reads_results(self) -> bool:
        """Some source depends on annotations that the server gives with a result."""
        return any(source.match.annotations for source, _ in self._sources)

    @property
    def by_content(self) -> frozenset[str]:
        """The labels that some sink does not take where something of what was read is in a call."""
        return frozenset(label for sink, _ in self._sinks if sink.by != BY_SESSION for label in sink.labels)

    def sources_of(self, act: Act) -> list[Source]:
        """The sources that the call is."""
        return [source for source, matcher in self._sources if matcher.matches(act)]

    def sinks_of(self, act: Act) -> list[Sink]:
        """The sinks that the call is."""
        return [sink for sink, matcher in self._sinks if matcher.matches(act) and has_arguments(act, sink.arguments)]

    def violations(self, act: Act, sinks: Iterable[tuple[Sink, KnownLabels]]) -> list[Violation]:
        """What the call would carry to these sinks that they do not take; the strictest first.

        What is known of the texts that may be carried is of those that each sink looks at.
        """
        chains = ((self._chain(act, sink, known), sink) for sink, known in sinks)
        violations = [Violation(chain, sink) for chain, sink in chains if chain is not None]
        return sorted(violations, key=lambda violation: _STRICTEST.index(violation.action))

    def _chain(self, act: Act, sink: Sink, known: KnownLabels) -> Chain | None:
        place = place_of(act.views[-1].readings[0])  # under familiar names of arguments, if it has some
        chain = Chain((), (), (), sink.key, act.tool, act.server, place, self._managed)
        readings = tuple(
            reading for reading in _carried(act, sink, known) if not _is_cleared(reading, chain, sink, known)
        )
        if not readings:
            return None
        carried = {label for reading in readings for label in reading.labels}
        labels = tuple(label for label in sink.labels if label in carried)
        numbers = tuple(reading.number for reading in readings)
        return replace(chain, readings=readings[-MOST_SHOWN:], numbers=numbers, labels=labels)


def _carried(act: Act, sink: Sink, known: KnownLabels) -> Iterator[Reading]:
    """The readings that the call may carry and the sink does not take."""
    refused = frozenset(sink.labels)
    for reading in known.readings:
        if refused.isdisjoint(reading.labels):
            continue
        if sink.by != BY_SESSION and reading.number not in known.carried:
            continue
        if not (sink.back_to_origin and act.server and reading.server == act.server):
            yield reading


def _is_cleared(reading: Reading, chain: Chain, sink: Sink, known: KnownLabels) -> bool:
    """Whether a person allows it: where nobody is asked now, what was allowed under another configuration is over."""
    if sink.action == "deny":
        return False
    refused = frozenset(sink.labels)
    return any(cleared.clears(reading, chain, refused) for cleared in known.cleared)
