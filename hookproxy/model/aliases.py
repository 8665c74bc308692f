"""Aliases: the other names by which hooks know a tool and its arguments, and the translation in both directions.

Law 1: hooks see exactly one argument for each argument that the server gets. Ambiguous names are an error, never a
choice. Law 2: values keep every byte and their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ..jsonrpc import raw_json

if TYPE_CHECKING:
    from .command_line import Composed, Parts


FAMILIAR_NAMES: Final = ("Bash", "Write", "Edit", "MultiEdit", "Read", "WebFetch", "WebSearch", "Grep", "Glob", "LS")
"""The tools of Claude Code for which tools of servers can stand, as messages list them."""


_SERVER: Final = "server"
"""The argument in which Claude Code's tools for resources name the server."""


class Alias(Struct, frozen=True, dict=True):
    """The names by which hooks know one tool of the server."""

    tool: str
    """The tool's name, exactly as the server spells it."""
    name: str = ""
    """The name for hooks; empty: the usual one."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The server's name of each argument by the hooks' name, without duplicates. Other arguments have only one name."""
    alternatives: tuple[Alias, ...] = ()
    """Further aliases that fit the same call, for hooks that do not know the tool by this name."""
    preset: str = ""
    """The preset with this alias; empty: it is configured for this tool."""
    automatic: bool = False
    """It was recognised, not configured: it only adds a name."""
    needed: frozenset[str] = frozenset()
    """The server's arguments that a call has if the tool does what this name says; empty: any call does."""
    edits: str = ""
    """The server's argument that is a list of edits, each an object with an old and a new text; empty: it has none."""
    edit_texts: Mapping[str, str] = field(default_factory=dict)
    """The server's names of these texts in this call, by the hooks' names, where they differ."""
    used_by_agent: frozenset[str] = frozenset()
    """Arguments of this call for which the agent itself uses the hooks' name: they keep that name on both sides."""
    spellings: tuple[Alias, ...] = ()
    """The same alias as the hooks of other systems know it, as in `spelled`."""
    line: str = ""
    """The hooks' name of the argument that is a command line; empty: there is none."""
    parts: Parts | None = None
    """The server's arguments of which that line is made, if it is not one text; None: it always is one."""
    guessed: bool = False
    """It is known by the name of an argument alone, or by another spelling of the tool's name: it is good for refusing
    calls. A call may have no command."""
    composed: Composed | None = None
    """The command line of this call, made of `parts`; None: hooks see the arguments as they are."""
    uri: str = ""
    """The server's argument that is the URI of a resource, of which hooks see the path; empty: it has none."""
    paths: tuple[str, ...] = ()
    """The paths that this URI may mean in this call: hooks see the first."""
    given: str = ""
    """The URI of this call."""
    server: str = ""
    """The server's name, which hooks see as the argument `server`; empty: they do not."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names for hooks, the most fitting first; none if only arguments have other names."""
        return tuple(alias.name for alias in (self, *self.alternatives) if alias.name)

    @property
    def changes_arguments(self) -> bool:
        """Hooks may see other arguments by this alias than the server gets."""
        return bool(self.arguments or self.edits or self.parts or self.server)

    @cached_property
    def views(self) -> tuple[object, ...]:
        """What it depends on under which names hooks see the tool: a key for what is found out about that."""
        views = [
            (alias.name, alias.guessed, alias.changes_arguments, frozenset(alias.arguments.items()))
            for alias in (self, *self.alternatives)
        ]
        return (self.automatic, *views)

    def named(self, name: str) -> Alias:
        """The first alias by which hooks know the tool as `name`; this one if there is none."""
        return next((alias for alias in (self, *self.alternatives) if alias.name == name), self)

    def check(self, arguments: bytes) -> None:
        """Raise Unreadable or DuplicateKeys, as `for_call` does, if one of its names makes arguments ambiguous."""
        members = raw_json.fields(arguments)
        for spelling in (self, *self.spellings):
            for alias in (spelling, *spelling.alternatives):
                alias._for_members(members)

    def for_call(self, arguments: bytes) -> Alias:
        """Return the alias for a call with these arguments. Raises Unreadable, DuplicateKeys if they are ambiguous."""
        return self._for_members(raw_json.fields(arguments))

    def _for_uri(self, members: Mapping[str, msgspec.Raw]) -> Alias:
        from . import resource_paths  # only for requests about resources

        given = raw_json.text(bytes(members.get(self.uri, b"")))
        if given is None:
            raise raw_json.Unreadable(f"its {self.uri!r} is not a text")
        return replace(self, given=given, paths=resource_paths.paths(given) or (given,))

    def _for_members(self, members: Mapping[str, msgspec.Raw]) -> Alias:
        if self.uri:
            return self._for_uri(members)
        keys = members.keys()
        self._check_spelling(keys)
        given = frozenset((self.arguments.keys() - self.arguments.values()) & keys)
        for name in sorted(given):
            if self.arguments[name] in keys:
                raise raw_json.Unreadable(
                    f"its arguments {self.arguments[name]!r} and {name!r} are the same argument for its hooks"
                )
        composed = self._compose(members)
        texts = _edit_texts(bytes(members[self.edits])) if self.edits in keys else {}
        if not (given or texts or composed):
            return self
        return replace(self, used_by_agent=given, edit_texts=texts, composed=composed)

    def _compose(self, members: Mapping[str, msgspec.Raw]) -> Composed | None:
        """The command line of a call, if it is made of several arguments or of a list. Raises Unreadable."""
        if self.parts is None:
            return None
        own = self.arguments.get(self.line, self.line)
        alone = self.parts.commands == (own,) and self.parts.words == () and not self.parts.program
        if alone and bytes(members.get(own, b""))[:1] == b'"':  # true of most calls
            return None
        from .command_line import Composed, compose  # only for tools with commands

        composed = compose(members, self.parts, own)
        if composed is None and self.guessed and bytes(members.get(own, b"null")) == b"null":
            nothing = {name: b"null" for name in self.parts.commands if bytes(members.get(name, b"")) == b"null"}
            return None if self.line in members and not nothing else Composed(("",), nothing)
        return composed

    def for_hooks(self, arguments: bytes) -> bytes:
        """Return the server's arguments under the names that hooks know; `arguments` itself if nothing differs."""
        return self._for_hooks(arguments, self.composed, self.composed.lines[0] if self.composed else "")

    def readings(self, arguments: bytes) -> list[bytes]:
        """As `for_call` and `for_hooks`, once for each line that the call's command may be. Raises as `for_call`."""
        alias = self.for_call(arguments)
        if alias.paths:
            return [replace(alias, paths=(path,)).for_hooks(arguments) for path in alias.paths]
        if alias.composed is None:
            return [alias._for_hooks(arguments, None, "")]
        return [alias._for_hooks(arguments, alias.composed, line) for line in alias.composed.lines]

    def _for_hooks(self, arguments: bytes, composed: Composed | None, line: str) -> bytes:
        if self.edit_texts:
            arguments = _with_edits(arguments, self.edits, {own: name for name, own in self.edit_texts.items()})
        names = {self.arguments[name]: name for name in self.arguments.keys() - self.used_by_agent}
        if self.paths or self.server:
            return self._about_resource(arguments, names)
        if composed is None:
            return _renamed(arguments, names)
        members = raw_json.fields(arguments)
        first = next((name for name in members if name in composed.arguments), "")
        shown: dict[str, object] = {}
        others = 0
        for key, value in members.items():
            if key == first:
                shown[self.line] = line
            elif key not in composed.arguments and not (key == self.line and bytes(value) == b"null"):
                shown[names.get(key, key)] = value
                others += 1
        if len(shown) < others + bool(first):
            raise raw_json.DuplicateKeys(self.line)
        return raw_json.encode(shown if first else {self.line: line, **shown})

    def for_server(self, arguments: bytes) -> bytes:
        """Return a hook's arguments under the server's names. Raises ValueError if they are ambiguous."""
        keys = raw_json.fields(arguments).keys()
        self._check_spelling(keys)
        for name, own in self.arguments.items():
            if own in keys and own not in self.arguments:
                raise raw_json.Unreadable(f"{own!r} is the tool's own name for {name!r}")
        names = {name: self.arguments[name] for name in self.arguments.keys() - self.used_by_agent}
        if self.paths or self.server:
            return self._for_resource(arguments, names)
        if self.composed is not None:
            return self._divided(arguments, self.composed, names)
        renamed = _renamed(arguments, names)
        return _with_edits(renamed, self.edits, self.edit_texts) if self.edit_texts else renamed

    def _about_resource(self, arguments: bytes, names: Mapping[str, str]) -> bytes:
        """The arguments of a request about a resource, with the path in place of its URI, and with the server."""
        if self.paths:
            arguments = raw_json.with_member(arguments, self.uri, raw_json.encode(self.paths[0]))
        renamed = _renamed(arguments, names)
        if not self.server:
            return renamed
        return raw_json.with_member(renamed, names.get(_SERVER, _SERVER), raw_json.encode(self.server))

    def _for_resource(self, arguments: bytes, names: Mapping[str, str]) -> bytes:
        """A hook's arguments about a resource with its URI, and without the server. Raises Unreadable."""
        if self.server:
            own = next((name for name, of_server in names.items() if of_server == _SERVER), _SERVER)
            given = raw_json.fields(arguments).get(own)
            if given is not None and raw_json.text(bytes(given)) != self.server:
                raise raw_json.Unreadable(f"{own!r} cannot be another server")
            arguments = raw_json.without_member(arguments, own) if given is not None else arguments
        renamed = _renamed(arguments, names)
        if not self.paths:
            return renamed
        path = raw_json.text(bytes(raw_json.fields(renamed).get(self.uri, b"")))
        if path is None:
            raise raw_json.Unreadable(f"{self.uri!r} is not a text")
        from . import resource_paths

        uri = self.given if path == self.paths[0] else resource_paths.with_path(self.given, path)
        return raw_json.with_member(renamed, self.uri, raw_json.encode(uri))

    def _divided(self, arguments: bytes, composed: Composed, names: Mapping[str, str]) -> bytes:
        """A hook's arguments with the command line in the parts of which it was made. Raises Unreadable."""
        from .command_line import Parts, divide

        members: dict[str, msgspec.Raw] = {}
        for key, value in raw_json.fields(arguments).items():
            if key != self.line:
                parts = {names.get(key, key): value}
            elif (line := raw_json.text(value)) is not None:
                parts = divide(line, composed, self.parts or Parts(()))
            else:
                raise raw_json.Unreadable(f"{key!r} is not a text")
            for name, part in parts.items():
                if name in members or (key != self.line and name in composed.arguments):
                    raise raw_json.Unreadable(f"{name!r} is a part of {self.line!r}")
                members[name] = part
        return raw_json.encode(members)

    def _check_spelling(self, keys: Set[str]) -> None:
        """Raise Unreadable for a name that readers who ignore case or stop at NUL take for a known one."""
        known = {*self.arguments, *self.arguments.values()}
        if not known or keys <= known:  # true of most calls
            return
        by_folded_key = {raw_json.folded_key(name): name for name in known}
        for key in keys:
            if key not in known and (meant := by_folded_key.get(raw_json.folded_key(key))) is not None:
                raise raw_json.Unreadable(f"the argument {key!r} may be taken for {meant!r}")


