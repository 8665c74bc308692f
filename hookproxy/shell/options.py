"""The normal form of a program's options: `rm -r -f`, `rm -fr` and `rm --recursive --force` are the same.

Short options may be joined, long ones shortened; their order, and whether they stand before or behind operands, does
not matter. `options.toml` says which short option a long one is. Options with a value count without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from threading import Lock
from typing import Final

import msgspec

LOADING: Final = Lock()
"""Held while something is loaded at its first use. Hooks in Python read lines in threads of their own, and two of them
crash msgspec if they decode into the same type for the first time at once."""

_LONGEST_JOINED: Final = (
    6  # letters of joined options: `rm -rfv`, `tar -xzvf`; a longer word is one option (`find -delete`)
)


class Options(msgspec.Struct, frozen=True):
    """The words behind a program, apart."""

    options: frozenset[str]
    """Each letter of joined options by itself, and each longer option; the short form of a long one, too."""
    long: tuple[str, ...]
    """The long options as written, each of which may be a beginning of another one."""
    operands: tuple[str, ...]
    values: frozenset[int]
    """Which of the operands stand directly behind an option, and may be its value."""


@cache
def _short_forms() -> dict[str, dict[str, str]]:
    with LOADING:
        return msgspec.toml.decode(
            resources.files(__package__).joinpath("options.toml").read_bytes(), type=dict[str, dict[str, str]]
        )


def split(program: str, words: Sequence[str]) -> Options:
    """Take the words behind a program apart. Behind `--`, there are only operands."""
    forms = _short_forms().get(program, {})
    options: set[str] = set()
    long: list[str] = []
    operands: list[str] = []
    values: set[int] = set()
    behind_option = False
    for at, word in enumerate(words):
        if word == "--":
            operands.extend(words[at + 1 :])
            break
        if word.startswith("--"):
            name, equals, _ = word[2:].partition("=")
            long.append(name)
            short = forms.get(name)
            options.add("-" + short if short else word[: len(name) + 2])
            behind_option = not equals
        elif word.startswith("-") and len(word) > 1:
            joined = len(word) <= _LONGEST_JOINED + 1
            options.update("-" + forms.get(letter, letter) for letter in word[1:]) if joined else options.add(word)
            behind_option = True
        else:
            if behind_option:
                values.add(len(operands))
            operands.append(word)
            behind_option = False
    shortened = {"-" + short for full, short in forms.items() if len(full) > 1 and any(map(full.startswith, long))}
    return Options(frozenset(options | shortened), tuple(long), tuple(operands), frozenset(values))


def includes(wanted: Options, given: Options, *, exactly: bool) -> bool:
    """True if a command has all the wanted options, and begins with the wanted operands, or has exactly these."""
    for option in wanted.options - given.options:
        if not (option.startswith("--") and any(option[2:].startswith(name) for name in given.long)):
            return False
    matched = 0
    for at, operand in enumerate(given.operands):
        if matched == len(wanted.operands):
            return not exactly or at in given.values
        if operand == wanted.operands[matched]:
            matched += 1
        elif at not in given.values:
            return False
    return matched == len(wanted.operands)
