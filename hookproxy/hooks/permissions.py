"""Applies permission rules and rate limits: the configuration's, and what hooks and people add to a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..dialects.dialect import Effect
from ..model.decision import ApprovalRequest, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import Event, EventContext, Permission, Tool, Verdict
from ..model.limits import Beyond, CountedCall, Measure
from ..model.settings import Settings
from ..policy import matchers, methods
from ..policy.decide import BEFORE_CALL
from ..policy.globs import OF_RESOURCE, WorkBudget
from ..policy.shared_state import NOTHING_SHARED, Approved, Shared, StoreUnavailable
from ..protocol import feedback
from . import argument_types, bounded_cache
from .familiar_tools import FamiliarTools
from .select import HookGroups

if TYPE_CHECKING:
    from ..policy.rate_limits import LimitReached, RateLimits
    from ..policy.rules import RuleDecision, Rules, ToolRules
    from ..policy.similar_calls import SimilarCalls


_MAX_RULES: Final = 1024  # permission rules that hooks may add to a session: the table must stay bounded


def layers(
    whole: HookGroups, settings: Settings, server: str, familiar: FamiliarTools, shared: Shared = NOTHING_SHARED
) -> tuple[Permissions, ...]:
    """The layers that evaluate a call one after another; the managed one comes last, on the final arguments.

    `whole` has all groups of the run, for the server of this name.
    """
    if settings.managed is None and not any(group.managed for group in whole.groups):
        return (Permissions(whole, settings, shared=shared),)
    managed_settings = settings.managed or Settings()

    def groups_of(layer: Settings, managed: bool) -> HookGroups:
        own = [group for group in whole.groups if group.managed is managed]
        return HookGroups(own, server, layer.aliases, familiar if layer.auto_aliases else None)

    return (
        Permissions(groups_of(settings, managed=False), settings, shared=shared),
        Permissions(groups_of(managed_settings, managed=True), managed_settings, managed=True, shared=shared),
    )


class Permissions:
    """The permission rules and limits of one layer, the user's or the managed one, with its hooks, for one server."""

    def __init__(
        self, groups: HookGroups, settings: Settings, managed: bool = False, shared: Shared = NOTHING_SHARED
    ) -> None:
        self.rules = _rules(settings)
        self.limits = _limits(settings, shared)
        self.shared_limits = shared.limits
        """Counts the limits for several processes together; None: they are counted here."""
        self._shared_approvals = shared.approvals
        self.groups = groups
        self.managed = managed
        self._checks_types = settings.check_types
        self.where = "the managed configuration" if managed else settings.called
        self._allowed: dict[str, Callable[[str, bytes], bool]] = {}  # rules that hooks have added
        self._approved: list[Approved] = []  # by a person, and not in `_shared_approvals`
        self._rules_about: dict[tuple[str, ...], ToolRules] = {}  # by the names of a tool
        self.note_ruling: Callable[[RuleDecision], None] | None = None
        """Gets each ruling that counts; None: nobody wants to know."""

    def __bool__(self) -> bool:
        """Some rule or limit is configured."""
        return self.rules is not None or self.limits is not None

    def apply_rules(self, proceed: Proceed, context: EventContext, *, allowed: bool = False) -> Decision:
        """Apply the rules and limits to a call that no hook refused, on its final arguments.

        `allowed`: a hook of this layer allows them, so that the default is not asked. Raises as `allow`.
        """
        ruling = self._ruling_or_default(proceed, context, allowed) if self.rules is not None else None
        if ruling is not None and self.note_ruling is not None:
            self.note_ruling(ruling)
        if ruling is not None and ruling.permission is Permission.DENY:
            return Refuse(
                ruling.rule,
                ruling.reason,
                cause=RefusalCause.RULE,
                feedback=proceed.feedback,
                where=ruling.place or self.where,
                place=ruling.at or ruling.place,
            )
        if ruling is not None and ruling.permission is Permission.ASK:
            by = f"the managed permission rule {ruling.rule}" if self.managed else ruling.by(self.where)
            reason = ruling.reason if ruling.unreadable or ruling.is_default else ""
            request = ApprovalRequest(by, reason, "" if ruling.is_default else ruling.rule)
            proceed = replace(proceed, approval_request=proceed.approval_request or request)
        elif ruling is not None:
            asked = proceed.asked or proceed.approval_request is not None
            proceed = replace(proceed, approval_request=None, asked=asked)
        if self.limits is None:
            return proceed
        shared = self.shared_limits is not None
        exceeded = self.limits.exceeded(_names(self.groups, context), counted_call(context), known_after=shared)
        return self._beyond_limits(exceeded, proceed) if exceeded else proceed

    def _ruling_or_default(self, proceed: Proceed, context: EventContext, allowed: bool) -> RuleDecision | None:
        """The ruling on a call; the default if no rule is about it, and no hook allows it or wants to ask."""
        assert self.rules, "only called with rules"
        ruling, default = self._ruling(context), self.rules.default
        if default is Permission.ALLOW:  # true of most configurations
            return ruling
        if ruling is not None and not (ruling.unreadable and ruling.permission < default):
            return ruling
        if self.rules.default_for((context.tool,)) is Permission.ALLOW:
            return ruling
        if allowed or proceed.approval_request is not None or self.allow(context):
            return ruling
        # a rule that only may apply is no better than one that does not: such a call is not covered by an allow rule
        if ruling is not None and self._is_covered(context):
            return ruling
        return self.rules.by_default()

    def _is_covered(self, context: EventContext) -> bool:
        """Whether an allow rule covers a call, whatever other rules say of it. Raises as `_ruling`."""
        own_tool = _is_agents_own(context)
        of_tool = self._rules_for(self.groups.own_names(context.tool))
        if of_tool.allowed(context.arguments, own_tool=own_tool) is not None:
            return True
        if context.alias is None or context.alias.automatic or context.alias.guessed:
            return False
        return any(
            all(self._rules_for((name,)).allowed(arguments, own_tool=own_tool) is not None for arguments in readings)
            for name, readings in under_aliases(context)
        )

    def _ruling(self, context: EventContext) -> RuleDecision | None:
        """The strictest ruling on a call; for a tool with an alias, the rules are tried on the alias as well.

        A rule allows nothing by a name that was only recognised. Raises Unreadable, DuplicateKeys for arguments that
        the alias makes ambiguous.
        """
        # all readings of a URI together have one budget
        budget = WorkBudget(OF_RESOURCE) if methods.has_uri(context.tool) else None
        own_tool = _is_agents_own(context)
        own = self._judge(self.groups.own_names(context.tool), context.arguments, budget, own_tool=own_tool)
        if context.alias is None:
            return own
        # a rule must know of a familiar name whether it stands for a method
        of_method = (context.tool,) if methods.is_method(context.tool) else ()
        by_alias = [
            self._judge_readings((*of_method, name), readings, budget, own_tool=own_tool)
            for name, readings in under_aliases(context)
        ]
        if context.alias.automatic or context.alias.guessed:
            by_alias = [
                ruling for ruling in by_alias if ruling is not None and ruling.permission is not Permission.ALLOW
            ]
        return max(
            (ruling for ruling in (own, *by_alias) if ruling is not None),
            key=lambda ruling: ruling.permission,
            default=None,
        )

    def _judge_readings(
        self, names: tuple[str, ...], readings: Sequence[bytes], budget: WorkBudget | None, *, own_tool: bool
    ) -> RuleDecision | None:
        """The strictest ruling on the readings of a call; one of them alone does not allow it."""
        rulings = [self._judge(names, arguments, budget, own_tool=own_tool) for arguments in readings]
        known = [ruling for ruling in rulings if ruling is not None]
        strictest = max(known, key=lambda ruling: ruling.permission, default=None)
        allows = strictest is not None and strictest.permission is Permission.ALLOW
        return None if allows and len(known) < len(rulings) else strictest

    def _judge(
        self, names: tuple[str, ...], arguments: bytes, budget: WorkBudget | None, *, own_tool: bool
    ) -> RuleDecision | None:
        """What the rules about a tool with these names decide about a call."""
        about = self._rules_for(names)
        return about.judge(arguments, budget, own_tool=own_tool) if about else None

    def _rules_for(self, names: tuple[str, ...]) -> ToolRules:
        """The rules about a tool with these names."""
        assert self.rules, "only called with rules"
        about = self._rules_about.get(names)
        if about is None:
            about = self.rules.about(names)
            bounded_cache.keep(self._rules_about, names, about)
        return about

    async def apply_limits(self, proceed: Proceed, context: EventContext, *, count: bool = True) -> Decision:
        """Count a call that is about to be forwarded against its tool's limits; refuse it beyond one that refuses, and
        beyond one that asks unless a person was asked.

        Without `count` it is only looked what would follow. On cancel, the call may have been counted.
        """
        if self.limits is None:
            return proceed
        names, call, size = _names(self.groups, context), counted_call(context), len(context.arguments)
        if self.shared_limits is None:
            if not count:
                return self._beyond_limits(self.limits.exceeded(names, call), proceed)
            reached = self.limits.count(names, size, call, proceed.exceeds)
            return proceed if reached is None else self._refuse_over_limit(reached, proceed)
        try:
            limits = self.limits.applicable(names)
            if not count:
                return self._beyond_limits(await self.shared_limits.exceeded(limits, call) if limits else (), proceed)
            reached = await self.shared_limits.count(limits, call, proceed.exceeds) if limits else None
        except StoreUnavailable as problem:
            return _refuse_without_store("the count of calls for a rate limit", problem, proceed)
        if reached is None:
            self.limits.note_size(names, size, call)  # each process counts them alone
        return proceed if reached is None else self._refuse_over_limit(reached, proceed)

    @property
    def must_ask_store(self) -> bool:
        """Some limits ask or comment, and only `apply_limits` knows whether they are exceeded."""
        return self.shared_limits is not None and self.limits is not None and not self.limits.only_denies

    def _beyond_limits(self, exceeded: Sequence[LimitReached], proceed: Proceed) -> Decision:
        """What follows from the limits that a call exceeds: a refusal, an approval, or feedback."""
        denying = [reached for reached in exceeded if reached.limit.beyond is Beyond.DENY]
        if denying:
            longest = max(denying, key=lambda reached: reached.retry_after or inf)
            return self._refuse_over_limit(longest, proceed)
        limits = [reached.limit for reached in exceeded if reached.limit.key not in proceed.exceeds]
        asking = [limit for limit in limits if limit.beyond is Beyond.ASK]
        comments = [feedback.beyond_limit(limit, self.where) for limit in limits if limit.beyond is Beyond.COMMENT]
        request = proceed.approval_request
        if asking:
            why = [f"more than {limit}" for limit in asking]
            why += [] if request is None else [request.reason or request.by]
            request = ApprovalRequest(
                f"{asking[0].by} of {self.where}", "; ".join(why), limits=tuple(limit.key for limit in asking)
            )
        return replace(
            proceed,
            approval_request=request,
            feedback=(*proceed.feedback, *comments),
            exceeds=(*proceed.exceeds, *(limit.key for limit in limits)),
        )

    def _refuse_over_limit(self, reached: LimitReached, proceed: Proceed) -> Refuse:
        limit = reached.limit
        asks = limit.beyond is Beyond.ASK
        return Refuse(
            limit.by,
            f"no more than {limit}" + asks * ", beyond which the user is asked, and other calls came first",
            asked=proceed.asked,
            cause=RefusalCause.LIMIT,
            feedback=proceed.feedback,
            retry_after=1 if asks else reached.retry_after,  # then it is seen before it is to be counted
            repeated=limit.measure is Measure.SAME,
            where=self.where,
            place=limit.place,
        )

    def allow(self, context: EventContext, limits: Sequence[str] = ()) -> bool:
        """True if a person, or a rule that a hook added, has allowed the call for this session.

        `limits`: the keys of those that the call exceeds. Then only a person has, who was asked because of these.
        Raises Unreadable, DuplicateKeys for arguments that the alias makes ambiguous.
        """
        if any(self._includes(approved, context, limits) for approved in self._approved):
            return True
        rules = () if limits else self._allowed.values()
        return any(_covers(rule, self.groups, context, recognised=False) for rule in rules)

    async def allow_elsewhere(self, context: EventContext, limits: Sequence[str] = ()) -> bool:
        """True if a person has allowed the call for this session, wherever it was served then. Otherwise as `allow`.

        Nothing is allowed by a store that cannot be reached.
        """
        if self._shared_approvals is None:
            return False
        try:
            approved = await self._shared_approvals.approved()
        except StoreUnavailable:
            return False
        return any(self._includes(calls, context, limits) for calls in approved)

    def _includes(self, approved: Approved, context: EventContext, limits: Sequence[str]) -> bool:
        if approved.tool != context.tool or approved.managed is not self.managed:
            return False
        if bool(approved.limits) is not bool(limits) or not set(limits) <= set(approved.limits):
            return False
        if approved.similar is not None:
            return approved.similar.include(context.tool, context.arguments)
        return not approved.rule or _covers(_allow_rule(approved.rule), self.groups, context)

    def wrong_arguments(self, context: EventContext, listed: Tool | None) -> Refuse | None:
        """The refusal of a call that its hooks and rules cannot judge, because of the types of its arguments."""
        if context.alias is None and not self._checks_types:  # true of most calls
            return None
        wrong = argument_types.refusal(context.alias, listed, context.arguments, check_all=self._checks_types)
        return wrong if wrong is not None and self.concerns(context.tool) else None

    def measures_results(self, tool: str) -> bool:
        """True if a limit must know how calls of this tool end."""
        return self.limits is not None and self.limits.measures_results(self.groups.possible_names(tool))

    def note_end(self, context: EventContext, size: int, seconds: float) -> None:
        """Count the bytes of the response to a call, and how long it took."""
        if self.limits is not None:
            self.limits.note_end(_names(self.groups, context), size, seconds, counted_call(context))

    def concerns(self, tool: str) -> bool:
        """True if any hook, rule or limit is about calls of this tool."""
        return self.groups.concerns(tool) or (bool(self) and self._rules_concern(self.groups.possible_names(tool)))

    def concerns_method(self, method: str) -> bool:
        """As `concerns` for a method other than `tools/call`: only if something names it."""
        if self.groups.names_method(method):
            return True
        return bool(self) and self._rules_concern(self.groups.possible_names(method))

    def _rules_concern(self, names: Sequence[str]) -> bool:
        return bool((self.rules and self.rules.concerns(names)) or (self.limits and self.limits.concerns(names)))

    def hides(self, tool: str) -> bool:
        """True if the tool must not be listed, because a rule or the default denies each of its calls."""
        if self.rules is None:
            return False
        if self.rules.hides(self.certain_names(tool)):
            return True
        if self.rules.default is not Permission.DENY:
            return False
        given = (name for alias in self.groups.aliases(tool) if not alias.automatic for name in alias.names)
        names = (*matchers.allowed_as(self.groups.own_names(tool)), *given)
        by_default = self.rules.hides_by_default(names, self.groups.possible_names(tool))
        return by_default and not self._hook_may_allow(tool)

    def _hook_may_allow(self, tool: str) -> bool:
        """True if some hook may allow calls of the tool that no rule is about."""
        for_session = (
            group.dialect.has_effect(Effect.ALLOWS_FOR_SESSION)
            and any(spec.event in BEFORE_CALL and not spec.only_narrows for spec in group.hooks)
            for group in self.groups.groups
        )
        return any(for_session) or any(
            selected.group.dialect.has_effect(Effect.DECIDES)
            and any(
                selected.may_allow(hook.tool_name, alias) and not (hook.spec.background or hook.spec.only_narrows)
                for hook in selected.hooks
            )
            for alias in self.groups.possible_aliases(tool)
            for selected in self.groups.select(Event.PRE_TOOL_USE, tool, alias)
        )

    def certain_names(self, tool: str) -> tuple[str, ...]:
        """The names that each call of this tool has, whatever its arguments."""
        names = [alias.names for alias in self.groups.aliases(tool)]
        return (*self.groups.own_names(tool), *(names[0] if len(names) == 1 else ()))

    async def allow_tool(self, tool: str, limits: tuple[str, ...] = ()) -> None:
        """Allow this tool for the rest of the session, whatever its arguments; `limits`: only beyond those with these
        keys. Raises StoreUnavailable."""
        await self._approve(Approved(tool, self.managed, limits=limits))

    async def _approve(self, calls: Approved) -> None:
        if self._shared_approvals is not None:
            await self._shared_approvals.allow(calls)
        elif len(self._approved) < _MAX_RULES and calls not in self._approved:
            self._approved.append(calls)

    def similar_calls(self, context: EventContext, request: ApprovalRequest) -> str:
        """The calls like this one, as a permission rule; empty if it cannot be said which these are.

        They are the calls that certainly fall under the rule which requires approval, else those whose command begins
        with the same words. Raises Unreadable, DuplicateKeys for arguments that the alias makes ambiguous.
        """
        calls = self._calls_like(context, request)
        return "" if calls is None else calls.rule or (calls.similar.text if calls.similar else "")

    def _calls_like(self, context: EventContext, request: ApprovalRequest) -> Approved | None:
        if request.limits:  # which calls these are has nothing to do with it
            return None
        if request.rule and matchers.rule(request.rule).specifier:
            covered = _covers(_allow_rule(request.rule), self.groups, context)
            return Approved(context.tool, self.managed, request.rule) if covered else None
        similar = _similar_calls(context)
        return Approved(context.tool, self.managed, similar=similar) if similar is not None else None

    async def allow_similar(self, context: EventContext, request: ApprovalRequest) -> None:
        """Allow the calls that `similar_calls` describes for the rest of the session. Raises StoreUnavailable."""
        if (calls := self._calls_like(context, request)) is not None:
            await self._approve(calls)

    def add_allowed_rules(self, verdict: Verdict) -> Verdict:
        """Add a hook's rules to the session, unless it denies or failed. An invalid rule, or too many, is a failure."""
        if verdict.failure or verdict.permission is Permission.DENY:
            return verdict
        try:
            rules = {text: matchers.allow_rule(text) for text in verdict.allows}
        except ValueError as problem:
            return replace(verdict, failure=verdict.failure or f"gave an invalid permission rule: {problem}")
        if len(self._allowed.keys() | rules.keys()) > _MAX_RULES:
            return replace(verdict, failure=verdict.failure or f"gave more than {_MAX_RULES} permission rules")
        self._allowed.update(rules)
        return verdict


