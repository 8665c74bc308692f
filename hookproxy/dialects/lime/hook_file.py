"""Lime's hooks: its settings files, and what its hooks are told; `lime_answer` has what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Document, Event, EventContext, HookSpec, Order, Outcome
from ...model.settings import ToolNames
from ..dialect import Dialect, HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import input as shared_input
from ..shared.hook_file import Table
from ..shared.identity_variables import IDENTITY_VARIABLES
from . import output as lime_output

TIMEOUT: Final = 60.0
"""Seconds for a hook about a call; the document knows a timeout for each event, and gives no numbers.

It is as long as MCP agents commonly wait for a call. A timeout lets the call go on, so that less would pass calls whose
guard is only slow; more would judge calls that nobody waits for any more.
"""

_TIMEOUTS: Final = {
    Event.SESSION_START: 10.0,  # meanwhile `initialize` is not answered: some agents wait no longer for a server
    Event.SESSION_END: shared_hook_file.SESSION_END_TIMEOUT,  # the agent has gone
    Event.PERMISSION_DENIED: 10.0,  # these decide nothing, and what they are told of may wait for them
    Event.STOP: 10.0,
    Event.NOTIFICATION: 10.0,
}

_NO_COMPACTION: Final = "an agent compacts its conversation by itself, and an MCP server is not told"
_ELSEWHERE: Final = {
    "UserPromptSubmit": "prompts never pass through MCP",
    "PreCompact": _NO_COMPACTION,
    "PostCompact": _NO_COMPACTION,
}
"""Lime's other events, and why they cannot occur behind MCP."""

_AFTER: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_ABOUT_CALLS: Final = (Event.PRE_TOOL_USE, *_AFTER, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED)
"""The document's tool events: their hooks are told the tool and its input."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file, JSON or TOML. Raises ConfigError."""
    settings = shared_hook_file.read_document(file.path, file.text)
    if "hooks" not in settings.members:
        return HookList((), (f"{file.path}: there are no hooks in it",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table,
        LIME.events,
        LIME.unavailable,
        lambda name: list(enumerate(_commands(table, name))),
        lambda name, command: HookList((_hook(file, f"hooks.{name}[{command[0]}]", name, command[1]),)),
    )


def recognises(members: Mapping[str, object]) -> bool:
    """Lists of commands under Lime's names of events, and at least one command."""
    events = members.get("hooks")
    if not isinstance(events, dict) or not all(name in LIME.events or name in _ELSEWHERE for name in events):
        return False
    lists = list(events.values())
    return any(lists) and all(
        isinstance(commands, list) and all(isinstance(command, str) for command in commands) for commands in lists
    )


def _commands(table: Table, name: str) -> tuple[str, ...]:
    written = table.members[name]
    if isinstance(written, list) and any(isinstance(one, dict) for one in written):
        hint = f'write "{name}": ["./hook.sh"]; a hook that is for some tools looks at HOOK_TOOL_NAME'
        raise table.error(name, "must be a list of commands, not of objects", hint)
    commands = table.texts(name) or ()
    for at, command in enumerate(commands):
        if not command.strip():
            raise table.error(f"{name}[{at}]", "is empty", "name a command, or leave it out")
    return commands


def _hook(file: HookFile, place: str, name: str, command: str) -> HookSpec:
    event = LIME.events[name]
    return HookSpec(
        dialect=LIME.name,
        source=f"{file.path}: {place}",
        event=event,
        label=shared_hook_file.command_label(command),
        shell=command,
        cwd=file.project_dir,
        timeout=_TIMEOUTS.get(event, TIMEOUT),
        background=event in _AFTER and file.options.get("await_post") is not True,
    )


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input, and the variables with the same."""
    event, session = context.event.value, context.session
    document: dict[str, object] = {
        "event": event,
        "hook_event_name": event,
        "session_id": shared_input.utf8(session.id),
    }
    if context.request_id:
        document["request_id"] = shared_input.utf8(context.request_id)
    document["cwd"] = shared_input.utf8(session.cwd)
    env = {"HOOK_EVENT": event}
    if context.event in _ABOUT_CALLS:
        document |= {"tool_name": shared_input.utf8(context.tool_name), "tool_input": msgspec.Raw(context.arguments)}
        env |= {"HOOK_TOOL_NAME": context.tool_name, "HOOK_TOOL_INPUT": context.arguments.decode(errors="replace")}
    if context.event in _AFTER:
        failed = context.event is Event.POST_TOOL_USE_FAILURE
        output = _output(context.outcome or Outcome(), failed)
        document |= {"tool_output": msgspec.Raw(output), "is_error": failed}
        env |= {"HOOK_TOOL_OUTPUT": output.decode(errors="replace"), "HOOK_TOOL_IS_ERROR": "1" if failed else "0"}
    document |= _circumstances(context)
    return Document(stdin=shared_input.json_line(document), env=env)


def _output(outcome: Outcome, failed: bool) -> bytes:
    """What the tool gave, as JSON: its content blocks, or the failure in words where there was no result."""
    if failed and not outcome.has_result:
        return raw_json.encode(shared_input.utf8(outcome.error))
    return outcome.content


def _circumstances(context: EventContext) -> dict[str, object]:
    """What is known of an occasion beside the call, in Claude Code's words: the document has none for it."""
    by, message = shared_input.utf8(context.trigger), shared_input.utf8(context.message)
    match context.event:
        case Event.SESSION_START:
            return {"source": by}
        case Event.SESSION_END:
            return {"reason": by}
        case Event.PERMISSION_REQUEST | Event.PERMISSION_DENIED:
            return {"reason": message}
        case Event.NOTIFICATION:
            return {"notification_type": by, "message": message}
        case _:
            return {}


LIME: Final = Dialect(
    name="lime",
    described_by="Lime's hooks page, lime-docs.pages.dev/config/hooks, as of 2026",
    events={
        event.value: event
        for event in (*_ABOUT_CALLS, Event.SESSION_START, Event.SESSION_END, Event.STOP, Event.NOTIFICATION)
    },
    unavailable=_ELSEWHERE,
    output_fields=lime_output.FIELDS,
    order=Order.SERIAL,
    default_timeout=TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=read_hook_file,
    write_input=write_input,
    read_output=lime_output.read_output,
    recognises=recognises,
    options=("await_post",),
    folders=(".lime",),
    suffixes=(".json", ".toml"),
    agents=("lime",),
    variables=IDENTITY_VARIABLES["lime"],
)
