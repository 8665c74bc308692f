"""A policy that is only watched, in one session: what it would do is recorded, and nothing is changed by it (law 2).

How it works: beside the session there is a second one, a whole `Proxy` with the watched policy. It gets the bytes that
agent and server send, as the session's relay gets them, and whatever it sends goes nowhere. So it decides as it would
decide in the place of the session: by the same code, for all methods, with hooks, rules and limits of its own. What it
records of a call becomes a part of that call's audit line.

What must hold:

- Nothing leads from here to agent, server or the policy in force, but to the audit, and to standard error.
- The second session gets bytes before the first one where that judges calls: then it knows each call before the call's
  own record begins. Where the policy in force judges nothing, bytes pass first, and are read here afterwards.
- It is forwarded to nobody, so a call counts as forwarded from its beginning: its response may come while hooks that
  are only watched still run. No hook of it calls tools of the server, nobody is asked, and nothing is repeated.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from msgspec.structs import replace

from ..audit.call_record import Record, RefusedMessage, WatchedCall
from ..audit.log import Audit
from ..audit.would_be import NOBODY_ASKED
from ..hooks.evaluate import Hooks
from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import raw_json
from ..jsonrpc.known_secrets import KnownSecrets
from ..model.counts import counted
from ..model.decision import ApprovalRequest
from ..model.hooks import EventContext, Session
from ..model.settings import Settings
from ..policy import methods
from ..policy.shared_state import Shared
from ..protocol import actions, tool_list
from ..protocol.actions import AgentAction, ServerAction
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call, Phase, Progress
from ..protocol.request_state import RequestStates
from ..protocol.router import Router
from ..protocol.tasks import TaskRequest
from ..runners.runner import HookFailed
from .approval import Approvals
from .approval_details import ApprovalResult
from .call_context import Ending
from .change_event import ChangeEvent
from .elicitation_hooks import ElicitationHooks
from .outside_approval import Asked
from .proxy import Proxy
from .relay import Relay
from .running_calls import Backpressure, RunningCalls
from .tap import TakeBytes, Watching

if TYPE_CHECKING:
    from ..transports.channel import Channel, OnBytes, OnEnd, OnFull
    from ..trust.check_unchanged import Trust
    from ..trust.sources import Watched

_ONLY_WATCHED: Final = "only watched; if it were in force: "
"""The beginning of what people read about a watched policy."""
_WOULD_REFUSE: Final = "a message of the agent would have been refused: "
_FULL: Final = "too many bytes wait for hooks that are only watched"
_AT_A_TIME: Final = max(1, min(os.cpu_count() or 1, 8))
"""Calls that begin to be judged at a time: more hooks would take computing time from the session that is watched."""
_COMPUTES_SECONDS: Final = 0.1
"""What runs for longer most likely waits for something else: it does not keep others from beginning."""
_MAX_UNCLAIMED: Final = 256  # calls that were judged here, and whose own record has not begun: a few at a time
_LONGEST_AT_GATEWAY: Final = 1024 * 1024
"""Bytes of a line that is read here at a gateway: longer ones would hold up other sessions."""


class WatchedHooks(Hooks):
    """The hooks of a policy that is only watched."""

    async def may_repeat(self, context: EventContext) -> bool:
        """Never: the server would run the call once more."""
        return False


class WatchedPolicy:
    """What judges calls that are only watched."""

    def __init__(
        self,
        watched: Watched,
        server: str,
        environ: Mapping[str, str],
        trust: Trust | None = None,
        command: Sequence[str] = (),
        shared: Shared | None = None,
    ) -> None:
        """The arguments are as for `Hooks`. Limits that several runs share count here in one process only."""
        alone = Shared(window_of=None if shared is None else shared.window_of)
        self.settings = watched.settings
        self.hooks = WatchedHooks(watched.groups, watched.settings, server, environ, trust, command, alone)
        self.file = watched.files[-1] if watched.files else ""
        """As `WatchedCall.replaces`."""

    def watch(self, proxy: Proxy) -> Watch:
        """Watch a session."""
        return Watch(proxy, self)

    def take_over(self, watch: Watching) -> None:
        """Let this be the policy of a watch from now on."""
        assert isinstance(watch, Watch)
        watch.change_policy(self)


class Watch:
    """One session's watched policy."""

    def __init__(self, proxy: Proxy, policy: WatchedPolicy) -> None:
        self._proxy = proxy
        self._file = policy.file
        self._stopped = False
        self._at_gateway = proxy.may_change
        self._begun: dict[Call, WatchedCall] = {}  # the calls whose record has not begun here
        self._unclaimed: dict[tuple[str, bytes], WatchedCall] = {}  # those whose own record has not begun
        self.agent = _Nowhere(proxy.relay.agent, partial(proxy.relay.pause_agent, _FULL))
        self.server = _Nowhere(proxy.relay.server, _ignore)
        self._session = _WatchedSession(self, policy, self._limited(policy.settings), self._audit(policy), proxy)
        # what is recorded of a call must then be there before its response: it waits as it would wait in force
        self._session.watched_calls.hurries = proxy.policy.audit.required
        proxy.policy.audit.find_watched = self._find

    def _audit(self, policy: WatchedPolicy) -> Audit:
        return _WatchedAudit(self, policy.settings, self._proxy.policy.audit.needs_results)

    def _limited(self, settings: Settings) -> Settings:
        if not self._at_gateway:
            return settings
        return replace(settings, max_message_bytes=min(settings.max_message_bytes, _LONGEST_AT_GATEWAY))

    # --- what agent and server send ---

    def connect(self, from_agent: TakeBytes, from_server: TakeBytes) -> tuple[TakeBytes, TakeBytes]:
        """As in Tap."""
        self._session.relay.start(_nothing, _nothing, _nothing)
        agent, server = self._reader(self.agent), self._reader(self.server)
        if self._at_gateway or self._proxy.policy.judges_calls:
            return _both(agent, from_agent), _both(server, from_server)
        return _both(from_agent, agent), _both(from_server, server)

    def _reader(self, channel: _Nowhere) -> TakeBytes:
        def take_piece(piece: bytes) -> None:
            if not self._stopped:
                try:
                    channel.on_bytes(piece)
                except Exception as defect:  # it must not reach the session
                    self._break(defect)

        return take_piece

    def _break(self, defect: Exception) -> None:
        self._stopped = True
        self.report(f"what follows in this session is not watched: {self._proxy.describe_error(defect)}")

    def guarded(
        self, function: Callable[..., Coroutine[object, object, None]]
    ) -> Callable[..., Coroutine[object, object, None]]:
        """The function, whose defects end nothing but itself."""

        async def run_guarded(*arguments: object) -> None:
            try:
                await function(*arguments)
            except Exception as defect:  # as above
                self.report(f"something has failed: {self._proxy.describe_error(defect)}")

        return run_guarded

    def agent_ended(self) -> None:
        """As in Tap."""
        self.agent.on_end()
        self._session.watched_calls.hurries = True
        self._session.watched_calls.judge_next()

    def server_ended(self) -> None:
        """As in Tap."""
        self.server.on_end()

    # --- the session ---

    def open(self, tasks: anyio.abc.TaskGroup) -> None:
        """Judge calls in `tasks` from now on."""
        self._session.open(tasks)

    def change_policy(self, policy: WatchedPolicy) -> None:
        """Judge the calls that come from now on by this policy."""
        self._file, self._stopped = policy.file, False
        self._session.change_policy(policy.hooks, self._limited(policy.settings), self._audit(policy))
        self._proxy.policy.audit.find_watched = self._find

    def stop(self) -> None:
        """As in Watching."""
        self._stopped = True

    def change_session(self, session: Session) -> None:
        """As in Proxy."""
        self._session.change_session(session)

    def use_secrets(self, secrets: KnownSecrets) -> None:
        """As in Proxy."""
        self._session.use_secrets(secrets)

    async def end_session(self) -> None:
        """Run the SessionEnd hooks, if the agent has opened the session."""
        if self._session.router.handshake.opened:
            await self._session.session_events.end_session()

    def handle_server_exit(self, why: str) -> None:
        """As in Proxy."""
        self._session.handle_server_exit(why)

    def end_all(self, why: str) -> None:
        """End all calls whose hooks still run; `why` is a sentence without a full stop."""
        self._session.calls.end_all(why)

    async def wait(self) -> None:
        """Wait until all calls and hooks have ended that are watched."""
        session = self._session
        await session.changes.until(lambda: not (session.has_open_calls or session.has_background_hooks))

    async def aclose(self) -> None:
        """Write the records that are left, and close the hooks' runners."""
        for watched in self._unclaimed.values():
            self._write_alone(watched)
        self._unclaimed.clear()
        await self._session.calls.policies.aclose()

    # --- calls ---

    def begin(self, call: Call) -> None:
        """A call begins here. Where the policy in force does not judge it, its audit line is written here, too."""
        watched = self._begun[call] = WatchedCall(self._file)
        if not self._is_judged(call):
            watched.on_end = partial(self._write_alone, watched)
            return
        watched.on_decided = partial(self._call_ended, call)
        self._unclaimed[call.tool, call.key] = watched
        if len(self._unclaimed) > _MAX_UNCLAIMED:
            self._write_alone(self._unclaimed.pop(next(iter(self._unclaimed))))

    def take_call(self, call: Call) -> WatchedCall:
        """The call, whose record begins here. A request of the server begins with its record."""
        if call not in self._begun:
            self.begin(call)
        return self._begun.pop(call)

    def _is_judged(self, call: Call) -> bool:
        """The policy in force judges it as well, and writes its audit line."""
        if methods.is_method(call.tool):
            return self._proxy.judges_method(call.tool)
        return self._proxy.judges_tool(call.tool)

    def _find(self, _record: Record, call: Call) -> WatchedCall | None:
        return self._unclaimed.pop((call.tool, call.key), None)

    def _call_ended(self, call: Call, result: str) -> None:
        """The call itself has ended; only of one that was sent, the response passes later."""
        if result != "sent":
            self._session.watched_calls.give_up(call)

    def _write_alone(self, watched: WatchedCall) -> None:
        """Write the audit line of a call that only the watched policy has judged: it has passed."""
        own = watched.record
        if own is None:
            return
        audit = self._proxy.policy.audit
        record = Record(own.session, own.server, own.tool, own.id, own.arguments, own.agent, own.method, own.protocol)
        record.alias, record.decision, record.ms = own.alias, "allow", own.ms
        record.result = "sent" if own.result == "refused" else own.result
        record.watched = WatchedCall(watched.replaces, own, ended=True)
        record.call = audit.new_id()
        self._proxy.session_events.report_unwritten(audit.write(record))

    def note_refusal(self, refused: actions.Refused, line: bytes) -> None:
        """A message of the agent would have been refused before it was a call."""
        if self._at_gateway and not line:
            self.note(f"a long message was not looked at: {refused.why}")
        elif not _is_response(line):  # it may answer a request that the agent would not have got
            self.note(_WOULD_REFUSE + refused.why)

    def note(self, text: str, by: str = "") -> None:
        """Write a sentence into the audit."""
        self._proxy.session_events.note_in_audit(_ONLY_WATCHED + text, by)

    def report(self, text: str) -> None:
        """Report one line to people."""
        self._proxy.report(_ONLY_WATCHED + text)


