"""Applies permission rules and rate limits: the configuration's, and what hooks and people add to a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..dialects.dialect import Effect, Group
from ..model.decision import ApprovalRequest, Decision, Proceed, RefusalCause, Refuse, first_request
from ..model.hooks import Event, EventContext, Permission, Tool
from ..model.settings import Settings
from ..policy import matchers, methods
from ..policy.call_texts import SHELL, CallArguments
from ..policy.decide import BEFORE_CALL
from ..policy.globs import OF_RESOURCE, WorkBudget
from ..policy.shared_state import NOTHING_SHARED, Shared
from . import argument_types, bounded_cache
from .familiar_tools import FamiliarTools
from .select import HookGroups
from .session_approvals import SessionApprovals, under_aliases

if TYPE_CHECKING:
    from ..policy.command_files import CommandFiles
    from ..policy.rules import RuleDecision, Rules, ToolRules
    from .call_limits import CallLimits


_MAX_RULES: Final = 1024  # permission rules that hooks may add to a session: the table must stay bounded


def layers(
    whole: HookGroups, settings: Settings, familiar: FamiliarTools, shared: Shared = NOTHING_SHARED
) -> tuple[Permissions, ...]:
    """The layers that evaluate a call one after another: the user's, those of packs, and the managed one, on the final
    arguments.

    `whole` has all groups of the run.
    """

    def groups_of(layer: Settings, own: Sequence[Group]) -> HookGroups:
        known = familiar if layer.auto_aliases else None
        return HookGroups(own, whole.server, layer.aliases, known, whole.named)

    def of_pack(rules: Settings) -> Permissions:
        rules = replace(rules, hide_denied=settings.hide_denied)
        return Permissions(groups_of(settings, ()), rules, of_pack=True, shared=shared)

    packs = tuple(map(of_pack, settings.pack_rules))
    managed_groups = [group for group in whole.groups if group.managed]
    if settings.managed is None and not managed_groups:
        return (Permissions(whole, settings, shared=shared), *packs)
    managed_settings = settings.managed or Settings()
    own_groups = [group for group in whole.groups if not group.managed]
    return (
        Permissions(groups_of(settings, own_groups), settings, shared=shared),
        *packs,
        Permissions(groups_of(managed_settings, managed_groups), managed_settings, managed=True, shared=shared),
    )


class Permissions:
    """The permission rules and limits of one layer, with its hooks, for one server: the user's, the managed one, or the
    rules of one pack.

    Law: a layer of a pack only narrows. What earlier layers ask about stays asked, whatever its rules allow; and only
    its own rules open its default.
    """

    def __init__(
        self,
        groups: HookGroups,
        settings: Settings,
        managed: bool = False,
        of_pack: bool = False,
        shared: Shared = NOTHING_SHARED,
    ) -> None:
        self.rules = _rules(settings)
        self.groups = groups
        self.managed = managed
        self.of_pack = of_pack
        self._checks_types = settings.check_types
        self.where = "the managed configuration" if managed else settings.called
        self.limits = _limits(settings, groups, self.where, shared)
        """The limits of calls; None: none is configured."""
        self.approvals = SessionApprovals(groups, managed, shared.approvals)
        self._rules_about: dict[tuple[str, ...], ToolRules] = {}  # by the names of a tool
        self._concerned: dict[tuple[str, ...], bool] = {}  # likewise: whether a rule or a limit is about it
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
            proceed = replace(proceed, approval_request=first_request(proceed.approval_request, request))
        elif ruling is not None:
            asked = proceed.asked or proceed.approval_request is not None
            proceed = replace(proceed, approval_request=None, asked=asked)
        return proceed if self.limits is None else self.limits.applied(proceed, context)

    def _ruling_or_default(self, proceed: Proceed, context: EventContext, allowed: bool) -> RuleDecision | None:
        """The ruling on a call; the default if no rule is about it, and no hook allows it or wants to ask."""
        assert self.rules is not None, "only called with rules"
        ruling, default = self._ruling(context), self.rules.default
        if default is Permission.ALLOW:  # true of most configurations
            return ruling
        if ruling is not None and not (ruling.only_narrows and ruling.permission < default):
            return ruling
        if self.rules.default_for((context.tool,)) is Permission.ALLOW:
            return ruling
        if not self.of_pack and (allowed or _is_asked(proceed) or self.approvals.allow(context)):
            return ruling
        # a rule that only may apply is no better than one that does not: such a call is not covered by an allow rule
        if ruling is not None and self._is_covered(context):
            return ruling
        return self.rules.by_default()

    def _is_covered(self, context: EventContext) -> bool:
        """Whether an allow rule covers a call, whatever other rules say of it. Raises as `_ruling`."""
        own_tool = self._is_agents_own(context)
        of_tool = self._rules_for(self.groups.own_names(context.tool))
        if of_tool.allowed(context.arguments, own_tool=own_tool) is not None:
            return True
        return any(
            all(self._rules_for((name,)).allowed(arguments, own_tool=own_tool) is not None for arguments in readings)
            for name, readings in under_aliases(context)
            if not _is_recognised(context, name)
        )

    def _ruling(self, context: EventContext) -> RuleDecision | None:
        """The strictest ruling on a call; for a tool with an alias, the rules are tried on the alias as well.

        A rule allows nothing by a name that was only recognised. Raises Unreadable, DuplicateKeys for arguments that
        the alias makes ambiguous.
        """
        # all readings of a URI together have one budget
        budget = WorkBudget(OF_RESOURCE) if methods.has_uri(context.tool) else None
        own_tool = self._is_agents_own(context)
        own = self._judge(self.groups.own_names(context.tool), context.arguments, budget, own_tool=own_tool)
        if context.alias is None:
            return own
        # a rule must know of a familiar name whether it stands for a method
        of_method = (context.tool,) if methods.is_method(context.tool) else ()
        by_alias, of_shell = [own], list[CallArguments]()
        for name, readings in under_aliases(context):
            calls = [CallArguments(arguments, budget) for arguments in readings]
            of_shell += calls if name == SHELL else ()
            ruling = self._judge_readings((*of_method, name), readings, calls, own_tool=own_tool)
            if ruling is not None and not (ruling.permission is Permission.ALLOW and _is_recognised(context, name)):
                by_alias.append(ruling)
        if of_shell and self.command_files is not None:
            by_alias.append(self.command_files.judge_calls(of_shell))
        return max(
            (ruling for ruling in by_alias if ruling is not None),
            key=lambda ruling: ruling.permission,
            default=None,
        )

    def _is_agents_own(self, context: EventContext) -> bool:
        """True if the call is of a tool that the agent has itself, as its native event says, and hookproxy knows it."""
        return self.groups.server is None and context.alias is not None and not context.alias.automatic

    @cached_property
    def command_files(self) -> CommandFiles | None:
        """The rules about files that commands read and write; None: there are none."""
        if self.rules is None:
            return None
        from ..policy.command_files import CommandFiles

        return CommandFiles(self.rules) or None

    def _judge_readings(
        self, names: tuple[str, ...], readings: Sequence[bytes], calls: Sequence[CallArguments], *, own_tool: bool
    ) -> RuleDecision | None:
        """The strictest ruling on the readings of a call; one of them alone does not allow it."""
        about = self._rules_for(names)
        rulings = [
            about.judge(arguments, own_tool=own_tool, call=call) if about else None
            for arguments, call in zip(readings, calls, strict=True)
        ]
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
        assert self.rules is not None, "only called with rules"
        about = self._rules_about.get(names)
        if about is None:
            about = self.rules.about(names)
            bounded_cache.keep(self._rules_about, names, about)
        return about

    def wrong_arguments(self, context: EventContext, listed: Tool | None) -> Refuse | None:
        """The refusal of a call that its hooks and rules cannot judge, because of the types of its arguments."""
        if context.alias is None and not self._checks_types:  # true of most calls
            return None
        wrong = argument_types.refusal(context.alias, listed, context.arguments, check_all=self._checks_types)
        return wrong if wrong is not None and self.concerns(context.tool) else None

    def measures_results(self, tool: str) -> bool:
        """True if a limit must know how calls of this tool end."""
        return self.limits is not None and self.limits.table.measures_results(self.groups.possible_names(tool))

    def concerns(self, tool: str) -> bool:
        """True if any hook, rule or limit is about calls of this tool."""
        return self.groups.concerns(tool) or (bool(self) and self.rules_concern(self.groups.possible_names(tool)))

    def concerns_method(self, method: str) -> bool:
        """As `concerns` for a method other than `tools/call`: only if something names it."""
        if self.groups.names_method(method):
            return True
        return bool(self) and self.rules_concern(self.groups.possible_names(method))

    def rules_concern(self, names: tuple[str, ...]) -> bool:
        """True if a rule or a limit is about calls of a tool that may have these names."""
        known = self._concerned.get(names)
        if known is None:
            by_rule = self.rules is not None and self.rules.concerns(names)
            by_limit = self.limits is not None and self.limits.table.concerns(names)
            known = by_rule or by_limit or (SHELL in names and self.command_files is not None)
            bounded_cache.keep(self._concerned, names, known)
        return known

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


def _is_asked(proceed: Proceed) -> bool:
    """True if a hook wants a person to be asked that may open the default."""
    return proceed.approval_request is not None and not proceed.approval_request.only_narrows


def _is_recognised(context: EventContext, name: str) -> bool:
    """True if a tool has this familiar name only because it was recognised: then it allows nothing."""
    assert context.alias, "only called for a tool with an alias"
    aliases = (context.alias, context.alias.named(name))
    return any(alias.automatic or alias.guessed for alias in aliases)


def _limits(settings: Settings, groups: HookGroups, where: str, shared: Shared) -> CallLimits | None:
    """The configuration's limits of calls; None if it has none."""
    if not settings.limits:
        return None
    from .call_limits import CallLimits  # costs 5 ms together with `rules`

    return CallLimits(settings, groups, where, shared)


def _rules(settings: Settings) -> Rules | None:
    """The configuration's rules; None if it has none, and then the module for them is not imported."""
    if not settings.has_own_rules:
        return None
    from ..policy.rules import Rules  # costs 5 ms

    return Rules.of(settings)
