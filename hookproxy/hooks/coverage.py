"""Finds out which hook sees which tools of a server, under which names, and why each other hook never runs.

Pure. Names that come from a server are quoted and cut in sentences, so that these may be printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Group
from ..model.aliases import FAMILIAR_NAMES, Alias, spelled, spelled_names
from ..model.counts import counted
from ..model.hooks import Event, HookSpec, Permission, Tool
from ..model.settings import Settings, ToolNames
from ..policy import matchers, methods
from ..policy.call_texts import SHELL
from .familiar_tools import FamiliarTools
from .idle import IdleRule, UnmatchedRule, name_of, near_matched, near_name, near_server, why_unmatched
from .permissions import Permissions, layers
from .select import TOOL_EVENTS, HookGroups, MatchedHook, SelectedHooks

_MAX_SHOWN: Final = 60  # characters of a name: a tool's usual name in full, and a line that still fits a screen

_MOST_IDLE: Final = 2  # rules, and matchers, in the line at start: it still fits a screen
_MOST_NAMED: Final = 3  # tools in the line at start: `check` shows all

_OTHER_SERVER: Final = re.compile(r"mcp__([A-Za-z0-9_-]+?)__")
"""In a matcher: the name of a server."""


T = TypeVar("T")


class SeenTool(Struct, frozen=True):
    """A tool as a hook sees it."""

    tool: str
    """The server's own name."""
    name: str
    """The name that the hook sees."""
    alias: Alias | None = None
    """The alias that the hook sees; None: it sees the tool and its arguments under the server's own names."""


class MethodCoverage(Struct, frozen=True):
    """What judges requests of a method other than `tools/call`."""

    method: str
    seen: tuple[tuple[HookSpec, str], ...] = ()
    """The hooks that see them, each with the name that it sees."""
    ruled: bool = False
    """A permission rule or a limit applies to them."""

    @property
    def covered(self) -> bool:
        """Something judges them; otherwise they pass unread."""
        return bool(self.seen) or self.ruled


class HookCoverage(Struct, frozen=True):
    """What one hook sees of a server."""

    spec: HookSpec
    group: Group
    seen: tuple[SeenTool, ...] = ()
    """In the order of the server's list; empty also for events without a tool."""
    why_never: str = ""
    """Why it never runs for this server, in one sentence without a full stop; empty: it may run."""
    near: str = ""
    """What its matcher may mean, if it matches no tool; the sentence has it, too. Empty: nothing is like it."""


class Coverage(Struct, frozen=True):
    """What all hooks, and the permission rules, see of a server."""

    tools: tuple[str, ...]
    """The names of the server's tools."""
    hooks: tuple[HookCoverage, ...]
    """All hooks, in the order of the configuration."""
    seen: frozenset[str] = frozenset()
    """The tools that some hook sees."""
    ruled: frozenset[str] = frozenset()
    """The tools that a permission rule or a limit applies to."""
    left_out: tuple[str, ...] = ()
    """The tools that look like ones that run commands, and that no hook or rule for Bash is about."""
    methods: tuple[MethodCoverage, ...] = ()
    """All methods other than `tools/call` that can be judged."""
    default: str = "allow"
    """What happens to calls that no rule is about: the strictest default of the layers."""
    hidden: tuple[str, ...] = ()
    """The tools that the agent does not see, because every call of them would be refused."""
    idle_rules: tuple[IdleRule, ...] = ()
    """The permission rules and limits that are about none of the tools."""
    unmatched: tuple[UnmatchedRule, ...] = ()
    """The permission rules and limits that can match nothing as they are written."""

    def summary(self) -> str:
        """One line for people: `3 hooks on 5 of 12 tools; 1 hook never matches: see hookproxy check -- COMMAND`."""
        seeing = sum(bool(hook.seen) for hook in self.hooks)
        never = [hook for hook in self.hooks if hook.why_never]
        of_all = counted(len(self.tools), "tool")
        text = f"{counted(seeing, 'hook')} on {f'{len(self.seen)} of {of_all}' if seeing else of_all}"
        if self.default == "deny":
            hidden = f"; {len(self.hidden)} hidden" if self.hidden else ""
            text += f', default = "deny" refuses calls that no rule is about{hidden}'
        elif self.default == "ask":
            text += ', default = "ask" asks about calls that no rule is about'
        elif self.ruled:
            text += f", permission rules on {len(self.ruled)}"
        if self.left_out:
            shown = ", ".join(map(_shown, self.left_out[:_MOST_NAMED]))
            more = f" and {len(self.left_out) - _MOST_NAMED} more" if len(self.left_out) > _MOST_NAMED else ""
            text += f'; not counted as Bash: {shown}{more} (as = "Bash" in [tools.NAME] changes that)'
        idle = self._idle_for_people()
        text += "".join(f"; {rule}" for rule in idle[:_MOST_IDLE])
        if rest := len(idle[_MOST_IDLE:]):
            text += f"; {counted(rest, 'more rule')} {'matches' if rest == 1 else 'match'} nothing"
        if not never:
            return f"{text}: see hookproxy check -- COMMAND" if self.left_out or idle else text
        text += f"; {counted(len(never), 'hook')} never {'matches' if len(never) == 1 else 'match'}"
        near = dict.fromkeys(f"matcher {_shown(hook.spec.matcher)}: {hook.near}" for hook in never if hook.near)
        text += f" ({'; '.join([*near][:_MOST_IDLE])})" if near else ""
        if unknown := _unknown_names(never):
            text += f", and no tool is known as {' or '.join(unknown)} ([tools.X] in hookproxy.toml names one)"
        return f"{text}: see hookproxy check -- COMMAND"

    def _idle_for_people(self) -> list[str]:
        """What is said of each rule that is probably a mistake."""
        unmatched = {(rule.decision, rule.text): rule.why for rule in self.unmatched}
        misspelt = {
            (rule.decision, rule.text): f"is about no tool ({rule.near})" for rule in self.idle_rules if rule.near
        }
        return [f"{decision} {_shown(text)} {why}" for (decision, text), why in (misspelt | unmatched).items()]


