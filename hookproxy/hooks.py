"""Chooses the hooks that match an occasion and runs them in their dialect's order; groups one after another."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread

from . import legible, matching, policy, schema
from .dialects import foreign_variables
from .dialects.base import Group
from .model import (
    Comments,
    Decision,
    Ended,
    Event,
    HookResult,
    HookSpec,
    Occasion,
    Order,
    Proceed,
    Refuse,
    Settings,
    Statement,
    Tool,
    ToolNames,
    Verdict,
)
from .runners import RUNNERS

_AT_ONCE: Final = 128  # hooks running at a time: more only wait for each other
_DESCRIPTORS: Final = 8  # that starting a hook may take at a time: three pipes, its exit, and one for the folder
_OTHERS: Final = 64  # descriptors that are left to all else
_NAMES_REMEMBERED: Final = 4096  # the agent chooses names: a table of them must not grow for ever


@dataclass(frozen=True, slots=True)
class Hearing:
    """What came of asking the PreToolUse hooks of all groups."""

    decision: Decision
    arguments: bytes
    """The arguments that the decision is about, as hooks read them."""
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The hooks of one group that match a tool, and the name under which they see it."""

    group: Group
    hooks: tuple[HookSpec, ...]
    tool_name: str

    def shown(self, occasion: Occasion) -> Occasion:
        """The occasion as this group sees it."""
        return occasion if occasion.tool_name == self.tool_name else replace(occasion, tool_name=self.tool_name)

    def applying(self, occasion: Occasion) -> list[HookSpec]:
        """The hooks whose `if` does not leave this occasion out."""
        return [
            one for one in self.hooks if not one.only_if or _rule(one.only_if)(occasion.tool_name, occasion.arguments)
        ]


