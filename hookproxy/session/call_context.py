"""One call that is handled: what is known of it (`CallContext`), and what handling needs from the proxy.

How it works: `session/call` makes one context per call, and every step of its handling reads and fills it. Its policy
is that of its beginning, so a reload changes nothing for it. All that reaches agent, server or other calls goes through
`CallServices`, which `running_calls` implements, and a trial in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from time import time
from typing import Final, Literal, Protocol

from msgspec import Struct

from ..audit.call_record import Record
from ..hooks.policy import Policy
from ..jsonrpc import raw_json
from ..model.call_end import Failed
from ..model.decision import Refuse
from ..model.hooks import Event, EventContext, Session, Tool
from ..protocol import feedback
from ..protocol.actions import ElicitationSeen
from ..protocol.calls import Call, Progress
from ..protocol.elicitation_messages import ElicitationResponse
from ..protocol.input_rounds import JudgedInputs
from ..protocol.request_state import CallRound, RequestStates
from ..protocol.responses import Members, Response
from .approval import Approvals

_ID_IN_META: Final = ("claudecode/toolUseId", "callId")
"""Members of `_meta` in which Claude Code and Codex give their own id of the call."""


class Ending(Enum):
    """Why a forwarded call gets no response."""

    LOST = auto()  # the server has exited
    INTERRUPTED = auto()  # the agent cancelled it


class JudgesInputs(Protocol):
    """Judges what the server asks in the results of calls, and the answers (2026-07-28): `input_requests`."""

    def ask_in(self, response: Response) -> bool:
        """True if a final result, or an error, may ask for something that is judged."""

    async def judge(self, call: Call, line: bytes, result: Members) -> JudgedInputs:
        """What becomes of the requests in this result of a response. Raises ValueError: it is ambiguous."""

    async def judge_answers(self, call: Call, earlier: CallRound | None) -> bytes | None:
        """The answers that the server gets; None: as the agent has sent them. Raises ValueError: they are ambiguous."""


class CallServices(Protocol):
    """What handling a call needs from the proxy; a trial has its own implementation."""

    session: Session
    request_states: RequestStates
    approvals: Approvals
    input_requests: JudgesInputs | None
    """None: no requests of the server are judged."""

    @property
    def policy(self) -> Policy:
        """What judges the calls that begin now."""

    def agent(self) -> str:
        """The agent's name and version as it gave them; empty if it gave none."""

    def protocol_version(self) -> str:
        """The version of MCP that the agent speaks; empty: it is not known."""

    def describe_error(self, defect: BaseException) -> str:
        """Why a call has ended unexpectedly, without secrets."""

    def tool(self, name: str) -> Tool | None:
        """What the server's last `tools/list` result says about the tool."""

    def may_have_feedback(self) -> bool:
        """SessionStart hooks still run, or feedback of hooks outside of calls waits for a response."""

    async def take_feedback(self) -> tuple[str, ...]:
        """Wait until SessionStart hooks have ended; return feedback of hooks outside of calls, each text only once."""

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """Send the call to the server and wait for the response."""

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        """Send the call to the server; the response passes as it comes. False: the call cannot be sent, or not yet."""

    def release_backpressure(self, call: Call) -> None:
        """Stop counting the call towards the limit at which reading from the agent pauses: it may wait long."""

    def release_notifications(self, call: Call) -> None:
        """Send the agent the notifications that waited for the call's output, unless hooks have replaced it."""

    def respond(self, call: Call, line: bytes) -> None:
        """Send the call's response to the agent, unless it cancelled the call."""

    def refuse_other_calls(self, call: Call, refuse: Refuse) -> None:
        """Refuse all other calls that have not been forwarded yet."""

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        """Prepare to send an answered call again: return its line with a new id, or None if the call is cancelled."""

    def follow_tasks(
        self, call: Call, record: Record, event_context: EventContext, texts: tuple[str, ...], line: bytes
    ) -> bytes:
        """Follow the tasks that a response starts; return the response as the agent may get it."""

    def sources_in_flight(self) -> Iterable[EventContext]:
        """The calls that are at the server, or go on in tasks, and whose results may get labels."""

    def start_hooks(self, event_context: EventContext) -> None:
        """Start the hooks of an event, and do not wait for them."""

    def start_elicitation_hooks(self, seen: ElicitationSeen, only_observers: bool = False) -> None:
        """Start the hooks of an elicitation, or of its answer; `only_observers` as in `SessionEvents.start_hooks`."""

    async def answer_elicitations(self, result: Members) -> dict[str, ElicitationResponse] | None:
        """The answers of hooks to all requests of an `input_required` result; None if they do not answer all."""

    def report(self, text: str) -> None:
        """Report one line to people."""

    def report_unwritten(self, problem: str) -> None:
        """Report why an audit record cannot be written, once; `problem` is empty if it has been."""

    def report_of_tool(self, tool: str, text: str) -> None:
        """Report one line about a tool, unless it has been reported before, in this session or in another one."""

    def why_lost(self) -> str:
        """Why the server no longer answers, in a sentence without a full stop."""


class CallContext(Struct):
    """One call, and all that is known of it so far."""

    call: Call
    policy: Policy
    """What judges it, from its beginning to its end."""
    services: CallServices
    record: Record
    event_context: EventContext
    """The call's last hook event, with the arguments that are forwarded."""
    earlier_round: CallRound | None = None
    """What was decided in the call's earlier round, if the agent sent our request state back."""

    @property
    def was_forwarded(self) -> bool:
        """The server has had an earlier round of this call, and rate limits have counted it."""
        return self.earlier_round is not None and self.earlier_round.approval_request is None


_EARLY_RESULTS: Final[dict[Progress, Literal["cancelled", "lost", "error"]]] = {
    Progress.NOT_SENT: "cancelled",
    Progress.NO_RESPONSE: "lost",
    Progress.ANSWERED: "error",
}


def ended_early(call: Call, services: CallServices, *, defect: bool = False) -> Failed:
    """Report that a call ends early; the agent and the audit get the same words. With `defect`, ours is the reason."""
    reason = feedback.ended_early(call.progress, call.ended_because)
    services.report(f"a call of {call.tool} has ended early: {reason}")
    return Failed(feedback.failed_call(call.id, reason), reason, "error" if defect else _EARLY_RESULTS[call.progress])


def refusal(call: Call, refuse: Refuse) -> bytes:
    """The response that tells the agent, and its model, why the call is refused."""
    return feedback.refusal(call.id, refuse, stateless=call.stateless, task=call.task, method=call.mcp_method)


def event_context_of(call: Call, policy: Policy, services: CallServices) -> EventContext:
    """The context of the call's PreToolUse event."""
    listed = services.tool(call.tool)
    groups = policy.hooks.groups
    request_id = call.key.decode(errors="replace")
    return EventContext(
        event=Event.PRE_TOOL_USE,
        session=services.session,
        tool=call.tool,
        tool_name=groups.first_tool_name(call.tool, call.alias),
        tool_use_id=id_of_agent(call) or f"call_{request_id}",
        arguments=call.arguments,
        alias=call.alias,
        annotations=listed.annotations if listed else b"",
        request_id=request_id,
        at=time(),
        agent=services.agent(),
        trace=call.trace,
    )


def id_of_agent(call: Call) -> str:
    """The id by which the agent itself knows the call; empty: it does not say."""
    for key in _ID_IN_META:
        if key in call.meta and (name := raw_json.text(bytes(call.meta[key]))):
            return name
    return ""
