"""Reads the `[[hooks]]` of Kimi Code's config.toml into hook specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.hooks import Event
from ...policy import matchers
from ..dialect import HookFile, HookList
from ..shared import command_file
from ..shared import hook_file as shared_hook_file
from ..shared.events import INSIDE_AGENT
from ..shared.hook_file import Table

NAME: Final = "kimi"
TIMEOUT: Final = 30.0
"""Seconds, as documented."""

_AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_SESSION: Final = (Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION)
EVENTS: Final = {each.value: each for each in (Event.PRE_TOOL_USE, *_AFTER_CALL, Event.PERMISSION_REQUEST, *_SESSION)}
_NAMES: Final = "UserPromptSubmit Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact PermissionResult"
UNAVAILABLE_EVENTS: Final = dict.fromkeys(_NAMES.split(" "), INSIDE_AGENT)
_KEYS: Final = ("event", "matcher", "command", "timeout")


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a configuration. Raises ConfigError."""
    document = shared_hook_file.read_document(file.path, file.text)
    for entry in document.tables("hooks"):
        if foreign := next((key for key in entry.members if key not in _KEYS), ""):
            raise entry.error(foreign, "is no key of a hook, and Kimi Code refuses the whole file", f"remove {foreign}")
    return shared_hook_file.read_each(document, "hooks", lambda entry: _entry(file, entry))


def _entry(file: HookFile, entry: Table) -> HookList:
    name = entry.choice("event", (*EVENTS, *UNAVAILABLE_EVENTS), "")
    if name in UNAVAILABLE_EVENTS:
        return HookList((), remarks=(f"{file.path}: {entry.path} ({name}) cannot fire behind MCP: {INSIDE_AGENT}",))
    return command_file.read_entry(_FORMAT, file, name, entry, entry)


def recognises(members: Mapping[str, object]) -> bool:
    """Whether there is a list of hooks that name their events, and at least one."""
    hooks = members.get("hooks")
    return isinstance(hooks, list) and bool(hooks) and all(isinstance(one, dict) and "event" in one for one in hooks)


_FORMAT: Final = command_file.CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeout=TIMEOUT,
    keys=_KEYS,
    compile_matcher=matchers.javascript_regex,
    trigger_matchers=_SESSION,
)
