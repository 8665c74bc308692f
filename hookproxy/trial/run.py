"""Tries one call, or one other event, on hooks without a server, with the code of a session. Nothing is forwarded.

The hooks really run. The call comes from an agent that can ask a person. No person is asked: the decision is `asked`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Final, Self

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..dialects.dialect import Group
from ..hooks.familiar_tools import FamiliarTools
from ..hooks.select import HookGroups
from ..jsonrpc import raw_json
from ..model.call_end import CallEnd, Refused, Responded
from ..model.decision import Decision, Proceed, RefusalCause, Refuse
from ..model.errors import UserError
from ..model.hooks import Event, EventContext, Session
from ..model.settings import Settings
from ..policy import methods
from ..protocol import actions, feedback, request_answers, server_requests
from ..protocol.approval_messages import Approval
from ..protocol.calls import CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from ..protocol.router import Router
from ..protocol.secret_restores import BEGINNING as PLACEHOLDERS
from ..session.call import handle_call
from ..session.call_context import event_context_of
from .context import TrialServices, WouldAsk
from .observe import Observation, ObservedHooks

if TYPE_CHECKING:
    from ..session.hidden_secrets import HiddenSecrets
    from ..trust.check_unchanged import Trust

EVENTS_BEFORE: Final = frozenset(
    {
        Event.PRE_TOOL_USE,
        Event.PRE_MCP_TOOL_CALL,
        Event.PERMISSION_REQUEST,
        Event.PERMISSION_DENIED,
        Event.NOTIFICATION,
        Event.USER_INPUT,
    }
)
"""Events that may occur until a call is forwarded or refused."""

EVENTS_AFTER: Final = frozenset({Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE})
"""Events that may occur when the result of a call has arrived."""

SIDE_EVENTS: Final[Mapping[Event, tuple[str, str]]] = {
    Event.SESSION_START: ("startup", ""),
    Event.SESSION_END: ("other", ""),
    Event.STOP: ("", ""),
    Event.PERMISSION_DENIED: ("", "This is a trial of PermissionDenied hooks."),
    Event.ERROR_OCCURRED: ("tool_execution", "MCP error -32603: This is a trial of ErrorOccurred hooks."),
    Event.NOTIFICATION: ("permission_prompt", "This is a trial of Notification hooks."),
    Event.USER_INPUT: ("", "This is a trial of OnUserInput hooks."),
}
"""Events that decide nothing and can be tried, each with its trigger, which matchers see, and its message."""

SESSION_EVENTS: Final = frozenset({Event.SESSION_START, Event.SESSION_END})
"""Events that belong to no call."""

_META: Final = {PROTOCOL_VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {"elicitation": {}}}
"""`_meta` of an agent that can ask. A call that needs approval then ends with what the person would be asked."""

_REFUSED_BY: Final = {
    RefusalCause.RULE: "the permission rule {0.by}",
    RefusalCause.LIMIT: "{0.by} of {0.where}",
    RefusalCause.FLOW: "{0.by} of {0.where}",
    RefusalCause.ARGUMENTS: "the argument {0.by!r}",
}
"""Who refuses a call, if it is not a hook."""

_FAILURES: Final = frozenset({RefusalCause.FAILURE, RefusalCause.FAILED_CLOSED})


_MASKED: Final = "the result has secrets: hooks and the agent get it with placeholders"
_RESTORED: Final = "in a session, the server would get values in the place of placeholders"
_NOT_RESTORED: Final = "the server would get placeholders: no [[secrets.restore]] is about this tool"


class Plan(Struct, frozen=True):
    """The events whose hooks run, and the settings."""

    events: frozenset[Event]
    settings: Settings


def plan(alone: Event | None, has_result: bool, settings: Settings) -> Plan:
    """Plan a whole call, up to its result if there is one; or one event alone, without the events before it."""
    if alone is None:
        return Plan(EVENTS_BEFORE | EVENTS_AFTER if has_result else EVENTS_BEFORE, settings)
    if alone is Event.PRE_TOOL_USE:
        return Plan(frozenset({alone}), settings)
    ask = ("*",) if alone is Event.PERMISSION_REQUEST else ()  # a rule must want to ask
    managed = settings.managed and _without_rules(settings.managed)
    settings_alone = replace(_without_rules(settings), ask=ask, managed=managed)
    return Plan(frozenset({alone}), settings_alone)


def _without_rules(settings: Settings) -> Settings:
    empty = dict.fromkeys(("deny", "ask", "allow", "limits", "flow_sources", "flow_sinks"), ())
    return replace(settings, **empty, default_permission="allow")


class TrialCall(Struct, frozen=True):
    """The call that is tried."""

    tool: str
    arguments: bytes = b"{}"
    """A JSON object."""
    result: bytes | None = None
    """The CallToolResult of the call, a JSON object; None: the trial ends where the call would be forwarded."""
    id: bytes = b"1"
    """The raw JSON of the id."""
    answer: Approval | None = None
    """What a person answers who is asked to approve it; None: nobody is asked, the decision is `asked`."""

    @property
    def line(self) -> bytes:
        """The agent's message."""
        if methods.is_method(self.tool):
            return self._request
        arguments = msgspec.Raw(self.arguments.replace(b"\n", b" "))
        params = {"name": self.tool, "arguments": arguments, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": msgspec.Raw(self.id), "method": "tools/call", "params": params}
        return raw_json.one_line(raw_json.encode(message)) + b"\n"

    @property
    def _request(self) -> bytes:
        """The message of another method than `tools/call`, whose params are the arguments."""
        params = raw_json.with_member(self.arguments.replace(b"\n", b" "), "_meta", raw_json.encode(_META))
        message = {"jsonrpc": "2.0", "id": msgspec.Raw(self.id), "method": self.tool, "params": msgspec.Raw(params)}
        return raw_json.one_line(raw_json.encode(message)) + b"\n"


class TrialResult(Struct, frozen=True):
    """The result of a trial."""

    decision: str
    """As in the audit: `allow`, `deny`, `asked-allow`, `asked-deny`; `asked`: a person would be asked.
    Empty for an event that decides nothing."""
    observation: Observation
    unreadable: str = ""
    """Why the call was refused before any hook ran; empty: it was not."""
    is_judged: bool = True
    """Whether a hook or rule applies to it, or all calls are audited; otherwise it passes unread."""
    record: Record | None = None
    """The audit record of the call; None: there is none."""
    approval_message: str = ""
    """What the person would be asked."""
    proposed: bytes = b""
    """The rewritten arguments that would run, if a person who is asked allows the call."""
    response: bytes = b""
    """The `result` that the agent gets: a refusal, or the given result with feedback of hooks; empty: none."""

    @property
    def hook_decision(self) -> Decision | None:
        """The decision of hooks and rules, before a person or the configuration decides; None: there was none."""
        return self.observation.evaluation.decision if self.observation.evaluation else None

    @property
    def rewritten(self) -> bytes:
        """The rewritten arguments, as a hook spelled them; empty: they were not rewritten."""
        return self.record.final if self.record else b""

    @property
    def allowed(self) -> bool:
        """Whether the call runs without asking a person, and no hook withholds its result or marks it as an error."""
        comments = self.observation.comments
        withheld = comments is not None and bool(comments.withheld or comments.hidden_by or comments.failed)
        return self.decision in ("", "allow", "asked-allow") and not withheld

    @property
    def failed(self) -> bool:
        """Whether the call is not allowed because a hook failed, so that it was not judged."""
        if isinstance(self.hook_decision, Refuse):
            return self.hook_decision.cause in _FAILURES
        comments = self.observation.comments
        return comments is not None and bool(comments.withheld) and self.decision in ("allow", "asked-allow")

    @property
    def decided_by(self) -> tuple[str, str]:
        """Who decided, in words, and the reason; empty if no hook or rule decided anything."""
        hook_decision = self.hook_decision
        if isinstance(hook_decision, Refuse):
            by = _REFUSED_BY.get(hook_decision.cause, "the {0.event} hook {0.by}").format(hook_decision)
            return by, hook_decision.reason
        if hook_decision is None:
            return "", ""
        if hook_decision.approval_request is not None:
            settled = {"asked-deny": ", and on_ask denies", "asked-allow": ", and on_ask allows"}.get(self.decision, "")
            return f"{hook_decision.approval_request.by}{settled}", hook_decision.approval_request.reason
        return ("a hook or rule, instead of the person who would be asked", "") if hook_decision.asked else ("", "")


class TrialRunner:
    """Runs the trials of one session, one after another. Workers and what hooks have allowed are kept between them."""

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
            replace(group, hooks=tuple(spec for spec in group.hooks if spec.event in plan.events)).consulting_nobody
            for group in groups
        )
        self.hooks = ObservedHooks(self.groups, plan.settings, session.server, environ, trust, session.command)
        self.session = session
        self.agent = ""
        """The agent's name and version as it would give them; empty: it is unknown."""
        self._hidden = hidden_in_trial(plan.settings, session.server, environ)
        if self._hidden is not None:
            self.hooks.hide(self._hidden)
        familiar = FamiliarTools(session.command, server=session.server) if plan.settings.auto_aliases else None
        self._all = HookGroups(groups, session.server, plan.settings.aliases, familiar)

    async def __aenter__(self) -> Self:
        """Kept processes of hooks end with the block, also after an error."""
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self.hooks.runners.aclose()

    def _is_judged(self, tool: str) -> bool:
        """As in a session, where hooks for all events run."""
        return self.settings.audit_all_calls or self._all.concerns(tool) or self.hooks.concerns(tool)

    def _judges_method(self, method: str) -> bool:
        return self.settings.audit_all_calls or self._all.names_method(method) or self.hooks.concerns_method(method)

    async def call(self, trial_call: TrialCall) -> TrialResult:
        """Try a call. On cancel its hooks are ended with their whole process groups. Raises UserError."""
        router = Router(self._is_judged, find_alias=self.hooks.groups.alias, max_depth=self.settings.max_depth)
        router.judge_methods(self._judges_method)
        observation = self.hooks.observation = Observation()
        if self._hidden is not None:
            trial_call = _masked(trial_call, self._hidden, observation)
        line = trial_call.line
        if len(line) > self.settings.max_message_bytes:
            return TrialResult(
                "deny", observation, unreadable=feedback.message_too_long(len(line), self.settings.max_message_bytes)
            )
        if methods.JUDGED.get(trial_call.tool) is methods.Direction.FROM_SERVER:
            return await self._server_request(trial_call, router, line)
        effect = router.from_agent(line)
        if isinstance(effect, actions.Refused):
            return TrialResult("deny", observation, unreadable=effect.why)
        if not isinstance(effect, actions.StartCall):
            return TrialResult("allow", observation, is_judged=False, response=trial_call.result or b"")
        call = effect.call
        services = await self._with_services(router, trial_call, lambda services: handle_call(call, services))
        record = services.record_audit.record
        assert record is not None, "every judged call is recorded"
        if trial_call.result is None:
            observation.after.clear()  # without a server, a call that is forwarded ends as if it were cancelled
        return TrialResult(
            decision=record.decision,
            observation=observation,
            record=record,
            approval_message=services.approval_message,
            proposed=record.final or _proposed(observation),
            response=_result(services.response),
        )

    async def _server_request(self, trial_call: TrialCall, router: Router, line: bytes) -> TrialResult:
        """As `call` for a request of the server; its result is the agent's answer."""
        from ..session.judged_request import JudgesRequests  # for such trials only

        method, observation, answer = trial_call.tool, self.hooks.observation, trial_call.result
        if not self._judges_method(method):
            return TrialResult("allow", observation, is_judged=False, response=answer or b"")
        try:
            arguments = server_requests.arguments_of(method, raw_json.fields(line), self.settings.max_depth)
        except ValueError as problem:
            return TrialResult("deny", observation, unreadable=f"This {method} cannot be judged: {problem}.")
        given = b""

        async def act(services: TrialServices) -> None:
            nonlocal given
            services.approvals = services.trial_approvals
            request = JudgesRequests(services, lambda _runs: None).request(method, trial_call.id, arguments, line)
            try:
                decision = await request.decide()
            except WouldAsk:
                request.close(Responded(result="pending", asks=True))
                return
            end: CallEnd = Responded(None)
            if isinstance(decision, Refuse):
                given = server_requests.refused(trial_call.id, method, decision.cause, task=False)
                cause, asked = decision.cause.value, decision.asked
                end = Refused(given, decision.reason, cause, decision.by, decision.place, asked=asked)
            elif answer is not None:
                withheld = server_requests.refused_result(method, RefusalCause.FAILURE)
                comments = await request.judge_answer(request_answers.outcome_of_result(answer))
                given = request_answers.after_comments(method, comments, answer, withheld)
            request.close(end)

        try:
            services = await self._with_services(router, trial_call, act)
        except* ValueError as problems:
            raise UserError(
                f"the answer cannot be judged: {problems.exceptions[0]}", "--result is the agent's answer"
            ) from None
        record = services.record_audit.record
        assert record is not None, "every judged request is recorded"
        return TrialResult(
            record.decision,
            observation,
            record=record,
            approval_message=services.approval_message,
            proposed=record.final or _proposed(observation),
            response=_result(given) if given else b"",
        )

    async def run_event(self, event: Event, trial_call: TrialCall) -> TrialResult:
        """Try one of SIDE_EVENTS, for the call or for the session. Raises UserError."""
        router = Router(lambda _tool: True, find_alias=self.hooks.groups.alias)
        router.judge_methods(lambda _method: True)
        observation = self.hooks.observation = Observation()
        effect = None if event in SESSION_EVENTS else router.from_agent(trial_call.line)
        if isinstance(effect, actions.Refused):
            return TrialResult("deny", observation, unreadable=effect.why)
        call = effect.call if isinstance(effect, actions.StartCall) else None
        trigger, message = SIDE_EVENTS[event]

        async def act(services: TrialServices) -> None:
            event_context = (
                event_context_of(call, services.policy, services) if call else EventContext(event, self.session)
            )
            await self.hooks.run_event_hooks(
                replace(event_context, event=event, trigger=trigger, message=message, at=time())
            )

        await self._with_services(router, replace(trial_call, result=None), act)
        return TrialResult("", observation)

    async def _with_services(
        self, router: Router, trial_call: TrialCall, act: Callable[[TrialServices], Awaitable[object]]
    ) -> TrialServices:
        """Run `act` with services, and wait until all hooks are done. Raises UserError."""
        problem: OSError | None = None
        async with anyio.create_task_group() as tasks:
            self.hooks.open(tasks, self.hooks.note, lambda: None)
            services = TrialServices(self.hooks, self.settings, self.session, router, tasks, trial_call.result)
            services.agent_name = self.agent
            if trial_call.answer is not None:
                services.answer(trial_call.answer)
            try:
                await act(services)
            except OSError as caught:
                problem = caught
        if problem is not None:  # too few descriptors or processes: neither a failure of a hook nor a decision
            raise UserError(f"hooks could not be run: {problem.strerror}", "ulimit -a shows the limits")
        self.hooks.observation.remarks += services.remarks
        return services