@lru_cache(maxsize=256)  # of what people have approved: a call is compared with all of it
def _allow_rule(text: str) -> Callable[[str, bytes], bool]:
    return matchers.allow_rule(text)


def counted_call(context: EventContext) -> CountedCall:
    """The call as limits tell it from others."""
    subagent = context.agent_state.agent_id if context.agent_state is not None else ""
    return CountedCall(f"{context.session.server}/{context.tool}", context.arguments, subagent)


def _names(groups: HookGroups, context: EventContext) -> tuple[str, ...]:
    """All names of the tool in this call."""
    names = groups.own_names(context.tool)
    return (*names, *context.alias.names) if context.alias is not None else names


def _is_agents_own(context: EventContext) -> bool:
    """True if the call is of a tool that the agent has itself, as its native event says: it has no server."""
    return not context.session.server and not methods.is_method(context.tool)


def under_aliases(context: EventContext) -> list[tuple[str, list[bytes]]]:
    """Each name that an alias gives to the tool, with the arguments under the names of this alias, in all readings."""
    if context.alias is None:
        return []
    aliases = (alias for alias in (context.alias, *context.alias.alternatives) if alias.name)
    return [(alias.name, alias.readings(context.arguments)) for alias in aliases]


def _covers(
    rule: Callable[[str, bytes], bool], groups: HookGroups, context: EventContext, *, recognised: bool = True
) -> bool:
    """True if an allow rule covers the call under one of its tool's names; `recognised`: automatic ones count, too."""
    own = groups.own_names(context.tool)
    if any(rule(name, context.arguments) for name in matchers.allowed_as(own)):
        return True
    if not recognised and context.alias is not None and context.alias.automatic:
        return False
    return any(
        all(rule(name, arguments) for arguments in readings)
        for known, readings in under_aliases(context)
        for name in matchers.allowed_as((known,))
    )


