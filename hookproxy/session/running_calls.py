"""The judged calls of a session: each runs in a coroutine of its own, and this serves them (`CallServices`; law 1).

`protocol/inflight` owns the phases of a call; here are the coroutines that wait in them. What must hold:

- A call runs under the policy of its beginning. A former policy is closed when no call runs under it.
- A coroutine is cancelled only before its call is forwarded, or with the whole session. A forwarded call is resumed:
  with the response, or without one, and its coroutine finds out why.
- Whatever happens to the coroutine, its call gets one response, unless the agent has cancelled it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from typing import Final

import anyio
import anyio.abc
from msgspec.structs import replace

from ..audit.call_record import Record, RefusedMessage
from ..hooks import bounded_cache
from ..hooks.policy import Policy
from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import raw_json
from ..model.call_end import Refused
from ..model.counts import counted
from ..model.decision import RefusalCause, Refuse
from ..model.errors import RESOURCE_HINT, resource_shortage
from ..model.hooks import Event, EventContext, Tool
from ..policy import methods
from ..protocol import calls, feedback, method_forms, request_edits
from ..protocol.calls import Call, Phase, Progress
from ..protocol.request_state import RequestStates
from ..protocol.router import Router
from ..protocol.tasks import TaskRequest, TaskStage
from .approval import Approvals
from .call import handle_call
from .call_context import Ending, JudgesInputs, event_context_of, refusal
from .change_event import ChangeEvent
from .coroutine_pool import CallCoroutine, CoroutinePool
from .elicitation_hooks import ElicitationHooks
from .hook_tool_calls import CURRENT_META
from .mcp_task import McpTasks
from .relay import Relay

_BACKPRESSURE: Final = "too many bytes wait for hooks"


class RunningCalls:
    """The judged calls of one session whose coroutines have not ended, and all that `CallServices` promises them.

    It is long because it is the one place that has both, a coroutine and the call that it runs: each way in which one
    of them ends must end the other.
    """

    def __init__(  # noqa: PLR0913  # the parts of a session, which are made elsewhere
        self,
        session_context: SessionContext,
        session_events: SessionEvents,
        elicitation_hooks: ElicitationHooks,
        request_states: RequestStates,
        router: Router,
        relay: Relay,
        changes: ChangeEvent,
    ) -> None:
        self._context = session_context
        self.describe_error = session_context.describe_error
        self._session_events = session_events
        self._router = router
        self._relay = relay
        self._running: dict[Call, CallCoroutine] = {}
        self._pool: CoroutinePool  # from `open` on
        self.policies = PoliciesInUse(session_context.policy)
        self._open_calls: OpenCalls | None = None  # of the user, of whom there may be other sessions; None: no limit
        limit = session_context.policy.settings.max_message_bytes
        self._backpressure = Backpressure(limit, partial(relay.pause_agent, _BACKPRESSURE))
        self.server_lost = ""
        """Why the server no longer answers, in a sentence without a full stop; empty while it may answer."""
        self.refuse: Callable[[str], Refuse | None] | None = None
        """Says of a tool why its calls are refused whatever hooks say; None: no tool's are."""
        self.begun = 0
        """How many judged calls there have been."""
        self.reports_of_tools: dict[str, None] = {}
        """What was reported about tools; a gateway's sessions share one, so that each thing is reported once."""
        self.changes = changes
        self.passed = ChangeEvent()
        """Lines from the server have passed: separate, because they are many."""
        self.on_first_passed: Callable[[], None] = lambda: None
        """Called once, when the first of them have."""
        self.session, self.request_states, self.report = session_context.session, request_states, session_context.report
        self.input_requests: JudgesInputs | None = None
        self.approvals = Approvals(session_context, router.handshake)
        self.start_hooks, self.report_unwritten = session_events.start_hooks, session_events.report_unwritten
        self.start_elicitation_hooks = session_events.start_elicitation_hooks
        self.may_have_feedback = session_events.may_have_feedback
        self.answer_elicitations = elicitation_hooks.answer_elicitations
        self._mcp_tasks = McpTasks(self, router, changes, relay.to_agent, self._start)
        self.follow_tasks = self._mcp_tasks.follow

    def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run calls in `tasks` from now on."""
        self._pool = CoroutinePool(tasks, self._handle, self._running)
        self._relay.on_passed = self._first_passed

    def _first_passed(self) -> None:
        self._relay.on_passed = self.passed.notify
        self.on_first_passed()
        self.passed.notify()

    @property
    def policy(self) -> Policy:
        """As in CallServices."""
        return self._context.policy

    # --- a call begins ---

    def limit(self, open_calls: OpenCalls) -> None:
        """Refuse calls while the user has as many as may be; `open_calls` counts those of this session from now on."""
        self._open_calls = open_calls
        open_calls.add_session(self._running)

    def unlimit(self) -> None:
        """The session has ended: its calls count no longer."""
        if self._open_calls is not None:
            self._open_calls.remove_session(self._running)

    def begin(self, call: Call) -> None:
        """Run a call, or refuse it because the user has too many."""
        self.begun += 1
        if self.refuse is not None and not isinstance(call, TaskRequest) and (refused := self.refuse(call.tool)):
            self._refuse_withheld(call, refused)
        elif self._open_calls is not None and self._open_calls.is_full:
            self._refuse_further(call, self._open_calls.most)
        else:
            self._start(call)

    def _start(self, call: Call) -> None:
        self._backpressure.add_call(call)
        self._pool.start(call)

    def _refuse_withheld(self, call: Call, refuse: Refuse) -> None:
        """Refuse a call of a tool that is not as it was recorded: no hook needs to see it."""
        audit, session = self.policy.audit, self.session
        line = refusal(call, refuse)
        record = Record(session.id, session.server, call.tool, call.id, call.arguments, self.agent())
        record.protocol = self.protocol_version()
        record.note_end(Refused(line, refuse.reason, refuse.cause.value, refuse.by))
        audit.begin(record, call)
        self.report_unwritten(audit.write(record))
        self.respond(call, line)

    def _refuse_further(self, call: Call, most: int) -> None:
        why = feedback.too_many_calls(most)
        about_task = isinstance(call, TaskRequest)
        line = feedback.failed_call(call.id, feedback.ended_early(Progress.NOT_SENT, why, task_request=about_task))
        self._session_events.report_once(f"refused a call: {why}")
        audit, session, agent = self.policy.audit, self.session, self.agent()
        if about_task:
            problem = audit.note_refusal(session, RefusedMessage(why, call.id, call.line, agent))
        else:
            record = Record(session.id, session.server, call.tool, call.id, call.arguments, agent)
            record.note_end(Refused(line, why, RefusalCause.LIMIT.value, "gateway.max_requests"))
            audit.begin(record, call)
            problem = audit.write(record)
        self.report_unwritten(problem)
        self.respond(call, line)

    async def _handle(self, call: Call) -> None:
        """One call's coroutine. A defect in it ends this call alone, and never lets it pass without its hooks."""
        policy = self.policy
        self.policies.begin_call(policy)
        try:
            if policy.hooks.groups.has_mcp_tool_hooks:
                CURRENT_META.set(None if isinstance(call, TaskRequest) else call.meta)
            if isinstance(call, TaskRequest):
                await self._mcp_tasks.handle_message(call)
            else:
                await handle_call(call, self)
        except Exception as defect:  # the task's boundary: fail closed, and report it
            what = self.describe_error(defect)
            shortage = f"a call of {call.tool} cannot be handled: {what}; {RESOURCE_HINT}"
            self.report(shortage if resource_shortage(defect) else "".join(traceback.format_exception(defect)).rstrip())
            call.ended_because = call.ended_because or f"hookproxy could not complete this call ({what})"
        finally:
            self.policies.end_call(policy)
            del self._running[call]
            self._mcp_tasks.close(call)
            if call.tool == methods.SUBSCRIBE and not isinstance(call, TaskRequest):
                self._router.note_subscription(call.arguments, refused=call.progress is Progress.NOT_SENT)
            if call.holds_notifications and call.key not in self._router.calls:  # else its response will follow
                self.release_notifications(call)
            self._backpressure.remove_call(call)
            if call.stopped_by is not None:  # calls have responded in most cases
                self.respond(call, refusal(call, call.stopped_by))
            elif call.ended_because:
                about_task = isinstance(call, TaskRequest)
                text = feedback.ended_early(call.progress, call.ended_because, task_request=about_task)
                self.respond(call, feedback.failed_call(call.id, text))
            self.changes.notify()

    # --- what happens to calls ---

    def resume(self, call: Call) -> None:
        """The server has answered the call."""
        call.is_substitute = self._relay.is_substitute
        self._running[call].resume(call)

    def cancel(self, call: Call, notification: bytes) -> None:
        """The agent has cancelled the call. Of a forwarded one, the server gets the notification; else it is empty."""
        if not notification:
            self._running[call].cancel()
        else:
            self._relay.to_server(self._router.as_line(calls.cancellation(notification, call)))
            if call in self._running:  # its task may have ended already
                self._running[call].resume(call)
        if not isinstance(call, TaskRequest):
            self.start_hooks(replace(event_context_of(call, self.policy, self), event=Event.STOP))

    def end_unforwarded(self, why: str) -> None:
        """End all calls that have not been forwarded; `why` is a sentence without a full stop."""
        self.end_calls([call for call in self._running if call.phase is Phase.HELD], why)

    def end_all(self, why: str) -> None:
        """End all calls: what its hooks have not allowed by now does not pass. `why` as in `end_unforwarded`."""
        self.end_calls(list(self._running), why)

    def end_waiting(self, why: str) -> None:
        """End what waits for an approval of the agent, which will not come; `why` as in `end_unforwarded`.

        A request of the server is then refused, as one that nobody has approved.
        """
        waiting = self.approvals.waiting_calls
        self.end_calls([call for call in waiting if call in self._running], why)
        self.approvals.give_up([call for call in waiting if call not in self._running])

    def end_calls(self, running: Sequence[Call], why: str) -> None:
        """End these calls; `why` as in `end_unforwarded`."""
        for call in running:
            call.ended_because = call.ended_because or why
            self._stop(call)

    def _stop(self, call: Call) -> None:
        call.stop()  # its hook may have ended just now, and its task must not go on to forward it
        self._running[call].cancel()

    def handle_server_exit(self, why: str) -> None:
        """End all calls, because the server no longer answers; `why` as in `end_unforwarded`."""
        self.server_lost = why
        self.end_unforwarded(why)
        for call, coroutine in self._running.items():
            coroutine.resume(call)
        for raw_id in self._router.requests.released.values():
            self._relay.to_agent(feedback.failed_call(raw_id, feedback.ended_early(Progress.NO_RESPONSE, why)))
        self._mcp_tasks.handle_server_exit()

    @property
    def are_running(self) -> bool:
        """Some call has not ended."""
        return bool(self._running)

    @property
    def are_undecided(self) -> bool:
        """Some call waits for the hooks that decide whether it passes."""
        return any(call.phase is Phase.HELD for call in self._running)

    # --- what calls need (CallServices) ---

    def agent(self) -> str:
        """As in CallServices."""
        return self._router.handshake.agent_name

    def protocol_version(self) -> str:
        """As in CallServices."""
        return self._router.handshake.protocol_version

    def tool(self, name: str) -> Tool | None:
        """As in CallServices."""
        form = method_forms.BY_NAME.get(name)
        return self._router.tools.get(name) if form is None else form.tool

    async def take_feedback(self) -> tuple[str, ...]:
        """As in CallServices."""
        return await self._session_events.take_feedback(self._router.handshake.uses_initialize)

    def release_backpressure(self, call: Call) -> None:
        """As in CallServices."""
        self._backpressure.remove_call(call)

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """As in CallServices."""
        if self._relay.passing:  # the line that is being passed must not turn into this call's response
            await self.passed.until(lambda: not self._relay.passing)
        if self.server_lost or self._relay.server.gone:
            return Ending.LOST
        if not self._router.calls.release(call):
            if not call.sent_id:  # it is not forwarded, because its task is being cancelled: wait for that here
                await anyio.sleep_forever()
            return Ending.INTERRUPTED
        self._relay.to_server(line)
        self._backpressure.remove_call(call)
        await self._running[call].wait()
        if call.phase is Phase.CANCELLED:
            return Ending.INTERRUPTED
        return (call.sent_id and request_edits.with_agent_id(call)) or call.response_line or Ending.LOST

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        """As in CallServices."""
        if self._relay.passing or self.server_lost or self._relay.server.gone:
            return False
        if not self._router.calls.release(call, unseen=True):
            return False
        self._relay.to_server(line)
        return True

    def respond(self, call: Call, line: bytes) -> None:
        """As in CallServices."""
        if self._router.calls.finish(call):
            self._release(call, line)

    def release_notifications(self, call: Call) -> None:
        """As in CallServices."""
        self._release(call)

    def _release(self, call: Call, *response: bytes) -> None:
        """Send the agent what has waited for the call, and its response where the server has sent it."""
        released = self._router.held.release(call, self._router.tasks)
        for line in (*released.lines, *response, *released.behind):
            self._relay.to_agent(line)
        if released.dropped:
            text = f"dropped {counted(released.dropped, 'notification')} that may repeat the output of {call.tool}"
            self.report(text)
            self._session_events.note_in_audit(text)

    def sources_in_flight(self) -> Iterator[EventContext]:
        """As in CallServices."""
        for call in self._router.calls.values():
            if call.progress is not Progress.NOT_SENT and self.policy.hooks.has_source(call.tool):
                context = event_context_of(call, self.policy, self)
                yield replace(context, arguments=call.final_arguments or call.arguments)
        for task in self._router.tasks.values():
            if task.stage is not TaskStage.JUDGED and task.event_context is not None:
                yield task.event_context

    def refuse_other_calls(self, call: Call, refuse: Refuse) -> None:
        """As in CallServices."""
        for other in list(self._running):
            if other.phase is Phase.HELD and other is not call:
                other.stopped_by = refuse
                context = event_context_of(other, self.policy, self)
                self.start_hooks(replace(context, event=Event.PERMISSION_DENIED, message=refuse.reason))
                self._stop(other)

    def why_lost(self) -> str:
        """As in CallServices."""
        return self.server_lost or "The MCP server has closed its input"

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        """As in CallServices."""
        if not self._router.calls.prepare_retry(call):
            return None
        return raw_json.with_member(line, "id", call.sent_id)

    def report_of_tool(self, tool: str, text: str) -> None:
        """As in CallServices."""
        key = f"{self.session.server}/{tool}: {text}"
        if key not in self.reports_of_tools:
            bounded_cache.keep(self.reports_of_tools, key, None)
            self.report(f"{tool}: {text}")


