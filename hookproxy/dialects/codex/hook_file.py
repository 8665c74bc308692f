"""Reads OpenAI Codex's hooks.json and the `[hooks]` of its config.toml and requirements.toml into hook specs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, HookSpec
from ..dialect import Files, FolderContent, FoundFile, HookFile, HookList, Plugin, for_names
from ..shared import claude_matchers, command_file, handler_types, re2_regex
from ..shared import hook_file as shared_hook_file
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import COMPACTION_UNSEEN, INSIDE_AGENT, PROMPTS_UNSEEN, TURNS_AND_SUBAGENTS_UNSEEN, by_name
from ..shared.handler_types import Handler
from ..shared.hook_file import Table

_END_TIMEOUT: Final = 1.0
_LONGEST_END_TIMEOUT: Final = 3.0
"""Seconds for SessionEnd hooks, as in Codex's source."""

PATCH: Final = "apply_patch"
"""Codex's tool for edits. Its hooks get a patch."""

_MATCHER_ALIASES: Final = {PATCH: ("Edit", "Write"), "spawn_agent": ("Agent",)}
"""The names that a matcher may give to tools of Codex's own. Hooks see the tool's name."""

_ROOT_KEYS: Final = ("description", "hooks")
_NO_EVENTS: Final = ("state", "managed_dir", "windows_managed_dir")
"""Members of `[hooks]` in TOML that are not events: the hooks that the person trusts, and folders of scripts."""
_KEYS: Final = (
    "type", "command", "commandWindows", "command_windows", "timeout", "statusMessage", "async",
    "additionalContextLimit", "server", "tool", "input",
)  # fmt: skip
_LISTED: Final = re.compile(r"[A-Za-z0-9_|]*")
"""A matcher of only these characters is a name or a list of names. Any other matcher is a regular expression."""

_NOT_IN_RUST: Final = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9]")
"""Look-around, atomic groups and references to groups, which Rust refuses."""
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
_HYPHEN: Final = re.compile(r"(\[[^\]]*\])|(?<=\w)-(?=\w)")
"""A hyphen of a name, or a class, whose hyphens are none."""
_FOLDER: Final = ".codex"
_FILES: Final = ("hooks.json", "config.toml")
MANIFEST: Final = ".codex-plugin/plugin.json"


