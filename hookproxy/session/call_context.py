"""One call and the desk that serves it: what is known of the call, and what it needs of the proxy that holds it."""

from __future__ import annotations

from enum import Enum, auto
from time import time
from typing import Final, Protocol

from msgspec import Struct

from ..audit.log import Audit, Record
from ..hooks.evaluate import Hooks
from ..jsonrpc import raw_json
from ..model.decision import Refuse
from ..model.hooks import Event, EventContext, Session, Tool
from ..model.settings import Settings
from ..protocol import feedback
from ..protocol.actions import ElicitationSeen
from ..protocol.calls import Call
from ..protocol.elicitation_messages import Answer
from ..protocol.request_state import CallRound, StateSealer
from ..protocol.responses import Members
from .approval import Approvals

_ID_IN_META: Final = ("claudecode/toolUseId", "callId")
"""Where agents name their own call: Claude Code, Codex."""


class Ending(Enum):
    """How a forwarded call can end without an answer."""

    LOST = auto()  # the server is gone
    INTERRUPTED = auto()  # the agent cancelled it


class CallServices(Protocol):
    """What a call needs of the proxy that holds it."""

    hooks: Hooks
    settings: Settings
    session: Session
    audit: Audit
    state_sealer: StateSealer
    approvals: Approvals

    def agent(self) -> str:
        """Name and version as the agent gave them, else nothing."""

    def tool(self, name: str) -> Tool | None:
        """What a listing told of the tool."""

    def silent(self) -> bool:
        """There is nothing to wait for in `words`, and nothing in them."""

    async def take_feedback(self) -> tuple[str, ...]:
        """Wait until SessionStart hooks are done; gives what hooks beside calls said and nobody has delivered yet."""

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """Send the call to the server and wait for its answer."""

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        """Send the call to the server; its answer passes as it comes. False: it cannot be sent, or not yet."""

    def release_backpressure(self, call: Call) -> None:
        """The call may wait long: reading from the agent does not wait with it."""

    def respond(self, call: Call, line: bytes) -> None:
        """Send the call's answer to the agent, unless it cancelled the call."""

    def refuse_other_calls(self, call: Call, refuse: Refuse) -> None:
        """Refuse all other calls that the server does not know yet."""

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        """Take back an answered call, to make it again: gives its line with a new id, or None if it is cancelled."""

    def follow_tasks(
        self, call: Call, record: Record, event_context: EventContext, texts: tuple[str, ...], line: bytes
    ) -> bytes:
        """Follow the tasks that an answer hands over; gives the answer as the agent may have it."""

    def start_hooks(self, event_context: EventContext) -> None:
        """Tell hooks of something, and wait for none of them."""

    def start_elicitation_hooks(self, elicited: ElicitationSeen, only_observers: bool = False) -> None:
        """Tell hooks of a question of the server to the person, or of its answer; `only_told`: as `moments` has it."""

    async def answer_elicitations(self, result: Members) -> dict[str, Answer] | None:
        """The answers of hooks to all that an `input_required` result wants; None where they do not answer all."""

    def report(self, text: str) -> None:
        """Tell people."""

    def report_once(self, text: str) -> None:
        """Tell people, unless they have been told."""

    def lost_response(self, call: Call) -> bytes:
        """The line that tells the agent that the server is gone."""


class CallContext(Struct):
    """One call, and all that is known of it by now."""

    call: Call
    services: CallServices
    record: Record
    event_context: EventContext
    """The last moment at which hooks spoke, with the arguments that run."""
    waiting: CallRound | None = None
    """What the call goes on with, if it came back with a seal of ours."""


def refusal(call: Call, refuse: Refuse) -> bytes:
    """The line that tells the agent, and its model, that the call is refused and why."""
    return feedback.refusal(call.id, refuse, stateless=call.stateless, task=call.task)


def event_context_of(call: Call, services: CallServices) -> EventContext:
    """The moment before a call, as its hooks are told."""
    listed = services.tool(call.tool)
    groups = services.hooks.groups
    alias = groups.alias(call.tool, call.arguments) if groups.aliases else None
    request_id = call.key.decode(errors="replace")
    return EventContext(
        event=Event.PRE_TOOL_USE,
        session=services.session,
        tool=call.tool,
        tool_name=groups.first_tool_name(call.tool),
        tool_use_id=(call.meta and _told_id(call)) or f"call_{request_id}",
        arguments=call.arguments if alias is None else alias.for_hooks(call.arguments),
        alias=alias,
        annotations=listed.annotations if listed else b"",
        request_id=request_id,
        at=time(),
        trace=call.trace,
    )


def _told_id(call: Call) -> str:
    """What the agent itself calls the call; empty where it does not tell."""
    for key in _ID_IN_META:
        if key in call.meta and (name := raw_json.text(bytes(call.meta[key]))):
            return name
    return ""
