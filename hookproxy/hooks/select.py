"""Selects the hooks for an event by matcher, and the name under which they see its tool; cached for each tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Group, claude_tool_name
from ..model.aliases import Alias, ToolSpellings, spelled, with_command_line
from ..model.hooks import Event, EventContext, HookSpec
from ..model.settings import SeenNames, ServerNamed, ToolNames
from ..policy import matchers, methods
from ..policy.decide import BEFORE_CALL
from . import bounded_cache
from .familiar_tools import FamiliarTools

TOOL_EVENTS: Final = frozenset(
    {
        Event.PRE_TOOL_USE,
        Event.PRE_MCP_TOOL_CALL,
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


_SERVER_WORD: Final = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
"""What may be a server's name in a matcher: between two underscores or other signs."""


class MatchedHook(Struct, frozen=True):
    """A hook that matches an event, and the name under which it sees the event's tool."""

    spec: HookSpec
    tool_name: str
    sees_alias: bool = False
    """It sees the tool and its arguments under the names of the context's alias, else under the server's own names."""
    tool_spellings: ToolSpellings = {}
    """How its system spells the names of the alias."""
    one_of_several: bool = False
    """It runs once more under another name of the tool."""
    if_it_differs: bool = False
    """It runs only for calls whose arguments differ under this alias: else it would see the same twice."""
    own_name: str = ""
    """As `EventContext.own_tool_name`."""
    reads_path: bool = False
    """It sees the path in a URI, which may have others, and may refuse the request, so it runs once for each of them;
    or it has a condition, so it runs once if that holds for one of them."""
    path: str = ""
    """The path that it sees; empty: the likeliest one."""

    def context(self, context: EventContext) -> EventContext:
        """The event as the hook sees it.

        Raises Unreadable, DuplicateKeys for arguments that the alias makes ambiguous.
        """
        if self.sees_alias and context.alias is not None:
            alias = _as_spelled(context.alias, self.tool_spellings)
            alias = alias.named(self.tool_name).for_call(context.arguments)
            if self.path:
                alias = replace(alias, paths=(self.path,))
            arguments = alias.for_hooks(context.arguments)
            return replace(
                context, tool_name=self.tool_name, alias=alias, arguments=arguments, own_tool_name=self.own_name
            )
        if context.alias is None and context.tool_name == self.tool_name:  # true of most events
            return context
        return replace(context, tool_name=self.tool_name, alias=None)

    def in_all_readings(self, context: EventContext) -> list[MatchedHook]:
        """The hook, once for each path that the URI may mean, if it sees one. Raises Unreadable, DuplicateKeys."""
        if not self.reads_path or context.alias is None:
            return [self]
        from ..model import resource_paths  # only for requests about resources

        alias = _as_spelled(context.alias, self.tool_spellings).named(self.tool_name)
        paths = alias.for_call(context.arguments).paths
        first, *others = (resource_paths.readings(paths) if decides_call(self.spec) else paths) or ("",)
        return [self, *(replace(self, path=path) for path in others if path != first)]


