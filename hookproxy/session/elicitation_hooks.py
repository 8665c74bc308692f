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

from ..hooks.select import Chosen
from ..hooks.session_events import Moments, Surroundings
from ..jsonrpc import raw_json, schema
from ..model.hooks import Event, Inquiry, Occasion, Statement, Verdict
from ..model.settings import Settings
from ..protocol import elicitation_messages, feedback, response_edits
from ..protocol.actions import Asked, Replied, Withdrawn
from ..protocol.elicitation_messages import Answer, OpenQuestion, Stage
from ..protocol.elicitations import MOST, Elicitations, all_in_result
from ..protocol.responses import Members

_DECLINE: Final = Answer("decline")
_REFUSED: Final = f"hookproxy refused this question: {MOST} questions, or too long ones, wait for their answers"


class Answering:
    """The questions and answers that wait for hooks."""

    def __init__(
        self,
        around: Surroundings,
        moments: Moments,
        table: Elicitations | None,
        settings: Settings,
        to_server: Callable[[bytes], None],
    ) -> None:
        self._around = around
        self._moments = moments
        self._table = table
        self._settings = settings
        self._to_server = to_server
        self._held: dict[OpenQuestion, anyio.CancelScope] = {}
        self._held_bytes = 0
        self._refused = False

    @property
    def holding(self) -> bool:
        """A question or an answer waits for hooks."""
        return bool(self._held)

    def perform(self, effect: Asked | Replied | Withdrawn, line: bytes) -> None:
        """Do what the table of questions decided about a line."""
        line = raw_json.one_line(line)
        match effect:
            case Asked(question):
                self._asked(question, line)
            case Replied(question, inquiry):
                self._replied(question, inquiry, line)
            case Withdrawn(question):
                self._held[question].cancel()

    def end(self) -> None:
        """The server is gone: nobody waits for an answer any more."""
        for scope in self._held.values():
            scope.cancel()

    def _asked(self, question: OpenQuestion, line: bytes) -> None:
        if question.stage is Stage.REFUSED or self._held_bytes + len(line) > self._settings.max_message_bytes:
            self._refuse(question)
            return
        self._moments.occur(self._occasion(Event.ELICITATION, question.inquiry), only_told=True)
        if self._judges(Event.ELICITATION):
            question.stage = Stage.HELD
            self._hold(question, line, lambda: self._judge_question(question, line))
        else:
            self._show(question, line)

    def _replied(self, question: OpenQuestion, inquiry: Inquiry, line: bytes) -> None:
        self._moments.occur(self._occasion(Event.ELICITATION_RESULT, inquiry), only_told=True)
        if inquiry.action in ("accept", "decline", "cancel") and self._judges(Event.ELICITATION_RESULT):
            self._hold(question, line, lambda: self._judge_answer(question, inquiry, line))
        else:
            self._close(question, line)

    def _refuse(self, question: OpenQuestion) -> None:
        self._close(question, response_edits.error(question.id, feedback.REFUSED, _REFUSED))
        if not self._refused:
            self._tell(_REFUSED)
        self._refused = True

    def _show(self, question: OpenQuestion, line: bytes) -> None:
        """Nobody has answered: the person is to."""
        question.stage = Stage.ASKED
        self._around.to_agent(line)
        self._moments.shown(question.inquiry.message)

    def _close(self, question: OpenQuestion, line: bytes) -> None:
        """The server gets its answer."""
        if self._table is not None and question.stage is not Stage.REFUSED:
            self._table.close(question)
        self._to_server(line)

    # --- what waits ---

    def _hold(self, question: OpenQuestion, line: bytes, judge: Callable[[], Awaitable[None]]) -> None:
        self._held[question] = anyio.CancelScope()
        self._held_bytes += len(line)
        self._around.spawn(self._see_through, question, len(line), judge)

    async def _see_through(self, question: OpenQuestion, size: int, judge: Callable[[], Awaitable[None]]) -> None:
        """One question's task, or one answer's. Whatever happens in it ends this one alone, and consents to nothing."""
        try:
            with self._held[question]:
                await judge()
        except Exception as defect:  # the task's boundary: fail closed, and say so
            self._around.say("".join(traceback.format_exception(defect)).rstrip())
            self._close(question, elicitation_messages.response(question.id, _DECLINE))
        finally:
            del self._held[question]
            self._held_bytes -= size
            self._around.tell()

    async def _judge_question(self, question: OpenQuestion, line: bytes) -> None:
        answer = await self._judged(Event.ELICITATION, question.inquiry, question.task)
        if self._held[question].cancel_called:  # the server has changed its mind while the last hook ended
            return
        if answer is None:
            self._show(question, line)
        else:
            self._close(question, elicitation_messages.response(question.id, answer))
            self._tell(elicitation_messages.told(question.inquiry, answer))

    async def _judge_answer(self, question: OpenQuestion, inquiry: Inquiry, line: bytes) -> None:
        answer = await self._judged(Event.ELICITATION_RESULT, inquiry, question.task)
        changed = line if answer is None else elicitation_messages.changed(line, answer)
        self._close(question, changed)
        if answer is not None and changed is not line:
            self._tell(elicitation_messages.told(inquiry, answer))

    # --- what hooks say ---

    async def answer_all(self, result: Members) -> dict[str, Answer] | None:
        """The answers of hooks to all that an `input_required` result wants; None where they do not answer all."""
        questions = all_in_result(result)
        if questions is None or len(questions) > MOST or not self._judges(Event.ELICITATION):
            return None
        found: dict[str, Answer] = {}
        for name, inquiry in questions.items():
            answer = await self._judged(Event.ELICITATION, inquiry)
            if answer is None:
                return None
            found[name] = answer
        for name, answer in found.items():
            self._tell(elicitation_messages.told(questions[name], answer))
        return found

    def _judges(self, event: Event) -> list[Chosen]:
        """The groups that may answer."""
        around = self._around
        return [one for one in around.hooks.groups.at(Occasion(event, around.session)) if one.answers]

    async def _judged(self, event: Event, inquiry: Inquiry, task: bool = False) -> Answer | None:
        """The answer of all groups, asked one after another: a refusal ends it, and each sees what came before."""
        answer: Answer | None = None
        for chosen in self._judges(event):
            statements = await self._around.hooks.asked(chosen, self._occasion(event, inquiry))
            self._moments.keep_feedback(statements)
            said = [await self._fitting(one, inquiry, task) for one in statements]
            answer = elicitation_messages.stricter(
                answer, elicitation_messages.decide(said, self._settings, chosen.group.on_trouble)
            )
            if answer is not None and answer.action == "decline":
                break
            if answer is not None and event is Event.ELICITATION_RESULT:
                inquiry = elicitation_messages.given(inquiry, answer)
        return answer

    async def _fitting(self, one: Statement, inquiry: Inquiry, task: bool) -> Statement:
        """The statement with the content that would be sent; that it does not fit the form is trouble."""
        verdict = elicitation_messages.settled(one.verdict, inquiry, task)
        if verdict.action == "accept" and verdict.content is not None and inquiry.schema and not verdict.trouble:
            # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
            problem = await anyio.to_thread.run_sync(schema.misfit, inquiry.schema, verdict.content)
            if problem:
                verdict = replace(verdict, trouble=f"gave a content that does not fit the form: {problem}")
        if verdict.trouble != one.verdict.trouble:
            self._moments.report(replace(one, verdict=Verdict(trouble=verdict.trouble)))
        return replace(one, verdict=verdict)

    def _occasion(self, event: Event, inquiry: Inquiry) -> Occasion:
        by, message = inquiry.action, inquiry.message
        return Occasion(event, self._around.session, occasioned_by=by, message=message, inquiry=inquiry, at=time())

    def _tell(self, text: str) -> None:
        self._around.say(text)
        self._moments.note(text)