def with_command_line(alias: Alias, arguments: Iterable[str] | None = None) -> Alias:
    """The alias so that hooks see one command line if it is Bash; `arguments` are those that are listed, if known."""
    if alias.name != "Bash" or alias.parts is not None:
        return alias
    from .command_line import Parts, is_code, shell_arguments, word_arguments

    own = alias.arguments.get("command", "command")
    words: tuple[str, ...] | None = ()
    if not is_code(own):
        words = None if arguments is None else word_arguments(arguments)
    shell = shell_arguments(arguments or ())
    return replace(alias, line="command", parts=Parts((own,), words, shell=shell))


_TEXTS_OF_EDITS: Final = {
    age + kind: f"{age}_string" for age in ("old", "new") for kind in ("string", "text", "str", "content", "code")
}
"""How servers spell the two texts of an edit, without case, `_` and `-`, and how hooks know them."""


def _edit_texts(edits: bytes) -> dict[str, str]:
    """The server's names of the texts in a list of edits. Raises Unreadable if two names stand for the same text."""
    names: dict[str, str] = {}
    for item in _objects(edits):
        of_item: dict[str, str] = {}
        for key in raw_json.fields(item):
            name = _TEXTS_OF_EDITS.get(raw_json.folded_key(key).replace("_", "").replace("-", ""), "")
            if name and (of_item.setdefault(name, key) != key or names.setdefault(name, key) != key):
                raise raw_json.Unreadable(f"its edits have {names[name]!r} and {key!r}, the same text for its hooks")
    return {name: own for name, own in names.items() if name != own}


