"""Asks a person to approve a call without the agent: on a console, by the webhook, or with a prompter (law 1).

How it works: the call waits, on all consoles and for the webhook at once, as long as somebody could answer; the first
answer counts. Where nobody could be reached, the prompter asks. Nobody at all is a refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import anyio
from msgspec import Struct

from ..hooks.evaluate import Hooks
from ..jsonrpc import normalize, raw_json
from ..jsonrpc.nesting import is_deeper
from ..live.messages import GivenAnswer, WaitingApproval
from ..model.approval_settings import NOT_TOLD
from ..model.decision import ApprovalRequest
from ..model.hooks import Document, Ended, Event, HookResult, HookSpec
from ..model.settings import Arguments, ConsoleUse, OnAsk, Settings
from ..policy import decide
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..runners.registry import RUNNERS
from .approval_details import ApprovalDetails, ApprovalResult
from .waiting_approvals import Invite, NobodyToAsk, ReadEdit

if TYPE_CHECKING:
    from ..approvals.ways import Ways

_MAX_PROMPTERS: Final = 4  # at a time: a person reads one dialog after another

IN_AGENT: Final = "the agent"
"""Where a person answers whom the agent asks."""

CheckEdit = Callable[[bytes], Awaitable[None]]
"""Raises ValueError with a sentence for arguments, as normalised JSON, that the tool cannot get."""


class OutsideApprovals(Protocol):
    """The approvals of one session that people outside of the agent answer."""

    @property
    def consoles_find_it(self) -> bool:
        """A console that is opened will show them."""

    def is_watched(self) -> bool:
        """A console is open of somebody who may answer them."""

    def ways(self) -> Ways:
        """The ways to tell people about them."""

    async def ask(
        self,
        approval: WaitingApproval,
        call: Call | None = None,
        *,
        only_while_watched: bool = False,
        on_consoles: bool = True,
        read_edit: ReadEdit | None = None,
        invite: Sequence[Invite] = (),
    ) -> GivenAnswer | None:
        """As `WaitingApprovals.ask`, about a call (None: something else) of this session, which is added to it."""


class Asked(Struct, frozen=True):
    """What is asked about, and by which configuration."""

    details: ApprovalDetails
    hooks: Hooks
    settings: Settings
    check_edit: CheckEdit | None = None
    """None: the person cannot change the arguments."""
    most_seconds: float = float("inf")
    """For how long anybody may be asked, whatever the configuration says."""

    @property
    def layer(self) -> Settings:
        """The settings for the approval request: the managed ones if that is managed."""
        return decide.settings_for(self.settings, self.details.request)

    @property
    def seconds(self) -> float:
        """For how long a person is asked."""
        return min(self.layer.ask_seconds, self.most_seconds)


class OutsideApproval:
    """The ways to ask in one session."""

    def __init__(self, report: Callable[[str], None], user: str = "") -> None:
        """`user` is whose session it is, at a gateway."""
        self._report = report
        self._user = user
        self.approvals: OutsideApprovals | None = None
        """None: there are no consoles."""

    @cached_property
    def _prompters(self) -> anyio.Semaphore:
        return anyio.Semaphore(_MAX_PROMPTERS)  # made when it is needed: few sessions ask a prompter

    def is_possible(self, request: ApprovalRequest | None, settings: Settings) -> bool:
        """The operator has a way to ask if the agent cannot; for a managed request, the administrator."""
        has_prompter = bool(decide.settings_for(settings, request).prompter)
        return has_prompter or self.waits(request, settings, agent_cannot=True)

    def waits(self, request: ApprovalRequest | None, settings: Settings, *, agent_cannot: bool) -> bool:
        """This request waits for people outside of the agent; `agent_cannot` ask."""
        layer = decide.settings_for(settings, request)
        if self.approvals is None or not (agent_cannot or layer.on_ask is OnAsk.CONSOLE):
            return False
        if layer.approvals.webhook is not None and not settings.approvers:
            return True
        if not self.approvals.consoles_find_it or not _on_consoles(layer):
            return False
        return _waits_for_consoles(layer) or layer.approvals.desktop or self.approvals.is_watched()

    async def ask(self, asked: Asked, call: Call | None, *, agent_cannot: bool) -> ApprovalResult:
        """Ask, and wait for the answer. On cancel, the request is withdrawn, and a prompter is ended."""
        settings, request = asked.layer, asked.details.request
        if self.approvals is not None and self.waits(request, asked.settings, agent_cannot=agent_cannot):
            try:
                return ApprovalResult.of(await self._wait(self.approvals, asked, call))
            except NobodyToAsk:  # whoever was to tell people has reported it
                pass
        if not settings.prompter:
            return ApprovalResult(Approval.NOT_ASKED)
        async with self._prompters:
            return await self._prompt(asked)

    async def _wait(self, approvals: OutsideApprovals, asked: Asked, call: Call | None) -> GivenAnswer | None:
        settings, details = asked.layer, asked.details
        masked = asked.settings.audit_arguments is not Arguments.FULL
        waiting = details.waiting(asked.seconds, masked=masked)
        shown, own = bytes(waiting.arguments), details.own_arguments or details.arguments

        async def read_edit(text: str) -> bytes:
            return await _read_edit(text, shown, own, asked)

        invite: Sequence[Invite] = ()
        if settings.approvals != NOT_TOLD:
            may_answer, on_consoles = not asked.settings.approvers, _on_consoles(settings)
            find = approvals.consoles_find_it and on_consoles
            invite = approvals.ways().invitations(settings.approvals, may_answer=may_answer, consoles_find_it=find)
        return await approvals.ask(
            waiting,
            call,
            only_while_watched=not (approvals.consoles_find_it and _waits_for_consoles(settings)),
            on_consoles=_on_consoles(settings),
            read_edit=read_edit if asked.check_edit is not None else None,
            invite=invite,
        )

    async def tell(self, asked: Asked, where: str) -> None:
        """Show a notification about a call that waits there, in the agent, if one is configured."""
        if self.approvals is not None and asked.layer.approvals.desktop:
            await self.approvals.ways().notify(asked.details.waiting(0.0, masked=True), where)

    async def _prompt(self, asked: Asked) -> ApprovalResult:
        settings, managed = asked.layer, asked.details.request.managed
        if failure := asked.hooks.prompter_failure(managed):
            self._report(f"the prompter {settings.prompter[0]} {failure}, so the call is denied")
            return ApprovalResult(Approval.NOT_ASKED)
        document = asked.details.document
        if self._user:
            document["user"] = self._user
        environ = asked.hooks.prompter_environment(managed)
        result = await _run_prompter(settings.prompter, document, environ, asked.seconds)
        failed = result.detail or result.ended.value
        if result.ended is Ended.EXITED:
            try:
                return await _read_response(result, asked)
            except ValueError as problem:
                failed = str(problem)
        self._report(f"the prompter {settings.prompter[0]} failed ({failed}), so the call is denied")
        timed_out = result.ended is Ended.TIMED_OUT
        return ApprovalResult(Approval.NOT_ANSWERED if timed_out else Approval.NOT_ASKED)


def _on_consoles(layer: Settings) -> bool:
    """Whoever has a console open may answer requests of this layer."""
    return layer.on_ask is OnAsk.CONSOLE or layer.console is not ConsoleUse.NEVER


def _waits_for_consoles(layer: Settings) -> bool:
    """Requests of this layer wait for a console that may be opened later."""
    return layer.on_ask is OnAsk.CONSOLE or layer.console is ConsoleUse.ALWAYS


def read_arguments(text: str, shown: bytes, arguments: bytes, max_depth: int) -> bytes:
    """Arguments as a person has typed them, normalised. Raises ValueError for what hooks and a server may misread.

    The person was `shown` the arguments, perhaps with parts masked: these are what they were.
    """
    raw = text.encode(errors="surrogatepass")
    if is_deeper(raw, max_depth):
        raise raw_json.TooDeep
    typed = normalize.normalize(raw)
    if not typed.startswith(b"{"):
        raise ValueError("they are not a JSON object")
    if shown == arguments:
        return typed
    from ..secrets.unmask import unmasked

    return unmasked(typed, shown, arguments)


async def _read_edit(text: str, shown: bytes, own: bytes, asked: Asked) -> bytes:
    """Arguments that take the place of the call's `own`; empty: they are the same. Raises ValueError."""
    arguments = read_arguments(text, shown, own, asked.settings.max_depth)
    if arguments == own:
        return b""
    if asked.check_edit is not None:
        await asked.check_edit(arguments)
    return arguments


