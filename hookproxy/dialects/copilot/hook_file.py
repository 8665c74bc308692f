"""Reads GitHub Copilot CLI's hook files, by two editions of its reference, into hook specs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from ...model.aliases import ToolSpelling, ToolSpellings, with_claude_names
from ...model.hooks import Event, HookSpec
from ...policy import matchers
from ..dialect import Files, HookFile, HookList, Plugin, for_names
from ..shared import command_file, handler_types, labels
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matcher, Matchers, Timeouts
from ..shared.events import INSIDE_AGENT, PROMPTS_UNSEEN, TURNS_AND_SUBAGENTS_UNSEEN
from ..shared.handler_types import Handler
from ..shared.hook_file import Table
from .input import OBJECT

TOOLS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("view", {"file_path": "path"}),),
    "Write": (ToolSpelling("create", {"file_path": "path", "content": "file_text"}),),
    "Edit": (ToolSpelling("edit", {"file_path": "path", "old_string": "old_str", "new_string": "new_str"}),),
    "Grep": (ToolSpelling("grep"),),
    "Glob": (ToolSpelling("glob"),),
    "WebFetch": (ToolSpelling("web_fetch"),),
}
"""The reference's "tool names for hook matching" that do what Claude Code's tools do."""

TOOL_SPELLINGS: Final = with_claude_names({**TOOLS, "MultiEdit": (ToolSpelling("edit", {"file_path": "path"}),)})
"""`edit` changes one text; a list of edits is the tool that is most like it."""

_CLAUDE_FIRST: Final = {known: tuple(reversed(of_tool)) for known, of_tool in TOOL_SPELLINGS.items()}


def spellings_for(spec: HookSpec) -> ToolSpellings:
    """How a hook knows the tools: at an event in PascalCase by Claude Code's names, else by Copilot CLI's own."""
    return _CLAUDE_FIRST if spec.event_name[:1].isupper() else TOOL_SPELLINGS


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


_UNAVAILABLE: Final = for_names({
    PROMPTS_UNSEEN: "userPromptSubmitted UserPromptSubmit",
    TURNS_AND_SUBAGENTS_UNSEEN: "agentStop Stop subagentStart SubagentStart subagentStop SubagentStop",
    INSIDE_AGENT: "preCompact PreCompact",
})  # fmt: skip
"""The reference's other events in both spellings."""

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


