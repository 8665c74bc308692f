"""Kimi Code's hooks: a list in its TOML configuration. Only PreToolUse decides, and only to deny."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookSpec, Order
from ..policy import matchers
from .agent_documents import DocumentSigns
from .agent_side import AgentSide, Can, DocumentForm, output_by_status
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, WrittenEntry, for_names
from .shared import claude_envelope as envelope
from .shared import claude_matchers
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts, quoted
from .shared.events import INSIDE_AGENT, by_name
from .shared.hook_file import CANNOT_FIRE, Table

_SESSION: Final = (Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION)
_CALL: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST)
_NAMES: Final = (
    "UserPromptSubmit UserPromptQueued TurnStarted Stop StopFailure Interrupt SessionHeartbeat SubagentStart"
    " SubagentStop TaskStarted PreCompact PostCompact PermissionResult"
)


_PATH: Final = {"file_path": "path"}
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("Bash"), ToolSpelling("Shell")),
    "Read": (ToolSpelling("Read", _PATH), ToolSpelling("ReadFile", _PATH)),
    "Write": (ToolSpelling("Write", _PATH), ToolSpelling("WriteFile", _PATH)),
    "Edit": (ToolSpelling("Edit", _PATH), ToolSpelling("StrReplaceFile", _PATH)),
    "MultiEdit": (ToolSpelling("Edit", _PATH), ToolSpelling("StrReplaceFile", _PATH)),
    "Glob": (ToolSpelling("Glob"),),
    "Grep": (ToolSpelling("Grep"),),
    "WebFetch": (ToolSpelling("FetchURL"),),
    "WebSearch": (ToolSpelling("WebSearch"), ToolSpelling("SearchWeb")),
}
"""The own tools of Kimi Code, and of the older Kimi CLI where it calls them otherwise."""


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text)
    for entry in document.tables("hooks"):
        if foreign := next((key for key in entry.members if key not in FORMAT.entries.keys), ""):
            raise entry.error(
                foreign, "is not a key of a hook, and Kimi Code refuses the whole file", f"remove {foreign}"
            )
    return shared_hook_file.read_each(document, "hooks", lambda entry: _entry(file, entry))


def _entry(file: HookFile, entry: Table) -> HookList:
    name = entry.choice("event", (*FORMAT.events, *FORMAT.unavailable), "")
    if name in FORMAT.unavailable:
        return HookList((), remarks=(f"{file.path}: {entry.path} ({name}) {CANNOT_FIRE}: {INSIDE_AGENT}",))
    return FORMAT.read_entry(file, name, entry, entry)


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there is a list of hooks that name their events, of which Kimi Code has at least one."""
    hooks, known = members.get("hooks"), FORMAT.events.keys() | FORMAT.unavailable.keys()
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) and "event" in hook for hook in hooks):
        return False
    return any(hook["event"] in known for hook in hooks if isinstance(hook["event"], str))


FORMAT: Final = CommandFile(
    dialect="kimi",
    events=by_name(*_CALL, *_SESSION),
    unavailable=for_names({INSIDE_AGENT: _NAMES}),
    timeouts=Timeouts(30.0),
    entries=Entries(keys=("event", "matcher", "command", "timeout")),
    matchers=Matchers(
        compile=lambda pattern: claude_matchers.either_spelling(matchers.javascript_regex(pattern)), triggers=_SESSION
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document. `tool_output` is whole, while Kimi Code cuts it to 2,000 characters: no guard misses a part."""
    session, outcome = context.session, context.outcome
    document: dict[str, object] = {
        "hook_event_name": context.event,
        "session_id": shared_input.utf8(session.id),
        "session_title": "",
        "client_type": "mcp",
        "cwd": shared_input.utf8(session.cwd),
    }
    if context.tool:
        document |= shared_input.call_members(context) | {"tool_call_id": context.tool_use_id}
    if outcome is not None:
        name = "error" if outcome.error else "tool_output"
        document[name] = shared_input.utf8(outcome.error or shared_input.result_text(outcome))
    if context.trigger:
        names = {Event.SESSION_START: "source", Event.NOTIFICATION: "notification_type"}
        document[names.get(context.event, "reason")] = context.trigger
    if context.message:
        document["message"] = shared_input.utf8(context.message)
    return Document(shared_input.json_line(document), {})


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="the source of Kimi Code, packages/agent-core-v2, and its hooks page, as of August 2026 (0.38)",
    output_fields={
        "hookSpecificOutput.permissionDecision": Effect.DECIDES,
        "hookSpecificOutput.permissionDecisionReason": Effect.REASON,
    },
    order=Order.PARALLEL,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=partial(envelope.read_output, envelope.Rules(denies_only=True)),
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    folders=(".kimi-code",),
    suffixes=(".toml",),
    agents=("kimi-code",),
    constant_environment=True,
    user_files=(UserFiles(".kimi-code", "config.toml"),),
)


_FILE: Final = ".kimi-code/config.toml"


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """Tables of TOML, whose strings JSON spells as well."""
    names = list(dict.fromkeys(entry.event_name for entry in entries))
    by_event = sorted(entries, key=lambda entry: names.index(entry.event_name))
    tables = [{"event": entry.event_name, **FORMAT.written(entry)} for entry in by_event]
    lines = ("".join(f"{name} = {quoted(value)}\n" for name, value in table.items()) for table in tables)
    return {_FILE: "\n".join(f"[[hooks]]\n{table}" for table in lines)}


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("client_type",)),
    form=DocumentForm(tool_use_id="tool_call_id", result="tool_output"),
    file=_FILE,
    can=Can.NOTHING,
    write_output=output_by_status,
    write_hook_file=_write_hook_file,
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.NOTIFICATION,
    ),
)
