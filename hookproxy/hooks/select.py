"""Which hooks of which groups are for an occasion, and under which name they see its tool; decided once per tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.aliases import Alias
from ..model.hooks import Event, EventContext, HookSpec
from ..model.settings import ToolNames
from ..policy import matchers

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_NAMES_REMEMBERED: Final = 4096  # the agent chooses names: a table of them must not grow for ever

OF_TOOLS: Final = frozenset(
    {
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.PERMISSION_DENIED,
    }
)
"""The events whose matchers are tried on the tool's name; those of the others on what occasioned them."""

_ELICITATION_EVENTS: Final = frozenset({Event.ELICITATION, Event.ELICITATION_RESULT})
"""The events whose matchers are tried on the server's name."""

_OF_ELICITATIONS: Final = frozenset({Event.ELICITATION, Event.ELICITATION_RESULT, Event.NOTIFICATION, Event.USER_INPUT})
"""The events that the server's questions to the person occasion."""


class SelectedHooks(Struct, frozen=True):
    """The hooks of one group that match an occasion, and the name under which they see its tool."""

    group: Group
    hooks: tuple[HookSpec, ...]
    tool_name: str
    conditional: bool = False
    """Some of them have an `if`."""
    also: tuple[str, ...] = ()
    """Where the name is an alias: the other names by which an `if` may mean the tool."""

    def shown(self, context: EventContext) -> EventContext:
        """The occasion as this group sees it."""
        return context if context.tool_name == self.tool_name else replace(context, tool_name=self.tool_name)

    @property
    def answers(self) -> bool:
        """Its hooks may answer a question of the server; else they are only told."""
        return self.group.dialect.answers_elicitations and not all(spec.background for spec in self.hooks)

    def applying(self, context: EventContext) -> Sequence[HookSpec]:
        """The hooks whose `if` does not leave this occasion out."""
        if not self.conditional:
            return self.hooks
        names = (context.tool_name, *self.also)
        return [
            one
            for one in self.hooks
            if not one.only_if or any(_rule(one.only_if)(name, context.arguments) for name in names)
        ]


