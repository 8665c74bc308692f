"""Reads and writes hook files in which `hooks` names events, and events list commands, flat or in groups."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList, WrittenEntry
from . import hook_file as shared_hook_file
from . import labels
from .handler_types import Handler
from .hook_file import Table

NO_TIMEOUT: Final = shared_hook_file.LONG_TIMEOUT
"""Seconds, for systems and entries without a timeout. No agent waits longer for a call."""

_TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.PRE_MCP_TOOL_CALL,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
    Event.PERMISSION_DENIED,
)
_GROUP_KEYS: Final = ("matcher", "hooks")

MATCHES_ALL: Final = ("", "*", ".*")
"""Matchers that restrict nothing, whatever they are tried on."""


def regular_expression(names: Sequence[str]) -> str:
    """A regular expression that matches exactly these names; empty: there are none."""
    return f"^(?:{'|'.join(map(re.escape, names))})$" if names else ""


class Matcher(Struct, frozen=True):
    """For which tools the hooks of an entry run."""

    matches: Callable[[str], bool] = lambda _name: True
    text: str = ""
    """The matcher as people see it."""
    notes: tuple[str, ...] = ()
    """What it does not do as its author wrote, each a sentence without a place."""


class Matchers(Struct, frozen=True):
    """For which tools the hooks of an entry or of a group run."""

    compile: Callable[[str], Callable[[str], bool]] = lambda _pattern: lambda _name: True
    """Raises re.error, ValueError, OverflowError for a matcher that cannot be used: its hooks are left out. The default
    is for systems without matchers, and for those whose `Entries.finish` or `read` compiles them."""
    notes: Callable[[Event, str, Callable[[str], bool]], list[str]] = lambda _event, _pattern, _matches: []
    """Sentences about a matcher that never matches, each without its place."""
    triggers: tuple[Event, ...] = ()
    """Events that have no tool and whose matchers are tried on their trigger."""
    read: Callable[[str, Table], Matcher] | None = None
    """Reads the matcher of an event's entry or group in place of the three above, where it depends on the name of the
    event. Raises ConfigError."""
    write: Callable[[Sequence[str]], str] = regular_expression
    """The matcher for these tools and no others."""
    key: str = "matcher"
    """Where a matcher is written; empty: nowhere."""


class Timeouts(Struct, frozen=True):
    """How long hooks may take, by their entries."""

    default: float
    """Seconds."""
    keys: tuple[str, ...] = ("timeout",)
    """The names of an entry's timeout, of which the first that it has counts. None: entries have no timeout."""
    milliseconds: bool = False
    """The unit of the timeout. Otherwise it is seconds."""
    milliseconds_from: float | None = None
    """A command's timeout of this or more is in milliseconds in any case."""
    shortest: float = 0
    """Seconds, which stand for a timeout of 0 or more that is shorter."""
    skips_odd: str = ""
    """The system, if it ignores a timeout that is not a number. Otherwise such an entry is left out."""
    short_session_end: bool = True
    """SessionEnd hooks have a shorter timeout, as in Claude Code, because the agent has disconnected."""

    def members(self, seconds: float) -> dict[str, object]:
        """A timeout as it is written; none for 0, the default."""
        if not seconds or not self.keys:
            return {}
        plain = seconds if seconds % 1 else int(seconds)  # as people write it: without a fraction that is zero
        return {self.keys[0]: round(seconds * 1000) if self.milliseconds else plain}


