"""How a server's entry becomes wrapped, and back: pure, and the same for every syntax.

The entry itself keeps all that `unwrap` needs. Its command moves behind our words in `args`, spelled as it was:

    "command": "npx", "args": ["-y", "server"]
    "command": "/usr/bin/hookproxy", "args": ["run", "--name", "git", "--", "npx", "-y", "server"]

An entry without arguments gets the key, and loses it again. One whose list is there, and empty, has to keep it: its
name is given in one word, `--name=git`, which means the same to `run`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from ..errors import ConfigError
from .agents import NAMES, REMOTE, SHAPES
from .base import Edit, Leaf, Listing, Mapping, Member, Shape, Syntax, Tree, line_at, plain

PROGRAM: Final = "hookproxy"
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*t?")
_TAKE_VALUE: Final = ("--config", "--hooks", "--name", "--audit")


class Kind(StrEnum):
    """What an entry does."""

    STARTED = "started"
    REMOTE = "remote"
    OTHER = "other"
    """The agent's own, or an extension's: there is no command in the file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One server in a configuration, and where the parts stand that wrapping edits."""

    name: str
    place: str
    """The keys to it, for people: `mcpServers.git`."""
    line: int
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

    @property
    def listing(self) -> Listing | None:
        """The list that our words are put into."""
        member = self.args if self.args is not None else self.command
        return member.value if member is not None and isinstance(member.value, Listing) else None

    @property
    def whole(self) -> bool:
        """True if the command is the first item of the list."""
        return self.command is not None and isinstance(self.command.value, Listing)


@dataclass(frozen=True, slots=True)
class Options:
    """What stands between `run` and the server's command."""

    name: tuple[str, ...] = ()
    """One word or two; none."""
    config: str | None = None
    hooks: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """As on the command line."""
        config = () if self.config is None else ("--config", self.config)
        hooks = tuple(word for item in self.hooks for word in ("--hooks", item))
        return (*self.name, *config, *hooks, *self.rest)


@dataclass(frozen=True, slots=True)
class Wrapping:
    """The words that stand before a wrapped server's own."""

    launcher: tuple[str, ...]
    options: Options
    count: int
    """How many words there are in all, `run` and `--` among them."""


def entries(path: str, text: str, tree: Mapping, syntax: Syntax) -> list[Entry]:
    """Every server of a file. Raises ConfigError for a file that holds none, or one that is not understood."""
    found: list[Entry] = []
    known = False
    for shape in SHAPES[syntax.name]:
        last_resort = shape.path == ("mcp",)
        if last_resort and known:
            continue
        for keys, servers in _at(tree, shape.path, ()):
            known = True
            found += [
                _entry(path, text, ".".join((*keys, member.key)), member, shape)
                for member in servers.members
                if not last_resort or isinstance(member.value, Mapping)  # Gemini CLI has settings of that name
            ]
    if not known:
        raise ConfigError(path, "holds no servers in any way that is known here", f"known: {NAMES}")
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
    line = line_at(text, member.start)
    where = f"{path}:{line}" if member.start >= 0 else path
    if not isinstance(server, Mapping):
        raise ConfigError(where, f"{place} must hold a server: a command and its arguments, or an address")
    values = {each.key: plain(each.value) for each in server.members}
    disabled = values.get("disabled") is True or values.get("enabled") is False
    remote = any(values.get(key) for key in REMOTE)
    command = server.get(shape.command)
    if command is not None and isinstance(command.value, Mapping):  # Zed, once: {"path": …, "args": …}
        server, shape = command.value, Shape(shape.path, command="path", args=shape.args)
        command = server.get("path")
    if command is None or not plain(command.value):
        kind = Kind.REMOTE if remote else Kind.OTHER
        return Entry(member.key, place, line, kind, disabled)
    args = None if isinstance(command.value, Listing) else server.get(shape.args)
    words = _words(command.value)
    if not words:
        raise ConfigError(where, f"{place}.{command.key} must be a string, or a list of strings")
    if args is not None:
        if not isinstance(args.value, Listing) or (more := _words(args.value)) is None:
            raise ConfigError(where, f"{place}.{args.key} must be a list of strings")
        words += more
    return Entry(
        member.key, place, line, Kind.STARTED, disabled, remote, words, server, command, args, args_key=shape.args
    )


def _words(tree: Tree) -> tuple[str, ...] | None:
    """A string, or the strings of a list; None for anything else."""
    leaves = tree.items if isinstance(tree, Listing) else (tree,)
    values = [leaf.value if isinstance(leaf, Leaf) else None for leaf in leaves]
    strings = tuple(value for value in values if isinstance(value, str))
    return strings if len(strings) == len(values) else None


def wrapping(argv: Sequence[str]) -> Wrapping | None:
    """The words of ours that a command line begins with; None: it is not wrapped, or wraps nothing."""
    launcher = _launcher(argv)
    rest = list(argv[launcher:])
    if not launcher or rest[:1] != ["run"] or "--" not in rest[:-1]:
        return None
    end = rest.index("--")
    return Wrapping(tuple(argv[:launcher]), _options(rest[1:end]), launcher + end + 1)


