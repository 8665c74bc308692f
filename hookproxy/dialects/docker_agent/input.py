"""Writes the input of Docker Agent's hooks: the document on standard input. There are no variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input
from ..shared.events import AFTER_CALL
from .hook_file import AGENT
from .output import event_name

_TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, *AFTER_CALL, Event.PERMISSION_REQUEST)
_WITH_CATEGORY: Final = ("tool_input_transform", "tool_guard")
"""The events whose document has `tool_category`."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The documented document, its members in the page's order."""
    return Document(stdin=shared_input.json_line(_members(spec, context)), env={})


def write_input_current(spec: HookSpec, context: EventContext) -> Document:
    """The newer document, which also has the agent's name, and whether the tool failed."""
    name = event_name(spec)
    more: dict[str, object] = {}
    if context.event in _TOOL_EVENTS and name != "tool_response_transform":
        more["agent_name"] = _agent_name(spec)
    if name in _WITH_CATEGORY:
        more["tool_category"] = "mcp"
    members = _members(spec, context, more)
    if context.event is Event.POST_TOOL_USE_FAILURE and name == "post_tool_use":
        members["tool_error"] = True  # absent otherwise: Go omits what is false
    if context.event is Event.SESSION_END:
        members["reason"] = "stream_ended"
    return Document(stdin=shared_input.json_line(members), env={})


def _members(spec: HookSpec, context: EventContext, more: Mapping[str, object] | None = None) -> dict[str, object]:
    session = context.session
    members: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": event_name(spec),
        **(more or {}),
    }
    if context.event in _TOOL_EVENTS:
        members |= {
            "tool_name": context.tool_name,
            "tool_use_id": context.tool_use_id,
            "tool_input": msgspec.Raw(context.arguments),
        }
    if context.event in AFTER_CALL:
        members["tool_response"] = shared_input.result_text(context.outcome or Outcome())
    if context.event is Event.SESSION_START:
        members["source"] = context.trigger
    if context.event is Event.SESSION_END:
        members["reason"] = context.trigger
    return members


def _agent_name(spec: HookSpec) -> str:
    traits = [trait for trait in spec.traits if trait.startswith(AGENT)]
    return shared_input.utf8(traits[0].removeprefix(AGENT)) if traits else "root"
