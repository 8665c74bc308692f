"""Google Antigravity's hooks: named sets of events, whose hooks print a decision; without one, the call is refused."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import (
    Document,
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Order,
    Permission,
    Session,
    Verdict,
)
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    json_output,
    read_document,
    session_in_first,
    text_outcome,
)
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, WrittenEntry
from .shared import exit_status, familiar_call, re2_regex
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import MATCHES_ALL, CommandFile, Entries, Matchers, Timeouts, json_file
from .shared.events import TURNS_UNSEEN, by_name
from .shared.hook_file import SWITCHED_OFF, Table

_MODEL_UNSEEN: Final = "requests to the model never pass through MCP"
_MCP_TOOL: Final = "call_mcp_tool"
"""The one tool through which Antigravity calls those of all MCP servers."""
_EDITS_TOOL: Final = "multi_replace_file_content"
_PATH: Final = {"file_path": "TargetFile"}
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("run_command", {"command": "CommandLine", "cwd": "Cwd"}),),
    "Read": (ToolSpelling("view_file", {"file_path": "AbsolutePath"}),),
    "Write": (ToolSpelling("write_to_file", {**_PATH, "content": "CodeContent"}),),
    "Edit": (
        ToolSpelling(
            "replace_file_content", {**_PATH, "old_string": "TargetContent", "new_string": "ReplacementContent"}
        ),
    ),
    "MultiEdit": (ToolSpelling(_EDITS_TOOL, _PATH),),
    "LS": (ToolSpelling("list_dir", {"path": "DirectoryPath"}),),
    "Glob": (ToolSpelling("find_by_name", {"pattern": "Pattern", "path": "SearchDirectory"}),),
    "Grep": (ToolSpelling("grep_search", {"pattern": "Query", "path": "SearchPath"}),),
    "WebFetch": (ToolSpelling("read_url_content", {"url": "Url"}),),
    "WebSearch": (ToolSpelling("search_web"),),
}


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    names = [name for name in document.members if not shared_hook_file.is_comment(name)]
    read = (shared_hook_file.or_left_out(file.path, name, partial(_named_hook, file, document, name)) for name in names)
    return shared_hook_file.merge(read)


def _named_hook(file: HookFile, document: Table, name: str) -> HookList:
    """The hooks of one name, unless it is switched off: only `false` does that."""
    table = document.table(name)
    enabled = table.members.get("enabled", True)
    if enabled is False:
        return HookList((), remarks=(f"{file.path}: {name}.enabled is false, {SWITCHED_OFF}",))
    odd = () if enabled is True else (f"{file.path}: {name}.enabled is neither true nor false, and counts as true",)
    events = {key: value for key, value in table.members.items() if key != "enabled"}
    found = FORMAT.read_events(file, replace(table, members=events))
    return replace(found, notes=(*odd, *found.notes))


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are only named objects with Antigravity's events, and none that other systems call `hooks`."""
    named = {name: value for name, value in members.items() if not shared_hook_file.is_comment(name)}
    known = FORMAT.events.keys() | FORMAT.unavailable.keys()
    return (
        bool(named)
        and "hooks" not in named
        and all(isinstance(value, dict) and not known.isdisjoint(value) for value in named.values())
    )


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    """In its own folder, `hooks` is a name as any other, and a name without an event is a mistake."""
    named = [value for name, value in members.items() if not shared_hook_file.is_comment(name)]
    return bool(named) and all(isinstance(value, dict) for value in named)


def _finish(file: HookFile, _entry: Table, hook: HookSpec) -> HookSpec:
    """ "The working directory is set to the directory containing `hooks.json`", and every failure refuses."""
    folder = os.path.dirname(file.path)
    cwd = folder if os.path.isdir(folder) else file.project_dir  # a command that is converted is in no file
    return replace(hook, cwd=cwd, fails_closed=hook.event is Event.PRE_TOOL_USE)


_FOREIGN_EVENTS: Final = (
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "Notification",
    "SubagentStop",
    "PreCompact",
)
"""Events of Claude Code that people have in Antigravity's files, where nothing runs for them."""

