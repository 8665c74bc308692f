"""Selects the hooks for an event by matcher, and the name under which they see its tool; cached for each tool."""

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

_MAX_CACHED_TOOLS: Final = 4096  # the agent chooses the names, so the cache must be bounded

TOOL_EVENTS: Final = frozenset(
    {
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.PERMISSION_DENIED,
    }
)
"""The events whose matchers are tried on the tool's name; those of other events are tried on the trigger."""

_ELICITATION_EVENTS: Final = frozenset({Event.ELICITATION, Event.ELICITATION_RESULT})
"""The events whose matchers are tried on the server's name."""

_ELICITATION_RELATED: Final = frozenset(
    {Event.ELICITATION, Event.ELICITATION_RESULT, Event.NOTIFICATION, Event.USER_INPUT}
)
"""The events that an elicitation of the server causes."""


class SelectedHooks(Struct, frozen=True):
    """The hooks of one group that match an event, and the name under which they see its tool."""

    group: Group
    hooks: tuple[HookSpec, ...]
    tool_name: str
    conditional: bool = False
    """Some of them have an `if`."""
    other_names: tuple[str, ...] = ()
    """If the name is an alias: the tool's other names, on which an `if` is tried as well."""

    def with_tool_name(self, context: EventContext) -> EventContext:
        """The context with the tool name that this group sees."""
        return context if context.tool_name == self.tool_name else replace(context, tool_name=self.tool_name)

    @property
    def may_answer(self) -> bool:
        """Its hooks may answer an elicitation; otherwise they only observe it."""
        return self.group.dialect.answers_elicitations and not all(spec.background for spec in self.hooks)

    def applicable(self, context: EventContext) -> Sequence[HookSpec]:
        """The hooks without an `if`, and those whose `if` holds for this event."""
        if not self.conditional:
            return self.hooks
        names = (context.tool_name, *self.other_names)
        return [
            one
            for one in self.hooks
            if not one.only_if or any(_permission_rule(one.only_if)(name, context.arguments) for name in names)
        ]


