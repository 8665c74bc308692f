"""Occasions outside of calls: the session's begin and end, questions to the person, what happens beside a call.

Law 3: what hooks have for people is told on standard error, to the agent's log where there is one, and in the audit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from time import time
from typing import Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from ..audit.log import Audit
from ..jsonrpc import raw_json
from ..model.hooks import NO_VERDICT, Event, EventContext, HookRun, Session
from ..protocol import feedback
from ..protocol.actions import ElicitationSeen
from ..protocol.handshake import Handshake
from .evaluate import Hooks

_AT_ONCE: Final = 64  # occasions that nobody waits for: a server that asks for ever must not fill memory with them
_RECORDED: Final = frozenset(
    {Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST}
)
"""The events whose hooks stand in the record of their call."""


class SessionContext(Struct, frozen=True):
    """What moments need of the proxy."""

    hooks: Hooks
    session: Session
    audit: Audit
    report: Callable[[str], None]
    """Tells people one line, on standard error. Never blocks."""
    to_agent: Callable[[bytes], None]
    spawn: Callable[..., None]
    """Starts a task that ends with the proxy."""
    notify: Callable[[], None]
    """Something has changed that the end of the run may wait for."""


class SessionEvents:
    """What hooks are told, and say, when it is no call's turn."""

    def __init__(self, session_context: SessionContext) -> None:
        self._context = session_context
        self._begun = anyio.Event()  # SessionStart hooks have spoken
        self._feedback: tuple[str, ...] = ()  # for the model, and not delivered yet
        self._introduced = False
        self._logging = False
        self._said: set[str] = set()
        self._starts = session_context.hooks.groups.has_hooks_for(Event.SESSION_START)
        self.feedback_pending = self._starts
        """SessionStart hooks may have something for the model that no answer has carried yet."""
        self.pending_initialize_responses = 0
        """Answers to `initialize` that wait for SessionStart hooks."""
        self.running = 0
        """Occasions that hooks are told of while nobody waits."""
        if not self._starts:
            self._begun.set()

    def begin_session(self) -> None:
        """The agent has begun the session: SessionStart hooks speak now. A probing copy of us is never asked."""
        if self._starts:
            self._context.spawn(self._begin)

    async def _begin(self) -> None:
        context = EventContext(Event.SESSION_START, self._context.session, trigger="startup", at=time())
        try:
            self._feedback += _feedback_of(await self._context.hooks.run_event_hooks(context))
        except OSError as problem:  # too few descriptors or processes
            self._context.report(f"SessionStart hooks could not be run: {problem.strerror}")
        self._begun.set()

    async def end_session(self) -> None:
        """Ask the SessionEnd hooks. On cancel they are ended with their whole process groups."""
        context = EventContext(Event.SESSION_END, self._context.session, trigger="other", at=time())
        try:
            await self._context.hooks.run_event_hooks(context)
        except OSError as problem:  # too few descriptors or processes
            self._context.report(f"SessionEnd hooks could not be run: {problem.strerror}")

    def deliver_initialize_response(self, line: bytes, handshake: Handshake) -> None:
        """The server has answered `initialize`: what it declares, and what SessionStart hooks have to add."""
        with contextlib.suppress(ValueError, KeyError):
            result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
            handshake.answered(result)
            self._logging = "logging" in raw_json.fields(bytes(result["capabilities"]))
        if self._begun.is_set() and not self._feedback:
            self._introduced = True
            self._context.to_agent(line)
        else:
            self.pending_initialize_responses += 1
            self._context.spawn(self._instruct, line)

    async def _instruct(self, line: bytes) -> None:
        await self._begun.wait()
        texts, self._feedback = self._feedback, ()
        self._introduced = True
        self._context.to_agent(feedback.with_instructions(line, texts))
        self.pending_initialize_responses -= 1
        self._context.notify()

    def silent(self) -> bool:
        """There is nothing that an answer should carry, and SessionStart hooks are done."""
        return not (self.feedback_pending or self._feedback)

    async def take_feedback(self, uses_initialize: bool) -> tuple[str, ...]:
        """Wait until SessionStart hooks are done; gives what waits for the model, to go with a call's result.

        With `uses_initialize`, what comes before the answer to `initialize` goes into that.
        """
        if not self._begun.is_set():  # to wait for what has happened would cost a trip around the loop
            await self._begun.wait()
        if uses_initialize and not self._introduced:
            return ()
        texts, self._feedback, self.feedback_pending = self._feedback, (), False
        return texts

    def start_elicitation_hooks(self, elicited: ElicitationSeen, only_observers: bool = False) -> None:
        """The server asks the person, or has the answer, in the stateless era; `only_told` as in `occur`."""
        context = EventContext(
            Event.ELICITATION_RESULT if elicited.action else Event.ELICITATION,
            self._context.session,
            trigger=elicited.action,
            message=elicited.message,
            elicitation=elicited.elicitation,
        )
        self.start_hooks(context, only_observers)
        if not elicited.action:
            self.start_dialog_hooks(elicited.message)

    def start_dialog_hooks(self, message: str) -> None:
        """The person is shown a question of the server."""
        session = self._context.session
        self.start_hooks(EventContext(Event.NOTIFICATION, session, trigger="elicitation_dialog", message=message))
        self.start_hooks(EventContext(Event.USER_INPUT, session, message=message))

    def start_hooks(self, context: EventContext, only_observers: bool = False) -> None:
        """Tell hooks of something that nobody waits for; what they have for the model goes with the next answer.

        `only_told`: but for those that may answer a question of the server.
        """
        groups = self._context.hooks.groups
        if not groups.has_hooks_for(context.event) or (
            only_observers and all(one.may_answer for one in groups.select_for(context))
        ):
            return
        if self.running >= _AT_ONCE:
            self._context.report(f"{context.event} hooks are not told: {_AT_ONCE} such hooks are running")
            return
        self.running += 1
        self._context.spawn(self._run_hooks, replace(context, at=time()), only_observers)

    async def _run_hooks(self, context: EventContext, only_observers: bool) -> None:
        try:
            self.keep_feedback(await self._context.hooks.run_event_hooks(context, only_observers))
        except OSError as problem:  # too few descriptors or processes
            self._context.report(f"{context.event} hooks could not be run: {problem.strerror}")
        finally:
            self.running -= 1
            self._context.notify()

    def keep_feedback(self, hook_runs: list[HookRun]) -> None:
        """Keep what hooks had for the model, until an answer can carry it."""
        self._feedback += _feedback_of(hook_runs)

    def report_hook_run(self, one: HookRun) -> None:
        """Tell people what a hook has for them: messages, and trouble with it."""
        if one.verdict is NO_VERDICT:  # as nearly all are
            return
        spec, session_context = one.spec, self._context
        told = list(one.verdict.messages)
        for text in told:
            session_context.report(f"{spec.label}: {text}")
            if self._logging:
                session_context.to_agent(feedback.log_entry(text))
        if one.verdict.failure:
            follows = f"; {one.consequence}" if one.consequence else ""
            session_context.report(f"{spec.event} hook {spec.label} ({spec.source}): {one.verdict.failure}{follows}")
            told.append(one.verdict.failure)
        if told and (spec.event not in _RECORDED or spec.background):
            self.note_in_audit(f"{spec.event} hook {spec.label} ({spec.source}): " + "; ".join(told))

    def report_once(self, text: str) -> None:
        """Tell people, unless they have been told."""
        if text not in self._said:
            self._said.add(text)
            self._context.report(text)

    def note_in_audit(self, text: str) -> None:
        """Put a sentence into the audit."""
        if problem := self._context.audit.note(self._context.session, text):
            self._context.report(f"an audit line cannot be written: {problem}")


def _feedback_of(hook_runs: list[HookRun]) -> tuple[str, ...]:
    return tuple(text for one in hook_runs for text in one.verdict.feedback)
