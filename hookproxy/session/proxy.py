"""One agent and one server: performs the router's actions, and gives each judged call to `RunningCalls` (law 1).

What it owns: the parts of the session, made here and connected here; the policy, in the context that they share. A
reload is one assignment: `context.policy`. Calls in flight keep the policy of their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import anyio
import anyio.abc

from ..audit.call_record import RefusedMessage
from ..audit.log import DEFERRED_SECONDS, Audit
from ..hooks.evaluate import Hooks
from ..hooks.policy import Policy
from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc.known_secrets import KnownSecrets
from ..model.hooks import Session, Tool
from ..model.settings import RootsRule, Settings
from ..policy.methods import JUDGED, ROOTS, Direction
from ..policy.shared_state import NativeCalls
from ..protocol import actions, feedback, tool_list
from ..protocol.actions import AgentAction, ServerAction
from ..protocol.calls import Progress, id_key
from ..protocol.elicitations import Elicitations
from ..protocol.inflight import INITIALIZE, TOOLS_LIST
from ..protocol.request_state import RequestStates, StateSealer
from ..protocol.roots import Roots
from ..protocol.router import Router
from ..transports.channel import Channel, Passage, Refuses, TakesPassages
from .change_event import ChangeEvent
from .elicitation_hooks import ElicitationHooks
from .hook_tool_calls import HookToolCalls
from .relay import Relay
from .running_calls import RunningCalls
from .server_lists import ServerLists
from .server_requests import ServerRequests
from .tap import Watching

if TYPE_CHECKING:
    from .hidden_secrets import HiddenSecrets

_MAX_NOISE_SHOWN: Final = 2000  # characters of a line that is not JSON: enough to recognise it
_PASSAGES: Final = "responses that no hook sees are on their way under a former policy"

OnToolsListed = Callable[[bytes, Sequence[Tool], str], None]
"""Gets each tools/list response, its tools, and the name that the server gives itself (empty: none)."""

Report = Callable[[str], None]
"""Reports one line to people, on standard error. Never blocks."""


class Proxy:
    """One agent, one server, and the calls between them. Without hooks everything passes.

    It is long because it is where the parts of a session meet: each of its functions hands one thing that has happened
    from one part to another, and decides nothing itself.
    """

    calls_type: ClassVar[type[RunningCalls]] = RunningCalls
    """What runs the calls."""

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
        watch: Callable[[Proxy], Watching] | None = None,
        secrets: HiddenSecrets | None = None,
    ) -> None:
        """With `may_change`, `change_policy` may be called: then each line is read, even if nothing is judged yet.

        `request_states` are for calls of several rounds; None: only this proxy continues them. `watch` makes
        what watches the session for a policy that is not in force. `secrets` are hidden from agent, hooks and records.
        """
        policy = Policy.of(hooks, settings, audit)
        self.session = session
        if secrets is not None:
            report = secrets.masked_report(report)
        self.report = report
        self.secrets = secrets
        """What `[secrets]` hides; None: nothing."""
        self._passages = 0  # responses that are sent on in pieces
        judges = may_change or policy.judges_calls
        # lines must be read; where the list of roots is fixed, calls pass by the fast path nevertheless
        strict = judges or bool(settings.shown_tools or settings.lock or not settings.roots.passes_all or secrets)
        request_states = request_states or StateSealer()
        self.router = self._make_router(hooks, settings, request_states, strict=strict)
        self.router.judged_tools.are_listed = judges or secrets is not None  # for their outputSchema
        for channel in (agent, server):
            if isinstance(channel, Refuses):
                channel.on_refused = self.note_refusal
        if secrets is not None:
            server = self._hiding(server, secrets, settings.max_message_bytes)
        self.relay = Relay(agent, server, self.router, settings.max_message_bytes, strict, self._perform)
        self.router.as_line = self.relay.as_line_to_server
        self._tasks: anyio.abc.TaskGroup | None = None
        self.answers_lost_requests = False
        """Whoever reads for the agent does not see that the server has ended: each open request gets an error then."""
        self.on_tools_listed: OnToolsListed = lambda _line, _tools, _server_name: None
        """Called with each tools/list response, as the agent has got it, and the server's own name."""
        self.changes = ChangeEvent()
        self.run_changes = ChangeEvent()  # of the whole run: separate, because calls end often
        self._to_agent = self.relay.to_agent if secrets is None else partial(self._hide_from_agent, secrets)
        self._context = SessionContext(policy, session, report, self._to_agent, self.spawn, self.changes.notify)
        self._context.masks = None if secrets is None else secrets.masks
        if strict:
            self.router.judge_methods(self._concerns_method)
        self.session_events = SessionEvents(self._context)
        elicitation_hooks = ElicitationHooks(self._context, self.session_events)
        self.server_requests = ServerRequests(
            self._context, self.session_events, self.router, self.relay, elicitation_hooks
        )
        self.hook_tool_calls = HookToolCalls(
            session.server, self.router, self.relay.to_server, lambda: self._context.secrets
        )
        self.calls = self.calls_type(
            self._context,
            self.session_events,
            elicitation_hooks,
            request_states,
            self.router,
            self.relay,
            self.changes,
        )

        self._judge_requests()
        self.lists = ServerLists(
            self._context,
            self.session_events,
            self.router,
            self.calls,
            self._concerns,
            lambda: self.relay.is_substitute,
        )
        self.lists.use(settings)
        self.hook_tool_calls.withholds = lambda tool: self.lists.withholds is not None and self.lists.withholds(tool)
        self.may_change = may_change
        self.watch = self.relay.tap = watch(self) if watch is not None else None

    def _make_router(self, hooks: Hooks, settings: Settings, request_states: RequestStates, *, strict: bool) -> Router:
        concerns, elicitations = self._concerns if strict else None, _elicitations(hooks, settings)
        router = Router(concerns, elicitations, hooks.groups.alias, settings.max_depth)
        if not settings.roots.passes_all:
            router.roots = _roots_of(settings.roots)
        router.is_own_state = request_states.is_own
        return router

    @property
    def policy(self) -> Policy:
        """What judges the calls that begin now."""
        return self._context.policy

    def _hiding(self, server: Channel, secrets: HiddenSecrets, limit: int) -> Channel:
        """The server's channel, from which only messages without these secrets come; `limit` is theirs, in bytes."""
        from .secrets_channel import SecretsChannel, SessionSide  # for such configurations only

        def output_schema(tool: str) -> bytes:
            listed = self.router.tools.get(tool)
            return b"" if listed is None else listed.output_schema

        def compares_lists() -> bool:
            return self.policy.settings.lock is not None

        side = SessionSide(self.spawn, output_schema, compares_lists)
        return SecretsChannel(server, secrets, limit, side)

    def _hide_from_agent(self, secrets: HiddenSecrets, line: bytes) -> None:
        """Send the agent what the server's channel has not masked: lists that a lock compares, and our own texts."""
        self.relay.to_agent(secrets.masks.message(line))

    def use_secrets(self, secrets: KnownSecrets) -> None:
        """Keep these out of all texts of ours."""
        self._context.secrets = secrets
        if self.watch is not None:
            self.watch.use_secrets(secrets)

    def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run calls in `tasks` from now on."""
        self._tasks = tasks
        self.calls.open(tasks)
        self._open_policy()
        if self.watch is not None:
            self.watch.open(tasks)

    @property
    def tasks(self) -> anyio.abc.TaskGroup:
        """The task group in which all of it runs."""
        assert self._tasks is not None, "open comes before the first byte"
        return self._tasks

    def _open_hooks(self) -> None:
        report, notify = self.session_events.report_hook_run, self.changes.notify
        self.policy.hooks.open(self.tasks, report, notify, self.hook_tool_calls.call)
        if self.secrets is not None:
            self.policy.hooks.hide(self.secrets)

    def _open_policy(self) -> None:
        self._open_hooks()
        audit = self.policy.audit
        audit.schedule = partial(self.spawn, self._flush_audit, audit)
        audit.report_to(self.report)
        if self.secrets is not None:
            audit.hide(self.secrets.masks)

    async def _flush_audit(self, audit: Audit) -> None:
        await anyio.sleep(DEFERRED_SECONDS)
        self.session_events.report_unwritten(audit.flush())

    @property
    def judges_nothing(self) -> bool:
        """No hook, no rule and no audit concerns any call, none is left from an earlier policy; nothing is hidden."""
        calls = self.calls
        others = self.watch or self.secrets
        return not (self.policy.judges_calls or calls.are_running or calls.policies.has_former or others)

    def open_passage(self, agent: TakesPassages, raw_id: bytes) -> Passage | None:
        """Send the response to a request on in pieces while it comes; None: it must come whole, as hooks may judge it.

        Where a new policy judges something, nothing is read from the agent until such responses have ended: so they can
        never become responses to judged calls.
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
        self.calls.passed.notify()
        if not self._passages:
            self.relay.pause_agent(_PASSAGES, False)

    def change_policy(self, hooks: Hooks, settings: Settings, audit: Audit) -> None:
        """Judge the calls that come from now on by these. Those in flight end under the policy that they began with.

        What was allowed for this session, by a person or a hook, must be allowed anew.
        """
        hooks.go_on_from(self.policy.hooks)
        self.router.roots = _roots_of(settings.roots)
        self._context.policy = Policy.of(hooks, settings, audit)
        self.calls.policies.add(self.policy)
        if self._passages:
            self.relay.pause_agent(_PASSAGES, True)
        hooks.note_tools(self.router.tools.values(), self.router.handshake.server_name)
        elicitations = _elicitations(hooks, settings, self.router.elicitations, is_open=True)
        self.router.change_policy(hooks.groups.alias, elicitations, settings.max_depth)
        self._judge_requests()
        self.lists.use(settings)
        self._open_policy()
        self.spawn(self._close_former_policies)

    async def _close_former_policies(self) -> None:
        self.session_events.report_unwritten(await self.calls.policies.close_former(self.calls.changes))

    def _judge_requests(self) -> None:
        """Be ready to judge requests of the server, if something is about them."""
        elicitations = self.router.elicitations
        if elicitations is None or not elicitations.judged or self.server_requests.judge is not None:
            return
        from .input_requests import InputRequests  # for such configurations only
        from .judged_request import JudgesRequests

        judge = self.server_requests.judge = JudgesRequests(self.calls, self.session_events.keep_feedback)
        self.calls.input_requests = InputRequests(
            self.router, self.session_events, lambda: self.policy.settings.max_depth, judge
        )

    def change_session(self, session: Session) -> None:
        """Something else is known of the session from now on, such as the groups of its user."""
        self.session = self._context.session = self.calls.session = session
        if self.watch is not None:
            self.watch.change_session(session)

    def judges_tool(self, tool: str) -> bool:
        """True if the policy judges calls of this tool."""
        return self.policy.judges_calls and self._concerns(tool)

    def judges_method(self, method: str) -> bool:
        """True if the policy judges requests of this method, other than `tools/call`."""
        return self._concerns_method(method)

    def describe_error(self, defect: BaseException) -> str:
        """As `SessionContext.describe_error`."""
        return self._context.describe_error(defect)

    def _concerns(self, tool: str) -> bool:
        """True if calls of this tool are handled here; feedback of SessionStart hooks may wait for any call at all."""
        policy, elicitations = self._context.policy, self.router.elicitations
        if self.lists.withholds is not None and self.lists.withholds(tool):
            return True
        # in 2026-07-28 each result may ask for what is judged
        needed = self.session_events.feedback_pending or (
            elicitations is not None and bool(elicitations.judged_in_results)
        )
        if policy.settings.audit_all_calls or (needed and not self.router.handshake.uses_initialize):
            return True
        return policy.hooks.concerns(tool)

    def _concerns_method(self, method: str) -> bool:
        """True if requests of this method, other than tool calls, are handled here."""
        policy = self._context.policy
        return policy.settings.audit_all_calls or policy.hooks.concerns_method(method)

    def _perform(self, action: AgentAction | ServerAction, line: bytes) -> None:  # noqa: C901  # one case for each
        match action:
            case actions.StartCall(call):
                self.calls.begin(call)
            case actions.CallAnswered(call):
                self.calls.resume(call)
            case actions.CancelCall(call, forward):
                self.calls.cancel(call, line if forward else b"")
            case actions.Refused():
                self._refuse(action, line)
            case actions.Edited(edited_action, edited, note):
                if note:
                    self.session_events.note_in_audit(note)
                self._perform(edited_action, edited)
            case actions.Send(edited):
                self.relay.to_server(edited)
            case actions.SendBack(response, note, reported):
                self.relay.to_server(response)
                if reported:
                    self.report(note)
                if note:
                    self.session_events.note_in_audit(note)
            case actions.SessionOpened():
                self._open_session()
            case actions.ElicitationRequested() | actions.ElicitationAnswered():
                self.server_requests.perform(action, line)
            case actions.ElicitationWithdrawn() | actions.ElicitationCompleted():
                self.server_requests.perform(action, line)
            case actions.ApprovalAnswered():
                self.calls.approvals.resolve(action)
            case actions.HookToolCallAnswered():
                self.hook_tool_calls.resolve(action)
            case actions.InitializeAnswered():
                line = self.lists.as_pinned(INITIALIZE, line)
                self.session_events.deliver_initialize_response(line, self.router.handshake)
                self.lists.tell_hidden(INITIALIZE, line)
            case actions.Announced(method, cursor):
                self._to_agent(self.lists.as_pinned(method, line, cursor))
                self.lists.tell_hidden(method, line)
            case actions.ToolsListed(tools, cursor):
                server_name = self.router.handshake.server_name or tool_list.server_name(line)
                edited = self.lists.tools(line, tools, server_name, cursor)
                self._to_agent(edited)
                self.lists.tell_hidden(TOOLS_LIST, line)
                self.on_tools_listed(edited, tools, server_name)
            case actions.NotificationHeld():
                pass
            case actions.NotificationEdited(edited):
                self.relay.to_agent(edited)
            case actions.NotJson():
                beginning = line[: 4 * _MAX_NOISE_SHOWN].decode(errors="replace").rstrip()
                shown = self._context.secrets.shortened(beginning, _MAX_NOISE_SHOWN)
                self.report(f"the server printed a line that is not JSON: {shown}")
            case actions.Dropped(""):
                pass
            case actions.Dropped(why, raw_id):
                self.report(f"dropped {why}")
                if raw_id:
                    self.relay.to_agent(feedback.unclear_response(raw_id))
                self.session_events.note_in_audit(f"dropped {why}")
            case _:
                raise AssertionError(f"{action} is for the relay")

    def _refuse(self, refused: actions.Refused, line: bytes) -> None:
        """The only place where a message of the agent is refused: no refusal leaves without its audit line (law 3)."""
        self.report(f"refused a message of the agent: {refused.why}")
        self.note_refusal(refused.why, refused.id, line)
        self.relay.to_agent(
            feedback.refused_message(refused.id, refused.why, unreadable=refused.unreadable, code=refused.code)
        )

    def note_refusal(self, why: str, raw_id: bytes, line: bytes) -> None:
        """Write the audit line of a refused message; a channel that refuses one itself calls this (`Refuses`)."""
        refused = RefusedMessage(why, raw_id, line, self.calls.agent())
        self.session_events.report_unwritten(self.policy.audit.note_refusal(self.session, refused))

    def spawn(self, function: Callable[..., Coroutine[object, object, None]], *arguments: object) -> None:
        """Run a coroutine beside the calls; it is cancelled when the session ends."""
        assert self._tasks is not None, "open comes before the first byte"
        self._tasks.start_soon(function, *arguments)

    def _open_session(self) -> None:
        agent = self.calls.agent()
        for source in self.policy.hooks.groups.sources_run_by(agent):
            self.report(f"{agent} runs the hooks of {source} itself, so they now run twice for each call")
        if (native := self.policy.hooks.native) is None:
            self.session_events.begin_session()
        else:
            self.spawn(self._begin_joined_session, native)
        self.spawn(self._prepare_names)

    async def _begin_joined_session(self, native: NativeCalls) -> None:
        """Begin the session when it is known of which session of the agent it is a part: hooks get its id."""
        await native.join()
        self.session_events.begin_session()

    async def _prepare_names(self) -> None:
        """Import what recognises tools while the server answers: at the first call it would take longer, or fail."""
        self.policy.hooks.prepare_names()

    def handle_server_exit(self, why: str) -> None:
        """End all calls, because the server no longer answers; `why` is a sentence without a full stop."""
        self.server_requests.handle_server_exit()
        self.hook_tool_calls.handle_server_exit()
        self.calls.handle_server_exit(why)
        if self.answers_lost_requests:
            self._answer_lost_requests(why)
        if self.watch is not None:
            self.watch.handle_server_exit(why)

    def handle_failed_start(self, why: str) -> None:
        """Answer what the agent waits for, if the server has ended before it was open: most agents show this error.

        `why` is as in `handle_server_exit`. Later the agent sees the end of the output, as without us.
        """
        if self.relay.agent.reads_lines and not self.answers_lost_requests and self.router.requests.awaits_opening:
            self._answer_lost_requests(why)

    def _answer_lost_requests(self, why: str) -> None:
        for raw_id in self.router.requests.unanswered():
            self.relay.to_agent(feedback.remote_failure(raw_id, why, Progress.NO_RESPONSE, is_call=False))

    async def aclose(self) -> str:
        """Close what the policies use. Returns why a record could not be written."""
        if self.watch is not None:
            await self.watch.aclose()
        return await self.calls.policies.aclose()

    @property
    def has_open_calls(self) -> bool:
        """Some call, or a response that hooks may add to, is not finished."""
        return self.calls.are_running or self.session_events.pending_initialize_responses > 0

    @property
    def has_background_hooks(self) -> bool:
        """A hook runs that no call waits for."""
        return self.policy.hooks.background.running > 0 or self.session_events.running > 0

    @property
    def has_undecided(self) -> bool:
        """Some call, elicitation, or answer to one waits for hooks that decide whether it passes."""
        return self.server_requests.has_undecided or self.calls.are_undecided


def _roots_of(rule: RootsRule) -> Roots | None:
    from .allowed_folders import roots_of  # only for such a rule

    return roots_of(rule)


def _elicitations(
    hooks: Hooks, settings: Settings, former: Elicitations | None = None, *, is_open: bool = False
) -> Elicitations | None:
    """The table of the server's requests that concern hooks, with those of the former policy; None: none do.

    If the session `is_open`, the server may have asked already.
    """
    groups = hooks.groups
    of_server = [name for name, direction in JUDGED.items() if direction is Direction.FROM_SERVER]
    in_results = frozenset(name for name in of_server if settings.audit_all_calls or hooks.concerns_method(name))
    judged = in_results.union(name for name in of_server if name != ROOTS and hooks.has_sources)
    if former is None and not (groups.observes_elicitations or judged):
        return None
    elicitations = former or Elicitations()
    elicitations.observed, elicitations.answered = groups.observes_elicitations, groups.answers_elicitations
    elicitations.judged_in_results = in_results
    if is_open:
        elicitations.judge(judged)
    else:
        elicitations.judged = judged
    return elicitations