def mcp_tool_name(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, as `codex-mcp/src/tools.rs` and `McpHandler` make it: with `_` for every other character.

    Names of more than 64 characters, whose end Codex replaces by a hash, stay whole: their matchers match here, too.
    """
    namespace = _NOT_IN_A_NAME.sub("_", server)
    prefixed = namespace if namespace.startswith("mcp__") else f"mcp__{namespace}"
    return f"{prefixed.rstrip('_')}__{_NOT_IN_A_NAME.sub('_', tool).lstrip('_')}"


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a hooks.json, of a plugin's manifest, or of a TOML configuration. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text)
    is_hooks_file = file.path.endswith(".json") and not file.path.endswith(MANIFEST)
    if is_hooks_file and (refused := next((key for key in document.members if key not in _ROOT_KEYS), "")):
        raise document.error(refused, "is not allowed here, and Codex refuses the whole file", f"remove {refused!r}")
    if document.table("features").members.get("hooks") is False and not is_hooks_file:
        return HookList((), remarks=(f"{file.path}: [features] hooks is false, {shared_hook_file.SWITCHED_OFF}",))
    if "hooks" not in document.members:
        return FORMAT.read_hooks(file, document)
    if not isinstance(document.members["hooks"], dict) and not is_hooks_file:
        return HookList((), (f"{file.path}: hooks names other files, which are not read: name them, too",))
    hooks = document.table("hooks")
    members = {name: groups for name, groups in hooks.members.items() if is_hooks_file or name not in _NO_EVENTS}
    return FORMAT.read_events(file, replace(hooks, members=members))


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under Codex's event names, or no events yet.

    Files with groups and a `version` are meant for Codex too, although it refuses them.
    """
    hooks = members.get("hooks")
    groups = (
        {name: listed for name, listed in hooks.items() if name not in _NO_EVENTS} if isinstance(hooks, dict) else None
    )
    return FORMAT.fits({"hooks": groups}, or_none="version" not in members)


def recognises_at_home(members: Mapping[str, object]) -> bool:
    """The same in Codex's own folder, where other names are events of other versions, which Codex ignores."""
    return recognises(members) or FORMAT.fits(members, and_others=True)


def find_plugin(path: str, files: Files) -> Plugin | None:
    """The plugin that a hook file belongs to: the folder above with Codex's manifest. Raises nothing."""
    folder = shared_hook_file.folder_above(path, MANIFEST)
    return Plugin(folder) if folder else None


def read_folder(path: str, files: Files) -> FolderContent | None:
    """The hook files of a `.codex` folder, which has other JSON files, too. None for other folders."""
    found = tuple(FoundFile(file) for name in _FILES if os.path.isfile(file := os.path.join(path, name)))
    return FolderContent(found) if os.path.basename(path) == _FOLDER and found else None


def _matcher(pattern: str) -> Callable[[str], bool]:
    """All, a name, a list of names, or a regular expression of Rust's that may match anywhere.

    A tool of Codex's own matches by its aliases, too, and a tool of a server by its name with hyphens, which versions
    until early 2026 left in it. An expression that only Rust may be able to read matches all: no guard is passed over.
    Raises ValueError, re.error or OverflowError for one that Rust refuses, too.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    if _LISTED.fullmatch(pattern):
        listed = frozenset(pattern.split("|"))
        return lambda name: not listed.isdisjoint((name, *_MATCHER_ALIASES.get(name, ())))
    hyphened = _HYPHEN.sub(lambda found: found[1] or "_", pattern) if "mcp__" in pattern else pattern
    try:
        expressions = [re2_regex.compile_pattern(spelling) for spelling in dict.fromkeys((pattern, hyphened))]
    except ValueError:
        if not _only_in_rust(pattern):
            raise
        return lambda _name: True
    return lambda name: any(
        expression.search(known) for known in (name, *_MATCHER_ALIASES.get(name, ())) for expression in expressions
    )


def _only_in_rust(pattern: str) -> bool:
    """Whether hookproxy cannot read a regular expression that Rust may be able to read."""
    try:
        re2_regex.compile_pattern(pattern)
    except re.error:
        return False
    except ValueError:
        return _NOT_IN_RUST.search(pattern) is None
    return False


def _matcher_notes(event: Event, pattern: str, matches: Callable[[str], bool]) -> list[str]:
    if not _LISTED.fullmatch(pattern) and _only_in_rust(pattern):
        return ["cannot be read here, so the hook runs for every tool"]
    return claude_matchers.never_matches(event, pattern, matches)


def _read_handler(_file: HookFile, _name: str, entry: Table) -> Handler | str:
    handler = entry.choice("type", ("command", "mcp_tool", "prompt", "agent"), "command")
    if handler == "mcp_tool":
        return handler_types.read_mcp_tool(entry)
    if handler != "command":
        raise entry.error("type", f"{handler!r} is not supported: Codex skips it, too", "use type command")
    entry.require("type", 'write "type": "command"')
    if "commandWindows" in entry.members and "command_windows" in entry.members:
        raise entry.error("command_windows", "is the same as commandWindows", "remove one of them, as Codex demands")
    if "command" not in entry.members and not entry.members.keys().isdisjoint(("commandWindows", "command_windows")):
        return "it is for Windows only"
    return command_file.read_command(entry)


def _notes_on(_file: HookFile, _event_name: str, entry: Table) -> list[str]:
    """A note on a command that needs a folder of Codex's own."""
    if "PLUGIN_DATA" not in entry.text("command"):
        return []
    return ["PLUGIN_DATA is not set: only Codex knows the folder for what its plugins store"]


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    entry.text("statusMessage")
    timeout = hook.timeout
    if hook.event is Event.SESSION_END:
        timeout = min(timeout, _LONGEST_END_TIMEOUT) if "timeout" in entry.members else _END_TIMEOUT
    root = file.plugin.root if file.plugin else ""
    return replace(
        hook,
        timeout=timeout,
        background=entry.flag("async"),
        env=(("PLUGIN_ROOT", root), ("CLAUDE_PLUGIN_ROOT", root)) if root and hook.argv else (),
    )


FORMAT: Final = CommandFile(
    dialect="codex",
    events=by_name(
        Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.PERMISSION_REQUEST, Event.SESSION_START, Event.SESSION_END
    ),
    unavailable=for_names(
        {
            PROMPTS_UNSEEN: "UserPromptSubmit",
            TURNS_AND_SUBAGENTS_UNSEEN: "Stop StopFailure SubagentStart SubagentStop Interrupt",
            COMPACTION_UNSEEN: "PreCompact PostCompact",
            INSIDE_AGENT: "PreModelRequest PostModelResponse UserInstructions",
        }
    ),
    timeouts=Timeouts(default=600.0, shortest=1.0),
    entries=Entries(
        keys=_KEYS,
        grouped=True,
        read_handler=_read_handler,
        bash=True,  # SHELL could switch off the administrator's hooks
        finish=_finish,
        notes_on=_notes_on,
        typed=True,
    ),
    matchers=Matchers(
        compile=_matcher, triggers=(Event.SESSION_START, Event.SESSION_END), notes=_matcher_notes, write="|".join
    ),
)
