"""Asks the person about one call: through the agent, or through the operator's own prompter.

Law 1: only an explicit yes is consent; whoever leaves, fails or is late has not consented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import anyio
from msgspec import Struct, field

from ..hooks.session_events import SessionContext
from ..jsonrpc import raw_json
from ..model.decision import ApprovalRequest
from ..model.hooks import Document, Ended, Event, HookResult, HookSpec
from ..model.settings import Settings
from ..policy import decide
from ..protocol import approval_messages, calls, feedback
from ..protocol.actions import ApprovalAnswered
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..protocol.handshake import Handshake, offers_form
from ..protocol.request_state import LIFETIME
from ..runners.registry import RUNNERS

_MOST: Final = 512  # questions open at a time: nobody answers so many, and each keeps its call
_PROMPTERS: Final = 4  # at a time: a person reads one dialog after another


class _Waiting(Struct):
    """A question that the person has not answered."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    result: bytes = b""


class Approvals:
    """Asks about calls; in the handshake era a question is a request of ours to the agent, kept while it is open."""

    def __init__(self, session_context: SessionContext, handshake: Handshake, settings: Settings) -> None:
        self._context = session_context
        self._handshake = handshake
        self._settings = settings
        self._open: dict[bytes, _Waiting] = {}
        self._prompters = anyio.Semaphore(_PROMPTERS)

    def may_ask(self, call: Call) -> bool:
        """The person can be asked about this call through the agent."""
        if call.stateless:
            return offers_form(call.meta.get(calls.CAPABILITIES_KEY))
        return self._handshake.may_ask

    def has_prompter(self, question: ApprovalRequest | None) -> bool:
        """The operator has a prompter for agents that cannot ask; for a managed question, the administrator."""
        return bool(decide.governing(self._settings, question).prompter)

    async def ask(self, call: Call, message: str, asked: Mapping[str, object], question: ApprovalRequest) -> Approval:
        """Ask, and wait as long as it takes: through the agent with `message`, else through the prompter with `asked`.

        On cancel the question is taken back, or the prompter ended with its whole process group.
        """
        if not self.may_ask(call):
            async with self._prompters:
                prompter = decide.governing(self._settings, question).prompter
                if failure := self._context.hooks.prompter_failure(question.managed):
                    self._context.report(f"the prompter {prompter[0]} {failure}; so the call is denied")
                    return Approval.NO
                environ = self._context.hooks.environment(question.managed)
                return await prompt(prompter, asked, environ, self._context.report)
        if len(self._open) >= _MOST:
            self._context.report(f"a call is denied, for {_MOST} questions wait for the person")
            return Approval.NO
        raw_id = calls.fresh_id()
        key, waiting = calls.id_key(raw_id), _Waiting()
        self._open[key] = waiting
        self._context.to_agent(feedback.elicitation(raw_id, message))
        try:
            await waiting.answered.wait()
        except anyio.get_cancelled_exc_class():
            self._context.to_agent(feedback.question_cancelled(raw_id))
            raise
        finally:
            del self._open[key]
        return approval_messages.approval(waiting.result)

    def close(self) -> None:
        """Nobody can answer any more: what is open has not been allowed."""
        for waiting in self._open.values():
            waiting.answered.set()

    def answered(self, answer: ApprovalAnswered) -> None:
        """The agent's answer; one that comes too late, or again, is nobody's."""
        waiting = self._open.get(answer.key)
        if waiting is not None and not waiting.answered.is_set():
            waiting.result = answer.result
            waiting.answered.set()


async def prompt(
    command: tuple[str, ...], asked: Mapping[str, object], environ: Mapping[str, str], report: Callable[[str], None]
) -> Approval:
    """Ask through the operator's prompter: it reads the question as JSON; exit status 0 is yes, 2 is no.

    All else is trouble, which is told, and no. On cancel it is ended with its whole process group.
    """
    spec = HookSpec(
        "hookproxy", "on_ask_fallback", Event.PERMISSION_REQUEST, command[0], argv=command, timeout=LIFETIME
    )
    document = Document(raw_json.encode(asked) + b"\n", {})
    try:
        result = await RUNNERS[spec.type](spec, document, environ)
    except OSError as problem:  # too few descriptors or processes
        result = HookResult(Ended.NOT_STARTED, detail=problem.strerror or "")
    if result.ended is Ended.EXITED and result.code in (0, 2):
        return Approval.NO if result.code else Approval.ONCE
    ended = f"status {result.code}" if result.ended is Ended.EXITED else result.detail or result.ended.value
    report(f"the prompter {command[0]} failed ({ended}), so the call is denied")
    return Approval.NO