def read_hook_file(format: CommandFile, file: HookFile) -> HookList:
    """The hooks of a hook file, by the edition that `format` describes. Raises ConfigError."""
    document = shared_hook_file.read_json(file.path, file.text)
    document.require("version", 'write "version": 1')
    version = document.members["version"]
    if isinstance(version, bool) or version != 1:
        raise document.error("version", f"must be 1, not {version!r}", "hook files have version 1")
    notes = format.unknown_keys(document, ("version", "hooks", "disableAllHooks"))
    if document.flag("disableAllHooks"):
        return HookList((), tuple(notes), (f"{file.path}: disableAllHooks is true, {shared_hook_file.SWITCHED_OFF}",))
    found = format.read_hooks(file, document)
    return HookList(found.hooks, (*notes, *found.notes), found.remarks)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat objects under Copilot's event names, and `version` is 1 or has been forgotten.

    VS Code reads a file without it in the same folder, and gives its own documents to the hooks: a hook of Copilot
    would find no tool in them, and let all calls pass.
    """
    version, events = members.get("version"), members.get("hooks")
    if isinstance(version, bool) or not isinstance(events, dict):
        return False
    if version != 1 and not ("version" not in members and forgets_version(events)):
        return False
    return events.keys() <= CURRENT_FORMAT.events.keys() | CURRENT_FORMAT.unavailable.keys() and all(
        isinstance(entries, list) and all(map(_is_entry, entries)) for entries in events.values()
    )


def forgets_version(events: Mapping[str, object]) -> bool:
    """Whether these events are spelled as only Copilot does, and their entries have its keys for commands."""
    entries = [entry for found in events.values() if isinstance(found, list) for entry in found]
    in_camel_case = any(name[:1].islower() for name in events)
    return in_camel_case and any(isinstance(entry, dict) and {"bash", "powershell"} & entry.keys() for entry in entries)


def _is_entry(entry: object) -> bool:
    """Whether this is a flat object with one of these keys. Other systems have files of version 1 without them."""
    return (
        isinstance(entry, dict) and "hooks" not in entry and not entry.keys().isdisjoint(("type", "bash", "powershell"))
    )


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


def _env(file: HookFile, entry: Table) -> tuple[list[tuple[str, str]], list[str]]:
    """The documented "environment variables to set (supports variable expansion)", and the names without a value."""
    unset = list[str]()

    def value_of(name: re.Match[str]) -> str:
        variable = name[1] or name[2]
        if variable not in file.environ:
            unset.append(variable)
        return file.environ.get(variable, "")

    variables = []
    for key, value in entry.pairs("env"):
        if not key or "=" in key or "\0" in key:
            hint = "write a name without = and without NUL"
            raise entry.table("env").error(repr(key), "cannot be the name of a variable", hint)
        variables.append((key, _VARIABLE.sub(value_of, value)))
    return variables, sorted(set(unset))


def _read_matcher(current: bool, event_name: str, entry: Table) -> Matcher:
    event, pattern = EVENTS[event_name], entry.text("matcher")
    if event not in (*_TOOL_EVENTS, Event.NOTIFICATION):
        return Matcher(text=pattern, notes=(f"the matcher is ignored: {event_name} has none",) if pattern else ())
    if pattern == "" or (current and event_name in _CLAUDE_MATCHER_EVENTS and pattern in ("*", "**")):
        return Matcher(text=pattern)
    matches = shared_hook_file.compile_member(entry, "matcher", _anchored)
    if event is Event.NOTIFICATION and not any(map(matches, _NOTIFICATIONS)):
        types = " and ".join(_NOTIFICATIONS)
        never = f"the matcher {pattern!r} never matches: behind MCP, the only types are {types}"
        return Matcher(matches, pattern, (never,))
    return Matcher(matches, pattern)


def _anchored(pattern: str) -> Callable[[str], bool]:
    """A regular expression, "anchored as ^(?:pattern)$; must match the full tool name". Raises re.error, ValueError."""
    if set(pattern) == {"*"}:
        raise ValueError("it is not a regular expression: to match all, remove the matcher or write .*")
    matchers.claude_matcher(pattern)  # alone first: a bracket in it must not close the group around it
    return matchers.claude_matcher(f"^(?:{pattern})$")


# --- how an entry runs ---


def _read_older_handler(_file: HookFile, name: str, entry: Table) -> Handler | str:
    entry.require("type", 'write "type": "command"')
    if entry.choice("type", ("command", "prompt"), "command") == "prompt":
        return _no_prompt(name, entry)
    current_key = next((key for key in CURRENT_KEYS if key in entry.members), "")
    hint = f'use dialect = "{CURRENT}", which has {current_key!r}' if current_key else ""
    return _in_bash(entry, ("bash",), hint)


def _read_current_handler(file: HookFile, name: str, entry: Table) -> Handler | str:
    handler = entry.choice("type", ("command", "prompt", "http"), "command")
    if handler == "prompt":
        return _no_prompt(name, entry)
    if handler == "http":
        return _http(file.environ, EVENTS[name], entry)
    if "exec" in entry.members:
        other_key = next((key for key in _SHELL_COMMAND_KEYS if key in entry.members), "")
        if other_key:
            hint = "write either exec and args or a shell command"
            raise entry.error("exec", f"cannot be combined with {other_key}", hint)
        argv = (command_file.shell_command(entry, "exec").shell, *(entry.texts("args") or ()))
        return Handler("command", labels.argv_label(list(argv)), argv=argv)
    if "args" in entry.members:
        raise entry.error("args", "needs exec, which is missing", "name the program in exec, or remove args")
    return _in_bash(entry, ("bash", "command"), "")


def _no_prompt(name: str, entry: Table) -> str:
    """Why a prompt does not run. Raises ConfigError if there is none."""
    entry.require("prompt")
    entry.text("prompt")
    return _PROMPT_NOT_SUPPORTED + ("" if EVENTS[name] is Event.SESSION_START else ", and it is only for sessionStart")


def _in_bash(entry: Table, keys: tuple[str, ...], hint: str) -> Handler | str:
    """The shell command in the first of these members; without any, why it cannot run."""
    if "powershell" in entry.members:
        command_file.shell_command(entry, "powershell")
    for key in keys:
        if key in entry.members:
            return command_file.shell_command(entry, key)
    if "powershell" in entry.members:
        return "it is for PowerShell only, which is not supported"
    raise entry.error("", "needs bash or powershell", hint or 'write "bash": "./guard.sh"')


def _http(environ: Mapping[str, str], event: Event, entry: Table) -> Handler:
    """An HTTP hook, by the reference's rules. Raises ConfigError for a URL that these forbid."""
    handler = handler_types.read_http(entry, "allowedEnvVars")
    target = handler.http_target
    if target.url.lower().startswith("https:"):
        return handler
    if event in _GRANTING_EVENTS:
        hint = "its response can grant permissions, as documented"
        raise entry.error("url", f"must begin with https:// for {event}", hint)
    if target.allowed_env_vars:
        raise entry.error("url", "must begin with https:// because allowedEnvVars is set", "as documented")
    if environ.get(_ALLOW_LOCALHOST) != "1" or not handler_types.is_loopback(target.host):
        hint = f"set {_ALLOW_LOCALHOST}=1 to allow http:// URLs of this machine, as documented"
        raise entry.error("url", "is not an https:// URL", hint)
    return handler


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    folder = _folder(file.project_dir, entry.text("cwd"))
    env: tuple[tuple[str, str], ...] = ()
    if hook.type == "command":
        env = (("COPILOT_PROJECT_DIR", file.project_dir), *_plugin_variables(file), *_env(file, entry)[0])
    return replace(
        hook,
        argv=shared_hook_file.resolve_program(hook.argv, folder),
        cwd=folder,
        env=env,
        traits=frozenset({OBJECT} if file.options.get("tool_args") == "object" else ()),
        every_call=hook.event is Event.PERMISSION_REQUEST and file.options.get("fire_permission_request") == "always",
    )


