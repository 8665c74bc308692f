"""Crush's hooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookSpec, Order, Permission
from ..model.settings import ServerNamed
from ..processes import environment
from .agent_documents import DocumentSigns, Members
from .agent_side import AgentEvent, AgentSide, Can, DocumentForm, HookDecision, HookOutput, json_output, session_of
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, for_names
from .shared import decision_json, exit_status, re2_regex
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import COMPACTION_UNSEEN, TURNS_UNSEEN, by_name
from .shared.output import BLOCKS

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("bash"),),
    "Read": (ToolSpelling("view"),),
    "Write": (ToolSpelling("write"),),
    "Edit": (ToolSpelling("edit"),),
    "MultiEdit": (ToolSpelling("multiedit"), ToolSpelling("edit")),
    "LS": (ToolSpelling("ls"),),
    "Glob": (ToolSpelling("glob"),),
    "Grep": (ToolSpelling("grep", {"glob": "include"}),),
    "WebFetch": (ToolSpelling("fetch"),),
}


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if "hooks" not in document.members:
        return FORMAT.read_hooks(file, document)
    table = document.table("hooks")
    return FORMAT.read_events(file, shared_hook_file.respelled(table, _event_name))


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are flat entries under Crush's event names, and something else that only Crush has."""
    hooks = members.get("hooks")
    if not _recognises_at_home(members) or not isinstance(hooks, dict):
        return False
    if "crush" in str(members.get("$schema", "")):
        return True
    entries = [entry for listed in hooks.values() for entry in listed]
    return _FIRST_EVENTS.issuperset(map(_event_name, hooks)) and any("matcher" in entry for entry in entries)


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    hooks = members.get("hooks")
    if not isinstance(hooks, dict) or "version" in members:
        return False
    return FORMAT.fits({"hooks": {_event_name(name): entries for name, entries in hooks.items()}}, and_others=True)


def _event_name(name: str) -> str:
    """ "Event names are case insensitive and snake-caseable"."""
    return _SPELLED.get(name.replace("_", "").lower(), name)


def _event_hint(name: str) -> str:
    """On the events after a call: a file with nothing else is refused, because its hooks may hide output."""
    known = name.replace("_", "").lower() in ("posttooluse", "posttoolusefailure")
    return f"Crush has it since 0.99, and {_UNDOCUMENTED}" if known else ""


_UNDOCUMENTED: Final = "no document that says what its hooks read and print could be found"


FORMAT: Final = CommandFile(
    dialect="crush",
    events=by_name(Event.PRE_TOOL_USE),
    unavailable=for_names(
        {
            _UNDOCUMENTED: "PermissionRequest PermissionResult SessionStart SessionEnd",
            TURNS_UNSEEN: "TurnStart TurnEnd StopFailure Interrupt",
            COMPACTION_UNSEEN: "PreCompact PostCompact",
        }
    ),
    timeouts=Timeouts(30.0),
    entries=Entries(
        keys=("name", "matcher", "command", "timeout"),
        label_key="name",
        foreign_keys=frozenset(("hooks", "type", "bash")),
    ),
    matchers=Matchers(
        notes=lambda _event, pattern, _matches: [re2_regex.UNREADABLE] * re2_regex.only_elsewhere(pattern),
        compile=re2_regex.unanchored_or_all,
    ),
    event_hint=_event_hint,
)
_SPELLED: Final = {name.lower(): name for name in (*FORMAT.events, *FORMAT.unavailable)}
_FIRST_EVENTS: Final = frozenset(("PreToolUse", "PreCompact"))
"""Flat entries under the events that Crush has since 0.99 are other systems' as well."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and variables with the same values."""
    session, name = context.session, shared_input.utf8(context.tool_name)
    document = {
        "event": spec.event_name,
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        **shared_input.call_members(context),
    }
    env = {"CRUSH": "1", "AGENT": "crush", "AI_AGENT": "crush", "CRUSH_EVENT": spec.event_name, "CRUSH_TOOL_NAME": name}
    env |= {"CRUSH_SESSION_ID": session.id, "CRUSH_CWD": session.cwd, "CRUSH_PROJECT_DIR": session.project_dir}
    members = raw_json.fields(context.arguments)
    for argument in ("command", "file_path"):
        if value := bytes(members.get(argument, b"")):
            env[f"CRUSH_TOOL_INPUT_{argument.upper()}"] = raw_json.text_or_json(value)
    return Document(stdin=shared_input.json_line(document), env=env, cut=environment.cuts(env))


HALTS: Final = 49
"""The exit status that ends the agent's turn."""

FIELDS: Final = {
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "halt": Effect.DENIES_AND_STOPS,
    "context": Effect.TELLS_MODEL,
    "updated_input": Effect.REWRITES,
    **decision_json.SPECIFIC_FIELDS,
    "version": Effect.NONE,
}
"""What each member of the JSON output does here: Crush's own, and Claude Code's that it reads, too."""

_WORDS: Final = decision_json.DecisionWords(
    denies=("deny", "block"), allows=("allow", "approve"), asks=("ask",), merges=True, any_case=True
)
"""`internal/hooks/input.go` compares the word in lower case, and Go reads the names of members in any case."""
_RULES: Final = exit_status.ExitStatusRules(
    denies=lambda code: code in (BLOCKS, HALTS),
    stops=lambda code: code == HALTS,
    read_json=lambda spec, result: None if result.code else decision_json.read(_WORDS, spec, result),
)

DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="the page on hooks in charmbracelet/crush, docs/hooks/README.md, as of 0.90 (August 2026)",
    output_fields=FIELDS,
    order=Order.PIPELINE,  # at once in Crush, which merges all rewrites: so each must start from those before it
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=partial(exit_status.read_output, _RULES),
    mcp_tool_name=lambda server, tool: f"mcp_{server}_{tool}",
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    folders=(".config/crush",),
    own_files=("crush.json", ".crush.json"),
    agents=("crush",),
    variables=(
        "CRUSH",
        "CRUSH_CWD",
        "CRUSH_EVENT",
        "CRUSH_PROJECT_DIR",
        "CRUSH_SESSION_ID",
        "CRUSH_TOOL_INPUT_COMMAND",
        "CRUSH_TOOL_INPUT_FILE_PATH",
        "CRUSH_TOOL_NAME",
    ),
    user_files=(UserFiles(".config/crush", "crush.json"),),
    project_files=("crush.json", ".crush.json"),
)


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    return ("", name.removeprefix("mcp_")) if name.startswith("mcp_") else None


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    permission = Permission.ALLOW if decision.permission is None and decision.arguments else decision.permission
    output: dict[str, object] = {"decision": permission.name.lower()} if permission else {}
    if permission is Permission.DENY:
        output["reason"] = decision.reason or "denied by a hook"
    elif decision.arguments is not None:
        output["updated_input"] = msgspec.Raw(decision.arguments)
    if decision.feedback:
        output["context"] = decision.feedback
    if decision.stop:
        output["halt"] = True
    return replace(json_output({"version": 1} | output if output else {}), stderr=decision.message)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("event", "cwd"), lacks=("hook_event_name",)),
    form=DocumentForm(
        event=("event",),
        session=partial(session_of, project_variable="CRUSH_PROJECT_DIR"),
        server_tool=_server_tool,
        server_named=ServerNamed.IN_TOOL_NAME,
    ),
    file="crush.json",
    can=Can.ALLOW | Can.REWRITE | Can.TELL_BEFORE,
    write_output=_write_output,
    merges=True,
    user_folder=("", ".config/crush/"),
)
