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
from ..model.errors import describe_error
from ..model.hooks import EventContext, Outcome
from ..protocol import feedback, response_edits, tasks, tool_results
from ..protocol.calls import Call, Phase
from ..protocol.router import Router
from ..protocol.tasks import Stage, Task, TaskRequest, TaskStatus
from ..protocol.tool_results import NO_OUTCOME, Reading
from . import post_hooks
from .call_context import CallServices, Ending
from .change_event import ChangeEvent

_UNFINISHED: Final = (Stage.AWAITED, Stage.JUDGING)
_ENDS: Final = {
    "cancelled": ("cancelled", Outcome(error="The task was cancelled.", interrupted=True)),
    "failed": ("error", Outcome(error="The task failed.")),
    "lost": ("lost", Outcome(error="The server exited before the task had ended.")),
}
"""How a task can end without output: the word of the record, and what hooks are told."""


class McpTasks:
    """The tasks of one proxy's judged calls, and the messages about them."""

    def __init__(
        self,
        services: CallServices,
        router: Router,
        changes: ChangeEvent,
        to_agent: Callable[[bytes], None],
        start: Callable[[Call], None],
    ) -> None:
        self._services = services
        self._router = router
        self._tasks = router.tasks
        self._changes = changes
        self._to_agent = to_agent
        self._start = start
        self._records: dict[Task, tuple[Record, float]] = {}  # of open tasks, and when they began
        self._server_lost = False

    # --- the call ---

    def begin(
        self, call: Call, record: Record, event_context: EventContext, texts: tuple[str, ...], line: bytes
    ) -> bytes:
        """A judged call is answered with a handle, which is about to go to the agent: gives it as the agent may."""
        if not (texts or self._services.audit.enabled or self._services.hooks.groups.observes_outcome(call.tool)):
            self.close(call)  # nobody wants to know what it comes to
            return line
        begun = self._tasks.take(call)
        for task in begun:
            task.stage, task.event_context, task.texts = Stage.OPEN, event_context, texts
            task.guarded = self._is_guarded(call)
            self._records[task] = (record, perf_counter())
            if self._server_lost:
                self._start(tasks.lost(task))
        for task in self._tasks.shed():
            if self._records.pop(task, None):
                self._services.report(f"a task of {task.call.tool} is followed no more: there are too many")
        return tasks.without_immediate_response(line) if any(task.guarded for task in begun) else line

    def close(self, call: Call) -> None:
        """The call is over. Tasks that it has not begun are none that its hooks would hear of: no output passes."""
        for task in self._tasks.take(call):
            task.stage, task.guarded = Stage.JUDGED, self._is_guarded(call)
            task.withheld = "its call's hooks were asked before" if task.guarded else ""
            if not task.guarded:
                del self._tasks[task.id]

    def _is_guarded(self, call: Call) -> bool:
        return self._services.hooks.groups.has_post_hooks_for(call.tool)

    def handle_server_exit(self) -> None:
        """The server is gone, and with it every task that had not ended."""
        self._server_lost = True
        for task in list(self._records):
            self._start(tasks.lost(task))

    # --- the messages ---

    async def carry_out(self, task_request: TaskRequest) -> None:
        """See a request or a message about a task through: it passes as the task's hooks will have it."""
        if not task_request.method:
            await self._lost(task_request)
        elif not task_request.id:
            await self._told(task_request)
        else:
            await self._polled(task_request)

    async def _lost(self, task_request: TaskRequest) -> None:
        task = self._tasks.find(task_request.task_id)
        if task is not None and task.stage is Stage.OPEN:
            end = TaskStatus(status="lost")
            await self._judge(task, end, _reading(task, end), b"")

    async def _told(self, task_request: TaskRequest) -> None:
        """A notification. It may tell of a task before its handle is here."""
        before = [call for call in self._router.calls.values() if tasks.may_become_a_task(call)]

        def known() -> bool:
            return task_request.task_id in self._tasks or all(
                self._router.calls.get(call.key) is not call for call in before
            )

        try:
            await self._changes.until(known)
            if task_request.task_id not in self._tasks and any(call.phase is not Phase.ANSWERED for call in before):
                raise raw_json.Unreadable("a call ended without an answer, and the task may be its own")
            self._to_agent(await self._as_judged(task_request, task_request.line))
        except ValueError as problem:
            self._services.report(f"what the server told of a task is withheld: {problem}")
        finally:
            self._tasks.is_told(task_request)

    async def _polled(self, task_request: TaskRequest) -> None:
        answer = await self._services.forward(task_request, task_request.line)
        if isinstance(answer, Ending):
            if answer is Ending.LOST:
                self._services.respond(task_request, self._services.lost_response(task_request))
            return
        try:
            line = await self._as_judged(task_request, answer)
        except ValueError as problem:
            self._services.report(f"an answer about a task is withheld: {problem}")
            line = feedback.ambiguous(task_request.id, str(problem))
        self._services.respond(task_request, line)

    async def _as_judged(self, task_request: TaskRequest, line: bytes) -> bytes:
        """The message as the agent may have it. Raises Unreadable, TwinKeys: it may not."""
        told = tasks.read(task_request)
        task = self._tasks.find(task_request.task_id, *told.ids)
        if task is None or not (told.response or told.ends or told.refused):
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

    def _permitted(self, task: Task, told: TaskStatus, reading: Reading, line: bytes) -> bytes:
        """The message of a judged task with what hooks said. Raises Unreadable if they heard of another output."""
        if told.response is None:
            return line
        if task.withheld:
            raise raw_json.Unreadable(task.withheld)
        if task.guarded and tasks.digest(reading) != task.told:
            raise raw_json.Unreadable("it is not what its hooks were told when the task ended")
        return self._written(task, told, line)

    # --- the judgement ---

    async def _judge(self, task: Task, end: TaskStatus, reading: Reading, line: bytes) -> None:
        """Ask the task's hooks. Whatever happens meanwhile, they are not asked again."""
        begun_record, begun = self._records.pop(task)
        record = replace(begun_record, hook_runs=[], result="cancelled", reason="", result_changed=False, repeats=0)
        event_context = task.event_context
        assert event_context is not None, "an open task has begun"
        ms = (event_context.outcome or NO_OUTCOME).duration_ms + (perf_counter() - begun) * 1000
        task.stage, task.withheld = Stage.JUDGING, "its hooks did not come to an end"
        try:
            task.told = tasks.digest(reading)
            outcome = replace(reading.outcome, duration_ms=round(ms))
            task.comments = await post_hooks.run_post_hooks(
                task.call, self._services, event_context, outcome, record.hook_runs
            )
            record.result = _ENDS[end.status][0] if end.response is None else "error" if reading.failed else "ok"
            record.result_changed = end.response is not None and self._written(task, end, line) is not line
            task.withheld = ""
        except Exception as defect:
            record.result, record.reason = "error", describe_error(defect)
            raise
        finally:
            task.stage = Stage.JUDGED
            record.ms = ms + sum(one.result.ms for one in record.hook_runs)
            self._write(task, record)
            self._changes.notify()

    def _write(self, task: Task, record: Record) -> None:
        """The audit line of the call's end; where one is required, nothing passes without."""
        problem = self._services.audit.write(record)
        if problem:
            self._services.report(f"the audit line of {task.call.tool} cannot be written: {problem}")
            if self._services.audit.required:
                task.withheld = "the configuration requires an audit of each call, and it cannot be written"

    def _written(self, task: Task, told: TaskStatus, line: bytes) -> bytes:
        """The message with what hooks said in its output; `line` itself where they said nothing."""
        said = told.response
        if said is None or (said.error is not None and not said.error):
            return line  # there is nothing to withhold in it, and no place for a word
        answer = tasks.as_answer(line, told.place)
        result = said.error is None
        edited = post_hooks.add_feedback(task.call, self._services, answer, task.comments, task.texts, result=result)
        return line if edited is answer else tasks.with_answer(line, told.place, edited)


def _reading(task: Task, told: TaskStatus) -> Reading:
    """What hooks are to be told of a task's end. Raises Unreadable, TwinKeys."""
    if told.response is None:
        return Reading(True, True, _ENDS[told.status][1])
    return tool_results.read(replace(task.call, response=told.response, stateless=False, task=False))
