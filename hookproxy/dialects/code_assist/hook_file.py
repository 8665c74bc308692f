"""Reads code-assist's settings files into hook specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.hooks import Event, HookSpec
from ..dialect import HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import labels
from ..shared.command_file import CommandFile, Entries, Matchers, Timeouts
from ..shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, SUBAGENTS_UNSEEN, by_name
from ..shared.hook_file import Table

NAME: Final = "code-assist"

TIMEOUT: Final = 30.0
"""Seconds for an entry without a timeout: the document has no default, and this is the program's."""

_MAX_RETRIES: Final = 1
"""Enough for chance failures; a hook that always prints `retry` costs one more call."""

UNAVAILABLE_EVENTS: Final = {
    "UserPromptSubmit": PROMPTS_UNSEEN,
    "Stop": "an MCP server does not see when the agent's loop completes",
    "SubagentStart": SUBAGENTS_UNSEEN,
    "FileChanged": "the agent watches files, not the server",
    "CwdChanged": "the agent's working directory is its own, and an MCP server does not see it",
    "PreCompact": COMPACTION_UNSEEN,
    "PostCompact": COMPACTION_UNSEEN,
}
"""The document's other events, each with the reason why it cannot occur behind MCP."""

_KEYS: Final = ("command", "timeout", "name")
_FOREIGN_KEYS: Final = frozenset({"type", "hooks", "bash", "powershell", "matcher"})
"""Keys that show that an entry is another system's."""

AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, *AFTER_CALL, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED)
"""The document's tool-related events."""

EVENTS: Final = by_name(
    *TOOL_EVENTS, Event.SESSION_START, Event.NOTIFICATION, Event.ELICITATION, Event.ELICITATION_RESULT
)


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if "hooks" not in settings.members:
        return HookList((), remarks=(f"{file.path}: contains no hooks",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table,
        EVENTS,
        UNAVAILABLE_EVENTS,
        lambda name: shared_hook_file.merge(_entry(file, EVENTS[name], entry) for entry in table.tables(name)),
    )


def recognises(members: Mapping[str, object]) -> bool:
    """Whether the file has flat objects with a `command` under code-assist's event names, and at least one of them."""
    events = members.get("hooks")
    if not isinstance(events, dict) or "version" in members:
        return False
    entries = [entry for entries in events.values() if isinstance(entries, list) for entry in entries]
    return (
        bool(entries)
        and all(name in EVENTS or name in UNAVAILABLE_EVENTS for name in events)
        and all(isinstance(entries, list) for entries in events.values())
        and all(isinstance(entry, dict) and "command" in entry and _FOREIGN_KEYS.isdisjoint(entry) for entry in entries)
    )


def _entry(file: HookFile, event: Event, entry: Table) -> HookList:
    """The hook of one entry, and notes on it."""
    hook = _hook(file, event, entry)
    return HookList((hook,), tuple(f"{hook.source}: {note}" for note in _notes(entry, hook)))


def _hook(file: HookFile, event: Event, entry: Table) -> HookSpec:
    entry.require("command", 'write {"command": "…", "timeout": 5000, "name": "…"}')
    command, name = entry.text("command"), entry.text("name")
    if not command.strip():
        raise entry.error("command", "is empty", "write a command, or remove the entry")
    retries = file.options.get("max_retries")
    return HookSpec(
        dialect=NAME,
        source=f"{file.path}: {entry.path}",
        event=event,
        label=name.strip() or labels.command_label(command),
        shell=command,
        cwd=file.project_dir,
        timeout=entry.milliseconds("timeout", TIMEOUT),
        traits=frozenset({entry.path}),  # each entry runs, as documented, even if another has the same command
        max_retries=retries if isinstance(retries, int) else _MAX_RETRIES,
    )


def _notes(entry: Table, hook: HookSpec) -> list[str]:
    """Notes on a hook that runs, but not as its author may expect."""
    notes = [f"{key} is unknown and ignored{f': {hint}' if hint else ''}" for key, hint in _unknown_keys(entry).items()]
    notes += shared_hook_file.milliseconds_notes("timeout", hook.timeout)
    return notes


def _unknown_keys(entry: Table) -> dict[str, str]:
    hints = entry.unknown(_KEYS)
    if "matcher" in hints:
        hints["matcher"] = "the hook runs for all tools, and can read the tool's name from tool_name"
    return hints


FORMAT: Final = CommandFile(
    dialect=NAME,
    events=EVENTS,
    unavailable=UNAVAILABLE_EVENTS,
    timeouts=Timeouts(TIMEOUT, milliseconds=True),
    entries=Entries(_KEYS),
    matchers=Matchers(key=""),
)
"""How such a file is written."""
