"""One text of shell as the grammar of bash (tree-sitter-bash) sees it, beside the words that `words` reads from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from .options import LOADING
from .words import HOLE, INHERITED, Command, Disagreement, Input, Lexer, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

EXPANSIONS: Final = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)
MARKED: Final = EXPANSIONS | {"array"}
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_LONGEST_SHOWN: Final = 40  # characters of a part, in a reason
_MOST_SEARCHED: Final = 200  # parts, for the one that is an error


@cache
def _parser() -> Parser:
    """The grammar. Importing it takes some 10 ms, so it is loaded for the first line that is not plain."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(line: str) -> Node:
    """Return the root of the tree of a text."""
    # Each character becomes one byte, so that places are the same. For bash, all but those of ASCII are letters.
    text = _NOT_ASCII.sub("Z", line).encode()
    with LOADING:  # a parser is for one thread at a time
        return _parser().parse(text).root_node


def _mark_expansions(node: Node, expansions: dict[int, int]) -> None:
    """Note the outermost expansions of a part, by an own stack: the agent decides how deep it is nested."""
    todo = [node]
    while todo:
        part = todo.pop()
        kind = part.type
        if kind in MARKED:
            expansions[part.start_byte] = part.end_byte
        if kind not in ("expansion", "arithmetic_expansion"):
            todo.extend(part.children)


def expansions_in(node: Node) -> dict[int, int]:
    """Return where the outermost expansions in a part begin and end."""
    expansions: dict[int, int] = {}
    for child in node.children:
        _mark_expansions(child, expansions)
    return expansions


class Found:
    """What has been found in a line, and in all the texts inside of it."""

    def __init__(self) -> None:
        self.commands: Final[list[Command]] = []
        self.unreadable = ""
        """Why the line cannot be read for certain: the first reason."""
        self.in_dash = False
        """What is read is the inside of `[[ … ]]` or `(( … ))`, as shells see it that do not have them."""

    def differs(self, part: str, why: str) -> None:
        """Note that a part of the line cannot be read for certain."""
        part = part.strip()
        shown = part if len(part) <= _LONGEST_SHOWN else part[:_LONGEST_SHOWN] + "…"
        self.unreadable = self.unreadable or (f"at {shown!r}: {why}" if shown else why)


class Source:
    """One text with its tree, and what is found in it."""

    def __init__(self, line: str, heredocs: Sequence[Input], found: Found) -> None:
        self.line: Final = line
        self.found: Final = found
        self.root: Final = parse(line)
        expansions: dict[int, int] = {}
        _mark_expansions(self.root, expansions)
        self.lexer: Final = Lexer(line, expansions, heredocs)
        if self.root.has_error:
            error = self._error()
            found.differs(line if error is None else line[error.start_byte :], "a syntax error")

    def _error(self) -> Node | None:
        """The first part that is an error, if it is found soon."""
        todo = [self.root]
        for _ in range(_MOST_SEARCHED):
            node = todo.pop()
            if node.is_error or node.is_missing:
                return node
            todo.extend(child for child in reversed(node.children) if child.has_error)
            if not todo:
                break
        return None

    def of(self, node: Node) -> str:
        """The text of a part."""
        return self.line[node.start_byte : node.end_byte]

    def differs(self, node: Node, why: str) -> None:
        """Note that a part cannot be read for certain."""
        self.found.differs(self.of(node), why)

    def words(self, node: Node) -> list[Word]:
        """The words of which a part consists. If it consists of something else, the line is unreadable."""
        try:
            return self.lexer.words(node.start_byte, node.end_byte)
        except Disagreement as error:
            self.differs(node, str(error))
            return []

    def redirection(self, node: Node) -> Command:
        """What a part redirects without a command. If it consists of more, the line is unreadable."""
        try:
            lexed = self.lexer.command(node.start_byte, node.end_byte)
        except Disagreement as error:
            self.differs(node, str(error))
            return Command(())
        if lexed.words:
            self.differs(node, "a word behind a redirection")
        return Command((), (), lexed.input or INHERITED, lexed.opened)

    def blanked(self, node: Node, start: int, end: int) -> str:
        """Return a part of a node's text in which each expansion is one sign."""
        text, at, stop = "", node.start_byte + start, node.start_byte + end
        inner = expansions_in(node)
        for begin in sorted(inner):
            if at <= begin < stop:
                text += self.line[at:begin] + HOLE
                at = inner[begin]
        return text + self.line[at:stop]