def _similar_calls(context: EventContext) -> SimilarCalls | None:
    """The calls whose command begins with the same words; None if the call has no command that can be read."""
    from ..policy.similar_calls import COMMAND_ARGUMENTS, similar_calls  # only where a person is asked

    aliases = () if context.alias is None else (context.alias, *context.alias.alternatives)
    known = [alias.arguments.get("command", "command") for alias in aliases if alias.name == "Bash"]
    similar = (similar_calls(context.tool, context.arguments, name) for name in (*known, *COMMAND_ARGUMENTS))
    return next((calls for calls in similar if calls is not None), None)


def _refuse_without_store(what: str, problem: StoreUnavailable, proceed: Proceed) -> Refuse:
    feedback = proceed.feedback
    return Refuse(what, str(problem), asked=proceed.asked, cause=RefusalCause.STORE_AWAY, feedback=feedback)


def _limits(settings: Settings, shared: Shared) -> RateLimits | None:
    """The configuration's rate limits; None if it has none."""
    if not settings.limits:
        return None
    from ..policy.rate_limits import RateLimits  # costs 5 ms together with `rules`

    return RateLimits(settings.limits, window_of=shared.window_of)


def _rules(settings: Settings) -> Rules | None:
    """The configuration's rules; None if it has none, and then the module for them is not imported."""
    if not settings.has_rules:
        return None
    from ..policy.rules import Rules  # costs 5 ms

    return Rules.of(settings)
