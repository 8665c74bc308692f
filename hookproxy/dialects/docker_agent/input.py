"""Docker Agent's hooks: events, order and names, and what its hooks are told.

`docker_agent_file` reads its files, `docker_agent_answer` what its hooks say. `docker-agent` is the hooks page of March
2026; the variant `docker-agent@current` follows the newer page and its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ...model.hooks import Document, Event, EventContext, HookSpec, Order, Outcome
from ...model.settings import ToolNames
from ..dialect import Dialect, Effect
from ..shared import input
from ..shared import input as shared_input
from . import hook_file as agent_file
from . import output as answer

_BEFORE: Final = (Event.PRE_TOOL_USE,)
_AFTER: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_TOOL_EVENTS: Final = (*_BEFORE, *_AFTER, Event.PERMISSION_REQUEST)

_NO_PROMPT: Final = "prompts never pass through MCP"
_NO_TURN: Final = "an MCP server is not told of turns, subagents and calls of the model"
_NO_AGENT: Final = "it happens inside the agent, which an MCP server is not told of"
_UNAVAILABLE: Final = {
    "user_prompt_submit": _NO_PROMPT,
    "user_steering_messages_submit": _NO_PROMPT,
    "user_followup_submit": _NO_PROMPT,
    "turn_start": _NO_TURN,
    "turn_end": _NO_TURN,
    "before_llm_call": _NO_TURN,
    "after_llm_call": _NO_TURN,
    "stop": _NO_TURN,
    "subagent_stop": _NO_TURN,
    "pre_compact": _NO_AGENT,
    "before_compaction": _NO_AGENT,
    "after_compaction": _NO_AGENT,
    "notification": "it tells of errors and warnings inside the agent, which an MCP server is not told of",
    "on_error": "it tells of errors inside the agent, which an MCP server is not told of",
    "on_max_iterations": _NO_AGENT,
    "on_agent_switch": _NO_AGENT,
    "on_session_resume": _NO_AGENT,
    "on_tool_approval_decision": "hookproxy tells hooks of no call that is allowed: its audit has every decision",
    "worktree_create": _NO_AGENT,
}
"""The newer page's other events, and why they cannot occur behind MCP."""

_FIELDS: Final[Mapping[str, Effect]] = {
    "continue": Effect.DENIES_AND_STOPS,
    "stop_reason": Effect.REASON,
    "suppress_output": Effect.NONE,
    "system_message": Effect.TELLS_PERSON,
    "decision": Effect.DECIDES,
    "reason": Effect.REASON,
    "hook_specific_output.hook_event_name": Effect.NONE,
    "hook_specific_output.permission_decision": Effect.DECIDES,
    "hook_specific_output.permission_decision_reason": Effect.REASON,
    "hook_specific_output.updated_input": Effect.REWRITES,
}
"""What each member of an answer does here."""

_CURRENT_FIELDS: Final[Mapping[str, Effect]] = {
    **_FIELDS,
    "hook_specific_output.additional_context": Effect.TELLS_MODEL,
    "hook_specific_output.updated_tool_response": Effect.REPLACES,
    "hook_specific_output.metadata": Effect.NONE,
    "hook_specific_output.summary": Effect.NONE,
}

_LISTS: Final = {
    "session_start": (Event.SESSION_START,),
    "session_end": (Event.SESSION_END,),
    "on_user_input": (Event.USER_INPUT,),
}
_NEWER_GROUPS: Final = {
    "tool_input_transform": _BEFORE,
    "pre_tool_use": _BEFORE,
    # Docker Agent asks its guards before pre_tool_use, and again if that rewrites: last, they judge what will run.
    "tool_guard": _BEFORE,
    "permission_request": (Event.PERMISSION_REQUEST,),
    "tool_response_transform": _AFTER,
    "post_tool_use": _AFTER,
}
_GUARDED: Final = ("tool_input_transform", "tool_guard")


