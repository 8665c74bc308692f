"""Reads the hooks in Crush's crush.json into hook specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event
from ..dialect import HookFile, HookList
from ..shared import command_file, re2_regex
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import COMPACTION_UNSEEN, by_name

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("view"),),
    "Write": (ToolSpelling("write"),),
    "Edit": (ToolSpelling("edit"),),
    "MultiEdit": (ToolSpelling("multiedit"), ToolSpelling("edit")),
    "LS": (ToolSpelling("ls"),),
    "Glob": (ToolSpelling("glob"),),
    "Grep": (ToolSpelling("grep", {"glob": "include"}),),
    "WebFetch": (ToolSpelling("fetch"),),
}


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a crush.json. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if "hooks" not in document.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    table = document.table("hooks")
    members = {_event_name(name): entries for name, entries in table.members.items()}
    if len(members) < len(table.members):
        raise document.error("hooks", "has one event in two spellings", "write each event once")
    return command_file.read_events(FORMAT, file, replace(table, members=members))


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under Crush's event names, and something else that only Crush has."""
    if not recognises_at_home(members):
        return False
    hooks = members["hooks"]
    entries = [entry for found in hooks.values() for entry in found] if isinstance(hooks, dict) else []
    return "crush" in str(members.get("$schema", "")) or any("matcher" in entry for entry in entries)


def recognises_at_home(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under Crush's event names."""
    hooks = members.get("hooks")
    if not isinstance(hooks, dict) or "version" in members:
        return False
    renamed = {_event_name(name): entries for name, entries in hooks.items()}
    if not command_file.fits(FORMAT, {"hooks": renamed}):
        return False
    keys = {key for entries in renamed.values() for entry in entries for key in entry}
    return keys.isdisjoint(("hooks", "type", "bash"))


def _event_name(name: str) -> str:
    """ "Event names are case insensitive and snake-caseable"."""
    return _SPELLED.get(name.replace("_", "").lower(), name)


FORMAT: Final = CommandFile(
    dialect="crush",
    events=by_name(Event.PRE_TOOL_USE),
    unavailable={"PreCompact": COMPACTION_UNSEEN},
    timeouts=Timeouts(30.0),
    entries=Entries(keys=("name", "matcher", "command", "timeout"), label_key="name"),
    matchers=Matchers(
        notes=lambda _event, pattern, _matches: [re2_regex.UNREADABLE] * re2_regex.only_elsewhere(pattern),
        compile=re2_regex.unanchored_or_all,
    ),
)
_SPELLED: Final = {name.lower(): name for name in (*FORMAT.events, *FORMAT.unavailable)}
