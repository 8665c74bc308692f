"""Claude Code's hooks: its settings files; `claude_told` has what hooks are told, `claude_answer` what they say."""

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
"""Seconds that a command hook has where its entry does not say, as documented."""

_NO_PROMPT: Final = "prompts never pass through MCP"
_NO_TURN: Final = "an MCP server is not told of turns, tasks and subagents"
_NO_AGENT: Final = "it happens inside the agent, which an MCP server is not told of"

UNAVAILABLE_EVENTS: Final = {
    "UserPromptSubmit": _NO_PROMPT,
    "UserPromptExpansion": _NO_PROMPT,
    "Stop": _NO_TURN,
    "StopFailure": _NO_TURN,
    "SubagentStart": _NO_TURN,
    "SubagentStop": _NO_TURN,
    "TaskCreated": _NO_TURN,
    "TaskCompleted": _NO_TURN,
    "TeammateIdle": _NO_TURN,
    "PostToolBatch": "an MCP server is not told which calls were made together",
    "PermissionDenied": "the agent's permission classifier is its own",
    "ConfigChange": _NO_AGENT,
    "CwdChanged": _NO_AGENT,
    "DirectoryAdded": _NO_AGENT,
    "FileChanged": _NO_AGENT,
    "InstructionsLoaded": _NO_AGENT,
    "MessageDisplay": _NO_AGENT,
    "PostCompact": _NO_AGENT,
    "PostModelSwitch": _NO_AGENT,
    "PreCompact": _NO_AGENT,
    "PreModelSwitch": _NO_AGENT,
    "Setup": _NO_AGENT,
    "WorktreeCreate": _NO_AGENT,
    "WorktreeRemove": _NO_AGENT,
}
"""Claude Code's other events, to 2.1.285, and why they cannot occur behind MCP."""

_OTHER_TYPES: Final = {
    "prompt": "is impossible here: there is no model to ask",
    "agent": "is impossible here: there is no agent to start",
}
_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = (
    "type", "command", "args", "timeout", "if", "async", "asyncRewake", "once", "shell", "statusMessage",
    "onFailure", "url", "headers", "allowedEnvVars", "server", "tool", "input",
)  # fmt: skip
_OF_PLUGINS: Final = re.compile(r"\$\{?(CLAUDE_PLUGIN_\w+|user_config\.\w+)")
"""What Claude Code fills in for the hooks of an installed plugin."""
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
"""The types of notifications that hookproxy itself occasions."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file, or of a plugin's hooks.json. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if settings.flag("disableAllHooks"):
        return HookList((), (f"{file.path}: disableAllHooks is true, so none of its hooks runs",))
    if "hooks" not in settings.members:
        return HookList((), (f"{file.path}: there are no hooks in it",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table, EVENTS, UNAVAILABLE_EVENTS, table.tables, lambda name, group: _group(file, EVENTS[name], group)
    )


def recognises(members: Mapping[str, object]) -> bool:
    """Matcher groups under Claude Code's names of events; a settings file that has none yet fits as well."""
    events = members.get("hooks")
    if not isinstance(events, dict) or "version" in members:
        return False
    return all(name in EVENTS or name in UNAVAILABLE_EVENTS for name in events) and all(
        isinstance(groups, list) and all(isinstance(group, dict) and "hooks" in group for group in groups)
        for groups in events.values()
    )


def _group(file: HookFile, event: Event, group: Table) -> HookList:
    """One matcher group: the hooks that run, and a note for all else."""
    group.require("hooks", '{"matcher": "…", "hooks": [{"type": "command", "command": "…"}]} is the shape')
    matches = shared_hook_file.compile_member(group, "matcher", matchers.claude_matcher)
    notes = _misspelt(group, _GROUP_KEYS) + _never_matching(event, group, matches)
    hooks: list[HookSpec] = []
    for entry in group.tables("hooks"):
        entry.require("type", 'write "type": "command"')
        entry.choice("type", ("command", "http", "mcp_tool", *_OTHER_TYPES), "")
        impossible = _impossible(event, entry)
        if impossible:
            notes.append(f"{file.path}: {entry.path} does not run: {impossible}")
        else:
            hooks.append(_hook(file, event, group, entry, matches))
            notes += _misspelt(entry, _HOOK_KEYS) + _remarks(file, entry, hooks[-1])
    return HookList(tuple(hooks), tuple(notes))