class HookGroups:
    """All hook groups of one run, for the server of this name; its tools may have aliases."""

    def __init__(self, groups: Sequence[Group], server: str, aliases: Iterable[Alias] = ()) -> None:
        self._groups = groups
        self.aliases = {one.tool: one for one in aliases}
        self._server = re.sub(r"[^A-Za-z0-9_-]", "_", server)  # as in Claude Code's names of MCP tools
        self._events = frozenset(spec.event for group in groups for spec in group.hooks)
        self.has_mcp_tool_hooks = any(spec.type == "mcp_tool" for group in groups for spec in group.hooks)
        """Some hook is of type `mcp_tool`, a tool of the server."""
        self._has_every_call_hooks = any(spec.every_call for group in groups for spec in group.hooks)
        self._selected: dict[tuple[Event, str], tuple[SelectedHooks, ...]] = {}
        self._outcome_observed: dict[str, bool] = {}  # whether any hook needs the outcome of a tool's calls
        self._concerned: dict[str, bool] = {}

    @property
    def groups(self) -> Sequence[Group]:
        """All groups, in the order in which they run."""
        return self._groups

    def __bool__(self) -> bool:
        """Some hook is configured."""
        return bool(self._events)

    def sources_run_by(self, agent: str) -> list[str]:
        """The hook files that an agent of this name and version runs itself, so that their hooks run twice."""
        return [
            group.source
            for group in self._groups
            if any(agent == name or agent.startswith(f"{name} ") for name in group.dialect.agents)
        ]

    def has_hooks_for(self, event: Event) -> bool:
        """True if some hook is configured for this event."""
        return event in self._events

    def has_mcp_tool_hooks_for(self, event: Event) -> bool:
        """True if some hook for this event is a tool of the server."""
        return any(spec.event is event and spec.type == "mcp_tool" for group in self._groups for spec in group.hooks)

    def unreachable_server_notes(self, server: str) -> Iterator[str]:
        """A sentence for each hook that is a tool of a server other than the one that hookproxy runs."""
        for spec in (spec for group in self._groups for spec in group.hooks):
            if spec.server and spec.server != server:
                reason = f"the server of this session is {server!r} (--name)"
                yield f"{spec.source} calls a tool of the server {spec.server!r}, which cannot be called: {reason}"

    @property
    def observes_elicitations(self) -> bool:
        """True if some hook observes or answers the server's elicitations."""
        return not self._events.isdisjoint(_ELICITATION_RELATED)

    @property
    def answers_elicitations(self) -> bool:
        """True if some hook may answer the server's elicitations, or change the person's answers."""
        return any(
            spec.event in _ELICITATION_EVENTS and not spec.background and group.dialect.answers_elicitations
            for group in self._groups
            for spec in group.hooks
        )

    def concerns(self, tool: str) -> bool:
        """True if any hook runs on calls of this tool, or on what may follow from them."""
        cached = self._concerned.get(tool)
        if cached is None:
            cached = self._is_concerned(tool)
            _cache(self._concerned, tool, cached)
        return cached

    def _is_concerned(self, tool: str) -> bool:
        return (
            self.has_hooks_for(Event.ERROR_OCCURRED)
            or self.has_hooks_for(Event.STOP)
            or self.observes_elicitations
            or bool(self.select(Event.PRE_TOOL_USE, tool))
            or self.has_post_hooks_for(tool)
            or (
                self._has_every_call_hooks
                and any(one.every_call for each in self._permission_request_hooks(tool) for one in each.hooks)
            )
        )

    def has_post_hooks_for(self, tool: str) -> bool:
        """True if some PostToolUse or PostToolUseFailure hook matches this tool."""
        return bool(self.select(Event.POST_TOOL_USE, tool) or self.select(Event.POST_TOOL_USE_FAILURE, tool))

    def observes_outcome(self, tool: str) -> bool:
        """True if some hook needs the outcome of calls of this tool."""
        cached = self._outcome_observed.get(tool)
        if cached is None:
            cached = self.has_post_hooks_for(tool) or self.observes_elicitations
            cached = cached or self.has_hooks_for(Event.ERROR_OCCURRED) or self.has_hooks_for(Event.STOP)
            _cache(self._outcome_observed, tool, cached)
        return cached

    def first_tool_name(self, tool: str) -> str:
        """The name under which the first group with PreToolUse hooks sees the tool."""
        selected = self.select(Event.PRE_TOOL_USE, tool)
        return selected[0].tool_name if selected else self._alias_name(tool) or tool

    def own_names(self, tool: str) -> tuple[str, str]:
        """The tool's names without its alias."""
        return (tool, f"mcp__{self._server}__{tool}")

    def names(self, tool: str) -> tuple[str, ...]:
        """All names of a tool: its own names, and its alias."""
        alias = self._alias_name(tool)
        return (*self.own_names(tool), alias) if alias else self.own_names(tool)

    def _alias_name(self, tool: str) -> str:
        """The tool's alias; empty if it has none."""
        return self.aliases[tool].name if tool in self.aliases else ""

    def alias(self, tool: str, arguments: bytes) -> Alias | None:
        """The alias that holds for a call of this tool; None if it has none. Raises as `Alias.for_call`."""
        found = self.aliases.get(tool)
        return None if found is None else found.for_call(arguments)

    def select(self, event: Event, tool: str) -> tuple[SelectedHooks, ...]:
        """The groups with hooks for this event and tool."""
        cached = self._selected.get((event, tool))
        if cached is None:
            selected = self._matching(event, lambda group: self._match_names(group, tool))
            if self._alias_name(tool):
                selected = (replace(one, other_names=self._match_names(one.group, tool)[1:]) for one in selected)
            cached = tuple(selected)
            _cache(self._selected, (event, tool), cached)
        return cached

    def select_for(self, context: EventContext) -> tuple[SelectedHooks, ...]:
        """The groups with hooks for an event of any kind."""
        if context.event in TOOL_EVENTS:
            return self.select(context.event, context.tool)
        selected = self._matching(context.event, lambda group: self.match_values(group, context))
        return tuple(replace(one, tool_name=self._tool_name_for(one.group, context.tool)) for one in selected)

    def match_values(self, group: Group, context: EventContext) -> tuple[str, ...]:
        """The values on which the matchers of a group's hooks are tried for this event."""
        if context.event in TOOL_EVENTS:
            return self._match_names(group, context.tool)
        return (context.session.server if context.event in _ELICITATION_EVENTS else context.trigger,)

    def _tool_name_for(self, group: Group, tool: str) -> str:
        return self._match_names(group, tool)[0] if tool else ""

    def _permission_request_hooks(self, tool: str) -> tuple[SelectedHooks, ...]:
        return self.select(Event.PERMISSION_REQUEST, tool)

    def _match_names(self, group: Group, tool: str) -> tuple[str, ...]:
        """The names on which a group's matchers are tried; the first is the name that its hooks see."""
        bare, full_name, *alias = self.names(tool)
        if group.match_all_names:
            return (*alias, bare, full_name)
        # the name that the group's hooks usually see as well, so that an alias never disables a guard
        return (*alias, full_name if group.tool_names is ToolNames.MCP else bare)

    def _matching(self, event: Event, match_names: Callable[[Group], tuple[str, ...]]) -> Iterator[SelectedHooks]:
        """Each group's matching hooks; a hook that is configured twice in one dialect is yielded once."""
        seen: set[tuple[object, ...]] = set()
        for group in self._groups:
            names = match_names(group)
            hooks: list[HookSpec] = []
            for spec in group.hooks:
                identity = (group.managed, group.dialect.name, group.on_failure, names, *spec.identity)
                if spec.event is event and identity not in seen and any(map(spec.matches, names)):
                    seen.add(identity)
                    hooks.append(spec)
            if hooks:
                yield SelectedHooks(group, tuple(hooks), names[0], any(spec.only_if for spec in hooks))


def _cache(table: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(table) >= _MAX_CACHED_TOOLS:
        table.clear()
    table[key] = value


@cache
def _permission_rule(text: str) -> Callable[[str, bytes], bool]:
    return matchers.permission_rule(text)
