"""The familiar names of one server's tools: names of Claude Code's tools that do the same, as far as they are known.

They only add names: no hook or rule that knows a tool by the server's own name is affected (law 4). Once known, a name
stays for the session: neither the arguments of a call nor another list of tools takes it away (law 1). The recogniser
and the presets are imported when a tool is first looked up, because a run without a tool call never needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.hooks import Tool
from ..policy import methods
from ..protocol.tool_list import ListedTools
from . import bounded_cache

if TYPE_CHECKING:
    from ..policy.tool_arguments import ToolArguments


_Shape = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]
"""A tool, the names of a call's arguments with their JSON types, and those of them that hold commands."""


class _OfCalls(Struct, frozen=True):
    """What is known of calls of one shape."""

    aliases: tuple[Alias, ...]
    """The aliases that such a call may get; it is clear which argument each of them is about."""
    alias: Alias | None
    """The alias that it gets, unless an argument says what a tool that reads and writes does."""


class FamiliarTools:
    """What is known of the server and its tools so far, and the aliases that follow from it."""

    def __init__(
        self, command: Sequence[str] = (), *, any_server: bool = False, guesses: bool = True, server: str = ""
    ) -> None:
        """`command` is the server's command line; empty: not known. `server` is its name as hooks see it.

        `any_server`: the server is not known, so a tool may get the names that it has in any preset. Without `guesses`,
        a tool that is not listed may be Bash only by its name: its calls have no argument that is named like a command.
        """
        self._command = command
        self._server = server
        self._any_server = any_server
        self._guesses = guesses
        self._server_name = ""
        self._preset: str | None = None  # its name; None: not looked up yet
        self._listed = ListedTools()
        self._kept: dict[str, tuple[Alias, ...]] = {}  # what earlier lists said of tools that have changed since
        self._aliases: dict[str, tuple[Alias, ...]] = {}
        self._possible: dict[str, tuple[Alias, ...]] = {}
        self._of_calls: dict[_Shape, _OfCalls] = {}
        self._arguments: dict[str, ToolArguments] = {}

    def prepare(self) -> None:
        """Import the recogniser and the presets now, not when the first tool is looked up."""
        _possible_names("")
        self._in_preset("")

    def note_tools(self, tools: Iterable[Tool], server_name: str) -> bool:
        """Note the tools on a page of tools/list, and `serverInfo.name`; empty: not known.

        Returns whether the names of other tools may change as well.
        """
        tools = list(tools)
        if len({tool.name for tool in tools}) < len(tools):  # neither of two entries takes a name of the other away
            changed = [self.note_tools([tool], server_name) for tool in tools]
            return any(changed)
        renamed = server_name != self._server_name
        earlier = (self._listed.get(tool.name) for tool in tools if not renamed)
        altered = [
            before for before, tool in zip(earlier, tools, strict=False) if before is not None and before != tool
        ]
        for known in list(self._listed.values()) if renamed else altered:
            if aliases := self.aliases(known.name):
                bounded_cache.keep(self._kept, known.name, aliases)
        if renamed:
            self._server_name, self._preset = server_name, None
        self._listed.note(tools)
        for cache in (self._aliases, self._possible, self._of_calls, self._arguments):
            cache.clear()
        return renamed

    def aliases(self, tool: str) -> tuple[Alias, ...]:
        """The aliases of a tool that is in a preset or was listed, the most specific first; else none."""
        if methods.is_method(tool):
            from ..policy import resource_aliases  # where something is about requests of other methods

            return resource_aliases.of_method(tool, self._server)
        cached = self._aliases.get(tool)
        if cached is None:
            cached = self._known_aliases(tool)
            if kept := self._kept.get(tool):
                new = [alias for alias in cached if alias not in kept and replace(alias, guessed=False) not in kept]
                cached = (*new, *kept)
            bounded_cache.keep(self._aliases, tool, cached)
        return cached

    def possible_aliases(self, tool: str) -> tuple[Alias, ...]:
        """An alias for each name that a call of this tool may get; those that depend on its arguments map none."""
        if methods.is_method(tool):
            return self.aliases(tool)
        cached = self._possible.get(tool)
        if cached is None:
            known = self.aliases(tool)
            names = self._names_by_arguments(tool)
            for alias in known:
                names.pop(alias.name, None)
            cached = (*known, *(Alias(tool, name, automatic=True, guessed=names[name]) for name in sorted(names)))
            bounded_cache.keep(self._possible, tool, cached)
        return cached

    def _names_by_arguments(self, tool: str) -> dict[str, bool]:
        """The names that the arguments of a call may add to a tool that is not listed; True: a guess."""
        names: dict[str, bool] = {}
        listed = self._listed_arguments(tool)
        if self._in_preset(tool) is None and (not listed.known or listed.open):
            from ..policy import familiar_names

            if self._guesses and familiar_names.may_be_command(tool):
                names["Bash"] = True
            if not listed.known:
                names |= dict.fromkeys(familiar_names.possible_names(tool), False)
        if self._any_server:
            from ..policy import presets

            names |= dict.fromkeys(presets.names_in_any_preset(tool), False)
        return names

    def alias(self, tool: str, arguments: bytes) -> Alias | None:
        """The alias for a call with these arguments, a JSON object; None: it has none.

        Raises Unreadable if it is not known which of several arguments the server uses.
        """
        if methods.is_method(tool):
            from ..policy import resource_aliases  # likewise

            return _combined(resource_aliases.for_request(self.aliases(tool), arguments))
        if not self.possible_aliases(tool):
            return None
        from ..policy import alias_choice, tool_arguments

        types = tool_arguments.types_of(arguments)
        of_calls = self._of_such_calls(tool, types, self._commands_inside(tool, arguments))
        action = alias_choice.action_of(of_calls.aliases, arguments)
        if action is None:  # true of most calls
            return of_calls.alias
        return _combined(alias_choice.aliases_for_call(of_calls.aliases, types, action))

    def _of_such_calls(self, tool: str, types: Mapping[str, str], nested: tuple[str, ...]) -> _OfCalls:
        """What holds for all calls with arguments of these names and types, in this order. Raises as `alias`."""
        shape = (tool, tuple(types.items()), nested)
        of_calls = self._of_calls.get(shape)
        if of_calls is None:
            from ..policy import alias_choice

            aliases = self.aliases(tool) or self._aliases_by_arguments(tool, types, nested)
            self._check_rivals(tool, aliases, types)
            of_calls = _OfCalls(aliases, _combined(alias_choice.aliases_for_call(aliases, types)))
            bounded_cache.keep(self._of_calls, shape, of_calls)
        return of_calls

    def _only_calls_show(self, tool: str) -> bool:
        """The aliases of a tool may follow from the arguments of its calls, which nobody has listed, or not all."""
        if self.aliases(tool) or self._in_preset(tool) is not None:
            return False
        listed = self._listed_arguments(tool)
        return listed.open or not listed.known

    def _commands_inside(self, tool: str, arguments: bytes) -> tuple[str, ...]:
        """Those of a call's arguments that hold commands, where aliases may follow from them."""
        from ..policy import tool_arguments

        return tool_arguments.commands_inside(arguments) if self._only_calls_show(tool) else ()

    def _aliases_by_arguments(self, tool: str, types: Mapping[str, str], nested: tuple[str, ...]) -> tuple[Alias, ...]:
        """The aliases of a tool of which only a call shows the arguments, or all of them."""
        if not self._only_calls_show(tool):
            return ()
        from ..policy import familiar_names

        listed = self._listed_arguments(tool)
        if not listed.known:
            return familiar_names.aliases_of_unlisted(tool, types, nested)
        types = {own: kind for own, kind in types.items() if listed.types.get(own) != kind or own in nested}
        return familiar_names.aliases_of_open(tool, types, nested)

    def _check_rivals(self, tool: str, aliases: Sequence[Alias], arguments: Mapping[str, str]) -> None:
        from ..policy import alias_choice

        listed = self._listed.get(tool)
        properties = listed.properties if listed is not None else frozenset[str]()
        rivals = alias_choice.rival_commands(aliases, arguments, properties)
        why = "a hook would judge only one of them; [tools.X] in hookproxy.toml says which one is the command"
        if not rivals and (not self.aliases(tool) or (listed is not None and self._listed_arguments(tool).known)):
            rivals = alias_choice.rival_arguments(aliases, arguments, properties)
            why = "tools/list has not shown which one counts"
        if rivals:
            names = " and ".join(map(repr, rivals[:2]))
            raise raw_json.Unreadable(f"{names} may be the same argument, and {why}")

    def _known_aliases(self, tool: str) -> tuple[Alias, ...]:
        if (in_preset := self._in_preset(tool)) is not None:
            return in_preset
        listed = self._listed.get(tool)
        if listed is None:
            return ()
        from ..policy import familiar_names

        return familiar_names.listed_aliases(tool, self._listed_arguments(tool), listed.annotations)

    def _listed_arguments(self, tool: str) -> ToolArguments:
        """What tools/list says of the tool's arguments; nothing is known of a tool that is not listed."""
        known = self._arguments.get(tool)
        if known is None:
            from ..policy import tool_arguments

            listed = self._listed.get(tool)
            known = tool_arguments.listed_arguments(listed.input_schema if listed is not None else b"")
            bounded_cache.keep(self._arguments, tool, known)
        return known

    def is_left_out(self, tool: str) -> bool:
        """True for a listed tool that looks like one that runs commands, and is not known as Bash."""
        listed = self._listed.get(tool)
        if listed is None or any(alias.name == "Bash" for alias in self.aliases(tool)):
            return False
        from ..policy import familiar_names

        return familiar_names.is_left_out(tool, self._listed_arguments(tool))

    def _in_preset(self, tool: str) -> tuple[Alias, ...] | None:
        """The aliases that the server's preset gives to the tool; None if the preset does not know this tool."""
        from ..policy import presets

        if self._preset is None:
            self._preset = presets.preset_for(self._command, self._server_name)
        listed = self._listed.get(tool)
        return presets.preset_aliases(self._preset, tool, listed.properties if listed else None)


def _combined(aliases: Sequence[Alias]) -> Alias | None:
    """The first alias with the others as its alternatives; None for no aliases."""
    if len(aliases) > 1:
        return replace(aliases[0], alternatives=tuple(aliases[1:]))
    return aliases[0] if aliases else None


def _possible_names(tool: str) -> frozenset[str]:
    from ..policy import familiar_names

    return familiar_names.possible_names(tool)


def has_command(arguments: bytes) -> bool:
    """True if an argument of a call is named like a command, or like a program."""
    from ..model import command_line  # only where a hook is a tool of a server
    from ..policy import tool_arguments

    names = tool_arguments.types_of(arguments)
    return any(command_line.is_command(name) or command_line.is_program(name) for name in names)
