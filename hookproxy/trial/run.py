"""Tries one call, or one other occasion, on hooks without a server: by the code of a run, and nothing is forwarded.

Hooks run for real. The call is that of an agent that can ask a person, and no person is asked: that is the decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Final, Self

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..audit.log import Record
from ..dialects.dialect import Group
from ..hooks.select import HookGroups
from ..jsonrpc import raw_json
from ..model import aliases
from ..model.decision import Decision, Proceed, RefusalCause, Refuse
from ..model.errors import UserError
from ..model.hooks import Event, EventContext, Session
from ..model.settings import Settings
from ..protocol import actions, feedback
from ..protocol.calls import CAPABILITIES_KEY, PROTOCOL_VERSION_KEY, Call
from ..protocol.router import Router
from ..session.call import intercept
from ..session.call_context import event_context_of
from .context import TrialServices
from .observe import Observation, ObservedHooks

if TYPE_CHECKING:
    from ..trust.trusted_files import Trust

BEFORE: Final = frozenset(
    {Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST, Event.PERMISSION_DENIED, Event.NOTIFICATION, Event.USER_INPUT}
)
"""What may occur until a call is forwarded or refused."""

AFTER: Final = frozenset({Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE})
"""What may occur when its result has come."""

SIDE_EVENTS: Final[Mapping[Event, tuple[str, str]]] = {
    Event.SESSION_START: ("startup", ""),
    Event.SESSION_END: ("other", ""),
    Event.STOP: ("", ""),
    Event.PERMISSION_DENIED: ("", "This is a trial of PermissionDenied hooks."),
    Event.ERROR_OCCURRED: ("tool_execution", "MCP error -32603: This is a trial of ErrorOccurred hooks."),
    Event.NOTIFICATION: ("permission_prompt", "This is a trial of Notification hooks."),
    Event.USER_INPUT: ("", "This is a trial of OnUserInput hooks."),
}
"""The occasions that decide nothing and can be tried: what occasioned each, which its matchers see, and its words."""

SESSION_EVENTS: Final = frozenset({Event.SESSION_START, Event.SESSION_END})

_META: Final = {PROTOCOL_VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {"elicitation": {}}}
"""Of an agent that can ask: a call that needs a person's consent then ends with the question."""

_BY: Final = {RefusalCause.RULE: "the permission rule {0.by}", RefusalCause.LIMIT: "{0.by} of {0.where}"}
"""Who refuses, where it is no hook."""

_FAILURES: Final = frozenset({RefusalCause.FAILURE, RefusalCause.FAILED_CLOSED})


class Plan(Struct, frozen=True):
    """Whose hooks are asked, and by which settings."""

    events: frozenset[Event]
    settings: Settings


def plan(alone: Event | None, has_result: bool, settings: Settings) -> Plan:
    """The whole call, as far as is known what it comes to; or one event alone, without what leads to it."""
    if alone is None:
        return Plan(BEFORE | AFTER if has_result else BEFORE, settings)
    if alone is Event.PRE_TOOL_USE:
        return Plan(frozenset({alone}), settings)
    asks = ("*",) if alone is Event.PERMISSION_REQUEST else ()  # somebody must want to ask
    managed = settings.managed and replace(settings.managed, deny=(), ask=(), allow=(), limits=())
    lone = replace(settings, deny=(), ask=asks, allow=(), limits=(), managed=managed)
    return Plan(frozenset({alone}), lone)


