"""Plans how `wrap` puts hookproxy in front of the servers in an agent's configuration, and how `unwrap` removes it.

The new text is parsed again before it is written: it must start the right programs, and everything else must be
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..dialects.shared.hook_file import suggestion
from ..model.env_references import ENTRY_VARIABLE
from ..model.errors import ConfigError
from . import gateway_entry, http_entry, mcp_remote, remote_entry, rewrite_entry, wrap_entry
from .find_servers import Entry, Kind, NoServers, servers
from .gateway_entry import Gateway
from .http_entry import Replaced
from .json_file import JSON
from .known_agents import HttpForm
from .remote_entry import NotTranslatable, Remote
from .syntax_tree import Edit, MappingNode, Syntax, Tree, apply_edits, location, plain_value, printable_name
from .toml_file import TOML
from .wrap_entry import CONNECT, RUN, RunOptions, Wrapping
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
    replaced: Mapping[str, Replaced] = {}
    """What must be recorded before the file is written, so that the entry can be restored, by its key path."""


def read(path: str, text: str) -> Configuration:
    """Parse a configuration, by its file name's ending, as YAML, TOML or else JSON. Raises ConfigError, NoServers."""
    if not text.strip(_BLANKS):
        raise NoServers(path, "is empty", "add a server first, as your agent's documentation describes")
    syntax = next((candidate for candidate in SYNTAXES if path.endswith(candidate.endings)), JSON)
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
    selected = _selected(configuration, names)
    rewritten = _run_rewrites(configuration, selected, launcher, options, replace_mcp_remote)

    def change(entry: Entry) -> Change:
        rewrite, present = rewritten.get(entry.key_path), wrapping(entry)
        if http_entry.reaches_gateway(entry) or (present is not None and present.verb != RUN):
            raise NotTranslatable(_REACHES_GATEWAY)
        if isinstance(rewrite, Change):
            return rewrite
        if entry.kind is not Kind.STARTED:
            raise rewrite or NotTranslatable(NO_COMMAND)
        notes = [f"{entry.key_path} {rewrite}: mcp-remote is not replaced"] if rewrite is not None else []
        if replace_mcp_remote and present and starts_mcp_remote(entry):
            notes.append(f"{entry.key_path} is wrapped with mcp-remote already: unwrap it, and wrap it again")
        words = wrap_entry.wrapping_words(entry, launcher(entry), options)
        return _with_words_before(configuration, entry, words, notes)

    return _plan(configuration, selected, bool(names), change)


def wrap_over_http(configuration: Configuration, names: Sequence[str], form: HttpForm, gateway: str) -> Plan:
    """Let the agent reach these servers, or all, at this address of a gateway over HTTP itself. Raises ConfigError."""

    def change(entry: Entry) -> Change:
        if entry.kind is Kind.OTHER:
            raise NotTranslatable(NO_COMMAND)
        url = http_entry.address_of(gateway, entry)
        if wrapping(entry) or http_entry.reaches_gateway(entry) not in ("", url):
            raise NotTranslatable(_OTHER_WAY)
        return Change() if http_entry.reaches_gateway(entry) else _over_http(configuration, entry, form, url)

    return _plan(configuration, _selected(configuration, names), bool(names), change)


def _over_http(configuration: Configuration, entry: Entry, form: HttpForm, url: str) -> Change:
    """The change of one entry, which was tried: it reaches the address, and can be undone to the byte."""
    text, syntax = configuration.text, configuration.syntax
    edits = http_entry.wrap(text, syntax, entry, form, url)
    after = apply_edits(text, edits)
    made = _entries(configuration.path, after).get(entry.key_path)
    if made is not None and http_entry.reaches_gateway(made) == url:
        replaced = Replaced(http_entry.region(text, syntax, entry), http_entry.region(after, syntax, made))
        if replaced.before and http_entry.with_region(after, syntax, made, replaced.before) == text:
            return Change(tuple(edits), is_rewritten=True, replaced=replaced)
    raise NotTranslatable(_UNREADABLE)


def wrap_for_gateway(configuration: Configuration, names: Sequence[str], launcher: Launcher, gateway: Gateway) -> Plan:
    """Reach the servers with these names, or all if none are given, through the gateway. Raises ConfigError."""
    selected = _selected(configuration, names)
    rewritten = _rewrites(
        configuration,
        [] if gateway.from_caller else [entry for entry in selected if entry.kind is not Kind.OTHER],
        gateway_entry.rewritten,
        lambda entry, _: gateway.words(entry, launcher(entry)),
    )

    def change(entry: Entry) -> Change:
        rewrite, present = rewritten.get(entry.key_path), wrapping(entry)
        if http_entry.reaches_gateway(entry):
            raise NotTranslatable(_OTHER_WAY)
        if isinstance(rewrite, Change):
            return rewrite
        if entry.kind is Kind.OTHER or rewrite is not None:
            raise rewrite or NotTranslatable(NO_COMMAND)
        if present is not None and (present.verb != CONNECT or present.is_remote == gateway.from_caller):
            raise NotTranslatable(_OTHER_WAY)
        return _with_words_before(configuration, entry, gateway.words(entry, launcher(entry)))

    return _plan(configuration, selected, bool(names), change)


