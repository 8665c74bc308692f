"""Reads claw-code's settings files, with command strings and matcher groups, into hook specs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import labels
from ..shared.hook_file import Table

TIMEOUT: Final = 60.0
"""Seconds. claw-code waits forever. MCP agents commonly give up on a call after a minute: no agent waits for the
verdict of a hook that runs longer."""

FAILURE_EVENT: Final = "PostToolUseFailure"
"""The event for failed calls, which only `claw@current` has."""

_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = ("type", "command")
_ALL_MCP: Final = "mcp__*"
_EXPRESSION: Final = re.compile(r"[\^$()\[\]+?\\]|\.\*")
"""Characters of regular expressions that no tool name has."""


class FileFormat(Struct, frozen=True):
    """What a settings file of one of the two dialects may contain."""

    dialect: str
    events: Mapping[str, tuple[Event, ...]]
    """The events on which hooks run, by the event's name in the file."""
    groups: bool
    """Matcher groups are allowed between the command strings."""


DOCUMENTED: Final = FileFormat(
    "claw",
    {
        "PreToolUse": (Event.PRE_TOOL_USE,),
        # a hook distinguishes the two by HOOK_TOOL_IS_ERROR
        "PostToolUse": (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE),
    },
    groups=False,
)
CURRENT: Final = FileFormat(
    "claw@current",
    {
        "PreToolUse": (Event.PRE_TOOL_USE,),
        "PostToolUse": (Event.POST_TOOL_USE,),
        FAILURE_EVENT: (Event.POST_TOOL_USE_FAILURE,),
    },
    groups=True,
)


def read_hook_file(file_format: FileFormat, file: HookFile) -> HookList:
    """The hooks of a settings file. Other settings in it are ignored. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if "hooks" not in settings.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table, file_format.events, {}, lambda name: _event(file_format, file, table, name), _event_hint
    )


def _event_hint(name: str) -> str:
    """What else to know about a name that is not an event; empty: nothing."""
    if name != FAILURE_EVENT:
        return ""
    also = f"in {DOCUMENTED.dialect}, PostToolUse hooks also run for failed calls"
    return f"only the dialect {CURRENT.dialect} has it; {also}"


def _event(file_format: FileFormat, file: HookFile, table: Table, name: str) -> HookList:
    """The hooks of an event. A malformed item is left out, and claw-code reads the others."""

    def read_items() -> HookList:
        if not isinstance(table.members[name], list):
            raise table.error(name, "must be a list of commands", f'write "{name}": ["./guard.sh"]')
        items = table.items(name)
        return shared_hook_file.merge(
            shared_hook_file.or_left_out(
                table.where, items.place(key), partial(_item, file_format, file, name, items, key)
            )
            for key in items.members
        )

    return shared_hook_file.or_left_out(table.where, table.place(name), read_items)


def _item(file_format: FileFormat, file: HookFile, name: str, items: Table, key: str) -> HookList:
    """The hooks of one item of an event's list: a command string, or a matcher group."""
    if not isinstance(items.members[key], dict):
        return HookList(_hooks(file_format, file, name, items, key))
    if not file_format.groups:
        hint = f"the dialects {CURRENT.dialect} and claude read matcher groups, each in its own way"
        raise items.error(key, "must be a command string, not an object", hint)
    group = items.table(key)
    group.require("hooks", 'write {"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}')
    notes = HookList((), (*_unknown_key_notes(group, _GROUP_KEYS), *_matcher_notes(group)))

    def read_entry(entry: Table) -> HookList:
        entry.choice("type", ("command",), "command")
        entry.require("command")
        hooks = _hooks(file_format, file, name, entry, "command", group.text("matcher"))
        return HookList(hooks, tuple(_unknown_key_notes(entry, _HOOK_KEYS)))

    return shared_hook_file.merge([notes, shared_hook_file.read_each(group, "hooks", read_entry)])


def _hooks(
    file_format: FileFormat, file: HookFile, name: str, table: Table, key: str, matcher: str = ""
) -> tuple[HookSpec, ...]:
    """The hooks of one command: one for each event on which it runs."""
    command = table.text(key)
    if not command.strip():
        raise table.error(key, "is empty", "write a command, or remove the entry")
    place = table.path if key == "command" else table.place(key)
    return tuple(
        HookSpec(
            dialect=file_format.dialect,
            source=f"{file.path}: {place}",
            event=event,
            label=_label(command, place),
            matcher=matcher,
            matches=_matching(matcher),
            shell=command,
            cwd=file.project_dir,
            timeout=TIMEOUT,
            event_name=name,
        )
        for event in file_format.events[name]
    )


_PROGRAM: Final = re.compile(r"(?!(?:case|for|if|test|until|while)\b)\w.*", re.DOTALL)
"""A possible program name: no punctuation, and no keyword that begins a shell script of one line."""


def _label(command: str, place: str) -> str:
    """The name of the program. A shell script of one line has none: its label is its place in the file."""
    label = labels.command_label(command)
    return label if _PROGRAM.match(label) else place


def _matching(matcher: str) -> Callable[[str], bool]:
    """A test of tool names: names separated by commas or bars, in any case, with `*` for anything. Empty: all tools."""
    names = _names(matcher)
    if not matcher.strip() or _ALL_MCP in names:  # every tool here is an MCP tool, whatever name hooks see
        return lambda _name: True
    globs = "|".join(".*".join(re.escape(part) for part in re.split(r"\*+", name)) for name in names) or "(?!)"
    expression = re.compile(globs, re.ASCII | re.IGNORECASE | re.DOTALL)
    return lambda name: expression.fullmatch(name) is not None


def _names(matcher: str) -> list[str]:
    return [name.lower() for part in re.split(r"[,|]", matcher) if (name := part.strip())]


def _matcher_notes(group: Table) -> list[str]:
    """Notes on a matcher that may match no tool: nothing else would show this."""
    matcher = group.text("matcher")
    names = _names(matcher)
    notes = []
    if matcher.strip() and not names:
        notes.append("never matches: it names no tool")
    if _EXPRESSION.search(matcher):
        notes.append("is not read as a regular expression by claw-code: write tool names, with * for anything")
    if any(name.startswith("mcp__") and name != _ALL_MCP for name in names):
        notes.append('is compared with bare tool names, unless [[use]] has tool_names = "mcp"')
    return [f"{group.where}: {group.place('matcher')} {matcher!r} {note}" for note in notes]


def _unknown_key_notes(table: Table, known: tuple[str, ...]) -> list[str]:
    """A note on each key that claw-code does not read, because its author expects it to work."""
    return [
        f"{table.where}: {table.place(key)} is unknown and ignored" + (hint and f": {hint}")
        for key, hint in table.unknown(known).items()
    ]


def recognises(members: Mapping[str, object]) -> bool:
    """Whether the file has lists of command strings under claw-code's event names, and at least one command."""
    events = members.get("hooks")
    if not isinstance(events, dict) or not all(isinstance(listed, list) for listed in events.values()):
        return False
    commands = [command for listed in events.values() for command in listed]
    return (
        bool(commands)
        and events.keys() <= CURRENT.events.keys()
        and all(isinstance(command, str) for command in commands)
    )
