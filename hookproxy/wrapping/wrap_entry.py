"""Wraps a server's entry and unwraps it again: pure, and the same for every syntax.

The entry itself keeps everything that `unwrap` needs. Its command moves into `args` after hookproxy's words, spelled as
before:

    "command": "npx", "args": ["-y", "server"]
    "command": "/usr/bin/hookproxy", "args": ["run", "--name", "git", "--", "npx", "-y", "server"]

If an entry has no arguments, `wrap` adds the key and `unwrap` removes it. If its list exists but is empty, `unwrap`
must keep it: to show that, the name is given in one word, `--name=git`, which means the same to `run`. A name such as
`-x` is always given in one word; if the key was added, it is given twice.

The entry of a server at an address has no command to keep: `rewrite_entry` makes it one. `gateway_entry` has the words
that reach a gateway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .find_servers import Entry
from .syntax_tree import Edit, ListNode, Syntax

PROGRAM: Final = "hookproxy"
RUN: Final = "run"
CONNECT: Final = "connect"

_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*t?")
_OPTIONS_WITH_VALUE: Final = (
    *("--config", "--hooks", "--project", "--name", "--audit", "--url", "--header", "--ca"),
    *("--sandbox-read", "--sandbox-write", "--sandbox-env", "--sandbox-network"),
)
FAIL_CLOSED: Final = "--fail-closed"
_FLAGS: Final = ("--strict", "--verbose", "--allow-http", "--sandbox", FAIL_CLOSED)
_REMOTE_OPTIONS: Final = ("--url", "--header", "--allow-http")
"""Options that `wrap` writes for a server at an address."""


class RunOptions(Struct, frozen=True):
    """The options between `run` and the server's command."""

    name: tuple[str, ...] = ()
    """The option `--name`: in two words if `wrap` added the key of the list, else in one; empty if there is none."""
    config: str | None = None
    hooks: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    fallback: str | None = None
    """The `config` of an entry that has none."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words on the command line."""
        config = () if self.config is None else ("--config", self.config)
        hooks = tuple(word for item in self.hooks for word in ("--hooks", item))
        return (*self.name, *config, *hooks, *self.others)


class Wrapping(Struct, frozen=True):
    """The words before a wrapped server's own command line."""

    launcher: tuple[str, ...]
    options: RunOptions
    count: int
    """The number of all these words, including `run` and `--`."""
    is_remote: bool = False
    """True if hookproxy connects to an address, or to the gateway, and starts no command."""
    verb: str = RUN

    @property
    def added_list(self) -> bool:
        """True if the entry had no list of arguments before."""
        return len(self.options.name) == 2 if self.verb == RUN else "--socket" in self.options.others


def parse_wrapping(argv: Sequence[str]) -> Wrapping | None:
    """The words of hookproxy at the beginning of a command line; None if it is not wrapped, or wraps nothing."""
    launcher = _launcher_length(argv)
    words = list(argv[launcher:])
    if launcher and words[:1] == [CONNECT]:
        return _parse_connect(argv[:launcher], words)
    if not launcher or words[:1] != [RUN]:
        return None
    end, command = _command_start(words)
    options = _parse_options(words[1:end])
    is_remote = end == command == len(words) and any(word.partition("=")[0] == "--url" for word in options.others)
    if command >= len(words) and not is_remote:
        return None
    return Wrapping(tuple(argv[:launcher]), options, launcher + command, is_remote)


def _parse_connect(launcher: Sequence[str], words: Sequence[str]) -> Wrapping | None:
    """The words that reach the gateway, with the command of a server that runs as its user, if there is one."""
    end = words.index("--") if "--" in words else len(words)
    command = min(end + 1, len(words))
    has_command = command < len(words)
    if len(words) < 2 or (end < len(words) and not has_command):
        return None
    options = RunOptions(others=tuple(words[1:end]))
    return Wrapping(tuple(launcher), options, len(launcher) + command, not has_command, CONNECT)


def _command_start(words: Sequence[str]) -> tuple[int, int]:
    """The end of the options after `run`, and the start of the server's command, as `run` itself finds them."""
    if "--" in words:
        return words.index("--"), words.index("--") + 1
    position = 1
    while position < len(words) and words[position].startswith("-"):
        if words[position] not in _FLAGS and words[position].partition("=")[0] not in _OPTIONS_WITH_VALUE:
            return len(words), len(words)
        position += 2 if words[position] in _OPTIONS_WITH_VALUE else 1
    return min(position, len(words)), min(position, len(words))


def remote_options(options: RunOptions) -> tuple[str, ...]:
    """Those of the options that say where the server is, and what is sent to it."""
    return tuple(word for words in _split(options.others) if words[0] in _REMOTE_OPTIONS for word in words)


