"""Implements CallServices without agent and server: a call gets a given result, and all messages are recorded."""

from __future__ import annotations

from collections.abc import Iterable
from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.log import Audit
from ..hooks.evaluate import Hooks
from ..hooks.policy import Policy
from ..hooks.session_events import SessionContext
from ..jsonrpc import raw_json
from ..model.decision import ApprovalRequest, Refuse
from ..model.errors import describe_error
from ..model.hooks import Event, EventContext, Session, Tool
from ..model.settings import Settings
from ..protocol import method_forms
from ..protocol.actions import ElicitationSeen
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..protocol.elicitation_messages import ElicitationResponse
from ..protocol.request_state import RequestStates, StateSealer
from ..protocol.responses import Members
from ..protocol.router import Router
from ..session.approval import Approvals
from ..session.approval_details import ApprovalResult
from ..session.call_context import Ending, JudgesInputs
from ..session.outside_approval import Asked

if TYPE_CHECKING:
    import anyio.abc


class LastRecordAudit(Audit):
    """An audit that writes nothing, and remembers the record of the last call."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, audit_file="", audit_required=False, otel=False))
        self.record: Record | None = None

    def write(self, record: Record) -> str:
        self.record = record
        return ""


class WouldAsk(Exception):
    """A trial ends here, because a person would be asked."""


class TrialApprovals(Approvals):
    """Those of an agent that can ask a person."""

    def may_ask(self, call: Call, settings: Settings) -> bool:
        return not settings.approvers

    async def ask(self, call: Call, asked: Asked) -> ApprovalResult:
        """Raises WouldAsk."""
        raise WouldAsk


class AnsweringApprovals(Approvals):
    """Those of a person who gives this answer to whatever is asked; at a gateway, of whoever approves calls there."""

    answer = Approval.NO

    def may_ask(self, call: Call, settings: Settings) -> bool:
        return True

    def has_fallback(self, request: ApprovalRequest | None, settings: Settings) -> bool:
        return True

    def waits_outside(self, request: ApprovalRequest | None, settings: Settings, *, agent_cannot: bool) -> bool:
        return True  # otherwise the agent would get the question, and send the call again

    async def ask(self, call: Call, asked: Asked) -> ApprovalResult:
        return ApprovalResult(self.answer)


class TrialServices:
    """What a call needs from a proxy: the methods are those of CallServices, and say only what differs in a trial.

    `result` is the result of the call; None: the trial ends where it would be forwarded. `tasks` ends when all hooks
    are done.
    """

    def __init__(
        self,
        hooks: Hooks,
        settings: Settings,
        session: Session,
        router: Router,
        tasks: anyio.abc.TaskGroup,
        result: bytes | None,
    ) -> None:
        self.session = session
        self.input_requests: JudgesInputs | None = None
        self.record_audit = LastRecordAudit(settings)
        self.policy = Policy.of(hooks, settings, self.record_audit)
        self.request_states: RequestStates = StateSealer()
        session_context = SessionContext(
            self.policy, session, self.report, lambda _line: None, lambda *_task: None, lambda: None
        )  # for approvals, which are never requested
        self.approvals: Approvals = Approvals(session_context, router.handshake)
        self.trial_approvals: Approvals = TrialApprovals(session_context, router.handshake)
        """For requests of the server, about which no response of ours can ask."""
        self._answering = AnsweringApprovals(session_context, router.handshake)
        self.agent_name = ""
        """The agent's name and version as it would give them; empty: it is unknown."""
        self.response = b""
        """The line that the agent gets; empty: none."""
        self.approval_message = ""
        """What the person would be asked."""
        self.remarks: list[str] = []
        """Messages that people would get."""
        self._router = router
        self._tasks = tasks
        self._result = result

    def answer(self, approval: Approval) -> None:
        """Have a person answer so to whatever is asked. Otherwise the trial ends there."""
        self._answering.answer = approval
        self.approvals = self.trial_approvals = self._answering

    def describe_error(self, defect: BaseException) -> str:
        return describe_error(defect)

    def agent(self) -> str:
        return self.agent_name

    def protocol_version(self) -> str:
        return ""  # it is unknown

    def tool(self, name: str) -> Tool | None:
        form = method_forms.BY_NAME.get(name)
        return self._router.tools.get(name) if form is None else form.tool

    def may_have_feedback(self) -> bool:
        return False

    async def take_feedback(self) -> tuple[str, ...]:
        return ()  # no session has begun

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        if self._result is None or not self._router.calls.release(call):
            return Ending.INTERRUPTED
        self._router.from_server(response(call.sent_id or call.id, self._result))
        return raw_json.with_member(call.response_line, "id", call.id) if call.sent_id else call.response_line

    def release_notifications(self, call: Call) -> None:
        pass  # there is no server that would send any

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        return False  # every response is shown

    def release_backpressure(self, call: Call) -> None:
        pass  # nothing waits

    def respond(self, call: Call, line: bytes) -> None:
        self.response = line

    def refuse_other_calls(self, call: Call, refuse: Refuse) -> None:
        self.remarks.append(f"{refuse.by} would also deny all other calls that wait for their hooks")

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        return raw_json.with_member(line, "id", call.sent_id) if self._router.calls.prepare_retry(call) else None

    def follow_tasks(
        self, call: Call, record: Record, event_context: EventContext, texts: tuple[str, ...], line: bytes
    ) -> bytes:
        self.remarks.append("the result creates a task; hooks would run for the result of the task")
        return line

    def sources_in_flight(self) -> Iterable[EventContext]:
        return ()  # what it asks meanwhile is tried on its own

    def start_hooks(self, event_context: EventContext) -> None:
        if event_context.event is Event.NOTIFICATION:
            self.approval_message = event_context.message
        self._tasks.start_soon(self._occur, replace(event_context, at=time()))

    async def _occur(self, event_context: EventContext) -> None:
        try:
            await self.policy.hooks.run_event_hooks(event_context)
        except OSError as problem:  # too few descriptors or processes
            self.report(f"{event_context.event} hooks could not be run: {problem.strerror}")

    def start_elicitation_hooks(self, seen: ElicitationSeen, only_observers: bool = False) -> None:
        pass  # elicitations are not tried

    async def answer_elicitations(self, result: Members) -> dict[str, ElicitationResponse] | None:
        return None

    def report(self, text: str) -> None:
        self.remarks.append(text)

    def report_of_tool(self, tool: str, text: str) -> None:
        if (remark := f"{tool}: {text}") not in self.remarks:
            self.remarks.append(remark)

    def report_unwritten(self, problem: str) -> None:
        pass  # nothing is written

    def why_lost(self) -> str:
        raise AssertionError("there is no server that could end")


def response(id_lexeme: bytes, result: bytes) -> bytes:
    """The server's response with this result."""
    message = {"jsonrpc": "2.0", "id": msgspec.Raw(id_lexeme), "result": msgspec.Raw(result.replace(b"\n", b" "))}
    return raw_json.one_line(raw_json.encode(message)) + b"\n"
