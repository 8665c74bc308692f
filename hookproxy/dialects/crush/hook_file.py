"""Reads the hooks in Crush's crush.json into hook specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import command_file, re2_regex
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile
from ..shared.events import COMPACTION_UNSEEN
from ..shared.hook_file import Table

NAME: Final = "crush"
EVENTS: Final = {"PreToolUse": Event.PRE_TOOL_USE}
UNAVAILABLE_EVENTS: Final = {"PreCompact": COMPACTION_UNSEEN}
_SPELLED: Final = {name.lower(): name for name in (*EVENTS, *UNAVAILABLE_EVENTS)}

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
    return command_file.read_events(_FORMAT, file, Table(table.where, table.path, members))


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under Crush's event names, and something else that only Crush has."""
    hooks = members.get("hooks")
    if not isinstance(hooks, dict) or "version" in members:
        return False
    renamed = {_event_name(name): entries for name, entries in hooks.items()}
    entries = [entry for found in renamed.values() if isinstance(found, list) for entry in found]
    own = "crush" in str(members.get("$schema", "")) or any("matcher" in entry for entry in entries if entry)
    flat = not any(isinstance(entry, dict) and not {"hooks", "type", "bash"}.isdisjoint(entry) for entry in entries)
    return own and flat and command_file.has_entries({"hooks": renamed}, set(_SPELLED.values()), "command")


def _event_name(name: str) -> str:
    """ "Event names are case insensitive and snake-caseable"."""
    return _SPELLED.get(name.replace("_", "").lower(), name)


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    return replace(hook, label=entry.text("name").strip() or hook.label)


_FORMAT: Final = CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeout=30.0,
    keys=("name", "matcher", "command", "timeout"),
    compile_matcher=re2_regex.unanchored,
    finish=_finish,
)
