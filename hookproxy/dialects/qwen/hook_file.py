"""Reads Qwen Code's settings files into hook specs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import HookFile, HookList
from ..shared import claude_matchers, command_file, handler_types, labels
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import INSIDE_AGENT, PROMPTS_UNSEEN, by_name
from ..shared.handler_types import Handler
from ..shared.hook_file import Table

NAME: Final = "qwen"

PROJECT_VARIABLES: Final = ("QWEN_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")

TIMEOUT: Final = 60.0
"""Seconds for commands."""

_HTTP_TIMEOUT: Final = 600.0
"""Seconds for HTTP hooks."""

_MILLISECONDS: Final = 1000.0
"""A timeout of this or more is in milliseconds: older versions knew no other unit, and newer ones read it so."""

EVENTS: Final = by_name(
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
    Event.PERMISSION_DENIED,
    Event.SESSION_START,
    Event.SESSION_END,
    Event.NOTIFICATION,
)
_TURNS_UNSEEN: Final = "an MCP server does not see turns, tasks and subagents"
UNAVAILABLE_EVENTS: Final = {
    "PostToolBatch": "an MCP server does not see which calls were made together",
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "UserPromptExpansion": PROMPTS_UNSEEN,
    "QueryEnd": PROMPTS_UNSEEN,
    "Stop": _TURNS_UNSEEN,
    "StopFailure": _TURNS_UNSEEN,
    "SubagentStart": _TURNS_UNSEEN,
    "SubagentStop": _TURNS_UNSEEN,
    "TodoCreated": _TURNS_UNSEEN,
    "TodoCompleted": _TURNS_UNSEEN,
    "TeammateIdle": _TURNS_UNSEEN,
    "PreCompact": INSIDE_AGENT,
    "PostCompact": INSIDE_AGENT,
    "SessionDelete": INSIDE_AGENT,
    "MessageDisplay": INSIDE_AGENT,
    "InstructionsLoaded": INSIDE_AGENT,
    "ConfigChange": INSIDE_AGENT,
    "CwdChanged": INSIDE_AGENT,
    "FileChanged": INSIDE_AGENT,
    "WorktreeCreate": INSIDE_AGENT,
}
"""Qwen Code's other events, and why they cannot occur behind MCP."""

FAMILIAR_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "Bash": ("run_shell_command", {"run_in_background": "is_background"}),
    "Read": ("read_file", {}),
    "Write": ("write_file", {}),
    "Edit": ("edit", {}),
    "LS": ("list_directory", {}),
    "Glob": ("glob", {}),
    "Grep": ("grep_search", {}),
    "WebFetch": ("web_fetch", {}),
    "WebSearch": ("web_search", {}),
}
"""Qwen Code's own tools, with their names of arguments that Claude Code spells otherwise, by Claude Code's names."""

_ALIASES: Final = {
    "run_shell_command": ("Bash", "Shell"),
    "read_file": ("Read", "ReadFile"),
    "write_file": ("Write", "WriteFile"),
    "edit": ("Edit",),
    "list_directory": ("LS", "ListFiles"),
    "glob": ("Glob",),
    "grep_search": ("Grep",),
    "web_fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
}
"""Other names by which matchers know these tools: Claude Code's and the displayed ones."""

_KEYS: Final = (
    "type", "command", "name", "timeout", "async", "env", "shell", "statusMessage", "failMode", "url", "headers",
    "allowedEnvVars",
)  # fmt: skip


_REPLACED: Final = re.compile(r"[^A-Za-z0-9_.-]")
"""What a name cannot have. Whether it can have dots is not known: matchers are tried on both spellings."""


def mcp_tool_name(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, with dots."""
    return f"mcp__{_REPLACED.sub('_', server)}__{_REPLACED.sub('_', tool)}"


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file, which may have comments. Raises ConfigError."""
    settings = shared_hook_file.read_document(file.path, file.text, comments=True)
    if settings.flag("disableAllHooks"):
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, {shared_hook_file.SWITCHED_OFF}",))
    return command_file.read_hooks(FORMAT, file, settings)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Qwen Code's event names, or no events yet."""
    return "version" not in members and command_file.fits(FORMAT, members, or_none=True)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """As `_matcher_of_name`, for the name of a server's tool with its dots or with `_` in their place."""
    return claude_matchers.either_spelling(_matcher_of_name(pattern))


def _matcher_of_name(pattern: str) -> Callable[[str], bool]:
    """All; a name, or a list of names, of the tool or of its other names; else an expression that matches anywhere.

    What newer versions and older ones match differently, either of them matches here. An invalid expression matches
    only as a name.
    """
    pattern = pattern.strip()
    if pattern in ("", "*", ".*"):
        return lambda _name: True
    listed = frozenset([pattern] if pattern.startswith(("^", "(")) else map(str.strip, (pattern, *pattern.split("|"))))
    try:
        expression = matchers.javascript_regex("|".join(map(str.strip, pattern.split("|"))))
    except (re.error, OverflowError, RecursionError) as problem:
        if isinstance(problem, re.error) and matchers.is_no_expression(problem):
            return lambda name: not listed.isdisjoint((name, *_ALIASES.get(name, ())))
        raise  # Qwen Code may be able to read it, so it is not known what it means
    return lambda name: not listed.isdisjoint((name, *_ALIASES.get(name, ()))) or expression(name)


def _matcher_notes(event: Event, pattern: str, matches: Callable[[str], bool]) -> list[str]:
    try:
        matchers.javascript_regex(pattern.strip())
    except re.error as problem:
        if pattern.strip() not in ("", "*"):
            return [f"is no regular expression ({problem.msg}), so it only matches a tool of just this name"]
    return claude_matchers.never_matches(event, pattern, matches)


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler:
    handler = entry.choice("type", ("command", "http", "prompt", "function"), "command")
    if handler in ("prompt", "function"):
        raise entry.error("type", f"{handler!r} is not supported: it runs inside Qwen Code", "use type command")
    if entry.choice("shell", ("bash", "powershell"), "bash") == "powershell":
        raise entry.error("shell", "is PowerShell, which is not supported", "write a command for bash")
    return handler_types.read_http(entry, "allowedEnvVars") if handler == "http" else command_file.read_command(entry)


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    timeout = hook.timeout
    if hook.url and "timeout" not in entry.members and hook.event is not Event.SESSION_END:
        timeout = _HTTP_TIMEOUT
    project = ((name, file.project_dir) for name in PROJECT_VARIABLES)
    return replace(
        hook,
        label=labels.command_label(entry.text("name")) or hook.label,
        timeout=timeout,
        background=entry.flag("async"),
        fails_closed=entry.choice("failMode", ("open", "closed"), "open") == "closed",
        env=(*project, *entry.pairs("env")) if hook.argv else (),
    )


FORMAT: Final = CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeouts=Timeouts(default=TIMEOUT, milliseconds_from=_MILLISECONDS),
    entries=Entries(
        keys=_KEYS,
        grouped=True,
        sequential=True,
        read_handler=_read_handler,
        bash=True,
        finish=_finish,
        typed=True,
        closed=("failMode", "closed"),
    ),
    matchers=Matchers(
        compile=_matcher,
        triggers=(Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
        notes=_matcher_notes,
        write="|".join,
    ),
)
