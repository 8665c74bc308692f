"""The life of a task after its call was answered with a handle: followed to its one end, judged once (law 1).

The first message that has the task's output, or says that there will be none, is held while hooks speak; every other
one waits for the same judgement. What the hooks were told passes with what they said, however often it comes. Any
other output of the task is withheld: a server that tells two outputs of one call would have one of them unjudged.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from ..audit.log import Record
from ..jsonrpc import raw_json
from ..model.errors import what_ended
from ..model.hooks import Occasion, Outcome
from ..protocol import feedback, response_edits, tasks, tool_results
from ..protocol.calls import Call, Phase
from ..protocol.router import Switchboard
from ..protocol.tasks import News, Poll, Stage, Task
from ..protocol.tool_results import NO_OUTCOME, Reading
from . import post_hooks
from .call_context import Desk, Ending
from .change_event import Changes

_UNFINISHED: Final = (Stage.AWAITED, Stage.JUDGING)
_ENDS: Final = {
    "cancelled": ("cancelled", Outcome(error="The task was cancelled.", interrupted=True)),
    "failed": ("error", Outcome(error="The task failed.")),
    "lost": ("lost", Outcome(error="The server exited before the task had ended.")),
}
"""How a task can end without output: the word of the record, and what hooks are told."""


class Following:
    """The tasks of one proxy's judged calls, and the messages about them."""

    def __init__(
        self,
        desk: Desk,
        board: Switchboard,
        changes: Changes,
        to_agent: Callable[[bytes], None],
        start: Callable[[Call], None],
    ) -> None:
        self._desk = desk
        self._board = board
        self._tasks = board.tasks
        self._changes = changes
        self._to_agent = to_agent
        self._start = start
        self._records: dict[Task, tuple[Record, float]] = {}  # of open tasks, and when they began
        self._server_lost = False

    # --- the call ---

    def begin(self, call: Call, record: Record, occasion: Occasion, texts: tuple[str, ...], line: bytes) -> bytes:
        """A judged call is answered with a handle, which is about to go to the agent: gives it as the agent may."""
        if not (texts or self._desk.audit.enabled or self._desk.hooks.groups.hears_outcome(call.tool)):
            self.close(call)  # nobody wants to know what it comes to
            return line
        begun = self._tasks.take(call)
        for task in begun:
            task.stage, task.occasion, task.texts = Stage.OPEN, occasion, texts
            task.guarded = self._is_guarded(call)
            self._records[task] = (record, perf_counter())
            if self._server_lost:
                self._start(tasks.lost(task))
        for task in self._tasks.shed():
            if self._records.pop(task, None):
                self._desk.say(f"a task of {task.call.tool} is followed no more: there are too many")
        return tasks.without_immediate_response(line) if any(task.guarded for task in begun) else line

    def close(self, call: Call) -> None:
        """The call is over. Tasks that it has not begun are none that its hooks would hear of: no output passes."""
        for task in self._tasks.take(call):
            task.stage, task.guarded = Stage.JUDGED, self._is_guarded(call)
            task.withheld = "its call's hooks were asked before" if task.guarded else ""
            if not task.guarded:
                del self._tasks[task.id]

    def _is_guarded(self, call: Call) -> bool:
        return self._desk.hooks.groups.comments_on(call.tool)

    def lose(self) -> None:
        """The server is gone, and with it every task that had not ended."""
        self._server_lost = True
        for task in list(self._records):
            self._start(tasks.lost(task))

    # --- the messages ---

    async def see_through(self, poll: Poll) -> None:
        """See a request or a message about a task through: it passes as the task's hooks will have it."""
        if not poll.method:
            await self._lost(poll)
        elif not poll.id:
            await self._told(poll)
        else:
            await self._polled(poll)

    async def _lost(self, poll: Poll) -> None:
        task = self._tasks.find(poll.task_id)
        if task is not None and task.stage is Stage.OPEN:
            end = News(status="lost")
            await self._judge(task, end, _reading(task, end), b"")

    async def _told(self, poll: Poll) -> None:
        """A notification. It may tell of a task before its handle is here."""
        before = [call for call in self._board.calls.values() if tasks.may_become_a_task(call)]

        def known() -> bool:
            return poll.task_id in self._tasks or all(self._board.calls.get(call.key) is not call for call in before)

        try:
            await self._changes.until(known)
            if poll.task_id not in self._tasks and any(call.phase is not Phase.ANSWERED for call in before):
                raise raw_json.Unreadable("a call ended without an answer, and the task may be its own")
            self._to_agent(await self._as_judged(poll, poll.line))
        except ValueError as problem:
            self._desk.say(f"what the server told of a task is withheld: {problem}")
        finally:
            self._tasks.is_told(poll)

    async def _polled(self, poll: Poll) -> None:
        answer = await self._desk.forward(poll, poll.line)
        if isinstance(answer, Ending):
            if answer is Ending.LOST:
                self._desk.answer(poll, self._desk.lost(poll))
            return
        try:
            line = await self._as_judged(poll, answer)
        except ValueError as problem:
            self._desk.say(f"an answer about a task is withheld: {problem}")
            line = feedback.ambiguous(poll.id, str(problem))
        self._desk.answer(poll, line)

    async def _as_judged(self, poll: Poll, line: bytes) -> bytes:
        """The message as the agent may have it. Raises Unreadable, TwinKeys: it may not."""
        told = tasks.read(poll)
        task = self._tasks.find(poll.task_id, *told.ids)
        if task is None or not (told.said or told.ends or told.refused):
            return line
        await self._changes.until(lambda: task.stage not in _UNFINISHED)
        if told.refused:
            return response_edits.only_message(line, feedback.POLL_REFUSED) if task.guarded else line
        if told.ends and told.status == "failed" and not task.call.stateless:
            return line  # in 2025-11-25 a failed result is still to be fetched
        reading = _reading(task, told)
        if task.stage is Stage.OPEN:
            await self._judge(task, told, reading, line)
        return self._permitted(task, told, reading, line)

    def _permitted(self, task: Task, told: News, reading: Reading, line: bytes) -> bytes:
        """The message of a judged task with what hooks said. Raises Unreadable if they heard of another output."""
        if told.said is None:
            return line
        if task.withheld:
            raise raw_json.Unreadable(task.withheld)
        if task.guarded and tasks.digest(reading) != task.told:
            raise raw_json.Unreadable("it is not what its hooks were told when the task ended")
        return self._written(task, told, line)

    # --- the judgement ---

    async def _judge(self, task: Task, end: News, reading: Reading, line: bytes) -> None:
        """Ask the task's hooks. Whatever happens meanwhile, they are not asked again."""
        begun_record, begun = self._records.pop(task)
        record = replace(begun_record, statements=[], result="cancelled", reason="", result_changed=False, repeats=0)
        occasion = task.occasion
        assert occasion is not None, "an open task has begun"
        ms = (occasion.outcome or NO_OUTCOME).duration_ms + (perf_counter() - begun) * 1000
        task.stage, task.withheld = Stage.JUDGING, "its hooks did not come to an end"
        try:
            task.told = tasks.digest(reading)
            outcome = replace(reading.outcome, duration_ms=round(ms))
            task.comments = await post_hooks.hear(task.call, self._desk, occasion, outcome, record.statements)
            record.result = _ENDS[end.status][0] if end.said is None else "error" if reading.failed else "ok"
            record.result_changed = end.said is not None and self._written(task, end, line) is not line
            task.withheld = ""
        except Exception as defect:
            record.result, record.reason = "error", what_ended(defect)
            raise
        finally:
            task.stage = Stage.JUDGED
            record.ms = ms + sum(one.result.ms for one in record.statements)
            self._write(task, record)
            self._changes.tell()

    def _write(self, task: Task, record: Record) -> None:
        """The audit line of the call's end; where one is required, nothing passes without."""
        problem = self._desk.audit.write(record)
        if problem:
            self._desk.say(f"the audit line of {task.call.tool} cannot be written: {problem}")
            if self._desk.audit.required:
                task.withheld = "the configuration requires an audit of each call, and it cannot be written"

    def _written(self, task: Task, told: News, line: bytes) -> bytes:
        """The message with what hooks said in its output; `line` itself where they said nothing."""
        said = told.said
        if said is None or (said.error is not None and not said.error):
            return line  # there is nothing to withhold in it, and no place for a word
        answer = tasks.as_answer(line, told.place)
        result = said.error is None
        edited = post_hooks.written(task.call, self._desk, answer, task.comments, task.texts, result=result)
        return line if edited is answer else tasks.with_answer(line, told.place, edited)


def _reading(task: Task, told: News) -> Reading:
    """What hooks are to be told of a task's end. Raises Unreadable, TwinKeys."""
    if told.said is None:
        return Reading(True, True, _ENDS[told.status][1])
    return tool_results.read(replace(task.call, said=told.said, stateless=False, task=False))
