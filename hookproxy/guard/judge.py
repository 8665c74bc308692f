"""Judges the events of agents' own tools, by the same hooks, rules, limits and records as calls behind a proxy (law 1).

How it works: an event belongs to a `NativeSession`, by the agent's name and the session id in its document. Before a
call and after it, `CallEvents` decide. What the agent cannot express is refused (law 3), and so is an event that cannot
be judged, whatever the reason; the refusal has the agent's own form.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..audit.log import Audit
from ..config.load import Loaded
from ..convert import hook_decision
from ..convert.run_hook import expressible, failures, normalised, recognise_agent, with_lines
from ..dialects.agent_documents import Members, agents_of, is_of
from ..dialects.agent_side import AgentEvent, AgentSide, HookDecision, HookOutput, agent_side, refuse_by_status
from ..jsonrpc import nesting
from ..jsonrpc.survey import MAX_MEMBERS, MAX_VALUES
from ..live.messages import RunSession
from ..model.aliases import FAMILIAR_NAMES
from ..model.errors import UserError
from ..model.hooks import AgentState, Event, EventContext, HookRun
from ..session.live_feed import Judging
from .agent_sessions import AgentSessions
from .approvals import GuardApprovals
from .call_events import AFTER, CallEvents
from .exchange import Request
from .native_session import NativeSession
from .same_act import SameActs
from .watched import WatchedOwnTools

if TYPE_CHECKING:
    import anyio.abc

    from ..session.live_feed import LiveFeed


class Judge:
    """Judges events under one configuration, until it is closed."""

    def __init__(
        self,
        loaded: Loaded,
        tasks: anyio.abc.TaskGroup,
        report: Callable[[str], None],
        feed: LiveFeed | None = None,
        digest: str = "",
        folder: str = "",
    ) -> None:
        """Hooks that nobody awaits run in `tasks`. `report` gets sentences for people, and `feed` is for consoles.

        `digest` is that of the configuration (`config.digest`); empty: it counts as the same as no other. `folder` is
        as in AgentSessions. Raises UserError if a secret that asking people needs cannot be read.
        """
        self._loaded = loaded
        self._settings = loaded.settings
        self._tasks = tasks
        self._report = report
        self._audit = Audit(replace(loaded.settings, audit_begun=True))  # a record must be there before the answer
        self._audit.report_to(report)
        self._feed = feed
        approvals = GuardApprovals(loaded.settings, self._audit, tasks, report, feed)
        self._watched = WatchedOwnTools(loaded, tasks)
        self.calls = CallEvents(loaded.settings, digest, self._audit, approvals, report, self._watched)
        self.sessions = AgentSessions(loaded, tasks, folder)
        self._acts = SameActs()

    async def judge(self, request: Request) -> HookOutput:
        """What the agent reads for its event. Raises nothing; on cancel the hooks are ended.

        A defect of ours refuses the call and is reported.
        """
        side = agent_side(request.agent)
        refuse = side.refuse if side else refuse_by_status  # in its own form, whatever the document is
        try:
            _check_values(request.document)
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
        """Go on for a former judge: complete the calls that it let begin, and keep what its sessions have read."""
        self.calls.open, former.calls.open = former.calls.open, self.calls.open
        self.sessions.take_over(former.sessions)

    def described(self) -> Sequence[RunSession]:
        """The sessions that events have reported, as consoles show them."""
        return [RunSession(name, "", agent) for agent, name in self.sessions.ids]

    def judging(self) -> Judging:
        """What consoles need to show its calls."""
        hooks = [hooks for session in self.sessions.all for hooks in session.all_hooks()]
        return Judging(self._settings, self._audit, hooks)

    def open_calls(self) -> int:
        """How many calls may run now."""
        return len(self.calls.open)

    async def aclose(self) -> None:
        """End the sessions, and write what waits to be recorded."""
        await self.sessions.aclose()
        await self._watched.aclose()
        self.calls.close()

    async def _output(self, side: AgentSide, request: Request) -> HookOutput:
        environ = {**request.environ, "PWD": request.cwd or "/"}
        event = side.read_document(request.document, environ)
        context = event.context
        act = (side.name, context.session.id, event.name, context.tool_use_id, _digest(event, request))
        return await self._acts.judged(act, request.agent, lambda: self._judged(side, event, environ, request))

    async def _judged(
        self, side: AgentSide, event: AgentEvent, environ: Mapping[str, str], request: Request
    ) -> HookOutput:
        reported = event.context.session
        session = self.sessions.of_event(
            side.name, reported.id, environ, request.process, request.run, project=reported.project_dir
        )
        contexts = [self._prepared(side, session, context) for context in (event.context, *event.others)]
        if self._feed is not None and self._feed.shows_calls:
            for context in contexts:
                session.hooks_for(context, side.name).keep_inputs()
        runs: list[HookRun] = []
        if event.context.event is Event.PRE_TOOL_USE:
            decision, problems = await self.calls.before(side, session, event, contexts, request, runs)
        else:
            decisions = [await self._decide(side, session, context, runs) for context in contexts]
            decision, problems = expressible(hook_decision.combined(decisions), side, event.context)
        return with_lines(side.write_output(event, decision), [*problems, *failures(runs)])

    def _prepared(self, side: AgentSide, session: NativeSession, context: EventContext) -> EventContext:
        """The context as hooks and rules may read it. Raises ValueError."""
        context = normalised(context, self._settings.max_depth)
        own = context.alias
        context = replace(context, own_tool=own is not None)
        if not context.tool:
            return context
        if own is not None and (own.name != context.tool or own.name in FAMILIAR_NAMES):
            if own.name == "MultiEdit":  # as of a server's tool, a list of edits is both
                own = replace(own, alternatives=(replace(own, name="Edit", alternatives=()), *own.alternatives))
            session.hooks_for(context, side.name).note_own_tool(own)
            return replace(context, alias=own, managed_alias=own)  # no server's list can change what it is
        hooks = session.hooks_for(context, side.name)
        known = hooks.groups.alias(context.tool, context.arguments)
        if own is None:
            return replace(context, alias=known)
        if known is not None:  # a new tool of the agent's own may do what a familiar one does, as a server's may
            own = replace(own, alternatives=(known, *known.alternatives))
        return replace(context, alias=own, managed_alias=own)

    async def _decide(
        self, side: AgentSide, session: NativeSession, context: EventContext, runs: list[HookRun]
    ) -> HookDecision:
        """What the agent gets for one context of an event that is not before a call."""
        if context.event in AFTER:
            return await self.calls.after(side, session, context, runs)
        own = await session.hooks_for(context, side.name).run_event_hooks(context)
        runs += own
        if context.event is Event.PERMISSION_REQUEST:
            return hook_decision.permission_request(own)
        return hook_decision.other_event(own)


def _check_values(document: bytes) -> None:
    """Raise ValueError for a document that would take the guard seconds: it judges one event after another."""
    if nesting.has_more_values(document, MAX_VALUES):
        raise ValueError(f"it has more than {MAX_VALUES:,} JSON values")
    if nesting.has_more_members(document, MAX_MEMBERS):  # each of which is looked at
        raise ValueError(f"it has more than {MAX_MEMBERS:,} members")


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
    """The digest of all by which a judged act differs from another: who acts and where, tools, arguments, and outcome.

    What else is in a document, and the folder, may differ between the entries of one event.
    """
    digest = sha256(b"" if request.run is None else b"%d %d " % (request.run.pid, request.run.started))
    if not event.context.tool:
        digest.update(request.document)
        return digest.digest()
    for context in (event.context, *event.others):
        names = (context.session.server, context.tool)
        parts = [name.encode("utf-8", "surrogatepass") for name in (*names, *_subagent(context))] + [context.arguments]
        if (end := context.outcome) is not None:
            parts += [end.content, end.structured, end.more, end.whole, end.error.encode("utf-8", "surrogatepass")]
        for part in parts:
            digest.update(b"%d " % len(part) + part)
    return digest.digest()


def _subagent(context: EventContext) -> tuple[str, str]:
    """The subagent that acts: the id of a call does not name it where each subagent counts its own calls."""
    state = context.agent_state or AgentState()
    return state.agent_id, state.agent_type
