"""Policies that differ from the tested one in a single rule, limit, source or sink of data, alias or hook. Pure.

A part is taken out, weakened (a denial becomes a question, a question a permission, a limit one call more) or swapped
(a denial becomes a permission, a permission a denial). Of a list of several (the tools of a matcher, the paths of a
source, the labels of a sink), each one is left out. Where no case notices that, nothing holds the part in its place.

Only the cases that a part has decided can notice its mutants: a rule counts only where it decides (`Permissions` takes
the strictest), and so does a hook without a verdict. So only these are run again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..config.load import Loaded
from ..model.aliases import Alias
from ..model.flow import Sink, Source
from ..model.hooks import HookSpec, Permission, Verdict
from ..model.limits import SECONDS, Limit
from ..model.settings import Settings
from .parts import Part, alias_part, default_part, hook_part, limit_part, sink_part, source_part

_ELSEWHERE: Final = {"deny": ("ask", "allow"), "ask": ("allow", "deny"), "allow": ("ask", "deny")}
"""The lists in which a rule of each list is weakened, and swapped."""

_LISTS_OF_MATCH: Final = ("tools", "methods", "servers", "paths", "hosts", "resources")
_ONE_TOOL: Final = re.compile(r"\w+")

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


def mutants_of(part: Part, all_loaded: Sequence[Loaded]) -> Iterator[Mutant]:
    """All mutants of a part of the policy that is loaded."""
    match part.kind:
        case "hook":
            yield from _of_hook(part, all_loaded)
        case "limit":
            yield from _of_limit(part)
        case "source" | "sink":
            yield from _of_flow(part, all_loaded)
        case "alias":
            yield from _of_alias(part, all_loaded)
        case "default":
            yield from _of_default(part)
        case "deny" | "ask" | "allow":
            yield from _of_rule(part, part.kind)
        case "people":
            pass  # they are changed where they are read: `PolicyUnderTest.of_other_people`


def _of_hook(part: Part, all_loaded: Sequence[Loaded]) -> Iterator[Mutant]:
    yield Mutant(part, "taken out", lambda loaded: _without_hook(loaded, part))
    weakened = "weakened: asks where it denies, allows where it asks"
    yield Mutant(part, weakened, lambda loaded: loaded, partial(_weaker, part=part))
    for name in _tools_of_matcher(part, all_loaded):
        yield Mutant(part, f"without {name} in its matcher", partial(_without_tool, part=part, name=name))


def _of_limit(part: Part) -> Iterator[Mutant]:
    yield Mutant(part, "taken out", lambda loaded: _with_limits(loaded, part, lambda _limit: None))
    yield Mutant(part, "weakened: one call more", lambda loaded: _with_limits(loaded, part, _one_more))
    if f" per {_PERIODS[0]}" not in part.text:
        yield Mutant(part, "weakened: a shorter period", lambda loaded: _with_limits(loaded, part, _shorter))


def _of_flow(part: Part, all_loaded: Sequence[Loaded]) -> Iterator[Mutant]:
    yield Mutant(part, "taken out", lambda loaded: _with_flow(loaded, part, lambda _entry: None))
    if part.kind == "sink":
        yield Mutant(part, "weakened: it only comments", lambda loaded: _with_flow(loaded, part, _commenting))
    yield from _without_one(part, all_loaded)


def _of_alias(part: Part, all_loaded: Sequence[Loaded]) -> Iterator[Mutant]:
    yield Mutant(part, "taken out", lambda loaded: _with_alias(loaded, part, lambda _alias: None))
    for name in _renamed_arguments(part, all_loaded):
        change = partial(_with_alias, part=part, change=partial(_without_argument, name=name))
        yield Mutant(part, f"without its argument {name}", change)


def _of_default(part: Part) -> Iterator[Mutant]:
    defaults: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")
    for other in defaults:
        if other != part.text:
            yield Mutant(part, f"{other} instead", partial(_with_default, part=part, to=other))


def _of_rule(part: Part, kind: Literal["deny", "ask", "allow"]) -> Iterator[Mutant]:
    weaker, opposite = _ELSEWHERE[kind]
    yield Mutant(part, "taken out", lambda loaded: _with_rule(loaded, part, ""))
    word = "weakened" if kind != "allow" else "tightened"
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


def _commenting(entry: Source | Sink) -> Source | Sink:
    return replace(entry, action="comment") if isinstance(entry, Sink) else entry


def _with_flow(loaded: Loaded, part: Part, change: Callable[[Source | Sink], Source | Sink | None]) -> Loaded:
    """With another source or sink in the place of the one that the part is; None: with none."""

    def change_layer(settings: Settings) -> Settings:
        sources = [change(source) if source_part(source) == part else source for source in settings.flow_sources]
        sinks = [change(sink) if sink_part(sink) == part else sink for sink in settings.flow_sinks]
        return replace(
            settings,
            flow_sources=tuple(source for source in sources if isinstance(source, Source)),
            flow_sinks=tuple(sink for sink in sinks if isinstance(sink, Sink)),
        )

    return _in_each_layer(loaded, change_layer)


def _without_one(part: Part, all_loaded: Sequence[Loaded]) -> Iterator[Mutant]:
    """A mutant of a source or sink for each value of a list with several."""
    layers = [layer for loaded in all_loaded for layer in loaded.settings.with_rules]
    entries: list[Source | Sink] = []
    for layer in layers:
        entries += [source for source in layer.flow_sources if source_part(source) == part]
        entries += [sink for sink in layer.flow_sinks if sink_part(sink) == part]
    entry = entries[0]
    for key in _LISTS_OF_MATCH:
        values = getattr(entry.match, key)
        for value in values if len(values) > 1 else ():
            change = partial(_with_flow, part=part, change=partial(_without_in_match, key=key, value=value))
            yield Mutant(part, f"without {value} in its {key}", change)
    for label in entry.labels if len(entry.labels) > 1 else ():
        change = partial(_with_flow, part=part, change=partial(_without_label, label=label))
        yield Mutant(part, f"without the label {label}", change)


def _without_in_match(entry: Source | Sink, key: str, value: str) -> Source | Sink:
    rest = tuple(other for other in getattr(entry.match, key) if other != value)
    return replace(entry, match=replace(entry.match, **{key: rest}))


def _without_label(entry: Source | Sink, label: str) -> Source | Sink:
    return replace(entry, labels=tuple(other for other in entry.labels if other != label))


def _with_alias(loaded: Loaded, part: Part, change: Callable[[Alias], Alias | None]) -> Loaded:
    changed = (change(alias) if alias_part(alias, loaded.path) == part else alias for alias in loaded.settings.aliases)
    aliases = tuple(alias for alias in changed if alias is not None)
    return replace(loaded, settings=replace(loaded.settings, aliases=aliases))


def _renamed_arguments(part: Part, all_loaded: Sequence[Loaded]) -> list[str]:
    """The hooks' names of the arguments of an alias."""
    of_part = (
        alias for loaded in all_loaded for alias in loaded.settings.aliases if alias_part(alias, loaded.path) == part
    )
    return list(next(of_part).arguments)


def _without_argument(alias: Alias, name: str) -> Alias:
    return replace(alias, arguments={key: value for key, value in alias.arguments.items() if key != name})


def _tools_of_matcher(part: Part, all_loaded: Sequence[Loaded]) -> Sequence[str]:
    """The tools of a matcher that only lists several; of another one, what it would match else is not known."""
    specs = [spec for loaded in all_loaded for group in loaded.groups for spec in group.hooks]
    names = next(spec for spec in specs if hook_part(spec) == part).matcher.split("|")
    return names if len(names) > 1 and all(map(_ONE_TOOL.fullmatch, names)) else ()


def _without_tool(loaded: Loaded, part: Part, name: str) -> Loaded:
    """With a hook that is not about this tool, under whichever of the tool's names it is listed."""

    def change(spec: HookSpec) -> HookSpec:
        def matches(tool: str) -> bool:
            return tool != name and not tool.endswith(f"__{name}") and spec.matches(tool)

        return replace(spec, matches=matches) if hook_part(spec) == part else spec

    groups = (replace(group, hooks=tuple(map(change, group.hooks))) for group in loaded.groups)
    return replace(loaded, groups=tuple(groups))


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