class _WatchedAudit(Audit):
    """Gives each record to the watch."""

    def __init__(self, watch: Watch, settings: Settings, needs_results: bool) -> None:
        super().__init__(replace(settings, audit_file="", audit_required=False, audit_begun=False, otel=False))
        self._watch = watch
        self._by_record: dict[int, WatchedCall] = {}
        self.needs_results = needs_results

    def begin(self, record: Record, call: Call) -> tuple[tuple[str, str], ...]:
        """Note that the record is about this call."""
        self._by_record[id(record)] = watched = self._watch.take_call(call)
        watched.record = record
        return ()

    def write(self, record: Record) -> str:
        """The record is complete."""
        if (watched := self._by_record.pop(id(record), None)) is not None:
            watched.end()
        return ""

    def note(self, session: Session | None, text: str, by: str = "") -> str:
        """Note it in the audit, as what would have happened."""
        self._watch.note(text, by)
        return ""

    def note_refusal(self, session: Session, refusal: RefusedMessage) -> str:
        """As `note`."""
        self._watch.note(_WOULD_REFUSE + refusal.why)
        return ""


class _WatchedCalls(RunningCalls):
    """The calls of a watched policy: they count as forwarded from their beginning, and nothing of them is sent."""

    def __init__(  # noqa: PLR0913  # as RunningCalls
        self,
        session_context: SessionContext,
        session_events: SessionEvents,
        elicitation_hooks: ElicitationHooks,
        request_states: RequestStates,
        router: Router,
        relay: Relay,
        changes: ChangeEvent,
    ) -> None:
        super().__init__(session_context, session_events, elicitation_hooks, request_states, router, relay, changes)
        self._given_up: set[Call] = set()
        self._queue: deque[Call] = deque()  # the calls that are not judged yet
        self._beginning: dict[Call, float] = {}  # and when each began
        self._looks = False
        self.hurries = False
        """All calls begin to be judged at once: nobody is held up by that, or only as in force."""
        self.watch: Watch | None = None
        self.approvals = self.nobody = _Nobody(session_context, router.handshake)

    def bound(self, limit: int) -> None:
        """Let the session read nothing more of the agent while calls of more bytes than these wait here."""
        self._backpressure = Backpressure(limit, partial(self._relay.pause_agent, _FULL))

    def begin(self, call: Call) -> None:
        """As RunningCalls. The server has the call, or gets it now."""
        self._router.calls.release(call)
        if self.watch is not None and not isinstance(call, TaskRequest):
            self.watch.begin(call)
        super().begin(call)

    def _start(self, call: Call) -> None:
        self._backpressure.add_call(call)
        self._queue.append(call)
        self.judge_next()

    def judge_next(self) -> None:
        """Judge as many of the calls that wait as may begin now."""
        while self._queue and (self.hurries or len(self._beginning) < _AT_A_TIME):
            call = self._queue.popleft()
            self._beginning[call] = monotonic()
            self._pool.start(call)
        if self._queue and not self._looks:
            self._looks = True
            self._context.spawn(self._look_for_slow_ones)

    async def _look_for_slow_ones(self) -> None:
        """While calls wait, find those that keep them from beginning although they only wait themselves."""
        try:
            while self._queue:
                await anyio.sleep(_COMPUTES_SECONDS)
                began = monotonic() - _COMPUTES_SECONDS
                self._beginning = {call: at for call, at in self._beginning.items() if at > began}
                self.judge_next()
        finally:
            self._looks = False

    async def _handle(self, call: Call) -> None:
        try:
            await super()._handle(call)
        finally:
            if self._beginning.pop(call, None) is not None:
                self.judge_next()

    @property
    def are_running(self) -> bool:
        """As RunningCalls."""
        return bool(self._running or self._queue)

    def end_all(self, why: str) -> None:
        """As RunningCalls; those that still wait are not judged."""
        if self._queue and self.watch is not None:
            self.watch.note(f"{counted(len(self._queue), 'call')} not judged: {why}")
        self._queue.clear()
        super().end_all(why)

    def resume(self, call: Call) -> None:
        """As RunningCalls; the call may have ended here, or not begun."""
        if call in self._running:
            super().resume(call)

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """Wait for the server's response to the call as it was sent, which may be there already."""
        self._backpressure.remove_call(call)
        if not (self._has_ended(call) or call.response_line or self.server_lost):
            await self._running[call].wait()
        if self._has_ended(call):
            self._given_up.discard(call)
            return Ending.INTERRUPTED
        return call.response_line or Ending.LOST

    def _has_ended(self, call: Call) -> bool:
        return call.phase is Phase.CANCELLED or call in self._given_up

    def give_up(self, call: Call) -> None:
        """No response to this call will come: the server never had it."""
        if self._router.calls.get(call.key) is call and not call.response_line:
            self._forget(call)
            self._given_up.add(call)
            self.resume(call)

    def forward_without_waiting(self, call: Call, line: bytes) -> bool:
        """The response need not be waited for."""
        self._router.calls.finish(call)
        return True

    def prepare_repeat(self, call: Call, line: bytes) -> bytes | None:
        """Never: the call ends here, and what follows from it is not known."""
        self._forget(call)
        return None

    def _forget(self, call: Call) -> None:
        call.progress = Progress.NOT_SENT  # so that no hook gets what the server has not said
        self._router.calls.finish(call)


