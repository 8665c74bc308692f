"""Reads GitHub Copilot CLI's hook files, by two editions of its reference, into hook specs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import Files, HookFile, HookList, Plugin
from ..shared import handler_types, labels
from ..shared import hook_file as shared_hook_file
from ..shared.handler_types import NO_HTTP_TARGET, HttpTarget
from ..shared.hook_file import Table
from .input import OBJECT

NAME: Final = "copilot"

CURRENT: Final = "copilot@current"
"""The dialect of the reference's current edition."""

CURRENT_KEYS: Final = ("command", "exec", "args", "timeout", "url", "headers", "allowedEnvVars")
"""The entry keys that only the current edition has."""

_PROMPT_NOT_SUPPORTED: Final = "type 'prompt' is not supported: hookproxy cannot send prompts to the agent"
_SHELL_COMMAND_KEYS: Final = ("bash", "powershell", "command")
"""An entry with `exec` has none of these keys."""
_MANIFESTS: Final = ("plugin.json", ".plugin/plugin.json", ".github/plugin/plugin.json", ".claude-plugin/plugin.json")
"""Where a plugin's manifest may be in its folder."""
_PLUGIN_ROOTS: Final = ("COPILOT_PLUGIN_ROOT", "PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")
_GRANTING_EVENTS: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
"""The events whose HTTP hooks need https, "because the response can grant tool permissions"."""
_ALLOW_LOCALHOST: Final = "COPILOT_HOOK_ALLOW_LOCALHOST"


def why_impossible(current: bool, event: Event, entry: Table) -> str:
    """The reason why an entry cannot run here. Empty if it can."""
    if not current:
        entry.require("type", 'write "type": "command"')
    handler = entry.choice("type", ("command", "prompt", "http") if current else ("command", "prompt"), "command")
    if handler == "prompt":
        entry.require("prompt")
        entry.text("prompt")
        note = "" if event is Event.SESSION_START else ", and it is only for sessionStart"
        return _PROMPT_NOT_SUPPORTED + note
    return ""


def http_target(environ: Mapping[str, str], event: Event, entry: Table) -> HttpTarget:
    """Where an HTTP hook's document goes, by the reference's rules; NO_HTTP_TARGET for others. Raises ConfigError."""
    if entry.text("type") != "http":
        return NO_HTTP_TARGET
    target = handler_types.read_http_target(entry, "allowedEnvVars")
    if target.url.lower().startswith("https:"):
        return target
    if event in _GRANTING_EVENTS:
        raise entry.error(
            "url", f"must begin with https:// for {event}", "its response can grant permissions, as documented"
        )
    if target.allowed_env_vars:
        raise entry.error("url", "must begin with https:// because allowedEnvVars is set", "as documented")
    if environ.get(_ALLOW_LOCALHOST) != "1" or not handler_types.is_loopback(target.host):
        raise entry.error(
            "url",
            "is not an https:// URL",
            f"set {_ALLOW_LOCALHOST}=1 to allow http:// URLs of this machine, as documented",
        )
    return target


def argv_of(current: bool, entry: Table) -> tuple[str, ...]:
    """The command. Empty if it is for PowerShell only. Raises ConfigError if there is none."""
    if current and "exec" in entry.members:
        other_key = next((key for key in _SHELL_COMMAND_KEYS if key in entry.members), "")
        if other_key:
            raise entry.error(
                "exec", f"cannot be combined with {other_key}", "write either exec and args or a shell command"
            )
        return (_command(entry, "exec"), *(entry.texts("args") or ()))
    if current and "args" in entry.members:
        raise entry.error("args", "needs exec, which is missing", "name the program in exec, or remove args")
    powershell = "powershell" in entry.members and _command(entry, "powershell")
    for key in ("bash", "command") if current else ("bash",):
        if key in entry.members:
            return ("bash", "-c", _command(entry, key))
    if not powershell:
        current_key = next((key for key in CURRENT_KEYS if key in entry.members), "")
        hint = f'use dialect = "{CURRENT}", which has {current_key!r}' if current_key and not current else ""
        raise entry.error("", "needs bash or powershell", hint or 'write "bash": "./guard.sh"')
    return ()


def _command(entry: Table, key: str) -> str:
    command = entry.text(key)
    if not command.strip():
        raise entry.error(key, "is empty", "write a command, or remove the entry")
    return command


TIMEOUT: Final = 30.0
"""Seconds. The reference says of `timeoutSec`: "Default: 30"."""

_PROMPTS_UNSEEN: Final = "prompts never pass through MCP"
_TURNS_UNSEEN: Final = "an MCP server does not see turns and subagents"
_INSIDE_AGENT: Final = "it happens inside the agent, and an MCP server does not see it"

