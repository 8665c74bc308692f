"""Hooks that answer the server's questions in the person's place, or change the person's answers.

A question, or an answer, that hooks judge waits in a task of its own; all other lines go on (law 2).
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
from ..jsonrpc import raw_json, schema
from ..model.hooks import Elicitation, Event, EventContext, HookRun, Verdict
from ..model.settings import Settings
from ..protocol import elicitation_messages, feedback, response_edits
from ..protocol.actions import ElicitationAnswered, ElicitationRequested, ElicitationWithdrawn
from ..protocol.elicitation_messages import Answer, PendingElicitation, Stage
from ..protocol.elicitations import MOST, Elicitations, all_in_result
from ..protocol.responses import Members

_DECLINE: Final = Answer("decline")
_REFUSED: Final = f"hookproxy refused this question: {MOST} questions, or too long ones, wait for their answers"


class ElicitationHooks:
    """The questions and answers that wait for hooks."""

    def __init__(
        self,
        session_context: SessionContext,
        session_events: SessionEvents,
        table: Elicitations | None,
        settings: Settings,
        to_server: Callable[[bytes], None],
    ) -> None:
        self._context = session_context
        self._session_events = session_events
        self._table = table
        self._settings = settings
        self._to_server = to_server
        self._backpressure: dict[PendingElicitation, anyio.CancelScope] = {}
        self._held_bytes = 0
        self._refused = False

    @property
    def has_undecided(self) -> bool:
        """A question or an answer waits for hooks."""
        return bool(self._backpressure)

    def perform(self, effect: ElicitationRequested | ElicitationAnswered | ElicitationWithdrawn, line: bytes) -> None:
        """Do what the table of questions decided about a line."""
        line = raw_json.one_line(line)
        match effect:
            case ElicitationRequested(question):
                self._asked(question, line)
            case ElicitationAnswered(question, elicitation):
                self._replied(question, elicitation, line)
            case ElicitationWithdrawn(question):
                self._backpressure[question].cancel()

    def handle_server_exit(self) -> None:
        """The server is gone: nobody waits for an answer any more."""
        for scope in self._backpressure.values():
            scope.cancel()

    def _asked(self, question: PendingElicitation, line: bytes) -> None:
        if question.stage is Stage.REFUSED or self._held_bytes + len(line) > self._settings.max_message_bytes:
            self._refuse(question)
            return
        self._session_events.start_hooks(self._occasion(Event.ELICITATION, question.elicitation), only_observers=True)
        if self._judges(Event.ELICITATION):
            question.stage = Stage.HELD
            self._hold(question, line, lambda: self._judge_question(question, line))
        else:
            self._show(question, line)

    def _replied(self, question: PendingElicitation, elicitation: Elicitation, line: bytes) -> None:
        self._session_events.start_hooks(self._occasion(Event.ELICITATION_RESULT, elicitation), only_observers=True)
        if elicitation.action in ("accept", "decline", "cancel") and self._judges(Event.ELICITATION_RESULT):
            self._hold(question, line, lambda: self._judge_answer(question, elicitation, line))
        else:
            self._close(question, line)

    def _refuse(self, question: PendingElicitation) -> None:
        self._close(question, response_edits.error(question.id, feedback.REFUSED, _REFUSED))
        if not self._refused:
            self._tell(_REFUSED)
        self._refused = True

    def _show(self, question: PendingElicitation, line: bytes) -> None:
        """Nobody has answered: the person is to."""
        question.stage = Stage.ASKED
        self._context.to_agent(line)
        self._session_events.start_dialog_hooks(question.elicitation.message)

    def _close(self, question: PendingElicitation, line: bytes) -> None:
        """The server gets its answer."""
        if self._table is not None and question.stage is not Stage.REFUSED:
            self._table.close(question)
        self._to_server(line)

    # --- what waits ---

    def _hold(self, question: PendingElicitation, line: bytes, judge: Callable[[], Awaitable[None]]) -> None:
        self._backpressure[question] = anyio.CancelScope()
        self._held_bytes += len(line)
        self._context.spawn(self._carry_out, question, len(line), judge)

    async def _carry_out(self, question: PendingElicitation, size: int, judge: Callable[[], Awaitable[None]]) -> None:
        """One question's task, or one answer's. Whatever happens in it ends this one alone, and consents to nothing."""
        try:
            with self._backpressure[question]:
                await judge()
        except Exception as defect:  # the task's boundary: fail closed, and say so
            self._context.report("".join(traceback.format_exception(defect)).rstrip())
            self._close(question, elicitation_messages.response(question.id, _DECLINE))
        finally:
            del self._backpressure[question]
            self._held_bytes -= size
            self._context.notify()

    async def _judge_question(self, question: PendingElicitation, line: bytes) -> None:
        answer = await self._judged(Event.ELICITATION, question.elicitation, question.task)
        if self._backpressure[question].cancel_called:  # the server has changed its mind while the last hook ended
            return
        if answer is None:
            self._show(question, line)
        else:
            self._close(question, elicitation_messages.response(question.id, answer))
            self._tell(elicitation_messages.told(question.elicitation, answer))

    async def _judge_answer(self, question: PendingElicitation, elicitation: Elicitation, line: bytes) -> None:
        answer = await self._judged(Event.ELICITATION_RESULT, elicitation, question.task)
        changed = line if answer is None else elicitation_messages.changed(line, answer)
        self._close(question, changed)
        if answer is not None and changed is not line:
            self._tell(elicitation_messages.told(elicitation, answer))

    # --- what hooks say ---

    async def answer_elicitations(self, result: Members) -> dict[str, Answer] | None:
        """The answers of hooks to all that an `input_required` result wants; None where they do not answer all."""
        questions = all_in_result(result)
        if questions is None or len(questions) > MOST or not self._judges(Event.ELICITATION):
            return None
        found: dict[str, Answer] = {}
        for name, elicitation in questions.items():
            answer = await self._judged(Event.ELICITATION, elicitation)
            if answer is None:
                return None
            found[name] = answer
        for name, answer in found.items():
            self._tell(elicitation_messages.told(questions[name], answer))
        return found

    def _judges(self, event: Event) -> list[SelectedHooks]:
        """The groups that may answer."""
        session_context = self._context
        return [
            one
            for one in session_context.hooks.groups.select_for(EventContext(event, session_context.session))
            if one.may_answer
        ]

    async def _judged(self, event: Event, elicitation: Elicitation, task: bool = False) -> Answer | None:
        """The answer of all groups, asked one after another: a refusal ends it, and each sees what came before."""
        answer: Answer | None = None
        for selected in self._judges(event):
            hook_runs = await self._context.hooks.run_group(selected, self._occasion(event, elicitation))
            self._session_events.keep_feedback(hook_runs)
            said = [await self._fitting(one, elicitation, task) for one in hook_runs]
            answer = elicitation_messages.stricter(
                answer, elicitation_messages.decide(said, self._settings, selected.group.on_failure)
            )
            if answer is not None and answer.action == "decline":
                break
            if answer is not None and event is Event.ELICITATION_RESULT:
                elicitation = elicitation_messages.given(elicitation, answer)
        return answer

    async def _fitting(self, one: HookRun, elicitation: Elicitation, task: bool) -> HookRun:
        """The statement with the content that would be sent; that it does not fit the form is trouble."""
        verdict = elicitation_messages.settled(one.verdict, elicitation, task)
        if verdict.action == "accept" and verdict.content is not None and elicitation.schema and not verdict.failure:
            # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
            problem = await anyio.to_thread.run_sync(schema.misfit, elicitation.schema, verdict.content)
            if problem:
                verdict = replace(verdict, failure=f"gave a content that does not fit the form: {problem}")
        if verdict.failure != one.verdict.failure:
            self._session_events.report_hook_run(replace(one, verdict=Verdict(failure=verdict.failure)))
        return replace(one, verdict=verdict)

    def _occasion(self, event: Event, elicitation: Elicitation) -> EventContext:
        by, message = elicitation.action, elicitation.message
        return EventContext(
            event, self._context.session, trigger=by, message=message, elicitation=elicitation, at=time()
        )

    def _tell(self, text: str) -> None:
        self._context.report(text)
        self._session_events.note_in_audit(text)