def _with_words_before(
    configuration: Configuration, entry: Entry, words: tuple[str, ...], notes: Sequence[str] = ()
) -> Change:
    """The change that puts words before the command of an entry, or that replaces those that are there."""
    edits = wrap_entry.wrap(configuration.text, configuration.syntax, entry, words)
    return Change(tuple(edits), (*words, *wrap_entry.server_command(entry)), notes=tuple(notes))


def why_not(configuration: Configuration) -> dict[str, str]:
    """Why entries cannot be wrapped, by their key paths: those that can be, or are, are not in it."""
    others = {entry.key_path: NO_COMMAND for entry in configuration.entries if entry.kind is Kind.OTHER}
    rewritten = _run_rewrites(
        configuration, configuration.entries, lambda _entry: (wrap_entry.PROGRAM,), RunOptions(), False
    )
    others |= {entry.key_path: _REACHES_GATEWAY for entry in configuration.entries if http_entry.reaches_gateway(entry)}
    return {path: str(reason) for path, reason in rewritten.items() if isinstance(reason, NotTranslatable)} | others


def _run_rewrites(
    configuration: Configuration,
    entries: Sequence[Entry],
    launcher: Launcher,
    options: RunOptions,
    replace_mcp_remote: bool,
) -> dict[str, Change | NotTranslatable]:
    """As `_rewrites`, for `hookproxy run`."""
    return _rewrites(
        configuration,
        entries,
        lambda entry: remote_entry.remote(entry, configuration.syntax.name, replace_mcp_remote),
        lambda entry, remote: wrap_entry.remote_words(entry, launcher(entry), options, remote.options),
    )


def _rewrites(
    configuration: Configuration,
    entries: Sequence[Entry],
    translate: Callable[[Entry], Remote | None],
    words_of: Callable[[Entry, Remote], tuple[str, ...]],
) -> dict[str, Change | NotTranslatable]:
    """The changes by which entries start other words, or why they do not, by their key paths.

    Those that are wrapped, or that `translate` returns None for, are wrapped as they are.
    """
    reasons: dict[str, Change | NotTranslatable] = {}
    changes: dict[str, Change] = {}
    for entry in entries:
        try:
            remote = None if wrapping(entry) else translate(entry)
            if remote is None:
                continue
            words = words_of(entry, remote)
            edits = rewrite_entry.wrap(configuration.text, configuration.syntax, entry, words, remote)
        except NotTranslatable as reason:
            reasons[entry.key_path] = reason
            continue
        notes = tuple(f"{entry.key_path}: {note}" for note in remote.notes)
        changes[entry.key_path] = Change(tuple(edits), words, is_rewritten=True, notes=notes)
    unsafe = _unsafe(configuration, changes)
    if unsafe and len(changes) > 1:  # one of them may have made the others unreadable
        unsafe = {path for path, change in changes.items() if _unsafe(configuration, {path: change})}
    unreadable = NotTranslatable(_UNREADABLE)
    return {**reasons, **changes, **dict.fromkeys(unsafe, unreadable)}


def _unsafe(configuration: Configuration, changes: Mapping[str, Change]) -> set[str]:
    """Those of the changes that `unwrap` would not undo to the byte, or that change other values of the entry."""
    if not changes:
        return set()
    edits = {path: change.edits for path, change in changes.items()}
    text = apply_edits(configuration.text, [edit for edits_of_entry in edits.values() for edit in edits_of_entry])
    after = _entries(configuration.path, text)
    unsafe = set[str]()
    for entry in configuration.entries:
        if (path := entry.key_path) not in changes:
            continue
        new = after.get(path)
        before = apply_edits(configuration.text, [edit for key, one in edits.items() if key != path for edit in one])
        same = new is not None and rewrite_entry.unrelated(new) == rewrite_entry.unrelated(entry)
        if new is None or not same or rewrite_entry.with_restored(text, configuration.syntax, [new]) != before:
            unsafe.add(path)
    return unsafe


def _entries(path: str, text: str) -> dict[str, Entry]:
    """The entries of a changed text, by their key paths; none if it cannot be read."""
    try:
        return {entry.key_path: entry for entry in read(path, text).entries}
    except ConfigError:
        return {}


def unwrap(configuration: Configuration, names: Sequence[str], replaced: Mapping[str, Replaced] = {}) -> Plan:
    """Remove hookproxy again. `replaced` are the entries of this file that the record has. Raises ConfigError."""
    selected = _selected(configuration, names)
    kept = [entry for entry in selected if rewrite_entry.kept_text(entry) is not None]
    restored = rewrite_entry.with_restored(configuration.text, configuration.syntax, kept) if kept else ""
    before = _entries(configuration.path, restored) if kept else {}

    def change(entry: Entry) -> Change:
        present = wrapping(entry)
        if entry.kind is Kind.OTHER:
            raise NotTranslatable(NO_COMMAND)
        if present is None:
            return _restore_http(configuration, entry, replaced.get(entry.key_path))
        if present.is_remote:
            return _restore(configuration, entry, present, restored, before.get(entry.key_path))
        edits = wrap_entry.unwrap(configuration.text, configuration.syntax, entry)
        return Change(tuple(edits), wrap_entry.server_command(entry))

    return _plan(configuration, selected, bool(names), change)