def _hook(file: HookFile, event: Event, group: Table, entry: Table, matches: Callable[[str], bool]) -> HookSpec:
    entry.text("statusMessage")
    handler = handler_types.http_or_mcp_tool(entry, "allowedEnvVars")
    command, words = ("", ()) if handler else _command(file, entry)
    handler = handler or Handler(
        "command", shared_hook_file.argv_label(list(words)) if words else shared_hook_file.command_label(command)
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
        argv=shared_hook_file.resolve_program(words, file.project_dir),
        shell="" if words else command,
        cwd=file.project_dir,
        env=tuple(_places(file).items()) if command else (),
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
    """The command as written, and its words where it has `args`."""
    entry.require("command")
    command, args, places = entry.text("command"), entry.texts("args"), _places(file)
    if not command.strip():
        raise entry.error("command", "is empty", "name a command, or leave the entry out")
    return command, () if args is None else tuple(_substituted(word, places) for word in (command, *args))


def _places(file: HookFile) -> dict[str, str]:
    """What a hook finds its own files by, as variables and as placeholders."""
    places = {"CLAUDE_PROJECT_DIR": file.project_dir}
    folder, name = os.path.split(file.path)
    if name == "hooks.json" and os.path.basename(folder) == "hooks":  # a plugin's, by its documented place
        places["CLAUDE_PLUGIN_ROOT"] = os.path.dirname(folder)
    return places


def _substituted(word: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        word = word.replace("${" + name + "}", value)
    return word


def _impossible(event: Event, entry: Table) -> str:
    """Why an entry cannot run here; empty: it can."""
    handler = entry.text("type")
    if handler in _OTHER_TYPES:
        return f"type {handler!r} {_OTHER_TYPES[handler]}"
    if event not in TOOL_EVENTS and "if" in entry.members:
        return "`if` is for tool events, and a hook of another event that has it never runs, as documented"
    if entry.choice("shell", ("bash", "powershell"), "bash") == "powershell" and "args" not in entry.members:
        return "PowerShell is not supported"
    return ""


def _remarks(file: HookFile, entry: Table, hook: HookSpec) -> list[str]:
    """What about a hook that runs is not as its author may think."""
    remarks = []
    if entry.flag("once"):
        remarks.append("`once` counts in skills only, as documented: the hook runs every time")
    if entry.flag("asyncRewake"):
        remarks.append("`asyncRewake` cannot wake the agent from here: the hook only runs in the background")
    if hook.timeout > shared_hook_file.LONG_TIMEOUT:
        remarks.append(f"a timeout of {hook.timeout:g} seconds is longer than agents wait for a call")
    unknown = set(_OF_PLUGINS.findall(hook.shell or " ".join(hook.argv))) - set(_places(file))
    remarks += [f"{name} has no value here: no plugin is installed" for name in sorted(unknown)]
    return [f"{hook.source}: {remark}" for remark in remarks]


def _misspelt(table: Table, known: Sequence[str]) -> list[str]:
    """Unknown keys that look like known ones. Others are left alone: Claude Code adds fields often."""
    near = {key: hint for key, hint in table.unknown(known).items() if hint}
    return [f"{table.where}: {table.place(key)} is not known and ignored: {near[key]}" for key in near]


def _never_matching(event: Event, group: Table, matches: Callable[[str], bool]) -> list[str]:
    """Matchers that select nothing, told because nothing else would show it."""
    matcher = group.text("matcher")
    place = f"{group.where}: {group.place('matcher')} {matcher!r} never matches"
    if event is Event.SESSION_START and not matches("startup"):
        return [f"{place}: behind MCP, sessions only start up"]
    if event is Event.NOTIFICATION and not any(map(matches, _NOTIFICATIONS)):
        return [f"{place}: behind MCP there are only {' and '.join(_NOTIFICATIONS)}"]
    servers = [name for name in matchers.plain_names(matcher) if matchers.is_server(name)]
    return [f"{place} {name}'s tools: write {name}__.*" for name in servers if event in TOOL_EVENTS]
