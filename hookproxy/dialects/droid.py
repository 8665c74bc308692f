"""Factory Droid's hooks: those of Claude Code as of 2025, with a file, variables and rewrites of their own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..model.aliases import ToolSpelling
from ..model.hooks import Document, Event, EventContext, HookSpec, Order
from ..policy import matchers
from .agent_documents import DocumentSigns
from .agent_side import AgentSide, Can, DocumentForm, session_of
from .dialect import Dialect, Files, FolderContent, FoundFile, HookFile, HookList, Plugin, UserFiles
from .shared import claude_agent_side, claude_matchers
from .shared import claude_envelope as envelope
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, TURNS_AND_SUBAGENTS_UNSEEN, by_name
from .shared.hook_file import Table

_PROJECT_VARIABLES: Final = ("FACTORY_PROJECT_DIR", "DROID_PROJECT_DIR")
"""The reference's name of the project's folder, and the one in the commands of Factory's cookbooks: without it, hooks
that are copied from there would not find their programs."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]*")
"""A matcher that is one name is compared exactly. Any other is a regular expression, which may match anywhere: whether
Droid anchors it is not known, and anchored it would match less."""

_HOOK_FILES: Final = ("hooks.json", "settings.json", "hooks/hooks.json")
"""In a `.factory` folder: the first that exists counts, even if it has no hooks."""
_BESIDE_EVENTS: Final = ("hooksDisabled", "showHookOutput")
"""Switches that may be among the events."""
_LOCAL: Final = "settings.local.json"
"""Its own scope, beside the others."""


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    is_settings = os.path.basename(file.path).startswith("settings.")
    at_top = "hooks" not in document.members and not is_settings and bool(document.members)
    events = document if at_top or "hooks" not in document.members else document.table("hooks")
    if document.flag("hooksDisabled") or events.flag("hooksDisabled"):
        return HookList((), remarks=(f"{file.path}: hooksDisabled is true, {shared_hook_file.SWITCHED_OFF}",))
    if events is document and not at_top:
        return FORMAT.read_hooks(file, document)
    return FORMAT.read_events(file, Table(events.where, events.path, _events_of(events.members)))


def _events_of(members: Mapping[str, object]) -> dict[str, object]:
    """The members that are events: `hooksDisabled` and `showHookOutput` may be beside them."""
    return {name: value for name, value in members.items() if name not in _BESIDE_EVENTS}


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Droid's event names, in `hooks` or at the top."""
    hooks = members.get("hooks", members)
    if not isinstance(hooks, Mapping) or "version" in members:
        return False
    groups = {name: listed for name, listed in _events_of(hooks).items() if not shared_hook_file.is_comment(name)}
    return FORMAT.fits({"hooks": groups}, or_none=True)


def _read_folder(path: str, files: Files) -> FolderContent | None:
    """The hook file of a `.factory` folder. None for other folders."""
    if os.path.basename(path) != ".factory":
        return None
    found = [file for name in _HOOK_FILES if os.path.isfile(file := os.path.join(path, name))]
    local = [file for file in (os.path.join(path, _LOCAL),) if os.path.isfile(file)]
    return FolderContent(tuple(map(FoundFile, (*found[:1], *local)))) if found or local else None


def _find_plugin(path: str, _files: Files) -> Plugin | None:
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
    of_plugin = (("DROID_PLUGIN_ROOT", file.plugin.root),) if file.plugin else ()
    return replace(hook, env=(*((name, file.project_dir) for name in _PROJECT_VARIABLES), *of_plugin))


FORMAT: Final = CommandFile(
    dialect="droid",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.NOTIFICATION, Event.SESSION_START, Event.SESSION_END),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        "Stop": TURNS_AND_SUBAGENTS_UNSEEN,
        "SubagentStop": TURNS_AND_SUBAGENTS_UNSEEN,
        "PreCompact": COMPACTION_UNSEEN,
    },
    timeouts=Timeouts(60.0),
    entries=Entries(
        keys=("type", "command", "timeout"),
        grouped=True,
        bash=True,
        finish=_finish,
        typed=True,
        key_hints={"commandRegex": "the hooks of the group run for every command of its tools"},
    ),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(_matcher(pattern)),
        triggers=(Event.SESSION_START,),
        notes=claude_matchers.never_matches,
        write="|".join,
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, with its members in the order of Droid's reference."""
    session = context.session
    document: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required, and an MCP server has none
        "cwd": shared_input.utf8(session.cwd),
        "permission_mode": "off",
        "hook_event_name": context.event,
    }
    match context.event:
        case Event.PRE_TOOL_USE | Event.POST_TOOL_USE:
            document |= shared_input.call_members(context)
        case Event.NOTIFICATION:
            document["message"] = shared_input.utf8(context.message)
        case Event.SESSION_START:
            document["source"] = context.trigger
        case _:
            document["reason"] = "other"  # of Droid's reasons, the one that holds for an agent that disconnects
    if context.event is Event.POST_TOOL_USE:
        document["tool_response"] = shared_input.utf8_result(context)
    return Document(shared_input.json_line(document), dict.fromkeys(_PROJECT_VARIABLES, session.project_dir))


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Factory's hooks reference, docs.factory.ai/harness/hooks, as of July 2026",
    output_fields=envelope.FIELDS,
    order=Order.PARALLEL,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=partial(envelope.read_output, envelope.Rules(checks_event=True, merges=True)),
    tool_spellings={
        "Bash": (ToolSpelling("Execute"), ToolSpelling("Bash")),
        "Write": (ToolSpelling("Create"), ToolSpelling("Write")),
        "WebFetch": (ToolSpelling("FetchUrl"), ToolSpelling("WebFetch")),
    },
    recognises=_recognises,
    shape_of="claude",
    folders=(".factory", ".factory/hooks"),
    find_plugin=_find_plugin,
    read_folder=_read_folder,
    constant_environment=True,
    variables=(*_PROJECT_VARIABLES, "DROID_PLUGIN_ROOT"),
    user_files=(UserFiles(".factory", "hooks.json"), UserFiles(".factory", "settings.json")),
    project_files=(".factory/hooks.json", ".factory/settings.json", ".factory/settings.local.json"),
)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(values={"permission_mode": ("off", "spec", "auto-low", "auto-medium", "auto-high")}),
    form=DocumentForm(session=partial(session_of, project_variable="FACTORY_PROJECT_DIR")),
    file=".factory/hooks.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=partial(claude_agent_side.write_output, replacement=""),
    merges=True,
)
