"""Policies that differ from the tested one in a single rule, limit, sink of data or hook. Pure.

A part is taken out, weakened (a denial becomes a question, a question a permission, a limit one call more) or swapped
(a denial becomes a permission, a permission a denial). Where no case notices that, nothing holds the part in its place.

Only the cases that a part has decided can notice its mutants: a rule counts only where it decides (`Permissions` takes
the strictest), and so does a hook without a verdict. So only these are run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..config.load import Loaded
from ..model.flow import Sink
from ..model.hooks import HookSpec, Permission, Verdict
from ..model.limits import SECONDS, Limit
from ..model.settings import Settings
from .parts import Part, default_part, hook_part, limit_part, sink_part

_ELSEWHERE: Final = {"deny": ("ask", "allow"), "ask": ("allow", "deny"), "allow": ("ask", "deny")}
"""The lists in which a rule of each list is weakened, and swapped."""

_WEAKER: Final = {Permission.DENY: Permission.ASK, Permission.ASK: Permission.ALLOW}


_PERIODS: Final = tuple(sorted(SECONDS, key=lambda per: SECONDS[per]))
"""From the shortest to the longest."""


class Mutant(Struct, frozen=True):
    """One change of a policy."""

    part: Part
    change: str
    """In words: `taken out`, `asks instead`."""
    apply: Callable[[Loaded], Loaded]
    change_verdict: Callable[[HookSpec, Verdict], Verdict] | None = None
    """What counts in place of hooks' verdicts; None: these."""


def mutants_of(part: Part) -> Iterator[Mutant]:
    """All mutants of a part."""
    if part.kind == "hook":
        yield Mutant(part, "taken out", lambda loaded: _without_hook(loaded, part))
        weakened = "weakened: asks where it denies, allows where it asks"
        yield Mutant(part, weakened, lambda loaded: loaded, partial(_weaker, part=part))
    elif part.kind == "limit":
        yield Mutant(part, "taken out", lambda loaded: _with_limits(loaded, part, lambda _limit: None))
        yield Mutant(part, "weakened: one call more", lambda loaded: _with_limits(loaded, part, _one_more))
        if f" per {_PERIODS[0]}" not in part.text:
            yield Mutant(part, "weakened: a shorter period", lambda loaded: _with_limits(loaded, part, _shorter))
    elif part.kind == "sink":
        yield Mutant(part, "taken out", lambda loaded: _with_sinks(loaded, part, lambda _sink: None))
        yield Mutant(part, "weakened: it only comments", lambda loaded: _with_sinks(loaded, part, _commenting))
    elif part.kind == "default":
        defaults: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")
        for other in defaults:
            if other != part.text:
                yield Mutant(part, f"{other} instead", partial(_with_default, part=part, to=other))
    else:
        weaker, opposite = _ELSEWHERE[part.kind]
        yield Mutant(part, "taken out", lambda loaded: _with_rule(loaded, part, ""))
        word = "weakened" if part.kind != "allow" else "tightened"
        yield Mutant(part, f"{word}: an {weaker} rule", lambda loaded: _with_rule(loaded, part, weaker))
        article = "an" if opposite == "allow" else "a"
        yield Mutant(part, f"swapped: {article} {opposite} rule", lambda loaded: _with_rule(loaded, part, opposite))


def _in_each_layer(loaded: Loaded, change: Callable[[Settings], Settings]) -> Loaded:
    settings = change(loaded.settings)
    packs, managed = tuple(map(change, settings.pack_rules)), settings.managed and change(settings.managed)
    return replace(loaded, settings=replace(settings, pack_rules=packs, managed=managed))


def _with_rule(loaded: Loaded, part: Part, to: str) -> Loaded:
    """With the rule in another list; empty: in none."""

    def change(settings: Settings) -> Settings:
        text, kind = part.text, part.kind
        rules = {name: tuple(getattr(settings, name)) for name in ("deny", "ask", "allow")}
        if text in rules[kind] and settings.rule_places.get(f"{kind} {text}", "") == part.place:
            rules[kind] = tuple(rule for rule in rules[kind] if rule != text)
            if to:
                rules[to] = (*rules[to], text)
            return replace(settings, deny=rules["deny"], ask=rules["ask"], allow=rules["allow"])
        agent_rules = []
        for rule in settings.agent_rules:
            if (rule.decision, rule.text, rule.place) != (kind, text, part.place):
                agent_rules.append(rule)
            elif to == "deny" or to == "ask" or to == "allow":
                agent_rules.append(replace(rule, decision=to))
        return replace(settings, agent_rules=tuple(agent_rules))

    return _in_each_layer(loaded, change)


def _with_default(loaded: Loaded, part: Part, to: Literal["allow", "ask", "deny"]) -> Loaded:
    def change(settings: Settings) -> Settings:
        return replace(settings, default_permission=to) if default_part(settings) == part else settings

    return _in_each_layer(loaded, change)


def _one_more(limit: Limit) -> Limit:
    return replace(limit, most=limit.most + 1)


def _shorter(limit: Limit) -> Limit:
    """With the next shorter period, or half of the window, so that more calls are allowed."""
    if limit.window:
        return replace(limit, window=limit.window / 2)
    return replace(limit, per=_PERIODS[max(_PERIODS.index(limit.per) - 1, 0)])


def _with_limits(loaded: Loaded, part: Part, change: Callable[[Limit], Limit | None]) -> Loaded:
    def change_layer(settings: Settings) -> Settings:
        changed = (change(limit) if limit_part(limit) == part else limit for limit in settings.limits)
        return replace(settings, limits=tuple(limit for limit in changed if limit is not None))

    return _in_each_layer(loaded, change_layer)


def _commenting(sink: Sink) -> Sink:
    return replace(sink, action="comment")


def _with_sinks(loaded: Loaded, part: Part, change: Callable[[Sink], Sink | None]) -> Loaded:
    def change_layer(settings: Settings) -> Settings:
        changed = (change(sink) if sink_part(sink) == part else sink for sink in settings.flow_sinks)
        return replace(settings, flow_sinks=tuple(sink for sink in changed if sink is not None))

    return _in_each_layer(loaded, change_layer)


def _without_hook(loaded: Loaded, part: Part) -> Loaded:
    groups = (
        replace(group, hooks=tuple(spec for spec in group.hooks if hook_part(spec) != part)) for group in loaded.groups
    )
    return replace(loaded, groups=tuple(group for group in groups if group.hooks))


def _weaker(spec: HookSpec, verdict: Verdict, part: Part) -> Verdict:
    """A weaker verdict of the hook that the part is; others stay."""
    if verdict.permission not in _WEAKER or verdict.failure or hook_part(spec) != part:
        return verdict
    return replace(verdict, permission=_WEAKER[verdict.permission])


def can_be_weaker(part: Part, permissions: frozenset[Permission]) -> bool:
    """Whether a weaker one would decide anything otherwise; `permissions` are those that a hook has given."""
    return part.kind != "hook" or not permissions.isdisjoint(_WEAKER)