_DOCUMENTED: Final = agent_file.Edition(
    dialect="docker-agent",
    groups={"pre_tool_use": _BEFORE, "post_tool_use": (Event.POST_TOOL_USE,)},
    lists=_LISTS,
    unavailable={},
    blocking=answer.DOCUMENTED.blocking,
    elsewhere=frozenset({*_NEWER_GROUPS, *_UNAVAILABLE}),
)
_CURRENT: Final = agent_file.Edition(
    dialect="docker-agent@current",
    groups=_NEWER_GROUPS,
    lists=_LISTS,
    unavailable=_UNAVAILABLE,
    blocking=answer.CURRENT.blocking,
    newer=True,
)


def recognises(members: Mapping[str, object]) -> bool:
    """Agents of which some have hooks; or hooks alone, by Docker Agent's names of events."""
    agents = members.get("agents")
    if isinstance(agents, dict):
        return any(isinstance(agent, dict) and isinstance(agent.get("hooks"), dict) for agent in agents.values())
    hooks = members.get("hooks")
    return isinstance(hooks, dict) and any(name in hooks for name in (*_DOCUMENTED.groups, *_DOCUMENTED.lists))


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input, in the order of the documented one; no variables."""
    return Document(stdin=shared_input.json_line(_members(spec, context)), env={})


def write_input_current(spec: HookSpec, context: EventContext) -> Document:
    """The newer document: it names the agent, and tells whether the tool failed."""
    name = answer.event_name(spec)
    more: dict[str, object] = {}
    if context.event in _TOOL_EVENTS and name != "tool_response_transform":
        more["agent_name"] = _agent_name(spec)
    if name in _GUARDED:
        more["tool_category"] = "mcp"
    members = _members(spec, context, more)
    if context.event is Event.POST_TOOL_USE_FAILURE and name == "post_tool_use":
        members["tool_error"] = True  # absent otherwise, as Go leaves out what is false
    if context.event is Event.SESSION_END:
        members["reason"] = "stream_ended"
    return Document(stdin=shared_input.json_line(members), env={})


def _members(spec: HookSpec, context: EventContext, more: Mapping[str, object] | None = None) -> dict[str, object]:
    session = context.session
    members: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": answer.event_name(spec),
        **(more or {}),
    }
    if context.event in _TOOL_EVENTS:
        members |= {
            "tool_name": context.tool_name,
            "tool_use_id": context.tool_use_id,
            "tool_input": msgspec.Raw(context.arguments),
        }
    if context.event in _AFTER:
        members["tool_response"] = input.result_text(context.outcome or Outcome())
    if context.event is Event.SESSION_START:
        members["source"] = context.trigger
    if context.event is Event.SESSION_END:
        members["reason"] = context.trigger
    return members


def _agent_name(spec: HookSpec) -> str:
    marks = [mark for mark in spec.traits if mark.startswith(agent_file.AGENT)]
    return shared_input.utf8(marks[0].removeprefix(agent_file.AGENT)) if marks else "root"


def _events(edition: agent_file.Edition) -> dict[str, Event]:
    return {name: events[0] for name, events in (*edition.groups.items(), *edition.lists.items())}


DOCKER_AGENT: Final = Dialect(
    name=_DOCUMENTED.dialect,
    described_by="Docker Agent's hooks page, docs/configuration/hooks, as of March 2026",
    events=_events(_DOCUMENTED),
    unavailable=_DOCUMENTED.unavailable,
    output_fields=_FIELDS,
    order=Order.TOGETHER,
    default_timeout=agent_file.TIMEOUT,
    tool_names=ToolNames.BARE,
    read_hook_file=partial(agent_file.read_hook_file, _DOCUMENTED),
    write_input=write_input,
    read_output=partial(answer.read_output, answer.DOCUMENTED),
    recognises=recognises,
    options=("agent",),
    suffixes=(".yaml", ".yml", ".json"),
    agents=("docker agent",),
    constant_environment=True,
)

DOCKER_AGENT_CURRENT: Final = replace(
    DOCKER_AGENT,
    name=_CURRENT.dialect,
    described_by="Docker Agent's hooks page as of October 2026, and where it is silent its code, pkg/hooks",
    events=_events(_CURRENT),
    unavailable=_CURRENT.unavailable,
    output_fields=_CURRENT_FIELDS,
    order=Order.PIPELINE,
    read_hook_file=partial(agent_file.read_hook_file, _CURRENT),
    write_input=write_input_current,
    read_output=partial(answer.read_output, answer.CURRENT),
    recognises=lambda _members: False,
)