def _restore_http(configuration: Configuration, entry: Entry, replaced: Replaced | None) -> Change:
    """The change that restores an entry which reaches a gateway over HTTP. Raises ConfigError, NotTranslatable."""
    path, text, syntax = configuration.path, configuration.text, configuration.syntax
    if replaced is None:
        if http_entry.reaches_gateway(entry):
            raise NotTranslatable("was written by hand, or is not in the record of what was wrapped")
        return Change()
    restored, written = (http_entry.with_region(text, syntax, entry, one) for one in (replaced.before, replaced.after))
    before, made = (_entries(path, one).get(entry.key_path) for one in (restored, written))
    if before is None or made is None:
        raise rewrite_entry.changed_error(path, text, entry, "its layout")
    if entry.values == before.values:  # somebody has restored it already
        return Change()
    return Change(
        (http_entry.unwrap(path, text, syntax, entry, restored, before, made),), before.argv, is_rewritten=True
    )


def _restore(
    configuration: Configuration, entry: Entry, present: Wrapping, restored: str, before: Entry | None
) -> Change:
    """The change that restores an entry: `restored` is the text with all kept entries, of which `before` is this one.

    Raises ConfigError, NotTranslatable.
    """
    path, text, syntax = configuration.path, configuration.text, configuration.syntax
    if rewrite_entry.kept_text(entry) is None:
        raise NotTranslatable(f"was written by hand, or its variable {ENTRY_VARIABLE} was removed")
    if before is None:
        raise rewrite_entry.changed_error(path, text, entry, "its layout")
    if present.verb == CONNECT:
        remote: Remote | None = gateway_entry.rewritten(before)
    else:
        remote = remote_entry.remote(before, syntax.name, replace_mcp_remote=True)
    if remote is None or (present.verb == RUN and wrap_entry.remote_options(present.options) != remote.options):
        raise rewrite_entry.changed_error(path, text, entry, "its --url or --header")
    if lost := rewrite_entry.lost_keys(entry, remote, before):
        raise rewrite_entry.changed_error(path, text, entry, f"its {', '.join(lost)}")
    edit = rewrite_entry.unwrap(path, text, syntax, entry, restored, before)
    return Change((edit,), before.argv, is_rewritten=True)


class Change(Struct, frozen=True):
    """The edits of one entry, none if it is as it should be, and the command line that it has after them."""

    edits: tuple[Edit, ...] = ()
    argv: tuple[str, ...] = ()
    is_rewritten: bool = False
    """True if more than its command and arguments change."""
    notes: tuple[str, ...] = ()
    replaced: Replaced | None = None
    """As `Plan.replaced`."""


def _plan(
    configuration: Configuration, selected: Sequence[Entry], by_name: bool, change: Callable[[Entry], Change]
) -> Plan:
    """The plan of these changes. Raises ConfigError, also for an entry that a person named and that cannot change."""
    changes: dict[str, Change] = {}
    reasons: dict[str, str] = {}
    notes: list[str] = []
    for entry in selected:
        if entry.kind is not Kind.OTHER:
            _check_name(configuration, entry)
        try:
            changed = change(entry)
        except NotTranslatable as reason:
            reasons[entry.key_path] = str(reason)
            if by_name:
                place = location(configuration.path, configuration.text, entry.start)
                raise ConfigError(place, f"{entry.key_path} {reason}", "leave this --server out") from None
            continue
        notes += changed.notes
        if changed.edits:
            changes[entry.key_path] = changed
    edits = tuple(edit for change in changes.values() for edit in change.edits)
    plan = Plan(
        apply_edits(configuration.text, edits),
        edits,
        changed=tuple(entry for entry in selected if entry.key_path in changes),
        unchanged=tuple(entry for entry in selected if entry.key_path not in changes),
        reasons=reasons,
        rewritten=frozenset(key_path for key_path, change in changes.items() if change.is_rewritten),
        replaced={key_path: change.replaced for key_path, change in changes.items() if change.replaced},
        notes=tuple(notes),
    )
    if edits:
        _check_result(configuration, plan, changes)
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
    return [entry for entry in configuration.entries if not names or entry.name in names]


_REACHES_GATEWAY: Final = "reaches the gateway, which judges its calls: unwrap it first"
_OTHER_WAY: Final = "is wrapped in another way already: unwrap it first"
_UNREADABLE: Final = "is laid out in a way that cannot be edited safely: write its keys in a simpler way"
NO_COMMAND: Final = "has no command and no address: the agent itself or an extension starts it"


def starts_mcp_remote(entry: Entry) -> bool:
    """True if the server's own command is mcp-remote."""
    return mcp_remote.parse(wrap_entry.server_command(entry)) is not None


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