def coverage(
    groups: Sequence[Group],
    settings: Settings,
    server: str,
    tools: Iterable[Tool],
    command: Sequence[str] = (),
    server_info: str = "",
) -> Coverage:
    """Return what the hooks of `groups`, and the rules, see of these tools.

    `server` is the server's name as hooks see it, `command` its command line, `server_info` the name that it gives
    itself; the last two are empty if they are not known.
    """
    steps = coverage_in_steps(groups, settings, server, tools, command, server_info)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Coverage = end.value
            return result


def coverage_in_steps(
    groups: Sequence[Group],
    settings: Settings,
    server: str,
    tools: Iterable[Tool],
    command: Sequence[str],
    server_info: str,
) -> Generator[None, None, Coverage]:
    """As `coverage`, in steps of at most a fraction of a millisecond each: a server may list very many tools."""
    listed: dict[str, Tool] = {}
    familiar = FamiliarTools(command, server=server)
    for tool in tools:
        listed[tool.name] = tool
        familiar.note_tools((tool,), server_info)
        yield
    whole = HookGroups(groups, server, settings.aliases, familiar if settings.auto_aliases else None)
    seen: set[str] = set()
    layer_coverages = [_LayerCoverage(layer, server, listed, seen) for layer in layers(whole, settings, familiar)]
    ruled: set[str] = set()
    hooks: list[HookCoverage] = []
    for layer_coverage in layer_coverages:
        yield from layer_coverage.look_at_tools()
        yield from layer_coverage.ruled(ruled)
    for layer_coverage in layer_coverages:
        hooks += yield from layer_coverage.hooks()
    left_out: list[str] = []
    if any(layer_coverage.is_about_commands for layer_coverage in layer_coverages):
        for name in listed:
            if familiar.is_left_out(name):
                left_out.append(name)
            yield
    covered = tuple(_method_coverage(method, layer_coverages) for method in methods.JUDGED)
    default = max((of_layer.default for of_layer in layer_coverages), default=Permission.ALLOW)
    hidden = yield from _of_all(layer_coverages, _LayerCoverage.hidden)
    idle_rules = yield from _of_all(layer_coverages, _LayerCoverage.idle_rules)
    unmatched = yield from _of_all(layer_coverages, _LayerCoverage.unmatched_rules)
    return Coverage(
        tuple(listed),
        tuple(hooks),
        frozenset(seen),
        frozenset(ruled),
        tuple(left_out),
        covered,
        default.name.lower(),
        tuple(tool for tool in listed if tool in hidden),
        idle_rules,
        unmatched,
    )


def _of_all(
    layer_coverages: Sequence[_LayerCoverage], find: Callable[[_LayerCoverage], Generator[None, None, list[T]]]
) -> Generator[None, None, tuple[T, ...]]:
    """What is found in any layer."""
    found: list[T] = []
    for layer_coverage in layer_coverages:
        found += yield from find(layer_coverage)
    return tuple(found)


