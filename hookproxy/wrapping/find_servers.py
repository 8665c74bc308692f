"""Finds the servers in an agent's configuration, and the positions of the parts that wrapping edits.

An entry that is not understood is an error, and is never skipped: its server would run without hooks (law 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..model.errors import ConfigError
from .known_agents import KNOWN_KEYS, REMOTE_KEYS, SHAPES
from .syntax_tree import Leaf, ListNode, MappingNode, Member, Shape, Syntax, Tree, location, plain_value, printable_name

_ENVIRONMENT: Final = ("env", "environment", "envs")


class NoServers(ConfigError):
    """A file that is not an agent's configuration, or settings of an agent that do not mention servers."""


class Kind(StrEnum):
    """How the agent gets the server of an entry."""

    STARTED = "started"
    REMOTE = "remote"
    OTHER = "other"
    """It belongs to the agent itself or to an extension: the file has no command for it."""


class Entry(Struct, frozen=True):
    """One server in a configuration, with the positions of the parts that wrapping edits."""

    name: str
    key_path: str
    """The keys that lead to it, for people: `mcpServers.git`."""
    start: int
    """The position of its name in the text; less than 0 if it is not known."""
    kind: Kind
    disabled: bool = False
    also_remote: bool = False
    """True if it also has an address, which some agents prefer."""
    argv: tuple[str, ...] = ()
    """The command line that the agent starts; empty if it starts none."""
    parent: MappingNode | None = None
    """The mapping that contains the command."""
    command: Member | None = None
    args: Member | None = None
    args_key: str = "args"
    for_python: bool = False
    """True if its environment has variables that Python reads: hookproxy's own Python must ignore them."""
    shape: Shape = Shape(())
    body: MappingNode | None = None
    """The whole entry."""

    @property
    def values(self) -> dict[str, object]:
        """All values of the entry."""
        value = plain_value(self.body) if self.body is not None else None
        return value if isinstance(value, dict) else {}

    @property
    def list_node(self) -> ListNode | None:
        """The list into which the words of hookproxy are inserted."""
        member = self.args if self.args is not None else self.command
        return member.value if member is not None and isinstance(member.value, ListNode) else None

    @property
    def command_is_list(self) -> bool:
        """True if the command is the first item of the list."""
        return self.command is not None and isinstance(self.command.value, ListNode)


def servers(path: str, text: str, tree: MappingNode, syntax: Syntax) -> list[Entry]:
    """Every server of a file. Raises ConfigError if the file has no servers, or one that is not understood."""
    entries: list[Entry] = []
    any_found = False
    for shape in SHAPES[syntax.name]:
        last_resort = shape.path == ("mcp",)
        if last_resort and any_found:
            continue
        for keys, servers_table in _mappings_at(tree, shape.path, ()):
            any_found = True
            entries += [
                _entry(path, text, printable_name(".".join((*keys, member.key))), member, shape)
                for member in servers_table.members
                if not last_resort or isinstance(member.value, MappingNode)  # Gemini CLI has settings of that name
            ]
    if not any_found:
        raise NoServers(path, "has no servers under any known key", f"known keys: {KNOWN_KEYS}")
    return entries


def _mappings_at(
    tree: Tree, path: tuple[str, ...], keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], MappingNode]]:
    """The mappings at the end of a path of keys."""
    if not isinstance(tree, MappingNode):
        return
    if not path:
        yield keys, tree
        return
    for member in tree.members:
        if path[0] in (member.key, "*"):
            yield from _mappings_at(member.value, path[1:], (*keys, member.key))


def _entry(path: str, text: str, key_path: str, member: Member, shape: Shape) -> Entry:
    server = member.value

    def error(message: str) -> ConfigError:
        return ConfigError(location(path, text, member.start), message, 'write "command": "PROGRAM", "args": ["…"]')

    if not isinstance(server, MappingNode):
        raise error(f"{key_path} must hold a server: a command and its arguments, or an address")
    values = {member.key: plain_value(member.value) for member in server.members}
    remote = any(values.get(key) for key in REMOTE_KEYS)
    body, command = server, server.get(shape.command)
    if command is not None and isinstance(command.value, MappingNode):  # Zed, once: {"path": …, "args": …}
        server, shape = command.value, Shape(shape.path, command="path", args=shape.args)
        command = server.get("path")
    entry = Entry(
        member.key,
        key_path,
        member.start,
        Kind.REMOTE if remote else Kind.OTHER,
        disabled=values.get("disabled") is True or values.get("enabled") is False,
        args_key=shape.args,
        for_python=_for_python(body) or _for_python(server),
        shape=shape,
        body=body,
    )
    if command is None or not plain_value(command.value):
        return entry
    args = None if isinstance(command.value, ListNode) else server.get(shape.args)
    argv = _strings(command.value)
    if not argv:
        raise error(f"{key_path}.{command.key} must be a string, or a list of strings")
    if args is not None:
        if not isinstance(args.value, ListNode) or (args_strings := _strings(args.value)) is None:
            raise error(f"{key_path}.{args.key} must be a list of strings")
        argv += args_strings
    return replace(entry, kind=Kind.STARTED, also_remote=remote, argv=argv, parent=server, command=command, args=args)


def _for_python(server: MappingNode) -> bool:
    """True if a variable of the server's environment is one that Python reads."""
    variables = [plain_value(member.value) for member in server.members if member.key in _ENVIRONMENT]
    return any(name.startswith("PYTHON") for value in variables if isinstance(value, dict) for name in value)


def _strings(tree: Tree) -> tuple[str, ...] | None:
    """A single string, or the strings of a list; None for anything else."""
    leaves = tree.items if isinstance(tree, ListNode) else (tree,)
    values = [leaf.value if isinstance(leaf, Leaf) else None for leaf in leaves]
    strings = tuple(value for value in values if isinstance(value, str))
    return strings if len(strings) == len(values) else None