UNAVAILABLE_EVENTS: Final = {
    "userPromptSubmitted": _PROMPTS_UNSEEN,
    "UserPromptSubmit": _PROMPTS_UNSEEN,
    "agentStop": _TURNS_UNSEEN,
    "Stop": _TURNS_UNSEEN,
    "subagentStart": _TURNS_UNSEEN,
    "SubagentStart": _TURNS_UNSEEN,
    "subagentStop": _TURNS_UNSEEN,
    "SubagentStop": _TURNS_UNSEEN,
    "preCompact": _INSIDE_AGENT,
    "PreCompact": _INSIDE_AGENT,
}
"""The reference's other events in both spellings, and why they cannot occur behind MCP."""

CURRENT_UNAVAILABLE_EVENTS: Final = {**UNAVAILABLE_EVENTS, "userPromptTransformed": _PROMPTS_UNSEEN}

_HOOK_KEYS: Final = ("type", "bash", "powershell", "cwd", "env", "timeoutSec", "matcher")

_TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)  # fmt: skip
_NOTIFICATIONS: Final = ("permission_prompt", "elicitation_dialog")
"""The notification types that a proxy can see. A matcher that matches neither gets a note."""
_IN_BOTH_SPELLINGS: Final = (
    Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST,
    Event.SESSION_START, Event.SESSION_END, Event.ERROR_OCCURRED, Event.NOTIFICATION,
)  # fmt: skip
EVENTS: Final = {
    **{name: event for event in _IN_BOTH_SPELLINGS for name in (event.value[0].lower() + event.value[1:], event.value)},
    "preMcpToolCall": Event.PRE_MCP_TOOL_CALL,
}
"""Each event in both spellings, camelCase and PascalCase. The spelling determines the format of the hook's input.

preMcpToolCall is that of Copilot CLI 1.0.51 and of its SDKs; no document has another spelling.
"""
_CLAUDE_MATCHER_EVENTS: Final = ("PreToolUse", "PermissionRequest")
"""The events with "Claude-format matchers" in the current edition: there, an asterisk matches all."""
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)


def read_hook_file(current: bool, file: HookFile) -> HookList:
    """The hooks of a hook file, by the `current` edition or the older one. Raises ConfigError."""
    document = shared_hook_file.read_json(file.path, file.text)
    document.require("version", 'write "version": 1')
    version = document.members["version"]
    if isinstance(version, bool) or version != 1:
        raise document.error("version", f"must be 1, not {version!r}", "hook files have version 1")
    notes = _misspelt_keys(document, ("version", "hooks", "disableAllHooks"))
    if document.flag("disableAllHooks"):
        return HookList((), tuple(notes), (f"{file.path}: disableAllHooks is true, so none of its hooks run",))
    if "hooks" not in document.members:
        return HookList((), tuple(notes), (f"{file.path}: contains no hooks",))
    unavailable = CURRENT_UNAVAILABLE_EVENTS if current else UNAVAILABLE_EVENTS
    table = document.table("hooks")
    hook_list = shared_hook_file.read_events(
        table, EVENTS, unavailable, lambda name: _event(current, file, table, name)
    )
    return HookList(hook_list.hooks, (*notes, *hook_list.notes), hook_list.remarks)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether `version` is 1 and there are flat objects under Copilot's event names."""
    version, events = members.get("version"), members.get("hooks")
    if isinstance(version, bool) or version != 1 or not isinstance(events, dict):
        return False
    return events.keys() <= EVENTS.keys() | CURRENT_UNAVAILABLE_EVENTS.keys() and all(
        isinstance(entries, list) and all(map(_is_entry, entries)) for entries in events.values()
    )


def _is_entry(entry: object) -> bool:
    """Whether this is a flat object with one of these keys. Other systems have files of version 1 without them."""
    return (
        isinstance(entry, dict) and "hooks" not in entry and not entry.keys().isdisjoint(("type", "bash", "powershell"))
    )


def _event(current: bool, file: HookFile, table: Table, name: str) -> HookList:
    """The hooks of an event. Copilot leaves out a malformed item, and so do we."""

    def read_entries() -> HookList:
        return shared_hook_file.read_each(table, name, lambda entry: _entry(current, file, name, entry))

    return shared_hook_file.or_left_out(table.where, table.place(name), read_entries)


