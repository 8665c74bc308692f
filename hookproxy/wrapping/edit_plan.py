"""Plans how `wrap` puts hookproxy in front of the servers in an agent's configuration, and how `unwrap` removes it.

The new text is parsed again before it is written: it must start the right programs, and everything else must be
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError
from . import mcp_remote, remote_entry, rewrite_entry, wrap_entry
from .find_servers import Entry, Kind, NoServers, servers
from .json_file import JSON
from .remote_entry import NotTranslatable, Remote
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
    reasons: Mapping[str, str] = {}
    """Why an entry was left as it is, by its key path; for those that are wrapped already there is none."""
    rewritten: frozenset[str] = frozenset()
    """The key paths of those entries in which more than the command and its arguments change."""
    notes: tuple[str, ...] = ()
    """What there is to know about the changed entries."""


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


def wrap(
    configuration: Configuration,
    names: Sequence[str],
    launcher: Launcher,
    options: RunOptions,
    replace_mcp_remote: bool = False,
) -> Plan:
    """Put hookproxy in front of the servers with these names, or of all if none are given. Raises ConfigError.

    With `replace_mcp_remote`, an entry that starts mcp-remote becomes one with the address.
    """
    text, syntax = configuration.text, configuration.syntax
    notes: list[str] = []

    def as_remote(entry: Entry) -> Remote | None:
        try:
            return remote_entry.remote(entry, syntax.name, replace_mcp_remote)
        except NotTranslatable as reason:
            if entry.kind is not Kind.STARTED:
                raise
            notes.append(f"{entry.key_path} {reason}: mcp-remote is not replaced")
            return None

    def change(entry: Entry) -> Change | None:
        remote = None if wrapping(entry) else as_remote(entry)
        if remote is None:
            if entry.kind is not Kind.STARTED:
                raise NotTranslatable(NO_COMMAND)
            if replace_mcp_remote and wrapping(entry) and starts_mcp_remote(entry):
                notes.append(f"{entry.key_path} is wrapped with mcp-remote already: unwrap it, and wrap it again")
            words = wrap_entry.wrapping_words(entry, launcher(entry), options)
            edits = wrap_entry.wrap(text, syntax, entry, words)
            return Change(tuple(edits), (*words, *wrap_entry.server_command(entry))) if edits else None
        words = wrap_entry.remote_words(entry, launcher(entry), options, remote.options)
        rewritten = _rewrite(configuration, entry, words, remote)
        notes.extend(f"{entry.key_path}: {note}" for note in remote.notes)
        return rewritten

    return replace(_plan(configuration, names, change), notes=tuple(notes))


def unwrap(configuration: Configuration, names: Sequence[str]) -> Plan:
    """Remove hookproxy again. Raises ConfigError."""

    def change(entry: Entry) -> Change | None:
        present = wrapping(entry)
        if entry.kind is Kind.OTHER:
            raise NotTranslatable(NO_COMMAND)
        if present is None:
            return None
        if present.is_remote:
            return _restore(configuration, entry, present)
        edits = wrap_entry.unwrap(configuration.text, configuration.syntax, entry)
        return Change(tuple(edits), wrap_entry.server_command(entry))

    return _plan(configuration, names, change)


def _restore(configuration: Configuration, entry: Entry, present: Wrapping) -> Change:
    """The change that restores the entry of a server at an address. Raises ConfigError, NotTranslatable."""
    path, text, syntax = configuration.path, configuration.text, configuration.syntax
    if rewrite_entry.kept_text(entry) is None:
        raise NotTranslatable(f"was written by hand, or its variable {remote_entry.ENTRY_VARIABLE} was removed")
    restored = rewrite_entry.with_restored(text, syntax, entry)
    before = _entry_in(configuration, restored, entry.key_path)
    if restored is None or before is None:
        raise rewrite_entry.changed_error(path, text, entry, "its layout")
    remote = remote_entry.remote(before, syntax.name, replace_mcp_remote=True)
    if remote is None or wrap_entry.remote_options(present.options) != remote.options:
        raise rewrite_entry.changed_error(path, text, entry, "its --url or --header")
    if not rewrite_entry.is_made_from(entry, remote, before):
        raise rewrite_entry.changed_error(path, text, entry, f"its {entry.shape.env}")
    edit = rewrite_entry.unwrap(path, text, syntax, entry, restored, before)
    return Change((edit,), before.argv, is_rewritten=True)


def _entry_in(configuration: Configuration, text: str | None, key_path: str) -> Entry | None:
    """The entry with this key path in a changed text; None if the text cannot be read, or does not have it."""
    try:
        entries = read(configuration.path, text or "").entries
    except ConfigError:
        return None
    return next((entry for entry in entries if entry.key_path == key_path), None)


def _rewrite(configuration: Configuration, entry: Entry, words: tuple[str, ...], remote: Remote) -> Change:
    """The change by which the entry starts these words.

    Raises NotTranslatable unless `unwrap` would restore every byte, and no other value of the entry changes.
    """
    edits = rewrite_entry.wrap(configuration.text, configuration.syntax, entry, words, remote)
    text = apply_edits(configuration.text, edits)
    after = _entry_in(configuration, text, entry.key_path)
    same = after is not None and rewrite_entry.unrelated(after) == rewrite_entry.unrelated(entry)
    restored = rewrite_entry.with_restored(text, configuration.syntax, after) if after is not None and same else None
    if restored != configuration.text:
        raise NotTranslatable("is laid out in a way that cannot be edited safely: write its keys in a simpler way")
    return Change(tuple(edits), words, is_rewritten=True)


class Change(Struct, frozen=True):
    """The edits of one entry, and the command line that it has after them."""

    edits: tuple[Edit, ...]
    argv: tuple[str, ...]
    is_rewritten: bool = False
    """True if more than its command and arguments change."""


def _plan(configuration: Configuration, names: Sequence[str], change: Callable[[Entry], Change | None]) -> Plan:
    selected = _selected(configuration, names)
    changes: dict[str, Change] = {}
    reasons: dict[str, str] = {}
    for entry in selected:
        if entry.kind is not Kind.OTHER:
            _check_name(configuration, entry)
        try:
            found = change(entry)
        except NotTranslatable as reason:
            reasons[entry.key_path] = str(reason)
            if names:
                raise _not_changed(configuration, entry, str(reason)) from None
            continue
        if found is not None:
            changes[entry.key_path] = found
    edits = [edit for found in changes.values() for edit in found.edits]
    changed = tuple(entry for entry in selected if entry.key_path in changes)
    unchanged = tuple(entry for entry in selected if entry.key_path not in changes)
    rewritten = frozenset(key_path for key_path, found in changes.items() if found.is_rewritten)
    plan = Plan(apply_edits(configuration.text, edits), tuple(edits), changed, unchanged, reasons, rewritten)
    if edits:
        _check_result(configuration, plan, changes)
    return plan


def _not_changed(configuration: Configuration, entry: Entry, reason: str) -> ConfigError:
    place = location(configuration.path, configuration.text, entry.start)
    return ConfigError(place, f"{entry.key_path} {reason}", "leave this --server out")


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
    return [entry for entry in configuration.entries if not names or entry.name in names]


NO_COMMAND: Final = "has no command and no address: the agent itself or an extension starts it"


def starts_mcp_remote(entry: Entry) -> bool:
    """True if the server's own command is mcp-remote."""
    return mcp_remote.parse(wrap_entry.server_command(entry)) is not None


