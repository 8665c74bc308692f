"""Puts hookproxy in front of the servers in an agent's configuration, and takes it out again: what `wrap` plans.

What comes out is read again before anybody writes it: it must start what it should, and hold everything else as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final

from msgspec import Struct

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError
from . import wrap_entry
from . import wrap_entry as entries
from .find_servers import Entry, Kind, servers
from .json_file import JSON
from .syntax_tree import Edit, Mapping, Syntax, Tree, edited, plain, shown, where
from .toml_file import TOML
from .wrap_entry import Options, Wrapping
from .yaml_file import YAML

SYNTAXES: Final = (JSON, TOML, YAML)

LONGEST: Final = 2**20
"""Characters of TOML and YAML, whose readers take seconds for as much: what people write by hand has thousands."""


Launcher = Callable[[Entry], tuple[str, ...]]
"""The words that start hookproxy where this entry is started."""


class Configuration(Struct, frozen=True):
    """An agent's configuration as it is."""

    path: str
    text: str
    syntax: Syntax
    tree: Mapping
    entries: tuple[Entry, ...]


class Plan(Struct, frozen=True):
    """What is to be changed, and the text after it."""

    text: str
    edits: tuple[Edit, ...]
    changed: tuple[Entry, ...]
    unchanged: tuple[Entry, ...]
    """Of those that were asked for."""


def read(path: str, text: str) -> Configuration:
    """What a configuration holds, by the ending of its name: YAML, TOML or else JSON. Raises ConfigError."""
    syntax = next((one for one in SYNTAXES if path.endswith(one.endings)), JSON)
    if syntax is not JSON and len(text) > LONGEST:
        raise ConfigError(
            path,
            f"is longer than {LONGEST} characters, which no {syntax.name} of an agent is",
            "name an agent's configuration",
        )
    tree = syntax.read(path, text)
    return Configuration(path, text, syntax, tree, tuple(servers(path, text, tree, syntax)))


def wrapping(entry: Entry) -> Wrapping | None:
    """How an entry is wrapped, if it is."""
    return wrap_entry.wrapping(entry.argv)


def wrap(found: Configuration, names: Sequence[str], launcher: Launcher, options: Options) -> Plan:
    """Put hookproxy in front of the servers of these names, of all if none are given. Raises ConfigError."""

    def ours(entry: Entry) -> tuple[str, ...]:
        return entries.ours(entry, launcher(entry), options)

    return _plan(
        found,
        names,
        lambda entry: entries.wrap(found.text, found.syntax, entry, ours(entry)),
        lambda entry: (*ours(entry), *entries.own(entry)),
    )


def unwrap(found: Configuration, names: Sequence[str]) -> Plan:
    """Take hookproxy out again. Raises ConfigError."""
    return _plan(found, names, lambda entry: entries.unwrap(found.text, found.syntax, entry), entries.own)


def _plan(
    found: Configuration,
    names: Sequence[str],
    edit: Callable[[Entry], list[Edit]],
    expected: Callable[[Entry], tuple[str, ...]],
) -> Plan:
    chosen = _chosen(found, names)
    edits: list[Edit] = []
    changed: list[Entry] = []
    unchanged: list[Entry] = []
    for entry in chosen:
        if entry.kind is Kind.STARTED:
            _check_name(found, entry)
        mine = edit(entry) if entry.kind is Kind.STARTED else []
        edits += mine
        (changed if mine else unchanged).append(entry)
    text = edited(found.text, edits)
    plan = Plan(text, tuple(edits), tuple(changed), tuple(unchanged))
    if edits:
        _check(found, plan, {entry.place: expected(entry) for entry in changed})
    return plan


def _chosen(found: Configuration, names: Sequence[str]) -> list[Entry]:
    if not found.entries:
        raise ConfigError(found.path, "there are no servers in it", "add a server first, as your agent's documents say")
    known = {entry.name for entry in found.entries}
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"its servers: {', '.join(map(shown, sorted(known)))}"
            raise ConfigError(found.path, f"there is no server {name!r} in it", hint)
    chosen = [entry for entry in found.entries if not names or entry.name in names]
    for entry in chosen if names else ():
        if entry.kind is not Kind.STARTED:
            raise ConfigError(
                where(found.path, found.text, entry.start), f"{entry.place} {why_not(entry)}", "leave this --server out"
            )
    return chosen


def why_not(entry: Entry) -> str:
    """Why there is nothing to wrap in an entry."""
    if entry.kind is Kind.REMOTE:
        return "is reached at an address: the agent starts nothing that hooks could be put in front of"
    return "has no command: the agent or an extension starts it"


def _check_name(found: Configuration, entry: Entry) -> None:
    """Raise ConfigError for a name that no command line can carry."""
    try:
        carried = "\0" not in entry.name and entry.name.encode() is not None
    except UnicodeEncodeError:
        carried = False
    if not carried:
        place = where(found.path, found.text, entry.start)
        raise ConfigError(place, f"no command line can carry the name {entry.name!r}", "rename it")


def _check(found: Configuration, plan: Plan, expected: dict[str, tuple[str, ...]]) -> None:
    """Raise ConfigError unless the new text differs from the old one in what it should, and in nothing else."""
    refused = ConfigError(
        where(found.path, found.text, plan.changed[0].start),
        "is laid out in a way that cannot be edited safely",
        "nothing was changed; write the command and its arguments plainly, or edit them by hand",
    )
    try:
        after = read(found.path, plan.text)
    except ConfigError:
        raise refused from None
    if len(after.entries) != len(found.entries):
        raise refused
    for old, new in zip(found.entries, after.entries, strict=True):
        if old.place != new.place or new.argv != expected.get(old.place, old.argv):
            raise refused
    if _rest(found, expected.keys()) != _rest(after, expected.keys()):
        raise refused


def _rest(found: Configuration, changed: Container[str]) -> object:
    """All that the file says, but for what starts these servers."""
    cut = {}
    for entry in found.entries:
        if entry.place in changed and entry.inside is not None and entry.command is not None:
            cut[id(entry.inside)] = (entry.command.key, entry.args_key)
    return _without(found.tree, cut)


def _without(tree: Tree, cut: dict[int, tuple[str, str]]) -> object:
    if not isinstance(tree, Mapping):
        return plain(tree)
    keys = cut.get(id(tree), ())
    return {each.key: _without(each.value, cut) for each in tree.members if each.key not in keys}