class SelectedHooks(Struct, frozen=True):
    """The hooks of one group that match an event."""

    group: Group
    hooks: tuple[MatchedHook, ...]
    conditional: bool = False
    """Some of them have an `if` or another condition on the arguments, see them only if they differ, or see one of the
    paths that a URI may mean."""
    names: tuple[str, ...] = ()
    """The tool's own names that the group's matchers are tried on."""

    @property
    def may_answer(self) -> bool:
        """Its hooks may answer an elicitation; otherwise they only observe it."""
        return self.group.dialect.answers_elicitations and not all(hook.spec.background for hook in self.hooks)

    @property
    def selected_by_stage(self) -> bool:
        """Its hooks have conditions, and an earlier stage may rewrite what the conditions of a later one judge."""
        return self.conditional and any(hook.spec.stage for hook in self.hooks)

    def may_allow(self, name: str, alias: Alias | None) -> bool:
        """Whether a hook that knows the tool by this name may answer for the person, or before the default.

        Not if the name was only recognised.
        """
        return alias is None or not alias.automatic or name in self.names

    def applicable(self, context: EventContext) -> Sequence[MatchedHook]:
        """The hooks without a condition, and those whose condition holds for this event, in each reading of a URI.

        Raises Unreadable, DuplicateKeys as `MatchedHook.context`.
        """
        if not self.conditional:
            return self.hooks
        hooks: list[MatchedHook] = []
        for matched in self.hooks:
            readings = matched.in_all_readings(context)
            running = (hook for reading in readings if (hook := self._if_it_runs(reading, context)) is not None)
            fitting = [*(running if decides_call(matched.spec) else islice(running, 1))]
            hooks += fitting if len(fitting) < 2 else [replace(hook, one_of_several=True) for hook in fitting]
        return hooks

    def _if_it_runs(self, matched: MatchedHook, context: EventContext) -> MatchedHook | None:
        hook = self._if_applicable(matched, context) if _has_condition(matched.spec) else matched
        if hook is None or (hook.if_it_differs and hook.context(context).arguments == context.arguments):
            return None
        return hook

    def names_in_rules(self, hook: MatchedHook) -> tuple[str, ...]:
        """The names that the hook's `if` may name: the one that it sees, and the own ones unless it runs under them."""
        if not hook.sees_alias:
            return self.names
        return (hook.tool_name,) if hook.one_of_several else (hook.tool_name, *self.names)

    def _if_applicable(self, hook: MatchedHook, context: EventContext) -> MatchedHook | None:
        """The hook as its condition holds: an `if` under the names that it sees, else under the tool's other names."""
        if hook.spec.accepts is not None and not hook.spec.accepts(hook.context(context).arguments):
            return None
        if not hook.spec.only_if:
            return hook
        rule = _permission_rule(hook.spec.only_if)
        alias = context.alias
        seen = hook.context(context)
        if any(rule(name, seen.arguments) for name in self.names_in_rules(hook)):
            return hook
        if alias is None or hook.sees_alias or hook.one_of_several:
            return None
        spelled_alias = _as_spelled(alias, hook.tool_spellings)
        for name in filter(hook.spec.matches, spelled_alias.names):
            familiar = replace(hook, tool_name=name, sees_alias=True, reads_path=bool(spelled_alias.named(name).uri))
            for reading in familiar.in_all_readings(context):
                if rule(name, reading.context(context).arguments):
                    return reading
        return None