class _WatchedSession(Proxy):
    """The second session of a watch. What would pass, or be sent, goes nowhere."""

    calls_type = _WatchedCalls

    def __init__(self, watch: Watch, policy: WatchedPolicy, settings: Settings, audit: Audit, of: Proxy) -> None:
        """`of` is the session that is watched."""
        agent, server, session = watch.agent, watch.server, of.session
        super().__init__(agent, server, policy.hooks, settings, session, audit, watch.report, may_change=True)
        self.secrets, self._context.masks = of.secrets, of._context.masks
        self._watch = watch
        assert isinstance(self.calls, _WatchedCalls)
        self.watched_calls = self.calls
        self.watched_calls.watch = watch
        self.watched_calls.bound(policy.settings.max_message_bytes)
        self.watched_calls.nobody.enforced = of.calls.approvals
        self.calls.reports_of_tools = of.calls.reports_of_tools

    def spawn(self, function: Callable[..., Coroutine[object, object, None]], *arguments: object) -> None:
        """As Proxy. A defect in it ends nothing else."""
        super().spawn(self._watch.guarded(function), *arguments)

    def _open_hooks(self) -> None:
        hooks = self.policy.hooks
        hooks.open(self.tasks, self.session_events.report_hook_run, self.changes.notify, _call_no_tool)
        if self.secrets is not None:
            hooks.hide(self.secrets)

    def _perform(self, action: AgentAction | ServerAction, line: bytes) -> None:
        match action:
            case actions.Refused():
                self._watch.note_refusal(action, line)
            case actions.NotJson() | actions.Dropped():
                pass  # the session that is watched sees it, too
            case actions.InitializeAnswered():
                self.session_events.deliver_initialize_response(line, self.router.handshake)
            case actions.ToolsListed(tools, cursor):
                server_name = self.router.handshake.server_name or tool_list.server_name(line)
                self.lists.tools(line, tools, server_name, cursor)
            case actions.Announced():
                pass
            case _:
                super()._perform(action, line)