class Hooks:
    """All hook groups of one run, for the server of this name."""

    def __init__(self, groups: Sequence[Group], settings: Settings, server: str, environ: Mapping[str, str]) -> None:
        self._groups = groups
        self._settings = settings
        self._server = re.sub(r"[^A-Za-z0-9_-]", "_", server)  # as Claude Code composes a tool's name
        self._chosen: dict[tuple[Event, str], tuple[_Chosen, ...]] = {}
        self._places = anyio.Semaphore(_places(), fast_acquire=True)
        self._environments = {group.dialect.name: _environment(group, environ) for group in groups}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._report: Callable[[Sequence[Statement]], None] = lambda _statements: None
        self._tell: Callable[[], None] = lambda: None
        self.aside = 0
        """Hooks that run and nobody waits for."""

    def run_aside_in(
        self, tasks: anyio.abc.TaskGroup, report: Callable[[Sequence[Statement]], None], tell: Callable[[], None]
    ) -> None:
        """Hooks that nobody waits for run in `tasks` and end with it.

        `report` gets what they said; then `tell` is called, for whoever waits for the last of them.
        """
        self._tell = tell
        self._tasks, self._report = tasks, report

    def double(self, agent: str) -> list[str]:
        """The files whose hooks an agent of this name runs by itself, so that they would run twice."""
        return [group.source for group in self._groups if agent.split(" ")[0] in group.dialect.agents]

    @property
    def any(self) -> bool:
        """Something is configured that concerns calls: lines from the agent must be read."""
        return self._settings.audit_all_calls or any(group.hooks for group in self._groups)

    def concerns(self, tool: str) -> bool:
        """True if any hook is to see calls of this tool, before or after, or if all calls are recorded."""
        return self._settings.audit_all_calls or any(
            self._choose(event, tool)
            for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
        )

    def hears(self, event: Event) -> bool:
        """True if some hook is configured for this event at all."""
        return any(spec.event is event for group in self._groups for spec in group.hooks)

    def comments_on(self, tool: str) -> bool:
        """True if some hook is to see what comes of calls of this tool."""
        return any(self._choose(event, tool) for event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE))

    def first_name(self, tool: str) -> str:
        """The name under which the first group that is asked before a call sees its tool."""
        chosen = self._choose(Event.PRE_TOOL_USE, tool)
        return chosen[0].tool_name if chosen else tool

    async def before(self, occasion: Occasion, listed: Tool | None) -> Hearing:
        """Ask the PreToolUse hooks: each group sees the arguments as rewritten so far, and a denial ends it.

        `listed` is what is known of the tool: a rewrite that does not fit its schema is trouble.
        On cancel the hooks that run are ended with their whole process groups.
        """
        statements: list[Statement] = []
        feedback: tuple[str, ...] = ()
        rewritten: bytes | None = None
        asked = False
        for chosen in self._choose(occasion.event, occasion.tool):
            occasion = chosen.shown(occasion)
            said = await self._ask(chosen.group, chosen.applying(occasion), occasion)
            said = [await _checked(one, listed) for one in said]
            statements += said
            decision = policy.decide(said, self._settings, chosen.group.on_trouble)
            feedback += decision.feedback
            asked = asked or decision.asked
            if isinstance(decision, Refuse):
                return Hearing(replace(decision, feedback=feedback), occasion.arguments, tuple(statements))
            if decision.arguments is not None:
                rewritten = decision.arguments
                occasion = replace(occasion, arguments=legible.normalise(rewritten))
        return Hearing(Proceed(rewritten, feedback, asked), occasion.arguments, tuple(statements))

    async def after(self, occasion: Occasion) -> tuple[Comments, tuple[Statement, ...]]:
        """Ask the PostToolUse or PostToolUseFailure hooks of all groups."""
        statements: list[Statement] = []
        comments = Comments()
        for chosen in self._choose(occasion.event, occasion.tool):
            occasion = chosen.shown(occasion)
            said = await self._ask(chosen.group, chosen.applying(occasion), occasion)
            statements += said
            comments = policy.merge_comments(comments, policy.comments(said, self._settings, chosen.group.on_trouble))
        return comments, tuple(statements)

    async def of_session(self, occasion: Occasion) -> tuple[Statement, ...]:
        """Ask the SessionStart or SessionEnd hooks, whose matcher is tried on what occasioned the event."""
        statements: list[Statement] = []
        for chosen in self._matching(occasion.event, lambda _group: (occasion.occasioned_by,)):
            statements += await self._ask(chosen.group, chosen.hooks, occasion)
        return tuple(statements)

    def _choose(self, event: Event, tool: str) -> tuple[_Chosen, ...]:
        """The groups with hooks for this event and tool; decided once per tool name."""
        known = self._chosen.get((event, tool))
        if known is None:
            if len(self._chosen) >= _NAMES_REMEMBERED:
                self._chosen.clear()
            known = self._chosen[event, tool] = tuple(self._matching(event, lambda group: self._names(group, tool)))
        return known

    def _names(self, group: Group, tool: str) -> tuple[str, ...]:
        """What a group's matchers are tried on; the first is the name that its hooks see."""
        composed = f"mcp__{self._server}__{tool}"
        if group.match_all_names:
            return (tool, composed)
        return (composed,) if group.tool_names is ToolNames.MCP else (tool,)

    def _matching(self, event: Event, names: Callable[[Group], tuple[str, ...]]) -> Iterator[_Chosen]:
        """Each group's hooks that match, but a hook that stands twice in one dialect only once."""
        seen: set[tuple[object, ...]] = set()
        for group in self._groups:
            tried = names(group)
            hooks: list[HookSpec] = []
            for spec in group.hooks:
                identity = (group.dialect.name, *spec.identity)
                if spec.event is event and identity not in seen and any(map(spec.matches, tried)):
                    seen.add(identity)
                    hooks.append(spec)
            if hooks:
                yield _Chosen(group, tuple(hooks), tried[0])

    async def _ask(self, group: Group, hooks: Iterable[HookSpec], occasion: Occasion) -> list[Statement]:
        """Run hooks in their dialect's order; parallel ones stand in the order in which they finished."""
        awaited: list[HookSpec] = []
        for spec in hooks:
            if spec.background and self._tasks is not None:
                self._tasks.start_soon(self._run_aside, group, spec, occasion)
            else:
                awaited.append(spec)
        said: list[Statement] = []
        if group.dialect.order is Order.SERIAL or len(awaited) < 2:
            for spec in awaited:
                said.append(await self._run(group, spec, occasion))  # noqa: PERF401  # one after another
            return said

        async def run(spec: HookSpec) -> None:
            said.append(await self._run(group, spec, occasion))

        async with anyio.create_task_group() as tasks:
            for spec in awaited:
                tasks.start_soon(run, spec)
        return said

    async def _run_aside(self, group: Group, spec: HookSpec, occasion: Occasion) -> None:
        self.aside += 1
        try:
            self._report([await self._run(group, spec, occasion)])
        except OSError as problem:  # too few descriptors or processes: it decides nothing, and is told
            trouble = Verdict(trouble=f"could not be run: {problem.strerror}")
            self._report([Statement(spec, HookResult(Ended.NOT_STARTED), trouble)])
        finally:
            self.aside -= 1
            self._tell()

    async def _run(self, group: Group, spec: HookSpec, occasion: Occasion) -> Statement:
        document = group.dialect.write(spec, occasion)
        environment = self._environments[group.dialect.name]
        async with self._places:
            result = await RUNNERS[spec.type](spec, document, environment)
        return Statement(spec, result, group.dialect.read(spec, result))


async def _checked(one: Statement, listed: Tool | None) -> Statement:
    """The statement, but a rewrite that does not fit the tool's schema is trouble, and is not applied."""
    if one.verdict.arguments is None or listed is None or not listed.input_schema:
        return one
    # in a thread: the validator takes 70 ms to import, and a schema may be written to take long
    problem = await anyio.to_thread.run_sync(schema.misfit, listed.input_schema, one.verdict.arguments)
    if not problem:
        return one
    trouble = f"rewrote the arguments so that they do not fit the tool: {problem}"
    return replace(one, verdict=replace(one.verdict, arguments=None, trouble=trouble))


@cache
def _rule(text: str) -> Callable[[str, bytes], bool]:
    return matching.permission_rule(text)


def _places() -> int:
    """How many hooks may run at a time, so that none lacks a descriptor: a guard that cannot start guards nothing."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _AT_ONCE if limit == resource.RLIM_INFINITY else max(min(_AT_ONCE, (limit - _OTHERS) // _DESCRIPTORS), 1)


def _environment(group: Group, environ: Mapping[str, str]) -> dict[str, str]:
    """What a group's hooks inherit: our environment without what tells of other hook systems."""
    foreign = foreign_variables(group.dialect)
    return {name: value for name, value in environ.items() if name not in foreign}
