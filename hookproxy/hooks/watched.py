"""Says what of a configuration is only watched, in sentences for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.counts import counted
from ..model.settings import Settings
from ..trust.sources import Watched


def summary(watched: Watched) -> str:
    """What is only watched, in one sentence: the line at start."""
    what = amounts(watched)
    if watched.replaces:
        files = ", ".join(watched.files)
        return f"{files} ({what}): only watched, in place of the policy in force; nothing is changed by it"
    return f'{what}: only watched (mode = "monitor"); nothing is changed by it, and the audit has what would be'


def amounts(watched: Watched) -> str:
    """How much there is: `2 hooks, 3 rules and 1 limit`."""
    settings = watched.settings
    layers = (settings, *((settings.managed,) if settings.managed is not None else ()))
    numbers = (
        (sum(len(group.hooks) for group in watched.groups), "hook"),
        (sum(layer.rule_count + (layer.default_permission != "allow") for layer in layers), "rule"),
        (sum(len(layer.limits) for layer in layers), "limit"),
        (sum(len(layer.flow_sinks) for layer in layers), "sink"),
    )
    words = [counted(number, what) for number, what in numbers if number] or ["no hook, no rule and no limit"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def parts(watched: Watched) -> Iterator[str]:
    """Each hook, rule and limit that is only watched, with its place, in a few words."""
    for group in watched.groups:
        for spec in group.hooks:
            managed = " (managed)" if group.managed else ""
            yield f"{spec.event} hook {spec.label}{managed}, {spec.source}"
    settings = watched.settings
    yield from _rules(settings, "")
    if settings.managed is not None:
        yield from _rules(settings.managed, " (managed)")


def _rules(settings: Settings, managed: str) -> Iterator[str]:
    for decision in ("deny", "ask", "allow"):
        for rule in getattr(settings, decision):
            place = settings.rule_places.get(f"{decision} {rule}", "")
            yield f"{decision} {rule}{managed}" + (f", {place}" if place else "")
    if settings.default_permission != "allow":
        place = settings.rule_places.get("default", "")
        yield f"default = {settings.default_permission}{managed}" + (f", {place}" if place else "")
    for of_agent in settings.agent_rules:
        yield f"{of_agent.decision} {of_agent.text}{managed}, {of_agent.place}"
    for limit in settings.limits:
        yield f"no more than {limit}{managed}, {limit.place or limit.by}"
    for sink in settings.flow_sinks:
        yield f"sink of {', '.join(sink.labels)}{managed}, {sink.place}"
