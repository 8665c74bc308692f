"""Reads Factory Droid's hooks.json, with or without a `hooks` member, and the `hooks` of its settings files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import Files, FolderContent, FoundFile, HookFile, HookList, Plugin
from ..shared import claude_matchers, command_file
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, TURNS_AND_SUBAGENTS_UNSEEN, by_name
from ..shared.hook_file import Table

NAME: Final = "droid"

TIMEOUT: Final = 60.0
"""Seconds, as documented."""

EVENTS: Final = by_name(
    Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.NOTIFICATION, Event.SESSION_START, Event.SESSION_END
)
UNAVAILABLE_EVENTS: Final = {
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "Stop": TURNS_AND_SUBAGENTS_UNSEEN,
    "SubagentStop": TURNS_AND_SUBAGENTS_UNSEEN,
    "PreCompact": COMPACTION_UNSEEN,
}
"""Droid's other events, and why they cannot occur behind MCP."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]*")
"""A matcher that is one name is compared exactly. Any other is a regular expression, which may match anywhere: whether
Droid anchors it is not known, and anchored it would match less."""

_HOOK_FILES: Final = ("hooks.json", "settings.json", "hooks/hooks.json")
"""In a `.factory` folder: the first that exists counts, even if it has no hooks."""
_LOCAL: Final = "settings.local.json"
"""Its own scope, beside the others."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a file. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if document.flag("hooksDisabled"):
        return HookList((), remarks=(f"{file.path}: hooksDisabled is true, {shared_hook_file.SWITCHED_OFF}",))
    if "hooks" in document.members:
        return command_file.read_events(FORMAT, file, document.table("hooks"))
    if os.path.basename(file.path).startswith("settings.") or not document.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    return command_file.read_events(FORMAT, file, document)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Droid's event names, in `hooks` or at the top."""
    hooks = members.get("hooks", members)
    if not isinstance(hooks, Mapping) or "version" in members:
        return False
    groups = {name: each for name, each in hooks.items() if not shared_hook_file.is_comment(name)}
    return command_file.fits(FORMAT, {"hooks": groups}, or_none=True)


def read_folder(path: str, files: Files) -> FolderContent | None:
    """The hook file of a `.factory` folder. None for other folders."""
    if os.path.basename(path) != ".factory":
        return None
    found = [file for name in _HOOK_FILES if os.path.isfile(file := os.path.join(path, name))]
    local = [file for file in (os.path.join(path, _LOCAL),) if os.path.isfile(file)]
    return FolderContent(tuple(map(FoundFile, (*found[:1], *local)))) if found or local else None


def find_plugin(path: str, _files: Files) -> Plugin | None:
    """The plugin of `ROOT/hooks/hooks.json`; in a `.factory` folder, this is a project's own file."""
    root, inner = os.path.split(os.path.dirname(path))
    is_plugins = inner == "hooks" and os.path.basename(root) != ".factory"
    return Plugin(root) if is_plugins and os.path.basename(path) == "hooks.json" else None


def _matcher(pattern: str) -> Callable[[str], bool]:
    """All tools, one name, or a regular expression. Raises re.error or OverflowError."""
    if pattern in ("", "*"):
        return lambda _name: True
    if _NAME.fullmatch(pattern):
        return lambda name: name == pattern
    return matchers.javascript_regex(pattern)


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with the folders of its project and of its plugin."""
    of_plugin = (("DROID_PLUGIN_ROOT", file.plugin.root),) if file.plugin else ()
    return replace(hook, env=(("FACTORY_PROJECT_DIR", file.project_dir), *of_plugin))


FORMAT: Final = CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeouts=Timeouts(TIMEOUT),
    entries=Entries(keys=("type", "command", "timeout"), grouped=True, bash=True, finish=_finish, typed=True),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(_matcher(pattern)),
        triggers=(Event.SESSION_START,),
        notes=claude_matchers.never_matches,
        write="|".join,
    ),
)