class Entries(Struct, frozen=True):
    """The entries of an event: what they have, and what their hooks are."""

    keys: tuple[str, ...]
    """The keys of an entry that have a meaning."""
    grouped: bool = False
    """Entries are in groups with a matcher, as in Claude Code's files."""
    flat_too: bool = False
    """In a `grouped` file, an object without `hooks` is an entry of its own, as which entries are written."""
    group_keys: tuple[str, ...] = ()
    """The keys of a group that have a meaning besides `matcher` and `hooks`."""
    sequential: bool = False
    """If a group that matches has `sequential: true`, all hooks that match run one after another."""
    also_on_failure: tuple[str, ...] = ()
    """Names of events after a call that occur after a failed call, too."""
    read_handler: Callable[[HookFile, str, Table], Handler | str] = lambda _file, _name, entry: read_command(entry)
    """How an entry of the event of this name runs, or why it cannot run here. Raises ConfigError if it is not valid."""
    bash: bool = False
    """Commands run in bash. Otherwise they run in the person's shell."""
    label_key: str = ""
    """The key of an entry's name for people. Empty: its label is made of its command."""
    finish: Callable[[HookFile, Table, HookSpec], HookSpec] = lambda _file, _entry, hook: hook
    """Sets what only this system has. Raises ConfigError for an entry that cannot run."""
    notes_on: Callable[[HookFile, str, Table], list[str]] = lambda _file, _name, _entry: []
    """What an entry of the event of this name does not do as its author wrote, each a sentence without a place."""
    without_effect: Mapping[str, str] = field(default_factory=dict)
    """Keys that have a meaning to the system only, each with a reason."""
    null_is_absent: bool = True
    """A member of an entry that is null counts as absent. Otherwise such an entry is left out."""
    only_misspelt_keys: bool = False
    """Unknown keys get a note only if they look like known ones."""

    typed: bool = False
    """Entries are written with `"type": "command"`."""
    command: str = "command"
    """The key of a command that is written."""
    closed: tuple[str, object] | None = None
    """The member of an entry whose failure refuses calls; None: there is none."""
    condition: str = ""
    """The key of a permission rule as a condition; empty: there is none."""
    members: Mapping[str, object] = field(default_factory=dict)
    """What else entries are written with."""
    group_members: Mapping[str, object] = field(default_factory=dict)
    """What else groups are written with."""


class CommandFile(Struct, frozen=True):
    """How the hook files of one system differ from those of others. It is read by `read_hook_file` and its parts, and
    written by `write_hook_file`: what is written is read as the same hooks."""

    dialect: str
    events: Mapping[str, Event]
    unavailable: Mapping[str, str]
    timeouts: Timeouts
    entries: Entries
    matchers: Matchers = Matchers()
    members: Mapping[str, object] = field(default_factory=dict)
    """What else a file is written with."""


