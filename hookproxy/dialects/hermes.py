"""Hermes Agent's shell hooks: the `hooks` of its YAML configuration. Only pre_tool_call decides."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling, ToolSpellings
from ..model.hooks import NO_VERDICT, Document, Event, EventContext, HookResult, HookSpec, Order, Permission, Verdict
from ..model.settings import ServerNamed
from .agent_documents import DocumentSigns
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    is_own_tool,
    json_output,
    split_underscored_name,
    text_outcome,
)
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, WrittenEntry, for_names
from .shared import command_file, exit_status, labels
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts, quoted
from .shared.events import INSIDE_AGENT, PROMPTS_UNSEEN, SUBAGENTS_UNSEEN
from .shared.handler_types import Handler
from .shared.hook_file import Table

_PATH: Final = {"file_path": "path"}
TOOL_SPELLINGS: Final[ToolSpellings] = {
    "Bash": (ToolSpelling("terminal"),),
    "Read": (ToolSpelling("read_file", _PATH),),
    "Write": (ToolSpelling("write_file", _PATH),),
    "Edit": (ToolSpelling("patch", _PATH),),
    "MultiEdit": (ToolSpelling("patch", _PATH),),
    "Glob": (ToolSpelling("search_files"),),
    "Grep": (ToolSpelling("search_files"),),
    "WebSearch": (ToolSpelling("web_search"),),
}
"""Hermes' own tools."""

_RESERVED: Final = ("output_spill", "outbound")
"""Other tables below `hooks`."""
_LONGEST: Final = 300.0
"""Seconds: Hermes cuts longer timeouts to this."""
_SIGNS: Final = re.compile(r"[^A-Za-z0-9_]")


def _read_hook_file(file: HookFile) -> HookList:
    document = shared_hook_file.read_document(file.path, file.text)
    if not isinstance(document.members.get("hooks"), dict):
        return FORMAT.read_hooks(file, document)
    table = document.table("hooks")
    events = {name: entries for name, entries in table.members.items() if name not in _RESERVED and entries is not None}
    return FORMAT.read_events(file, replace(table, members=events))


def _older_name(name: str) -> str:
    """A server's tool as versions before July 2026 call it, `mcp_SERVER_TOOL`: no guard of theirs is passed over."""
    return name.replace("mcp__", "mcp_", 1).replace("__", "_", 1) if name.startswith("mcp__") else name


def _recognises(members: Mapping[str, object]) -> bool:
    """Whether there are entries with commands under Hermes' events, and at least one before or after a call."""
    hooks = members.get("hooks")
    if not isinstance(hooks, dict) or FORMAT.events.keys().isdisjoint(hooks):
        return False
    return all(
        isinstance(entries, list) and all(isinstance(entry, dict) and "command" in entry for entry in entries)
        for name, entries in hooks.items()
        if name not in _RESERVED and entries is not None
    )


def _recognises_at_home(members: Mapping[str, object]) -> bool:
    """In its own folder, where most settings are about other things, and other names below `hooks` are mistakes."""
    hooks = members.get("hooks")
    return hooks is None or isinstance(hooks, dict)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """An expression for the whole name; one that is invalid is compared as it is."""
    text = pattern.strip()
    if not text:
        return lambda _name: True
    try:
        expression = re.compile(text)
    except re.error:
        return lambda name: text in (name, _older_name(name))
    return lambda name: any(map(expression.fullmatch, (name, _older_name(name))))


def _read_handler(file: HookFile, _name: str, entry: Table) -> Handler:
    """A program and its arguments: there is no shell."""
    command, home = command_file.read_command(entry).shell.strip(), file.environ.get("HOME", "")
    if home and command.startswith("~/"):
        command = home + command[1:]
    try:
        argv = shlex.split(command)
    except ValueError as problem:
        raise entry.error("command", f"cannot be split into words: {problem}", "close the quotation marks") from None
    return Handler("command", labels.argv_label(argv), argv=tuple(argv))