def _entry(current: bool, file: HookFile, event_name: str, entry: Table) -> HookList:
    """One entry: the hook, or a note on why it cannot run, and notes on what does not work as its author may expect."""
    source = f"{file.path}: {entry.path}"
    event = EVENTS[event_name]
    impossible = why_impossible(current, event, entry)
    target = http_target(file.environ, event, entry)
    argv = () if impossible or target.url else argv_of(current, entry)
    if not argv and not target.url:
        reason = impossible or "it is for PowerShell only, which is not supported"
        return HookList((), (f"{source} does not run: {reason}",))
    folder = _folder(file.project_dir, entry.text("cwd"))
    env, unset = _env(entry, file.environ) if argv else ([], [])
    matches, notes = _matcher(current, event_name, entry)
    hook = HookSpec(
        dialect=CURRENT if current else NAME,
        source=source,
        event=event,
        label=target.host
        or (labels.command_label(argv[2]) if argv[:2] == ("bash", "-c") else labels.argv_label(list(argv))),
        matcher=entry.text("matcher"),
        matches=matches,
        argv=shared_hook_file.resolve_program(argv, folder),
        cwd=folder,
        env=(("COPILOT_PROJECT_DIR", file.project_dir), *_plugin_variables(file), *env) if argv else (),
        timeout=entry.seconds("timeout" if current and "timeoutSec" not in entry.members else "timeoutSec", TIMEOUT),
        type="http" if target.url else "command",
        url=target.url,
        headers=target.headers,
        allowed_env_vars=target.allowed_env_vars,
        event_name=event_name,
        traits=frozenset({OBJECT} if file.options.get("tool_args") == "object" else ()),
        every_call=event is Event.PERMISSION_REQUEST and file.options.get("fire_permission_request") == "always",
    )
    notes += [*target.notes, *shared_hook_file.long_timeout_notes(hook.timeout)]
    notes += [f"env: ${name} is not set, so its value is empty" for name in unset]
    return HookList((hook,), (*_unknown_keys(current, entry), *(f"{source}: {note}" for note in notes)))


def find_plugin(path: str, _files: Files) -> Plugin | None:
    """The plugin of `ROOT/hooks.json` or `ROOT/hooks/hooks.json`, if ROOT has the manifest of a plugin."""
    folder, name = os.path.split(path)
    if name != "hooks.json":
        return None
    roots = [os.path.dirname(folder)] if os.path.basename(folder) == "hooks" else []
    for root in (*roots, folder):
        if any(os.path.isfile(os.path.join(root, manifest)) for manifest in _MANIFESTS):
            return Plugin(root)
    return None


def _plugin_variables(file: HookFile) -> tuple[tuple[str, str], ...]:
    """The variables by which the hooks of a plugin find its files, as Copilot CLI 1.0.91 was measured to set them."""
    return tuple((name, file.plugin.root) for name in _PLUGIN_ROOTS) if file.plugin else ()


def _folder(project: str, cwd: str) -> str:
    """The working directory: "relative to repository root or absolute", as documented. The default is the root."""
    folder = os.path.join(project, cwd)
    return (
        folder if ".." in folder.split("/") else os.path.normpath(folder)
    )  # after a symbolic link, only the system can resolve `..`


def _env(entry: Table, environ: Mapping[str, str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The documented "environment variables to set (supports variable expansion)", and the names without a value."""
    table, unset = entry.table("env"), list[str]()

    def value_of(name: re.Match[str]) -> str:
        variable = name[1] or name[2]
        if variable not in environ:
            unset.append(variable)
        return environ.get(variable, "")

    variables = []
    for key in table.members:
        if not key or "=" in key or "\0" in key:
            raise table.error(repr(key), "cannot be the name of a variable", "write a name without = and without NUL")
        variables.append((key, _VARIABLE.sub(value_of, table.text(key))))
    return variables, sorted(set(unset))


def _matcher(current: bool, event_name: str, entry: Table) -> tuple[Callable[[str], bool], list[str]]:
    """The compiled matcher, and notes on it."""
    event, pattern = EVENTS[event_name], entry.text("matcher")
    if event not in (*_TOOL_EVENTS, Event.NOTIFICATION):
        return matchers.claude_matcher(""), [f"the matcher is ignored: {event_name} has none"] if pattern else []
    if pattern == "" or (current and event_name in _CLAUDE_MATCHER_EVENTS and pattern in ("*", "**")):
        return matchers.claude_matcher(""), []
    matches = shared_hook_file.compile_member(entry, "matcher", _anchored)
    if event is Event.NOTIFICATION and not any(map(matches, _NOTIFICATIONS)):
        types = " and ".join(_NOTIFICATIONS)
        return matches, [f"the matcher {pattern!r} never matches: behind MCP, the only types are {types}"]
    return matches, []


def _anchored(pattern: str) -> Callable[[str], bool]:
    """A regular expression, "anchored as ^(?:pattern)$; must match the full tool name". Raises re.error, ValueError."""
    if set(pattern) == {"*"}:
        raise ValueError("it is not a regular expression: to match all, remove the matcher or write .*")
    matchers.claude_matcher(pattern)  # alone first: a bracket in it must not close the group around it
    return matchers.claude_matcher(f"^(?:{pattern})$")


def _unknown_keys(current: bool, entry: Table) -> list[str]:
    """Notes on keys of the other edition, and on unknown keys that look like known ones. Other keys get no note."""
    current_only = [] if current else [key for key in CURRENT_KEYS if key in entry.members]
    return _misspelt_keys(entry, (*_HOOK_KEYS, *CURRENT_KEYS)) + [
        f"{entry.where}: {entry.place(key)} is ignored: only the dialect {CURRENT} has it" for key in current_only
    ]


def _misspelt_keys(table: Table, known: Sequence[str]) -> list[str]:
    similar = {key: hint for key, hint in table.unknown(known).items() if hint}
    return [f"{table.where}: {table.place(key)} is unknown and ignored: {hint}" for key, hint in similar.items()]
