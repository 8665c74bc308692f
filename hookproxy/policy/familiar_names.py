"""Recognises tools that do what a tool of Claude Code does, by their names and arguments.

`tool_names` says which familiar names a tool may get by its own name, `recognisers` whether its arguments fit them, and
`alias_choice` which of its aliases a call gets. Tools are recognised in three ways here: by tools/list
(`listed_aliases`), by a call of a tool whose arguments are not listed (`aliases_of_unlisted`), and by what a call has
beside the listed arguments (`aliases_of_open`).

Adds names, never takes one away (law 4): hooks that match a tool's own name run as before. Nothing here knows a server;
`presets` does. Where a name and its arguments do not clearly say what a tool does, it gets no familiar name, because
rules and hooks that allow `Read` would then allow something else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..model.aliases import Alias
from . import command_tools
from .alias_choice import ACTIONS, spellings
from .recognisers import COMMAND, EDITS, PATH, RECOGNISERS, bash_aliases, edits_of_a_part, known_tool
from .tool_arguments import ToolArguments
from .tool_names import is_editor, names_for, plain, words_of, writes_a_part

_READ_ONLY: Final = frozenset({"Read", "LS", "Glob", "Grep", "WebSearch"})
"""Names of tools that only read: people often allow every call of them."""


def possible_names(tool: str) -> frozenset[str]:
    """The familiar names that a tool of this name may get, whatever its arguments are: never fewer than it gets.

    `may_be_command` says for which other tools arguments may add `Bash`.
    """
    return frozenset(names_for(words_of(tool)))


def may_be_command(tool: str) -> bool:
    """True if a tool of this name is Bash where an argument is named like a command."""
    return bool(command_tools.guessed_aliases(tool, words_of(tool), {"shell_command": "string"}))


def familiar_aliases(
    tool: str, arguments: Mapping[str, str], annotations: bytes = b"", required: Collection[str] | None = None
) -> tuple[Alias, ...]:
    """Return the aliases that fit a tool with these arguments (JSON type by name), the most specific first.

    Several, where one tool does several things: `aliases_for_call` chooses by a call's arguments.
    A list of edits is both `MultiEdit` and `Edit`. An empty type stands for an unknown one.
    An argument that says that something else is meant rules a name out only if it is `required`: the agent chooses the
    others. None: not known, so each of them does.

    Annotations are what the server says of itself, so they only ever make recognition stricter where a familiar name
    may allow a call: for a tool that says that it destroys, names of tools that only read are good for refusing alone.
    """
    words = words_of(tool)
    possible = names_for(words)
    if not possible or not arguments:
        return ()
    plain_required = None if required is None else frozenset(map(plain, required))
    aliases = _recognised(tool, words, arguments, possible)
    if not aliases and plain_required is not None:
        aliases = _recognised(tool, words, arguments, possible, plain_required)
    if "Bash" in possible and not _has_bash(aliases):  # two of its arguments have the same name
        aliases += bash_aliases(known_tool(tool, words, arguments, plain_required))
    if b"destructiveHint" in annotations and _destroys(annotations):
        aliases = [replace(alias, guessed=True) if alias.name in _READ_ONLY else alias for alias in aliases]
    return tuple(aliases)


def _recognised(
    tool: str,
    words: Sequence[str],
    arguments: Mapping[str, str],
    possible: Collection[str],
    required: frozenset[str] | None = None,
) -> list[Alias]:
    aliases: list[Alias] = []
    for name, recogniser in RECOGNISERS.items():
        if name in possible:
            counting = arguments
            if required is not None:
                counting = {
                    own: kind
                    for own, kind in arguments.items()
                    if plain(own) in required or plain(own) not in recogniser.ruled_out_by
                }
            known = known_tool(tool, words, counting, required)
            aliases += recogniser.aliases(known) if known.is_clear else ()
    if not aliases and writes_a_part(words):
        known = known_tool(tool, words, arguments, required)
        aliases += edits_of_a_part(known) if known.is_clear else ()
    return aliases


def listed_aliases(tool: str, arguments: ToolArguments, annotations: bytes = b"") -> tuple[Alias, ...]:
    """Return the aliases of a tool whose arguments are listed, with `Bash` where it may run commands: to refuse them.

    Calls have no say in this: an agent chooses what it sends.
    """
    aliases = familiar_aliases(tool, arguments.types, annotations, arguments.required or ())
    if _has_bash(aliases) or _has_actions(tool, arguments.types):
        return aliases
    words, required = words_of(tool), arguments.required or ()
    guessed = command_tools.guessed_aliases(
        tool, words, arguments.types, arguments.choices, required, nested=arguments.nested
    )
    return (*aliases, *guessed)


def _has_bash(aliases: Iterable[Alias]) -> bool:
    return any(alias.name == "Bash" for alias in aliases)


def _has_actions(tool: str, arguments: Iterable[str]) -> bool:
    """One tool that views, creates and edits files: its `command` says which of these."""
    return is_editor(words_of(tool)) and not {plain(own) for own in arguments}.isdisjoint(PATH)


def is_left_out(tool: str, arguments: ToolArguments) -> bool:
    """True for a tool that looks like one that runs commands, and is not Bash: for a database, in another language."""
    types = {own: kind for own, kind in arguments.types.items() if own not in arguments.choices}
    if _has_actions(tool, arguments.types) or listed_aliases(tool, arguments):
        return False
    return command_tools.looks_like_command(words_of(tool), types)


def aliases_of_open(tool: str, arguments: Mapping[str, str], nested: Sequence[str]) -> tuple[Alias, ...]:
    """Return the alias as `Bash`, to refuse, of a call that has arguments which its tool does not list.

    `arguments` are those alone, `nested` those of them that hold a command.
    """
    words = words_of(tool)
    if "Bash" in names_for(words):
        nested = [
            own for own, kind in arguments.items() if own in nested or (kind == "object" and plain(own) in COMMAND)
        ]
    return tuple(command_tools.guessed_aliases(tool, words, arguments, nested=nested, listed=False))


def aliases_of_unlisted(tool: str, arguments: Mapping[str, str], nested: Sequence[str] = ()) -> tuple[Alias, ...]:
    """As `familiar_aliases`, for a tool whose arguments only a call shows: the agent chooses them.

    So no argument rules a name out: each name is recognised by the arguments that it needs, and the others are ignored.
    `nested` ones hold a command.
    """
    words = words_of(tool)
    possible = names_for(words)
    by_name = spellings(arguments)
    aliases: list[Alias] = []
    for name, recogniser in RECOGNISERS.items():
        if name == "Bash" and name in possible:
            aliases += bash_aliases(known_tool(tool, words, arguments, frozenset()), listed=False)
        elif name in possible:
            shown = known_tool(tool, words, _of_any_type(_shown(arguments, by_name, recogniser.needed)))
            aliases += recogniser.aliases(shown) if shown.types and shown.is_clear else ()
    if is_editor(words) and any(arguments.get(name) == "string" for name in ACTIONS):
        shown = known_tool(tool, words, _shown(arguments, by_name, (PATH,)))
        if all(alias.name != "Read" for alias in aliases):
            aliases += shown.aliases("Read", {"file_path": shown.local_path})
    aliases = aliases or list(familiar_aliases(tool, arguments))
    if _has_bash(aliases) or _has_actions(tool, arguments):
        return tuple(aliases)
    return (*aliases, *command_tools.guessed_aliases(tool, words, arguments, nested=nested, listed=False))


def _of_any_type(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments as if each had the type that it needs: an agent that has sent another one takes no name away."""
    return {own: "array" if plain(own) in EDITS else "" for own in arguments}


def _shown(
    arguments: Mapping[str, str], by_name: Mapping[str, Sequence[str]], needed: Iterable[Sequence[str]]
) -> dict[str, str]:
    """The first argument of each of these meanings, a string if there is one."""
    shown: dict[str, str] = {}
    for names in needed:
        spelled = [own for name in names for own in by_name.get(name, ()) if own not in shown]
        spelled.sort(key=lambda own: arguments[own] not in ("string", ""))
        shown.update((own, arguments[own]) for own in spelled[:1])
    return shown


def _destroys(annotations: bytes) -> bool:
    try:
        hints = msgspec.json.decode(annotations, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return bytes(hints.get("destructiveHint", b"")) == b"true" and bytes(hints.get("readOnlyHint", b"")) != b"true"