def _with_edits(arguments: bytes, argument: str, names: Mapping[str, str]) -> bytes:
    """Rename the members of each object in a list. Raises Unreadable, DuplicateKeys."""
    listed = raw_json.fields(arguments).get(argument)
    if listed is None or not _objects(bytes(listed)):
        return arguments
    items = map(bytes, raw_json.items(listed))
    renamed = b",".join(_renamed(item, names) if item.startswith(b"{") else item for item in items)
    return raw_json.with_member(arguments, argument, b"[%b]" % renamed)


def _objects(array: bytes) -> list[bytes]:
    """The objects among the items, if this is an array. Raises Unreadable."""
    if not array.startswith(b"["):
        return []
    return [item for item in map(bytes, raw_json.items(array)) if item.startswith(b"{")]


class ToolSpelling(Struct, frozen=True):
    """How some system spells a tool that does what one of Claude Code's tools does."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Its name of each argument by Claude Code's name. Other arguments have the same name in both."""
    of_claude: bool = False
    """It is Claude Code's own name, by which hooks of this system may know the tool as well."""


ToolSpellings = Mapping[str, tuple[ToolSpelling, ...]]
"""A system's spellings of familiar tools, by Claude Code's name. Empty: it has Claude Code's names."""


def with_claude_names(spellings: ToolSpellings) -> ToolSpellings:
    """Return the spellings of a system whose hooks may know each tool by Claude Code's name, too: as the last one."""
    return {known: (*of_tool, ToolSpelling(known, of_claude=True)) for known, of_tool in spellings.items()}