async def _run_prompter(
    command: tuple[str, ...], document: Mapping[str, object], environ: Mapping[str, str], seconds: float
) -> HookResult:
    """Run the operator's prompter with `document` as its input. On cancel it is ended with its whole process group."""
    spec = HookSpec("hookproxy", "on_ask_fallback", Event.PERMISSION_REQUEST, command[0], argv=command, timeout=seconds)
    stdin = Document(raw_json.encode(document) + b"\n", {})
    try:
        return await RUNNERS[spec.type](spec, stdin, environ)
    except OSError as problem:  # too few descriptors or processes
        return HookResult(Ended.NOT_STARTED, detail=problem.strerror or "")


async def _read_response(result: HookResult, asked: Asked) -> ApprovalResult:
    """What a prompter that has exited says: status 0 means yes, 2 means no, and anything else is a failure.

    If it prints an object, this is a response as the webhook's, which must say the same as the status. Other output
    means nothing: dialog programs print all kinds of things. Raises ValueError.
    """
    if result.code not in (0, 2):
        raise ValueError(f"status {result.code}")
    approval = Approval.NO if result.code else Approval.ONCE
    by = f"the program {asked.layer.prompter[0]}"
    printed = bytes(result.stdout).strip()
    if not printed.startswith(b"{"):
        return ApprovalResult(approval, by)
    from ..approvals.webhook import read_answer  # few programs print a response

    try:
        answer = read_answer(printed, approval="", token="")
    except ValueError as problem:
        raise ValueError(f"its response cannot be used: {problem}") from None
    if (answer.action == "deny") is not (approval is Approval.NO):
        raise ValueError(f"it says {answer.action}, and exits with status {result.code}")
    arguments = b""
    if answer.arguments:
        if asked.check_edit is None:
            raise ValueError("it changes arguments that cannot be changed")
        shown, own = asked.details.arguments, asked.details.own_arguments or asked.details.arguments
        arguments = await _read_edit(answer.arguments, shown, own, asked)
    return ApprovalResult(approval, by, answer.reason.strip(), arguments)