def _method_coverage(method: str, layer_coverages: Sequence[_LayerCoverage]) -> MethodCoverage:
    seen = {id(spec): (spec, name) for of_layer in layer_coverages for spec, name in of_layer.seeing(method)}
    ruled = any(of_layer.rules_name(method) for of_layer in layer_coverages)
    return MethodCoverage(method, tuple(seen.values()), ruled)


_Steps = Generator[None, None, None]


class _LayerCoverage:
    """What the user's hooks and rules, or the managed ones, see of the tools of one server."""

    def __init__(self, layer: Permissions, server: str, tools: Mapping[str, Tool], seen: set[str]) -> None:
        """`seen` gets the names of the tools that some hook sees."""
        self._groups = layer.groups.groups
        self._server = server
        self._tools = tools
        self._selection = layer.groups
        self._permissions = layer
        self._selected: set[int] = set()  # hooks whose matchers match some tool
        self._seen_tools = seen
        self._seen: dict[int, dict[tuple[str, str], SeenTool]] = {}

    @property
    def is_about_commands(self) -> bool:
        """Some hook or rule is about tools by the name Bash, if tools get this name by themselves."""
        if not self._selection.recognises_names:
            return False
        rules = self._permissions.rules
        hooks = ((spec, group) for group in self._groups for spec in group.hooks)
        by_rule = rules is not None and (rules.name((SHELL,)) or self._permissions.command_files is not None)
        return by_rule or any("Bash" in _familiar(*hook).values() for hook in hooks)

    def look_at_tools(self) -> _Steps:
        """Find out which hooks see which tool."""
        events = {spec.event for group in self._groups for spec in group.hooks} & TOOL_EVENTS
        for tool in self._tools:
            for alias in self._aliases(tool):
                for event in events:
                    for selected in self._selection.select(event, tool, alias):
                        self._note(selected, tool, alias)
            yield

    def _aliases(self, tool: str) -> Sequence[Alias | None]:
        """The aliases that a call of this tool may have; None stands for no alias."""
        known = self._selection.aliases(tool)
        if not known and b'"properties"' not in self._tools[tool].input_schema:
            # its arguments are not listed: those of a call decide
            return [alias for alias in self._selection.possible_aliases(tool) if alias is None or not alias.guessed]
        together: dict[frozenset[str], list[Alias]] = {}
        for alias in known:  # those that need the same arguments hold for the same calls
            together.setdefault(alias.needed, []).append(alias)
        return [replace(first, alternatives=tuple(others)) for first, *others in together.values()] or (None,)

    def _note(self, selected: SelectedHooks, tool: str, alias: Alias | None) -> None:
        for matched in selected.hooks:
            self._selected.add(id(matched.spec))
            if seen := _seen_tool(matched, selected, tool, alias):
                self._seen.setdefault(id(matched.spec), {}).setdefault((tool, seen.name), seen)
                self._seen_tools.add(tool)

    def seeing(self, method: str) -> Iterable[tuple[HookSpec, str]]:
        """The hooks that see requests of a method, each with the name that it sees."""
        aliases = self._selection.aliases(method)
        alias = replace(aliases[0], alternatives=aliases[1:]) if aliases else None
        for event in TOOL_EVENTS if any(group.hooks for group in self._groups) else ():
            for selected in self._selection.select(event, method, alias):
                yield from ((matched.spec, matched.tool_name) for matched in selected.hooks)

    def rules_name(self, method: str) -> bool:
        """Whether a permission rule or a limit may apply to requests of a method."""
        return self._permissions.rules_concern(self._selection.possible_names(method))

    def ruled(self, ruled_tools: set[str]) -> _Steps:
        """Add the tools that a permission rule or a limit applies to."""
        if not self._permissions:
            return
        for tool in self._tools:
            if self._permissions.rules_concern(self._selection.possible_names(tool)):
                ruled_tools.add(tool)
            yield

    @property
    def default(self) -> Permission:
        """What happens to calls that no rule of the layer is about."""
        rules = self._permissions.rules
        return Permission.ALLOW if rules is None else rules.default

    def idle_rules(self) -> Generator[None, None, list[IdleRule]]:
        """The rules and limits that are about none of the tools."""
        if not self._tools:
            return []
        waiting = dict(self._named_tools())
        for tool in self._tools if waiting else ():
            names = self._selection.possible_names(tool)
            waiting = {key: (place, is_about) for key, (place, is_about) in waiting.items() if not is_about(names)}
            if not waiting:
                return []
            yield
        return [
            IdleRule.of(kind, text, place, self._server, self._tools)
            for (kind, text), (place, _) in waiting.items()
            if "/" not in name_of(text)
        ]

    def unmatched_rules(self) -> Generator[None, None, list[UnmatchedRule]]:
        """The rules and limits that can match nothing as they are written."""
        unmatched: list[UnmatchedRule] = []
        for (kind, text), _ in self._named_tools():
            if why := why_unmatched(text):
                unmatched.append(UnmatchedRule(kind, text, why))
            yield
        return unmatched

    def _named_tools(self) -> Iterator[tuple[tuple[str, str], tuple[str, Callable[[Sequence[str]], object]]]]:
        """Kind and text of each rule and limit about tools; its place, and whether it is about one with these names."""
        rules, limits = self._permissions.rules, self._permissions.limits
        for kind, of_kind in (("deny", rules.deny), ("ask", rules.ask)) if rules is not None else ():
            for rule in of_kind:
                if not rule.parts.names_methods:
                    yield (kind, rule.parts.text), (rule.at or rule.place, partial(self._is_about, rule, rule.named))
        for allow in rules.allow if rules is not None else ():
            if not matchers.rule(allow.text).names_methods:
                yield ("allow", allow.text), (allow.at or allow.place, partial(_names_any, allow.names_tool))
        for limit, of_limit in limits.table.rules() if limits is not None else ():
            if not of_limit.names_methods:
                yield ("limit", limit.tool), (limit.place, of_limit.named)

    def _is_about(self, rule: object, is_named: Callable[[Sequence[str]], object], names: Sequence[str]) -> bool:
        """True if a deny or ask rule is about a tool with these names, or about the files of its commands."""
        files = self._permissions.command_files
        return bool(is_named(names)) or (files is not None and files.has(rule, names))

    def hidden(self) -> Generator[None, None, list[str]]:
        """The tools that are not listed for the agent."""
        hidden: list[str] = []
        for tool in self._tools if self._permissions.rules is not None else ():
            if self._permissions.hides(tool):
                hidden.append(tool)
            yield
        return hidden

    def hooks(self) -> Generator[None, None, list[HookCoverage]]:
        """What each hook sees."""
        coverages: list[HookCoverage] = []
        for group in self._groups:
            for spec in group.hooks:
                if spec.server and spec.server != self._server:
                    why = f"it calls a tool of the server {spec.server!r}, and this server is {self._server!r} (--name)"
                    coverages.append(HookCoverage(spec, group, why_never=why))
                    continue
                seen = tuple(self._seen.get(id(spec), {}).values())
                if not seen:
                    seen = yield from self._seen_by_same_hook(spec, group)
                why, near = ("", "") if seen else (yield from self._why_never(spec, group))
                coverages.append(HookCoverage(spec, group, seen, why, near))
                yield
        return coverages

    def _why_never(self, spec: HookSpec, group: Group) -> Generator[None, None, tuple[str, str]]:
        """Why a hook never runs, and what its matcher may mean, which the first says, too."""
        if spec.event in (Event.ELICITATION, Event.ELICITATION_RESULT):
            fits = spec.matches(self._server)
            why = f"its matcher {spec.matcher!r} does not match the server's name {self._server!r}"
            return "" if fits else why, ""
        if spec.event not in TOOL_EVENTS or _names_method(spec):
            return "", ""
        if not self._tools:
            return "the server has no tools", ""
        all_tools = f"the server's {counted(len(self._tools), 'tool')}"
        if id(spec) in self._selected:
            near = near_name(name_of(spec.only_if), self._server, self._tools) if spec.only_if else ""
            return f"{spec.condition} names none of {all_tools}{f'; {near}' if near else ''}", ""
        why = f"{spec.matched_by} matches none of {all_tools}"
        if known_as := _familiar(spec, group):
            first = _quoted(next(iter(known_as.values())))
            return f"{why}; none is known as {' or '.join(known_as)}: [tools.X] with as = {first} names one", ""
        near = yield from self._near(spec, group)
        return f"{why}; {near}" if near else why, near

    def _seen_by_same_hook(self, spec: HookSpec, group: Group) -> Generator[None, None, tuple[SeenTool, ...]]:
        """The tools of a hook that is configured a second time: where both match, the other one is selected."""
        seen_tools: list[SeenTool] = []
        for other_group in self._groups:
            for other in other_group.hooks:
                if (other_group.dialect.name, other.identity) != (group.dialect.name, spec.identity):
                    continue
                for seen in self._seen.get(id(other), {}).values():
                    if spec.matches(seen.name) or any(map(spec.matches, self._selection.own_names(seen.tool))):
                        seen_tools.append(seen)
                    yield
        return tuple(seen_tools)

    def _near(self, spec: HookSpec, group: Group) -> Generator[None, None, str]:
        """What the author of a matcher that matches no tool may have meant."""
        others = dict.fromkeys(_OTHER_SERVER.findall(spec.matcher))
        for server in (other for other in others if not near_server(other, self._server)):
            for tool in self._tools if group.tool_names is ToolNames.MCP or group.match_all_names else ():
                if spec.matches(f"mcp__{server}__{tool}"):
                    return f"the server is {self._server!r} here, not {server!r}: --name {server} names it"
                yield
        for tool in self._tools:
            seen, other = self._names_of(tool, group)
            if spec.matches(other):
                return f"it sees {_shown(seen)}, not {_shown(other)}"
            yield
        for near in near_matched(spec.matcher, self._server, self._tools):
            if near:
                return near if group.match_all_names else self._as_seen(near, group)
            yield
        return ""

    def _names_of(self, tool: str, group: Group) -> tuple[str, str]:
        """The name of a tool that hooks of the group see, and the other one."""
        full_name = group.dialect.mcp_tool_name(self._server, tool)
        return (full_name, tool) if group.tool_names is ToolNames.MCP else (tool, full_name)

    def _as_seen(self, near: str, group: Group) -> str:
        """A sentence that names a tool, by the name that hooks of the group see."""
        for tool in self._tools:
            seen, other = self._names_of(tool, group)
            if near == f"did you mean {other!r}?":
                return f"did you mean {seen!r}?"
        return near


