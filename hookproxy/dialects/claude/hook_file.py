"""Reads Claude Code's settings files, and the hooks.json of a plugin, into hook specs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ...model.late_pattern import late_pattern
from ...policy import matchers
from ..dialect import HookFile, HookList, for_names
from ..shared import claude_matchers, command_file, handler_types, labels, model_hooks
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matcher, Matchers, Timeouts
from ..shared.events import INSIDE_AGENT, PROMPTS_UNSEEN, by_name
from ..shared.handler_types import Handler
from ..shared.hook_file import Table
from .input import TOOL_EVENTS
from .output import detach_time

_UNAVAILABLE: Final = for_names({
    PROMPTS_UNSEEN: "UserPromptSubmit UserPromptExpansion",
    "an MCP server does not see turns, tasks and subagents": (
        "Stop StopFailure SubagentStart SubagentStop TaskCreated TaskCompleted TeammateIdle"
    ),
    "an MCP server does not see which calls were made together": "PostToolBatch",
    "the permission classifier is inside the agent": "PermissionDenied",
    INSIDE_AGENT: (
        "ConfigChange CwdChanged DirectoryAdded FileChanged InstructionsLoaded MessageDisplay PostCompact"
        " PostModelSwitch PreCompact PreModelSwitch Setup WorktreeCreate WorktreeRemove"
    ),
})  # fmt: skip
"""Claude Code's other events, up to 2.1.285."""

_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = (
    "type", "command", "args", "timeout", "if", "async", "asyncRewake", "once", "shell", "statusMessage",
    "onFailure", "url", "headers", "allowedEnvVars", "server", "tool", "input", "continueOnBlock", *model_hooks.KEYS,
)  # fmt: skip
_PLUGIN_PLACEHOLDER: Final = late_pattern(r"\$\{?(CLAUDE_PLUGIN_\w+|user_config\.\w+)")
"""Placeholders that Claude Code replaces in the hooks of an installed plugin."""
EVENTS: Final = by_name(
    *TOOL_EVENTS,
    Event.SESSION_START,
    Event.SESSION_END,
    Event.ELICITATION,
    Event.ELICITATION_RESULT,
    Event.NOTIFICATION,
)
"""The events that can occur behind MCP, by their names in a settings file."""

NOTIFICATIONS: Final = {
    name: name
    for name in (
        "permission_prompt",  # hookproxy asks the person about a call
        "elicitation_dialog",  # the server asks for values
        "elicitation_url_dialog",  # the server asks the person to visit a page
        "elicitation_response",  # the person has answered
        "elicitation_complete",  # the server says that the person's business on the page is done
    )
}
"""The notification types that can occur behind MCP."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file or of a plugin's hooks.json. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if settings.flag("disableAllHooks"):
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, {shared_hook_file.SWITCHED_OFF}",))
    if "hooks" not in settings.members:
        misplaced = next((name for name in settings.members if name in EVENTS or name in _UNAVAILABLE), "")
        notes = (f'{file.path}: {misplaced} is not read: Claude Code reads events inside of "hooks" only',)
        without_hooks = HookList((), notes if misplaced else (), (f"{file.path}: {shared_hook_file.NO_HOOKS}",))
        return shared_hook_file.merge([_notes_on_file(settings), without_hooks])
    return shared_hook_file.merge([_notes_on_file(settings), *(_groups(file, table) for table in _tables(settings))])


def _tables(settings: Table) -> list[Table]:
    """The tables of events. The manifest of a plugin may have several, and the names of files instead of them."""
    hooks = settings.members["hooks"]
    if os.path.basename(settings.where) != "plugin.json" or isinstance(hooks, dict):
        if isinstance(hooks, list):
            hint = 'write {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "…"}]}]}}'
            raise settings.error("hooks", "must be an object, not a list: Claude Code refuses this file, too", hint)
        return [settings.table("hooks")]
    if not isinstance(hooks, list):
        return []
    items = settings.items("hooks")
    return [items.table(place) for place, item in items.members.items() if not isinstance(item, str)]


def _notes_on_file(settings: Table) -> HookList:
    if "modules" not in settings.members:
        return HookList(())
    return HookList((), (f"{settings.where}: modules cannot run here: they are functions inside Claude Code",))


def _groups(file: HookFile, table: Table) -> HookList:
    """The hooks of a table of events. What is malformed is left out, as Claude Code does."""

    def read_event(name: str) -> HookList:
        def read_groups() -> HookList:
            return shared_hook_file.read_each(table, name, lambda group: _group(file, name, group))

        return shared_hook_file.or_left_out(table.where, table.place(name), read_groups)

    return shared_hook_file.read_events(table, EVENTS, _UNAVAILABLE, read_event)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Claude Code's event names, or no events yet."""
    return "version" not in members and FORMAT.fits(members, or_none=True)


