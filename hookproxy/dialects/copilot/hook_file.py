"""GitHub Copilot CLI's hooks: its hook files in two editions; `copilot_told` and `copilot_answer` have the rest."""

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
from ..shared.handler_types import NO_HTTP_TARGET, HttpTarget
from ..shared.hook_file import Table
from .input import OBJECT

NAME: Final = "copilot"

CURRENT: Final = "copilot@current"
"""The name of the current edition's dialect."""

NEWER_KEYS: Final = ("command", "exec", "args", "timeout", "url", "headers", "allowedEnvVars")
"""Of the current edition only."""

_PROMPT_IS_IMPOSSIBLE: Final = "type 'prompt' is impossible here: there is no prompt that it could be sent to"
_ONE_COMMAND: Final = ("bash", "powershell", "command")
"""What `exec` excludes."""
_GRANTING: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
"""Whose services must be asked by https, "because the response can grant tool permissions"."""
_LOOPBACK: Final = "COPILOT_HOOK_ALLOW_LOCALHOST"


def why_impossible(newer: bool, event: Event, entry: Table) -> str:
    """Why an entry does not run here; empty: it does."""
    if not newer:
        entry.require("type", 'write "type": "command"')
    handler = entry.choice("type", ("command", "prompt", "http") if newer else ("command", "prompt"), "command")
    if handler == "prompt":
        entry.require("prompt")
        entry.text("prompt")
        elsewhere = "" if event is Event.SESSION_START else ", and known to sessionStart only"
        return _PROMPT_IS_IMPOSSIBLE + elsewhere
    return ""


def http_target(environ: Mapping[str, str], event: Event, entry: Table) -> HttpTarget:
    """Where an HTTP hook's document goes, by the reference's rules; NO_HTTP_TARGET for others. Raises ConfigError."""
    if entry.text("type") != "http":
        return NO_HTTP_TARGET
    found = handler_types.read_http_target(entry, "allowedEnvVars")
    if found.url.lower().startswith("https:"):
        return found
    if event in _GRANTING:
        raise entry.error(
            "url", f"must begin with https:// for {event}", "the answer can grant permissions, as documented"
        )
    if found.allowed_env_vars:
        raise entry.error("url", "must begin with https:// where allowedEnvVars is set", "as documented")
    if environ.get(_LOOPBACK) != "1":
        raise entry.error("url", "is no https:// address", f"set {_LOOPBACK}=1 for this machine's, as documented")
    return found


def argv_of(newer: bool, entry: Table) -> tuple[str, ...]:
    """The command; empty where there is one for PowerShell only. Raises ConfigError where there is none."""
    if newer and "exec" in entry.members:
        beside = next((key for key in _ONE_COMMAND if key in entry.members), "")
        if beside:
            raise entry.error(
                "exec", f"stands beside {beside}", "one entry has either exec and args or a shell command"
            )
        return (_command(entry, "exec"), *(entry.texts("args") or ()))
    if newer and "args" in entry.members:
        raise entry.error("args", "is for exec, which is missing", "name the program in exec, or leave args out")
    powershell = "powershell" in entry.members and _command(entry, "powershell")
    for key in ("bash", "command") if newer else ("bash",):
        if key in entry.members:
            return ("bash", "-c", _command(entry, key))
    if not powershell:
        newer_key = next((key for key in NEWER_KEYS if key in entry.members), "")
        hint = f'{newer_key!r} is for dialect = "{CURRENT}"' if newer_key and not newer else ""
        raise entry.error("", "needs one of bash and powershell", hint or 'write "bash": "./guard.sh"')
    return ()


def _command(entry: Table, key: str) -> str:
    command = entry.text(key)
    if not command.strip():
        raise entry.error(key, "is empty", "name a command, or leave the entry out")
    return command


TIMEOUT: Final = 30.0
"""Seconds: `timeoutSec`, "Default: 30"."""

_NO_PROMPT: Final = "prompts never pass through MCP"
_NO_TURN: Final = "an MCP server is not told of turns and subagents"
_NO_AGENT: Final = "it happens inside the agent, which an MCP server is not told of"