def _names_any(names_tool: Callable[[str], bool], names: Sequence[str]) -> bool:
    return any(map(names_tool, names))


def _seen_tool(matched: MatchedHook, selected: SelectedHooks, tool: str, alias: Alias | None) -> SeenTool | None:
    """A tool as a hook that matches it sees it; None: the hook's `if` never holds for it."""
    if alias is not None:
        alias = spelled(alias, matched.tool_spellings) if matched.tool_spellings else alias
        alias = replace(alias.named(matched.tool_name), alternatives=())
    rule = matchers.rule(matched.spec.only_if) if matched.spec.only_if else None
    if rule is None or any(map(rule.names_tool, selected.names_in_rules(matched))):
        return SeenTool(tool, matched.tool_name, alias if matched.sees_alias else None)
    if matched.one_of_several or alias is None:
        return None
    if alias.name and matched.spec.matches(alias.name) and rule.names_tool(alias.name):
        return SeenTool(tool, alias.name, alias)  # the `if` names the alias, and the hook then sees the alias, too
    return None


def _names_method(spec: HookSpec) -> bool:
    """True if a matcher names a method, or what agents call their tools for resources."""
    familiar = ("ReadMcpResourceTool", "ListMcpResourcesTool")
    named = methods.pattern_names_method(spec.matcher)
    return named or any(methods.matches_familiar(spec.matches, name) for name in familiar)


def _names(group: Group) -> dict[str, str]:
    """The familiar names that a group's hooks know, each with Claude Code's name of the tool."""
    return spelled_names(FAMILIAR_NAMES, group.dialect.tool_spellings)


def _familiar(spec: HookSpec, group: Group) -> dict[str, str]:
    """The familiar names that a hook's matcher matches, as in `_names`."""
    if spec.event not in TOOL_EVENTS:
        return {}
    return {name: known for name, known in _names(group).items() if spec.matches(name)}


def _unknown_names(never: Sequence[HookCoverage]) -> list[str]:
    """The familiar names that no tool has and that matchers of these hooks match, in the order of `FAMILIAR_NAMES`."""
    waiting = [hook for hook in never if hook.why_never.startswith(hook.spec.matched_by)]
    wanted = {name for hook in waiting for name in _familiar(hook.spec, hook.group).values()}
    return [name for name in FAMILIAR_NAMES if name in wanted]


def _shown(name: str) -> str:
    """A name from the server, quoted and cut, so that it may be printed."""
    return repr(name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}…")


def _quoted(name: str) -> str:
    return f'"{name}"'