def _group(file: HookFile, name: str, group: Table) -> HookList:
    """One matcher group: the hooks that can run, and notes on everything else."""
    group.require("hooks", 'write {"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}')
    matches, matcher_notes = _matcher(EVENTS[name], group)
    notes = HookList((), (*FORMAT.unknown_keys(group, _GROUP_KEYS, of_group=True), *matcher_notes))
    matcher = Matcher(matches, group.text("matcher"))
    entries = shared_hook_file.read_each(
        group, "hooks", lambda entry: FORMAT.read_entry(file, name, group, entry, matcher)
    )
    return shared_hook_file.merge([notes, entries])


def _read_handler(file: HookFile, name: str, entry: Table) -> Handler | str:
    entry.require("type", 'write "type": "command"')
    entry.choice("type", ("command", "http", "mcp_tool", *model_hooks.TIMEOUTS), "")
    if reason := _why_impossible(EVENTS[name], entry):
        return reason
    entry.text("statusMessage")
    if (kind := entry.text("type")) in model_hooks.TIMEOUTS:
        return model_hooks.read_model_hook(file, entry, EVENTS[name], kind)
    if entry.text("type") == "http":
        return handler_types.read_http(entry, "allowedEnvVars")
    if entry.text("type") == "mcp_tool":
        return handler_types.read_mcp_tool(entry)
    entry.require("command")
    handler, args, folders = command_file.shell_command(entry, "command"), entry.texts("args"), _folder_variables(file)
    if args is None:
        return handler
    argv = tuple(_expand(word, folders) for word in (handler.shell, *args))
    label = labels.argv_label(list(argv))
    return Handler("command", label, argv=shared_hook_file.resolve_program(argv, file.project_dir))


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    background = entry.flag("async") or entry.flag("asyncRewake")
    on_failure = entry.choice("onFailure", ("block", "continue"), "continue")
    if "if" in entry.members:
        shared_hook_file.compile_member(entry, "if", matchers.permission_rule)
    is_command = hook.type == "command"
    return replace(
        hook,
        env=tuple(_folder_variables(file).items()) if is_command else (),
        background=background,
        detaches=detach_time if is_command and not background else None,
        fails_closed=on_failure == "block",
        only_if=entry.text("if"),
    )


def _folder_variables(file: HookFile) -> dict[str, str]:
    """The folders by which a hook finds its own files, by the names of their variables and placeholders."""
    folders = {"CLAUDE_PROJECT_DIR": file.project_dir}
    if file.plugin:
        folders |= {"CLAUDE_PLUGIN_ROOT": file.plugin.root, "CLAUDE_PLUGIN_DATA": file.plugin.data}
    return folders


def _expand(word: str, folders: Mapping[str, str]) -> str:
    for name, value in folders.items():
        word = word.replace("${" + name + "}", value)
    return word


