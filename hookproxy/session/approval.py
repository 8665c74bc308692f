"""Asks a person to approve a call: through the agent, or through a prompter of the operator.

Law 1: only an explicit yes is an approval; silence, a failure or a late answer is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
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
from ..protocol.handshake import Handshake, supports_forms
from ..protocol.request_state import LIFETIME
from ..runners.registry import RUNNERS

_MAX_PENDING: Final = 512  # requests at a time: nobody answers so many, and each keeps its call in memory
_MAX_PROMPTERS: Final = 4  # at a time: a person reads one dialog after another


class _PendingApproval(Struct):
    """A request that the person has not answered."""

    call: Call
    answered: anyio.Event = field(default_factory=anyio.Event)
    result: bytes = b""


class Approvals:
    """Asks about calls; in the handshake era with a request of ours to the agent, which is kept while it is pending."""

    def __init__(self, session_context: SessionContext, handshake: Handshake, settings: Settings) -> None:
        self._context = session_context
        self._handshake = handshake
        self._settings = settings
        self._pending: dict[bytes, _PendingApproval] = {}

    @cached_property
    def _prompters(self) -> anyio.Semaphore:
        return anyio.Semaphore(_MAX_PROMPTERS)  # made when it is needed: few sessions ask a prompter

    def change_policy(self, session_context: SessionContext, settings: Settings) -> None:
        """Ask in the way of these settings from now on."""
        self._context, self._settings = session_context, settings

    def may_ask(self, call: Call) -> bool:
        """The agent can ask the person about this call."""
        if call.stateless:
            return supports_forms(call.meta.get(calls.CAPABILITIES_KEY))
        return self._handshake.supports_elicitation

    def has_prompter(self, request: ApprovalRequest | None) -> bool:
        """The operator has a prompter for agents that cannot ask; for a managed request, the administrator."""
        return bool(decide.settings_for(self._settings, request).prompter)

    async def ask(
        self,
        call: Call,
        message: str,
        document: Mapping[str, object],
        request: ApprovalRequest,
        offers_similar: bool,
    ) -> Approval:
        """Ask, and wait as long as it takes: the agent with `message`, or else the prompter with `document`.

        `offers_similar`: the person may allow calls like this one; a prompter only says yes or no.
        On cancel the request is withdrawn, or the prompter is ended with its whole process group.
        """
        if not self.may_ask(call):
            async with self._prompters:
                prompter = decide.settings_for(self._settings, request).prompter
                if failure := self._context.hooks.prompter_failure(request.managed):
                    self._context.report(f"the prompter {prompter[0]} {failure}, so the call is denied")
                    return Approval.NOT_ASKED
                environ = self._context.hooks.prompter_environment(request.managed)
                return await prompt(prompter, document, environ, self._context.report)
        if len(self._pending) >= _MAX_PENDING:
            self._context.report(f"a call is denied because {_MAX_PENDING} approval requests wait for the person")
            return Approval.NOT_ASKED
        raw_id = calls.new_id()
        key, pending = calls.id_key(raw_id), _PendingApproval(call)
        self._pending[key] = pending
        self._context.to_agent(feedback.approval_elicitation(raw_id, message, offers_similar))
        try:
            await pending.answered.wait()
        except anyio.get_cancelled_exc_class():
            self._context.to_agent(feedback.approval_cancelled(raw_id))
            raise
        finally:
            del self._pending[key]
        return approval_messages.read_approval(pending.result)

    @property
    def waiting_calls(self) -> list[Call]:
        """The calls that wait for an answer of the agent: none will come when its input has ended."""
        return [pending.call for pending in self._pending.values() if not pending.answered.is_set()]

    def resolve(self, answer: ApprovalAnswered) -> None:
        """Take the agent's answer; one that comes too late, or again, has no effect."""
        pending = self._pending.get(answer.key)
        if pending is not None and not pending.answered.is_set():
            pending.result = answer.result
            pending.answered.set()


async def prompt(
    command: tuple[str, ...], document: Mapping[str, object], environ: Mapping[str, str], report: Callable[[str], None]
) -> Approval:
    """Ask through the operator's prompter: it reads `document` as JSON; exit status 0 means yes, 2 means no.

    After LIFETIME seconds nobody has answered; any other end is a failure, which is reported: the person was not asked.
    Neither approves. On cancel it is ended with its whole process group.
    """
    spec = HookSpec(
        "hookproxy", "on_ask_fallback", Event.PERMISSION_REQUEST, command[0], argv=command, timeout=LIFETIME
    )
    stdin = Document(raw_json.encode(document) + b"\n", {})
    try:
        result = await RUNNERS[spec.type](spec, stdin, environ)
    except OSError as problem:  # too few descriptors or processes
        result = HookResult(Ended.NOT_STARTED, detail=problem.strerror or "")
    if result.ended is Ended.EXITED and result.code in (0, 2):
        return Approval.NO if result.code else Approval.ONCE
    ended = f"status {result.code}" if result.ended is Ended.EXITED else result.detail or result.ended.value
    report(f"the prompter {command[0]} failed ({ended}), so the call is denied")
    return Approval.NOT_ANSWERED if result.ended is Ended.TIMED_OUT else Approval.NOT_ASKED