def _finish(_file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    closed = entry.flag("fail_closed") if "fail_closed" in entry.members else entry.flag("failClosed")
    return replace(hook, fails_closed=closed and hook.event is Event.PRE_TOOL_USE, timeout=min(hook.timeout, _LONGEST))


FORMAT: Final = CommandFile(
    dialect="hermes",
    events={
        "pre_tool_call": Event.PRE_TOOL_USE,
        "post_tool_call": Event.POST_TOOL_USE,
        "on_session_start": Event.SESSION_START,
        "on_session_finalize": Event.SESSION_END,
    },
    unavailable=for_names(
        {
            PROMPTS_UNSEEN: "pre_llm_call post_llm_call pre_command pre_gateway_dispatch gateway_platform_event",
            SUBAGENTS_UNSEEN: "subagent_start subagent_stop",
            INSIDE_AGENT: (
                "pre_verify pre_api_request post_api_request api_request_error on_session_end on_session_reset"
                " agent_loop_stopped on_skill_lifecycle pre_approval_request post_approval_response"
                " kanban_task_claimed kanban_task_completed kanban_task_blocked"
            ),
        }
    ),
    timeouts=Timeouts(60.0, shortest=1, short_session_end=False),
    entries=Entries(
        keys=("command", "matcher", "timeout", "fail_closed", "failClosed"),
        also_on_failure=("post_tool_call",),
        read_handler=_read_handler,
        finish=_finish,
        closed=("fail_closed", True),
    ),
    matchers=Matchers(compile=_matcher),
)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document. There are no variables."""
    session, outcome = context.session, context.outcome
    extra: dict[str, object] = {}
    if context.tool:
        extra = {"task_id": "", "tool_call_id": shared_input.utf8(context.tool_use_id)}
    if outcome is not None:
        text = shared_input.utf8_result(context)
        result = raw_json.encode({"error": text} if outcome.error else {"result": text}).decode()
        status = "error" if outcome.error else "ok"
        extra |= {"result": result, "status": status, "duration_ms": outcome.duration_ms}
    members: dict[str, object] = {
        "hook_event_name": spec.event_name,
        "tool_name": shared_input.utf8(context.tool_name) if context.tool else None,
        "tool_input": msgspec.Raw(context.arguments) if context.tool else None,
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        "profile": "default",
        "extra": extra,
    }
    return Document(shared_input.json_line(members), {})


_Word = Literal["block", "modify", "allow", "approve"]


class _JsonOutput(Struct, frozen=True, kw_only=True):
    """What a hook prints, in Hermes' words or in Claude Code's."""

    action: _Word | None = None
    message: str | None = None
    args: msgspec.Raw = shared_output.NO_JSON
    decision: _Word | None = None
    reason: str | None = None
    tool_input: msgspec.Raw = shared_output.NO_JSON


_DECODER: Final = msgspec.json.Decoder(_JsonOutput)
_BLOCK: Final = ("block",)
FIELDS: Final = {
    "action": Effect.DECIDES,
    "message": Effect.REASON,
    "args": Effect.REWRITES,
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "tool_input": Effect.REWRITES,
    "context": Effect.NONE,
}
_DECIDING: Final[shared_output.DecidingMembers] = {
    "action": _BLOCK, "decision": _BLOCK, "message": shared_output.ANY_TEXT, "reason": shared_output.ANY_TEXT,
}  # fmt: skip


def _of_json(spec: HookSpec, output: _JsonOutput) -> Verdict:
    if spec.event is not Event.PRE_TOOL_USE:
        return NO_VERDICT
    if output.action == "block":
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(output.message or output.reason or ""))
    if output.decision == "block":
        return Verdict(permission=Permission.DENY, reason=shared_output.truncate(output.reason or output.message or ""))
    arguments = b""
    if output.decision == "modify":
        arguments = shared_output.given(output.tool_input)
    if output.action == "modify":
        arguments = shared_output.given(output.args) or arguments
    if arguments and not arguments.startswith(b"{"):
        return Verdict(failure="gave arguments that are not an object")
    return Verdict(arguments=arguments or None, merges=bool(arguments))


def _read_json(spec: HookSpec, result: HookResult) -> Verdict | None:
    """The verdict of what a hook prints. A denial counts with any exit status."""
    verdict = shared_output.read_json(result, _DECODER, _DECIDING, lambda output: _of_json(spec, output))
    if verdict is None:
        if result.stdout.strip() and spec.fails_closed:
            return Verdict(failure="printed something other than JSON")
        return None
    return None if result.code and verdict.permission is not Permission.DENY else verdict


_RULES: Final = exit_status.ExitStatusRules(read_json=_read_json)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run. The reason of a denial is in its JSON, or else on standard error."""
    verdict = exit_status.read_output(_RULES, spec, result)
    if verdict.permission is not Permission.DENY:
        return verdict
    said = _read_json(spec, result)
    return said if said is not None and said.permission is Permission.DENY and said.reason else verdict


def _mcp_tool_name(server: str, tool: str) -> str:
    return f"mcp__{_SIGNS.sub('_', server)}__{_SIGNS.sub('_', tool)}"


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="the source of Hermes Agent, agent/shell_hooks.py, and its page on hooks, as of October 2026",
    output_fields=FIELDS,
    order=Order.PIPELINE,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=read_output,
    mcp_tool_name=_mcp_tool_name,
    tool_spellings=TOOL_SPELLINGS,
    recognises=_recognises,
    recognises_at_home=_recognises_at_home,
    folders=(".hermes",),
    suffixes=(".yaml", ".yml"),
    constant_environment=True,
    user_files=(UserFiles(".hermes", "config.yaml", "HERMES_HOME"),),
)