class HookGroups:
    """All hook groups of one run, for the server of this name, some of whose tools they know by another."""

    def __init__(self, groups: Sequence[Group], server: str, aliases: Iterable[Alias] = ()) -> None:
        self._groups = groups
        self.aliases = {one.tool: one for one in aliases}
        self._server = re.sub(r"[^A-Za-z0-9_-]", "_", server)  # as Claude Code composes a tool's name
        self._events = frozenset(spec.event for group in groups for spec in group.hooks)
        self.asks_servers = any(spec.type == "mcp_tool" for group in groups for spec in group.hooks)
        """Some hook is a tool of the server."""
        self._asks_each = any(spec.every_call for group in groups for spec in group.hooks)
        self._chosen: dict[tuple[Event, str], tuple[SelectedHooks, ...]] = {}
        self._outcomes: dict[str, bool] = {}  # whether any hook hears what comes of a tool's calls
        self._concerned: dict[str, bool] = {}

    def __bool__(self) -> bool:
        """Some hook is configured."""
        return bool(self._events)

    def double(self, agent: str) -> list[str]:
        """The files whose hooks an agent of this name and version runs by itself, so that they would run twice."""
        return [
            group.source
            for group in self._groups
            if any(agent == name or agent.startswith(f"{name} ") for name in group.dialect.agents)
        ]

    def has_hooks_for(self, event: Event) -> bool:
        """True if some hook is configured for this event at all."""
        return event in self._events

    def asks_server(self, event: Event) -> bool:
        """True if some hook for this event is a tool of the server."""
        return any(spec.event is event and spec.type == "mcp_tool" for group in self._groups for spec in group.hooks)

    def out_of_reach(self, server: str) -> Iterator[str]:
        """A sentence for each hook that is a tool of another server than that behind us."""
        for spec in (spec for group in self._groups for spec in group.hooks):
            if spec.server and spec.server != server:
                reach = f"the only server in reach is {server!r} (--name)"
                yield f"{spec.source} asks the server {spec.server!r}, which cannot be asked: {reach}"

    @property
    def observes_elicitations(self) -> bool:
        """True if some hook is to know of the server's questions to the person."""
        return not self._events.isdisjoint(_OF_ELICITATIONS)

    @property
    def answers_elicitations(self) -> bool:
        """True if some hook may answer the server's questions to the person, or change an answer."""
        return any(
            spec.event in _ELICITATION_EVENTS and not spec.background and group.dialect.answers_elicitations
            for group in self._groups
            for spec in group.hooks
        )

    def concerns(self, tool: str) -> bool:
        """True if any hook is to see calls of this tool, or what may come of them."""
        known = self._concerned.get(tool)
        if known is None:
            known = self._is_concerned(tool)
            _remember(self._concerned, tool, known)
        return known

    def _is_concerned(self, tool: str) -> bool:
        return (
            self.has_hooks_for(Event.ERROR_OCCURRED)
            or self.has_hooks_for(Event.STOP)
            or self.observes_elicitations
            or bool(self.select(Event.PRE_TOOL_USE, tool))
            or self.comments_on(tool)
            or (self._asks_each and any(one.every_call for each in self._requested(tool) for one in each.hooks))
        )

    def comments_on(self, tool: str) -> bool:
        """True if some hook is to see what comes of calls of this tool."""
        return bool(self.select(Event.POST_TOOL_USE, tool) or self.select(Event.POST_TOOL_USE_FAILURE, tool))

    def observes_outcome(self, tool: str) -> bool:
        """True if some hook is to know what comes of calls of this tool, whatever it is."""
        known = self._outcomes.get(tool)
        if known is None:
            known = self.comments_on(tool) or self.observes_elicitations
            known = known or self.has_hooks_for(Event.ERROR_OCCURRED) or self.has_hooks_for(Event.STOP)
            _remember(self._outcomes, tool, known)
        return known

    def first_name(self, tool: str) -> str:
        """The name under which the first group that is asked before a call sees its tool."""
        selected = self.select(Event.PRE_TOOL_USE, tool)
        return selected[0].tool_name if selected else self._familiar(tool) or tool

    def own_names(self, tool: str) -> tuple[str, str]:
        """The names that a tool has from its server."""
        return (tool, f"mcp__{self._server}__{tool}")

    def names(self, tool: str) -> tuple[str, ...]:
        """All names of a tool: its own, and its alias."""
        alias = self._familiar(tool)
        return (*self.own_names(tool), alias) if alias else self.own_names(tool)

    def _familiar(self, tool: str) -> str:
        """The tool's alias; empty: it has none."""
        return self.aliases[tool].name if tool in self.aliases else ""

    def alias(self, tool: str, arguments: bytes) -> Alias | None:
        """The names that hold for a call of this tool; None: the server's. Raises as `Alias.for_call`."""
        found = self.aliases.get(tool)
        return None if found is None else found.for_call(arguments)

    def select(self, event: Event, tool: str) -> tuple[SelectedHooks, ...]:
        """The groups with hooks for this event and tool."""
        known = self._chosen.get((event, tool))
        if known is None:
            selected = self._matching(event, lambda group: self._tried(group, tool))
            if self._familiar(tool):
                selected = (replace(one, also=self._tried(one.group, tool)[1:]) for one in selected)
            known = tuple(selected)
            _remember(self._chosen, (event, tool), known)
        return known

    def at(self, context: EventContext) -> tuple[SelectedHooks, ...]:
        """The groups with hooks for an occasion of any kind."""
        if context.event in OF_TOOLS:
            return self.select(context.event, context.tool)
        selected = self._matching(context.event, lambda group: self.tried_on(group, context))
        return tuple(replace(one, tool_name=self._seen(one.group, context.tool)) for one in selected)

    def tried_on(self, group: Group, context: EventContext) -> tuple[str, ...]:
        """What the matchers of a group's hooks for this occasion are tried on."""
        if context.event in OF_TOOLS:
            return self._tried(group, context.tool)
        return (context.session.server if context.event in _ELICITATION_EVENTS else context.trigger,)

    def _seen(self, group: Group, tool: str) -> str:
        return self._tried(group, tool)[0] if tool else ""

    def _requested(self, tool: str) -> tuple[SelectedHooks, ...]:
        return self.select(Event.PERMISSION_REQUEST, tool)

    def _tried(self, group: Group, tool: str) -> tuple[str, ...]:
        """What a group's matchers are tried on; the first is the name that its hooks see."""
        bare, composed, *alias = self.names(tool)
        if group.match_all_names:
            return (*alias, bare, composed)
        # the group's own name as well: that somebody gives a tool another must take no guard away
        return (*alias, composed if group.tool_names is ToolNames.MCP else bare)

    def _matching(self, event: Event, tried: Callable[[Group], tuple[str, ...]]) -> Iterator[SelectedHooks]:
        """Each group's hooks that match, but a hook that stands twice in one dialect only once."""
        seen: set[tuple[object, ...]] = set()
        for group in self._groups:
            names = tried(group)
            hooks: list[HookSpec] = []
            for spec in group.hooks:
                identity = (group.managed, group.dialect.name, group.on_failure, names, *spec.identity)
                if spec.event is event and identity not in seen and any(map(spec.matches, names)):
                    seen.add(identity)
                    hooks.append(spec)
            if hooks:
                yield SelectedHooks(group, tuple(hooks), names[0], any(spec.only_if for spec in hooks))


def _remember(table: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(table) >= _NAMES_REMEMBERED:
        table.clear()
    table[key] = value


@cache
def _rule(text: str) -> Callable[[str, bytes], bool]:
    return matchers.permission_rule(text)