def _launcher(argv: Sequence[str]) -> int:
    """How many words start hookproxy; none: something else is started."""
    program = os.path.basename(argv[0]) if argv else ""
    if program == PROGRAM:
        return 1
    if program == "uvx" and argv[1:2] == [PROGRAM]:
        return 2
    if _PYTHON.fullmatch(program):
        options = list(argv[1:])
        while options[:1] and options[0] in ("-P", "-I", "-E", "-s"):
            del options[0]
        if options[:2] == ["-m", PROGRAM]:
            return len(argv) - len(options) + 2
    return 0


def _options(words: Sequence[str]) -> Options:
    name: tuple[str, ...] = ()
    config: str | None = None
    hooks: list[str] = []
    rest: list[str] = []
    left = list(words)
    while left:
        given = _option(left)
        key, _, value = given[0].partition("=") if len(given) == 1 else (given[0], "", given[1])
        del left[: len(given)]
        if key == "--name":
            name = given
        elif key == "--config":
            config = value
        elif key == "--hooks":
            hooks.append(value)
        else:
            rest += given
    return Options(name, config, tuple(hooks), tuple(rest))


def _option(words: Sequence[str]) -> tuple[str, ...]:
    """The first option, in one word or in two."""
    return tuple(words[: 2 if words[0] in _TAKE_VALUE else 1])


def own(entry: Entry) -> tuple[str, ...]:
    """The server's own command line, wrapped or not."""
    old = wrapping(entry.argv)
    return entry.argv[old.count :] if old else entry.argv


def ours(entry: Entry, launcher: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """The words that are to stand before it; those that do, if they mean the same.

    An option replaces what an entry has; what is not given stays as it is.
    """
    old = wrapping(entry.argv)
    if old is None:
        empty = entry.listing is not None and not entry.listing.items
        name, chosen = _name(entry.name, empty), options
    else:
        name = old.options.name or _name(entry.name, one_word=True)
        chosen = replace(
            old.options,
            config=old.options.config if options.config is None else options.config,
            hooks=options.hooks or old.options.hooks,
        )
        if chosen == old.options and name == chosen.name and launcher == old.launcher:
            return entry.argv[: old.count]
    return (*launcher, "run", *replace(chosen, name=name).words, "--")


def wrap(text: str, syntax: Syntax, entry: Entry, words: tuple[str, ...]) -> list[Edit]:
    """Puts our words in front, or in the place of others of ours; none if they are there."""
    old = wrapping(entry.argv)
    if old is None:
        return _put(text, syntax, entry, words)
    return [] if entry.argv[: old.count] == words else _replace(syntax, entry, words, old.count)


def _name(name: str, one_word: bool) -> tuple[str, ...]:
    return (f"--name={name}",) if one_word or name.startswith("-") else ("--name", name)


def _put(text: str, syntax: Syntax, entry: Entry, words: tuple[str, ...]) -> list[Edit]:
    spelled = [syntax.quote(word) for word in words]
    command, listing = entry.command, entry.listing
    if command is None or entry.inside is None:
        raise ValueError("there is no command to put words in front of")
    if entry.whole and listing is not None:
        return [_front(listing, spelled)]
    instead = Edit(command.value.start, command.value.end, spelled[0])
    spelled = [*spelled[1:], text[command.value.start : command.value.end]]
    if listing is not None:
        return [instead, _front(listing, spelled)]
    added = syntax.add(text, entry.inside, command, entry.args_key, f"[{', '.join(spelled)}]")
    return [instead, added]


def _front(listing: Listing, spelled: Sequence[str]) -> Edit:
    if listing.items:
        inserted = "".join(f"{listing.lead}{word}{listing.joint}" for word in spelled)
    else:
        inserted = ", ".join(spelled)
    return Edit(listing.first, listing.first, inserted)


def _replace(syntax: Syntax, entry: Entry, words: tuple[str, ...], count: int) -> list[Edit]:
    """Other words of ours instead of those that are there."""
    spelled = [syntax.quote(word) for word in words]
    command, listing = entry.command, entry.listing
    if command is None or listing is None:
        raise ValueError("a wrapped entry has a command and a list")
    edits = []
    if not entry.whole:
        edits.append(Edit(command.value.start, command.value.end, spelled.pop(0)))
        count -= 1
    inserted = "".join(f"{listing.lead}{word}{listing.joint}" for word in spelled)
    return [*edits, Edit(listing.starts[0], listing.starts[count], inserted)]


def unwrap(text: str, syntax: Syntax, entry: Entry) -> list[Edit]:
    """Takes our words out again; none if there are none."""
    old = wrapping(entry.argv)
    command, listing = entry.command, entry.listing
    if old is None or command is None or listing is None or entry.inside is None:
        return []
    if entry.whole:
        return [Edit(listing.starts[0], listing.starts[old.count], "")]
    moved = listing.items[old.count - 1]
    edits = [Edit(command.value.start, command.value.end, text[moved.start : moved.end])]
    if old.count < len(listing.items):
        return [*edits, Edit(listing.starts[0], listing.starts[old.count], "")]
    if len(old.options.name) == 2 and entry.args is not None:
        return [*edits, syntax.drop(text, entry.inside, entry.args)]
    return [*edits, *([listing.emptied] if listing.emptied else [])]
