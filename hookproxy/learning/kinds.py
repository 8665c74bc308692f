"""What the calls of a tool are about, as far as rules can tell them apart: paths, commands, hosts. Pure.

The name of an argument says so first: its values alone could be chosen so that a tool is taken for another kind, and
then a rule would be about its name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from ..policy import matchers
from ..policy.tool_names import TABLE
from . import commands, places
from .generalise import Node, Parts

ALIKE: Final = 0.9
"""The share of an argument's values that must look alike, and of calls that must have it, so that the tool is taken for
one of a kind by its values."""


class Kind(Enum):
    """What the calls of a tool are about, as far as rules can tell them apart."""

    PATH = "path"
    URI = "URI"
    COMMAND = "command"
    ADDRESS = "address"
    TEXT = "text"
    NAME = "name"
    """Nothing: only the tool as a whole can be named."""


_SIGNS: Final = str.maketrans("", "", "_-")


def _is_named(*meanings: str) -> Callable[[str], bool]:
    """Return a function that tells whether an argument is called so in servers that are known."""
    names = frozenset(name for meaning in meanings for name in TABLE.arguments[meaning])
    return lambda key: key.translate(_SIGNS).casefold() in names


KINDS: Final[Sequence[tuple[Kind, Callable[[str], bool], Callable[[str], bool]]]] = (
    (Kind.COMMAND, lambda key: matchers.COMMAND_ARGUMENT.search(key) is not None, lambda _text: False),
    (Kind.ADDRESS, _is_named("url"), lambda text: bool(places.host_of(text))),
    (Kind.PATH, _is_named("path", "directory"), places.looks_like_path),
)
"""The kinds, each with what the name of an argument says, and its values."""

PARTS: Final[Mapping[Kind, Callable[[str], Parts | None]]] = {
    Kind.PATH: places.path_parts,
    Kind.URI: places.uri_parts,
    Kind.COMMAND: commands.line_parts,
    Kind.TEXT: commands.text_parts,
    Kind.ADDRESS: lambda host: (host,),
}
NEEDED: Final[Mapping[Kind, Callable[[Parts, Node], int | None]]] = {
    Kind.PATH: places.children_needed,
    Kind.URI: places.children_needed,
    Kind.COMMAND: commands.lines_needed,
    Kind.TEXT: commands.texts_needed,
}


def needed_to_narrow(parts: Parts, _node: Node) -> int | None:
    """As `NEEDED`, for rules that refuse or ask: of these, too broad ones open nothing."""
    return places.FEWEST if parts and parts not in places.ROOTS else None


WHY_LOST: Final[Mapping[Kind, str]] = {
    Kind.PATH: "places of which too little was seen, where something was denied, or other texts beside the path",
    Kind.URI: "places of which too little was seen, or where something was denied",
    Kind.COMMAND: "several commands in a line, commands of which too little was seen, or other texts beside the line",
    Kind.ADDRESS: "hosts of which too many were seen, or other texts beside the address",
    Kind.TEXT: "texts of which too little was seen",
}
"""Why calls are lost that a tool's rules do not cover."""


def mostly(texts: Sequence[str], is_so: Callable[[str], bool]) -> bool:
    """True if nearly all texts are so."""
    return sum(map(is_so, texts)) >= ALIKE * len(texts)
