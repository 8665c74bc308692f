"""What many calls have in common: the folders, commands and hosts to which they can be led back. Pure.

A subject (a path, a command line, the URI of a resource) is a sequence of parts, from the general to the particular.
The parts of all subjects make a tree. A node of it may be opened: then a rule is about everything below, seen or not.
That is done as rarely as the traffic permits:

- Never where something was denied, or was asked about, at the node or below it (`barred`).
- Only where as many different children were seen as the kind of node requires (`may_open`).
- Only where further children must be expected. The estimate is Good and Turing's: of n calls, those that were the only
  one of their child show how likely the next call is to be of a child that was not seen yet. If that is less than
  OPEN_SHARE, the children that were seen are listed one by one.

So a folder with the same five files, read a hundred times, becomes five rules; a hundred files of it become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

OPEN_SHARE: Final = 0.02
"""The share of calls that may be lost to children that were not seen, before a node is opened: an allow list that
refuses one of fifty calls that should pass is bearable, and its owner adds a line."""

MOST_LISTED: Final = 8
"""Children that are listed one by one, although no further ones are expected: a longer list is not read any more."""

DEEPEST: Final = 40  # parts of a subject; what is deeper is never opened, and people use ten

Parts = tuple[str, ...]


class Node(Struct):
    """A part of subjects, with all that lies below it."""

    children: dict[str, Node] = field(default_factory=dict)
    calls: int = 0
    """Of all subjects at it and below it."""
    here: int = 0
    """Of the subject that ends with it."""


class Opened(Struct, frozen=True):
    """What a rule is to be about."""

    parts: Parts
    whole: bool
    """Everything below these parts; otherwise the subject with exactly these parts."""


def opened(
    subjects: Mapping[Parts, int], barred: Iterable[Parts], may_open: Callable[[Parts, Node], int | None]
) -> Iterator[Opened]:
    """Yield what covers the subjects, each with the number of its calls.

    `may_open` says how many different children a node needs to be opened; None: it never is.
    """
    root = Node()
    for parts, calls in subjects.items():
        node = root
        node.calls += calls
        for part in parts[:DEEPEST]:
            node = node.children.setdefault(part, Node())
            node.calls += calls
        node.here += calls
    closed = {parts[:length] for parts in barred for length in range(len(parts) + 1)}
    yield from _opened((), root, closed, may_open)


def _opened(
    parts: Parts, node: Node, closed: set[Parts], may_open: Callable[[Parts, Node], int | None]
) -> Iterator[Opened]:
    if parts not in closed and len(parts) < DEEPEST and _is_open(node, may_open(parts, node)):
        yield Opened(parts, whole=True)
        if node.here:
            yield Opened(parts, whole=False)
        return
    if node.here:
        yield Opened(parts, whole=False)
    for part, child in node.children.items():
        yield from _opened((*parts, part), child, closed, may_open)


def _is_open(node: Node, needed: int | None) -> bool:
    """Whether so many different children were seen that there are others."""
    if needed is None or len(node.children) < needed:
        return False
    only_once = sum(child.calls == 1 for child in node.children.values())
    return only_once > OPEN_SHARE * node.calls or len(node.children) > MOST_LISTED
