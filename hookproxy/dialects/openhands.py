"""OpenHands' hooks: hooks.json of a project, in snake case or in Claude Code's names of events."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import NO_VERDICT, Document, Event, EventContext, HookResult, HookSpec, Order, Permission, Verdict
from ..model.settings import ServerNamed
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    edit_context,
    is_own_tool,
    output_by_status,
    read_document,
    result_outcome,
    session_of,
)
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, WrittenEntry
from .shared import decision_json, exit_status
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts, json_file
from .shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN

_EDITOR: Final = "file_editor"
_EDITOR_NAMES: Final = {"file_path": "path", "content": "file_text", "old_string": "old_str", "new_string": "new_str"}
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("terminal"),),
    "Read": (ToolSpelling(_EDITOR, {"file_path": "path"}),),
    "Write": (ToolSpelling(_EDITOR, {"file_path": "path", "content": "file_text"}),),
    "Edit": (ToolSpelling(_EDITOR, {"file_path": "path", "old_string": "old_str", "new_string": "new_str"}),),
    "MultiEdit": (ToolSpelling(_EDITOR, {"file_path": "path"}),),
    "Glob": (ToolSpelling("glob"),),
    "Grep": (ToolSpelling("grep", {"glob": "include"}),),
}
_EXPRESSION: Final = frozenset("|.*+?[]()^$\\")
"""Characters that make a matcher a regular expression."""


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text, comments=True)
    if not document.members:
        return FORMAT.read_hooks(file, document)
    table = document.table("hooks") if "hooks" in document.members else document
    return FORMAT.read_events(file, shared_hook_file.respelled(table, _event_name))


def _event_name(name: str) -> str:
    """Claude Code's names of events are read, too."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are matcher groups under OpenHands' names of events, at the top."""
    return FORMAT.fits({"hooks": members})


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    hooks = members.get("hooks", members)
    if not isinstance(hooks, Mapping):
        return False
    return FORMAT.fits({"hooks": {_event_name(name): value for name, value in hooks.items()}}, or_none=True)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """All, `/EXPRESSION/`, an expression, or one name. An expression that is invalid is compared as a name."""
    if pattern in ("", "*"):
        return lambda _name: True
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        expression = re.compile(pattern[1:-1])
        return lambda name: expression.fullmatch(name) is not None
    if _EXPRESSION.isdisjoint(pattern):
        return lambda name: name == pattern
    try:
        found = re.compile(pattern)
    except re.error:
        return lambda name: name == pattern
    return lambda name: found.fullmatch(name) is not None


FORMAT: Final = CommandFile(
    dialect="openhands",
    events={
        "pre_tool_use": Event.PRE_TOOL_USE,
        "post_tool_use": Event.POST_TOOL_USE,
        "session_start": Event.SESSION_START,
        "session_end": Event.SESSION_END,
    },
    unavailable={"user_prompt_submit": PROMPTS_UNSEEN, "stop": TURNS_UNSEEN},
    timeouts=Timeouts(60.0),
    entries=Entries(
        keys=("type", "command", "name", "timeout", "async"),
        grouped=True,
        also_on_failure=("post_tool_use",),
        label_key="name",
        finish=lambda _file, entry, hook: replace(hook, background=entry.flag("async")),
        typed=True,
    ),
    matchers=Matchers(compile=_matcher),
)
_SPELLED: Final = {
    "pre_tool_use": "PreToolUse",
    "post_tool_use": "PostToolUse",
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
}


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and the variables."""
    session, event_name = context.session, _SPELLED.get(spec.event_name, spec.event_name)
    members: dict[str, object] = {
        "event_type": event_name,
        "tool_name": shared_input.utf8(context.tool_name) if context.tool else None,
        "tool_input": _tool_input(context) if context.tool else None,
        "tool_response": None,
        "message": None,
        "session_id": shared_input.utf8(session.id),
        "working_dir": shared_input.utf8(session.project_dir),
        "metadata": {},
    }
    if context.outcome is not None:
        content = msgspec.Raw(context.outcome.content)
        text = [{"type": "text", "text": shared_input.utf8_result(context)}]
        members["tool_response"] = {
            "content": content if context.outcome.has_result else text,
            "is_error": bool(context.outcome.error),
            "tool_name": shared_input.utf8(context.tool_name),
            "kind": "MCPToolObservation",
        }
    env = {
        "OPENHANDS_PROJECT_DIR": session.project_dir,
        "OPENHANDS_SESSION_ID": session.id,
        "OPENHANDS_EVENT_TYPE": event_name,
    }
    if context.tool:
        env["OPENHANDS_TOOL_NAME"] = shared_input.utf8(context.tool_name)
    return Document(shared_input.json_line(members), env)


