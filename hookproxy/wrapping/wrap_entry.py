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
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .find_servers import Entry
from .syntax_tree import Edit, Listing, Syntax

PROGRAM: Final = "hookproxy"

_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*t?")
_TAKE_VALUE: Final = ("--config", "--hooks", "--name", "--audit")


class Options(Struct, frozen=True):
    """What stands between `run` and the server's command."""

    name: tuple[str, ...] = ()
    """One word or two; none."""
    config: str | None = None
    hooks: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    fallback: str | None = None
    """The `config` of an entry that would have none."""

    @property
    def words(self) -> tuple[str, ...]:
        """As on the command line."""
        config = () if self.config is None else ("--config", self.config)
        hooks = tuple(word for item in self.hooks for word in ("--hooks", item))
        return (*self.name, *config, *hooks, *self.rest)


class Wrapping(Struct, frozen=True):
    """The words that stand before a wrapped server's own."""

    launcher: tuple[str, ...]
    options: Options
    count: int
    """How many words there are in all, `run` and `--` among them."""


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
    if program == "uvx" and PROGRAM in argv[1:2]:
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
        key, equals, value = given[0].partition("=") if len(given) == 1 else (given[0], "=", given[1])
        del left[: len(given)]
        if not equals:
            rest += given
        elif key == "--name":
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
        name, chosen = _name(entry.name, empty), replace(options, config=options.config or options.fallback)
    else:
        name = old.options.name or _name(entry.name, one_word=True)
        chosen = replace(
            old.options,
            config=options.config or old.options.config or options.fallback,
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
