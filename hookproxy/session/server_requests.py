"""The server's requests that wait for hooks, for a decision, or for the agent's answer that hooks judge.

Each of them has a task of its own; all other lines pass (law 2). Two things may be said of a request, in this order:

    rules, limits and hooks of calls that name its method    decide whether the agent ever sees it, and judge the answer
    hooks of the events of elicitations                      answer an elicitation in the person's place

What must hold: a refused request is never shown to the agent, and each request has one answer (law 1).
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct, field

from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import normalize, raw_json
from ..model.call_end import CallEnd, Cancelled, Failed, Refused, Responded
from ..model.decision import RefusalCause, Refuse
from ..model.hooks import Elicitation, Event
from ..protocol import elicitation_messages, feedback, response_edits, server_requests
from ..protocol.actions import ElicitationAnswered, ElicitationCompleted, ElicitationRequested, ElicitationWithdrawn
from ..protocol.elicitation_messages import ElicitationResponse, ElicitationStage, PendingElicitation
from ..protocol.elicitations import MAX_PENDING
from ..protocol.router import Router
from .elicitation_hooks import ElicitationHooks
from .post_hooks import content_of
from .relay import Relay

if TYPE_CHECKING:
    from .judged_request import JudgedRequest, JudgesRequests

_DECLINE: Final = ElicitationResponse("decline")
_REFUSED: Final = f"hookproxy refused this request: {MAX_PENDING} others, or too many bytes, wait for an answer"
_STOPS: Final = (ElicitationStage.HELD, ElicitationStage.ANSWERED)


class _Waiting(Struct, eq=False):
    """The agent's answer, for which the task of a judged request waits."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    line: bytes = b""
    elicitation: Elicitation = field(default_factory=lambda: Elicitation(""))


