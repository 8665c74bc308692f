"""Augment's hooks, of Auggie and of its extensions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookSpec, Order, Permission, Session
from ..policy import matchers
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    edit_context,
    is_own_tool,
    json_output,
    read_document,
    refuse_by_status,
    session_in_first,
)
from .dialect import Dialect, Effect, HookFile, UserFiles
from .shared import decision_json, exit_status
from .shared import input as shared_input
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import PROMPTS_UNSEEN, TURNS_UNSEEN, by_name
from .shared.hook_file import Table

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("launch-process"),),
    "Read": (ToolSpelling("view", {"file_path": "path"}),),
    "LS": (ToolSpelling("view"),),
    "Write": (ToolSpelling("save-file", {"file_path": "path", "content": "file_content"}),),
    "Edit": (
        ToolSpelling("str-replace-editor", {"file_path": "path", "old_string": "old_str_1", "new_string": "new_str_1"}),
    ),
    "MultiEdit": (ToolSpelling("str-replace-editor", {"file_path": "path"}),),
    "WebFetch": (ToolSpelling("web-fetch"),),
    "WebSearch": (ToolSpelling("web-search"),),
}
OWN_TOOLS: Final = frozenset(spelling.name for spellings in TOOL_SPELLINGS.values() for spelling in spellings)

_MCP: Final = re.compile(r"(?<![\w-])mcp:")
"""The prefix of a matcher for tools of MCP servers only; `mcp:*` is all of them."""


def compile_matcher(pattern: str) -> Callable[[str], bool]:
    """An unanchored regular expression over a tool's name, and over `mcp:` and the name for a server's tool.

    Raises re.error, OverflowError.
    """
    if pattern in ("", "*"):
        return lambda _name: True
    matches = matchers.javascript_regex(re.sub(r"(?<![\w-])mcp:\*", "mcp:.*", pattern))
    if not _MCP.search(pattern):
        return matches
    return lambda name: matches(name) or (name not in OWN_TOOLS and matches(f"mcp:{name}"))


_VARIABLE: Final = re.compile(r"(?<!\\)\$\{([A-Za-z_]\w*)(?::-(.*?))?\}", re.ASCII | re.DOTALL)
"""`${NAME}` and `${NAME:-TEXT}` in an argument, unless a backslash is before it (Auggie 0.31)."""
_SPECIAL: Final = re.compile(r'[\\"$`}]')
"""What bash does not take literally within `"${NAME-…}"`."""


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    """The hook with its arguments. Its group's `metadata` asks for members that every hook gets here."""
    words = " ".join(map(_word, entry.texts("args") or ()))
    return replace(hook, shell="", argv=("bash", "-c", f"{hook.shell} {words}")) if words else hook


def _word(argument: str) -> str:
    """An argument as a word of bash, which puts the values of its variables in when the hook runs.

    As in Auggie, a variable that is not set leaves what is written, and one that is empty counts as set. Its value may
    be a secret, so it does not become part of the command.
    """
    parts, end = [], 0
    for found in _VARIABLE.finditer(argument):
        parts.append(_literal(argument[end : found.start()]))
        unset = found[0] if found[2] is None else found[2]
        parts.append(f'"${{{found[1]}-{_SPECIAL.sub(_escaped, unset)}}}"')
        end = found.end()
    return "".join((*parts, _literal(argument[end:]))) or "''"


def _literal(text: str) -> str:
    return shlex.quote(text.replace("\\${", "${")) if text else ""


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


FORMAT: Final = CommandFile(
    dialect="augment",
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END),
    unavailable={
        "Stop": TURNS_UNSEEN,
        "PromptSubmit": PROMPTS_UNSEEN,
        "Notification": "the page describes no document for it",
    },
    timeouts=Timeouts(default=60.0, milliseconds=True),
    entries=Entries(
        keys=("type", "command", "timeout", "args"),
        group_keys=("metadata",),
        grouped=True,
        also_on_failure=("PostToolUse",),
        finish=_finish,
        typed=True,
        group_members={"metadata": {"includeMCPMetadata": True}},
    ),
    matchers=Matchers(compile=compile_matcher),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document and the variables. `mcp_metadata` has what a server's side knows."""
    session, name = context.session, shared_input.utf8(context.tool_name)
    members: dict[str, object] = {
        "hook_event_name": spec.event_name,
        "conversation_id": shared_input.utf8(session.id),
        "workspace_roots": [shared_input.utf8(session.project_dir)],
    }
    env = {
        "AUGMENT_PROJECT_DIR": session.project_dir,
        "AUGMENT_CONVERSATION_ID": session.id,
        "AUGMENT_HOOK_EVENT": spec.event_name,
    }
    if context.tool:
        env["AUGMENT_TOOL_NAME"] = name
        is_mcp = context.alias is None or context.tool_name not in OWN_TOOLS
        members |= shared_input.call_members(context) | {"is_mcp_tool": is_mcp}
        if is_mcp:
            server = shared_input.utf8(session.server)
            executed = {"mcpExecutedToolName": name, "mcpExecutedToolServerName": server}
            members["mcp_metadata"] = {"timestamp": shared_input.iso_8601(context.at), "mcpDecision": "yes", **executed}
    if context.outcome is not None:
        key = "tool_error" if context.event is Event.POST_TOOL_USE_FAILURE else "tool_output"
        members[key] = shared_input.utf8_result(context)
    return Document(stdin=shared_input.json_line(members), env=env)


