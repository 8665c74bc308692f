"""The parts of a policy that decide, each under a key of its own: rules, limits, sources and sinks of data, hooks, and
the aliases by which rules and hooks know tools. Pure.

What a case shows of them is which of them decided it: the others could be left out, and it would pass all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ..config.load import Loaded
from ..model.aliases import Alias
from ..model.flow import Sink, Source
from ..model.hooks import NO_VERDICT, HookSpec, Verdict
from ..model.limits import Limit
from ..model.settings import AgentRule, Settings
from ..trial.run import TrialResult

if TYPE_CHECKING:
    from ..policy.rules import RuleDecision

Kind = Literal["deny", "ask", "allow", "default", "limit", "source", "sink", "alias", "people", "hook"]


class Part(Struct, frozen=True):
    """A rule, a limit, a source or sink of data, an alias, a list of people, or a hook."""

    kind: Kind
    text: str
    """The rule as written; of a limit its tools; of a source, a sink or a list of people its key; of an alias the tool;
    of a hook its name, or what runs."""
    place: str
    """File, line and key, for people; of a hook its source."""
    event: str = ""
    """Of a hook."""
    labels: tuple[str, ...] = ()
    """Of a source."""

    @property
    def words(self) -> str:
        """What it is, for people."""
        if self.kind == "hook":
            return f"the {self.event} hook {self.text}"
        return _WORDS.get(self.kind, f"{self.kind} ") + self.text


_WORDS: Final = {
    "limit": "the limit on ",
    "source": "the source ",
    "sink": "the sink ",
    "alias": "the alias of ",
    "people": "",
}


def parts_of(all_loaded: Iterable[Loaded]) -> list[Part]:
    """All parts of a policy that decide, in its order: each once."""
    return list(dict.fromkeys(part for loaded in all_loaded for part in _parts_of(loaded)))


def _parts_of(loaded: Loaded) -> Iterator[Part]:
    for settings in loaded.settings.with_rules:
        yield from _rules(settings)
        yield from map(limit_part, settings.limits)
        yield from map(source_part, settings.flow_sources)
        yield from map(sink_part, settings.flow_sinks)
    for alias in loaded.settings.aliases:
        if not alias.preset and not alias.automatic:
            yield alias_part(alias, loaded.path)
    for group in loaded.groups:
        yield from map(hook_part, group.hooks)


def _rules(settings: Settings) -> Iterator[Part]:
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("deny", settings.deny),
        ("ask", settings.ask),
        ("allow", settings.allow),
    )
    for kind, texts in kinds:
        for text in texts:
            yield Part(kind, text, settings.rule_places.get(f"{kind} {text}", ""))
    yield from map(agent_rule_part, settings.agent_rules)
    if settings.default_permission != "allow":
        yield default_part(settings)


def default_part(settings: Settings) -> Part:
    """The part that the default is for what no rule is about."""
    return Part("default", settings.default_permission, settings.rule_places.get("default", ""))


def agent_rule_part(rule: AgentRule) -> Part:
    """The part that a rule of an agent's settings file is."""
    return Part(rule.decision, rule.text, rule.place)


def limit_part(limit: Limit) -> Part:
    """The part that a limit is."""
    return Part("limit", limit.summary, limit.place or limit.by)


def source_part(source: Source) -> Part:
    """The part that a source of data is."""
    return Part("source", source.key, source.place, labels=source.labels)


def alias_part(alias: Alias, path: str) -> Part:
    """The part that an alias of the file is."""
    return Part("alias", alias.tool, f"{path}: tools.{alias.tool}")


def sink_part(sink: Sink) -> Part:
    """The part that a sink of data is."""
    return Part("sink", sink.key, sink.place)


def hook_part(spec: HookSpec) -> Part:
    """The part that a hook is."""
    return Part("hook", spec.label, spec.source, spec.event.value)


class Deciding(Struct, frozen=True):
    """Which parts decided a call, and which hooks ran for it."""

    decided: frozenset[Part]
    ran: frozenset[Part]


def deciding(trial: TrialResult, parts: Iterable[Part]) -> Deciding:
    """Which of these parts decided in a trial, and which hooks ran."""
    known = list(parts)
    decided: set[Part] = set()
    for ruling in trial.observation.rulings:
        decided |= {part for part in known if _is_rule(part, ruling)}
    record = trial.record
    for exceeded in () if record is None else record.exceeds:
        decided |= {part for part in known if part.kind == "limit" and exceeded.rpartition(": ")[0] == part.place}
    if record is not None and record.cause == "limit":
        decided |= {part for part in known if part.kind == "limit" and part.place in (record.place, record.by)}
    if record is not None:
        sinks = {chain.sink for chain in record.chains}
        decided |= {part for part in known if part.kind == "sink" and part.text in sinks}
        decided |= {part for part in known if part.kind == "source" and not set(part.labels).isdisjoint(record.labels)}
        decided |= {part for part in known if part.kind == "alias" and part.text == record.tool}
    ran: set[Part] = set()
    for run in trial.observation.runs:
        part = hook_part(run.spec)
        ran.add(part)
        if run.hook_run is not None and _is_verdict(run.hook_run.verdict):
            decided.add(part)
    return Deciding(frozenset(decided), frozenset(ran))


_RULES: Final = ("deny", "ask", "allow", "default")


def _is_rule(part: Part, ruling: RuleDecision) -> bool:
    if (part.kind == "default") is not ruling.is_default or part.kind not in _RULES:
        return False
    if part.kind != "default" and part.text != ruling.rule:
        return False
    return part.place == (ruling.at or ruling.place or part.place)


def _is_verdict(verdict: Verdict) -> bool:
    return verdict is not NO_VERDICT and verdict != NO_VERDICT
