"""Asks a person to approve a call: through the agent, or through a prompter of the operator.

Law 1: only an explicit yes is an approval; silence, a failure or a late answer is not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from time import time
from typing import Final

import anyio
from msgspec import Raw, Struct, field

from ..hooks.policy import Policy
from ..hooks.session_events import SessionContext
from ..jsonrpc import raw_json
from ..live.messages import ConsoleAnswer, WaitingApproval
from ..model.decision import ApprovalRequest
from ..model.hooks import Document, Ended, Event, HookResult, HookSpec
from ..model.settings import Arguments, ConsoleUse, OnAsk, Settings
from ..policy import decide
from ..protocol import approval_messages, calls, feedback
from ..protocol.actions import ApprovalAnswered
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..protocol.handshake import Handshake, supports_forms
from ..runners.registry import RUNNERS

_MAX_PENDING: Final = 512  # requests at a time: nobody answers so many, and each keeps its call in memory
_MAX_PROMPTERS: Final = 4  # at a time: a person reads one dialog after another


AskConsole = Callable[[Call | None, WaitingApproval, bool], Awaitable[ConsoleAnswer | None]]
"""Asks on a console about a call (None: something else), until the approval's time is over: then None.

True: only as long as a console is open.
"""


class ApprovalResult(Struct, frozen=True):
    """What became of an approval request."""

    approval: Approval
    by: str = ""
    """Who has answered on a console, what, and from where; empty: nobody has."""
    reason: str = ""
    """What the person says to the model."""


_CONSOLE_APPROVALS: Final = {"allow": Approval.ONCE, "allow_session": Approval.SESSION, "deny": Approval.NO}


class ApprovalDetails(Struct, frozen=True):
    """All that can be said to a person about a call that needs approval."""

    server: str
    tool: str
    arguments: bytes
    """Normalised, as they will run."""
    request: ApprovalRequest
    similar: str = ""
    """The calls like this one, as a permission rule; empty: they are not offered."""
    place: str = ""
    """Where the rule that requires it is configured; empty: a hook does, or it is not known."""

    @property
    def message(self) -> str:
        """What an agent shows."""
        return approval_messages.message(self.server, self.tool, self.arguments, self.request, self.similar)

    @property
    def document(self) -> dict[str, object]:
        """What a prompter reads."""
        return approval_messages.prompter_document(self.server, self.tool, self.arguments, self.request)

    def for_console(self, call: Call, seconds: float, *, masked: bool) -> WaitingApproval:
        """What a console shows for so many seconds. Which approval, call and session it is, the feed adds.

        If it is masked, what could make an interpreter do something stays visible all the same: a person decides on it.
        """
        now, by, reason, arguments = time(), self.request.by, self.request.reason, self.arguments
        if masked:
            from ..secrets.mask import Masking

            masking = Masking(careful=True)
            arguments, reason = masking.json(arguments), masking.text(reason)
        named = ("", "", "", self.server, self.tool, Raw(arguments))
        alias = "" if call.alias is None else call.alias.name
        return WaitingApproval(*named, reason, by, now, now + seconds, alias, self.place)


class _PendingApproval(Struct):
    call: Call
    answered: anyio.Event = field(default_factory=anyio.Event)
    result: bytes = b""


class Approvals:
    """Asks about calls; in the handshake era with a request of ours to the agent, which is kept while it is pending."""

    def __init__(self, session_context: SessionContext, handshake: Handshake) -> None:
        self._context = session_context
        self._handshake = handshake
        self._pending: dict[bytes, _PendingApproval] = {}
        self.console: AskConsole | None = None
        """Set while consoles can find this run."""
        self.console_is_open: Callable[[], bool] = lambda: False
        """Whether a person has a console open that shows this run."""

    @cached_property
    def _prompters(self) -> anyio.Semaphore:
        return anyio.Semaphore(_MAX_PROMPTERS)  # made when it is needed: few sessions ask a prompter

    def may_ask(self, call: Call, settings: Settings) -> bool:
        """The agent can ask the person about this call: the user, who may not approve it where others do."""
        if settings.approvers:
            return False
        if call.stateless:
            return supports_forms(call.meta.get(calls.CAPABILITIES_KEY))
        return self._handshake.supports_elicitation

    def has_fallback(self, request: ApprovalRequest | None, settings: Settings) -> bool:
        """The operator has a way to ask if the agent cannot; for a managed request, the administrator."""
        has_prompter = bool(decide.settings_for(settings, request).prompter)
        return has_prompter or self.uses_console(request, settings, agent_cannot=True)

    def uses_console(self, request: ApprovalRequest | None, settings: Settings, *, agent_cannot: bool) -> bool:
        """This request is for a console; `agent_cannot` ask."""
        settings = decide.settings_for(settings, request)
        if self.console is None:
            return False
        if settings.on_ask is OnAsk.CONSOLE or not agent_cannot:
            return settings.on_ask is OnAsk.CONSOLE
        is_open = settings.console is ConsoleUse.IF_OPEN and self.console_is_open()
        return settings.console is ConsoleUse.ALWAYS or is_open

    async def ask(self, call: Call, approval: ApprovalDetails, policy: Policy) -> ApprovalResult:
        """Ask on a console, through the agent or with the prompter; wait. On cancel, the request is withdrawn."""
        request = approval.request
        settings = decide.settings_for(policy.settings, request)
        agent_cannot = not self.may_ask(call, policy.settings)
        if self.console is not None and self.uses_console(request, policy.settings, agent_cannot=agent_cannot):
            only_while_open = settings.on_ask is not OnAsk.CONSOLE and settings.console is ConsoleUse.IF_OPEN
            waiting = approval.for_console(
                call, settings.ask_seconds, masked=policy.settings.audit_arguments is not Arguments.FULL
            )
            return _on_console(await self.console(call, waiting, only_while_open))
        if not agent_cannot:
            return ApprovalResult(await self._ask_agent(call, approval.message, bool(approval.similar)))
        async with self._prompters:
            prompter, report = settings.prompter, self._context.report
            if failure := policy.hooks.prompter_failure(request.managed):
                self._context.report(f"the prompter {prompter[0]} {failure}, so the call is denied")
                return ApprovalResult(Approval.NOT_ASKED)
            environ = policy.hooks.prompter_environment(request.managed)
            document = approval.document
            if (principal := self._context.session.principal) is not None:
                document["user"] = principal.name
            return ApprovalResult(await prompt(prompter, document, environ, report, settings.ask_seconds))

    async def _ask_agent(self, call: Call, message: str, offers_similar: bool) -> Approval:
        """`offers_similar`: the person may allow calls like this one."""
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

    def give_up(self, waiting: Sequence[Call]) -> None:
        """Nobody will answer about these."""
        for pending in self._pending.values():
            if pending.call in waiting:
                pending.answered.set()

    def resolve(self, answer: ApprovalAnswered) -> None:
        """Take the agent's answer; one that comes too late, or again, has no effect."""
        pending = self._pending.get(answer.key)
        if pending is not None and not pending.answered.is_set():
            pending.result = answer.result
            pending.answered.set()


def _on_console(answer: ConsoleAnswer | None) -> ApprovalResult:
    if answer is None:
        return ApprovalResult(Approval.NOT_ANSWERED)
    said = answer.answer
    return ApprovalResult(_CONSOLE_APPROVALS[said.action], f"{said.action} by {answer.by}", said.reason.strip())


async def prompt(
    command: tuple[str, ...],
    document: Mapping[str, object],
    environ: Mapping[str, str],
    report: Callable[[str], None],
    seconds: float,
) -> Approval:
    """Ask through the operator's prompter: it reads `document` as JSON; exit status 0 means yes, 2 means no.

    After so many seconds nobody has answered; any other end is a failure, and is reported. Neither approves. On cancel
    it is ended with its whole process group.
    """
    spec = HookSpec("hookproxy", "on_ask_fallback", Event.PERMISSION_REQUEST, command[0], argv=command, timeout=seconds)
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