def _why_impossible(event: Event, entry: Table) -> str:
    """The reason why an entry cannot run here. Empty if it can."""
    handler = entry.text("type")
    if event is Event.SESSION_START and handler == "http":
        return "Claude Code runs only hooks of type command and mcp_tool at SessionStart"
    if event not in TOOL_EVENTS and "if" in entry.members:
        return "`if` is only for tool events: with it, a hook of another event never runs, as documented"
    if entry.choice("shell", ("bash", "powershell"), "bash") == "powershell" and "args" not in entry.members:
        return "PowerShell is not supported"
    return ""


def _notes_on(file: HookFile, _name: str, entry: Table) -> list[str]:
    """Notes on a hook that runs, but does not work as its author may expect."""
    notes = []
    if entry.flag("once"):
        notes.append("`once` only has an effect in skills, as documented: the hook runs every time")
    if entry.flag("asyncRewake"):
        notes.append("`asyncRewake` cannot wake the agent behind MCP: the hook only runs in the background")
    words = (entry.text("command"), *(entry.texts("args") or ())) if entry.text("type") == "command" else ()
    unknown = set(_PLUGIN_PLACEHOLDER.findall(" ".join(words))) - set(_folder_variables(file))
    return notes + [
        f"{name} has no value here, because the file does not belong to an installed plugin" for name in sorted(unknown)
    ]


def _matcher(event: Event, group: Table) -> tuple[Callable[[str], bool], list[str]]:
    """The compiled matcher, and notes on it. One that is not a regular expression matches nothing, as in Claude Code.

    Source: Claude Code 2.1.291 logs "Invalid regex pattern in hook matcher", and the hook does not match. Raises
    ConfigError for an expression that only Python cannot read: then it is not known what the matcher means.
    """
    matcher = group.text("matcher")
    hint = "write tool names, with | between them"
    if matchers.is_rule(matcher):
        tool = matcher.partition("(")[0]
        hint = f'it is a permission rule: write "matcher": "{tool}", and "if": "{matcher}" in the hook'
    place = f"{group.where}: {group.place('matcher')} {matcher!r} never matches"
    try:
        matches = matchers.claude_matcher(matcher)
    except (re.error, OverflowError, RecursionError) as problem:
        if isinstance(problem, re.error) and matchers.is_no_expression(problem):
            why = f"Claude Code cannot read it as a regular expression either ({problem.msg})"
            return (lambda _name: False), [f"{place}: {why}: {hint}"]
        matches = shared_hook_file.compile_member(group, "matcher", matchers.claude_matcher)
    if matchers.is_rule(matcher):
        return matches, [f"{place} a tool's name: {hint}"]
    matches = claude_matchers.either_spelling(matches)
    return matches, _matcher_notes(event, group, matches)


def _matcher_notes(event: Event, group: Table, matches: Callable[[str], bool]) -> list[str]:
    """Notes on a matcher that never matches, because nothing else would show it."""
    matcher = group.text("matcher")
    place = f"{group.where}: {group.place('matcher')} {matcher!r} never matches"
    if event is Event.SESSION_START and not matches("startup"):
        return [f"{place}: behind MCP, the only source is startup"]
    if event is Event.NOTIFICATION and not any(map(matches, NOTIFICATIONS)):
        return [f"{place}: behind MCP, the only types are {', '.join(NOTIFICATIONS)}"]
    servers = [name for name in matchers.plain_names(matcher) if matchers.is_server(name)]
    return [
        f"{place} {name}'s tools: write {name}__.*"
        if name[5:]
        else f"{place}: write mcp__.* for the tools of all servers"
        for name in servers
        if event in TOOL_EVENTS
    ]


FORMAT: Final = CommandFile(
    dialect="claude",
    events=EVENTS,
    unavailable=_UNAVAILABLE,
    timeouts=Timeouts(600.0),
    entries=Entries(
        keys=_HOOK_KEYS,
        grouped=True,
        read_handler=_read_handler,
        finish=_finish,
        notes_on=_notes_on,
        null_is_absent=False,
        only_misspelt_keys=True,
        typed=True,
        closed=("onFailure", "block"),
        condition="if",
    ),
    matchers=Matchers(write="|".join),
)