def write_hook_file(format: CommandFile, path: str, entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """A JSON file with these entries."""
    return json_file(path, {**format.members, "hooks": written_events(format, entries)})


def json_file(path: str, members: Mapping[str, object]) -> Mapping[str, str]:
    """The text of a JSON file by its path."""
    return {path: json.dumps(members, indent=2, ensure_ascii=False) + "\n"}


def written_events(format: CommandFile, entries: Sequence[WrittenEntry]) -> dict[str, list[dict[str, object]]]:
    """The member `hooks` of a file: the entries by their events."""
    events: dict[str, list[dict[str, object]]] = {}
    for entry in entries:
        events.setdefault(entry.event_name, []).append(_written(format, entry))
    return events


def _written(format: CommandFile, entry: WrittenEntry) -> dict[str, object]:
    """An entry, in a group of its own if the file has groups."""
    form = format.entries
    matcher = written_matcher(format.matchers, entry)
    first: dict[str, object] = {"type": "command"} if form.typed else {}
    hook = {**first, form.command: entry.command}
    rest = format.timeouts.members(entry.timeout)
    if form.condition and entry.only_if:
        rest[form.condition] = entry.only_if
    if form.closed is not None and entry.fails_closed:
        rest[form.closed[0]] = form.closed[1]
    if form.grouped and not form.flat_too:
        return {**matcher, "hooks": [{**hook, **rest, **form.members}], **form.group_members}
    return {**hook, **matcher, **rest, **form.members}


def written_matcher(matchers: Matchers, entry: WrittenEntry) -> dict[str, object]:
    """The matcher of an entry; none if it is for all tools."""
    pattern = (entry.matcher or matchers.write(entry.names)) if matchers.key else ""
    return {matchers.key: pattern} if pattern else {}


def read_hook_file(format: CommandFile, file: HookFile) -> HookList:
    """The hooks of a JSON file, which may have comments. Raises ConfigError."""
    return read_hooks(format, file, shared_hook_file.read_document(file.path, file.text, comments=True))


def read_hooks(format: CommandFile, file: HookFile, document: Table) -> HookList:
    """The hooks in the member `hooks` of a document. Raises ConfigError if it is not an object."""
    if "hooks" not in document.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    return read_events(format, file, document.table("hooks"))


def read_events(format: CommandFile, file: HookFile, table: Table) -> HookList:
    """The hooks of a table with events. An entry that cannot run is left out with a note."""

    def read_event(name: str) -> HookList:
        def read_entries() -> HookList:
            return shared_hook_file.read_each(table, name, lambda entry: _group_or_entry(format, file, name, entry))

        return shared_hook_file.or_left_out(table.where, table.place(name), read_entries)

    return shared_hook_file.read_events(table, format.events, format.unavailable, read_event)


def _group_or_entry(format: CommandFile, file: HookFile, name: str, item: Table) -> HookList:
    if not format.entries.grouped or (format.entries.flat_too and "hooks" not in item.members):
        return read_entry(format, file, name, item, item)
    item.require("hooks", 'write {"hooks": [{"type": "command", "command": "./guard.sh"}]}')
    keys = (*_GROUP_KEYS, "sequential") if format.entries.sequential else _GROUP_KEYS
    notes = HookList((), tuple(unknown_keys(format, item, (*keys, *format.entries.group_keys))))
    entries = shared_hook_file.read_each(item, "hooks", lambda entry: read_entry(format, file, name, item, entry))
    return shared_hook_file.merge((notes, entries))


def read_entry(format: CommandFile, file: HookFile, name: str, matched: Table, entry: Table) -> HookList:
    """The hooks of one entry of an event. `matched` is the object with its matcher: the entry or its group.

    Raises ConfigError for an entry that cannot run.
    """
    source = f"{file.path}: {entry.path}"
    if format.entries.null_is_absent:  # programs write such members, and a guard must not be lost for one
        matched, entry = matched.without_nulls(), entry.without_nulls()
    handler = format.entries.read_handler(file, name, entry)
    if isinstance(handler, str):
        return HookList((), (f"{source} does not run: {handler}",))
    event, target = format.events[name], handler.http_target
    matcher = _matcher(format, name, matched)
    timeout, timeout_notes = _timeout(format, event, entry)
    in_bash = format.entries.bash and handler.shell
    hook = HookSpec(
        dialect=format.dialect,
        source=source,
        event=event,
        label=(format.entries.label_key and entry.text(format.entries.label_key).strip()) or handler.label,
        matcher=matcher.text,
        matches=matcher.matches,
        argv=("bash", "-c", handler.shell) if in_bash else handler.argv,
        shell="" if in_bash else handler.shell,
        cwd=file.project_dir,
        timeout=timeout,
        type=handler.type,
        url=target.url,
        headers=target.headers,
        allowed_env_vars=target.allowed_env_vars,
        server=handler.server,
        tool=handler.tool,
        input=handler.input,
        event_name=name,
        sequential=format.entries.sequential and matched.flag("sequential"),
    )
    hook = format.entries.finish(file, entry, hook)
    hooks = [hook]
    if name in format.entries.also_on_failure:
        hooks.append(replace(hook, event=Event.POST_TOOL_USE_FAILURE))
    ignored = [
        f"{key} is ignored: {why}" for key, why in format.entries.without_effect.items() if entry.members.get(key)
    ]
    notes = (*target.notes, *matcher.notes, *timeout_notes, *format.entries.notes_on(file, name, entry), *ignored)
    unknown = unknown_keys(format, entry, format.entries.keys)
    return HookList(tuple(hooks), (*(f"{source}: {note}" for note in notes), *unknown))


def read_command(entry: Table, key: str = "command") -> Handler:
    """The command, in the member `key`, of an entry that can be nothing else. Raises ConfigError."""
    handler = entry.text("type", "command")
    if handler != "command":
        raise entry.error("type", f"{handler!r} cannot run behind MCP", 'only "command" can')
    entry.require(key, 'write "command": "./guard.sh"')
    return shell_command(entry, key)


def shell_command(entry: Table, key: str) -> Handler:
    """The command in a member. Raises ConfigError if it is empty."""
    command = entry.text(key)
    if not command.strip():
        raise entry.error(key, "is empty", "write a command, or remove the entry")
    return Handler("command", labels.command_label(command), shell=command)


def fits(
    format: CommandFile, members: Mapping[str, object], *, or_none: bool = False, and_others: bool = False
) -> bool:
    """Whether `hooks` has only events of this format, each a list of its groups or entries, and at least one of these.

    `or_none`: there may be none yet. `and_others`: there may be other names beside these events. Claude Code's files
    have groups under the names of many systems.
    """
    table, key = members.get("hooks"), "hooks" if format.entries.grouped else "command"
    events = format.events.keys() | format.unavailable.keys()
    if not isinstance(table, dict) or not (and_others or table.keys() <= events):
        return False
    lists = [entries for name, entries in table.items() if name in events]
    return (any(lists) or or_none) and all(
        isinstance(entries, list) and all(isinstance(entry, dict) and key in entry for entry in entries)
        for entries in lists
    )


def _timeout(format: CommandFile, event: Event, entry: Table) -> tuple[float, list[str]]:
    """The entry's timeout in seconds, and notes if its author may have meant another."""
    keys = [key for key in format.timeouts.keys if key in entry.members]
    odd = [key for key in keys if type(entry.members[key]) not in (int, float)] if format.timeouts.skips_odd else []
    key = next((key for key in keys if key not in odd), "")
    seconds, notes = _written_timeout(format, entry, key) if key else (format.timeouts.default, [])
    notes = [*(f"`{key}` is not a number, so it is ignored, as in {format.timeouts.skips_odd}" for key in odd), *notes]
    if event is not Event.SESSION_END or not format.timeouts.short_session_end:
        return seconds, notes
    limit = shared_hook_file.SESSION_END_TIMEOUT_LIMIT if key else shared_hook_file.SESSION_END_TIMEOUT
    return min(seconds, limit), notes


def _written_timeout(format: CommandFile, entry: Table, key: str) -> tuple[float, list[str]]:
    """The same for a timeout that the entry has. Raises ConfigError if it is not a number of more than 0 seconds."""
    value = entry.members[key]
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
    if 0 <= number < format.timeouts.shortest:
        return format.timeouts.shortest, []
    is_long = format.timeouts.milliseconds_from is not None and number >= format.timeouts.milliseconds_from
    if format.timeouts.milliseconds or (is_long and "url" not in entry.members):
        seconds = entry.milliseconds(key, format.timeouts.default)
        return seconds, shared_hook_file.milliseconds_notes(key, seconds)
    seconds = entry.seconds(key, format.timeouts.default)
    return seconds, shared_hook_file.long_timeout_notes(seconds)


def _matcher(format: CommandFile, name: str, matched: Table) -> Matcher:
    """The matcher of an entry or group. One that has no meaning for the event gets a note."""
    if format.matchers.read is not None:
        return format.matchers.read(name, matched)
    pattern, event = matched.text("matcher"), format.events[name]
    if event in (*_TOOL_EVENTS, *format.matchers.triggers):
        matches = shared_hook_file.compile_member(matched, "matcher", format.matchers.compile)
        notes = [f"the matcher {pattern!r} {why}" for why in format.matchers.notes(event, pattern, matches)]
        return Matcher(matches, pattern, tuple(notes))
    if pattern in MATCHES_ALL:
        return Matcher(text=pattern)
    ignored = f"the matcher {pattern!r} is ignored: behind MCP, there is nothing that it could be tried on"
    return Matcher(text=pattern, notes=(ignored,))


def unknown_keys(format: CommandFile, table: Table, known: tuple[str, ...]) -> list[str]:
    """Notes on the keys of an object that have no meaning, each with its place."""
    return [
        f"{table.where}: {table.place(key)} is unknown and ignored{f': {hint}' if hint else ''}"
        for key, hint in table.unknown(known).items()
        if hint or not format.entries.only_misspelt_keys
    ]
