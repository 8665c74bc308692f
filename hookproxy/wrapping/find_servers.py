"""Finds the servers in an agent's configuration, and where the parts of each stand that wrapping edits.

An entry that is not understood is an error, never passed over: its server would run without hooks (law 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ..model.errors import ConfigError
from .known_agents import NAMES, REMOTE, SHAPES
from .syntax_tree import Leaf, Listing, Mapping, Member, Shape, Syntax, Tree, plain, shown, where

_ENVIRONMENT: Final = ("env", "environment", "envs")


class NoServers(ConfigError):
    """A file that is no agent's configuration, or one's settings in which nothing about servers is said."""


class Kind(StrEnum):
    """What an entry does."""

    STARTED = "started"
    REMOTE = "remote"
    OTHER = "other"
    """The agent's own, or an extension's: there is no command in the file."""


class Entry(Struct, frozen=True):
    """One server in a configuration, and where the parts stand that wrapping edits."""

    name: str
    place: str
    """The keys to it, for people and terminals: `mcpServers.git`."""
    start: int
    """Where its name stands in the text; less than 0 where that is not known."""
    kind: Kind
    disabled: bool = False
    also_remote: bool = False
    """It has an address as well, which some agents prefer."""
    argv: tuple[str, ...] = ()
    """What the agent starts; empty where it starts nothing."""
    inside: Mapping | None = None
    """What holds the command."""
    command: Member | None = None
    args: Member | None = None
    args_key: str = "args"
    for_python: bool = False
    """Its environment has variables that Python reads: ours, too, where that is not prevented."""

    @property
    def listing(self) -> Listing | None:
        """The list that our words are put into."""
        member = self.args if self.args is not None else self.command
        return member.value if member is not None and isinstance(member.value, Listing) else None

    @property
    def whole(self) -> bool:
        """True if the command is the first item of the list."""
        return self.command is not None and isinstance(self.command.value, Listing)


def servers(path: str, text: str, tree: Mapping, syntax: Syntax) -> list[Entry]:
    """Every server of a file. Raises ConfigError for a file that holds none, or one that is not understood."""
    found: list[Entry] = []
    known = False
    for shape in SHAPES[syntax.name]:
        last_resort = shape.path == ("mcp",)
        if last_resort and known:
            continue
        for keys, table in _at(tree, shape.path, ()):
            known = True
            found += [
                _entry(path, text, shown(".".join((*keys, member.key))), member, shape)
                for member in table.members
                if not last_resort or isinstance(member.value, Mapping)  # Gemini CLI has settings of that name
            ]
    if not known:
        raise NoServers(path, "holds no servers in any way that is known here", f"known: {NAMES}")
    return found


def _at(tree: Tree, path: tuple[str, ...], keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping]]:
    """The mappings at the end of a path of keys."""
    if not isinstance(tree, Mapping):
        return
    if not path:
        yield keys, tree
        return
    for member in tree.members:
        if path[0] in (member.key, "*"):
            yield from _at(member.value, path[1:], (*keys, member.key))


def _entry(path: str, text: str, place: str, member: Member, shape: Shape) -> Entry:
    server = member.value

    def wrong(message: str) -> ConfigError:
        return ConfigError(where(path, text, member.start), message, 'write "command": "PROGRAM", "args": ["…"]')

    if not isinstance(server, Mapping):
        raise wrong(f"{place} must hold a server: a command and its arguments, or an address")
    values = {each.key: plain(each.value) for each in server.members}
    disabled = values.get("disabled") is True or values.get("enabled") is False
    remote = any(values.get(key) for key in REMOTE)
    command = server.get(shape.command)
    if command is not None and isinstance(command.value, Mapping):  # Zed, once: {"path": …, "args": …}
        server, shape = command.value, Shape(shape.path, command="path", args=shape.args)
        command = server.get("path")
    if command is None or not plain(command.value):
        kind = Kind.REMOTE if remote else Kind.OTHER
        return Entry(member.key, place, member.start, kind, disabled)
    args = None if isinstance(command.value, Listing) else server.get(shape.args)
    words = _words(command.value)
    if not words:
        raise wrong(f"{place}.{command.key} must be a string, or a list of strings")
    if args is not None:
        if not isinstance(args.value, Listing) or (more := _words(args.value)) is None:
            raise wrong(f"{place}.{args.key} must be a list of strings")
        words += more
    return Entry(
        member.key,
        place,
        member.start,
        Kind.STARTED,
        disabled,
        remote,
        words,
        server,
        command,
        args,
        args_key=shape.args,
        for_python=_for_python(member.value) or _for_python(server),
    )


def _for_python(server: Tree) -> bool:
    """True if a variable of the server's environment is one that Python reads."""
    found = (
        [member.value for member in server.members if member.key in _ENVIRONMENT] if isinstance(server, Mapping) else []
    )
    return any(name.startswith("PYTHON") for tree in found if isinstance(value := plain(tree), dict) for name in value)


def _words(tree: Tree) -> tuple[str, ...] | None:
    """A string, or the strings of a list; None for anything else."""
    leaves = tree.items if isinstance(tree, Listing) else (tree,)
    values = [leaf.value if isinstance(leaf, Leaf) else None for leaf in leaves]
    strings = tuple(value for value in values if isinstance(value, str))
    return strings if len(strings) == len(values) else None
