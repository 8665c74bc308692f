"""Reads Kiro's agent files, its hook files of version 1, and the `.kiro.hook` files of IDE 0.x into hook specs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ..dialect import Files, FolderContent, FoundFile, HookFile, HookList, for_names
from ..shared import command_file
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN
from ..shared.hook_file import CANNOT_FIRE, Table
from .matchers import agent_matcher, any_of, regex_matcher

NAME: Final = "kiro"

FOLDERS: Final = (".kiro/hooks", ".kiro/agents", ".amazonq/cli-agents", ".aws/amazonq/cli-agents")
SUFFIXES: Final = (".json", ".kiro.hook")

TIMEOUT: Final = 60.0
"""Seconds, for hooks of version 1 and of IDE 0.x."""
_AGENT_TIMEOUT: Final = 30.0
"""Seconds. "Default timeout is 30 seconds (30,000ms)"."""

VERSION_1: Final = "version 1"
IDE_0: Final = "IDE 0.x"
"""The traits of hooks of these forms; those of agent files have neither."""

_OUTPUT_SIZE: Final = 10_240
"""Bytes of a stream that are kept, for hooks of agent files (`DEFAULT_MAX_OUTPUT_SIZE`)."""
_OUTPUT_SIZE_TRAIT: Final = "max_output_size "
"""Begins the trait of a hook that has a size of its own."""

_FILES_UNSEEN: Final = "the agent watches files, not the server"
_SPECS_UNSEEN: Final = "an MCP server does not see the tasks of specs"
_MANUAL: Final = "a person starts it in Kiro"

_AGENT_EVENTS: Final = {
    "preToolUse": Event.PRE_TOOL_USE,
    "postToolUse": Event.POST_TOOL_USE,
    "agentSpawn": Event.SESSION_START,
}
_AGENT_UNAVAILABLE: Final = {"userPromptSubmit": PROMPTS_UNSEEN, "stop": TURNS_UNSEEN}
_VERSION_1_EVENTS: Final = {
    "PreToolUse": Event.PRE_TOOL_USE,
    "PostToolUse": Event.POST_TOOL_USE,
    "SessionStart": Event.SESSION_START,
    "AgentSpawn": Event.SESSION_START,
    "SessionEnd": Event.SESSION_END,
}
_VERSION_1_UNAVAILABLE: Final = for_names({
    PROMPTS_UNSEEN: "UserPromptSubmit",
    TURNS_UNSEEN: "Stop",
    _SPECS_UNSEEN: "PreTaskExec PostTaskExec",
    _FILES_UNSEEN: "PostFileCreate PostFileSave PostFileDelete",
    _MANUAL: "Manual",
})  # fmt: skip
_IDE_0_UNAVAILABLE: Final = for_names({
    PROMPTS_UNSEEN: "promptSubmit",
    TURNS_UNSEEN: "agentStop",
    _FILES_UNSEEN: "fileCreated fileEdited fileDeleted",
    _SPECS_UNSEEN: "preTaskExecution postTaskExecution",
    _MANUAL: "userTriggered",
})  # fmt: skip
EVENTS: Final[Mapping[str, Event]] = {**_AGENT_EVENTS, **_VERSION_1_EVENTS}
UNAVAILABLE_EVENTS: Final = {**_AGENT_UNAVAILABLE, **_VERSION_1_UNAVAILABLE, **_IDE_0_UNAVAILABLE}
"""The other triggers of all forms, each with the reason why it cannot occur behind MCP."""

_HOOK_KEYS: Final = ("name", "description", "trigger", "matcher", "action", "timeout", "enabled", "confirm")


def is_of_agent_file(spec: HookSpec) -> bool:
    """Whether a hook is of an agent file."""
    return spec.traits.isdisjoint((VERSION_1, IDE_0))


def output_size(spec: HookSpec) -> int:
    """How many bytes of its output a hook of an agent file may have."""
    sizes = (trait.removeprefix(_OUTPUT_SIZE_TRAIT) for trait in spec.traits if trait.startswith(_OUTPUT_SIZE_TRAIT))
    return int(next(sizes, _OUTPUT_SIZE))


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a file of any form. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if isinstance(document.members.get("when"), dict):
        return shared_hook_file.or_left_out(file.path, "the hook", lambda: _ide_0(file, document))
    if isinstance(document.members.get("hooks"), list):
        document.choice("version", ("v1",), "v1")
        return shared_hook_file.read_each(document, "hooks", lambda entry: _version_1(file, entry))
    return AGENT_FILE.read_hooks(file, document)


def read_folder(path: str, _files: Files) -> FolderContent | None:
    """The hook files of one of Kiro's folders, with those of IDE 0.x; None for other and empty folders."""
    if not path.endswith(tuple(f"/{folder}" for folder in FOLDERS)):
        return None
    names = sorted(name for name in os.listdir(path) if name.endswith(SUFFIXES) and not name.startswith("."))
    return FolderContent(tuple(FoundFile(os.path.join(path, name)) for name in names)) if names else None


