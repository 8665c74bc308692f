"""Reads hook files in which `hooks` names events, and each event lists commands, flat or in Claude Code's groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from . import hook_file as shared_hook_file
from . import labels
from .handler_types import Handler
from .hook_file import Table

NO_TIMEOUT: Final = shared_hook_file.LONG_TIMEOUT
"""Seconds, for systems and entries without a timeout. No agent waits longer for a call."""

_TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
    Event.PERMISSION_DENIED,
)
_GROUP_KEYS: Final = ("matcher", "hooks")


class CommandFile(Struct, frozen=True):
    """How the hook files of one system differ from those of others."""

    dialect: str
    events: Mapping[str, Event]
    unavailable: Mapping[str, str]
    timeout: float
    """Seconds."""
    keys: tuple[str, ...]
    """The keys of an entry that have a meaning."""
    compile_matcher: Callable[[str], Callable[[str], bool]]
    """Raises re.error, ValueError, OverflowError for a matcher that cannot be used: its hooks are left out."""
    grouped: bool = False
    """Entries are in groups with a matcher, as in Claude Code's files."""
    group_keys: tuple[str, ...] = ()
    """The keys of a group that have a meaning besides `matcher` and `hooks`."""
    shortest_timeout: float = 0
    """Seconds, which stand for a timeout of 0 or more that is shorter."""
    timeout_key: str = "timeout"
    """Empty: entries have no timeout."""
    milliseconds: bool = False
    """The unit of `timeout_key`. Otherwise it is seconds."""
    milliseconds_from: float = math.inf
    """A command's timeout of this or more is in milliseconds in any case."""
    also_on_failure: tuple[str, ...] = ()
    """Names of events after a call that occur after a failed call, too."""
    trigger_matchers: tuple[Event, ...] = ()
    """Events that have no tool and whose matchers are tried on their trigger."""
    matcher_notes: Callable[[Event, str, Callable[[str], bool]], list[str]] = lambda _event, _pattern, _matches: []
    """Sentences about a matcher that never matches, each without its place."""
    other_handler: Callable[[Table], Handler | None] = lambda _entry: None
    """How an entry runs that is no command; None: it is one. Raises ConfigError for a type that cannot run."""
    finish: Callable[[HookFile, Table, HookSpec], HookSpec] = lambda _file, _entry, hook: hook
    """Sets what only this system has. Raises ConfigError for an entry that cannot run."""
    notes_on: Callable[[str, Table], list[str]] = lambda _name, _entry: []
    """What an entry of the event of this name does not do as its author wrote, each a sentence without a place."""
    without_effect: Mapping[str, str] = field(default_factory=dict)
    """Keys that have a meaning to the system only, each with a reason."""
    no_command: Callable[[Table], str] = lambda _entry: ""
    """Why an entry without `command` cannot run here; empty: it is not valid."""
    event_hint: Callable[[str], str] = lambda _name: ""
    """A hint for a key that is no event."""
    sequential: bool = False
    """If a group that matches has `sequential: true`, all hooks that match run one after another."""


