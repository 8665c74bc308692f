"""Reads and writes hook files in which `hooks` names events, and events list commands, flat or in groups."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
    """How the matchers of entries or groups are read and written."""

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
    """The member with the matcher. Empty: none is written."""

    def written(self, entry: WrittenEntry) -> dict[str, object]:
        """The matcher of an entry as a member; none if it is for all tools."""
        pattern = (entry.matcher or self.write(entry.names)) if self.key else ""
        return {self.key: pattern} if pattern else {}


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

    def read(self, event: Event, entry: Table, default: float = 0.0) -> tuple[float, list[str]]:
        """The entry's timeout in seconds, and notes if its author may have meant another. Raises ConfigError.

        `default`: that of entries of its type; 0: that of the file.
        """
        keys = [key for key in self.keys if key in entry.members]
        odd = [key for key in keys if type(entry.members[key]) not in (int, float)] if self.skips_odd else []
        key = next((key for key in keys if key not in odd), "")
        seconds, notes = self._given(entry, key) if key else (default or self.default, [])
        notes = [*(f"`{key}` is not a number, so it is ignored, as in {self.skips_odd}" for key in odd), *notes]
        if event is not Event.SESSION_END or not self.short_session_end:
            return seconds, notes
        limit = shared_hook_file.SESSION_END_TIMEOUT_LIMIT if key else shared_hook_file.SESSION_END_TIMEOUT
        return min(seconds, limit), notes

    def _given(self, entry: Table, key: str) -> tuple[float, list[str]]:
        value = entry.members[key]
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
        if 0 <= number < self.shortest:
            return self.shortest, []
        is_long = self.milliseconds_from is not None and number >= self.milliseconds_from
        if self.milliseconds or (is_long and "url" not in entry.members):
            seconds = entry.milliseconds(key, self.default)
            return seconds, shared_hook_file.milliseconds_notes(key, seconds)
        seconds = entry.seconds(key, self.default)
        return seconds, shared_hook_file.long_timeout_notes(seconds)


class Entries(Struct, frozen=True):
    """The entries of an event: what they have, and what their hooks are."""

    keys: tuple[str, ...]
    """The keys of an entry that have a meaning."""
    grouped: bool = False
    """Entries are in groups with a matcher, as in Claude Code's files."""
    flat_too: bool = False
    """In a `grouped` file, an object without `hooks` is an entry of its own, as which entries are written."""
    strings: bool = False
    """An entry may be a command line instead of an object, as which entries without a matcher are written."""
    only_strings: str = ""
    """The hint about an object, if an entry may be nothing but a command line."""
    strict: bool = False
    """A malformed entry refuses the whole file. Otherwise it is left out with a note."""
    group_keys: tuple[str, ...] = ()
    """The keys of a group that have a meaning besides `matcher` and `hooks`."""
    foreign_keys: frozenset[str] = frozenset()
    """Keys that show that an entry is another system's, whose files are similar otherwise."""
    sequential: bool = False
    """If a group that matches has `sequential: true`, all hooks that match run one after another."""
    also_on_failure: tuple[str, ...] = ()
    """Names of events after a call that occur after a failed call, too."""
    read_handler: Callable[[HookFile, str, Table], Handler | str] | None = None
    """How an entry of the event of this name runs, or why it cannot run here. None: by the command in its member
    `command`. Raises ConfigError if the entry is not valid."""
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
    key_hints: Mapping[str, str] = field(default_factory=dict)
    """What notes say about certain unknown keys."""
    only_misspelt_keys: bool = False
    """Unknown keys of an entry get a note only if they look like known ones. Those of a group always do: it has few."""

    typed: bool = False
    """Entries are written with `"type": "command"`."""
    command: str = "command"
    """The member with the command, as it is written, and as it is read without a `read_handler`."""
    closed: tuple[str, object] | None = None
    """The member of an entry whose failure refuses calls; None: there is none."""
    condition: str = ""
    """The key of a permission rule as a condition; empty: there is none."""
    members: Mapping[str, object] = field(default_factory=dict)
    """What else entries are written with."""
    group_members: Mapping[str, object] = field(default_factory=dict)
    """What else groups are written with."""


