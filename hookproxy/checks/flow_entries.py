"""What entries of `[flow]` are about, and which decide nothing: a label that no source gives, a misspelled tool.

Pure. A label that a managed hook may add is given by nobody that is known here, so it is not a mistake then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from ..dialects.dialect import Effect, Group
from ..dialects.shared.hook_file import suggestion
from ..flow.matching import Matcher
from ..hooks.familiar_tools import FamiliarTools
from ..hooks.idle import IdleRule, near_server
from ..hooks.permissions import layers
from ..hooks.select import HookGroups
from ..model.flow import BY_SESSION, Sink, Source
from ..model.hooks import Tool
from ..model.settings import Settings
from ..policy import methods
from ..policy.rule_repairs import with_home

_ACTIONS: Final = {"ask": "a person is asked about", "deny": "it does not get", "comment": "the model is told about"}
_ANNOTATIONS: Final = (
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
    "sensitiveHint",
    "privateHint",
)
"""Those that are true or false: of MCP itself, and of SEP-1913."""
_SIMILAR: Final = 0.7  # of two labels: `secrets` and `secret`


class CoveredEntry(Struct, frozen=True):
    """A source or a sink, and the tools of a server that it may be about."""

    entry: Source | Sink
    tools: tuple[str, ...]
    """And methods."""
    idle: tuple[IdleRule, ...] = ()
    """Its names of tools, if it is about none."""
    idle_servers: tuple[IdleRule, ...] = ()
    """Its names of servers that are nearly this one's, if it is about another."""

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return _kind(self.entry)

    @property
    def summary(self) -> str:
        """What it says, for people."""
        return summary(self.entry)


def entries_of(settings: Settings) -> Iterator[Source | Sink]:
    """All sources and sinks: the user's, and the administrator's."""
    yield from settings.flow_sources
    yield from settings.flow_sinks
    if settings.managed is not None:
        yield from entries_of(settings.managed)


def summary(entry: Source | Sink) -> str:
    """What a source or a sink says, for people."""
    match = asdict(entry.match)
    about = "; ".join(f"{name.removesuffix('s')} {', '.join(values)}" for name, values in match.items() if values)
    labels = ", ".join(entry.labels)
    if isinstance(entry, Source):
        what = "what looks like a secret" if entry.secrets else "what it returns"
        return f"{about}: {what} is {labels}" + (f", for {entry.seconds:g} seconds" if entry.seconds else "")
    by = f", by {entry.by}" if entry.by != BY_SESSION else ""
    arguments = f", in {', '.join(entry.arguments)}" if entry.arguments else ""
    back = ", but for what comes from the same server" if entry.back_to_origin else ""
    return f"{about}: {_ACTIONS[entry.action]} {labels}{by}{arguments}{back}"


def labels_of_nobody(settings: Settings, groups: Sequence[Group]) -> Iterator[str]:
    """A sentence for each label that a sink refuses and no source gives. It begins with the sink's place."""
    if any(group.managed and group.dialect.has_effect(Effect.SETS_LABELS) for group in groups):
        return
    entries = list(entries_of(settings))
    given = {label for entry in entries if isinstance(entry, Source) for label in entry.labels}
    for sink in (entry for entry in entries if isinstance(entry, Sink)):
        for label in (label for label in sink.labels if label not in given):
            yield f"{sink.place}: no source gives the label {label!r}{_near(label, given)}"


def labels_without_sink(settings: Settings) -> Iterator[str]:
    """A sentence for each label that a source gives and no sink refuses. It begins with the source's place."""
    entries = list(entries_of(settings))
    refused = {label for entry in entries if isinstance(entry, Sink) for label in entry.labels}
    for source in (entry for entry in entries if isinstance(entry, Source)):
        for label in (label for label in source.labels if label not in refused):
            yield f"{source.place}: no sink refuses the label {label!r}{_near(label, refused)}"


def misspelled_annotations(settings: Settings) -> Iterator[str]:
    """A sentence for each annotation that looks like one of MCP's, and is not. It begins with its entry's place."""
    for entry in entries_of(settings):
        for word in entry.match.annotations:
            name = word.removeprefix("!")
            if "=" not in name and name not in _ANNOTATIONS and (hint := suggestion(name, _ANNOTATIONS, _SIMILAR)):
                yield f"{entry.place}: MCP has no annotation {name!r} ({hint})"


def unread_variables(settings: Settings) -> Iterator[str]:
    """A sentence for each path with the variable of the home folder, which is not replaced in it."""
    for entry in entries_of(settings):
        for path in entry.match.paths:
            if (meant := with_home(path)) != path:
                yield f"{entry.place}: variables are not replaced in {path!r}: write {meant!r}"


def _near(label: str, labels: Iterable[str]) -> str:
    hint = suggestion(label, sorted(labels), _SIMILAR)
    return f" ({hint})" if hint else ""


def covered(
    settings: Settings, groups: Sequence[Group], server: str, tools: Sequence[Tool], command: Sequence[str], info: str
) -> tuple[CoveredEntry, ...]:
    """What each entry may be about of a server; `info` is the name that the server gives itself."""
    if not settings.has_flow:
        return ()
    familiar = FamiliarTools(command, server=server)
    familiar.note_tools(tools, info)
    whole = HookGroups(groups, server, settings.aliases, familiar if settings.auto_aliases else None)
    of_layers = [layer.groups for layer in layers(whole, settings, familiar)]
    names = {
        name: [of_layer.possible_names(name) for of_layer in of_layers]
        for name in (*(tool.name for tool in tools), *methods.JUDGED)
    }
    return tuple(_covered(entry, server, names) for entry in entries_of(settings))


def _covered(entry: Source | Sink, server: str, names: dict[str, list[tuple[str, ...]]]) -> CoveredEntry:
    matcher, match = Matcher(entry.match), entry.match
    of_server = tuple(
        tool for tool, of_layers in names.items() if any(matcher.may_match(server, of_layer) for of_layer in of_layers)
    )
    if not matcher.serves(server):
        near = ((named, near_server(named, server)) for named in match.servers)
        others = (IdleRule(_kind(entry), named, entry.place, what) for named, what in near if what)
        return CoveredEntry(entry, (), idle_servers=tuple(others))
    if of_server or entry.match.methods:
        return CoveredEntry(entry, of_server)
    idle = (IdleRule.of(_kind(entry), tool, entry.place, server, names) for tool in match.tools)
    # an entry without a server may be meant for the tools of other ones
    return CoveredEntry(entry, (), tuple(rule for rule in idle if rule.near or match.servers))


def _kind(entry: Source | Sink) -> str:
    return "source" if isinstance(entry, Source) else "sink"