def recognises(members: Mapping[str, object]) -> bool:
    """Whether the file has one of the three forms; an agent file need not have hooks."""
    hooks = members.get("hooks")
    if isinstance(hooks, list):
        return members.get("version") == "v1"
    if "hooks" not in members:
        is_agent = "name" in members and not {"tools", "prompt", "allowedTools"}.isdisjoint(members)
        return is_agent or (isinstance(members.get("when"), dict) and isinstance(members.get("then"), dict))
    return "version" not in members and AGENT_FILE.fits(members)


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook of an agent file. Raises ConfigError if it cannot run here."""
    if entry.flag("only_when_turn_complete"):
        hint = "remove only_when_turn_complete, and it runs after each call"
        raise entry.error("", f"waits for the end of the agent's turn: {TURNS_UNSEEN}", hint)
    if "max_output_size" not in entry.members:
        return hook
    size = entry.members["max_output_size"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise entry.error("max_output_size", f"{size!r} is not a number of bytes", 'write "max_output_size": 10240')
    return replace(hook, traits=frozenset((f"{_OUTPUT_SIZE_TRAIT}{size}",)))


AGENT_FILE: Final = CommandFile(
    dialect=NAME,
    events=_AGENT_EVENTS,
    unavailable=_AGENT_UNAVAILABLE,
    timeouts=Timeouts(default=_AGENT_TIMEOUT, keys=("timeout_ms",), milliseconds=True),
    entries=Entries(
        keys=("matcher", "command", "timeout_ms", "max_output_size", "cache_ttl_seconds", "only_when_turn_complete"),
        foreign_keys=frozenset({"type", "bash", "powershell", "timeoutSec"}),  # VS Code's and Copilot's
        also_on_failure=("postToolUse",),
        bash=True,
        finish=_finish,
        without_effect={
            "cache_ttl_seconds": "the hook runs for each call, because an earlier verdict is about another call",
        },
    ),
    matchers=Matchers(compile=agent_matcher),
    members={"name": "hookproxy", "tools": ["*"]},
)


def _version_1(file: HookFile, entry: Table) -> HookList:
    source = f"{file.path}: {entry.path}"
    entry.require("trigger", 'write "trigger": "PreToolUse"')
    trigger = entry.text("trigger")
    if "enabled" in entry.members and not entry.flag("enabled"):
        return HookList((), remarks=(f"{source} is not enabled",))
    if trigger in _VERSION_1_UNAVAILABLE:
        return HookList((), remarks=(f"{source} {CANNOT_FIRE}: {_VERSION_1_UNAVAILABLE[trigger]}",))
    if trigger not in _VERSION_1_EVENTS:
        entry.choice("trigger", (*_VERSION_1_EVENTS, *_VERSION_1_UNAVAILABLE), "")
    notes = VERSION_1_FILE.unknown_keys(entry, _HOOK_KEYS)
    if entry.members.get("confirm"):  # true, or an object with what a person is asked: neither may cost a guard
        notes.append(f"{source}: confirm is ignored: the hook runs without asking a person")
    flat = _flat(entry, entry.table("action"), "command", entry.text("matcher"))
    found = VERSION_1_FILE.read_entry(file, trigger, flat, flat)
    return HookList(found.hooks, (*notes, *found.notes))


def _ide_0(file: HookFile, document: Table) -> HookList:
    if "enabled" in document.members and not document.flag("enabled"):
        return HookList((), remarks=(f"{file.path}: is not enabled",))
    when, then = document.table("when"), document.table("then")
    trigger = when.text("type")
    if trigger in _IDE_0_UNAVAILABLE:
        return HookList((), remarks=(f"{file.path} {CANNOT_FIRE}: {_IDE_0_UNAVAILABLE[trigger]}",))
    if trigger not in _IDE_0_EVENTS:
        when.choice("type", (*_IDE_0_EVENTS, *_IDE_0_UNAVAILABLE), "")
    tools = when.texts("toolTypes") or ()
    members = {**then.members, "name": document.members.get("name", "")}
    flat = _flat(Table(document.where, then.path, members), then, "runCommand", "")
    found = _IDE_0_FILE.read_entry(file, trigger, flat, flat)
    matches = shared_hook_file.compile_member(
        Table(when.where, when.path, {"toolTypes": "|".join(tools)}), "toolTypes", lambda _text: any_of(tools)
    )
    hooks = tuple(replace(hook, matches=matches, matcher="|".join(tools)) for hook in found.hooks)
    return HookList(hooks, found.notes)


def _flat(entry: Table, action: Table, command: str, matcher: str) -> Table:
    """An entry with its action, which must be a `command`, as a flat entry. Raises ConfigError for other actions."""
    if (kind := action.text("type", command)) != command:
        raise action.error("type", f"{kind!r} cannot run behind MCP", f'only "{command}" can')
    action.require("command", 'write "command": "./guard.sh"')
    timeout = entry.members.get("timeout", TIMEOUT)
    members = {
        "command": action.text("command"),
        "matcher": matcher,
        "timeout": command_file.NO_TIMEOUT if timeout == 0 and timeout is not False else timeout,  # "0 = none"
        "label": entry.text("name"),
    }
    return Table(entry.where, entry.path, members)


def _named_entries(trait: str, after_call: str) -> Entries:
    """The entries of the two other forms, which have names, and whose hooks run one after another."""
    return Entries(
        keys=("command", "matcher", "timeout", "label"),
        also_on_failure=(after_call,),
        bash=True,
        label_key="label",
        finish=lambda _file, _entry, hook: replace(hook, traits=frozenset((trait,)), sequential=True),
    )


VERSION_1_FILE: Final = CommandFile(
    dialect=NAME,
    events=_VERSION_1_EVENTS,
    unavailable=_VERSION_1_UNAVAILABLE,
    timeouts=Timeouts(TIMEOUT),
    entries=_named_entries(VERSION_1, "PostToolUse"),
    matchers=Matchers(compile=regex_matcher),
)
_IDE_0_EVENTS: Final = {name: _AGENT_EVENTS[name] for name in ("preToolUse", "postToolUse")}
_IDE_0_FILE: Final = replace(
    VERSION_1_FILE,
    events=_IDE_0_EVENTS,
    unavailable=_IDE_0_UNAVAILABLE,
    entries=_named_entries(IDE_0, "postToolUse"),
)
