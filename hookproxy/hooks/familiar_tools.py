"""The familiar names of one server's tools: names of Claude Code's tools that do the same, as far as they are known.

They only add names: no hook or rule that knows a tool by the server's own name is affected (law 4). The recogniser and
the presets are imported when a tool is first looked up, because a run without a tool call never needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.hooks import Tool
from ..protocol.tool_list import ListedTools
from . import bounded_cache


class FamiliarTools:
    """What is known of the server and its tools so far, and the aliases that follow from it."""

    def __init__(self, command: Sequence[str] = (), *, any_server: bool = False) -> None:
        """`command` is the server's command line; empty: not known.

        `any_server`: the server is not known, so a tool may get the names that it has in any preset.
        """
        self._command = command
        self._any_server = any_server
        self._server_name = ""
        self._preset: str | None = None  # its name; None: not looked up yet
        self._listed = ListedTools()
        self._aliases: dict[str, tuple[Alias, ...]] = {}
        self._possible: dict[str, tuple[Alias, ...]] = {}
        self._of_arguments: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Alias, ...]] = {}

    def prepare(self) -> None:
        """Import the recogniser and the presets now, not when the first tool is looked up."""
        _possible_names("")
        self._in_preset("")

    def note_tools(self, tools: Iterable[Tool], server_name: str) -> bool:
        """Note the tools on a page of tools/list, and `serverInfo.name`; empty: not known.

        Returns whether the names of other tools may change as well.
        """
        renamed = server_name != self._server_name
        if renamed:
            self._server_name, self._preset = server_name, None
        self._listed.note(tools)
        for cache in (self._aliases, self._possible, self._of_arguments):
            cache.clear()
        return renamed

    def aliases(self, tool: str) -> tuple[Alias, ...]:
        """The aliases of a tool that is in a preset or was listed, the most specific first; else none."""
        cached = self._aliases.get(tool)
        if cached is None:
            cached = self._known_aliases(tool)
            bounded_cache.keep(self._aliases, tool, cached)
        return cached

    def possible_aliases(self, tool: str) -> tuple[Alias, ...]:
        """An alias for each name that a call of this tool may get; those that depend on its arguments map none."""
        cached = self._possible.get(tool)
        if cached is None:
            known = self.aliases(tool)
            guessed = frozenset() if self._in_preset(tool) is not None else _possible_names(tool)
            if self._any_server:
                from ..policy import presets

                guessed |= presets.names_in_any_preset(tool)
            names = guessed - {one.name for one in known}
            cached = (*known, *(Alias(tool, name, automatic=True) for name in sorted(names)))
            bounded_cache.keep(self._possible, tool, cached)
        return cached

    def alias(self, tool: str, arguments: bytes) -> Alias | None:
        """The alias for a call with these arguments, a JSON object; None: it has none.

        Raises Unreadable if it is not known which of several arguments the server uses.
        """
        if not self.possible_aliases(tool):
            return None
        from ..policy import familiar_names

        types = familiar_names.types_of(arguments)
        aliases = self.aliases(tool)
        if not aliases:
            key = (tool, frozenset(types.items()))
            found = self._of_arguments.get(key)
            if found is None:
                listed = self._listed.get(tool)
                if listed is not None and listed.properties:
                    found = familiar_names.familiar_aliases(tool, types, listed.annotations)
                else:
                    found = familiar_names.aliases_of_unlisted(tool, types)
                bounded_cache.keep(self._of_arguments, key, found)
            aliases = found
        self._check_rivals(tool, aliases, types)
        action = familiar_names.action_of(aliases, arguments)
        return _combined(familiar_names.aliases_for_call(aliases, types, action))

    def _check_rivals(self, tool: str, aliases: Sequence[Alias], arguments: Mapping[str, str]) -> None:
        from ..policy import familiar_names

        listed = self._listed.get(tool)
        properties = listed.properties if listed is not None else frozenset[str]()
        rivals = familiar_names.rival_commands(aliases, arguments, properties)
        why = "a hook would judge only one of them; [tools.X] in hookproxy.toml says which one is the command"
        if not rivals and not self.aliases(tool):
            rivals = familiar_names.rival_arguments(aliases, arguments, properties)
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

        types = familiar_names.argument_types(listed.input_schema)
        return familiar_names.familiar_aliases(tool, types, listed.annotations)

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