def _masked(trial_call: TrialCall, hidden: HiddenSecrets, observation: Observation) -> TrialCall:
    """The call with the result that hooks and the agent get."""
    if PLACEHOLDERS in trial_call.arguments:
        observation.remarks.append(_RESTORED if hidden.restores_for(trial_call.tool) else _NOT_RESTORED)
    masked = None if trial_call.result is None else hidden.masks.json(trial_call.result)
    if masked is trial_call.result:
        return trial_call
    observation.remarks.append(_MASKED)
    return replace(trial_call, result=masked)


def hidden_in_trial(settings: Settings, server: str, environ: Mapping[str, str]) -> HiddenSecrets | None:
    """What `[secrets]` hides; None: nothing. Of named values, those in variables and files that are there."""
    if settings.secrets is None:
        return None
    from ..config.secret_values import read_values
    from ..secrets.finder import Finder
    from ..session.hidden_secrets import HiddenSecrets

    values: dict[str, bytes] = {}
    for name, source in settings.secrets.values.items():
        if source.kind in ("env", "file"):  # a command or a keyring may ask the person
            with suppress(UserError):  # cases run where no secret is, too
                values |= read_values({name: source}, environ)
    return HiddenSecrets(settings.secrets, Finder(settings.secrets, values), server)


def _proposed(observation: Observation) -> bytes:
    """The arguments as hooks rewrote them."""
    hook_decision = observation.evaluation.decision if observation.evaluation else None
    return (hook_decision.arguments or b"") if isinstance(hook_decision, Proceed) else b""


def _result(line: bytes) -> bytes:
    """The `result` of a response; for an error response, the whole line."""
    return bytes(raw_json.fields(line).get("result", line)) if line else b""