class PoliciesInUse:
    """The policies under which calls run: the newest one begins calls, and a former one ends with its last call."""

    def __init__(self, first: Policy) -> None:
        self._calls: dict[Policy, int] = {first: 0}  # how many run under each; the newest last

    @property
    def has_former(self) -> bool:
        """Calls may still run under an earlier policy."""
        return len(self._calls) > 1

    def add(self, policy: Policy) -> None:
        """Calls begin under this policy from now on."""
        self._calls[policy] = 0

    def begin_call(self, policy: Policy) -> None:
        """A call runs under this policy."""
        self._calls[policy] += 1

    def end_call(self, policy: Policy) -> None:
        """A call has ended that ran under this policy."""
        self._calls[policy] -= 1

    async def close_former(self, changes: ChangeEvent) -> str:
        """Close what only earlier policies used, once no call runs under them; each end of a call is in `changes`.

        Returns why a record could not be written.
        """

        def former() -> list[Policy]:
            return list(self._calls)[:-1]

        await changes.until(lambda: not any(self._calls[policy] for policy in former()))
        ended = former()
        for policy in ended:  # all before the first wait, in which another policy may come
            del self._calls[policy]
        problem = ""
        for policy in ended:
            problem = await _close(policy) or problem
        return problem

    async def aclose(self) -> str:
        """Close the hooks' runners and the audit of all policies. Returns why a record could not be written."""
        problem = ""
        for policy in self._calls:
            problem = await _close(policy) or problem
        return problem


