"""Texts that a regular expression of gitleaks matches, made at random: no token-like text need stand in a test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from random import Random
from typing import Final, cast

_MORE: Final = 6
"""Repetitions beyond the least ones."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ANY: Final = f"{_LETTERS}-_.,:;+/= "
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_WORD": f"{_LETTERS}_",
    "CATEGORY_SPACE": " \n",
    "CATEGORY_NOT_SPACE": _LETTERS,
}

Node = tuple[object, object]
Nodes = Sequence[Node]


def example(regex: str, random: Random) -> str:
    """A text that the expression matches, unless it asks for what is around it."""
    parse = import_module("re._parser").parse  # it has no types
    return _text(cast("Nodes", parse(_python(regex))), random)


def _python(regex: str) -> str:
    """The expression in Python's words. Cases of letters do not matter: they are as they are spelled."""
    regex = re.sub(r"\(\?i\)|\(\?-i\)", "", regex)
    regex = re.sub(r"\(\?(?:-?[is]+):", "(?:", regex)
    return regex.replace(r"\z", r"\Z").replace("[:alnum:]", "A-Za-z0-9").replace("{{", r"\{\{").replace("}}", r"\}\}")


def _text(nodes: Nodes, random: Random) -> str:
    return "".join(part for op, argument in nodes for part in _parts(str(op), argument, random))


def _parts(op: str, argument: object, random: Random) -> Iterator[str]:
    if op == "LITERAL":
        yield chr(cast("int", argument))
    elif op in ("ANY", "NOT_LITERAL"):  # what is excluded is a quote or the end of a line
        yield random.choice(_LETTERS)
    elif op == "IN":
        yield random.choice(_members(cast("Nodes", argument)))
    elif op == "BRANCH":
        yield _text(random.choice(cast("tuple[None, list[Nodes]]", argument)[1]), random)
    elif op == "SUBPATTERN":
        yield _text(cast("tuple[int, int, int, Nodes]", argument)[3], random)
    elif op != "AT":
        least, most, nodes = cast("tuple[int, int, Nodes]", argument)
        for _ in range(random.randint(least, min(most, least + _MORE))):
            yield _text(nodes, random)


def _members(members: Nodes) -> str:
    """The characters of a class."""
    chars: set[str] = set()
    for op, argument in members:
        if str(op) == "LITERAL":
            chars.add(chr(cast("int", argument)))
        elif str(op) == "RANGE":
            first, last = cast("tuple[int, int]", argument)
            chars.update(map(chr, range(first, last + 1)))
        elif str(op) == "CATEGORY":
            chars.update(_CATEGORIES[str(argument)])
    return "".join(sorted(set(_ANY) - chars if str(members[0][0]) == "NEGATE" else chars))