def _split(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The options, each in one word or in two."""
    options: list[tuple[str, ...]] = []
    remaining = list(words)
    while remaining:
        count = 2 if remaining[0] in _OPTIONS_WITH_VALUE else 1
        options.append(tuple(remaining[:count]))
        del remaining[:count]
    return options


def _with_others(present: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """The present options, with the given ones instead of those of the same names."""
    names = {words[0].partition("=")[0] for words in _split(given)}
    kept = [word for words in _split(present) if words[0].partition("=")[0] not in names for word in words]
    return (*kept, *given)


def _launcher_length(argv: Sequence[str]) -> int:
    """The number of words that start hookproxy; 0 if something else is started."""
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


def _parse_options(words: Sequence[str]) -> RunOptions:
    name: tuple[str, ...] = ()
    config: str | None = None
    hooks: list[str] = []
    others: list[str] = []
    for option_words in _split(words):
        first, *more = option_words
        key, equals, value = (first, "=", more[0]) if more else first.partition("=")
        if not equals:
            others += option_words
        elif key == "--name":
            name += option_words
        elif key == "--config":
            config = value
        elif key == "--hooks":
            hooks.append(value)
        else:
            others += option_words
    return RunOptions(name, config, tuple(hooks), tuple(others))


def server_command(entry: Entry) -> tuple[str, ...]:
    """The server's own command line, wrapped or not."""
    present = parse_wrapping(entry.argv)
    return entry.argv[present.count :] if present else entry.argv


def wrapping_words(entry: Entry, launcher: tuple[str, ...], options: RunOptions) -> tuple[str, ...]:
    """The words to put before the server's command line; the present ones if they mean the same.

    A given option replaces that of a wrapped entry; its other options stay unchanged.
    """
    present = parse_wrapping(entry.argv)
    if present is None:
        has_empty_list = entry.list_node is not None and not entry.list_node.items
        name = _name_option(entry.name, has_empty_list)
        new_options = replace(options, config=options.config or options.fallback)
    else:
        name = present.options.name or _name_option(entry.name, one_word=True)
        new_options = replace(
            present.options,
            config=options.config or present.options.config or options.fallback,
            hooks=options.hooks or present.options.hooks,
            others=_with_others(present.options.others, options.others),
        )
        if new_options == present.options and name == new_options.name and launcher == present.launcher:
            return entry.argv[: present.count]
    end = () if present is not None and present.is_remote else ("--",)
    return (*launcher, RUN, *replace(new_options, name=name).words, *end)


def remote_words(
    entry: Entry, launcher: tuple[str, ...], options: RunOptions, where: tuple[str, ...]
) -> tuple[str, ...]:
    """The whole command line for a server at an address; `where` are its remote options."""
    new_options = replace(
        options,
        name=_name_option(entry.name, one_word=entry.name.startswith("-")),
        config=options.config or options.fallback,
        others=(*options.others, *where),
    )
    return (*launcher, RUN, *new_options.words)


def wrap(text: str, syntax: Syntax, entry: Entry, words: tuple[str, ...]) -> list[Edit]:
    """The edits that insert these words before the command, or replace hookproxy's present words with them."""
    present = parse_wrapping(entry.argv)
    if present is None:
        return _insert(text, syntax, entry, words)
    return [] if entry.argv[: present.count] == words else _replace(syntax, entry, words, present.count)


def _name_option(name: str, one_word: bool) -> tuple[str, ...]:
    word = f"--name={name}"
    if one_word:
        return (word,)
    return (word, word) if name.startswith("-") else ("--name", name)


def _insert(text: str, syntax: Syntax, entry: Entry, words: tuple[str, ...]) -> list[Edit]:
    quoted = [syntax.quote(word) for word in words]
    command, list_node = entry.command, entry.list_node
    if command is None or entry.parent is None:
        raise ValueError("there is no command to insert words before")
    if entry.command_is_list and list_node is not None:
        return [_prepend(list_node, quoted)]
    new_command = Edit(command.value.start, command.value.end, quoted[0])
    quoted = [*quoted[1:], text[command.value.start : command.value.end]]
    if list_node is not None:
        return [new_command, _prepend(list_node, quoted)]
    new_args = syntax.insert_member(text, entry.parent, command, entry.args_key, f"[{', '.join(quoted)}]")
    return [new_command, new_args]


def _prepend(list_node: ListNode, quoted: Sequence[str]) -> Edit:
    if list_node.items:
        inserted = "".join(f"{list_node.item_prefix}{word}{list_node.separator}" for word in quoted)
    else:
        inserted = ", ".join(quoted)
    return Edit(list_node.insert_at, list_node.insert_at, inserted)


def _replace(syntax: Syntax, entry: Entry, words: tuple[str, ...], count: int) -> list[Edit]:
    quoted = [syntax.quote(word) for word in words]
    command, list_node = entry.command, entry.list_node
    if command is None or list_node is None:
        raise ValueError("a wrapped entry has a command and a list")
    edits = []
    if not entry.command_is_list:
        edits.append(Edit(command.value.start, command.value.end, quoted.pop(0)))
        count -= 1
    inserted = "".join(f"{list_node.item_prefix}{word}{list_node.separator}" for word in quoted)
    if count < len(list_node.starts):
        return [*edits, Edit(list_node.starts[0], list_node.starts[count], inserted)]
    whole = inserted[: len(inserted) - len(list_node.separator)]
    return [*edits, Edit(list_node.starts[0], list_node.items[-1].end, whole)]


def unwrap(text: str, syntax: Syntax, entry: Entry) -> list[Edit]:
    """The edits that remove hookproxy's words; none if the entry is not wrapped."""
    present = parse_wrapping(entry.argv)
    command, list_node = entry.command, entry.list_node
    if present is None or present.is_remote or command is None or list_node is None or entry.parent is None:
        return []
    if entry.command_is_list:
        return [Edit(list_node.starts[0], list_node.starts[present.count], "")]
    server_program = list_node.items[present.count - 1]
    edits = [Edit(command.value.start, command.value.end, text[server_program.start : server_program.end])]
    if present.count < len(list_node.items):
        return [*edits, Edit(list_node.starts[0], list_node.starts[present.count], "")]
    if present.added_list and entry.args is not None:
        return [*edits, syntax.remove_member(text, entry.parent, entry.args)]
    return [*edits, *([list_node.clear] if list_node.clear else [])]