def read_hook_file(format: CommandFile, file: HookFile) -> HookList:
    """The hooks of a JSON file, which may have comments. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if "hooks" not in document.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    return read_events(format, file, document.table("hooks"))


def read_events(format: CommandFile, file: HookFile, table: Table) -> HookList:
    """The hooks of a table with events. An entry that cannot run is left out with a note."""

    def read_event(name: str) -> HookList:
        def read_entries() -> HookList:
            if not format.grouped:
                return shared_hook_file.read_each(
                    table, name, lambda entry: read_entry(format, file, name, entry, entry)
                )
            return shared_hook_file.read_each(table, name, lambda group: _group(format, file, name, group))

        return shared_hook_file.or_left_out(table.where, table.place(name), read_entries)

    return shared_hook_file.read_events(table, format.events, format.unavailable, read_event, format.event_hint)


def read_entry(format: CommandFile, file: HookFile, name: str, matched: Table, entry: Table) -> HookList:
    """The hooks of one entry of an event. `matched` is the object with its matcher: the entry or its group.

    A member that is null counts as absent: programs write such members, and a guard must not be lost for one.
    Raises ConfigError for an entry that cannot run.
    """
    source = f"{file.path}: {entry.path}"
    matched, entry = matched.without_nulls(), entry.without_nulls()
    handler = format.other_handler(entry)
    if handler is None and "command" not in entry.members and (reason := format.no_command(entry)):
        return HookList((), (f"{source} does not run: {reason}",))
    handler, notes = handler or _command(entry), list[str]()
    notes += handler.http_target.notes
    event = format.events[name]
    matches, pattern = _matcher(format, event, matched, notes)
    timeout = _timeout(format, event, entry, notes)
    hook = HookSpec(
        dialect=format.dialect,
        source=source,
        event=event,
        label=handler.label,
        matcher=pattern,
        matches=matches,
        shell=handler.shell,
        cwd=file.project_dir,
        timeout=timeout,
        type=handler.type,
        url=handler.http_target.url,
        headers=handler.http_target.headers,
        allowed_env_vars=handler.http_target.allowed_env_vars,
        server=handler.server,
        tool=handler.tool,
        input=handler.input,
        event_name=name,
        sequential=format.sequential and matched.flag("sequential"),
    )
    hook = format.finish(file, entry, hook)
    notes += format.notes_on(name, entry)
    notes += [f"{key} is ignored: {why}" for key, why in format.without_effect.items() if entry.members.get(key)]
    hooks = [hook]
    if name in format.also_on_failure:
        hooks.append(replace(hook, event=Event.POST_TOOL_USE_FAILURE))
    return HookList(tuple(hooks), (*(f"{source}: {note}" for note in notes), *_unknown_keys(entry, format.keys)))


def _command(entry: Table) -> Handler:
    handler = entry.text("type", "command")
    if handler != "command":
        raise entry.error("type", f"{handler!r} cannot run behind MCP", 'only "command" can')
    entry.require("command", 'write "command": "./guard.sh"')
    command = entry.text("command")
    if not command.strip():
        raise entry.error("command", "is empty", "write a command, or remove the entry")
    return Handler("command", labels.command_label(command), shell=command)


def has_entries(
    members: Mapping[str, object], events: set[str], key: str, *, or_none: bool = False, and_others: bool = False
) -> bool:
    """Whether `hooks` has only these events, each a list of objects with this key, and at least one entry.

    `or_none`: there may be no entry yet. `and_others`: there may be other names beside these events.
    """
    table = members.get("hooks")
    if not isinstance(table, dict) or not (and_others or table.keys() <= events):
        return False
    lists = [entries for name, entries in table.items() if name in events]
    return (any(lists) or or_none) and all(
        isinstance(entries, list) and all(isinstance(entry, dict) and key in entry for entry in entries)
        for entries in lists
    )


def _group(format: CommandFile, file: HookFile, name: str, group: Table) -> HookList:
    group.require("hooks", 'write {"hooks": [{"type": "command", "command": "./guard.sh"}]}')
    keys = (*_GROUP_KEYS, "sequential") if format.sequential else _GROUP_KEYS
    notes = HookList((), tuple(_unknown_keys(group, (*keys, *format.group_keys))))
    entries = shared_hook_file.read_each(group, "hooks", lambda entry: read_entry(format, file, name, group, entry))
    return shared_hook_file.merge((notes, entries))


def _timeout(format: CommandFile, event: Event, entry: Table, notes: list[str]) -> float:
    """The entry's timeout in seconds. One that its author may have meant otherwise adds to `notes`."""
    key = format.timeout_key
    written = bool(key) and key in entry.members
    value = entry.members.get(key, 0)
    is_long = isinstance(value, int | float) and value >= format.milliseconds_from and "url" not in entry.members
    if written and isinstance(value, int | float) and value is not False and 0 <= value < format.shortest_timeout:
        seconds = format.shortest_timeout
    elif written and (format.milliseconds or is_long):
        seconds = entry.milliseconds(key, format.timeout)
        notes += shared_hook_file.milliseconds_notes(key, seconds)
    elif written:
        seconds = entry.seconds(key, format.timeout)
        notes += shared_hook_file.long_timeout_notes(seconds)
    else:
        seconds = format.timeout
    if event is not Event.SESSION_END:
        return seconds
    limit = shared_hook_file.SESSION_END_TIMEOUT_LIMIT if written else shared_hook_file.SESSION_END_TIMEOUT
    return min(seconds, limit)


def _matcher(format: CommandFile, event: Event, matched: Table, notes: list[str]) -> tuple[Callable[[str], bool], str]:
    """The compiled matcher and its text. A matcher that has no meaning for the event adds to `notes`."""
    pattern = matched.text("matcher")
    if event in (*_TOOL_EVENTS, *format.trigger_matchers):
        matches = shared_hook_file.compile_member(matched, "matcher", format.compile_matcher)
        notes += [f"the matcher {pattern!r} {why}" for why in format.matcher_notes(event, pattern, matches)]
        return matches, pattern
    if pattern not in ("", "*", ".*"):
        notes.append(f"the matcher {pattern!r} is ignored: behind MCP, there is nothing that it could be tried on")
    return (lambda _name: True), pattern


def _unknown_keys(table: Table, known: tuple[str, ...]) -> list[str]:
    return [
        f"{table.where}: {table.place(key)} is unknown and ignored{f': {hint}' if hint else ''}"
        for key, hint in table.unknown(known).items()
    ]