class HookGroups:
    """All hook groups of one run, for the server of this name; its tools may have aliases.

    None: the tools are the agent's own. Empty: they are of servers whose names are not known.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        server: str | None,
        aliases: Iterable[Alias] = (),
        familiar: FamiliarTools | None = None,
        named: ServerNamed = ServerNamed.FOR_CERTAIN,
    ) -> None:
        """`aliases` are configured. `familiar` has those of all other tools; None: they have none.

        `named` is how certain the server's name is; if that is empty, it is in the names of tools at best.
        """
        self._groups = groups
        self._aliases = {alias.tool: with_command_line(alias) for alias in aliases}
        self._by_loose_name = {_loose(alias.tool): alias for alias in self._aliases.values() if alias.name}
        self._familiar = familiar
        self.server: Final = server
        self.named: Final = ServerNamed.IN_TOOL_NAME if server == "" and named is ServerNamed.FOR_CERTAIN else named
        self._of_agent: dict[str, dict[str, Alias]] = {}
        """The aliases of the agent's own tools whose calls were reported, by tool and by name."""
        spellings = {group.dialect.name: group.dialect.tool_spellings for group in groups}
        self._spellings = [spelling for spelling in spellings.values() if spelling]
        self._events = frozenset(spec.event for group in groups for spec in group.hooks)
        self.has_mcp_tool_hooks = any(spec.type == "mcp_tool" for group in groups for spec in group.hooks)
        """Some hook is of type `mcp_tool`, a tool of the server."""
        self._has_every_call_hooks = any(spec.every_call for group in groups for spec in group.hooks)
        self._selected: dict[tuple[object, ...], tuple[SelectedHooks, ...]] = {}  # by event, tool and alias
        self._outcome_observed: dict[str, bool] = {}  # whether any hook needs the outcome of a tool's calls
        self._concerned: dict[str, bool] = {}
        self._names: dict[str, tuple[str, ...]] = {}  # all that calls of a tool may have
        self._spelled: dict[str, tuple[Alias, Alias]] = {}  # the last alias of each tool, and the same with spellings

    @property
    def groups(self) -> Sequence[Group]:
        """All groups, in the order in which they run."""
        return self._groups

    def __bool__(self) -> bool:
        """Some hook is configured."""
        return bool(self._events)

    def sources_run_by(self, agent: str) -> list[str]:
        """The hook files that an agent of this name and version runs itself, so that their hooks run twice."""
        return [group.source for group in self._groups if any(_is_named(agent, name) for name in group.dialect.agents)]

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
            bounded_cache.keep(self._concerned, tool, cached)
        return cached

    def _is_concerned(self, tool: str) -> bool:
        return (
            self.has_hooks_for(Event.ERROR_OCCURRED)
            or self.has_hooks_for(Event.STOP)
            or self.observes_elicitations
            or self._may_select(Event.PRE_TOOL_USE, tool)
            or self._may_select(Event.PRE_MCP_TOOL_CALL, tool)
            or self.has_post_hooks_for(tool)
            or (self._has_every_call_hooks and self._may_run_on_every_call(tool))
        )

    def names_method(self, method: str) -> bool:
        """True if the matcher of some hook names this method, and may decide about it or see its result."""
        events = (Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
        return any(self._may_select(event, method) for event in events) or (
            self._has_every_call_hooks and self._may_run_on_every_call(method)
        )

    def _may_run_on_every_call(self, tool: str) -> bool:
        selected = (self.select(Event.PERMISSION_REQUEST, tool, alias) for alias in self.possible_aliases(tool))
        return any(hook.spec.every_call for of_alias in selected for of_group in of_alias for hook in of_group.hooks)

    def _may_select(self, event: Event, tool: str) -> bool:
        """True if some hook may match a call of this tool under one of the names that the tool may get."""
        return self.has_hooks_for(event) and any(
            self.select(event, tool, alias) for alias in self.possible_aliases(tool)
        )

    def has_post_hooks_for(self, tool: str) -> bool:
        """True if some PostToolUse or PostToolUseFailure hook may match calls of this tool."""
        return self._may_select(Event.POST_TOOL_USE, tool) or self._may_select(Event.POST_TOOL_USE_FAILURE, tool)

    def observes_outcome(self, tool: str) -> bool:
        """True if some hook may need the outcome of calls of this tool."""
        cached = self._outcome_observed.get(tool)
        if cached is None:
            cached = self.has_post_hooks_for(tool) or self.observes_elicitations
            cached = cached or self.has_hooks_for(Event.ERROR_OCCURRED) or self.has_hooks_for(Event.STOP)
            bounded_cache.keep(self._outcome_observed, tool, cached)
        return cached

    def first_tool_name(self, tool: str, alias: Alias | None) -> str:
        """The name under which the first PreToolUse hook sees the tool."""
        selected = self.select(Event.PRE_TOOL_USE, tool, alias)
        return selected[0].hooks[0].tool_name if selected else _configured_name(alias) or tool

    # --- names of tools ---

    @property
    def recognises_names(self) -> bool:
        """Tools get familiar names by themselves."""
        return self._familiar is not None

    def note_own_tool(self, alias: Alias) -> bool:
        """The agent itself has this tool, and a call of it may have this alias, whatever its name says.

        Returns whether that was not known. What is only recognised follows from the tool's name, and is not kept.
        """
        known = self._of_agent.get(alias.tool, {})
        given = (one for one in (alias, *alias.alternatives) if not one.automatic and one.name != alias.tool)
        new = {one.name: one for one in given if one.name not in known}
        if new:
            self._of_agent[alias.tool] = {**known, **new}
            self.forget_tools()
        return bool(new)

    def forget_tools(self) -> None:
        """Decide anew which hooks match which tool: more is known of the server's tools."""
        for table in (self._selected, self._outcome_observed, self._concerned, self._names):
            table.clear()

    def own_names(self, tool: str) -> tuple[str, ...]:
        """The tool's names without any alias; a method has only its own, and so has a tool of the agent."""
        if self.server is None or methods.is_method(tool):
            return (tool,)
        of_server = (claude_tool_name(self.server, tool),) if self.server else ()
        if self.named is ServerNamed.FOR_CERTAIN:
            return (tool, *of_server)
        whole = self._whole_name(tool)
        of_some_server = (matchers.OF_SOME_SERVER + whole,) if self.named is ServerNamed.NOT else ()
        return (tool, *of_server, matchers.COMPOSED + whole, *of_some_server)

    def possible_names(self, tool: str) -> tuple[str, ...]:
        """All names that a call of this tool may have: its own names, and those of its aliases."""
        cached = self._names.get(tool)
        if cached is None:
            cached = self._find_possible_names(tool)
            bounded_cache.keep(self._names, tool, cached)
        return cached

    def _find_possible_names(self, tool: str) -> tuple[str, ...]:
        aliases = [alias for alias in self.possible_aliases(tool) if alias is not None]
        aliases += [spelled(alias, spellings) for alias in aliases for spellings in self._spellings]
        is_method = methods.is_method(tool)
        own = () if is_method else [self._full_name(group, tool) for group in self._groups]
        names = (*self.own_names(tool), *own, *(name for alias in aliases for name in alias.names))
        return tuple(dict.fromkeys(names))

    def aliases(self, tool: str) -> tuple[Alias, ...]:
        """The aliases of a tool, as far as they do not depend on the arguments of its calls."""
        if (configured := self._configured(tool)) is not None:
            return (configured,)
        return self._familiar.aliases(tool) if self._familiar is not None else ()

    def _configured(self, tool: str) -> Alias | None:
        """The alias that is configured for a tool, or for one whose name servers may take for the same.

        Of the other one, it only adds a name: it allows nothing.
        """
        alias = self._aliases.get(tool)
        if alias is None and self._by_loose_name and (meant := self._by_loose_name.get(_loose(tool))) is not None:
            return replace(meant, tool=tool, guessed=True)
        return alias

    def alias(self, tool: str, arguments: bytes) -> Alias | None:
        """The alias that holds for a call of this tool; None if it has none.

        Raises Unreadable, DuplicateKeys for arguments that the alias makes ambiguous.
        """
        alias = self._configured(tool)
        if alias is None and self._familiar is not None:
            alias = self._familiar.alias(tool, arguments)
        if alias is None:
            return None
        if self._spellings:
            alias = self._with_spellings(alias)
        alias.check(arguments)
        return alias

    def _with_spellings(self, alias: Alias) -> Alias:
        """The alias with its spellings; the same object again for the same one, as most calls have."""
        last = self._spelled.get(alias.tool)
        if last is not None and last[0] is alias:
            return last[1]
        known = replace(alias, spellings=tuple(spelled(alias, spellings) for spellings in self._spellings))
        bounded_cache.keep(self._spelled, alias.tool, (alias, known))
        return known

    def possible_aliases(self, tool: str) -> tuple[Alias | None, ...]:
        """The aliases that a call of this tool may have; None stands for no alias."""
        of_agent = self._of_agent.get(tool, {}).values()
        if (configured := self._configured(tool)) is not None:
            return (configured, *of_agent)
        familiar = self._familiar.possible_aliases(tool) if self._familiar is not None else ()
        return (None, *of_agent, *familiar)

    # --- selecting hooks ---

    def select(self, event: Event, tool: str, alias: Alias | None) -> tuple[SelectedHooks, ...]:
        """The groups with hooks for this event and tool; `alias` is the alias that the tool has in this call."""
        key = (event, tool) if alias is None else (event, tool, alias.views)
        cached = self._selected.get(key)
        if cached is None:
            cached = tuple(self._matching(event, lambda group: self._tool_names(group, tool), alias, tool))
            bounded_cache.keep(self._selected, key, cached)
        return cached

    def select_for(self, context: EventContext) -> tuple[SelectedHooks, ...]:
        """The groups with hooks for an event of any kind."""
        if context.event in TOOL_EVENTS:
            return self.select(context.event, context.tool, context.alias)
        selected = self._matching(context.event, lambda group: self.match_values(group, context), None)
        return tuple(self._with_tool_name(of_group, context) for of_group in selected)

    def match_values(self, group: Group, context: EventContext) -> tuple[str, ...]:
        """The values on which the matchers of a group's hooks are tried for this event."""
        if context.event in TOOL_EVENTS:
            names = self._tool_names(group, context.tool)
            if context.alias is None:
                return names
            return (*_as_spelled(context.alias, group.dialect.tool_spellings).names, *names)
        if context.event is Event.NOTIFICATION:
            shown = group.dialect.notifications.get(context.trigger)
            return () if shown is None else (shown,)
        return (context.session.server if context.event in _ELICITATION_EVENTS else context.trigger,)

    def _with_tool_name(self, selected: SelectedHooks, context: EventContext) -> SelectedHooks:
        """The hooks of an event that is not selected by the tool, with the name under which they see the tool."""
        configured = _configured_name(context.alias)
        name = configured or self._tool_names(selected.group, context.tool)[0] if context.tool else ""
        sees_alias = context.alias is not None and not context.alias.automatic
        hooks = tuple(MatchedHook(hook.spec, name, sees_alias) for hook in selected.hooks)
        return replace(selected, hooks=hooks)

    def _tool_names(self, group: Group, tool: str) -> tuple[str, ...]:
        """The tool's own names that a group's matchers are tried on; the first is the one that its hooks see."""
        if group.match_all_names or methods.is_method(tool):
            return self.own_names(tool)
        name = self._full_name(group, tool) if group.tool_names is ToolNames.MCP else tool
        if self.named is ServerNamed.FOR_CERTAIN:
            return (name,)
        return tuple(dict.fromkeys((name, *self.own_names(tool))))

    def _possible_names(self, spec: HookSpec, tool: str) -> Iterator[str]:
        """The names that a tool has if its server is one of those that a hook's matcher may name, and nobody knows it.

        A word of the matcher may be that of a server.
        """
        if self.named is ServerNamed.FOR_CERTAIN or not tool or methods.is_method(tool):
            return
        whole = self._whole_name(tool)
        for server in {*_SERVER_WORD.findall(spec.matcher)}:
            if self.named is ServerNamed.NOT:
                yield claude_tool_name(server, whole)
            if whole.startswith(server) and (behind := whole.removeprefix(server).lstrip("_-")):
                yield claude_tool_name(server, behind)

    def _whole_name(self, tool: str) -> str:
        """The name as an agent has it that does not say for certain where in it the server's ends."""
        return f"{self.server}_{tool}" if self.server else tool

    def _full_name(self, group: Group, tool: str) -> str:
        """The tool's name as a group's system composes it with the server's."""
        return tool if self.server is None else group.dialect.mcp_tool_name(self.server, tool)

    def _matching(
        self, event: Event, match_names: Callable[[Group], tuple[str, ...]], alias: Alias | None, tool: str = ""
    ) -> Iterator[SelectedHooks]:
        """Each group's matching hooks; a hook that is configured twice in one dialect is yielded once."""
        seen: set[tuple[object, ...]] = set()
        for group in self._groups:
            names = match_names(group)
            hooks: list[MatchedHook] = []
            for spec in (spec for spec in group.hooks if spec.event is event):
                for matched in _match(spec, (*names, *self._possible_names(spec, tool)), alias, group):
                    # a hook that sees another name of the tool may decide otherwise
                    identity = (
                        group.managed,
                        group.dialect.name,
                        group.on_failure,
                        names,
                        matched.tool_name,
                        matched.sees_alias,
                        *group.dialect.hook_identity(spec),
                    )
                    if identity not in seen:
                        seen.add(identity)
                        hooks.append(matched)
            if hooks:
                conditional = any(hook.if_it_differs or hook.reads_path or _has_condition(hook.spec) for hook in hooks)
                yield SelectedHooks(group, tuple(hooks), conditional, names)


def _has_condition(spec: HookSpec) -> bool:
    """The hook runs for some arguments only."""
    return bool(spec.only_if) or spec.accepts is not None


def _as_spelled(alias: Alias, spellings: ToolSpellings) -> Alias:
    return spelled(alias, spellings) if spellings else alias


def _is_named(agent: str, name: str) -> bool:
    """Whether an agent's name and version are those of `Dialect.agents`."""
    if name.endswith("*"):
        return agent.startswith(name[:-1])
    return agent == name or agent.startswith(f"{name} ")


def _match(spec: HookSpec, names: tuple[str, ...], alias: Alias | None, group: Group) -> tuple[MatchedHook, ...]:
    """The hook once for each name of the tool that it sees, if its matcher matches one of the own names or the alias.

    A configured alias is what every hook of the tool sees. A recognised one only adds names: a hook whose matcher
    matches it as well as the server's own name may look for either, so both count before a call (`Group.names`).
    """
    is_method = bool(names) and methods.is_method(names[0])
    if is_method:
        own = MatchedHook(spec, names[0]) if methods.pattern_names_method(spec.matcher, names[0]) else None
    else:
        own = MatchedHook(spec, names[0]) if any(map(spec.matches, names)) else None
    if alias is None:
        return (own,) if own else ()
    spellings = group.dialect.spellings(spec)
    before = decides_call(spec)
    own_name = "" if before else names[0]
    as_spelled = _as_spelled(alias, spellings) if is_method else alias
    by_path = before or _has_condition(spec)
    familiar = tuple(
        MatchedHook(
            spec, name, True, spellings, own_name=own_name, reads_path=by_path and bool(as_spelled.named(name).uri)
        )
        for name in _matched_names(spec, alias, spellings, is_method)
    )
    if not alias.automatic:
        if own and not familiar:
            name = _as_spelled(alias, spellings).name or names[0]
            familiar = (MatchedHook(spec, name, True, spellings, own_name=own_name),)
        seen = familiar if before and group.names is not SeenNames.OWN else familiar[:1]
    elif own is None:
        seen = familiar[:1]
    else:
        seen = _seen_names(replace(own, tool_spellings=spellings), familiar, alias, group.names, before)
    return tuple(replace(hook, one_of_several=True) for hook in seen) if len(seen) > 1 else seen


def _loose(tool: str) -> str:
    """The name of a tool without case and surrounding blanks, as permission rules compare names."""
    return tool.strip().casefold()


def decides_call(spec: HookSpec) -> bool:
    """Whether the hook may refuse a call, so that each name of its tool counts."""
    return spec.event in BEFORE_CALL and not spec.background


def _seen_names(
    own: MatchedHook, familiar: tuple[MatchedHook, ...], alias: Alias, names: SeenNames, before: bool
) -> tuple[MatchedHook, ...]:
    """How a hook sees a tool that it matches by its own name and by these recognised ones.

    A name that is only guessed is good for refusing calls: it replaces no other, and nothing after a call has it.
    """
    known = {hook.tool_name: _as_spelled(alias, hook.tool_spellings).named(hook.tool_name) for hook in familiar}
    differing = tuple(
        hook for hook in familiar if hook.tool_name != own.tool_name or known[hook.tool_name].changes_arguments
    )
    if not differing or names is SeenNames.OWN or own.spec.event is Event.PRE_MCP_TOOL_CALL:
        return (own,)
    certain = tuple(hook for hook in differing if not known[hook.tool_name].guessed)
    if not before:
        return certain[:1] or (own,)
    if certain and names is SeenNames.FAMILIAR:
        return differing
    return (own, *(replace(hook, if_it_differs=hook.tool_name == own.tool_name) for hook in differing))


def _matched_names(spec: HookSpec, alias: Alias, spellings: ToolSpellings, is_method: bool) -> Iterator[str]:
    """For each familiar name of the tool, how the hook's system spells it: the first spelling that the hook matches."""
    matched: dict[str, None] = {}
    for familiar in (alias, *alias.alternatives):
        names = _as_spelled(replace(familiar, alternatives=()), spellings).names
        fitting = [*filter(spec.matches, names)][:1]
        matched.update(
            (name, None) for name in fitting if not is_method or methods.matches_familiar(spec.matches, name)
        )
    return iter(matched)


def _configured_name(alias: Alias | None) -> str:
    """The name that a configured alias gives to its tool for every hook; empty: there is none."""
    return alias.name if alias is not None and not alias.automatic else ""


@lru_cache(maxsize=4096)  # more than one policy has: a gateway has many policies, one after another
def _permission_rule(text: str) -> Callable[[str, bytes], bool]:
    return matchers.permission_rule(text)
