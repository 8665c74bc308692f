"""Judges the events of agents' own tools, by the same hooks, rules, limits and records as calls behind a proxy (law 1).

How it works: an event belongs to a `NativeSession`, by the agent's name and the session id in its document. Before a
call the hooks and rules decide, limits count it, and its record is in the file before the agent hears that it may go
on; it waits in `_open`, by the call's id, for the event after the call, which completes it. A refused call is recorded
at once. What the agent cannot express is refused (law 3), and everything that goes wrong is, in the agent's own form.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.log import Audit
from ..config.load import Loaded
from ..convert import hook_decision
from ..convert.run_hook import expressible, failures, normalised, recognise_agent, with_lines
from ..dialects.agent_documents import Members, agents_of, is_of
from ..dialects.agent_side import AgentEvent, AgentSide, HookDecision, HookOutput, agent_side, refuse_by_status
from ..dialects.shared.input import result_text
from ..hooks.evaluate import Hooks
from ..jsonrpc.raw_json import encode
from ..live.messages import RunSession
from ..model.call_end import Failed, Refused, Responded
from ..model.decision import Refuse
from ..model.errors import UserError
from ..model.hooks import Event, EventContext, HookRun, Outcome, Permission
from ..protocol import feedback
from ..protocol.calls import Call, Phase
from ..session.live_feed import Judging
from .agent_sessions import AgentSessions
from .approvals import GuardApprovals, NativeCall
from .exchange import Request
from .native_session import NativeSession
from .same_act import SameActs

if TYPE_CHECKING:
    import anyio.abc

    from ..session.live_feed import LiveFeed

_AFTER: Final = frozenset({Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE})
_MOST_OPEN: Final = 4096  # calls that wait for their end: an agent whose hooks see no end leaves all of them


class _OpenCall(Struct, frozen=True):
    """A call that may run now."""

    record: Record
    started: float
    """When it came."""
    allowed: float
    """When it could begin: a person may have been asked before. Both by the performance counter."""


class Judge:
    """Judges events under one configuration, until it is closed."""

    def __init__(
        self,
        loaded: Loaded,
        tasks: anyio.abc.TaskGroup,
        report: Callable[[str], None],
        feed: LiveFeed | None = None,
    ) -> None:
        """Hooks that nobody awaits run in `tasks`. `report` gets sentences for people, and `feed` is for consoles.

        Raises UserError if a secret that asking people needs cannot be read.
        """
        self._loaded = loaded
        self._settings = loaded.settings
        self._tasks = tasks
        self._report = report
        self._audit = Audit(replace(loaded.settings, audit_begun=True))  # a record must be there before the answer
        self._audit.report_to(report)
        self._feed = feed
        self._approvals = GuardApprovals(loaded.settings, self._audit, tasks, report, feed)
        self.sessions = AgentSessions(loaded, tasks)
        self._acts = SameActs()
        self._open: dict[tuple[str, str, str], _OpenCall] = {}  # by agent, session and the call's id

    async def judge(self, request: Request) -> HookOutput:
        """What the agent reads for its event. Raises nothing; on cancel the hooks are ended.

        A defect of ours refuses the call and is reported.
        """
        side = agent_side(request.agent)
        refuse = side.refuse if side else refuse_by_status  # in its own form, whatever the document is
        try:
            side = _agent_of(side, request.document)
            refuse = side.refuse
            return await self._output(side, request)
        except UserError as error:
            return refuse(str(error))
        except ValueError as unreadable:
            return refuse(f"error: the document of this event cannot be read: {unreadable}")
        except Exception as defect:  # the boundary of one event: fail closed, and report it
            self._report("".join(traceback.format_exception(defect)).rstrip())
            return refuse("error: a defect of hookproxy; its guard reports more")

    def take_over(self, former: Judge) -> None:
        """Complete the calls that another one has let begin, and keep what its sessions have read."""
        self._open, former._open = former._open, self._open
        self.sessions.take_over(former.sessions)

    def described(self) -> Sequence[RunSession]:
        """The same for consoles."""
        return [RunSession(name, "", agent) for agent, name in self.sessions.ids]

    def judging(self) -> Judging:
        """What consoles need to show its calls."""
        hooks = [hooks for session in self.sessions.all for hooks in session.all_hooks()]
        return Judging(self._settings, self._audit, hooks)

    def open_calls(self) -> int:
        """How many calls may run now."""
        return len(self._open)

    async def aclose(self) -> None:
        """End the sessions, and write what waits to be recorded."""
        await self.sessions.aclose()
        for call in self._open.values():
            call.record.note_end(Failed(None, "the guard was ended before the end of this call was known", "lost"))
            self._note(self._audit.write(call.record))
        self._note(self._audit.close())

    async def _output(self, side: AgentSide, request: Request) -> HookOutput:
        environ = {**request.environ, "PWD": request.cwd or "/"}
        event = side.read_document(request.document, environ)
        context = event.context
        act = (side.name, context.session.id, event.name, context.tool_use_id, _digest(event, request))
        return await self._acts.judged(act, request.agent, lambda: self._judged(side, event, environ, request))

    async def _judged(
        self, side: AgentSide, event: AgentEvent, environ: Mapping[str, str], request: Request
    ) -> HookOutput:
        session = self.sessions.of_event(side.name, event.context.session.id, environ, request.process)
        contexts = [self._prepared(session, context) for context in (event.context, *event.others)]
        runs: list[HookRun] = []
        alone = len(contexts) == 1
        decisions = [await self._decide(side, session, context, request, runs, alone=alone) for context in contexts]
        decision, problems = expressible(hook_decision.combined(decisions), side, event.context)
        return with_lines(side.write_output(event, decision), [*problems, *failures(runs)])

    def _prepared(self, session: NativeSession, context: EventContext) -> EventContext:
        """The context as hooks and rules may read it. Raises ValueError."""
        context = normalised(context, self._settings.max_depth)
        if context.tool and context.alias is None and context.session.server:
            groups = session.hooks_for(context.session.server).groups
            return replace(context, alias=groups.alias(context.tool, context.arguments))
        # no server's list can change what the agent's own tools are
        return replace(context, managed_alias=context.alias) if context.tool else context

    # --- events ---

    async def _decide(
        self,
        side: AgentSide,
        session: NativeSession,
        context: EventContext,
        request: Request,
        runs: list[HookRun],
        *,
        alone: bool,
    ) -> HookDecision:
        """What the agent gets for one context; `alone`: it is all that the event is about."""
        hooks = session.hooks_for(context.session.server, side.name)
        if self._feed is not None and self._feed.shows_calls:
            hooks.keep_inputs()
        if context.event is Event.PRE_TOOL_USE:
            return await self._before_call(side, hooks, context, request, runs, alone=alone)
        if context.event in _AFTER:
            return await self._after_call(side, hooks, context, runs)
        own = await hooks.run_event_hooks(context)
        runs += own
        if context.event is Event.PERMISSION_REQUEST:
            return hook_decision.permission_request(own)
        return hook_decision.other_event(own)

    async def _before_call(
        self,
        side: AgentSide,
        hooks: Hooks,
        context: EventContext,
        request: Request,
        runs: list[HookRun],
        *,
        alone: bool,
    ) -> HookDecision:
        if not (self._settings.audit_all_calls or hooks.concerns(context.tool)):
            return HookDecision()
        if self._audit.required and (problem := self._audit.failure()):
            return _unrecorded(problem)
        record = Record(context.session.id, context.session.server, context.tool, _id(context), context.arguments)
        record.agent, record.alias = side.name, context.alias.name if context.alias else ""
        started, own, call = perf_counter(), record.hook_runs, _call(context, request)
        native = NativeCall(side, hooks, call, record, monotonic(), alone)
        self._audit.begin(record, call)
        try:
            given = replace(context, agent=side.name)
            evaluation = await hooks.run_pre_hooks(given, None, own)
            judged = await self._approvals.decide(native, evaluation.decision, evaluation.context_after(given))
            decision = await hooks.apply_limits(judged.decision, judged.event_context)
        except BaseException as ended:
            record.note_end(Failed(None, f"hookproxy could not judge this call ({type(ended).__name__})"))
            self._note(self._audit.write(record))
            raise
        finally:
            runs += own
        if isinstance(decision, Refuse):
            record.chains = decision.chains
            reason = record.reason or decision.reason  # a person's own words come first
            cause, asked = decision.cause.value, decision.asked
            record.note_end(Refused(b"", reason, cause, decision.by, decision.place, asked=asked))
            return self._ended(record, started, hook_decision.before_call(decision, own))
        record.note_allowed(decision)
        if decision.approval_request is not None:
            record.decision = "asked"  # what the person answers in the agent, its hooks do not see
        if (problem := self._audit.write_begun(record)) and self._audit.required:
            record.note_end(Refused(b"", problem, "audit"))
            return self._ended(record, started, _unrecorded(problem))
        if not _hears_of_each_end(side):
            record.labels = await hooks.note_begun(judged.event_context, record.call)
        call.phase = Phase.FORWARDED
        self._keep_open(side, context, _OpenCall(record, started, perf_counter()))
        return hook_decision.before_call(decision, own, by_person=bool(record.answered_by))

    def _keep_open(self, side: AgentSide, context: EventContext, call: _OpenCall) -> None:
        if len(self._open) >= _MOST_OPEN:
            oldest = self._open.pop(next(iter(self._open)))
            oldest.record.note_end(Failed(None, "the agent has not reported how this call ended", "lost"))
            self._note(self._audit.write(oldest.record))
        self._open[_key(side, context)] = call

    def _ended(self, record: Record, started: float, decision: HookDecision) -> HookDecision:
        record.ms = (perf_counter() - started) * 1000
        self._note(self._audit.write(record))
        return decision

    async def _after_call(
        self, side: AgentSide, hooks: Hooks, context: EventContext, runs: list[HookRun]
    ) -> HookDecision:
        call = self._open.pop(_key(side, context), None)
        _note_end(hooks, context, call)
        own: list[HookRun] = [] if call is None else call.record.hook_runs
        before = len(own)
        try:
            comments = await hooks.run_post_hooks(context, own)
            if not (comments.withheld or comments.hidden_by):
                labels = await hooks.note_result(context, _output(context), call.record.call if call else "", comments)
                if call is not None:
                    call.record.labels = labels
        finally:
            runs += own[before:]
            if call is not None:
                failed = context.event is Event.POST_TOOL_USE_FAILURE
                call.record.note_end(Responded(result="error" if failed else "ok"))
                self._ended(call.record, call.started, HookDecision())
        return hook_decision.after_call(comments, own[before:])

    def _note(self, problem: str) -> None:
        if problem:
            self._report(f"the audit cannot be written: {problem}")


def _note_end(hooks: Hooks, context: EventContext, call: _OpenCall | None) -> None:
    """Count the result and the time of a call: the time that the agent says, else that since the call could begin."""
    outcome, seconds = context.outcome or Outcome(), 0.0 if call is None else perf_counter() - call.allowed
    size = len(outcome.whole or outcome.content) + len(outcome.error.encode("utf-8", "surrogatepass"))
    hooks.note_end(context, size, outcome.duration_ms / 1000 or seconds)


def _agent_of(side: AgentSide | None, document: bytes) -> AgentSide:
    """Whose document it is: agents also start the entries of others' hook files that they read.

    Raises UserError, and ValueError for a document that cannot be read.
    """
    if side is None:
        return recognise_agent(document)
    members = Members(document)
    if is_of(side.name, members):
        return side
    readers = [other for name in agents_of(members) if (other := agent_side(name)) and side.name in other.also_reads]
    return readers[0] if len(readers) == 1 else side


def _digest(event: AgentEvent, request: Request) -> bytes:
    """Of all by which a judged act differs from another: the tools with their arguments and, after the call, its end.

    What else is in a document, and the folder, may differ between the entries of one event.
    """
    if not event.context.tool:
        return sha256(request.document).digest()
    digest = sha256()
    for context in (event.context, *event.others):
        names = (context.session.server, context.tool)
        parts = [name.encode("utf-8", "surrogatepass") for name in names] + [context.arguments]
        if (end := context.outcome) is not None:
            parts += [end.content, end.structured, end.more, end.whole, end.error.encode("utf-8", "surrogatepass")]
        for part in parts:
            digest.update(b"%d " % len(part) + part)
    return digest.digest()


def _hears_of_each_end(side: AgentSide) -> bool:
    """Whether the agent's hooks also learn how a call has failed."""
    return {*side.events.values(), *side.also} >= _AFTER


def _output(context: EventContext) -> bytes:
    """All that the agent reads of a result, as a JSON value; empty if its hooks do not hear what that is."""
    if (end := context.outcome) is None or not (result_text(end) or end.whole):
        return b""
    return b"[%b]" % b",".join(filter(None, (end.content, end.structured, end.more, end.whole, encode(end.error))))


def _key(side: AgentSide, context: EventContext) -> tuple[str, str, str]:
    return side.name, context.session.id, context.tool_use_id


def _id(context: EventContext) -> bytes:
    return msgspec.json.encode(context.tool_use_id)


def _call(context: EventContext, request: Request) -> Call:
    """The call as the audit knows calls of a proxy."""
    return Call(_id(context), _id(context), request.document, context.tool, context.arguments, {}, False, False)


def _unrecorded(problem: str) -> HookDecision:
    return HookDecision(Permission.DENY, f"{feedback.NOT_RECORDED} ({problem})")