class TrialCall(Struct, frozen=True):
    """The call that is tried."""

    tool: str
    arguments: bytes = b"{}"
    """A JSON object."""
    result: bytes | None = None
    """The CallToolResult that it comes to, a JSON object; None: it ends where it would be forwarded."""
    id: bytes = b"1"
    """As spelled."""

    @property
    def line(self) -> bytes:
        """The agent's message."""
        arguments = msgspec.Raw(self.arguments.replace(b"\n", b" "))
        params = {"name": self.tool, "arguments": arguments, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": msgspec.Raw(self.id), "method": "tools/call", "params": params}
        return raw_json.one_line(raw_json.encode(message)) + b"\n"


class TrialResult(Struct, frozen=True):
    """What came of it."""

    decision: str
    """As in the audit: `allow`, `deny`, `asked-allow`, `asked-deny`; `asked`: a person would be. Empty: what was tried
    decides nothing."""
    seen: Observation
    unreadable: str = ""
    """Why it was refused before any hook was asked."""
    concerned: bool = True
    """Some hook or rule is about it, or all calls are audited; else it passes unread."""
    record: Record | None = None
    """What the audit would have; None: nothing."""
    question: str = ""
    """What the person would be asked."""
    proposed: bytes = b""
    """The arguments that would run in place of the agent's, if a person allowed it where one is asked."""
    answer: bytes = b""
    """The `result` that the agent gets: a refusal, or the given one with what hooks say. Empty: none was given."""

    @property
    def judged(self) -> Decision | None:
        """What hooks and rules decided before a person or the configuration was asked; None: they were not asked."""
        return self.seen.evaluation.decision if self.seen.evaluation else None

    @property
    def rewritten(self) -> bytes:
        """The arguments that would run in place of the agent's, as a hook spelled them; empty: the agent's."""
        return self.record.final if self.record else b""

    @property
    def allowed(self) -> bool:
        """The call is made without a person, and no hook keeps from the model what it came to, or calls it an error."""
        comments = self.seen.comments
        kept_back = comments is not None and bool(comments.withheld or comments.hidden_by or comments.failed)
        return self.decision in ("", "allow", "asked-allow") and not kept_back

    @property
    def failed(self) -> bool:
        """It is not allowed, and that is for a hook that failed: nobody has judged it."""
        if isinstance(self.judged, Refuse):
            return self.judged.cause in _FAILURES
        comments = self.seen.comments
        return comments is not None and bool(comments.withheld) and self.decision in ("allow", "asked-allow")

    @property
    def because(self) -> tuple[str, str]:
        """Who decided, in words, and why; empty where nobody had anything to say."""
        judged = self.judged
        if isinstance(judged, Refuse):
            by = _BY.get(judged.cause, "the {0.event} hook {0.by}").format(judged)
            return by, f"it {judged.reason}" if judged.cause in _FAILURES else judged.reason
        if judged is None:
            return "", ""
        if judged.question is not None:
            settled = {"asked-deny": ", and on_ask denies", "asked-allow": ", and on_ask allows"}.get(self.decision, "")
            return f"{judged.question.by}{settled}", judged.question.reason
        return ("a hook or rule, in the place of a person who was to be asked", "") if judged.asked else ("", "")


class TrialRunner:
    """Trials of one session, one after another: what its hooks keep is kept from one to the next."""

    def __init__(
        self,
        groups: Sequence[Group],
        plan: Plan,
        session: Session,
        environ: Mapping[str, str],
        trust: Trust | None = None,
    ) -> None:
        """Raises ConfigError for a hook that cannot run."""
        self.events, self.settings = plan.events, plan.settings
        self.groups = tuple(
            replace(group, hooks=tuple(spec for spec in group.hooks if spec.event in plan.events)) for group in groups
        )
        self.hooks = ObservedHooks(self.groups, plan.settings, session.server, environ, trust)
        self.session = session
        self._all = HookGroups(groups, session.server, plan.settings.aliases)

    async def __aenter__(self) -> Self:
        """What hooks keep ends with the block, however that ends."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self.hooks.runners.aclose()

    def _concerned(self, tool: str) -> bool:
        """As a run would have it, which asks hooks for all events."""
        return self.settings.audit_all_calls or self._all.concerns(tool) or self.hooks.concern(tool)

    async def call(self, attempt: TrialCall) -> TrialResult:
        """Try a call. On cancel its hooks are ended with their whole process groups. Raises UserError."""
        router = Router(self._concerned)
        seen = self.hooks.seen = Observation()
        line = attempt.line
        if len(line) > self.settings.max_message_bytes:
            return TrialResult("deny", seen, unreadable=feedback.too_long(len(line), self.settings.max_message_bytes))
        effect = router.from_agent(line)
        if isinstance(effect, actions.Refused):
            return TrialResult("deny", seen, unreadable=effect.why)
        if not isinstance(effect, actions.StartCall):
            return TrialResult("allow", seen, concerned=False, answer=attempt.result or b"")
        call = effect.call
        services = await self._with_services(router, attempt.result, lambda services: intercept(call, services))
        record = services.record_audit.record
        assert record is not None, "every call that is seen through is recorded"
        if attempt.result is None:
            seen.after.clear()  # where there is no server, a call that is let go ends as if it were cancelled
        return TrialResult(
            decision=record.decision,
            seen=seen,
            record=record,
            question=services.question,
            proposed=record.final or self._proposed(call, seen),
            answer=_result(services.answered),
        )

    def _proposed(self, call: Call, seen: Observation) -> bytes:
        """What hooks made of the arguments, under the server's names."""
        judged = seen.evaluation.decision if seen.evaluation else None
        if not isinstance(judged, Proceed) or judged.arguments is None:
            return b""
        return aliases.for_server(self.hooks.groups.alias(call.tool, call.arguments), judged.arguments)

    async def run_event(self, event: Event, attempt: TrialCall) -> TrialResult:
        """Try an occasion of BESIDE: of the call, or of the session. Raises UserError."""
        router = Router(lambda _tool: True)
        seen = self.hooks.seen = Observation()
        effect = None if event in SESSION_EVENTS else router.from_agent(attempt.line)
        if isinstance(effect, actions.Refused):
            return TrialResult("deny", seen, unreadable=effect.why)
        call = effect.call if isinstance(effect, actions.StartCall) else None
        by, message = SIDE_EVENTS[event]

        async def happen(services: TrialServices) -> None:
            event_context = event_context_of(call, services) if call else EventContext(event, self.session)
            await self.hooks.at(replace(event_context, event=event, trigger=by, message=message, at=time()))

        await self._with_services(router, None, happen)
        return TrialResult("", seen)

    async def _with_services(
        self, router: Router, given: bytes | None, act: Callable[[TrialServices], Awaitable[None]]
    ) -> TrialServices:
        """Have it happen, and wait until all hooks have spoken. Raises UserError."""
        problem: OSError | None = None
        async with anyio.create_task_group() as tasks:
            self.hooks.begin(tasks, self.hooks.note, lambda: None)
            services = TrialServices(self.hooks, self.settings, self.session, router, tasks, given)
            try:
                await act(services)
            except OSError as caught:
                problem = caught
        if problem is not None:  # too few descriptors or processes: no fault of a hook, and no decision
            raise UserError(f"hooks could not be run: {problem.strerror}", "ulimit -a shows what is allowed here")
        self.hooks.seen.remarks += services.remarks
        return services


def _result(line: bytes) -> bytes:
    """The `result` of an answer; of an error, which a result has no place for, the whole."""
    return bytes(raw_json.fields(line).get("result", line)) if line else b""
