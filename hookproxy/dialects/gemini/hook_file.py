"""Reads Gemini CLI's settings files, and the hooks.json of its extensions, into hook specs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings
from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import Files, HookFile, HookList, Plugin, for_names
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import TURNS_UNSEEN
from ..shared.hook_file import Table

_EVENTS: Final = {
    "BeforeTool": Event.PRE_TOOL_USE,
    "AfterTool": Event.POST_TOOL_USE,
    "SessionStart": Event.SESSION_START,
    "SessionEnd": Event.SESSION_END,
    "Notification": Event.NOTIFICATION,
}
"""AfterTool also occurs after a result with isError. Of a call without a result, Gemini CLI has no event."""

_UNAVAILABLE: Final = for_names({
    TURNS_UNSEEN: "BeforeAgent AfterAgent",
    "requests to the model never pass through MCP": "BeforeModel AfterModel BeforeToolSelection",
    "the agent compresses its conversation itself, and an MCP server does not see it": "PreCompress",
})  # fmt: skip

_OWN_EVENTS: Final = {"BeforeTool", "AfterTool", *_UNAVAILABLE}
_ALL_EVENTS: Final = {*_EVENTS, *_UNAVAILABLE}

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("run_shell_command"),),
    "Read": (ToolSpelling("read_file"),),
    "Write": (ToolSpelling("write_file"),),
    "Edit": (ToolSpelling("replace"),),
    "MultiEdit": (ToolSpelling("replace"),),
    "LS": (ToolSpelling("list_directory", {"path": "dir_path"}),),
    "Glob": (ToolSpelling("glob", {"path": "dir_path"}),),
    "Grep": (ToolSpelling("grep_search", {"path": "dir_path"}), ToolSpelling("search_file_content")),
    "WebFetch": (ToolSpelling("web_fetch"),),
    "WebSearch": (ToolSpelling("google_web_search"),),
}
"""Gemini CLI's own tools (packages/core/src/tools). The text search was `search_file_content` before it was renamed."""

_TRIGGERS: Final = {Event.SESSION_START: "startup", Event.SESSION_END: "other"}
"""The only source and the only reason behind MCP. The matchers of these events are compared with them exactly."""

_NAMED: Final = "named"
"""The trait of hooks that have a name of their own."""

_MANIFEST: Final = "gemini-extension.json"
_VARIABLE: Final = re.compile(r"\$\{(extensionPath|workspacePath|pathSeparator|/)\}")

_LONGEST_NAME: Final = 63
_KEPT: Final = 30  # characters of each end of a longer name
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_\-.:]")
_OLDER_NAME: Final = re.compile(r"mcp__\w+__")


def mcp_tool_name(server: str, tool: str) -> str:
    """`mcp_SERVER_TOOL`, as `generateValidName` makes it: at most 63 characters, without the middle of a longer one."""
    name = _NOT_IN_A_NAME.sub("_", f"mcp_{server}_{tool}")
    return name if len(name) <= _LONGEST_NAME else f"{name[:_KEPT]}...{name[-_KEPT:]}"


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file. Raises ConfigError."""
    settings = shared_hook_file.read_document(file.path, file.text, comments=True)
    config = settings.table("hooksConfig")
    if config.members.get("enabled") is False:
        return HookList((), remarks=(f"{file.path}: hooksConfig.enabled is false, {shared_hook_file.SWITCHED_OFF}",))
    found = FORMAT.read_hooks(file, settings)
    disabled = frozenset(config.texts("disabled") or ())
    running = tuple(hook for hook in found.hooks if _name(hook) not in disabled)
    off = sorted({_name(hook) for hook in found.hooks} & disabled)
    remarks = tuple(f"{file.path}: hooksConfig.disabled names {label}, so it does not run" for label in off)
    return HookList(running, found.notes, (*found.remarks, *remarks))


def _name(hook: HookSpec) -> str:
    """What `hooksConfig.disabled` calls a hook: its name, or else the whole command (`getHookName`)."""
    return hook.label if _NAMED in hook.traits else hook.argv[-1]


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are only matcher groups under Gemini CLI's event names, one of which nobody else has."""
    events = members.get("hooks")
    return (
        isinstance(events, dict)
        and "version" not in members
        and events.keys() <= _ALL_EVENTS
        and not events.keys().isdisjoint(_OWN_EVENTS)
    )