def why_not(configuration: Configuration, entry: Entry) -> str:
    """Why an entry cannot be wrapped, after its name; empty if it can be, or is."""
    if entry.kind is Kind.OTHER:
        return NO_COMMAND
    if entry.kind is Kind.STARTED:
        return ""
    try:
        remote = remote_entry.of_entry(entry, configuration.syntax.name)
        _rewrite(configuration, entry, (wrap_entry.PROGRAM,), remote)
    except NotTranslatable as reason:
        return str(reason)
    return ""


def _check_name(configuration: Configuration, entry: Entry) -> None:
    """Raise ConfigError if the name cannot be passed on a command line."""
    try:
        is_valid = "\0" not in entry.name and entry.name.encode() is not None
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        place = location(configuration.path, configuration.text, entry.start)
        raise ConfigError(place, f"the name {entry.name!r} cannot be passed on a command line", "rename it")


def _check_result(configuration: Configuration, plan: Plan, changes: Mapping[str, Change]) -> None:
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
        change = changes.get(old.key_path)
        if old.key_path != new.key_path or new.argv != (change.argv if change is not None else old.argv):
            raise error
    if _unrelated_values(configuration, changes) != _unrelated_values(after, changes):
        raise error


def _unrelated_values(configuration: Configuration, changes: Mapping[str, Change]) -> object:
    """All values of the file, except the commands of these servers, and what is rewritten with them."""
    excluded: dict[int, frozenset[str]] = {}
    for entry in configuration.entries:
        change = changes.get(entry.key_path)
        if change is not None and change.is_rewritten:  # its other values are compared where it is rewritten
            excluded[id(entry.body)] = frozenset(entry.values)
        elif change is not None and entry.command is not None:
            excluded[id(entry.parent)] = frozenset((entry.command.key, entry.args_key))
    return _values_without(configuration.tree, excluded)


def _values_without(tree: Tree, excluded: Mapping[int, frozenset[str]]) -> object:
    if not isinstance(tree, MappingNode):
        return plain_value(tree)
    keys = excluded.get(id(tree), frozenset())
    return {member.key: _values_without(member.value, excluded) for member in tree.members if member.key not in keys}
