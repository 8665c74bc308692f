"""How a server's entry becomes wrapped, and back: pure, and the same for every syntax.

The entry itself keeps all that `unwrap` needs. Its command moves behind our words in `args`, spelled as it was:

    "command": "npx", "args": ["-y", "server"]
    "command": "/usr/bin/hookproxy", "args": ["run", "--name", "git", "--", "npx", "-y", "server"]

An entry without arguments gets the key, and loses it again. One whose list is there, and empty, has to keep it: its
name is given in one word, `--name=git`, which means the same to `run`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .command_words import Options, wrapping
from .find_servers import Entry
from .syntax_tree import Edit, Listing, Syntax


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