class CommandFile(Struct, frozen=True):
    """How the hook files of one system differ from those of others. What is written is read as the same hooks."""

    dialect: str
    events: Mapping[str, Event]
    timeouts: Timeouts
    entries: Entries
    unavailable: Mapping[str, str] = field(default_factory=dict)
    matchers: Matchers = Matchers()
    members: Mapping[str, object] = field(default_factory=dict)
    """What else a file is written with."""
    comments: bool = True
    """A file of JSON may have comments."""
    event_hint: Callable[[str], str] = lambda _name: ""
    """What else to know about a name that is not an event; empty: nothing."""

    @property
    def default_timeout(self) -> float:
        """Seconds."""
        return self.timeouts.default

    # --- writing ---

    def write(self, path: str, entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
        """A JSON file with these entries, by its path."""
        return json_file(path, {**self.members, "hooks": self.written_events(entries)})

    def written_events(self, entries: Sequence[WrittenEntry]) -> dict[str, list[object]]:
        """The member `hooks` of a file: the entries by their events."""
        events: dict[str, list[object]] = {}
        strings = self.entries.strings or self.entries.only_strings
        for entry in entries:
            is_string = strings and not self.matchers.written(entry)
            events.setdefault(entry.event_name, []).append(entry.command if is_string else self.written(entry))
        return events

    def written(self, entry: WrittenEntry) -> dict[str, object]:
        """An entry as an object, in a group of its own if the file has groups."""
        form, matcher = self.entries, self.matchers.written(entry)
        first: dict[str, object] = {"type": "command"} if form.typed else {}
        hook = {**first, form.command: entry.command}
        rest = self.timeouts.members(entry.timeout)
        if form.condition and entry.only_if:
            rest[form.condition] = entry.only_if
        if form.closed is not None and entry.fails_closed:
            rest[form.closed[0]] = form.closed[1]
        if form.grouped and not form.flat_too:
            return {**matcher, "hooks": [{**hook, **rest, **form.members}], **form.group_members}
        return {**hook, **matcher, **rest, **form.members}

    # --- reading ---

    def read(self, file: HookFile) -> HookList:
        """The hooks of a file of JSON, YAML or TOML. Raises ConfigError."""
        return self.read_hooks(file, shared_hook_file.read_document(file.path, file.text, comments=self.comments))

    def read_hooks(self, file: HookFile, document: Table) -> HookList:
        """The hooks in the member `hooks` of a document. Raises ConfigError if it is not an object."""
        if "hooks" not in document.members:
            return HookList((), remarks=(f"{file.path}: {shared_hook_file.NO_HOOKS}",))
        return self.read_events(file, document.table("hooks"))

    def read_hooks_or_events(self, file: HookFile) -> HookList:
        """The hooks of a file that has its events in the member `hooks`, or at its top. Raises ConfigError."""
        document = shared_hook_file.read_document(file.path, file.text, comments=True)
        if "hooks" in document.members or document.members.keys().isdisjoint(self.events.keys() | self.unavailable):
            return self.read_hooks(file, document)
        return self.read_events(file, document)

    def read_events(self, file: HookFile, table: Table) -> HookList:
        """The hooks of a table with events."""
        strict = self.entries.strict

        def read_event(name: str) -> HookList:
            def read_items() -> HookList:
                items = table.items(name)
                reads = {items.place(key): partial(self._read_item, file, name, items, key) for key in items.members}
                if strict:
                    return shared_hook_file.merge(read() for read in reads.values())
                return shared_hook_file.merge(
                    shared_hook_file.or_left_out(table.where, place, read) for place, read in reads.items()
                )

            return read_items() if strict else shared_hook_file.or_left_out(table.where, table.place(name), read_items)

        return shared_hook_file.read_events(table, self.events, self.unavailable, read_event, self.event_hint)

    def _read_item(self, file: HookFile, name: str, items: Table, key: str) -> HookList:
        """The hooks of one item of an event's list: of an entry or a group. Raises ConfigError."""
        form, value = self.entries, items.members[key]
        if form.only_strings and isinstance(value, dict):
            raise items.error(key, "must be a command line, not an object", form.only_strings)
        if (form.strings or form.only_strings) and not isinstance(value, dict):
            if not (command := items.text(key)).strip():
                raise items.error(key, "is empty", "write a command, or remove the entry")
            entry = Table(items.where, items.place(key), {form.command: command})
            return self.read_entry(file, name, entry, entry)
        item = items.table(key)
        if not form.grouped or (form.flat_too and "hooks" not in item.members):
            return self.read_entry(file, name, item, item)
        item.require("hooks", 'write {"hooks": [{"type": "command", "command": "./guard.sh"}]}')
        keys = (*_GROUP_KEYS, "sequential") if form.sequential else _GROUP_KEYS
        notes = HookList((), tuple(self.unknown_keys(item, (*keys, *form.group_keys), of_group=True)))
        entries = shared_hook_file.read_each(item, "hooks", lambda entry: self.read_entry(file, name, item, entry))
        return shared_hook_file.merge((notes, entries))

    def read_entry(
        self, file: HookFile, name: str, matched: Table, entry: Table, matcher: Matcher | None = None
    ) -> HookList:
        """The hooks of one entry of an event. `matched` is the object with its matcher: the entry or its group.

        Raises ConfigError for an entry that cannot run.
        """
        form, source = self.entries, f"{file.path}: {entry.path}"
        if form.null_is_absent:  # programs write such members, and a guard must not be lost for one
            matched, entry = matched.without_nulls(), entry.without_nulls()
        handler = form.read_handler(file, name, entry) if form.read_handler else read_command(entry, form.command)
        if isinstance(handler, str):
            return HookList((), (f"{source} does not run: {handler}",))
        event, target = self.events[name], handler.http_target
        matcher = matcher or self._matcher(name, matched)
        timeout, timeout_notes = self.timeouts.read(event, entry, handler.timeout)
        in_bash = form.bash and handler.shell
        hook = HookSpec(
            dialect=self.dialect,
            source=source,
            event=event,
            label=(form.label_key and entry.text(form.label_key).strip()) or handler.label,
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
            model=handler.model,
            event_name=name,
            sequential=form.sequential and matched.flag("sequential"),
        )
        hook = form.finish(file, entry, hook)
        on_failure = (replace(hook, event=Event.POST_TOOL_USE_FAILURE),) if name in form.also_on_failure else ()
        ignored = [f"{key} is ignored: {why}" for key, why in form.without_effect.items() if entry.members.get(key)]
        notes = (*target.notes, *matcher.notes, *timeout_notes, *form.notes_on(file, name, entry), *ignored)
        unknown = self.unknown_keys(entry, form.keys)
        return HookList((hook, *on_failure), (*(f"{source}: {note}" for note in notes), *unknown))

    def _matcher(self, name: str, matched: Table) -> Matcher:
        """The matcher of an entry or group. One that has no meaning for the event gets a note."""
        if self.matchers.read is not None:
            return self.matchers.read(name, matched)
        key = self.matchers.key or "matcher"
        pattern, event = matched.text(key), self.events[name]
        if event in (*_TOOL_EVENTS, *self.matchers.triggers):
            matches = shared_hook_file.compile_member(matched, key, self.matchers.compile)
            notes = [f"the matcher {pattern!r} {why}" for why in self.matchers.notes(event, pattern, matches)]
            return Matcher(matches, pattern, tuple(notes))
        if pattern in MATCHES_ALL:
            return Matcher(text=pattern)
        ignored = f"the matcher {pattern!r} is ignored: behind MCP, there is nothing that it could be tried on"
        return Matcher(text=pattern, notes=(ignored,))

    def unknown_keys(self, table: Table, known: tuple[str, ...], *, of_group: bool = False) -> list[str]:
        """Notes on the keys of an object, an entry or a group, that have no meaning, each with its place."""
        hints = {key: self.entries.key_hints.get(key, hint) for key, hint in table.unknown(known).items()}
        return [
            f"{table.where}: {table.place(key)} is unknown and ignored{f': {hint}' if hint else ''}"
            for key, hint in hints.items()
            if hint or of_group or not self.entries.only_misspelt_keys
        ]

    def fits(self, members: Mapping[str, object], *, or_none: bool = False, and_others: bool = False) -> bool:
        """Whether `hooks` has only events of this form, each a list of its groups or entries, and at least one of them.

        `or_none`: there may be none yet. `and_others`: there may be other names beside these events. Claude Code's
        files have groups under the names of many systems.
        """
        table, key = members.get("hooks"), "hooks" if self.entries.grouped else self.entries.command
        events = self.events.keys() | self.unavailable.keys()
        if not isinstance(table, dict) or not (and_others or table.keys() <= events):
            return False
        lists = [entries for name, entries in table.items() if name in events]
        return (any(lists) or or_none) and all(
            isinstance(entries, list) and all(self._is_entry(entry, key) for entry in entries) for entries in lists
        )

    def fits_unversioned(self, members: Mapping[str, object]) -> bool:
        """As `fits`, of a file without a version, which flat files of other systems have."""
        return "version" not in members and self.fits(members)

    def fits_at_home(self, members: Mapping[str, object]) -> bool:
        """As `fits` in the system's own folder, where other names are mistakes, and other settings may stand alone."""
        return self.fits({"hooks": members.get("hooks", {})}, or_none=True, and_others=True)

    def _is_entry(self, entry: object, key: str) -> bool:
        if self.entries.strings or self.entries.only_strings:
            return isinstance(entry, str)
        return isinstance(entry, dict) and key in entry and self.entries.foreign_keys.isdisjoint(entry)


def json_file(path: str, members: Mapping[str, object]) -> Mapping[str, str]:
    """The text of a JSON file by its path."""
    return {path: json.dumps(members, indent=2, ensure_ascii=False) + "\n"}


def quoted(value: object) -> str:
    """A value as JSON spells it, and TOML and YAML too: neither takes half of a pair, nor TOML a bare U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_command(entry: Table, key: str = "command") -> Handler:
    """The command, in the member `key`, of an entry that can be nothing else. Raises ConfigError."""
    handler = entry.text("type", "command")
    if handler != "command":
        raise entry.error("type", f"{handler!r} cannot run behind MCP", 'only "command" can')
    entry.require(key, f'write "{key}": "./guard.sh"')
    return shell_command(entry, key)


def shell_command(entry: Table, key: str) -> Handler:
    """The command in a member. Raises ConfigError if it is empty."""
    command = entry.text(key)
    if not command.strip():
        raise entry.error(key, "is empty", "write a command, or remove the entry")
    return Handler("command", labels.command_label(command), shell=command)