def _notes_on(file: HookFile, _name: str, entry: Table) -> list[str]:
    unset = [] if entry.text("type") == "http" else _env(file, entry)[1]
    return [f"env: ${name} is not set, so its value is empty" for name in unset]


OLDER_FORMAT: Final = CommandFile(
    dialect="copilot",
    events=EVENTS,
    unavailable=_UNAVAILABLE,
    timeouts=Timeouts(default=30.0, keys=("timeoutSec",), short_session_end=False),
    entries=Entries(
        null_is_absent=False,
        keys=(*_HOOK_KEYS, *CURRENT_KEYS),
        without_effect=dict.fromkeys(CURRENT_KEYS, f"only the dialect {CURRENT} has it"),
        read_handler=_read_older_handler,
        bash=True,
        finish=_finish,
        notes_on=_notes_on,
        only_misspelt_keys=True,
        typed=True,
        command="bash",
    ),
    matchers=Matchers(read=partial(_read_matcher, False), write="|".join),
    members={"version": 1},
)
CURRENT_FORMAT: Final = replace(
    OLDER_FORMAT,
    dialect=CURRENT,
    unavailable={**_UNAVAILABLE, "userPromptTransformed": PROMPTS_UNSEEN},
    timeouts=replace(OLDER_FORMAT.timeouts, keys=("timeoutSec", "timeout")),
    entries=replace(OLDER_FORMAT.entries, without_effect={}, read_handler=_read_current_handler),
    matchers=replace(OLDER_FORMAT.matchers, read=partial(_read_matcher, True)),
)