class _Nobody(Approvals):
    """Asks nobody: a call about which a person would be asked goes on as if the person had said yes."""

    enforced: Approvals | None = None
    """Those of the session: they know whether a console could be asked."""

    def has_fallback(self, request: ApprovalRequest | None, settings: Settings) -> bool:
        """As the session's own approvals."""
        return self.enforced is not None and self.enforced.has_fallback(request, settings)

    def waits_outside(self, request: ApprovalRequest | None, settings: Settings, *, agent_cannot: bool) -> bool:
        """As the session's own approvals."""
        return self.enforced is not None and self.enforced.waits_outside(request, settings, agent_cannot=agent_cannot)

    async def ask(self, call: Call, asked: Asked) -> ApprovalResult:
        """As Approvals."""
        return ApprovalResult(Approval.ONCE, NOBODY_ASKED)


class _Nowhere:
    """A channel whose bytes come from the session that is watched, and to which nothing can be written."""

    gone = False
    queued = 0

    def __init__(self, of: Channel, pause: Callable[[bool], None]) -> None:
        """`of` is the channel of that session; `pause` pauses and resumes it."""
        self._of = of
        self._pause = pause
        self.on_bytes: OnBytes = _ignore
        self.on_end: OnEnd = _nothing

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        """As in Channel, and so all that follows."""
        self.on_bytes, self.on_end = on_bytes, on_end

    def write(self, piece: bytes) -> None:
        """Nothing leaves."""

    def pause(self) -> None:
        """Pause the session's own channel: too much waits here."""
        self._pause(True)

    def resume(self) -> None:
        """Read again."""
        self._pause(False)

    @property
    def reads_lines(self) -> bool:
        """As the session's own channel."""
        return self._of.reads_lines

    @property
    def is_substitute(self) -> bool:
        """As the session's own channel."""
        return self._of.is_substitute

    def drain(self) -> None:
        """There is nothing to read."""

    async def flushed(self) -> None:
        """There is nothing to write."""

    def end_output(self) -> None:
        """There is none."""

    def close(self) -> None:
        """There is nothing to close."""


async def _call_no_tool(_server: str, _tool: str, _arguments: bytes) -> bytes:
    raise HookFailed("is not called: it is a tool of the server, and the hook is only watched")


def _is_response(line: bytes) -> bool:
    """True for a message that can be read, and is a response."""
    try:
        members = raw_json.fields(line)
    except ValueError:
        return False
    return "method" not in members and not members.keys().isdisjoint(("result", "error"))


def _both(first: TakeBytes, second: TakeBytes) -> TakeBytes:
    def take_by_both(piece: bytes) -> None:
        first(piece)
        second(piece)

    return take_by_both


def _ignore(_value: object) -> None:
    """Nothing follows."""


def _nothing() -> None:
    """Nothing follows."""