def _tool_input(context: EventContext) -> object:
    """The arguments; those of OpenHands' editor say what it does."""
    if context.tool_name != _EDITOR or context.alias is None:
        return msgspec.Raw(context.arguments)
    members: dict[str, object] = {key: msgspec.Raw(value) for key, value in raw_json.fields(context.arguments).items()}
    edits = "new_str" in members or "edits" in members
    command = "create" if "file_text" in members else "str_replace" if edits else "view"
    return shared_input.renamed(members, _EDITOR_NAMES, {"command": command})


_WORDS: Final = decision_json.DecisionWords(denies=("deny",), without_effect=("allow",), any_case=True)


def _decision(spec: HookSpec, result: HookResult) -> Verdict | None:
    """A denial counts with any exit status; nothing that a hook prints approves or changes a call."""
    verdict = decision_json.read(_WORDS, spec, result)
    if verdict is None or spec.event is not Event.PRE_TOOL_USE:
        return None if result.code or verdict is None else NO_VERDICT
    if verdict.permission is Permission.DENY:
        return Verdict(permission=Permission.DENY, reason=verdict.reason)
    if result.code:
        return None
    return Verdict(failure=verdict.failure) if verdict.failure else NO_VERDICT


_RULES: Final = exit_status.ExitStatusRules(read_json=_decision)


def _mcp_tool_name(server: str, tool: str) -> str:
    """`SERVER_TOOL`, as OpenHands calls tools as soon as there are several servers."""
    return f"{server}_{tool}"


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="the source of OpenHands, software-agent-sdk 1.43.1, openhands-sdk/openhands/sdk/hooks, "
    "as of August 2026",
    output_fields={
        "decision": Effect.DECIDES,
        "reason": Effect.REASON,
        "continue": Effect.DECIDES,
        "additionalContext": Effect.NONE,
    },
    order=Order.UNTIL_DENIED,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=partial(exit_status.read_output, _RULES),
    mcp_tool_name=_mcp_tool_name,
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    folders=(".openhands",),
    variables=("OPENHANDS_PROJECT_DIR", "OPENHANDS_SESSION_ID", "OPENHANDS_EVENT_TYPE", "OPENHANDS_TOOL_NAME"),
    user_files=(UserFiles(".openhands", "hooks.json"),),
    project_files=(".openhands/hooks.json",),
)


_DOES: Final = {"view": "Read", "create": "Write"}
"""Claude Code's tools that do what the editor does with these commands. With another, guards of all of them run."""


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event. What the editor does decides which guards see its call. Raises ValueError."""
    event = read_document(AGENT_SIDE, raw, environ)
    context = event.context
    if context.tool != _EDITOR or context.alias is None:
        return event
    members = Members(context.arguments)
    command = members.text("command")
    if command != "str_replace":
        known = [one for one in (context.alias, *context.alias.alternatives) if one.name == _DOES.get(command)]
        return replace(event, context=replace(context, alias=replace(known[0], alternatives=()))) if known else event
    edit = raw_json.encode({"old_string": members.text("old_str"), "new_string": members.text("new_str")})
    return replace(event, context=edit_context(context, [edit], {"file_path": "path"}))


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    """With one server, its tools have their own names: a name that is not known may be one of those."""
    if is_own_tool(AGENT_SIDE, name):
        return None
    server, separator, tool = name.partition("_")
    return (server, tool) if separator else ("", name)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    return json_file(_FILE, FORMAT.written_events(entries))


_FILE: Final = ".openhands/hooks.json"

AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("event_type", "working_dir")),
    form=DocumentForm(
        event=("event_type",),
        event_name=_event_name,
        session=partial(session_of, cwd="working_dir", project_variable="OPENHANDS_PROJECT_DIR"),
        triggers={Event.SESSION_START: "startup", Event.SESSION_END: "other"},
        server_named=ServerNamed.NOT,
        server_tool=_server_tool,
        failed=lambda members: members.object("tool_response").raw("is_error") == b"true",
        outcome=lambda members, failed: result_outcome(members.raw("tool_response", b'""'), failed=failed),
    ),
    file=_FILE,
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    write_hook_file=_write_hook_file,
    also={Event.POST_TOOL_USE_FAILURE: "post_tool_use"},
)