def recognises_at_home(members: Mapping[str, object]) -> bool:
    """In its own folder: all events may be other systems', too, and other names are a mistake, which it skips."""
    events = members.get("hooks")
    known = isinstance(events, dict) and "version" not in members and events.keys() <= _ALL_EVENTS
    return known or FORMAT.fits(members, and_others=True)


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    """The trimmed matcher: all, an unanchored regular expression, or a name if it is not a regular expression.

    An expression that only JavaScript may be able to read matches all: no guard is passed over.
    """
    pattern = pattern.strip()
    if pattern in ("", "*"):
        return lambda _name: True
    try:
        return matchers.javascript_regex(pattern)
    except (re.error, OverflowError, RecursionError) as problem:
        if isinstance(problem, re.error) and matchers.is_no_expression(problem):
            return lambda name: name == pattern
        return lambda _name: True


def _matcher_notes(event: Event, pattern: str, _matches: Callable[[str], bool]) -> list[str]:
    pattern = pattern.strip()
    if event in _TRIGGERS:
        never = pattern not in ("", "*", _TRIGGERS[event])
        return [f"never matches: behind MCP, it is only ever {_TRIGGERS[event]!r}, and is compared exactly"] * never
    if pattern == "*":
        return []
    try:
        matchers.javascript_regex(pattern)
    except (re.error, OverflowError, RecursionError) as problem:
        if isinstance(problem, re.error) and matchers.is_no_expression(problem):
            return [f"is not a regular expression ({problem.msg}), so it only matches a tool of just this name"]
        return [f"cannot be read here ({problem}), so the hook runs for every tool"]
    older = _OLDER_NAME.search(pattern) is not None
    return ["names tools as mcp__SERVER__TOOL: Gemini CLI's names are mcp_SERVER_TOOL"] * older


def find_plugin(path: str, _files: Files) -> Plugin | None:
    """The extension of `ROOT/hooks/hooks.json`, if ROOT has an extension's manifest. Raises nothing."""
    folder, name = os.path.split(os.path.dirname(path))
    return Plugin(folder) if name == "hooks" and os.path.isfile(os.path.join(folder, _MANIFEST)) else None


def _hydrated(file: HookFile, command: str) -> str:
    """The command with the values that Gemini CLI puts into the texts of an extension's files."""
    values = {"/": "/", "pathSeparator": "/", "workspacePath": file.project_dir}
    if file.plugin:
        values["extensionPath"] = file.plugin.root
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), command)


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its name and its variables; at the beginning and the end of a session, its matcher."""
    command, name = entry.text("command"), entry.text("name")
    if "${extensionPath}" in command and file.plugin is None:
        raise entry.error("command", "names ${extensionPath}", f"the file must be in an extension, with {_MANIFEST}")
    exact = hook.matcher.strip()
    if hook.event in _TRIGGERS and exact not in ("", "*"):
        hook = replace(hook, matches=lambda trigger: trigger == exact)
    return replace(
        hook,
        label=name or hook.label,
        traits=frozenset((_NAMED,) if name else ()),
        argv=("bash", "-c", _hydrated(file, command)),
        env=entry.pairs("env"),
    )


FORMAT: Final = CommandFile(
    dialect="gemini",
    events=_EVENTS,
    unavailable=_UNAVAILABLE,
    timeouts=Timeouts(default=60.0, milliseconds=True),
    entries=Entries(
        keys=("type", "command", "name", "description", "timeout", "env"),
        grouped=True,
        also_on_failure=("AfterTool",),
        bash=True,
        finish=_finish,
        sequential=True,
        typed=True,
    ),
    matchers=Matchers(compile=compile_matcher, triggers=tuple(_TRIGGERS), notes=_matcher_notes),
)
