"""Grok Build's hooks: Claude Code's groups in files of their own, with its own names of tools and members."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Order, Outcome, Permission, Verdict
from ..policy import matchers
from .agent_documents import DocumentSigns, Members
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    is_own_tool,
    read_document,
    result_outcome,
    session_of,
    text_outcome,
)
from .dialect import Dialect, Effect, HookFile, UserFiles
from .shared import claude_agent_side, command_file, handler_types, labels
from .shared import claude_envelope as envelope
from .shared import input as shared_input
from .shared.command_file import MATCHES_ALL, CommandFile, Entries, Matchers, Timeouts
from .shared.events import COMPACTION_UNSEEN, PROMPTS_UNSEEN, TURNS_AND_SUBAGENTS_UNSEEN, by_name
from .shared.handler_types import Handler
from .shared.hook_file import Table

TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("run_terminal_command"),),
    "Read": (ToolSpelling("read_file", {"file_path": "target_file"}),),
    "Write": (ToolSpelling("write"), ToolSpelling("search_replace", {"content": "new_string"})),
    "Edit": (ToolSpelling("search_replace"),),
    "MultiEdit": (ToolSpelling("search_replace"),),
    "Grep": (ToolSpelling("grep"),),
    "LS": (ToolSpelling("list_dir", {"path": "target_directory"}),),
    "WebSearch": (ToolSpelling("web_search"),),
}
"""Grok's own tools. With no old text, `search_replace` writes a new file."""

_ALIASES: Final = {
    "run_terminal_command": ("Bash",),
    "read_file": ("Read",),
    "search_replace": ("Edit", "MultiEdit", "Write"),
    "write": ("Write",),
    "grep": ("Grep",),
    "list_dir": ("Glob", "ListDir"),
    "web_search": ("WebSearch",),
}
"""Claude Code's names by which matchers know these tools; a document has Grok's own."""

_IN_SHELL: Final = re.compile(r"[\s|&;><$]|^~")
"""A command with one of these runs in a shell; another is a program, which may be beside the hook file."""

_CALL_EVENTS: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_DENIED)
_AFTER_SECONDS: Final = 600.0
"""A hook on PostToolUse may take so long, as Grok's defaults differ by event."""


def _matcher(pattern: str) -> Callable[[str], bool]:
    """All, or an expression that may match anywhere in the tool's name or in one of Claude Code's names for it."""
    if pattern in MATCHES_ALL:
        return lambda _name: True
    expression = matchers.javascript_regex(pattern)
    return lambda name: any(map(expression, (name, *_ALIASES.get(name, ()))))


def _read_handler(file: HookFile, _name: str, entry: Table) -> Handler:
    if entry.choice("type", ("command", "http"), "command") == "http":
        return handler_types.read_http(entry, "allowedEnvVars")
    handler = command_file.read_command(entry)
    command = handler.shell.strip()
    beside = os.path.join(os.path.dirname(file.path), command)
    if _IN_SHELL.search(command) or not os.path.isfile(beside):
        return handler
    return Handler("command", labels.argv_label([command]), argv=(beside,))


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    slow = hook.event is Event.POST_TOOL_USE and "timeout" not in entry.members
    env = tuple(entry.pairs("env")) if hook.type == "command" else ()
    return replace(hook, env=env, timeout=_AFTER_SECONDS if slow else hook.timeout)


