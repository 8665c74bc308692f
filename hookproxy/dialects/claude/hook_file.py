"""Reads Claude Code's settings files, and the hooks.json of a plugin, into hook specs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import HookFile, HookList
from ..shared import handler_types
from ..shared import hook_file as shared_hook_file
from ..shared.handler_types import Handler
from ..shared.hook_file import Table
from .input import TOOL_EVENTS

NAME: Final = "claude"

TIMEOUT: Final = 600.0
"""The documented default timeout of a hook in seconds."""

_PROMPTS_UNSEEN: Final = "prompts never pass through MCP"
_TURNS_UNSEEN: Final = "an MCP server does not see turns, tasks and subagents"
_INSIDE_AGENT: Final = "it happens inside the agent, and an MCP server does not see it"

UNAVAILABLE_EVENTS: Final = {
    "UserPromptSubmit": _PROMPTS_UNSEEN,
    "UserPromptExpansion": _PROMPTS_UNSEEN,
    "Stop": _TURNS_UNSEEN,
    "StopFailure": _TURNS_UNSEEN,
    "SubagentStart": _TURNS_UNSEEN,
    "SubagentStop": _TURNS_UNSEEN,
    "TaskCreated": _TURNS_UNSEEN,
    "TaskCompleted": _TURNS_UNSEEN,
    "TeammateIdle": _TURNS_UNSEEN,
    "PostToolBatch": "an MCP server does not see which calls were made together",
    "PermissionDenied": "the permission classifier is inside the agent",
    "ConfigChange": _INSIDE_AGENT,
    "CwdChanged": _INSIDE_AGENT,
    "DirectoryAdded": _INSIDE_AGENT,
    "FileChanged": _INSIDE_AGENT,
    "InstructionsLoaded": _INSIDE_AGENT,
    "MessageDisplay": _INSIDE_AGENT,
    "PostCompact": _INSIDE_AGENT,
    "PostModelSwitch": _INSIDE_AGENT,
    "PreCompact": _INSIDE_AGENT,
    "PreModelSwitch": _INSIDE_AGENT,
    "Setup": _INSIDE_AGENT,
    "WorktreeCreate": _INSIDE_AGENT,
    "WorktreeRemove": _INSIDE_AGENT,
}
"""Claude Code's other events, up to 2.1.285, and why they cannot occur behind MCP."""

_UNSUPPORTED_TYPES: Final = {
    "prompt": "is not supported: hookproxy has no model to ask",
    "agent": "is not supported: hookproxy cannot start an agent",
}
_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = (
    "type", "command", "args", "timeout", "if", "async", "asyncRewake", "once", "shell", "statusMessage",
    "onFailure", "url", "headers", "allowedEnvVars", "server", "tool", "input",
)  # fmt: skip
_PLUGIN_PLACEHOLDER: Final = re.compile(r"\$\{?(CLAUDE_PLUGIN_\w+|user_config\.\w+)")
"""Placeholders that Claude Code replaces in the hooks of an installed plugin."""
EVENTS: Final = {
    event.value: event
    for event in (
        *TOOL_EVENTS,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.ELICITATION,
        Event.ELICITATION_RESULT,
        Event.NOTIFICATION,
    )
}
"""The events that can occur behind MCP, by their names in a settings file."""

_NOTIFICATIONS: Final = ("permission_prompt", "elicitation_dialog")
"""The notification types that can occur behind MCP: hookproxy's own requests to the person cause them."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file or of a plugin's hooks.json. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if settings.flag("disableAllHooks"):
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, so none of its hooks run",))
    if "hooks" not in settings.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table, EVENTS, UNAVAILABLE_EVENTS, table.tables, lambda name, group: _group(file, EVENTS[name], group)
    )


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Claude Code's event names, or no events yet."""
    events = members.get("hooks")
    if not isinstance(events, dict) or "version" in members:
        return False
    return all(name in EVENTS or name in UNAVAILABLE_EVENTS for name in events) and all(
        isinstance(groups, list) and all(isinstance(group, dict) and "hooks" in group for group in groups)
        for groups in events.values()
    )


def _group(file: HookFile, event: Event, group: Table) -> HookList:
    """One matcher group: the hooks that can run, and notes on everything else."""
    group.require("hooks", 'write {"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}')
    matches = shared_hook_file.compile_member(group, "matcher", matchers.claude_matcher)
    notes = _misspelt_keys(group, _GROUP_KEYS) + _matcher_notes(event, group, matches)
    hooks: list[HookSpec] = []
    for entry in group.tables("hooks"):
        entry.require("type", 'write "type": "command"')
        entry.choice("type", ("command", "http", "mcp_tool", *_UNSUPPORTED_TYPES), "")
        reason = _why_impossible(event, entry)
        if reason:
            notes.append(f"{file.path}: {entry.path} does not run: {reason}")
        else:
            hooks.append(_hook(file, event, group, entry, matches))
            notes += _misspelt_keys(entry, _HOOK_KEYS) + _hook_notes(file, entry, hooks[-1])
    return HookList(tuple(hooks), tuple(notes))


