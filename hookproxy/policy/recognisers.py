"""A recogniser for each familiar name: do a tool's arguments fit it, and which argument is which?

The names of arguments are in `familiar_names.toml`. A recogniser gets what is known of the tool, and gives the aliases
that fit. `RECOGNISERS` has them, the most specific first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import Alias
from . import command_tools
from .tool_names import TABLE, is_editor, plain

COMMAND: Final = TABLE.arguments["command"]
PATH: Final = TABLE.arguments["path"]
CONTENT: Final = TABLE.arguments["content"]
NEW: Final = TABLE.arguments["new"]
EDITS: Final = TABLE.arguments["edits"]
URL: Final = TABLE.arguments["url"]
_OLD: Final = TABLE.arguments["old"]
_DIRECTORY: Final = TABLE.arguments["directory"]
_PATTERN: Final = TABLE.arguments["pattern"]
_NAME_PATTERN: Final = TABLE.arguments["name_pattern"]
_FILE_FILTER: Final = TABLE.arguments["file_filter"]
_QUERY: Final = TABLE.arguments["query"]
_ABOUT_CONTENT: Final = frozenset(TABLE.arguments["about_content"])
_REMOTE: Final = frozenset(TABLE.arguments["remote"])
_NOT_FETCHED: Final = frozenset(TABLE.arguments["not_fetched"])
_SEARCHES_CONTENT: Final = frozenset({"code", "text", "content", "regex", "pattern", "in", "grep"})
"""Words of tools that search in files, not for their names."""


class KnownTool(Struct, frozen=True):
    """What is known of a tool."""

    name: str
    words: Sequence[str]
    types: Mapping[str, str]
    """The JSON types of its arguments; "" for an unknown one."""
    names: Mapping[str, str]
    """Its arguments by their `plain` names."""
    required: frozenset[str] | None = None
    """The `plain` names of the arguments that every call has; None: not known, so it may be all of them."""

    @property
    def is_clear(self) -> bool:
        """False if two arguments are two spellings of one name: it is not known which one the server uses."""
        return len(self.names) == len(self.types)

    @property
    def is_editor(self) -> bool:
        """True if it views, creates and edits files."""
        return is_editor(self.words)

    @property
    def local_path(self) -> str:
        """The argument that is a path on this machine; empty: there is none."""
        return self.named(PATH) if self.lacks(_REMOTE) else ""

    def lacks(self, names: frozenset[str]) -> bool:
        """True if no argument that rules a name out is one of these."""
        return names.isdisjoint(self.names if self.required is None else self.required)

    def named(self, names: Iterable[str], kind: str = "string") -> str:
        """The tool's own name of the first of these arguments that has this type or an unknown one; empty: none."""
        own_names = (self.names[name] for name in names if name in self.names)
        return next((own for own in own_names if self.types[own] in (kind, "")), "")

    def aliases(
        self, name: str, required: Mapping[str, str], optional: Mapping[str, str] | None = None
    ) -> tuple[Alias, ...]:
        """The alias, by hooks' name of each argument, if it has all that are required.

        None where a name would have two meanings.
        """
        if not all(required.values()):
            return ()
        own_names = dict(required)
        for known, own in (optional or {}).items():
            if own and known not in self.types and own not in own_names.values():
                own_names[known] = own
        renamed = {known: own for known, own in own_names.items() if known != own}
        if len(set(own_names.values())) < len(own_names) or any(known in self.types for known in renamed):
            return ()
        if renamed and self._is_confusable({*renamed, *renamed.values()}):
            return ()
        return (Alias(self.name, name, renamed, automatic=True, needed=frozenset(required.values())),)

    def _is_confusable(self, known: set[str]) -> bool:
        """True if another argument may be taken for one of these: a call with it would be refused for the alias."""
        folded = {raw_json.folded_key(name) for name in known}
        return any(name not in known and raw_json.folded_key(name) in folded for name in self.types)


def known_tool(
    name: str, words: Sequence[str], types: Mapping[str, str], required: frozenset[str] | None = None
) -> KnownTool:
    """Return what is known of a tool; the `required` arguments by their plain names."""
    return KnownTool(name, words, types, {plain(own): own for own in types}, required)


def bash_aliases(tool: KnownTool, *, listed: bool = True) -> Sequence[Alias]:
    """Every argument with a command gives an alias: a call usually has one of them (see `rival_commands`).

    Also for a tool that is not clear: a command under another spelling is a command.
    """
    if not tool.lacks(command_tools.DATABASE_ARGUMENTS):
        return ()
    named = {own: None for name in COMMAND for own in tool.types if plain(own) == name}
    texts = [own for own in named if tool.types[own] in command_tools.TEXTS or not listed]
    commands = list(dict.fromkeys([*texts, *command_tools.named_commands(tool.types, listed=listed)]))
    if not commands and not command_tools.has_words_alone(tool.types):
        return ()
    optional = {
        "timeout": _spelled(tool.types, ("timeoutms",), "number"),
        "run_in_background": _spelled(tool.types, ("isbackground", "background"), "boolean"),
    }
    return list(command_tools.command_aliases(tool.name, commands, tool.types, optional, listed=listed))


