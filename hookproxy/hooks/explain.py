"""What a policy decides about the tools of a server, and why: without a call, from the rules, limits and hooks alone.

Pure. A rule about every call of a tool decides; a rule about some arguments may decide, and so may a hook. Which layers
there are, and which names a tool has, is taken from the code that judges calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.decision import ApprovalRequest
from ..model.hooks import EventContext, HookSpec, Permission, Session, Tool
from ..model.limits import Limit
from ..model.settings import OnAsk, Settings
from ..policy import decide, matchers
from ..policy.call_texts import SHELL
from .coverage import HookCoverage, coverage
from .familiar_tools import FamiliarTools
from .permissions import Permissions, layers
from .select import TOOL_EVENTS, HookGroups

ANY_OTHER: Final = "·"
"""Stands for a tool that no rule names: no glob of letters matches it, and nothing recognises it."""


class Answer(StrEnum):
    """What becomes of calls. Later ones are stricter."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_AFTER_ASKING: Final = {OnAsk.DENY: Answer.DENY, OnAsk.ALLOW: Answer.ALLOW}
"""What becomes of a call that needs approval where nobody is asked."""


class RuleAbout(Struct, frozen=True):
    """A permission rule that names the tool."""

    decision: Answer
    """What it says."""
    text: str
    """As written."""
    place: str
    """File, line and key; empty if not known."""
    always: bool
    """It is about every call of the tool; otherwise about some arguments, or about calls that get a familiar name."""
    managed: bool
    layer: int
    """The number of its layer, in the order in which these judge."""
    is_default: bool = False
    """It is the default for what no rule is about; `text` has it as written."""


class HookAbout(Struct, frozen=True):
    """A hook that may run for calls of the tool."""

    spec: HookSpec
    group: Group
    names: tuple[str, ...]
    """Under which names of the tool."""


class Explanation(Struct, frozen=True):
    """What is decided about one tool."""

    tool: str
    decision: Answer
    """About calls that no rule about arguments and no hook decides otherwise."""
    rules: tuple[RuleAbout, ...] = ()
    """In the order in which they count."""
    hooks: tuple[HookAbout, ...] = ()
    """In the order in which they run; those of events without a tool are left out."""
    limits: tuple[Limit, ...] = ()
    known_as: tuple[str, ...] = ()
    """Further names by which hooks and rules know it."""
    is_hidden: bool = False
    """It is not listed for the agent."""
    defaults: tuple[RuleAbout, ...] = ()
    """Of each layer what holds if no rule is about a call, the strictest first; none of a layer that allows it."""

    def without(self, rule: RuleAbout) -> Explanation:
        """The same as if this rule were removed."""
        rest = [other for other in self.rules if other.text != rule.text and not other.is_default]
        return replace(self, rules=tuple(_with_defaults(rest, self.defaults)))

    @property
    def by(self) -> RuleAbout | None:
        """The rule that decides about every call; None: there is none."""
        return _first_about_all(self.rules)

    @property
    def otherwise(self) -> tuple[RuleAbout, ...]:
        """The rules about arguments that decide about some calls otherwise than the one that decides about all: those
        that are stricter; and those of the default's own layer, because they come before it.
        """
        order, by = list(Answer), self.by
        least = order.index(by.decision if by else Answer.ALLOW)
        before = by is not None and by.is_default
        return tuple(
            rule
            for rule in self.rules
            if not rule.always
            and (order.index(rule.decision) > least or (before and by is not None and rule.layer == by.layer))
        )

    @property
    def deciding_hooks(self) -> tuple[HookAbout, ...]:
        """The hooks that may refuse a call."""
        return tuple(hook for hook in self.hooks if hook.spec.event in decide.PRE_EVENTS and not hook.spec.background)


def explain(
    groups: Sequence[Group],
    settings: Settings,
    server: str,
    tools: Sequence[Tool],
    command: Sequence[str] = (),
    server_info: str = "",
) -> list[Explanation]:
    """What is decided about each of these tools; the arguments are those of `coverage`."""
    familiar = FamiliarTools(command, server=server)
    familiar.note_tools(tools, server_info)
    whole = HookGroups(groups, server, settings.aliases, familiar if settings.auto_aliases else None)
    of_layers = layers(whole, settings, familiar)
    seen = coverage(groups, settings, server, tools, command, server_info).hooks
    return [_explanation(tool.name, of_layers, settings, seen) for tool in tools]


