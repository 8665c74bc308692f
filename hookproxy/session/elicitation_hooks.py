"""Hooks that answer the server's elicitations in the person's place, or change the person's answers.

An elicitation, or an answer, that waits for hooks has a task of its own; all other lines pass (law 2).
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from time import time
from typing import Final

import anyio
import anyio.to_thread
from msgspec.structs import replace

from ..hooks.select import SelectedHooks
from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import schema
from ..model.hooks import Elicitation, Event, EventContext, HookRun, Verdict
from ..protocol import elicitation_messages, feedback, response_edits
from ..protocol.actions import ElicitationAnswered, ElicitationCompleted, ElicitationRequested, ElicitationWithdrawn
from ..protocol.elicitation_messages import ElicitationResponse, ElicitationStage, PendingElicitation
from ..protocol.elicitations import MAX_PENDING, all_in_result
from ..protocol.responses import Members
from ..protocol.router import Router
from .relay import Relay

_DECLINE: Final = ElicitationResponse("decline")
_REFUSED: Final = f"hookproxy refused this elicitation: {MAX_PENDING} others, or too many bytes, wait for an answer"


class ElicitationHooks:
    """The elicitations and answers that wait for hooks."""

    def __init__(
        self, session_context: SessionContext, session_events: SessionEvents, router: Router, relay: Relay
    ) -> None:
        self._context = session_context
        self._session_events = session_events
        self._router = router
        self._relay = relay
        self._scopes: dict[PendingElicitation, anyio.CancelScope] = {}
        self._waiting_bytes = 0
        self._refusal_reported = False

    @property
    def has_undecided(self) -> bool:
        """An elicitation or an answer waits for hooks."""
        return bool(self._scopes)

    def perform(
        self,
        action: ElicitationRequested | ElicitationAnswered | ElicitationWithdrawn | ElicitationCompleted,
        line: bytes,
    ) -> None:
        """Perform an action of the router on a line."""
        is_answer = isinstance(action, ElicitationAnswered)
        line = (self._relay.as_line_to_server if is_answer else self._relay.as_line_to_agent)(line)
        match action:
            case ElicitationRequested(pending):
                self._handle_request(pending, line)
            case ElicitationAnswered(pending, elicitation):
                self._handle_answer(pending, elicitation, line)
            case ElicitationWithdrawn(pending):
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
        asked = self._event_context(Event.ELICITATION, pending.elicitation)
        self._session_events.start_hooks(asked, only_observers=True)
        if self._answering_groups(Event.ELICITATION):
            pending.stage = ElicitationStage.HELD
            self._start(pending, line, lambda: self._answer_request(pending, line))
        else:
            self._forward_to_agent(pending, line)

    def _handle_answer(self, pending: PendingElicitation, elicitation: Elicitation, line: bytes) -> None:
        answered = self._event_context(Event.ELICITATION_RESULT, elicitation)
        self._session_events.start_hooks(answered, only_observers=True)
        if elicitation.action and elicitation.action != "error":
            self._session_events.start_response_hooks(elicitation.action)
        if elicitation.action in ("accept", "decline", "cancel") and self._answering_groups(Event.ELICITATION_RESULT):
            self._start(pending, line, lambda: self._change_answer(pending, elicitation, line))
        else:
            self._respond(pending, line)

    def _refuse(self, pending: PendingElicitation) -> None:
        self._respond(pending, response_edits.error_response(pending.id, feedback.REFUSED, _REFUSED))
        if not self._refusal_reported:
            self._context.report(_REFUSED)
        self._session_events.note_in_audit(_REFUSED)
        self._refusal_reported = True

    def _forward_to_agent(self, pending: PendingElicitation, line: bytes) -> None:
        """No hook has answered, so the person is asked."""
        pending.stage = ElicitationStage.ASKED
        self._context.to_agent(line)
        self._session_events.start_dialog_hooks(pending.elicitation.message, pending.elicitation.mode)

    def _respond(self, pending: PendingElicitation, line: bytes) -> None:
        elicitations = self._router.elicitations
        if elicitations is not None and pending.stage is not ElicitationStage.REFUSED:
            elicitations.close(pending)
        self._relay.to_server(line)

    # --- one task for each elicitation or answer that waits for hooks ---

    def _start(self, pending: PendingElicitation, line: bytes, handle: Callable[[], Awaitable[None]]) -> None:
        self._scopes[pending] = anyio.CancelScope()
        self._waiting_bytes += len(line)
        self._context.spawn(self._handle, pending, len(line), handle)

    async def _handle(self, pending: PendingElicitation, size: int, handle: Callable[[], Awaitable[None]]) -> None:
        """The task of one elicitation or answer. A defect ends this one alone, and declines it."""
        try:
            with self._scopes[pending]:
                await handle()
        except Exception as defect:  # the task's boundary: fail closed, and report it
            self._context.report("".join(traceback.format_exception(defect)).rstrip())
            self._respond(pending, elicitation_messages.response_line(pending.id, _DECLINE))
        finally:
            del self._scopes[pending]
            self._waiting_bytes -= size
            self._context.notify()

    async def _answer_request(self, pending: PendingElicitation, line: bytes) -> None:
        answer = await self._run_hooks(Event.ELICITATION, pending.elicitation, pending.task)
        if self._scopes[pending].cancel_called:  # the server cancelled it while the last hook ended
            return
        if answer is None:
            self._forward_to_agent(pending, line)
        else:
            self._respond(pending, elicitation_messages.response_line(pending.id, answer))
            self._report(elicitation_messages.report(pending.elicitation, answer))

    async def _change_answer(self, pending: PendingElicitation, elicitation: Elicitation, line: bytes) -> None:
        answer = await self._run_hooks(Event.ELICITATION_RESULT, elicitation, pending.task)
        changed = line if answer is None else elicitation_messages.changed_response(line, answer)
        self._respond(pending, changed)
        if answer is not None and changed is not line:
            self._report(elicitation_messages.report(elicitation, answer))

    # --- running the hooks ---

    async def answer_elicitations(self, result: Members) -> dict[str, ElicitationResponse] | None:
        """The answers of hooks to all requests of an `input_required` result; None if they do not answer all."""
        elicitations = all_in_result(result)
        if elicitations is None or len(elicitations) > MAX_PENDING or not self._answering_groups(Event.ELICITATION):
            return None
        answers: dict[str, ElicitationResponse] = {}
        for name, elicitation in elicitations.items():
            answer = await self._run_hooks(Event.ELICITATION, elicitation)
            if answer is None:
                return None
            answers[name] = answer
        for name, answer in answers.items():
            self._report(elicitation_messages.report(elicitations[name], answer))
        return answers

    def _answering_groups(self, event: Event) -> list[SelectedHooks]:
        groups = self._context.policy.hooks.groups
        return [group for group in groups.select_for(EventContext(event, self._context.session)) if group.may_answer]

    async def _run_hooks(
        self, event: Event, elicitation: Elicitation, task: bool = False
    ) -> ElicitationResponse | None:
        """Run the groups one after another; each sees the answer so far, and a decline ends it. Returns the answer."""
        answer: ElicitationResponse | None = None
        for selected in self._answering_groups(event):
            hook_runs = await self._context.policy.hooks.run_group(selected, self._event_context(event, elicitation))
            self._session_events.keep_feedback(hook_runs)
            checked = [await self._checked(run, elicitation, task) for run in hook_runs]
            settings, on_failure = self._context.policy.settings, selected.group.on_failure
            of_group = elicitation_messages.decide(checked, settings, on_failure)
            answer = elicitation_messages.stricter(answer, of_group)
            if answer is not None and answer.action == "decline":
                break
            if answer is not None and event is Event.ELICITATION_RESULT:
                elicitation = elicitation_messages.with_response(elicitation, answer)
        return answer

    async def _checked(self, run: HookRun, elicitation: Elicitation, task: bool) -> HookRun:
        """The hook run with the content that would be sent; a content that does not fit the form is a failure."""
        verdict = elicitation_messages.checked_verdict(run.verdict, elicitation, task)
        if verdict.action == "accept" and verdict.content is not None and elicitation.schema and not verdict.failure:
            # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
            problem = await anyio.to_thread.run_sync(schema.mismatch, elicitation.schema, verdict.content)
            if problem:
                verdict = replace(verdict, failure=f"gave content that does not fit the form: {problem}")
        if verdict.failure != run.verdict.failure:
            self._session_events.report_hook_run(replace(run, verdict=Verdict(failure=verdict.failure)))
        return replace(run, verdict=verdict)

    def _event_context(self, event: Event, elicitation: Elicitation) -> EventContext:
        action, message = elicitation.action, elicitation.message
        return EventContext(
            event, self._context.session, trigger=action, message=message, elicitation=elicitation, at=time()
        )

    def _report(self, text: str) -> None:
        self._context.report(text)
        self._session_events.note_in_audit(text)
