"""Follows an MCP task, from the response that starts it to its end, and runs the call's post hooks once (law 1).

The first message that has the task's output, or shows that there will be none, waits while the hooks run; all others
wait for the same hooks. The output that the hooks saw passes with their feedback, however often the server sends it.
Any other output of the task is withheld: if a server sent two outputs of one call, no hook would have seen the second.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from ..audit.call_record import Record
from ..jsonrpc import raw_json
from ..model.call_end import CallEnd, Cancelled, Failed, Responded
from ..model.hooks import EventContext, Outcome
from ..protocol import feedback, response_edits, tasks, tool_results
from ..protocol.calls import Call, Phase
from ..protocol.router import Router
from ..protocol.tasks import Task, TaskRequest, TaskStage, TaskStatus
from ..protocol.tool_results import NO_OUTCOME, ParsedResponse
from . import post_hooks
from .call_context import CallServices, Ending
from .change_event import ChangeEvent

_UNFINISHED: Final = (TaskStage.AWAITED, TaskStage.JUDGING)
_ENDS: Final[dict[str, tuple[CallEnd, Outcome]]] = {
    "cancelled": (Cancelled(), Outcome(error="The task was cancelled.", interrupted=True)),
    "failed": (Responded(result="error"), Outcome(error="The task failed.")),
    "lost": (Failed(None, "", "lost"), Outcome(error="The server exited before the task had ended.")),
}
"""How a task can end without output: for the audit, and the outcome that hooks get."""


class McpTasks:
    """The tasks of one proxy's calls, and the messages about them."""

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
        self._records: dict[Task, tuple[Record, float]] = {}  # of open tasks, and when they started
        self._server_lost = False

    # --- the call ---

    def follow(
        self, call: Call, record: Record, event_context: EventContext, texts: tuple[str, ...], line: bytes
    ) -> bytes:
        """Follow the tasks that a response to a call starts; return the response as the agent may get it."""
        policy = self._services.policy
        if not (texts or policy.audit.needs_results or policy.hooks.needs_outcome(call.tool)):
            self.close(call)  # neither hooks nor the audit need its outcome
            return line
        started_tasks = self._tasks.take_new(call)
        for task in started_tasks:
            task.stage, task.event_context, task.texts = TaskStage.OPEN, event_context, texts
            task.guarded = self._has_post_hooks(call)
            self._records[task] = (record, perf_counter())
            if self._server_lost:
                self._start(tasks.server_lost(task))
        for task in self._tasks.drop_surplus():
            self._services.release_notifications(task.call)
            if self._records.pop(task, None):
                self._services.report(f"a task of {task.call.tool} is no longer followed: there are too many")
        if any(task.guarded for task in started_tasks):
            line = tasks.without_immediate_response(line)
        return tasks.without_status_message(line, self._is_withheld) if call.holds_notifications else line

    def _is_withheld(self, task_id: str) -> bool:
        """Notifications of the task's call are held, and so is what else might repeat its output."""
        task = self._tasks.find(task_id)
        return task is not None and task.call.holds_notifications and not task.call.output_passes

    def close(self, call: Call) -> None:
        """The call has ended: withhold the output of its tasks that are not followed, because no hook would see it."""
        for task in self._tasks.take_new(call):
            task.stage, task.guarded = TaskStage.JUDGED, self._has_post_hooks(call)
            task.withheld_because = "its call's hooks have run already" if task.guarded else ""
            if not task.guarded:
                del self._tasks[task.id]

    def _has_post_hooks(self, call: Call) -> bool:
        return self._services.policy.hooks.has_post_hooks_for(call.tool)

    def handle_server_exit(self) -> None:
        """End all open tasks, because the server has exited."""
        self._server_lost = True
        for task in list(self._records):
            self._start(tasks.server_lost(task))

    # --- the messages ---

    async def handle_message(self, task_request: TaskRequest) -> None:
        """Handle a message about a task: it passes, changed or withheld as the task's hooks decide."""
        if not task_request.method:
            await self._handle_lost(task_request)
        elif not task_request.id:
            await self._handle_notification(task_request)
        else:
            await self._handle_poll(task_request)

    async def _handle_lost(self, task_request: TaskRequest) -> None:
        task = self._tasks.find(task_request.task_id)
        if task is not None and task.stage is TaskStage.OPEN:
            end = TaskStatus(status="lost")
            await self._run_hooks(task, end, _parse_end(task, end, 0), b"")

    async def _handle_notification(self, task_request: TaskRequest) -> None:
        """A notification. It may come before the response that starts its task."""
        calls, task_id = self._router.calls, task_request.task_id
        before = [call for call in calls.values() if tasks.may_become_a_task(call)]

        def can_be_handled() -> bool:
            return task_id in self._tasks or all(calls.get(call.key) is not call for call in before)

        try:
            await self._changes.until(can_be_handled)
            if task_id not in self._tasks and any(call.phase is not Phase.ANSWERED for call in before):
                raise raw_json.Unreadable("a call ended without a response, and the task may belong to it")
            line = await self._after_hooks(task_request, task_request.line)
            self._to_agent(self._without_withheld(line))
        except ValueError as problem:
            self._services.report(f"a notification about a task is withheld: {problem}")
        finally:
            self._tasks.notification_done(task_request)

    async def _handle_poll(self, task_request: TaskRequest) -> None:
        response = await self._services.forward(task_request, task_request.line)
        if isinstance(response, Ending):
            if response is Ending.LOST:
                task_request.ended_because = self._services.why_lost()
            return
        try:
            line = self._without_withheld(await self._after_hooks(task_request, response))
        except ValueError as problem:
            self._services.report(f"a response about a task is withheld: {problem}")
            line = feedback.ambiguous(task_request.id, str(problem))
        self._services.respond(task_request, line)

    def _without_withheld(self, line: bytes) -> bytes:
        """The message without the texts about tasks whose calls hold them. Raises Unreadable, DuplicateKeys."""
        holds = any(task.call.holds_notifications for task in self._tasks.values())
        return tasks.without_status_message(line, self._is_withheld) if holds else line

    async def _after_hooks(self, task_request: TaskRequest, line: bytes) -> bytes:
        """The message after the hooks, as the agent may get it. Raises Unreadable, DuplicateKeys if it must not."""
        update = tasks.read(task_request)
        task = self._tasks.find(task_request.task_id, *update.ids)
        if task is None or not (update.response or update.ends or update.request_failed):
            return line
        await self._changes.until(lambda: task.stage not in _UNFINISHED)
        if update.request_failed:
            return response_edits.with_error_withheld(line, feedback.TASK_REQUEST_FAILED) if task.guarded else line
        if update.ends and update.status == "failed" and not task.call.stateless:
            return line  # in 2025-11-25 the agent still fetches a failed result
        parsed = _parse_end(task, update, self._services.policy.settings.max_depth)
        if task.stage is TaskStage.OPEN:
            await self._run_hooks(task, update, parsed, line)
        return self._with_feedback(task, update, parsed, line)

    def _with_feedback(self, task: Task, update: TaskStatus, parsed: ParsedResponse, line: bytes) -> bytes:
        """The message with the hooks' feedback. Raises Unreadable if its output is not the one that the hooks saw."""
        if update.response is None:
            return line
        if task.withheld_because:
            raise raw_json.Unreadable(task.withheld_because)
        if task.guarded and tasks.outcome_digest(parsed) != task.outcome_digest:
            raise raw_json.Unreadable("it is not the output that its hooks got when the task ended")
        return self._add_feedback(task, update, line)

    # --- the hooks ---

    async def _run_hooks(self, task: Task, update: TaskStatus, parsed: ParsedResponse, line: bytes) -> None:
        """Run the task's post hooks. Whatever happens meanwhile, they do not run again."""
        call_record, started = self._records.pop(task)
        record = replace(call_record, hook_runs=[], reason="", repeats=0, result_before=b"", result_after=b"")
        end: CallEnd = Cancelled()
        event_context = task.event_context
        assert event_context is not None, "an open task has an event context"
        seconds = perf_counter() - started
        self._services.policy.hooks.note_end(event_context, len(line), seconds)  # what came before is counted
        task.stage, task.withheld_because = TaskStage.JUDGING, "its hooks did not finish"
        try:
            task.outcome_digest = tasks.outcome_digest(parsed)
            ms = (event_context.outcome or NO_OUTCOME).duration_ms + seconds * 1000
            outcome = replace(parsed.outcome, duration_ms=round(ms))
            task.comments = await post_hooks.run_post_hooks(
                task.call, self._services.policy, self._services, event_context, outcome, record.hook_runs
            )
            responded = Responded(result="error" if parsed.failed else "ok")
            end = responded if update.response is not None else _ENDS[update.status][0]
            edited = self._add_feedback(task, update, line)
            if edited is not line:
                record.result_before, record.result_after = line, edited
            policy, comments = self._services.policy, task.comments
            task.withheld_because = await post_hooks.note_reading(event_context, policy.hooks, comments, edited, record)
        except Exception as defect:
            end = Failed(None, self._services.describe_error(defect))
            raise
        finally:
            task.stage = TaskStage.JUDGED
            task.call.output_passes = not (task.withheld_because or task.comments.takes_output)
            self._services.release_notifications(task.call)
            record.reason = task.withheld_because
            record.note_end(end)
            record.ms = ms + record.own_hook_ms
            self._write_record(task, record)
            self._changes.notify()

    def _write_record(self, task: Task, record: Record) -> None:
        """Write the audit record of the call's end; withhold the output if a required one cannot be written."""
        audit = self._services.policy.audit
        self._services.report_unwritten(problem := audit.write(record))
        if problem and audit.required:
            task.withheld_because = "the configuration requires an audit of each call, and it cannot be written"

    def _add_feedback(self, task: Task, update: TaskStatus, line: bytes) -> bytes:
        """The message with the hooks' feedback in its output; `line` itself where there is none."""
        response = update.response
        if response is None or (response.error is not None and not response.error):
            return line  # it has nothing to withhold, and no place for feedback
        output = tasks.output_as_response(line, update.path)
        delivery = self._services.policy.settings.feedback if response.error is None else None
        edited = post_hooks.add_feedback(task.call, self._services, output, task.comments, task.texts, delivery)
        if edited is output:
            return line
        return tasks.with_output(line, update.path, edited, alone=task.comments.takes_output)


def _parse_end(task: Task, update: TaskStatus, max_depth: int) -> ParsedResponse:
    """The end of a task, as hooks get it. Raises Unreadable, DuplicateKeys."""
    if update.response is None:
        return ParsedResponse(True, True, _ENDS[update.status][1])
    call = replace(task.call, response=update.response, stateless=False, task=False)
    return tool_results.read(call, max_depth if task.guarded else 0)