def _hook(file: HookFile, event: Event, group: Table, entry: Table, matches: Callable[[str], bool]) -> HookSpec:
    entry.text("statusMessage")
    handler = handler_types.http_or_mcp_tool(entry, "allowedEnvVars")
    command, argv = ("", ()) if handler else _command(file, entry)
    handler = handler or Handler(
        "command", shared_hook_file.argv_label(list(argv)) if argv else shared_hook_file.command_label(command)
    )
    on_failure = entry.choice("onFailure", ("block", "continue"), "continue")
    if "if" in entry.members:
        shared_hook_file.compile_member(entry, "if", matchers.permission_rule)
    return HookSpec(
        dialect=NAME,
        source=f"{file.path}: {entry.path}",
        event=event,
        label=handler.label,
        matcher=group.text("matcher"),
        matches=matches,
        argv=shared_hook_file.resolve_program(argv, file.project_dir),
        shell="" if argv else command,
        cwd=file.project_dir,
        env=tuple(_folder_variables(file).items()) if command else (),
        timeout=shared_hook_file.read_timeout(entry, event, TIMEOUT),
        background=entry.flag("async") or entry.flag("asyncRewake"),
        fails_closed=on_failure == "block",
        only_if=entry.text("if"),
        type=handler.type,
        url=handler.http_target.url,
        headers=handler.http_target.headers,
        allowed_env_vars=handler.http_target.allowed_env_vars,
        server=handler.server,
        tool=handler.tool,
        input=handler.input,
    )


def _command(file: HookFile, entry: Table) -> tuple[str, tuple[str, ...]]:
    """The command as written, and its argv if the entry has `args`."""
    entry.require("command")
    command, args, folders = entry.text("command"), entry.texts("args"), _folder_variables(file)
    if not command.strip():
        raise entry.error("command", "is empty", "write a command, or remove the entry")
    return command, () if args is None else tuple(_expand(word, folders) for word in (command, *args))


def _folder_variables(file: HookFile) -> dict[str, str]:
    """The folders by which a hook finds its own files, by the names of their variables and placeholders."""
    folders = {"CLAUDE_PROJECT_DIR": file.project_dir}
    folder, name = os.path.split(file.path)
    if name == "hooks.json" and os.path.basename(folder) == "hooks":  # the documented place of a plugin's file
        folders["CLAUDE_PLUGIN_ROOT"] = os.path.dirname(folder)
    return folders


def _expand(word: str, folders: Mapping[str, str]) -> str:
    for name, value in folders.items():
        word = word.replace("${" + name + "}", value)
    return word


def _why_impossible(event: Event, entry: Table) -> str:
    """The reason why an entry cannot run here. Empty if it can."""
    handler = entry.text("type")
    if handler in _UNSUPPORTED_TYPES:
        return f"type {handler!r} {_UNSUPPORTED_TYPES[handler]}"
    if event not in TOOL_EVENTS and "if" in entry.members:
        return "`if` is only for tool events: with it, a hook of another event never runs, as documented"
    if entry.choice("shell", ("bash", "powershell"), "bash") == "powershell" and "args" not in entry.members:
        return "PowerShell is not supported"
    return ""


def _hook_notes(file: HookFile, entry: Table, hook: HookSpec) -> list[str]:
    """Notes on a hook that runs, but does not work as its author may expect."""
    notes = []
    if entry.flag("once"):
        notes.append("`once` only has an effect in skills, as documented: the hook runs every time")
    if entry.flag("asyncRewake"):
        notes.append("`asyncRewake` cannot wake the agent behind MCP: the hook only runs in the background")
    if hook.timeout > shared_hook_file.LONG_TIMEOUT:
        notes.append(f"a timeout of {hook.timeout:g} seconds is longer than agents wait for a call")
    unknown = set(_PLUGIN_PLACEHOLDER.findall(hook.shell or " ".join(hook.argv))) - set(_folder_variables(file))
    notes += [
        f"{name} has no value here, because the file does not belong to an installed plugin" for name in sorted(unknown)
    ]
    return [f"{hook.source}: {note}" for note in notes]


def _misspelt_keys(table: Table, known: Sequence[str]) -> list[str]:
    """Notes on unknown keys that look like known ones. Other keys get no note: Claude Code adds keys often."""
    similar = {key: hint for key, hint in table.unknown(known).items() if hint}
    return [f"{table.where}: {table.place(key)} is unknown and ignored: {hint}" for key, hint in similar.items()]


def _matcher_notes(event: Event, group: Table, matches: Callable[[str], bool]) -> list[str]:
    """Notes on a matcher that never matches, because nothing else would show it."""
    matcher = group.text("matcher")
    place = f"{group.where}: {group.place('matcher')} {matcher!r} never matches"
    if event is Event.SESSION_START and not matches("startup"):
        return [f"{place}: behind MCP, the only source is startup"]
    if event is Event.NOTIFICATION and not any(map(matches, _NOTIFICATIONS)):
        return [f"{place}: behind MCP, the only types are {' and '.join(_NOTIFICATIONS)}"]
    servers = [name for name in matchers.plain_names(matcher) if matchers.is_server(name)]
    return [f"{place} {name}'s tools: write {name}__.*" for name in servers if event in TOOL_EVENTS]
