"""Hook events outside of calls: the start and end of the session, elicitations, and what happens during a call.

Law 3: messages for people go to standard error, to the agent's log if the server declared logging, and to the audit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ..audit.log import NOT_WRITTEN
from ..jsonrpc import raw_json
from ..jsonrpc.known_secrets import NO_SECRETS, KnownSecrets
from ..model.errors import describe_error
from ..model.hooks import NO_VERDICT, Event, EventContext, HookRun, Session
from ..protocol import feedback
from ..protocol.actions import ElicitationSeen
from ..protocol.handshake import Handshake
from . import bounded_cache
from .policy import Policy

if TYPE_CHECKING:
    from ..protocol.secret_masks import SecretMasks

_MAX_RUNNING: Final = 64  # events that nobody waits for: a server that sends them for ever must not fill memory
_RECORDED: Final = frozenset(
    {
        Event.PRE_TOOL_USE,
        Event.PRE_MCP_TOOL_CALL,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
    }
)
"""The events whose hooks are listed in the audit record of their call."""


class SessionContext(Struct, eq=False):
    """What the parts of a session share."""

    policy: Policy
    """What judges from now on: a reload assigns another one."""
    session: Session
    report: Callable[[str], None]
    """Reports one line to people, on standard error. Never blocks."""
    to_agent: Callable[[bytes], None]
    spawn: Callable[..., None]
    """Starts a task that ends with the proxy."""
    notify: Callable[[], None]
    """Called when something has changed that the end of the run may wait for."""
    secrets: KnownSecrets = NO_SECRETS
    """What must be in no text of ours: the server may say it, and so may an error."""
    masks: SecretMasks | None = None
    """What masks texts that are shown; None: nothing is masked."""

    def describe_error(self, defect: BaseException) -> str:
        """As `errors.describe_error`, for people and the agent."""
        return self.secrets.removed_from(describe_error(defect))


class SessionEvents:
    """Runs the hooks of events outside of calls, and keeps their feedback until a response can carry it.

    After a reload those of the new policy run; SessionStart hooks do not run again.
    """

    def __init__(self, session_context: SessionContext) -> None:
        self._context = session_context
        self._start_hooks_ended: anyio.Event | None = None  # None: there are none to wait for
        self._feedback: tuple[str, ...] = ()  # for the model, not delivered yet
        self._initialized = False  # the agent has the response to `initialize`
        self._logging = False
        self._reported: dict[str, None] = {}
        self._has_start_hooks = session_context.policy.hooks.groups.has_hooks_for(Event.SESSION_START)
        self.feedback_pending = self._has_start_hooks
        """SessionStart hooks may have feedback for the model that no response has carried yet."""
        self.pending_initialize_responses = 0
        """Responses to `initialize` that wait for SessionStart hooks."""
        self.running = 0
        """Events whose hooks run while nobody waits for them."""
        if self._has_start_hooks:
            self._start_hooks_ended = anyio.Event()

    def begin_session(self) -> None:
        """Start the SessionStart hooks when the agent has opened the session: a probe of hookproxy runs none."""
        if self._has_start_hooks:
            self._context.spawn(self._run_start_hooks)

    async def _run_start_hooks(self) -> None:
        context = EventContext(Event.SESSION_START, self._context.session, trigger="startup", at=time())
        self.keep_feedback(await self._run_event_hooks(context))
        if self._start_hooks_ended is not None:
            self._start_hooks_ended.set()

    async def end_session(self) -> None:
        """Run the SessionEnd hooks. On cancel they are ended with their whole process groups."""
        await self._run_event_hooks(EventContext(Event.SESSION_END, self._context.session, trigger="other", at=time()))

    async def _run_event_hooks(self, context: EventContext, only_observers: bool = False) -> list[HookRun]:
        try:
            return await self._context.policy.hooks.run_event_hooks(context, only_observers)
        except OSError as problem:  # too few descriptors or processes
            self._context.report(f"{context.event} hooks could not be run: {problem.strerror}")
            return []

    def deliver_initialize_response(self, line: bytes, handshake: Handshake) -> None:
        """Note what the server declares, and send the response on, with the feedback of SessionStart hooks."""
        with contextlib.suppress(ValueError, KeyError):
            result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
            handshake.note_result(result)
            self._logging = "logging" in raw_json.fields(bytes(result["capabilities"]))
        if not (self._awaits_start_hooks or self._feedback):
            self._initialized = True
            self._context.to_agent(line)
        else:
            self.pending_initialize_responses += 1
            self._context.spawn(self._add_instructions, line)

    @property
    def _awaits_start_hooks(self) -> bool:
        return self._start_hooks_ended is not None and not self._start_hooks_ended.is_set()

    async def _wait_for_start_hooks(self) -> None:
        if self._start_hooks_ended is not None and self._awaits_start_hooks:  # a set event would still cost a turn
            await self._start_hooks_ended.wait()

    async def _add_instructions(self, line: bytes) -> None:
        await self._wait_for_start_hooks()
        texts, self._feedback = self._feedback, ()
        self._initialized = True
        self._context.to_agent(feedback.with_instructions(line, texts))
        self.pending_initialize_responses -= 1
        self._context.notify()

    def may_have_feedback(self) -> bool:
        """SessionStart hooks still run, or there is feedback that a response should carry."""
        return self.feedback_pending or bool(self._feedback)

    async def take_feedback(self, uses_initialize: bool) -> tuple[str, ...]:
        """Wait until SessionStart hooks have ended; return the feedback that is to go with a call's result.

        With `uses_initialize`, feedback that is there before the response to `initialize` goes into that one.
        """
        await self._wait_for_start_hooks()
        if uses_initialize and not self._initialized:
            return ()
        texts, self._feedback, self.feedback_pending = self._feedback, (), False
        return texts

    def start_elicitation_hooks(self, seen: ElicitationSeen, only_observers: bool = False) -> None:
        """Start the hooks of an elicitation or its answer in the stateless era; `only_observers`: see `start_hooks`."""
        context = EventContext(
            Event.ELICITATION_RESULT if seen.action else Event.ELICITATION,
            self._context.session,
            trigger=seen.action,
            message=seen.message,
            elicitation=seen.elicitation,
        )
        self.start_hooks(context, only_observers)
        if seen.action:
            self.start_response_hooks(seen.action)
        else:
            self.start_dialog_hooks(seen.message, seen.elicitation.mode if seen.elicitation else "form")

    def start_dialog_hooks(self, message: str, mode: str) -> None:
        """Start the Notification and OnUserInput hooks of a dialog of this mode that the person is shown."""
        self._notify("elicitation_url_dialog" if mode == "url" else "elicitation_dialog", message)
        self.start_hooks(EventContext(Event.USER_INPUT, self._context.session, message=message))

    def start_response_hooks(self, action: str) -> None:
        """Start the Notification hooks of a response to an elicitation."""
        self._notify("elicitation_response", f"{self._context.session.server}: the answer to its question is {action}")

    def start_complete_hooks(self) -> None:
        """Start the Notification hooks of an elicitation on a page that the server says is complete."""
        self._notify("elicitation_complete", f"{self._context.session.server}: what it asked for is complete")

    def _notify(self, notification: str, message: str) -> None:
        context = EventContext(Event.NOTIFICATION, self._context.session, trigger=notification, message=message)
        self.start_hooks(context)

    def start_hooks(self, context: EventContext, only_observers: bool = False) -> None:
        """Start the hooks of an event that nobody waits for; their feedback goes with the next response.

        `only_observers`: leave out the hooks that may answer an elicitation.
        """
        groups = self._context.policy.hooks.groups
        if not groups.has_hooks_for(context.event) or (
            only_observers and all(selected.may_answer for selected in groups.select_for(context))
        ):
            return
        if self.running >= _MAX_RUNNING:
            self._context.report(f"{context.event} hooks are not run: {_MAX_RUNNING} such hooks are already running")
            return
        self.running += 1
        self._context.spawn(self._run_hooks, replace(context, at=time()), only_observers)

    async def _run_hooks(self, context: EventContext, only_observers: bool) -> None:
        try:
            self.keep_feedback(await self._run_event_hooks(context, only_observers))
        finally:
            self.running -= 1
            self._context.notify()

    def keep_feedback(self, hook_runs: list[HookRun]) -> None:
        """Keep the hooks' feedback for the model until a response can carry it."""
        self._feedback += tuple(text for hook_run in hook_runs for text in hook_run.verdict.feedback)

    def report_hook_run(self, hook_run: HookRun) -> None:
        """Report a hook's messages for people, its failure, and what of its output was not read."""
        if hook_run.unread:
            self._report_unread(hook_run)
        if hook_run.verdict is NO_VERDICT:  # true of nearly all hook runs
            return
        spec, session_context = hook_run.spec, self._context
        if spec.background and hook_run.verdict.feedback:
            self.keep_feedback([hook_run])
        reported = list(hook_run.verdict.messages)
        for text in reported:
            session_context.report(f"{spec.label}: {text}")
            if self._logging:
                session_context.to_agent(feedback.log_entry(text))
        if hook_run.verdict.failure:
            follows = f"; {hook_run.consequence}" if hook_run.consequence else ""
            session_context.report(
                f"{spec.event} hook {spec.label} ({spec.source}): {hook_run.verdict.failure}{follows}"
            )
            reported.append(hook_run.verdict.failure)
        if reported and (spec.event not in _RECORDED or spec.background):
            self.note_in_audit(f"{spec.event} hook {spec.label} ({spec.source}): " + "; ".join(reported))

    def _report_unread(self, hook_run: HookRun) -> None:
        spec = hook_run.spec
        for text in hook_run.unread:
            sentence = f"{spec.event} hook {spec.label} ({spec.source}): {text}"
            self.report_once(sentence)
            if spec.event not in _RECORDED or spec.background:
                self.note_in_audit(sentence)

    def report_once(self, text: str) -> None:
        """Report one line to people, unless it has been reported before.

        Lines may name tools, whose names the agent chooses: of too many different ones, some are reported again.
        """
        if text not in self._reported:
            bounded_cache.keep(self._reported, text, None)
            self._context.report(text)

    def note_in_audit(self, text: str, by: str = "") -> None:
        """Write a sentence into the audit; `by` is the id of who has done what it says."""
        self.report_unwritten(self._context.policy.audit.note(self._context.session, text, by))

    def report_unwritten(self, problem: str) -> None:
        """Report why something cannot be written into the audit, once; `problem` is empty if it has been."""
        if problem and not self._context.policy.audit.reports_failures:
            self.report_once(f"{NOT_WRITTEN}: {problem}")
