"""The words that a wrapped server's command line begins with: which are ours, and what they say. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

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
