"""Performs the router's actions, with one task for each call that hooks see, and serves those calls (law 1)."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Final

import anyio
import anyio.abc
from msgspec.structs import replace

from ..audit.call_record import Record, RefusedMessage
from ..audit.log import DEFERRED_SECONDS, NOT_WRITTEN, Audit
from ..hooks import bounded_cache
from ..hooks.evaluate import Hooks
from ..hooks.session_events import SessionContext, SessionEvents
from ..hooks.skipped import SkippedHooks
from ..jsonrpc import raw_json
from ..model.counts import counted
from ..model.decision import RefusalCause, Refuse
from ..model.errors import RESOURCE_HINT, describe_error, resource_shortage
from ..model.hooks import Event, Session, Tool
from ..model.settings import Delivery, Settings
from ..protocol import actions, calls, feedback, request_edits, tool_list
from ..protocol.actions import AgentAction, ServerAction
from ..protocol.calls import Call, Phase, Progress, id_key
from ..protocol.elicitations import Elicitations
from ..protocol.request_state import RequestStates, StateSealer
from ..protocol.router import Router
from ..protocol.tasks import TaskRequest
from ..transports.channel import Channel, Passage, Refuses, TakesPassages
from .approval import Approvals
from .backpressure import Backpressure
from .call import handle_call
from .call_context import Ending, event_context_of, refusal
from .change_event import ChangeEvent
from .coroutine_pool import CallCoroutine, CoroutinePool
from .elicitation_hooks import ElicitationHooks
from .hook_tool_calls import CURRENT_META, HookToolCalls
from .mcp_task import McpTasks
from .open_calls import OpenCalls
from .relay import Relay

_MAX_NOISE_SHOWN: Final = 2000  # bytes of a line that is not JSON: enough to recognise it
_BACKPRESSURE: Final = "too many bytes wait for hooks"
_PASSAGES: Final = "responses that no hook sees are on their way under a former policy"

OnToolsListed = Callable[[bytes, Sequence[Tool], str], None]
"""Gets each tools/list response, its tools, and the name that the server gives itself (empty: none)."""

Report = Callable[[str], None]
"""Reports one line to people, on standard error. Never blocks."""


class Proxy:
    """One agent, one server, and the calls between them. Without hooks everything passes."""

    __slots__ = (
        "_backpressure",
        "_final_responses",
        "_former",
        "_mcp_tasks",
        "_passages",
        "_pool",
        "_running",
        "_services",
        "_tasks",
        "answer_elicitations",
        "answers_lost_requests",
        "approvals",
        "audit",
        "changes",
        "elicitation_hooks",
        "follow_tasks",
        "hook_tool_calls",
        "hooks",
        "may_have_feedback",
        "on_tools_listed",
        "open_calls",
        "passed",
        "relay",
        "remove_secrets",
        "report",
        "report_once",
        "reports_of_tools",
        "request_states",
        "router",
        "run_changes",
        "server_lost",
        "session",
        "session_events",
        "settings",
        "skipped_hooks",
        "start_elicitation_hooks",
        "start_hooks",
    )

    def __init__(  # noqa: PLR0913  # its parts, which are made elsewhere
        self,
        agent: Channel,
        server: Channel,
        hooks: Hooks,
        settings: Settings,
        session: Session,
        audit: Audit,
        report: Report,
        *,
        may_change: bool = False,
        request_states: RequestStates | None = None,
    ) -> None:
        """With `may_change`, `change_policy` may be called: then each line is read, even if nothing is judged yet.

        `request_states` are for calls of several rounds; None: only this proxy continues them.
        """
        self.hooks = hooks
        self.settings = settings
        self.session = session
        self.audit = audit
        self.report = report
        self._passages = 0  # responses that are sent on in pieces
        groups = hooks.groups
        strict = may_change or bool(groups or hooks.has_rules or settings.audit_all_calls)  # lines must be read
        elicitations = Elicitations(groups.answers_elicitations) if groups.observes_elicitations else None
        self.router = Router(self._concerns if strict else None, elicitations, groups.alias, settings.max_depth)
        if request_states is not None:
            self.router.is_own_state = request_states.is_own
        for channel in (agent, server):
            if isinstance(channel, Refuses):
                channel.on_refused = self.note_refusal
        self.relay = Relay(agent, server, self.router, settings.max_message_bytes, strict, self._perform)
        self.router.as_line = self.relay.as_line_to_server
        self._tasks: anyio.abc.TaskGroup | None = None
        self._pool: CoroutinePool  # from `open` on
        self._running: dict[Call, CallCoroutine] = {}
        self.open_calls: OpenCalls | None = None
        """The calls of the user, of whom there may be other sessions; None: there is no limit."""
        self._final_responses: dict[Call, bytes] = {}  # responses to calls whose tasks we end
        self._backpressure = Backpressure(settings.max_message_bytes, partial(self.relay.pause_agent, _BACKPRESSURE))
        self.request_states = request_states or StateSealer()
        self.skipped_hooks = SkippedHooks(groups)
        self.answers_lost_requests = False
        """Whoever reads for the agent does not see that the server has ended: each open request gets an error then."""
        self.server_lost = ""
        """Why the server answers no more, in a sentence without a full stop; empty while it may answer."""
        self.on_tools_listed: OnToolsListed = lambda _line, _tools, _server_name: None
        self.reports_of_tools: dict[str, None] = {}
        """What was reported about tools; a gateway's sessions share one, so that each thing is reported once."""
        self.remove_secrets: Callable[[bytes], bytes] = bytes
        """What a line of the server that is not JSON goes through before it is reported."""
        """Called with each tools/list response and the server's own name, after the agent has got the response."""
        self.changes = ChangeEvent()
        self.run_changes = ChangeEvent()  # of the whole run: separate, because calls end often
        self.passed = ChangeEvent()  # lines from the server: separate, because they are many
        session_context = SessionContext(
            hooks, session, audit, report, self.relay.to_agent, self.spawn, self.changes.notify
        )
        self.session_events = SessionEvents(session_context)
        self.approvals = Approvals(session_context, self.router.handshake, settings)
        self.elicitation_hooks = ElicitationHooks(
            session_context, self.session_events, elicitations, settings, self.relay
        )
        self.hook_tool_calls = HookToolCalls(session.server, self.router, self.relay.to_server)
        self._mcp_tasks = McpTasks(self, self.router, self.changes, self.relay.to_agent, self._start)
        self.follow_tasks = self._mcp_tasks.follow
        self.start_hooks, self.start_elicitation_hooks, self.report_once = (
            self.session_events.start_hooks,
            self.session_events.start_elicitation_hooks,
            self.session_events.report_once,
        )
        self.answer_elicitations, self.may_have_feedback = (
            self.elicitation_hooks.answer_elicitations,
            self.session_events.may_have_feedback,
        )

        self._services = _Services(self)
        self._former: list[_Services] = []  # of calls that still run under an earlier policy

    def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run calls in `tasks` from now on."""
        self._tasks = tasks
        self._pool = CoroutinePool(tasks, self._run_call, self._running)
        self._open_policy()
        self.relay.on_passed = self.passed.notify

    def _open_policy(self) -> None:
        assert self._tasks is not None, "open comes before the first byte"
        self.hooks.open(
            self._tasks, self.session_events.report_hook_run, self.changes.notify, self.hook_tool_calls.call
        )
        self.audit.schedule = partial(self.spawn, self._flush_audit, self.audit)
        self.audit.report_to(self.report)

    async def _flush_audit(self, audit: Audit) -> None:
        """Write the records that wait for an idle moment."""
        await anyio.sleep(DEFERRED_SECONDS)
        if problem := audit.flush():
            self.report_once(f"{NOT_WRITTEN}: {problem}")

    @property
    def judges_nothing(self) -> bool:
        """No hook, no rule and no audit concerns any call, and none is left from an earlier policy."""
        judging = self.hooks.groups or self.hooks.has_rules or self.settings.audit_all_calls
        return not (judging or self._running or self._former)

    def open_passage(self, agent: TakesPassages, raw_id: bytes) -> Passage | None:
        """Send the response to a request on in pieces while it comes; None: it must come whole.

        As long as nothing is judged, nobody must see it whole. Where a new policy judges something, nothing is read
        from the agent until such responses have ended: so they can never become responses to judged calls.
        """
        if not (self.judges_nothing and self.router.may_pass_early(raw_id)):
            return None
        passage = agent.open_passage(raw_id, partial(self._passage_ended, raw_id))
        if passage is not None:
            self._passages += 1
        return passage

    def _passage_ended(self, raw_id: bytes) -> None:
        self._passages -= 1
        self.router.requests.settle(id_key(raw_id))
        self.passed.notify()
        if not self._passages:
            self.relay.pause_agent(_PASSAGES, False)

    def change_policy(self, hooks: Hooks, settings: Settings, audit: Audit) -> None:
        """Judge the calls that come from now on by these. Those in flight end under the policy that they began with.

        What was allowed for this session, by a person or a hook, must be allowed anew.
        """
        hooks.keep_variables(self.hooks)
        self._former.append(self._services)
        self.hooks, self.settings, self.audit = hooks, settings, audit
        if self._passages:
            self.relay.pause_agent(_PASSAGES, True)
        self.skipped_hooks = SkippedHooks(hooks.groups)
        hooks.note_tools(self.router.tools.values(), self.router.handshake.server_name)
        elicitations = self.router.elicitations
        if hooks.groups.observes_elicitations:
            elicitations = elicitations or Elicitations()
            elicitations.guarded = hooks.groups.answers_elicitations
        self.router.change_policy(hooks.groups.alias, elicitations, settings.max_depth)
        context = self.session_events.change_policy(hooks, audit)
        self.approvals.change_policy(context, settings)
        self.elicitation_hooks.change_policy(context, elicitations, settings)
        self._services = _Services(self)
        self._open_policy()
        self.spawn(self._close_former)

    async def _close_former(self) -> None:
        """Close what only earlier policies used, once no call runs under them."""
        await self.changes.until(lambda: not any(one.running for one in self._former))
        former, self._former = self._former, []
        for services in former:
            if problem := services.audit.close():
                self.report_once(f"{NOT_WRITTEN}: {problem}")
            await services.hooks.runners.aclose()

    async def aclose(self) -> str:
        """Close the hooks' runners and the audit of all policies. Returns why a record could not be written."""
        problem = ""
        for services in (*self._former, self._services):
            await services.hooks.runners.aclose()
            problem = services.audit.close() or problem
        return problem

    def _concerns(self, tool: str) -> bool:
        """True if calls of this tool are handled here; feedback of SessionStart hooks may wait for any call at all."""
        if self.settings.audit_all_calls or (
            self.session_events.feedback_pending and not self.router.handshake.uses_initialize
        ):
            return True
        return self.hooks.concerns(tool)

    def _perform(self, action: AgentAction | ServerAction, line: bytes) -> None:  # noqa: C901  # one case for each
        match action:
            case actions.StartCall(call):
                if self.open_calls is not None and self.open_calls.is_full:
                    self._refuse_further(call, self.open_calls.most)
                else:
                    self._start(call)
            case actions.CallAnswered(call):
                call.is_substitute = self.relay.is_substitute
                self._running[call].resume(call)
            case actions.CancelCall(call, forward):
                self._cancel(call, line if forward else b"")
            case actions.Refused():
                self._refuse(action, line)
            case actions.SessionOpened():
                self._open_session()
            case actions.ElicitationRequested() | actions.ElicitationAnswered():
                self.elicitation_hooks.perform(action, line)
            case actions.ElicitationWithdrawn() | actions.ElicitationCompleted():
                self.elicitation_hooks.perform(action, line)
            case actions.ApprovalAnswered():
                self.approvals.resolve(action)
            case actions.HookToolCallAnswered():
                self.hook_tool_calls.resolve(action)
            case actions.InitializeAnswered():
                self.session_events.deliver_initialize_response(line, self.router.handshake)
            case actions.ToolsListed(tools):
                server_name = self.router.handshake.server_name or tool_list.server_name(line)
                self.relay.to_agent(self._edit_tool_list(line, tools, server_name))
                self.on_tools_listed(line, tools, server_name)
            case actions.NotificationHeld():
                pass
            case actions.NotJson():
                shown = self.remove_secrets(line)[:_MAX_NOISE_SHOWN].decode(errors="replace").rstrip()
                self.report(f"the server printed a line that is not JSON: {shown}")
            case actions.Dropped(why, raw_id):
                self.report(f"dropped {why}")
                if raw_id:
                    self.relay.to_agent(feedback.unclear_response(raw_id))
                if problem := self.audit.note(self.session, f"dropped {why}"):
                    self.report_once(f"{NOT_WRITTEN}: {problem}")
            case _:
                raise AssertionError(f"{action} is for the relay")

    def _refuse(self, refused: actions.Refused, line: bytes) -> None:
        """The only place where a message of the agent is refused: no refusal leaves without its audit line (law 3)."""
        self.report(f"refused a message of the agent: {refused.why}")
        self.note_refusal(refused.why, refused.id, line)
        self.relay.to_agent(feedback.refused_message(refused.id, refused.why, unreadable=refused.unreadable))

    def note_refusal(self, why: str, raw_id: bytes, line: bytes) -> None:
        """Write the audit line of a refused message; a channel that refuses one itself calls this (`Refuses`)."""
        if problem := self.audit.note_refusal(self.session, RefusedMessage(why, raw_id, line, self.agent())):
            self.report_once(f"{NOT_WRITTEN}: {problem}")

    def spawn(self, function: Callable[..., Coroutine[object, object, None]], *arguments: object) -> None:
        """Run a coroutine beside the calls; it is cancelled when the session ends."""
        assert self._tasks is not None, "open comes before the first byte"
        self._tasks.start_soon(function, *arguments)

    def _start(self, call: Call) -> None:
        self._backpressure.add(call)
        self._pool.start(call)

    def limit_calls(self, open_calls: OpenCalls) -> None:
        """Refuse calls while the user has as many as may be; `open_calls` counts those of this session from now on."""
        self.open_calls = open_calls
        open_calls.add(self._running)

    def unlimit_calls(self) -> None:
        """The session has ended: its calls count no longer."""
        if self.open_calls is not None:
            self.open_calls.remove(self._running)

    def _refuse_further(self, call: Call, most: int) -> None:
        why = feedback.too_many_calls(most)
        self.report_once(f"refused a call: {why}")
        if isinstance(call, TaskRequest):
            self.note_refusal(why, call.id, call.line)
        else:
            self._record_refusal(call, why)
        text = feedback.ended_early(Progress.NOT_SENT, why, task_request=isinstance(call, TaskRequest))
        self.respond(call, feedback.failed_call(call.id, text))

    def _record_refusal(self, call: Call, why: str) -> None:
        """Write the audit record of a call that no hook and no rule has seen."""
        services = self._services
        session = services.session
        record = Record(session.id, session.server, call.tool, call.id, call.arguments, services.agent())
        record.decision, record.result, record.reason = "deny", "refused", why
        record.cause, record.by = RefusalCause.LIMIT.value, "gateway.max_requests"
        services.audit.begin(record, call)
        if problem := services.audit.write(record):
            self.report_once(f"{NOT_WRITTEN}: {problem}")

    async def _run_call(self, call: Call) -> None:
        """One call's task. A defect in it ends this call alone, and never lets it pass without its hooks."""
        services = self._services
        services.running += 1
        try:
            if services.hooks.groups.has_mcp_tool_hooks:
                CURRENT_META.set(None if isinstance(call, TaskRequest) else call.meta)
            await (
                self._mcp_tasks.handle_message(call) if isinstance(call, TaskRequest) else handle_call(call, services)
            )
        except Exception as defect:  # the task's boundary: fail closed, and report it
            what = describe_error(defect)
            shortage = f"a call of {call.tool} cannot be handled: {what}; {RESOURCE_HINT}"
            self.report(shortage if resource_shortage(defect) else "".join(traceback.format_exception(defect)).rstrip())
            call.ended_because = call.ended_because or f"hookproxy could not complete this call ({what})"
        finally:
            services.running -= 1
            del self._running[call]
            self._mcp_tasks.close(call)
            if call.holds_notifications and call.key not in self.router.calls:  # else its response will follow
                self.release_notifications(call)
            self._backpressure.remove(call)
            if call in self._final_responses:
                self.respond(call, self._final_responses.pop(call))
            elif call.ended_because:
                about_task = isinstance(call, TaskRequest)
                text = feedback.ended_early(call.progress, call.ended_because, task_request=about_task)
                self.respond(call, feedback.failed_call(call.id, text))  # calls have responded in most cases
            self.changes.notify()

    def _cancel(self, call: Call, notification: bytes) -> None:
        if not notification:
            self._running[call].cancel()
        else:
            self.relay.to_server(self.router.as_line(calls.cancellation(notification, call)))
            if call in self._running:  # its task may have ended already
                self._running[call].resume(call)
        if not isinstance(call, TaskRequest):
            self.session_events.start_hooks(replace(event_context_of(call, self), event=Event.STOP))

    def _open_session(self) -> None:
        for source in self.hooks.groups.sources_run_by(self.agent()):
            self.report(f"{self.agent()} runs the hooks of {source} itself, so they now run twice for each call")
        self.session_events.begin_session()
        self.spawn(self._prepare_names)

    async def _prepare_names(self) -> None:
        """Import what recognises tools while the server answers: at the first call it would take longer, or fail."""
        self.hooks.prepare_names()

    def _edit_tool_list(self, line: bytes, tools: Sequence[Tool], server_name: str) -> bytes:
        renamed = self.hooks.note_tools(tools, server_name)
        self.router.forget_judged_tools(list(self.router.tools) if renamed else [tool.name for tool in tools])
        if self.settings.feedback is Delivery.STRIP_OUTPUT_SCHEMA:
            line = feedback.without_output_schemas(line, self._concerns)
        return feedback.without_tools(line, self.hooks.hides) if self.hooks.has_rules else line

    # --- what calls need (CallServices) ---

    def agent(self) -> str:
        """As in CallServices."""
        return self.router.handshake.agent_name

    def tool(self, name: str) -> Tool | None:
        """As in CallServices."""
        return self.router.tools.get(name)

    async def take_feedback(self) -> tuple[str, ...]:
        """As in CallServices."""
        return await self.session_events.take_feedback(self.router.handshake.uses_initialize)

    def release_backpressure(self, call: Call) -> None:
        """As in CallServices."""
        self._backpressure.remove(call)

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """As in CallServices."""
        if self.relay.passing:  # the line that is being passed must not turn into this call's response
            await self.passed.until(lambda: not self.relay.passing)
        if self.server_lost or self.relay.server.gone:
            return Ending.LOST
        if not self.router.release(call):
            if not call.sent_id:  # it is not forwarded, because its task is being cancelled: wait for that here
                await anyio.sleep_forever()
            return Ending.INTERRUPTED
        self.relay.to_server(line)
        self._backpressure.remove(call)
        await self._running[call].wait()
        if call.phase is Phase.CANCELLED:
            return Ending.INTERRUPTED
        return (call.sent_id and request_edits.with_agent_id(call)) or call.response_line or Ending.LOST

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        """As in CallServices."""
        if self.relay.passing or self.server_lost or self.relay.server.gone:
            return False
        if not self.router.release(call, unseen=True):
            return False
        self.relay.to_server(line)
        return True

    def respond(self, call: Call, line: bytes) -> None:
        """As in CallServices."""
        if self.router.finish(call):
            self.release_notifications(call)  # what is about a call comes before its response
            self.relay.to_agent(line)

    def release_notifications(self, call: Call) -> None:
        """As in CallServices."""
        released = self.router.held.release(call, self.router.tasks)
        for notification in released.lines:
            self.relay.to_agent(notification)
        if released.dropped:
            text = f"dropped {counted(released.dropped, 'notification')} that may repeat the output of {call.tool}"
            self.report(text)
            if problem := self.audit.note(self.session, text):
                self.report_once(f"{NOT_WRITTEN}: {problem}")

    def refuse_other_calls(self, call: Call, refuse: Refuse) -> None:
        """As in CallServices."""
        for other in list(self._running):
            if other.phase is Phase.HELD and other is not call:
                other.stopped_by = f"{refuse.by} stopped all calls: {refuse.reason}"
                self.session_events.start_hooks(
                    replace(event_context_of(other, self), event=Event.PERMISSION_DENIED, message=refuse.reason)
                )
                self._final_responses[other] = refusal(other, refuse)
                self._stop(other)

    def end_unforwarded(self, why: str) -> None:
        """End all calls that have not been forwarded; `why` is a sentence without a full stop."""
        self.end_calls(why, [call for call in self._running if call.phase is Phase.HELD])

    def end_all(self, why: str) -> None:
        """End all calls: what its hooks have not allowed by now does not pass. `why` as in `end_unforwarded`."""
        self.end_calls(why, list(self._running))

    def end_calls(self, why: str, running: Sequence[Call]) -> None:
        """End these calls; `why` as in `end_unforwarded`."""
        for call in running:
            call.ended_because = call.ended_because or why
            self._stop(call)

    def _stop(self, call: Call) -> None:
        call.stop()  # its hook may have ended just now, and its task must not go on to forward it
        self._running[call].cancel()

    def handle_server_exit(self, why: str) -> None:
        """End all calls, because the server answers no more; `why` as in `end_unforwarded`."""
        self.server_lost = why
        self.elicitation_hooks.handle_server_exit()
        self.hook_tool_calls.handle_server_exit()
        self.end_unforwarded(why)
        for call, coroutine in self._running.items():
            coroutine.resume(call)
        for raw_id in self.router.requests.released.values():
            self.relay.to_agent(feedback.failed_call(raw_id, feedback.ended_early(Progress.NO_RESPONSE, why)))
        if self.answers_lost_requests:
            for raw_id in self.router.requests.unanswered():
                self.relay.to_agent(feedback.remote_failure(raw_id, why, Progress.NO_RESPONSE, is_call=False))
        self._mcp_tasks.handle_server_exit()

    def why_lost(self) -> str:
        """As in CallServices."""
        return self.server_lost or "The MCP server has closed its input"

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        """As in CallServices."""
        if not self.router.prepare_retry(call):
            return None
        return raw_json.with_member(line, "id", call.sent_id)

    def report_of_tool(self, tool: str, text: str) -> None:
        """As in CallServices."""
        key = f"{self.session.server}/{tool}: {text}"
        if key not in self.reports_of_tools:
            bounded_cache.keep(self.reports_of_tools, key, None)
            self.report(f"{tool}: {text}")

    @property
    def has_open_calls(self) -> bool:
        """Some call, or a response that hooks may add to, is not finished."""
        return bool(self._running or self.session_events.pending_initialize_responses)

    @property
    def has_background_hooks(self) -> bool:
        """A hook runs that no call waits for."""
        return self.hooks.background.running > 0 or self.session_events.running > 0

    @property
    def has_undecided(self) -> bool:
        """Some call, elicitation, or answer to one waits for hooks that decide whether it passes."""
        return self.elicitation_hooks.has_undecided or any(call.phase is Phase.HELD for call in self._running)