FORMAT: Final = CommandFile(
    dialect="antigravity",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE),
    unavailable={
        "PreInvocation": _MODEL_UNSEEN,
        "PostInvocation": TURNS_UNSEEN,
        "Stop": TURNS_UNSEEN,
        **dict.fromkeys(_FOREIGN_EVENTS, "Antigravity does not have it"),
    },
    timeouts=Timeouts(30.0),
    entries=Entries(
        keys=("type", "command", "timeout"),
        grouped=True,
        also_on_failure=("PostToolUse",),
        finish=_finish,
        typed=True,
    ),
    matchers=Matchers(
        compile=lambda pattern: (
            (lambda _name: True) if pattern in MATCHES_ALL else re2_regex.unanchored_or_all(pattern)
        ),
        notes=lambda _event, pattern, _matches: (
            [re2_regex.UNREADABLE] * (pattern not in MATCHES_ALL and re2_regex.only_elsewhere(pattern))
        ),
    ),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input, which does not name the event. There are no variables."""
    session, outcome = context.session, context.outcome
    members: dict[str, object] = {
        "toolCall": {"name": shared_input.utf8(context.tool_name), "args": _arguments(context)},
        "stepIdx": 0,  # no server sees the conversation's other steps
    }
    if outcome is not None:
        members["error"] = shared_input.utf8(outcome.error)
    members |= {
        "conversationId": shared_input.utf8(session.id),
        "workspacePaths": [shared_input.utf8(session.project_dir)],
        "transcriptPath": "",  # required, and an MCP server has none of these three
        "artifactDirectoryPath": "",
        "modelName": "",
    }
    return Document(shared_input.json_line(members), env={})


def _arguments(context: EventContext) -> object:
    if context.tool_name == _MCP_TOOL:
        server, tool = shared_input.utf8(context.session.server), shared_input.utf8(context.tool)
        return {"ServerName": server, "ToolName": tool, "Arguments": msgspec.Raw(context.arguments)}
    if context.tool_name != _EDITS_TOOL:
        return msgspec.Raw(context.arguments)
    names = {"old_string": "TargetContent", "new_string": "ReplacementContent"}
    edits = [edit for edit in familiar_call.edits(context.arguments) if isinstance(edit, dict)]
    chunks = [{names.get(key, key): value for key, value in edit.items()} for edit in edits]
    return {**msgspec.json.decode(context.arguments, type=dict[str, msgspec.Raw]), "ReplacementChunks": chunks}


class _JsonOutput(Struct, frozen=True, kw_only=True):
    """What a hook prints. Types are strict, null counts as absent, other members are ignored."""

    decision: str | None = None
    reason: str | None = None


_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_PERMISSIONS: Final = {
    "allow": Permission.ALLOW,
    "ask": Permission.ASK,
    "force_ask": Permission.ASK,
    "deny": Permission.DENY,
    "deny_unless_prior_grant": Permission.DENY,  # there are no prior grants behind MCP
}
_DENYING: Final = ("deny", "deny_unless_prior_grant")
NO_DECISION: Final = "printed no decision, and without one the call is refused in Antigravity"


def _decision(spec: HookSpec, result: HookResult) -> Verdict | None:
    if spec.event is not Event.PRE_TOOL_USE:
        return None
    members = {"decision": _DENYING, "reason": shared_output.ANY_TEXT}
    try:
        output = shared_output.parse_json_object(result.stdout, _DECODER)
        verdict = None if output is None else _verdict(output)
    except shared_output.InvalidOutput as error:
        deciding = _DECODER.decode(shared_output.keep_deciding_members(result, members).stdout)
        verdict = shared_output.invalid_output_verdict(
            _verdict(deciding) if deciding.decision else Verdict(), str(error)
        )
    if result.code and (verdict is None or verdict.permission is not Permission.DENY):
        return None
    return verdict or Verdict(failure=NO_DECISION)


def _verdict(output: _JsonOutput) -> Verdict:
    if not output.decision:
        return Verdict(permission=Permission.DENY, reason=f"its hook {NO_DECISION}")
    permission = _PERMISSIONS.get(output.decision)
    if permission is None:
        quoted = shared_output.truncate(repr(output.decision), shared_output.MAX_EXPLANATION)
        return Verdict(failure=f"gave an unknown decision: {quoted}")
    return Verdict(permission=permission, reason=shared_output.truncate(output.reason or ""))


_RULES: Final = exit_status.ExitStatusRules(read_json=_decision)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. Before a call, silence is a failure as well."""
    silent = result.ended is Ended.EXITED and not (result.code or result.stdout or result.stderr)
    if silent and spec.event is Event.PRE_TOOL_USE:
        return Verdict(failure=NO_DECISION)
    return exit_status.read_output(_RULES, spec, result)


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Antigravity's hooks reference, antigravity.google/docs/hooks, as of September 2026, and what agy "
    "1.1.2 and 1.2.3 were measured to do",
    output_fields={"decision": Effect.DECIDES, "reason": Effect.REASON, "permissionOverrides": Effect.NONE},
    order=Order.SERIAL,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=read_output,
    closed_by_field=False,
    mcp_tool_name=lambda _server, _tool: _MCP_TOOL,
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    folders=(".agents", ".agent", ".gemini/config"),
    agents=("antigravity-client",),
    constant_environment=True,
    user_files=(UserFiles(".gemini/config", "hooks.json"),),
    project_files=(".agents/hooks.json", ".agents/plugins/*/hooks.json"),
)


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document, which does not name it: one after a call has the member `error`. Raises ValueError."""
    members: dict[str, object] = {name: msgspec.Raw(value) for name, value in raw_json.fields(raw).items()}
    name = "PostToolUse" if "error" in members else "PreToolUse"
    return read_document(AGENT_SIDE, raw_json.encode({**members, "hook_event_name": name}), environ)


def _session(members: Members, environ: Mapping[str, str]) -> Session:
    return session_in_first(members.raw("workspacePaths", b"[]"), members.text("conversationId"), environ)


def _called_arguments(members: Members) -> bytes:
    call = members.object("toolCall")
    if call.text("name") == _MCP_TOOL:
        return call.object("args").raw("Arguments", b"{}")
    args = call.raw("args")
    return args if args.startswith(b"{") else b"{}"  # null for a tool without arguments


def _server_tool(members: Members, name: str) -> tuple[str, str] | None:
    arguments = members.object("toolCall").object("args")
    return (arguments.text("ServerName"), arguments.required("ToolName")) if name == _MCP_TOOL else None


def _refuse(reason: str) -> HookOutput:
    """JSON with status 0: what another status means differs between the versions."""
    return json_output({"decision": "deny", "reason": reason})


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    """Before a call, a decision in any case. `ask` leaves the call to the person's own settings."""
    if event.context.event is not Event.PRE_TOOL_USE:
        return HookOutput(b"{}\n", stderr=decision.message)
    if decision.permission is Permission.DENY:
        return replace(_refuse(decision.reason or "denied by a hook"), stderr=decision.message)
    words = {Permission.ALLOW: "allow", Permission.ASK: "force_ask", None: "ask"}
    output = {"decision": words[decision.permission]} | ({"reason": decision.reason} if decision.reason else {})
    return replace(json_output(output), stderr=decision.message)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    return json_file(_FILE, {"hookproxy": FORMAT.written_events(entries)})


_FILE: Final = ".agents/hooks.json"

AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("conversationId", "stepIdx")),
    form=DocumentForm(
        session=_session,
        tool_name=lambda members: members.object("toolCall").required("name"),
        arguments=_called_arguments,
        server_tool=_server_tool,
        failed=lambda members: bool(members.text("error")),
        outcome=lambda members, failed: text_outcome(members.text("error"), failed=failed),
    ),
    file=_FILE,
    can=Can.ALLOW | Can.ASK,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    refuse=_refuse,
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    user_folder=(".agents/", ".gemini/config/"),
)
