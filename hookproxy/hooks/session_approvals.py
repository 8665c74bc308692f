"""What people and hooks have allowed in one session, in one layer: it opens what a rule or a hook would ask about.

- A person allows a tool, calls like one, or calls beyond a limit. Where approvals are shared, all processes of the
  session have them; else they are kept here.
- A hook adds permission rules, which only open calls that nobody denies.

Law: what was allowed for one reason opens nothing that is asked about for another one: an approval beyond limits counts
for these limits alone, one of the managed layer for that layer alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..model.decision import ApprovalRequest
from ..model.hooks import EventContext, Permission, Verdict
from ..policy import matchers
from ..policy.shared_state import Approved, SharedApprovals, StoreUnavailable
from .select import HookGroups

if TYPE_CHECKING:
    from ..policy.similar_calls import SimilarCalls

_MAX_RULES: Final = 1024  # permission rules that hooks may add to a session: the table must stay bounded


class SessionApprovals:
    """What is allowed for the rest of a session of one server, by the names that these groups know its tools by."""

    def __init__(self, groups: HookGroups, managed: bool, shared: SharedApprovals | None) -> None:
        self._groups = groups
        self._managed = managed
        self._shared = shared  # the approvals of several processes; None: they are kept here
        self._allowed: dict[str, Callable[[str, bytes], bool]] = {}  # rules that hooks have added
        self._approved: list[Approved] = []  # by a person, and not in `_shared`

    def allow(self, context: EventContext, limits: Sequence[str] = ()) -> bool:
        """True if a person, or a rule that a hook added, has allowed the call for this session.

        `limits`: the keys of those that the call exceeds. Then only a person has, who was asked because of these.
        Raises Unreadable, DuplicateKeys for arguments that the alias makes ambiguous.
        """
        if any(self._includes(approved, context, limits) for approved in self._approved):
            return True
        rules = () if limits else self._allowed.values()
        return any(_covers(rule, self._groups, context, recognised=False) for rule in rules)

    async def allow_elsewhere(self, context: EventContext, limits: Sequence[str] = ()) -> bool:
        """True if a person has allowed the call for this session, wherever it was served then. Otherwise as `allow`.

        Nothing is allowed by a store that cannot be reached.
        """
        if self._shared is None:
            return False
        try:
            approved = await self._shared.approved()
        except StoreUnavailable:
            return False
        return any(self._includes(calls, context, limits) for calls in approved)

    def _includes(self, approved: Approved, context: EventContext, limits: Sequence[str]) -> bool:
        if approved.tool != context.tool or approved.managed is not self._managed:
            return False
        if bool(approved.limits) is not bool(limits) or not set(limits) <= set(approved.limits):
            return False
        if approved.similar is not None:
            return approved.similar.include(context.tool, context.arguments)
        return not approved.rule or _covers(_allow_rule(approved.rule), self._groups, context)

    async def allow_tool(self, tool: str, limits: tuple[str, ...] = ()) -> None:
        """Allow this tool for the rest of the session, whatever its arguments; `limits`: only beyond those with these
        keys. Raises StoreUnavailable."""
        await self._approve(Approved(tool, self._managed, limits=limits))

    async def _approve(self, calls: Approved) -> None:
        if self._shared is not None:
            await self._shared.allow(calls)
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
            covered = _covers(_allow_rule(request.rule), self._groups, context)
            return Approved(context.tool, self._managed, request.rule) if covered else None
        similar = _similar_calls(context)
        return Approved(context.tool, self._managed, similar=similar) if similar is not None else None

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