class ServerRequests:
    """The server's requests in flight that concern hooks."""

    def __init__(
        self,
        session_context: SessionContext,
        session_events: SessionEvents,
        router: Router,
        relay: Relay,
        elicitation_hooks: ElicitationHooks,
    ) -> None:
        self._context = session_context
        self._session_events = session_events
        self._router = router
        self._relay = relay
        self._hooks = elicitation_hooks
        self.judge: JudgesRequests | None = None
        """Judges requests by rules and hooks of calls; set before the first byte."""
        self._scopes: dict[PendingElicitation, anyio.CancelScope] = {}
        self._waiting: dict[PendingElicitation, _Waiting] = {}
        self._waiting_bytes = 0
        self._refusal_reported = False

    @property
    def has_undecided(self) -> bool:
        """A request or an answer waits for hooks."""
        return any(not pending.judged or pending.stage in _STOPS for pending in self._scopes)

    def perform(
        self,
        action: ElicitationRequested | ElicitationAnswered | ElicitationWithdrawn | ElicitationCompleted,
        line: bytes,
    ) -> None:
        """Perform an action of the router on a line."""
        is_answer = isinstance(action, ElicitationAnswered)
        line = (self._relay.as_line_to_server if is_answer else self._relay.as_line_to_agent)(line)
        if line[:1] in (b"\v", b"\f"):  # which some readers skip, and which are not JSON
            line = line.lstrip()
        match action:
            case ElicitationRequested(pending):
                self._handle_request(pending, line)
            case ElicitationAnswered(pending, elicitation):
                self._handle_answer(pending, elicitation, line)
            case ElicitationWithdrawn(pending):
                if pending.stage is ElicitationStage.WITHDRAWN:
                    self._context.to_agent(line)
                if pending in self._scopes:
                    self._scopes[pending].cancel()
            case ElicitationCompleted():
                self._context.to_agent(line)
                self._session_events.start_complete_hooks()

    def handle_server_exit(self) -> None:
        """End all hooks that run: no server waits for an answer any longer."""
        for scope in self._scopes.values():
            scope.cancel()

    def _handle_request(self, pending: PendingElicitation, line: bytes) -> None:
        limit = self._context.policy.settings.max_message_bytes
        if pending.stage is ElicitationStage.REFUSED or self._waiting_bytes + len(line) > limit:
            self._refuse(pending)
            return
        if pending.judged:
            pending.stage = ElicitationStage.HELD
            self._start(pending, line, lambda: self._judge(pending, line))
            return
        self._observe(pending)
        if self._hooks.answering_groups(Event.ELICITATION):
            pending.stage = ElicitationStage.HELD
            self._start(pending, line, lambda: self._answer_request(pending, line))
        else:
            self._forward_to_agent(pending, line)

    def _observe(self, pending: PendingElicitation) -> None:
        asked = self._hooks.event_context(Event.ELICITATION, pending.elicitation)
        self._session_events.start_hooks(asked, only_observers=True)

    def _handle_answer(self, pending: PendingElicitation, elicitation: Elicitation, line: bytes) -> None:
        if pending.is_elicitation:
            answered = self._hooks.event_context(Event.ELICITATION_RESULT, elicitation)
            self._session_events.start_hooks(answered, only_observers=True)
            if elicitation.action and elicitation.action != "error":
                self._session_events.start_response_hooks(elicitation.action)
        if (waiting := self._waiting.get(pending)) is not None:
            waiting.line, waiting.elicitation = line, elicitation
            waiting.answered.set()
        elif self._may_change(elicitation):
            self._start(pending, line, lambda: self._change_answer(pending, elicitation, line))
        else:
            self._respond(pending, line)

    def _may_change(self, elicitation: Elicitation) -> bool:
        """Hooks may change this answer."""
        given = elicitation.action in ("accept", "decline", "cancel")
        return given and bool(self._hooks.answering_groups(Event.ELICITATION_RESULT))

    def _refuse(self, pending: PendingElicitation) -> None:
        self._respond(pending, response_edits.error_response(pending.id, feedback.REFUSED, _REFUSED))
        if not self._refusal_reported:
            self._context.report(_REFUSED)
        self._session_events.note_in_audit(_REFUSED)
        self._refusal_reported = True

    def _forward_to_agent(self, pending: PendingElicitation, line: bytes) -> None:
        """Nothing has answered, so the agent, or the person, is asked."""
        pending.stage = ElicitationStage.ASKED
        self._context.to_agent(line)
        if pending.is_elicitation:
            self._session_events.start_dialog_hooks(pending.elicitation.message, pending.elicitation.mode)

    def _respond(self, pending: PendingElicitation, line: bytes) -> None:
        elicitations = self._router.elicitations
        if elicitations is not None and pending.stage is not ElicitationStage.REFUSED:
            elicitations.close(pending)
        self._relay.to_server(line)

    # --- one task for each request or answer that waits ---

    def _start(self, pending: PendingElicitation, line: bytes, handle: Callable[[], Awaitable[None]]) -> None:
        self._scopes[pending] = anyio.CancelScope()
        self._waiting_bytes += len(line)
        self._context.spawn(self._handle, pending, len(line), handle)

    async def _handle(self, pending: PendingElicitation, size: int, handle: Callable[[], Awaitable[None]]) -> None:
        """The task of one request or answer. A defect ends this one alone, and declines it."""
        try:
            with self._scopes[pending]:
                await handle()
        except Exception as defect:  # the task's boundary: fail closed, and report it
            self._context.report("".join(traceback.format_exception(defect)).rstrip())
            declined = elicitation_messages.response_line(pending.id, _DECLINE)
            unable = response_edits.error_response(pending.id, response_edits.INTERNAL_ERROR, "It cannot be judged.")
            self._respond(pending, declined if pending.is_elicitation else unable)
        finally:
            del self._scopes[pending]
            self._waiting.pop(pending, None)
            self._waiting_bytes -= size
            self._context.notify()

    async def _answer_request(self, pending: PendingElicitation, line: bytes) -> None:
        answer = await self._hooks.run_hooks(Event.ELICITATION, pending.elicitation, pending.task)
        if self._scopes[pending].cancel_called:  # the server cancelled it while the last hook ended
            return
        if answer is None:
            self._forward_to_agent(pending, line)
        else:
            self._respond(pending, elicitation_messages.response_line(pending.id, answer))
            self._hooks.report(elicitation_messages.report(pending.elicitation, answer))

    async def _change_answer(self, pending: PendingElicitation, elicitation: Elicitation, line: bytes) -> None:
        self._respond(pending, await self._changed(pending, elicitation, line))

    async def _changed(self, pending: PendingElicitation, elicitation: Elicitation, line: bytes) -> bytes:
        """The agent's answer as hooks of the event ElicitationResult have changed it."""
        answer = await self._hooks.run_hooks(Event.ELICITATION_RESULT, elicitation, pending.task)
        changed = line if answer is None else elicitation_messages.changed_response(line, answer)
        if answer is not None and changed is not line:
            self._hooks.report(elicitation_messages.report(elicitation, answer))
        return changed

    # --- requests that rules and hooks of calls are about ---

    async def _judge(self, pending: PendingElicitation, line: bytes) -> None:
        """Judge the request; if it may pass, have it answered, and judge the answer. One record for both."""
        assert self.judge is not None, "it is set before the first byte"
        depth, members = self._context.policy.settings.max_depth, raw_json.fields(line)
        try:
            arguments = server_requests.arguments_of(pending.method, members, depth)
        except raw_json.AMBIGUOUS as problem:
            self._respond(pending, server_requests.unreadable(pending.id, str(problem)))
            text = f"refused the server's {pending.method}: {problem}"
            self._context.report(text)
            self._session_events.note_in_audit(text)
            return
        request = self.judge.request(pending.method, pending.id, arguments, line)
        end: CallEnd = Cancelled()
        try:
            end = await self._end_of(pending, line, request)
        except Exception as defect:  # fail closed, and report it
            self._context.report("".join(traceback.format_exception(defect)).rstrip())
            end = Failed(self._refusal(pending), self._context.describe_error(defect))
        finally:
            passes = request.close(end)
        answer = end.line
        if answer is not None:
            self._respond(pending, answer if passes or isinstance(end, Refused) else self._refusal(pending))

    def _refusal(self, pending: PendingElicitation, cause: RefusalCause = RefusalCause.FAILURE) -> bytes:
        return server_requests.refused(pending.id, pending.method, cause, task=pending.task)

    async def _end_of(self, pending: PendingElicitation, line: bytes, request: JudgedRequest) -> CallEnd:
        decision = await request.decide()
        if self._scopes[pending].cancel_called:  # the server cancelled it while the last hook ended
            return Cancelled()
        if isinstance(decision, Refuse):
            return request.refused(decision, self._refusal(pending, decision.cause))
        if decision.arguments is not None:
            arguments = request.record.arguments
            line = server_requests.with_arguments(line, arguments, normalize.normalize(decision.arguments))
            if pending.is_elicitation:
                pending.elicitation = elicitation_messages.read(raw_json.fields(raw_json.fields(line)["params"]))
        answer = await self._answer_of_agent(pending, line)
        end = await self._judged_answer(pending, answer, request)
        if isinstance(end, Responded) and end.line is not None:
            refuse = await request.refuse_answer(content_of(end.line))
            if refuse is not None:
                return request.refused(refuse, self._refusal(pending, refuse.cause))
        return end

    async def _judged_answer(self, pending: PendingElicitation, line: bytes, request: JudgedRequest) -> CallEnd:
        """How the request ends with this answer of the agent."""
        if not request.judges_answer:
            failed = "error" in raw_json.fields(line)
            return Responded(line, "error" if failed else "ok")
        from ..protocol import request_answers  # for such hooks only

        try:
            members = raw_json.fields(line)
            outcome = request_answers.outcome_of(members, request.policy.settings.max_depth)
            comments = await request.judge_answer(outcome)
            if not (comments.takes_output or comments.failed):
                return Responded(line, "error" if outcome.error else "ok")
            edited = self._refusal(pending)
            if "result" in members:
                result = bytes(members["result"])
                new = request_answers.after_comments(pending.method, comments, result, b"")
                edited = raw_json.with_member(line, "result", new) if new else edited
        except ValueError as problem:  # readers may find different answers, or a hook has given none
            self._context.report(f"the answer to a {pending.method} is withheld: {problem}")
            return Failed(self._refusal(pending), str(problem))
        request.record.result_before, request.record.result_after = line, edited
        return Responded(edited)

    async def _answer_of_agent(self, pending: PendingElicitation, line: bytes) -> bytes:
        """The answer of hooks of elicitations, or of the agent."""
        roots = self._router.roots
        if pending.method == server_requests.ROOTS and roots is not None and roots.are_fixed:
            self._session_events.note_in_audit(roots.note)
            return roots.response(pending.id)
        if pending.is_elicitation:
            self._observe(pending)
            if self._hooks.answering_groups(Event.ELICITATION):
                answer = await self._hooks.run_hooks(Event.ELICITATION, pending.elicitation, pending.task)
                if answer is not None:
                    self._hooks.report(elicitation_messages.report(pending.elicitation, answer))
                    pending.stage = ElicitationStage.ANSWERED
                    return elicitation_messages.response_line(pending.id, answer)
        waiting = self._waiting[pending] = _Waiting()
        self._forward_to_agent(pending, line)
        await waiting.answered.wait()
        if pending.is_elicitation and self._may_change(waiting.elicitation):
            return await self._changed(pending, waiting.elicitation, waiting.line)
        return waiting.line