FORMAT: Final = CommandFile(
    dialect="grok",
    events=by_name(*_CALL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    unavailable={
        "UserPromptSubmit": PROMPTS_UNSEEN,
        **dict.fromkeys(
            ("Stop", "StopFailure", "StopCancelled", "SubagentStart", "SubagentStop", "SubagentEnd"),
            TURNS_AND_SUBAGENTS_UNSEEN,
        ),
        **dict.fromkeys(("PreCompact", "PostCompact"), COMPACTION_UNSEEN),
    },
    timeouts=Timeouts(5.0),
    entries=Entries(
        keys=("type", "command", "timeout", "env", "url", "headers", "allowedEnvVars"),
        grouped=True,
        read_handler=_read_handler,
        finish=_finish,
        typed=True,
    ),
    matchers=Matchers(compile=_matcher, triggers=(Event.NOTIFICATION,)),
)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, under Grok's names of members and under Claude Code's, and the variables."""
    session, outcome, event = context.session, context.outcome or Outcome(), _snake(context.event)
    members: dict[str, object] = {
        "hookEventName": event,
        "hook_event_name": context.event,
        "sessionId": shared_input.utf8(session.id),
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        "workspaceRoot": shared_input.utf8(session.project_dir),
        "timestamp": shared_input.iso_8601(context.at),
        "permissionMode": "default",
        "permission_mode": "default",
    }
    if context.tool:
        name, use_id = shared_input.utf8(context.tool_name), shared_input.utf8(context.tool_use_id)
        arguments = msgspec.Raw(context.arguments)
        members |= {"toolName": name, "tool_name": name, "toolUseId": use_id, "tool_use_id": use_id}
        members |= {"toolInput": arguments, "tool_input": arguments, "toolInputTruncated": False}
    if context.event is Event.POST_TOOL_USE:
        text = shared_input.utf8_result(context)
        members |= {"toolResult": text, "tool_response": text, "toolResultTruncated": False, "isBackgrounded": False}
    if context.event is Event.POST_TOOL_USE_FAILURE:
        members |= {"error": shared_input.utf8(outcome.error)}
        members |= dict.fromkeys(("isInterrupt", "is_interrupt"), outcome.interrupted)
    if context.outcome is not None:
        members |= dict.fromkeys(("durationMs", "duration_ms"), outcome.duration_ms)
    if context.event is Event.SESSION_START:
        members["source"] = "new"
    elif context.event is Event.SESSION_END:
        members["reason"] = "channel_closed"
    elif context.event is Event.NOTIFICATION:
        members |= {"notificationType": context.trigger, "message": shared_input.utf8(context.message)}
    variables = {
        "GROK_HOOK_EVENT": event,
        "GROK_HOOK_NAME": spec.label,
        "GROK_SESSION_ID": session.id,
        "GROK_WORKSPACE_ROOT": session.project_dir,
        "CLAUDE_PROJECT_DIR": session.project_dir,
    }
    return Document(shared_input.json_line(members), variables)


_RULES: Final = envelope.Rules(replaces=True)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. An approval only means "not blocked": whoever else is asked still is."""
    verdict = envelope.read_output(_RULES, spec, result)
    if spec.event is not Event.PRE_TOOL_USE or verdict.permission is not Permission.ALLOW:
        return verdict
    return replace(verdict, permission=None, reason="")


def _mcp_tool_name(server: str, tool: str) -> str:
    return f"{server}__{tool}"


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="Grok Build's page on hooks, docs.x.ai/build/features/hooks, as of autumn 2026, and what others have "
    "written down of its source, xai-grok-hooks, in September 2026",
    output_fields={
        **{name: effect for name, effect in envelope.FIELDS.items() if name != "suppressOutput"},
        "hookSpecificOutput.updatedToolOutput": Effect.REPLACES,
        "hookSpecificOutput.updatedMCPToolOutput": Effect.REPLACES,
    },
    order=Order.PIPELINE,  # the page does not say whether hooks run at once: none may judge what is replaced later
    read_hook_file=FORMAT.read,
    write_input=write_input,
    read_output=read_output,
    mcp_tool_name=_mcp_tool_name,
    tool_spellings=TOOL_SPELLINGS,
    recognises=FORMAT.fits_unversioned,
    recognises_at_home=FORMAT.fits_at_home,
    shape_of="claude",
    folders=(".grok/hooks", ".grok"),
    variables=("GROK_HOOK_EVENT", "GROK_HOOK_NAME", "GROK_SESSION_ID", "GROK_WORKSPACE_ROOT"),
    user_files=(UserFiles(".grok", "hooks/*.json"),),
    project_files=(".grok/hooks/*.json",),
)


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event. Raises ValueError, also for arguments that Grok has cut: no guard could judge them."""
    if Members(raw).raw("toolInputTruncated") == b"true":
        raise ValueError("toolInput is cut, so that nobody can judge it")
    return read_document(AGENT_SIDE, raw, environ)


def _arguments(members: Members) -> bytes:
    """The arguments, also where the tool that calls servers' tools has put them beside the tool's name."""
    inner = members.object("toolInput")
    if "tool_input" in inner and inner.text("tool_name") == members.text("toolName"):
        return inner.raw("tool_input")
    return members.raw("toolInput")


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    server, separator, tool = name.partition("__")
    return None if is_own_tool(AGENT_SIDE, name) or not separator else (server, tool)


def _outcome(members: Members, failed: bool) -> Outcome:
    return text_outcome(members.text("error"), failed=True) if failed else result_outcome(members.raw("toolResult"))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("hookEventName", "sessionId")),
    form=DocumentForm(
        event=("hookEventName",),
        event_name=_pascal,
        session=partial(session_of, ids=("sessionId",), project_variable="GROK_WORKSPACE_ROOT"),
        tool_name=lambda members: members.required("toolName"),
        arguments=_arguments,
        server_tool=_server_tool,
        tool_use_id="toolUseId",
        outcome=_outcome,
    ),
    also_reads=("claude", "cursor"),
    file=".grok/hooks/hookproxy.json",
    can=Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER | Can.REPLACE,
    read_document=_read_document,
    write_output=partial(claude_agent_side.write_output, replacement="updatedToolOutput"),
)