UNAVAILABLE_EVENTS: Final = {
    "userPromptSubmitted": _NO_PROMPT,
    "UserPromptSubmit": _NO_PROMPT,
    "agentStop": _NO_TURN,
    "Stop": _NO_TURN,
    "subagentStart": _NO_TURN,
    "SubagentStart": _NO_TURN,
    "subagentStop": _NO_TURN,
    "SubagentStop": _NO_TURN,
    "preCompact": _NO_AGENT,
    "PreCompact": _NO_AGENT,
}
"""The reference's other events in both spellings, and why they cannot occur behind MCP."""

CURRENT_UNAVAILABLE_EVENTS: Final = {**UNAVAILABLE_EVENTS, "userPromptTransformed": _NO_PROMPT}

_HOOK_KEYS: Final = ("type", "bash", "powershell", "cwd", "env", "timeoutSec", "matcher")

_TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST,
)  # fmt: skip
_NOTIFICATIONS: Final = ("permission_prompt", "elicitation_dialog")
"""The types of notification that a proxy can see; what a notification's matcher may name and never match is told."""
_AVAILABLE: Final = (*_TOOL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.ERROR_OCCURRED, Event.NOTIFICATION)
EVENTS: Final = {
    name: event for event in _AVAILABLE for name in (event.value[0].lower() + event.value[1:], event.value)
}
"""Each event in both spellings, camelCase and PascalCase: the spelling chooses what the hook is told."""
_LIKE_CLAUDE: Final = ("PreToolUse", "PermissionRequest")
"""Events with "Claude-format matchers" in the current edition, which differ in how they spell "all"."""
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)


def read_hook_file(newer: bool, file: HookFile) -> HookList:
    """The hooks of a hook file, by the current edition if `newer`. Raises ConfigError."""
    document = shared_hook_file.read_json(file.path, file.text)
    document.require("version", 'write "version": 1')
    version = document.members["version"]
    if isinstance(version, bool) or version != 1:
        raise document.error("version", f"must be 1, not {version!r}", "hook files use JSON format with version 1")
    notes = _misspelt(document, ("version", "hooks", "disableAllHooks"))
    if document.flag("disableAllHooks"):
        return HookList((), (f"{file.path}: disableAllHooks is true, so none of its hooks runs", *notes))
    if "hooks" not in document.members:
        return HookList((), (f"{file.path}: there are no hooks in it", *notes))
    unavailable = CURRENT_UNAVAILABLE_EVENTS if newer else UNAVAILABLE_EVENTS
    table = document.table("hooks")
    found = shared_hook_file.read_events(
        table, EVENTS, unavailable, table.tables, lambda name, entry: _entry(newer, file, name, entry)
    )
    return HookList(found.hooks, (*notes, *found.notes))


def recognises(members: Mapping[str, object]) -> bool:
    """`version` 1, and flat objects under Copilot's names of events."""
    version, events = members.get("version"), members.get("hooks")
    if isinstance(version, bool) or version != 1 or not isinstance(events, dict):
        return False
    return events.keys() <= EVENTS.keys() | CURRENT_UNAVAILABLE_EVENTS.keys() and all(
        isinstance(entries, list) and all(map(_is_entry, entries)) for entries in events.values()
    )


def _is_entry(entry: object) -> bool:
    """One flat object that says what it is: other systems have files of version 1 whose entries do not."""
    return (
        isinstance(entry, dict) and "hooks" not in entry and not entry.keys().isdisjoint(("type", "bash", "powershell"))
    )