FIELDS: Final = {
    **decision_json.SPECIFIC_FIELDS,
    "hookSpecificOutput.decision": Effect.DECIDES,
    "hookSpecificOutput.reason": Effect.REASON,
    "systemMessage": Effect.TELLS_PERSON,
    "continue": Effect.DENIES_AND_STOPS,
    "stopReason": Effect.REASON,
    "suppressOutput": Effect.NONE,
}
"""What each member of the JSON output does here."""

_WORDS: Final = decision_json.DecisionWords(
    denies=("deny", "block"), asks=("ask",), without_effect=("allow", "approve")
)
""""Currently only `deny` is supported": an `allow` approves nothing, and an `ask` asks, so that it is not lost."""

_RULES: Final = exit_status.ExitStatusRules(
    contexts=(Event.SESSION_START,),
    comments=True,
    shows=lambda spec: spec.event is not Event.SESSION_START,  # "Success message shown to user"
    read_json=lambda spec, result: None if result.code else decision_json.read(_WORDS, spec, result),
)
read_output: Final = partial(exit_status.read_output, _RULES)
"""The verdict of a hook run. Never raises."""


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Augment's page on hooks, docs.augmentcode.com/cli/hooks, as of 2026, and Auggie 0.36.0",
    output_fields=FIELDS,
    order=Order.SERIAL,
    write_input=write_input,
    read_output=read_output,
    mcp_tool_name=lambda server, tool: f"{tool}_{server}",
    tool_spellings=TOOL_SPELLINGS,
    shape_of="claude",
    folders=(".augment",),
    variables=("AUGMENT_CONVERSATION_ID", "AUGMENT_HOOK_EVENT", "AUGMENT_PROJECT_DIR", "AUGMENT_TOOL_NAME"),
    user_files=(UserFiles(".augment", "settings.json"),),
    project_files=(".augment/settings.json", ".augment/settings.local.json"),
)


_EDITOR: Final = "str-replace-editor"
_TEXT: Final = re.compile(r"(?:old|new)_str(\w*)")


def _session(members: Members, environ: Mapping[str, str]) -> Session:
    roots = members.raw("workspace_roots", b"[]")
    return session_in_first(roots, members.text("conversation_id"), environ, "AUGMENT_PROJECT_DIR")


def _read_document(document: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event; guards of an edit see all texts of it. Raises ValueError."""
    event = read_document(AGENT_SIDE, document, environ)
    context = event.context
    if context.alias is None or context.tool != _EDITOR:
        return event
    return replace(event, context=edit_context(context, _edits(context.arguments), {"file_path": "path"}))


def _edits(arguments: bytes) -> list[bytes]:
    """The edits in `old_str_1`, `new_str_1`, `old_str_2`, …; an insertion has no old text."""
    members = Members(arguments)
    numbers = sorted({found[1] for name in raw_json.fields(arguments) if (found := _TEXT.fullmatch(name))})
    return [
        raw_json.encode({"old_string": members.text(f"old_str{end}"), "new_string": members.text(f"new_str{end}")})
        for end in numbers
    ]


def _server_tool(members: Members, tool_name: str) -> tuple[str, str] | None:
    """Server and tool of `TOOL_SERVER`; the server is empty if the hook file does not ask for MCP's metadata."""
    if members.raw("is_mcp_tool") == b"false":
        return None
    server = members.object("mcp_metadata").text("mcpExecutedToolServerName")
    if "is_mcp_tool" not in members and not server and is_own_tool(AGENT_SIDE, tool_name):
        return None
    return (server, tool_name.removesuffix(f"_{server}"))


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    """Exit status 2 refuses a call in every version; of a decision after a call, the model reads the reason."""
    if event.context.event is Event.PRE_TOOL_USE and decision.permission is Permission.DENY and not decision.stop:
        return refuse_by_status(decision.reason or "denied by a hook")
    output: dict[str, object] = {"systemMessage": decision.message} if decision.message else {}
    specific: dict[str, object] = {}
    if decision.stop:
        output |= {"continue": False, "stopReason": decision.reason}
    if decision.permission is Permission.DENY:
        if event.context.event is Event.PRE_TOOL_USE:
            specific = {"permissionDecision": "deny", "permissionDecisionReason": decision.reason or "denied by a hook"}
        else:
            specific = {"decision": "block", "reason": decision.reason}
    if decision.feedback:
        specific["additionalContext"] = decision.feedback
    return json_output(output | ({"hookSpecificOutput": {"hookEventName": event.name} | specific} if specific else {}))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("conversation_id",), lacks=("cursor_version",)),
    form=DocumentForm(
        session=_session,
        triggers={Event.SESSION_START: "startup", Event.SESSION_END: "other"},
        server_tool=_server_tool,
        failed=lambda members: bool(members.text("tool_error")),
        result="tool_output",
        error="tool_error",
    ),
    file=".augment/settings.json",
    can=Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    script_folder=".augment/hooks",
    own_tool_members={"is_mcp_tool": False, "mcp_metadata": None},
)
