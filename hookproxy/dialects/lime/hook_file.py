"""Reads Lime's settings files, which are JSON or TOML, into hook specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import labels
from ..shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, by_name
from ..shared.hook_file import Table

NAME: Final = "lime"

TIMEOUT: Final = 60.0
"""Seconds for a hook about a call. The document has a timeout for each event, and gives no numbers.

This is as long as MCP agents commonly wait for a call. A hook that times out lets the call go on, so a shorter timeout
would let calls pass whose guard is only slow, and no agent waits for the verdict of a hook that runs longer.
"""

_TIMEOUTS: Final = {
    Event.SESSION_START: 10.0,  # `initialize` waits for these hooks, and some agents wait no longer for a server
    Event.SESSION_END: shared_hook_file.SESSION_END_TIMEOUT,  # the agent has disconnected
    Event.PERMISSION_DENIED: 10.0,  # these three decide nothing, but the events that they observe wait for them
    Event.STOP: 10.0,
    Event.NOTIFICATION: 10.0,
}

AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, *AFTER_CALL, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED)
"""The document's tool events: their hooks get the tool and its input."""

EVENTS: Final = by_name(*TOOL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.STOP, Event.NOTIFICATION)

UNAVAILABLE_EVENTS: Final = {
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "PreCompact": COMPACTION_UNSEEN,
    "PostCompact": COMPACTION_UNSEEN,
}
"""Lime's other events, each with the reason why it cannot occur behind MCP."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file, JSON or TOML. Raises ConfigError."""
    settings = shared_hook_file.read_document(file.path, file.text)
    if "hooks" not in settings.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table,
        EVENTS,
        UNAVAILABLE_EVENTS,
        lambda name: HookList(
            tuple(
                _hook(file, f"hooks.{name}[{at}]", EVENTS[name], command)
                for at, command in enumerate(_commands(table, name))
            )
        ),
    )


def recognises(members: Mapping[str, object]) -> bool:
    """Whether the file has lists of command strings under Lime's event names, and at least one command."""
    events = members.get("hooks")
    if not isinstance(events, dict) or not all(name in EVENTS or name in UNAVAILABLE_EVENTS for name in events):
        return False
    lists = list(events.values())
    return any(lists) and all(
        isinstance(commands, list) and all(isinstance(command, str) for command in commands) for commands in lists
    )


def _commands(table: Table, name: str) -> tuple[str, ...]:
    listed = table.members[name]
    if isinstance(listed, list) and any(isinstance(item, dict) for item in listed):
        hint = f'write "{name}": ["./hook.sh"]; a hook for some tools only can check HOOK_TOOL_NAME'
        raise table.error(name, "must be a list of commands, not of objects", hint)
    commands = table.texts(name) or ()
    for at, command in enumerate(commands):
        if not command.strip():
            raise table.error(f"{name}[{at}]", "is empty", "write a command, or remove the entry")
    return commands


def _hook(file: HookFile, place: str, event: Event, command: str) -> HookSpec:
    return HookSpec(
        dialect=NAME,
        source=f"{file.path}: {place}",
        event=event,
        label=labels.command_label(command),
        shell=command,
        cwd=file.project_dir,
        timeout=_TIMEOUTS.get(event, TIMEOUT),
        background=event in AFTER_CALL and file.options.get("await_post") is not True,
    )