class _Services:
    """As CallServices: the proxy with the policy under which a call began."""

    def __init__(self, proxy: Proxy) -> None:
        self.running = 0
        """Calls that use it."""
        self.hooks, self.settings, self.audit = proxy.hooks, proxy.settings, proxy.audit
        self.skipped_hooks, self.approvals = proxy.skipped_hooks, proxy.approvals
        self.request_states = proxy.request_states
        self.session = proxy.session
        self.agent, self.tool, self.take_feedback = proxy.agent, proxy.tool, proxy.take_feedback
        self.forward, self.forward_without_waiting = proxy.forward, proxy.forward_without_waiting
        self.release_notifications = proxy.release_notifications
        self.release_backpressure, self.respond = proxy.release_backpressure, proxy.respond
        self.refuse_other_calls, self.prepare_repeat = proxy.refuse_other_calls, proxy.prepare_repeat
        self.follow_tasks, self.start_hooks = proxy.follow_tasks, proxy.start_hooks
        self.start_elicitation_hooks, self.answer_elicitations = (
            proxy.start_elicitation_hooks,
            proxy.answer_elicitations,
        )
        self.may_have_feedback, self.why_lost = proxy.may_have_feedback, proxy.why_lost
        self.report, self.report_once = proxy.report, proxy.report_once
        self.report_of_tool = proxy.report_of_tool
