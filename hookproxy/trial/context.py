"""A desk without agent and server: a call comes to the result that was given for it, and everything is kept."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ..audit.log import Audit, Record
from ..hooks.evaluate import Hooks
from ..hooks.session_events import SessionContext
from ..jsonrpc import raw_json
from ..model.decision import Refuse
from ..model.hooks import Event, EventContext, Session, Tool
from ..model.settings import Settings
from ..protocol.actions import ElicitationSeen
from ..protocol.calls import Call
from ..protocol.elicitation_messages import Answer
from ..protocol.request_state import StateSealer
from ..protocol.responses import Members
from ..protocol.router import Router
from ..session.approval import Approvals
from ..session.call_context import Ending

if TYPE_CHECKING:
    import anyio.abc


class Kept(Audit):
    """An audit that writes nothing, and keeps the record of the last call."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, audit_file="", audit_required=False, otel=False))
        self.record: Record | None = None

    def write(self, record: Record) -> str:
        """As of Audit."""
        self.record = record
        return ""


class TrialServices:
    """What a call needs of a proxy. `given` is the result that it comes to; None: it ends where it would be forwarded.

    `tasks` ends when all hooks have spoken.
    """

    def __init__(
        self,
        hooks: Hooks,
        settings: Settings,
        session: Session,
        router: Router,
        tasks: anyio.abc.TaskGroup,
        given: bytes | None,
    ) -> None:
        self.hooks = hooks
        self.settings = settings
        self.session = session
        self.kept = Kept(settings)
        self.audit: Audit = self.kept
        self.state_sealer = StateSealer()
        around = SessionContext(
            hooks, session, self.kept, self.report, lambda _line: None, lambda *_task: None, lambda: None
        )  # for questions that are never asked
        self.approvals = Approvals(around, router.handshake, settings)
        self.answered = b""
        """The line that the agent gets; empty: it gets none."""
        self.question = ""
        """What the person would be asked."""
        self.remarks: list[str] = []
        """What people would be told."""
        self._board = router
        self._tasks = tasks
        self._given = given

    def agent(self) -> str:
        """As in CallServices: nobody has said who it is."""
        return ""

    def tool(self, name: str) -> Tool | None:
        """As in CallServices: nothing has been listed."""
        return self._board.tools.get(name)

    def may_have_feedback(self) -> bool:
        """As in CallServices."""
        return False

    async def take_feedback(self) -> tuple[str, ...]:
        """As in CallServices: no session has begun."""
        return ()

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """As in CallServices."""
        if self._given is None or not self._board.release(call):
            return Ending.INTERRUPTED
        self._board.from_server(answer(call.sent_id or call.id, self._given))
        return raw_json.with_member(call.answer, "id", call.id) if call.sent_id else call.answer

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        """As in CallServices: every answer is shown."""
        return False

    def release_backpressure(self, call: Call) -> None:
        """As in CallServices: nothing waits."""

    def respond(self, call: Call, line: bytes) -> None:
        """As in CallServices."""
        self.answered = line

    def refuse_other_calls(self, call: Call, refuse: Refuse) -> None:
        """As in CallServices: there are no others."""
        self.remarks.append(f"{refuse.by} would deny all other calls that wait for their hooks, too")

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        """As in CallServices: what it comes to will be the same."""
        return raw_json.with_member(line, "id", call.sent_id) if self._board.repeat(call) else None

    def follow_tasks(
        self, call: Call, record: Record, event_context: EventContext, texts: tuple[str, ...], line: bytes
    ) -> bytes:
        """As in CallServices: there is no task to follow."""
        self.remarks.append("the result hands over a task, whose own result hooks would be asked about")
        return line

    def start_hooks(self, event_context: EventContext) -> None:
        """As in CallServices; `tasks` waits for them."""
        if event_context.event is Event.NOTIFICATION:
            self.question = event_context.message
        self._tasks.start_soon(self._run_hooks, replace(event_context, at=time()))

    async def _run_hooks(self, event_context: EventContext) -> None:
        try:
            await self.hooks.run_event_hooks(event_context)
        except OSError as problem:  # too few descriptors or processes
            self.report(f"{event_context.event} hooks could not be run: {problem.strerror}")

    def start_elicitation_hooks(self, seen: ElicitationSeen, only_observers: bool = False) -> None:
        """As in CallServices: questions of a server are not tried."""

    async def answer_elicitations(self, result: Members) -> dict[str, Answer] | None:
        """As in CallServices: questions of a server are not tried."""
        return None

    def report(self, text: str) -> None:
        """As in CallServices."""
        self.remarks.append(text)

    def report_once(self, text: str) -> None:
        """As in CallServices."""
        if text not in self.remarks:
            self.remarks.append(text)

    def lost_response(self, call: Call) -> bytes:
        """As in CallServices."""
        raise AssertionError("there is no server to be lost")


def answer(id_lexeme: bytes, result: bytes) -> bytes:
    """The server's line with this result."""
    message = {"jsonrpc": "2.0", "id": msgspec.Raw(id_lexeme), "result": msgspec.Raw(result.replace(b"\n", b" "))}
    return raw_json.one_line(raw_json.encode(message)) + b"\n"
