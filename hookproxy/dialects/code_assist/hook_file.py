"""code-assist's hooks: its settings files, and what its hooks are told; `code_assist_answer` has what they say.

Its page has events for questions of the server, and no member of an answer for them: such hooks are only told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Order, Outcome
from ...model.settings import ToolNames
from ..dialect import Dialect, HookFile, HookList
from ..shared import hook_file as shared_hook_file
from ..shared import input
from ..shared import input as shared_input
from ..shared.hook_file import Table
from . import output

TIMEOUT: Final = 30.0
"""Seconds that a hook has where its entry does not say: the document has no default, its program grants these."""

_LIKE_SECONDS: Final = 0.1  # nothing that starts a program is meant to end sooner: who writes 30 thinks of seconds
_RETRIES: Final = 1  # enough for what fails by chance, and a hook that always says `retry` costs one call more

_ELSEWHERE: Final = {
    "UserPromptSubmit": "prompts never pass through MCP",
    "Stop": "an MCP server is not told when the agent's loop completes",
    "SubagentStart": "an MCP server is not told of subagents",
    "FileChanged": "the agent watches files, not the server",
    "CwdChanged": "the agent's working directory is its own, and an MCP server is not told of it",
    "PreCompact": "an agent compacts its conversation by itself, and an MCP server is not told",
    "PostCompact": "an agent compacts its conversation by itself, and an MCP server is not told",
}
"""The document's other events, and why they cannot occur behind MCP."""

_KEYS: Final = ("command", "timeout", "name")
_OF_OTHERS: Final = frozenset({"type", "hooks", "bash", "powershell", "matcher"})
"""Keys by which an entry is known as another system's."""

_CALLED: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_ABOUT_CALLS: Final = (Event.PRE_TOOL_USE, *_CALLED, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED)
"""The document's tool-related events."""


def read_hook_file(file: HookFile) -> HookList:
    """The hooks of a settings file. Raises ConfigError."""
    settings = shared_hook_file.read_json(file.path, file.text)
    if "hooks" not in settings.members:
        return HookList((), (f"{file.path}: there are no hooks in it",))
    table = settings.table("hooks")
    return shared_hook_file.read_events(
        table,
        CODE_ASSIST.events,
        CODE_ASSIST.unavailable,
        table.tables,
        lambda name, entry: _entry(file, CODE_ASSIST.events[name], entry),
    )


def recognises(members: Mapping[str, object]) -> bool:
    """Flat objects with a `command` under code-assist's names of events, and at least one of them."""
    events = members.get("hooks")
    if not isinstance(events, dict) or "version" in members:
        return False
    entries = [entry for entries in events.values() if isinstance(entries, list) for entry in entries]
    return (
        bool(entries)
        and all(name in CODE_ASSIST.events or name in _ELSEWHERE for name in events)
        and all(isinstance(entries, list) for entries in events.values())
        and all(isinstance(entry, dict) and "command" in entry and _OF_OTHERS.isdisjoint(entry) for entry in entries)
    )


def _entry(file: HookFile, event: Event, entry: Table) -> HookList:
    """One entry: its hook, and notes on what is not as its author may think."""
    hook = _hook(file, event, entry)
    return HookList((hook,), tuple(f"{hook.source}: {remark}" for remark in _remarks(entry, hook)))


def _hook(file: HookFile, event: Event, entry: Table) -> HookSpec:
    entry.require("command", 'an entry is {"command": "…", "timeout": 5000, "name": "…"}')
    command, name = entry.text("command"), entry.text("name")
    if not command.strip():
        raise entry.error("command", "is empty", "name a command, or leave the entry out")
    retries = file.options.get("max_retries")
    return HookSpec(
        dialect=CODE_ASSIST.name,
        source=f"{file.path}: {entry.path}",
        event=event,
        label=name.strip() or shared_hook_file.command_label(command),
        shell=command,
        cwd=file.project_dir,
        timeout=_timeout(entry),
        traits=frozenset({entry.path}),  # each entry runs, as documented, also one whose command another has
        max_retries=retries if isinstance(retries, int) else _RETRIES,
    )


def _timeout(entry: Table) -> float:
    """The seconds of a `timeout`, which the file has in milliseconds."""
    value = entry.members.get("timeout", TIMEOUT * 1000)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise entry.error("timeout", "must be a number of milliseconds", 'write "timeout": 5000 for five seconds')
    try:
        seconds = value / 1000
    except OverflowError:  # an integer that no float can hold
        seconds = math.inf
    if not 0 < seconds < math.inf:
        raise entry.error("timeout", "must be more than 0 milliseconds, and an end must come", 'write "timeout": 5000')
    return seconds


def _remarks(entry: Table, hook: HookSpec) -> list[str]:
    """What about a hook that runs is not as its author may think."""
    remarks = [f"{key} is not known and ignored{f': {hint}' if hint else ''}" for key, hint in _unknown(entry).items()]
    if hook.timeout < _LIKE_SECONDS:
        ms = hook.timeout * 1000
        remarks.append(f"`timeout` counts milliseconds: {ms:g} end the hook at once; {ms:g} seconds are {ms * 1000:g}")
    if hook.timeout > shared_hook_file.LONG_TIMEOUT:
        remarks.append(f"a timeout of {hook.timeout:g} seconds is longer than agents wait for a call")
    return remarks


def _unknown(entry: Table) -> dict[str, str]:
    hints = entry.unknown(_KEYS)
    if "matcher" in hints:
        hints["matcher"] = "the hook runs for all tools, and finds the tool's name in tool_name"
    return hints


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The nine members that every hook is told, in the document's order; null where one does not apply.

    Its table has tool_input for calls that are to run or have succeeded, so PostToolUseFailure has none. Whom the
    permission of a call concerns is told which call it is: a hook that knows no tool would approve any.
    """
    event, session = context.event, context.session
    about_call, called = event in _ABOUT_CALLS, event in _CALLED
    has_input = about_call and event is not Event.POST_TOOL_USE_FAILURE
    document: dict[str, object] = {
        "hook_event": event.value,
        "tool_name": shared_input.utf8(context.tool_name) if about_call else None,
        "tool_input": msgspec.Raw(context.arguments) if has_input else None,
        "tool_use_id": shared_input.utf8(context.tool_use_id) if about_call else None,
        "tool_output": shared_input.utf8(input.result_text(context.outcome or Outcome())) if called else None,
        "user_prompt": None,
        "session_id": shared_input.utf8(session.id),
        "agent_id": None,
        "cwd": shared_input.utf8(session.cwd),
    }
    return Document(stdin=shared_input.json_line(document), env={})


CODE_ASSIST: Final = Dialect(
    name="code-assist",
    described_by="code-assist's hooks page, abhinaavramesh.github.io/code-assist/guide/hooks, as of April 2026",
    events={
        event.value: event
        for event in (
            *_ABOUT_CALLS,
            Event.SESSION_START,
            Event.NOTIFICATION,
            Event.ELICITATION,
            Event.ELICITATION_RESULT,
        )
    },
    unavailable=_ELSEWHERE,
    output_fields=output.FIELDS,
    order=Order.SERIAL,
    default_timeout=TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=read_hook_file,
    write_input=write_input,
    read_output=output.read_output,
    recognises=recognises,
    options=("max_retries",),
    folders=(".claude",),  # as its page on configuration has it: .claude/settings.json, also under the home folder
    agents=("code-assist",),
    constant_environment=True,
)