def _server_tool(_members: object, name: str) -> tuple[str, str] | None:
    return None if is_own_tool(AGENT_SIDE, name) else split_underscored_name(name)


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    output: dict[str, object] = {}
    if event.context.event is Event.PRE_TOOL_USE and decision.permission is Permission.DENY:
        output = {"action": "block", "message": decision.reason or "denied by a hook"}
    elif event.context.event is Event.PRE_TOOL_USE and decision.arguments is not None:
        output = {"action": "modify", "args": msgspec.Raw(decision.arguments)}
    return replace(json_output(output), stderr=decision.message)


_FILE: Final = ".hermes/config.yaml"
_OF_SHELL: Final = re.compile(r"[^A-Za-z0-9_./@:+-]")
"""What makes a command line more than one plain word: it is given to a shell, because Hermes starts none."""


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """YAML, whose strings JSON spells as well."""
    events: dict[str, list[str]] = {}
    for entry in entries:
        command = f"sh -c {shlex.quote(entry.command)}" if _OF_SHELL.search(entry.command) else entry.command
        written = FORMAT.written(replace(entry, command=command))
        pairs = [f"{name}: {quoted(value)}" for name, value in written.items()]
        events.setdefault(entry.event_name, []).append("    - " + "\n      ".join(pairs) + "\n")
    return {_FILE: "hooks:\n" + "".join(f"  {name}:\n{''.join(listed)}" for name, listed in events.items())}


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("hook_event_name", "extra", "profile")),
    form=DocumentForm(
        triggers={Event.SESSION_START: "startup", Event.SESSION_END: "other"},
        server_named=ServerNamed.IN_TOOL_NAME,
        server_tool=_server_tool,
        failed=lambda members: members.object("extra").text("status") == "error",
        outcome=lambda members, failed: text_outcome(members.object("extra").text("result"), failed=failed),
    ),
    file=_FILE,
    can=Can.REWRITE,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    also={Event.POST_TOOL_USE_FAILURE: "post_tool_call"},
    merges=True,
    user_folder=None,
)