async def _close(policy: Policy) -> str:
    await policy.hooks.runners.aclose()
    return policy.audit.close()


class Backpressure:
    """The bytes of calls that wait for hooks: beyond a limit nothing more is read from the agent, to bound memory.

    `pause` is called with True beyond `limit` bytes, and with False when they fall below it.
    """

    def __init__(self, limit: int, pause: Callable[[bool], None]) -> None:
        self._limit = limit
        self._pause = pause
        self._calls: set[Call] = set()
        self._bytes = 0
        self._full = False

    def add_call(self, call: Call) -> None:
        """The call begins to wait."""
        self._calls.add(call)
        self._bytes += len(call.line)
        if self._bytes > self._limit:
            self._full = True
            self._pause(True)

    def remove_call(self, call: Call) -> None:
        """The call waits no longer. May be called again for the same call."""
        if call in self._calls:
            self._calls.remove(call)
            self._bytes -= len(call.line)
            if self._full and self._bytes <= self._limit:
                self._full = False
                self._pause(False)


class OpenCalls:
    """The judged calls of one user in all sessions that have no response: a further one than `most` gets an error.

    Reading from the agent does not pause, because calls in flight may wait for what the agent sends.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        """`most` returns how many there may be now."""
        self._most = most
        self._sessions: list[Sized] = []

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._most()

    @property
    def is_full(self) -> bool:
        """No further one may begin."""
        return sum(map(len, self._sessions)) >= self._most()

    def add_session(self, calls: Sized) -> None:
        """Count the calls of one more session, as many as it has at the time."""
        self._sessions.append(calls)

    def remove_session(self, calls: Sized) -> None:
        """The session has ended."""
        self._sessions = [others for others in self._sessions if others is not calls]