def _entry(newer: bool, file: HookFile, event_name: str, entry: Table) -> HookList:
    """One entry: the hook that runs, or a note why it does not, and notes on what else is not as it seems."""
    source = f"{file.path}: {entry.path}"
    event = EVENTS[event_name]
    impossible = why_impossible(newer, event, entry)
    post = http_target(file.environ, event, entry)
    argv = () if impossible or post.url else argv_of(newer, entry)
    if not argv and not post.url:
        reason = impossible or "it is for PowerShell only, which is not supported"
        return HookList((), (f"{source} does not run: {reason}",))
    folder = _folder(file.project_dir, entry.text("cwd"))
    env, unset = _env(entry, file.environ) if argv else ([], [])
    matches, remarks = _matcher(newer, event_name, entry)
    hook = HookSpec(
        dialect=CURRENT if newer else NAME,
        source=source,
        event=event,
        label=post.host
        or (
            shared_hook_file.command_label(argv[2])
            if argv[:2] == ("bash", "-c")
            else shared_hook_file.argv_label(list(argv))
        ),
        matcher=entry.text("matcher"),
        matches=matches,
        argv=shared_hook_file.resolve_program(argv, folder),
        cwd=folder,
        env=(("COPILOT_PROJECT_DIR", file.project_dir), *env) if argv else (),
        timeout=entry.seconds("timeout" if newer and "timeoutSec" not in entry.members else "timeoutSec", TIMEOUT),
        type="http" if post.url else "command",
        url=post.url,
        headers=post.headers,
        allowed_env_vars=post.allowed_env_vars,
        event_name=event_name,
        traits=frozenset({OBJECT} if file.options.get("tool_args") == "object" else ()),
        every_call=event is Event.PERMISSION_REQUEST and file.options.get("fire_permission_request") == "always",
    )
    if hook.timeout > shared_hook_file.LONG_TIMEOUT:
        remarks.append(f"a timeout of {hook.timeout:g} seconds is longer than agents wait for a call")
    remarks += [f"env: ${name} is not set, and counts as empty" for name in unset]
    return HookList((hook,), (*_unknown_keys(newer, entry), *(f"{source}: {remark}" for remark in remarks)))


def _folder(project: str, cwd: str) -> str:
    """The documented working directory: "relative to repository root or absolute"; the root where none is given."""
    folder = os.path.join(project, cwd)
    return folder if ".." in folder.split("/") else os.path.normpath(folder)  # `..` after a link is the system's


def _env(entry: Table, environ: Mapping[str, str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The documented "environment variables to set (supports variable expansion)"; which names have no value."""
    table, unset = entry.table("env"), list[str]()

    def value_of(name: re.Match[str]) -> str:
        variable = name[1] or name[2]
        if variable not in environ:
            unset.append(variable)
        return environ.get(variable, "")

    variables = []
    for key in table.members:
        if not key or "=" in key or "\0" in key:
            raise table.error(
                repr(key), "is no name that a variable can have", "write a name without = and without NUL"
            )
        variables.append((key, _VARIABLE.sub(value_of, table.text(key))))
    return variables, sorted(set(unset))


def _matcher(newer: bool, event_name: str, entry: Table) -> tuple[Callable[[str], bool], list[str]]:
    """What the matcher selects, and what people should know of it."""
    event, written = EVENTS[event_name], entry.text("matcher")
    if event not in (*_TOOL_EVENTS, Event.NOTIFICATION):
        return matchers.claude_matcher(""), [f"the matcher is ignored: {event_name} has none"] if written else []
    if written == "" or (newer and event_name in _LIKE_CLAUDE and written in ("*", "**")):
        return matchers.claude_matcher(""), []
    matches = shared_hook_file.compile_member(entry, "matcher", _anchored)
    if event is Event.NOTIFICATION and not any(map(matches, _NOTIFICATIONS)):
        kinds = " and ".join(_NOTIFICATIONS)
        return matches, [f"the matcher {written!r} never matches: behind MCP, notifications are {kinds}"]
    return matches, []


def _anchored(pattern: str) -> Callable[[str], bool]:
    """A regular expression, "anchored as ^(?:pattern)$; must match the full tool name". Raises re.error, ValueError."""
    if set(pattern) == {"*"}:
        raise ValueError("it is no regular expression: leave the matcher out to match all, or write .*")
    matchers.claude_matcher(pattern)  # by itself: a bracket must not close the one that is put around it
    return matchers.claude_matcher(f"^(?:{pattern})$")


def _unknown_keys(newer: bool, entry: Table) -> list[str]:
    """Keys of the other edition, and unknown ones that look like known ones; others are left alone."""
    others = [] if newer else [key for key in NEWER_KEYS if key in entry.members]
    return _misspelt(entry, (*_HOOK_KEYS, *NEWER_KEYS, "comment")) + [  # a comment is no command
        f"{entry.where}: {entry.place(key)} is ignored: it is known to {CURRENT} only" for key in others
    ]


def _misspelt(table: Table, known: Sequence[str]) -> list[str]:
    near = {key: hint for key, hint in table.unknown(known).items() if hint}
    return [f"{table.where}: {table.place(key)} is not known and ignored: {near[key]}" for key in near]
