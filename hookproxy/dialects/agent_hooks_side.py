"""A host of AGENT-HOOKS-0.1 as an agent that runs a hook of another system: it gives contexts and obeys verdicts.

The standard knows no processes: here a host runs the hook as hookproxy does, with the context on standard input and the
verdict on standard output. Every interceptor must return a verdict (section 1.1), so there always is one: `allow` where
nothing was decided, and at the points that hooks of other systems do not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import FAMILIAR_NAMES, Alias
from ..model.content_blocks import only_text, read_blocks
from ..model.hooks import Event, EventContext, Permission, Session
from . import own
from .agent_documents import Members
from .agent_hooks_verdicts import NAME, POINTS
from .agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    HookDecision,
    HookOutput,
    NothingToJudge,
    arguments_of,
    json_output,
    milliseconds,
    result_outcome,
    split_mcp_name,
)
from .dialect import HookList, WrittenEntry
from .shared.command_file import quoted

_FILE: Final = "hookproxy.toml"
_OTHER_POINTS: Final = ("input", "pre_model_call", "post_model_call", "output")
"""Section 3 has eight points; these are about the agent's model and its turns."""
_ALLOW: Final[dict[str, object]] = {"decision": "allow"}


class _Result(AgentEvent, frozen=True):
    """The event of a result."""

    target: bytes = b""
    """The result as the host has it."""


def _read_document(document: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event of a context (section 4). `target` is what the action consumes, and so what is judged."""
    members = Members(document)
    point = members.required("interception_point")
    if point in _OTHER_POINTS:
        raise NothingToJudge(json_output(_ALLOW))
    event = AGENT_SIDE.events.get(point)
    if event is None:
        raise ValueError(f"AGENT-HOOKS-0.1 has no interception point {point!r}")
    folder = members.object("extensions").object("hookproxy").text("cwd") or environ.get("PWD", "/")
    session = Session(members.object("session").text("id"), "", folder, folder)
    if event not in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE):
        trigger = "startup" if event is Event.SESSION_START else members.object("summary").text("reason")
        return AgentEvent(point, EventContext(event, session, trigger=trigger))
    call, target = members.object("tool_call"), members.raw("target")
    context = _call(call.required("name"), session, members.object("agent"))
    context = replace(context, event=event, tool_use_id=call.text("id"))
    if event is Event.PRE_TOOL_USE:
        return AgentEvent(point, replace(context, arguments=arguments_of(target)))
    result = members.object("tool_result")
    if not target:
        raise ValueError("the document has no target")
    failed = result.raw("is_error") == b"true"
    return _Result(
        point,
        replace(
            context,
            event=Event.POST_TOOL_USE_FAILURE if failed else event,
            arguments=arguments_of(call.raw("args")),
            outcome=result_outcome(target, failed=failed, duration_ms=milliseconds(result.raw("duration_ms"))),
        ),
        target=target,
    )


def _call(name: str, session: Session, agent: Members) -> EventContext:
    """The event of a call. Only hookproxy says which server a tool is of; elsewhere its name may be a tool of the
    agent's own, too. hookproxy gives a familiar name to a tool that has one.
    """
    server = agent.text("id") if agent.text("framework") == "hookproxy" and name not in FAMILIAR_NAMES else ""
    server_tool = (server, name) if server else split_mcp_name(name)
    if server_tool is not None:
        return EventContext(Event.PRE_TOOL_USE, replace(session, server=server_tool[0]), tool=server_tool[1])
    return EventContext(Event.PRE_TOOL_USE, session, tool=name, alias=Alias(name, name))


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    """The verdict (section 5). What has no place in it is a warning, which is recorded and changes nothing."""
    verdict = _verdict(event, decision)
    if warnings := [{"message": text} for text in (decision.message, decision.feedback) if text]:
        verdict = {**verdict, "warnings": warnings}
    return json_output(verdict)


def _verdict(event: AgentEvent, decision: HookDecision) -> dict[str, object]:
    context = event.context
    if isinstance(event, _Result):
        replacement = decision.replacement
        return _ALLOW if replacement is None else _transform(_in_form(replacement, event.target))
    if context.event is not Event.PRE_TOOL_USE:  # a deny at the start means that there is no session (section 6.1a)
        stops = decision.stop and context.event is Event.SESSION_START
        return _deny(decision.reason or "a hook stops the agent") if stops else _ALLOW
    if decision.permission is Permission.ASK and decision.arguments is not None:
        return _deny("A hook wants a person to approve changed arguments, and a verdict cannot say both.")
    if decision.permission is Permission.ASK:
        return {**_deny(decision.reason or "a hook asks"), "approval": {}}
    if decision.permission is Permission.DENY:
        return _deny(decision.reason or "denied by a hook")
    return _ALLOW if decision.arguments is None else _transform(decision.arguments)


def _in_form(replacement: bytes, target: bytes) -> bytes:
    """What stands in place of a result, in the form that the host's own value has: text, blocks, or a result of MCP."""
    content = Members(replacement).raw("content") if replacement.startswith(b"{") else b""
    if not content.startswith(b"[") or (target.startswith(b"{") and "content" in Members(target)):
        return replacement
    blocks = None if target.startswith(b"[") else read_blocks(content)
    texts = [only_text(block) for block in blocks or ()]
    if blocks is None or None in texts:
        return content
    return raw_json.encode("\n".join(filter(None, texts)))


def _deny(message: str) -> dict[str, object]:
    return {"decision": "deny", "message": message}


def _transform(value: bytes) -> dict[str, object]:
    return {"decision": "transform", "transform": {"path": "$target", "value": msgspec.Raw(value)}}


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """A hookproxy.toml: an entry of `post_tool_call` is a hook of both events after a call."""
    tables = [(event, entry) for entry in entries for event, point in POINTS.items() if point == entry.event_name]
    return {_FILE: "\n".join(_table(event, entry) for event, entry in tables)}


def _table(event: Event, entry: WrittenEntry) -> str:
    """An entry has no matcher: hosts name tools as they like, and the hook tries its own one."""
    timeout = f"timeout = {entry.timeout:g}\n" if entry.timeout else ""
    return f"[[hooks.{event}]]\ntype = {quoted(NAME)}\ncommand = {quoted(entry.command)}\n{timeout}"


def _read_command(entry: WrittenEntry, project: str) -> HookList:
    """The hooks of an entry whose event is a point, or the event of a `[[hooks.EVENT]]` table. Raises ConfigError."""
    table: dict[str, object] = {"type": NAME, "command": entry.command}
    table |= {"matcher": entry.matcher} if entry.matcher else {}
    table |= {"if": entry.only_if} if entry.only_if else {}
    table |= {"timeout": entry.timeout} if entry.timeout else {}
    events = [event for event, point in POINTS.items() if entry.event_name in (point, str(event))]
    return HookList(tuple(own.own_hook(table, event, f"--as {NAME}", project) for event in events))


AGENT_SIDE: Final = AgentSide(
    name=NAME,
    file=_FILE,
    can=Can.ASK | Can.REWRITE | Can.REPLACE,  # `allow` approves nothing, and no verdict has a text for the model
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    events={
        POINTS[event]: event
        for event in (Event.SESSION_START, Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_END)
    },
    also={Event.POST_TOOL_USE_FAILURE: POINTS[Event.POST_TOOL_USE_FAILURE]},
    refuse=lambda reason: json_output(_deny(reason)),
    read_command=_read_command,
    own_names_are_unique=False,
    user_folder=None,
)
