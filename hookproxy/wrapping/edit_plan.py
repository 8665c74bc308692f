"""Plans how `wrap` puts hookproxy in front of the servers in an agent's configuration, and how `unwrap` removes it.

The new text is parsed again before it is written: it must start the right programs, and everything else must be
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final

from msgspec import Struct

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError
from . import wrap_entry
from .find_servers import Entry, Kind, NoServers, servers
from .json_file import JSON
from .syntax_tree import Edit, MappingNode, Syntax, Tree, apply_edits, location, plain_value, printable_name
from .toml_file import TOML
from .wrap_entry import RunOptions, Wrapping
from .yaml_file import YAML

SYNTAXES: Final = (JSON, TOML, YAML)

MAX_LENGTH: Final = 2**20
"""Characters of TOML and YAML: their parsers take seconds for that many. Files written by hand have some thousands."""

_BLANKS: Final = " \t\r\n\ufeff"

Launcher = Callable[[Entry], tuple[str, ...]]
"""Returns the words that start hookproxy in the environment of an entry."""


class Configuration(Struct, frozen=True):
    """An agent's configuration as it was read."""

    path: str
    text: str
    syntax: Syntax
    tree: MappingNode
    entries: tuple[Entry, ...]


class Plan(Struct, frozen=True):
    """The planned edits, and the text after them."""

    text: str
    edits: tuple[Edit, ...]
    changed: tuple[Entry, ...]
    unchanged: tuple[Entry, ...]
    """The selected entries that no edit changes."""


def read(path: str, text: str) -> Configuration:
    """Parse a configuration, by its file name's ending, as YAML, TOML or else JSON. Raises ConfigError, NoServers."""
    if not text.strip(_BLANKS):
        raise NoServers(path, "is empty", "add a server first, as your agent's documentation describes")
    syntax = next((one for one in SYNTAXES if path.endswith(one.endings)), JSON)
    if syntax is not JSON and len(text) > MAX_LENGTH:
        raise ConfigError(
            path,
            f"is longer than {MAX_LENGTH} characters, the limit for {syntax.name} files",
            "name an agent's configuration",
        )
    tree = syntax.read(path, text)
    return Configuration(path, text, syntax, tree, tuple(servers(path, text, tree, syntax)))


def wrapping(entry: Entry) -> Wrapping | None:
    """How the entry is wrapped; None if it is not."""
    return wrap_entry.parse_wrapping(entry.argv)


def wrap(configuration: Configuration, names: Sequence[str], launcher: Launcher, options: RunOptions) -> Plan:
    """Put hookproxy in front of the servers with these names, or of all if none are given. Raises ConfigError."""

    def wrapping_words(entry: Entry) -> tuple[str, ...]:
        return wrap_entry.wrapping_words(entry, launcher(entry), options)

    return _plan(
        configuration,
        names,
        lambda entry: wrap_entry.wrap(configuration.text, configuration.syntax, entry, wrapping_words(entry)),
        lambda entry: (*wrapping_words(entry), *wrap_entry.server_command(entry)),
    )


def unwrap(configuration: Configuration, names: Sequence[str]) -> Plan:
    """Remove hookproxy again. Raises ConfigError."""
    return _plan(
        configuration,
        names,
        lambda entry: wrap_entry.unwrap(configuration.text, configuration.syntax, entry),
        wrap_entry.server_command,
    )


def _plan(
    configuration: Configuration,
    names: Sequence[str],
    edit: Callable[[Entry], list[Edit]],
    expected: Callable[[Entry], tuple[str, ...]],
) -> Plan:
    selected = _selected(configuration, names)
    edits: list[Edit] = []
    changed: list[Entry] = []
    unchanged: list[Entry] = []
    for entry in selected:
        if entry.kind is Kind.STARTED:
            _check_name(configuration, entry)
        entry_edits = edit(entry) if entry.kind is Kind.STARTED else []
        edits += entry_edits
        (changed if entry_edits else unchanged).append(entry)
    text = apply_edits(configuration.text, edits)
    plan = Plan(text, tuple(edits), tuple(changed), tuple(unchanged))
    if edits:
        _check_result(configuration, plan, {entry.key_path: expected(entry) for entry in changed})
    return plan


def require_servers(configuration: Configuration) -> None:
    """Raise ConfigError if the configuration has no servers."""
    if not configuration.entries:
        raise ConfigError(
            configuration.path,
            "there are no servers in it",
            "add a server first, as your agent's documentation describes",
        )


def _selected(configuration: Configuration, names: Sequence[str]) -> list[Entry]:
    require_servers(configuration)
    known = {entry.name for entry in configuration.entries}
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"its servers: {', '.join(map(printable_name, sorted(known)))}"
            raise ConfigError(configuration.path, f"there is no server {name!r} in it", hint)
    selected = [entry for entry in configuration.entries if not names or entry.name in names]
    for entry in selected if names else ():
        if entry.kind is not Kind.STARTED:
            raise ConfigError(
                location(configuration.path, configuration.text, entry.start),
                f"{entry.key_path} {why_not(entry)}",
                "leave this --server out",
            )
    return selected


def why_not(entry: Entry) -> str:
    """Why an entry cannot be wrapped."""
    if entry.kind is Kind.REMOTE:
        return "is reached at an address: the agent starts no program that could be wrapped"
    return "has no command: the agent itself or an extension starts it"


def _check_name(configuration: Configuration, entry: Entry) -> None:
    """Raise ConfigError if the name cannot be passed on a command line."""
    try:
        is_valid = "\0" not in entry.name and entry.name.encode() is not None
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        place = location(configuration.path, configuration.text, entry.start)
        raise ConfigError(place, f"the name {entry.name!r} cannot be passed on a command line", "rename it")


def _check_result(configuration: Configuration, plan: Plan, expected: dict[str, tuple[str, ...]]) -> None:
    """Raise ConfigError unless the new text has exactly the intended changes."""
    error = ConfigError(
        location(configuration.path, configuration.text, plan.changed[0].start),
        "this layout cannot be edited safely",
        "nothing was changed; write the command and its arguments in a simpler way, or edit them by hand",
    )
    try:
        after = read(configuration.path, plan.text)
    except ConfigError:
        raise error from None
    if len(after.entries) != len(configuration.entries):
        raise error
    for old, new in zip(configuration.entries, after.entries, strict=True):
        if old.key_path != new.key_path or new.argv != expected.get(old.key_path, old.argv):
            raise error
    if _unrelated_values(configuration, expected.keys()) != _unrelated_values(after, expected.keys()):
        raise error


def _unrelated_values(configuration: Configuration, changed: Container[str]) -> object:
    """All values of the file, except the commands of these servers."""
    excluded = {}
    for entry in configuration.entries:
        if entry.key_path in changed and entry.parent is not None and entry.command is not None:
            excluded[id(entry.parent)] = (entry.command.key, entry.args_key)
    return _values_without(configuration.tree, excluded)


def _values_without(tree: Tree, excluded: dict[int, tuple[str, str]]) -> object:
    if not isinstance(tree, MappingNode):
        return plain_value(tree)
    keys = excluded.get(id(tree), ())
    return {member.key: _values_without(member.value, excluded) for member in tree.members if member.key not in keys}
