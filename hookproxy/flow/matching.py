"""Which calls the entries of `[flow]` are about, by the same patterns and readings as permission rules.

An entry is compiled to permission rules, one for each of its tools with each of its paths, hosts or resources: so a
path is read as a rule reads it, however a call spells it. As with deny and ask rules, an entry is about a call that
cannot be judged (law 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.flow import FlowMatch
from ..model.settings import Settings
from ..policy import methods
from ..policy.call_texts import CallArguments, all_texts
from ..policy.globs import OF_RESOURCE, BudgetExceeded, WorkBudget
from ..policy.rules import Rules, ToolRules

_EVERYTHING: Final = ("*", *(name for name in methods.JUDGED if name != methods.ROOTS))
"""What an entry is about that names neither tools nor methods. The agent's folders are nothing that it has read."""

_ANNOTATION_DEFAULTS: Final[Mapping[str, object]] = {"destructiveHint": True, "openWorldHint": True}
"""What holds for a tool whose server does not say it, as MCP has it; other hints are false then."""

_NAMES_KEPT: Final = 1024  # tools of which it is known which rules name them: more than all servers of a session have


class View(Struct, frozen=True):
    """A call under some of its names, with its arguments in all readings under these."""

    names: tuple[str, ...]
    readings: tuple[bytes, ...]
    """Normalised JSON objects."""


class Act(Struct, frozen=True):
    """A call, or a request of another method, as sources and sinks are compared with it."""

    server: str
    tool: str
    """As the server calls it, or the method."""
    views: tuple[View, ...]
    annotations: bytes = b""
    """What the server's list says of the tool, as a JSON object; empty: nothing."""
    of_result: tuple[Mapping[str, object], ...] = ()
    """What the server says of the call's result, and of parts of it."""
    listed: frozenset[str] | None = None
    """The names of the arguments that the server lists, by `raw_json.loose_key`; None: not known."""


class Matcher:
    """One entry, compiled."""

    def __init__(self, match: FlowMatch) -> None:
        """Raises ValueError for a pattern that is not one of a permission rule."""
        names = (*match.tools, *match.methods) or _EVERYTHING
        specified = [_rules(names, specifiers) for specifiers in _specifiers(match) if specifiers]
        self._specified = [_Named(rules) for rules in specified]
        self._named = _Named(_rules(names, ()))
        self._servers = tuple(glob.casefold() for glob in match.servers)
        self._annotations = match.annotations

    def may_match(self, server: str, names: Sequence[str]) -> bool:
        """True if it may be about some call of a tool, or a method, with these names."""
        return self.serves(server) and self._named.rules.name(names)

    def matches(self, act: Act) -> bool:
        """True if it is about this call, or if that cannot be said."""
        if not self.serves(act.server) or not all(self._is_annotated(word, act) for word in self._annotations):
            return False
        if not self._specified:
            return any(self._named.about(view.names) for view in act.views)
        budget = WorkBudget(OF_RESOURCE) if methods.has_uri(act.tool) else None
        return all(any(_applies(named, view, budget) for view in act.views) for named in self._specified)

    def serves(self, server: str) -> bool:
        """True if it is about this server, among others."""
        return not self._servers or any(fnmatchcase(server.casefold(), glob) for glob in self._servers)

    def _is_annotated(self, word: str, act: Act) -> bool:
        """Whether a hint holds for the tool, or for some of its result; a method has only those of the result."""
        if not word.startswith("!") and any(holds(word, hints, {}) for hints in act.of_result):
            return True
        return not methods.is_method(act.tool) and holds(word, annotations_of(act.annotations), _ANNOTATION_DEFAULTS)


def annotations_of(raw: bytes) -> Mapping[str, object]:
    """The hints of a JSON object; none if it cannot be read."""
    try:
        return msgspec.json.decode(raw or b"{}", type=dict[str, object])
    except msgspec.DecodeError:
        return {}


def holds(word: str, annotations: Mapping[str, object], defaults: Mapping[str, object]) -> bool:
    """True if a hint such as `openWorldHint`, `!readOnlyHint` or `returnMetadata.source=internal` holds.

    `defaults` are the values of hints that are not given; of all others it is false.
    """
    name, equals, wanted = word.removeprefix("!").partition("=")
    value: object = annotations
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        value = defaults.get(name, False)
    values = value if isinstance(value, list) else [value]
    is_given = wanted in [text for text in values if isinstance(text, str)] if equals else value is True
    return is_given is not word.startswith("!")


class _Named:
    """Rules, and which of them are about a tool, by its names."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.about = lru_cache(maxsize=_NAMES_KEPT)(self._about)

    def _about(self, names: tuple[str, ...]) -> ToolRules:
        return self.rules.about(names)


def _specifiers(match: FlowMatch) -> tuple[Sequence[str], ...]:
    paths = [path.replace(" ", "*") for path in match.paths]  # a rule with a blank would be about commands
    return paths, [f"domain:{host}" for host in match.hosts], match.resources


def _rules(names: Sequence[str], specifiers: Sequence[str]) -> Rules:
    texts = tuple(f"{name}({specifier})" for name in names for specifier in specifiers) if specifiers else tuple(names)
    return Rules.of(Settings(ask=texts))


def _applies(named: _Named, view: View, budget: WorkBudget | None) -> bool:
    about = named.about(view.names)
    return bool(about) and any(
        _has_text(arguments) and (about.judge(arguments, budget) is not None or _names_place(about, arguments))
        for arguments in view.readings
    )


def _names_place(about: ToolRules, arguments: bytes) -> bool:
    """Whether a command line of a call that was judged names such a path or host.

    A permission rule about a path is about commands that are nothing else; a label must know what any command reads.
    """
    try:
        lines = CallArguments(arguments).texts("", without_long=True).lines
    except (ValueError, RecursionError, BudgetExceeded):
        return False  # what cannot be read was judged: every entry is about it
    if not lines:
        return False
    from .command_places import TooMany, places_in  # only for command lines

    try:
        return any(about.match_places(*places_in(line)) for _, line in lines)
    except TooMany:
        return True


def _has_text(arguments: bytes) -> bool:
    """Whether a call says anything: where it says nothing, it names no path, host or resource.

    A permission rule would apply, as the server may have a path of its own. A label that every call without arguments
    gets would say nothing.
    """
    try:
        return any(all_texts(bytes(raw)) for raw in raw_json.fields(arguments).values())
    except (ValueError, RecursionError):
        return True