def _spelled(types: Mapping[str, str], names: Sequence[str], kind: str) -> str:
    """The first argument with one of these names and this type or an unknown one, of several spellings; empty: none."""
    return next((own for own, own_kind in types.items() if own_kind in (kind, "") and plain(own) in names), "")


def _edits(tool: KnownTool) -> Iterable[Alias]:
    path, old, new = tool.local_path, tool.named(_OLD), tool.named(NEW)
    replace_all = {"replace_all": tool.named(("replaceall",), "boolean")}
    for edit in tool.aliases("Edit", {"file_path": path, "old_string": old, "new_string": new}, replace_all):
        # a call that deletes text may have no new one, and one that inserts has no old one
        yield replace(edit, needed=frozenset({path, old}))
        inserted = tool.named(("insertline", "inserttext"), "number") or tool.named(("inserttext",))
        for own in (new, inserted):
            if own and tool.is_editor:
                yield replace(edit, needed=frozenset({path, own}))


def edits_of_a_part(tool: KnownTool) -> Iterable[Alias]:
    """The alias of a tool that writes a part of a file, without the old text."""
    text = tool.named(("codeedit", *NEW, *CONTENT))
    return tool.aliases("Edit", {"file_path": tool.local_path, "new_string": text})


def _multi_edits(tool: KnownTool) -> Iterable[Alias]:
    edits = tool.named(EDITS, "array")
    if tool.types.get(edits) == "array":
        for alias in tool.aliases("MultiEdit", {"file_path": tool.local_path, "edits": edits}):
            yield replace(alias, edits=edits)
            yield replace(alias, edits=edits, name="Edit")


def _writes(tool: KnownTool) -> Iterable[Alias]:
    if tool.named(NEW) and not tool.is_editor:
        return ()
    return tool.aliases("Write", {"file_path": tool.local_path, "content": tool.named(CONTENT)})


def _reads(tool: KnownTool) -> Iterable[Alias]:
    writes = tool.named(CONTENT) or tool.named(NEW)
    if not tool.named(("viewrange",), "array") if tool.is_editor else writes:
        return ()
    return tool.aliases("Read", {"file_path": tool.local_path})


def _lists_directory(tool: KnownTool) -> Iterable[Alias]:
    if not tool.lacks(_REMOTE) or tool.named(CONTENT):
        return ()
    return tool.aliases("LS", {"path": tool.named(_DIRECTORY)})


def _globs(tool: KnownTool) -> Iterable[Alias]:
    pattern = tool.named(_NAME_PATTERN)
    beside = _ABOUT_CONTENT.intersection(name for name, own in tool.names.items() if own != pattern)
    if not tool.lacks(_REMOTE) or (beside and "glob" not in tool.words):
        return ()
    return tool.aliases("Glob", {"pattern": pattern}, {"path": tool.named(_DIRECTORY)})


def _greps(tool: KnownTool) -> Iterable[Alias]:
    pattern, place, files = tool.named(_PATTERN), tool.named(_DIRECTORY), tool.named(_FILE_FILTER)
    if not tool.lacks(_REMOTE) or not ("grep" in tool.words or place or files):
        return ()
    beside = _ABOUT_CONTENT.intersection(name for name, own in tool.names.items() if own != pattern)
    if not beside and _SEARCHES_CONTENT.isdisjoint(tool.words):
        return ()  # search_files: by their names
    return tool.aliases("Grep", {"pattern": pattern}, {"path": place, "glob": files})


def _fetches(tool: KnownTool) -> Iterable[Alias]:
    return tool.aliases("WebFetch", {"url": tool.named(URL)}) if tool.lacks(_NOT_FETCHED) else ()


def _searches_web(tool: KnownTool) -> Iterable[Alias]:
    return tool.aliases("WebSearch", {"query": tool.named(_QUERY)})


class Recogniser(Struct, frozen=True):
    """How one familiar name is recognised."""

    aliases: Callable[[KnownTool], Iterable[Alias]]
    needed: tuple[Sequence[str], ...]
    """The arguments by which it is recognised, each with the plain names that it may have."""
    ruled_out_by: frozenset[str] = _REMOTE
    """Arguments that say that something else is meant, by their plain names."""


RECOGNISERS: Final[Mapping[str, Recogniser]] = {
    "MultiEdit": Recogniser(_multi_edits, (PATH, EDITS)),
    "Edit": Recogniser(_edits, (PATH, _OLD, NEW)),
    "Write": Recogniser(_writes, (PATH, CONTENT), _REMOTE.union(NEW)),
    "Bash": Recogniser(bash_aliases, (COMMAND,)),
    "Read": Recogniser(_reads, (PATH, ("viewrange",)), _REMOTE.union(CONTENT, NEW)),
    "Glob": Recogniser(_globs, (_NAME_PATTERN, _DIRECTORY), _REMOTE | _ABOUT_CONTENT),
    "Grep": Recogniser(_greps, (_PATTERN, _DIRECTORY, _FILE_FILTER)),
    "LS": Recogniser(_lists_directory, (_DIRECTORY,), _REMOTE.union(CONTENT)),
    "WebFetch": Recogniser(_fetches, (URL,), _NOT_FETCHED),
    "WebSearch": Recogniser(_searches_web, (_QUERY,)),
}
