"""What is expanded in a part of a line: `$x`, `${…}`, `$(…)`, backquotes, arithmetic and arrays.

Each must be of a form that bash and the grammar read alike; else the line is unreadable. Commands inside of it are read
by the functions of `statements`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .grammar import EXPANSIONS, Source, expansions_in
from .words import HEREDOC, INHERITED, Disagreement, Input, Lexer

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST: Final = 100  # substitutions and groups inside of each other: bash itself gives up at a few thousand
ARITHMETIC: Final = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,()\[\]@#.\ue001]*")
_SIMPLE_EXPANSION: Final = re.compile(r"\$(?:\w+|[@*#?$!-])")
_PARAMETER: Final = re.compile(
    r"\$\{[!#]?(?:\w+|[@*#?$!-])(?:\[[\w@*\ue001 +-]*\])?(?:(?:[:=?+\-#%/^,@]|\[)(?:[^'\"\\{}$`\n]|\\[^'\"{}\n])*)?\}"
)
"""A `${…}` that bash and the grammar read alike: what quotes mean in it depends on where it stands."""
_EVALUATED: Final = re.compile(r"@P\}\Z")
_TWO_WAYS: Final = "shells may read this expansion in two ways"


class Expansions:
    """Reads the expansions of one text. `read_group` and `read_text` read the commands inside of them."""

    def __init__(
        self, source: Source, read_group: Callable[[Node, Input, int], None], read_text: Callable[[str, int], None]
    ) -> None:
        self._source: Final = source
        self._read_group: Final = read_group
        self._read_text: Final = read_text

    def read(self, node: Node, depth: int) -> None:
        """Read what is expanded inside of a part."""
        kind = node.type
        if kind in EXPANSIONS:
            self._expansion(node, kind, depth)
            return
        if kind == "array":
            self._array(node)
        for child in node.children:
            if child.child_count or child.type in EXPANSIONS:
                self.read(child, depth)

    def _expansion(self, node: Node, kind: str, depth: int) -> None:
        text = self._source.of(node)
        if depth > DEEPEST:
            self._source.differs(node, "it is nested too deep")
        elif kind == "simple_expansion":
            if not _SIMPLE_EXPANSION.fullmatch(text):
                self._source.differs(node, _TWO_WAYS)
        elif kind == "expansion":
            if not _PARAMETER.fullmatch(self._source.blanked(node, 0, len(text))) or _EVALUATED.search(text):
                self._source.differs(node, _TWO_WAYS)
            self.read_children(node, depth + 1)
        elif kind == "arithmetic_expansion":
            start = 3 if text.startswith("$((") else 2
            self.arithmetic(node, node.start_byte + start, node.end_byte - (start - 1), depth)
        elif text.startswith("`"):
            self._backquoted(node, text, depth)
        else:
            self._read_group(node, Input("pipe") if text.startswith(">") else INHERITED, depth)

    def read_children(self, node: Node, depth: int) -> None:
        """Read what is expanded inside of the parts of a part."""
        for child in node.children:
            self.read(child, depth)

    def arithmetic(self, node: Node, start: int, end: int, depth: int) -> None:
        """Read the arithmetic between two places of a part."""
        text = self._source.blanked(node, start - node.start_byte, end - node.start_byte)
        if not ARITHMETIC.fullmatch(text):
            self._source.differs(node, "this arithmetic may be read in two ways")
        self.read_children(node, depth + 1)

    def _backquoted(self, node: Node, text: str, depth: int) -> None:
        inner = text[1:-1]
        if re.search(r"(?<!\\)(?:\\\\)*`", inner) or not text.endswith("`"):
            self._source.differs(node, "it is not certain which backquotes belong together")
        if HEREDOC in inner:
            self._source.differs(node, "a here-document in backquotes")
            return
        self._read_text(re.sub(r"\\([$`\\\"])", r"\1", inner), depth + 1)

    def _array(self, node: Node) -> None:
        line, start, end = self._source.line, node.start_byte + 1, node.end_byte - 1
        text = line[start:end].replace("\n", " ")
        if "#" in text or "\\" in text:
            self._source.differs(node, "an array with a comment or a backslash")
        try:
            Lexer(line[:start] + text + ")", expansions_in(node)).words(start, end)
        except Disagreement as error:
            self._source.differs(node, str(error))