def _explanation(
    tool: str, of_layers: Sequence[Permissions], settings: Settings, seen: Sequence[HookCoverage]
) -> Explanation:
    numbered = tuple(enumerate(of_layers))
    defaults = [default for number, layer in numbered if (default := _default_for(tool, layer, number)) is not None]
    rules = _with_defaults([rule for number, layer in numbered for rule in _rules_about(tool, layer, number)], defaults)
    known_as = {name: None for layer in of_layers for name in layer.groups.possible_names(tool)}
    own = of_layers[0].groups.own_names(tool)
    hooks = [
        HookAbout(of_hook.spec, of_hook.group, names)
        for of_hook in seen
        if (names := tuple(one.name for one in of_hook.seen if one.tool == tool))
    ]
    limits = [limit for layer in of_layers for limit in _limits_about(tool, layer)]
    return Explanation(
        tool,
        _answer(_first_about_all(rules), settings),
        tuple(rules),
        tuple(hooks),
        tuple(dict.fromkeys(limits)),
        tuple(name for name in known_as if name not in own and not name.startswith("mcp__")),
        any(layer.hides(tool) for layer in of_layers),
        tuple(sorted(defaults, key=_strictest_first)),
    )


def _with_defaults(rules: Sequence[RuleAbout], defaults: Sequence[RuleAbout]) -> list[RuleAbout]:
    """The rules in the order in which they count, with the default of each layer that has none about every call."""
    decided = {rule.layer for rule in rules if rule.always}
    reached = [default for default in defaults if default.layer not in decided]
    return sorted([*rules, *reached], key=_strictest_first)  # it is stable: as in their files


def _strictest_first(rule: RuleAbout) -> int:
    return -list(Answer).index(rule.decision)


def _first_about_all(rules: Sequence[RuleAbout]) -> RuleAbout | None:
    return next((rule for rule in rules if rule.always), None)


def _answer(by: RuleAbout | None, settings: Settings) -> Answer:
    if by is None or by.decision is not Answer.ASK:
        return by.decision if by else Answer.ALLOW
    of_layer = decide.settings_for(settings, ApprovalRequest("", "", managed=by.managed))
    return _AFTER_ASKING.get(of_layer.on_ask, Answer.ASK)


def _rules_about(tool: str, layer: Permissions, number: int) -> Iterator[RuleAbout]:
    """The rules of a layer that name a tool, in their order."""
    if layer.rules is None:
        return
    certain = layer.certain_names(tool)
    names = layer.groups.possible_names(tool)
    about = layer.rules.about(names)
    of_files = layer.command_files if SHELL in names else None
    by_name = {id(rule) for _, rule, _ in about.deny_or_ask}
    by_files = [rule for rule in of_files.rules.deny_or_ask if id(rule[1]) not in by_name] if of_files else []
    for permission, rule, _ in (*about.deny_or_ask, *by_files):
        always = not rule.parts.specifier and any(map(rule.parts.may_name_tool, certain))
        decision = Answer.DENY if permission is Permission.DENY else Answer.ASK
        yield RuleAbout(decision, rule.parts.text, rule.at or rule.place, always, layer.managed, number)
    given = {name for alias in layer.groups.aliases(tool) if not alias.automatic for name in alias.names}
    for allow, _ in layer.rules.about((*layer.groups.own_names(tool), *given)).allow:
        always = not matchers.rule(allow.text).specifier
        yield RuleAbout(Answer.ALLOW, allow.text, allow.at or allow.place, always, layer.managed, number)


def _default_for(tool: str, layer: Permissions, number: int) -> RuleAbout | None:
    """What a layer says of calls that none of its rules is about; None: they are allowed."""
    if layer.rules is None or layer.rules.default_for((tool,)) is Permission.ALLOW:
        return None
    default = layer.rules.by_default()
    decision = Answer[default.permission.name]
    return RuleAbout(decision, default.rule, default.at, True, layer.managed, number, is_default=True)


def _limits_about(tool: str, layer: Permissions) -> Sequence[Limit]:
    return layer.limits.table.applicable(layer.groups.possible_names(tool)) if layer.limits is not None else ()


def hooks_of_call(
    groups: Sequence[Group], settings: Settings, session: Session, tool: Tool, arguments: bytes
) -> frozenset[int]:
    """The identities of the hooks whose conditions hold for a call with these arguments, normalised JSON.

    Raises Unreadable, DuplicateKeys for arguments that an alias makes ambiguous.
    """
    familiar = FamiliarTools(session.command, server=session.server)
    familiar.note_tools([tool], "")
    whole = HookGroups(groups, session.server, settings.aliases, familiar if settings.auto_aliases else None)
    found = set[int]()
    for layer in layers(whole, settings, familiar):
        alias = layer.groups.alias(tool.name, arguments)
        for event in TOOL_EVENTS:
            context = EventContext(event, session, tool=tool.name, arguments=arguments, alias=alias)
            for selected in layer.groups.select(event, tool.name, alias):
                found.update(id(hook.spec) for hook in selected.applicable(context))
    return frozenset(found)
