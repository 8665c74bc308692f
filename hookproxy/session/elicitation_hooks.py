"""Hooks that answer the server's elicitations in the person's place, or change the person's answers.

`server_requests` runs them; a system that has no such hooks may name the method `elicitation/create` instead.
"""

from __future__ import annotations

from time import time

import anyio.to_thread
from msgspec.structs import replace

from ..hooks.select import SelectedHooks
from ..hooks.session_events import SessionContext, SessionEvents
from ..jsonrpc import schema
from ..model.hooks import Elicitation, Event, EventContext, HookRun, Verdict
from ..protocol import elicitation_messages
from ..protocol.elicitation_messages import ElicitationResponse
from ..protocol.elicitations import MAX_PENDING, all_in_result
from ..protocol.responses import Members


class ElicitationHooks:
    """Runs the hooks of the events Elicitation and ElicitationResult."""

    def __init__(self, session_context: SessionContext, session_events: SessionEvents) -> None:
        self._context = session_context
        self._session_events = session_events

    async def answer_elicitations(self, result: Members) -> dict[str, ElicitationResponse] | None:
        """The answers of hooks to all requests of an `input_required` result; None if they do not answer all."""
        elicitations = all_in_result(result)
        if elicitations is None or len(elicitations) > MAX_PENDING or not self.answering_groups(Event.ELICITATION):
            return None
        answers: dict[str, ElicitationResponse] = {}
        for name, elicitation in elicitations.items():
            answer = await self.run_hooks(Event.ELICITATION, elicitation)
            if answer is None:
                return None
            answers[name] = answer
        for name, answer in answers.items():
            self.report(elicitation_messages.report(elicitations[name], answer))
        return answers

    def answering_groups(self, event: Event) -> list[SelectedHooks]:
        """The groups whose hooks may answer an elicitation, or change an answer."""
        groups = self._context.policy.hooks.groups
        return [group for group in groups.select_for(EventContext(event, self._context.session)) if group.may_answer]

    async def run_hooks(self, event: Event, elicitation: Elicitation, task: bool = False) -> ElicitationResponse | None:
        """Run the groups one after another; each sees the answer so far, and a decline ends it. Returns the answer."""
        answer: ElicitationResponse | None = None
        for selected in self.answering_groups(event):
            hook_runs = await self._context.policy.hooks.run_group(selected, self.event_context(event, elicitation))
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

    def event_context(self, event: Event, elicitation: Elicitation) -> EventContext:
        """The context of an event of this elicitation."""
        action, message = elicitation.action, elicitation.message
        return EventContext(
            event, self._context.session, trigger=action, message=message, elicitation=elicitation, at=time()
        )

    def report(self, text: str) -> None:
        """Tell people and the audit what a hook has done in the person's place."""
        self._context.report(text)
        self._session_events.note_in_audit(text)