def spelled(alias: Alias, spellings: ToolSpellings) -> Alias:
    """Return the alias under the names that the hooks of another system know.

    A configured name stays as a further alternative, because a person may have written it for just these hooks. It
    comes first if these hooks may know the tool by Claude Code's name.
    """
    spellings_of_tool: list[Alias] = []
    for known in (alias, *alias.alternatives):
        plain = replace(known, alternatives=(), spellings=())
        of_system = spellings.get(known.name, ())
        if not (known.automatic or known.preset):  # a person has written this name
            of_system = tuple(sorted(of_system, key=lambda spelling: not spelling.of_claude))
        spellings_of_tool += [_spelled(plain, spelling) for spelling in of_system]
        if not (known.automatic and of_system):
            spellings_of_tool.append(plain)
    return replace(spellings_of_tool[0], alternatives=tuple(spellings_of_tool[1:]))


def spelled_names(names: Iterable[str], spellings: ToolSpellings) -> dict[str, str]:
    """Return Claude Code's name of each tool by a system's own names for it."""
    if not spellings:
        return {name: name for name in names}
    return {spelling.name: name for name in names for spelling in spellings.get(name, ())}


def _spelled(alias: Alias, spelling: ToolSpelling) -> Alias:
    known = (*spelling.arguments, *alias.arguments)
    names = {spelling.arguments.get(name, name): alias.arguments.get(name, name) for name in known}
    arguments = {name: own for name, own in names.items() if name != own}
    return replace(alias, name=spelling.name, arguments=arguments, line=spelling.arguments.get(alias.line, alias.line))


def for_hooks(alias: Alias | None, arguments: bytes) -> bytes:
    """As `Alias.for_hooks`; without an alias, return `arguments` itself."""
    return arguments if alias is None else alias.for_hooks(arguments)


def for_server(alias: Alias | None, arguments: bytes) -> bytes:
    """As `Alias.for_server`; without an alias, return `arguments` itself."""
    return arguments if alias is None else alias.for_server(arguments)


def _renamed(arguments: bytes, names: Mapping[str, str]) -> bytes:
    """Rename the members of an object. Raises Unreadable, DuplicateKeys."""
    members = raw_json.fields(arguments) if names else {}
    if members.keys().isdisjoint(names):
        return arguments
    renamed: dict[str, msgspec.Raw] = {}
    for key, value in members.items():
        name = names.get(key, key)
        if name in renamed:
            raise raw_json.DuplicateKeys(name)
        renamed[name] = value
    return raw_json.encode(renamed)
