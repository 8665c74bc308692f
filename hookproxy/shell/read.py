"""The simple commands of a line of shell, by a grammar of bash (tree-sitter-bash) and a reader of words.

How it works: the grammar divides the line into commands, and says where expansions are. `words` reads each command
again by the rules of bash's manual. What stands between two commands must be what bash takes for a separator. Where
both differ, where the grammar finds an error, and where a part is of a kind that is not in the tables below, the line
is *unreadable*, and the commands found so far still count (law 1: in any reading).

Here-documents are taken out of the line first, by bash's own rule (from the line after the operator to the first line
that is the delimiter), because the grammar ends them otherwise now and then.

What is not read: the value of a variable, an alias that is defined elsewhere, a script that is started by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from .heredocs import DELIMITER, find_body, is_open, unquoted
from .plain import RESERVED, read_plain
from .words import HEREDOC, HOLE, INHERITED, PRIVATE, Command, Disagreement, Input, Lexed, Lexer, Word, echoed

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST: Final = 65_536
"""Characters of a line: ten times the longest that an agent writes by hand; reading it takes some 20 ms."""
_DEEPEST: Final = 100  # substitutions and groups inside of each other: bash itself gives up at a few thousand

_MOST_SIGNS: Final = 1200  # that separate, quote or expand: reading them takes some 20 ms
_MOST_ROUGH: Final = 200  # words of a command that cannot be read for certain
_COMPLEX: Final = re.compile(r"[;|&(){}<>$`\n'\"\\\[]")
_SINGLE_QUOTED: Final = re.compile(r"'[^']*'")

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_TAKES_COMMAND: Final = frozenset(["!", "{", "if", "then", "elif", "else", "while", "until", "do"])
"""Reserved words behind which a command begins."""

_GAP: Final = re.compile(r"(?:[ \t\n]|\\\n|\r(?=\n|\Z))*")
_AFTERRESERVED: Final = re.compile(r"(?:\\\n)*(?:[\s;|&()<>]|\Z)")
"""What ends a reserved word: for bash, `{rm` is a word."""
_COMMENT_START: Final = re.compile(r"(?:\A|[\s;&|()])\Z")
_ARITHMETIC: Final = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,()\[\]@#.\ue001]*")
_SUBSTITUTION: Final = re.compile(r"\$\(((?:[^()\"]|\"[^\"()]*\")*)\)")
_SIMPLE_EXPANSION: Final = re.compile(r"\$(?:\w+|[@*#?$!-])")
_PARAMETER: Final = re.compile(
    r"\$\{[!#]?(?:\w+|[@*#?$!-])(?:\[[\w@*\ue001 +-]*\])?(?:(?:[:=?+\-#%/^,@]|\[)(?:[^'\"\\{}$`\n]|\\[^'\"{}\n])*)?\}"
)
"""A `${…}` that bash and the grammar read alike: what quotes mean in it depends on where it stands."""
_EVALUATED: Final = re.compile(r"@P\}\Z")

_GROUPS: Final = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause",
    "while_statement", "do_group", "negated_command",
})  # fmt: skip
"""Parts that are made of commands and signs between them."""
_SIMPLE: Final = frozenset(
    {"command", "declaration_command", "unset_command", "variable_assignment", "variable_assignments"}
)
_EXPANSIONS: Final = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)
_MARKED: Final = _EXPANSIONS | {"array"}
_SIGNS: Final = frozenset({
    ";", "&", "&&", "||", "|", "|&", "\n", ";;", "(", ")", "{", "}", "!", "$(", "<(", ">(", "`", "((", "))",
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "in", "case", "esac",
    "function",
})  # fmt: skip
"""What stands between the parts of a group, by the grammar."""
_BEGIN_PARTS: Final = _SIGNS | {"elif_clause", "else_clause"}


class Script(Struct, frozen=True):
    """What a text of shell consists of."""

    commands: tuple[Command, ...]
    unreadable: str = ""
    """Why it cannot be read for certain; empty: it can."""


def read(line: str) -> Script:
    """Return the simple commands of a line, those inside of substitutions included."""
    if len(line) > LONGEST:
        return Script((), "it is too long")
    if PRIVATE.search(line) or "\0" in line:
        return Script((), "it has a character that no command has")
    plain = read_plain(line)
    if plain is not None:
        return Script(plain)
    return read_with_grammar(line)


def read_with_grammar(line: str) -> Script:
    """Return what `read` does, but slower."""
    reader = _Reader()
    reader.read(line, INHERITED, 0)
    return Script(tuple(reader.commands), reader.unreadable)


@cache
def _parser() -> Parser:
    """The grammar. Importing it takes some 10 ms, so it is loaded for the first line that is not plain."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Reader:
    """Collects the commands of one line and of the texts inside of it."""

    def __init__(self) -> None:
        self.commands: Final[list[Command]] = []
        self.unreadable = ""
        self._line = ""
        self._lexer = Lexer("", {})
        self._in_dash = False

    def read(self, line: str, input_: Input, depth: int) -> None:
        """Read a whole text; what is inside of it is read with the same reader."""
        line, heredocs = _without_heredocs(line, self)
        if len(line) > _MOST_SIGNS and len(_COMPLEX.findall(_SINGLE_QUOTED.sub("", line))) > _MOST_SIGNS:
            self.differs("it is too long")
            return
        root = _parse(line)
        expansions: dict[int, int] = {}
        _mark_expansions(root, expansions)
        outer = self._line, self._lexer
        self._line, self._lexer = line, Lexer(line, expansions, heredocs)
        if root.has_error:
            self.differs("a syntax error")
        if not (_GAP.fullmatch(line[: root.start_byte]) and _GAP.fullmatch(line[_end_of(root) :])):
            self.differs("a sign at the beginning or the end")
        self._visit(root, input_, depth)
        self._line, self._lexer = outer

    def differs(self, about: str) -> None:
        """Note why the line is unreadable: the first reason is kept."""
        self.unreadable = self.unreadable or about

    # --- statements ---

    def _visit(self, node: Node, input_: Input, depth: int) -> None:
        if depth > _DEEPEST:
            self.differs("it is nested too deep")
        else:
            _VISITS.get(node.type, _Reader._anything)(self, node, input_, depth)

    def _anything(self, node: Node, _input: Input, depth: int) -> None:
        """Collect what commands there are in a part that cannot be read for certain."""
        if node.type != "ERROR":
            self.differs(f"a part of the kind {node.type}")
        for child in node.children:
            if child.is_named:
                self._visit(child, INHERITED, depth + 1)

    def _group(self, node: Node, input_: Input, depth: int) -> None:
        if node.type == "compound_statement" and node.children and node.children[0].type == "((":
            self._arithmetic(node, node.start_byte + 2, node.end_byte - 2, depth)
            self._as_dash(node, depth)
            return
        self._check_gaps(node)
        fed = input_
        for child in node.children:
            if child.type in ("|", "|&"):
                fed = Input("pipe", echoed(self.commands[-1]) if self.commands else "")
            elif child.is_named and child.type != "word":
                self._visit(child, fed, depth + 1)
            elif child.type == "word":
                self._function_name(node, child)
            elif child.type not in _SIGNS and not child.is_missing:
                self.differs(f"a sign {child.type!r}")

    def _function_name(self, node: Node, child: Node) -> None:
        if node.type != "function_definition" or not re.fullmatch(r"[\w.:-]+", self._text(child)):
            self.differs("a word where a command should be")

    def _check_gaps(self, node: Node) -> None:
        """Make sure that only blanks, or the end of a line between two commands, stand between the parts."""
        before: Node | None = None
        for child in node.children:
            if child.type in RESERVED and not _AFTERRESERVED.match(self._line, child.end_byte):
                self.differs(f"the word that begins with {child.type!r}")
            if before is not None:
                gap = self._line[before.end_byte : child.start_byte]
                if not _GAP.fullmatch(gap):
                    self.differs("a sign between two commands")
                separate = before.type in _SIGNS or child.type in _BEGIN_PARTS or "\n" in gap.replace("\\\n", "")
                if not separate and "comment" not in (before.type, child.type) and before.type != "word":
                    self.differs("two commands without a separator")
            before = child

    def _function(self, node: Node, _input: Input, depth: int) -> None:
        self._group(node, INHERITED, depth)

    def _simple(self, node: Node, input_: Input, depth: int) -> None:
        start, end = node.start_byte, node.end_byte
        try:
            lexed = self._lexer.command(start, end)
        except Disagreement as error:
            self.differs(str(error))
            lexed = Lexed(tuple(self._rough_words(start, end)), (), None, ())
        self._substitutions(node, depth)
        self._add(lexed, input_)

    def _rough_words(self, start: int, end: int) -> Iterator[Word]:
        """The words of a command that cannot be read, as far as the grammar tells."""
        for text in self._line[start:end].split(maxsplit=_MOST_ROUGH)[:_MOST_ROUGH]:
            yield Word(text, text)

    def _add(self, lexed: Lexed, input_: Input) -> None:
        words = lexed.words
        if words and words[0].bare and words[0].text in RESERVED - {"time", "coproc", "[["}:
            self.differs(f"the word {words[0].text!r} where a command should be")
            while words and words[0].text in _TAKES_COMMAND:
                words = words[1:]
        if lexed.behind:
            self.commands.append(Command(lexed.behind))
        if words or lexed.assignments:
            self.commands.append(Command(words, lexed.assignments, lexed.input or input_, lexed.written))

    def _redirected(self, node: Node, input_: Input, depth: int) -> None:
        body = node.child_by_field_name("body")
        if body is None or body.type in _SIMPLE:
            self._simple(node, input_, depth)
            return
        try:
            lexed = self._lexer.command(body.end_byte, node.end_byte)
        except Disagreement as error:
            self.differs(str(error))
            lexed = Lexed((), (), None, ())
        if lexed.words or lexed.assignments or node.children[0].start_byte != body.start_byte:
            self.differs("a word behind a group")
            self._add(lexed, input_)
        for child in node.children:
            if child != body:
                self._substitutions(child, depth)
        last_only = body.type in ("pipeline", "list")  # the redirection belongs to the last command of these
        before = len(self.commands)
        self._visit(body, input_ if lexed.input is None or last_only else lexed.input, depth + 1)
        for at in range(max(before, len(self.commands) - 1) if last_only else before, len(self.commands)):
            command = self.commands[at]
            input_ = lexed.input or command.input if last_only else command.input
            self.commands[at] = replace(command, input=input_, written=command.written + lexed.written)

    def _test(self, node: Node, input_: Input, depth: int) -> None:
        """Read `[ … ]`, which is a simple command, or `[[ … ]]` and `(( … ))`, which are not."""
        opening = node.children[0].type
        if opening == "[":
            self._simple(node, input_, depth)
            return
        self._as_dash(node, depth)
        if opening == "((":
            self._arithmetic(node, node.start_byte + 2, node.end_byte - 2, depth)
            return
        if opening != "[[" or self._line[node.end_byte - 2 : node.end_byte] != "]]":
            self.differs("a test")
        self._check_words(node)
        self._substitutions(node, depth)

    def _as_dash(self, node: Node, depth: int) -> None:
        """Read `[[ … ]]` and `(( … ))` as shells do that do not have them: as commands between `&&` and `||`."""
        if self._in_dash:
            return
        self._in_dash = True
        reason, before = self.unreadable, len(self.commands)
        self.read(self._line[node.start_byte + 2 : node.end_byte - 2], INHERITED, depth + 1)
        self.commands[before:] = [each for each in self.commands[before:] if each.words and each.words[0].literal]
        self.unreadable, self._in_dash = reason, False

    def _check_words(self, node: Node) -> None:
        """Make sure that nothing in a test can be a command for bash: each part is a sign, or one word."""
        for child in node.children:
            if child.type in ("regex", "extglob_pattern", "word"):
                if re.search(r"[`;\n]|[$<>]\(|\$[{\[]", self._text(child)):
                    self.differs("a pattern in a test")
            elif child.type in _MARKED or child.type in ("string", "raw_string", "ansi_c_string", "concatenation"):
                self._word_of(child)
                if child.type != "string" and re.search(r"\[.*(?:\$\(|`)", self._text(child), re.DOTALL):
                    self.differs("a subscript in a test")  # `-v` and `-eq` evaluate it
            elif child.is_named:
                self._check_words(child)
            elif (
                ";" in child.type or child.type in ("`", "\n") or self._line.startswith(("<(", ">("), child.start_byte)
            ):
                self.differs("a sign in a test")

    def _word_of(self, node: Node) -> list[Word]:
        try:
            return self._lexer.words(node.start_byte, node.end_byte)
        except Disagreement as error:
            self.differs(str(error))
            return []

    def _loop_or_case(self, node: Node, input_: Input, depth: int) -> None:
        self._check_gaps_of_words(node)
        for child in node.children:
            if child.type in _VISITS or child.type == "ERROR":
                self._visit(child, input_, depth + 1)
            elif child.is_named and child.type not in ("variable_name", "extglob_pattern"):
                self._word_of(child)
                self._substitutions(child, depth)
            elif child.type == "extglob_pattern" and not re.fullmatch(r"[^\s'\"\\$`;&|()<>]+", self._text(child)):
                self.differs("a pattern of case")
            elif not child.is_named and child.type not in _SIGNS and not child.is_missing:
                self.differs(f"a sign {child.type!r}")

    def _check_gaps_of_words(self, node: Node) -> None:
        for before, child in zip(node.children, node.children[1:], strict=False):
            gap = self._line[before.end_byte : child.start_byte]
            if not _GAP.fullmatch(gap):
                self.differs("a sign between two words")

    def _c_style_for(self, node: Node, input_: Input, depth: int) -> None:
        body = node.child_by_field_name("body")
        end = body.start_byte if body else node.end_byte
        head = re.fullmatch(r"for\s*\(\((.*)\)\)\s*;?\s*", self._line[node.start_byte : end], re.DOTALL)
        if head is None or not _ARITHMETIC.fullmatch(self._blanked(node, head.start(1), head.end(1)).replace(";", " ")):
            self.differs("a loop with arithmetic")
        for child in node.children:
            if child == body:
                self._visit(child, input_, depth + 1)
            else:
                self._substitutions(child, depth)

    def _comment(self, node: Node, _input: Input, _depth: int) -> None:
        if not _COMMENT_START.search(self._line[max(0, node.start_byte - 1) : node.start_byte]) or "\n" in self._text(
            node
        ):
            self.differs("a comment")

    # --- expansions ---

    def _substitutions(self, node: Node, depth: int) -> None:
        """Visit what is expanded inside of a part."""
        if node.type in _EXPANSIONS:
            self._expansion(node, depth)
            return
        if node.type == "array":
            self._array(node)
        for child in node.children:
            if child.children or child.type in _EXPANSIONS:
                self._substitutions(child, depth)

    def _array(self, node: Node) -> None:
        text = self._line[node.start_byte + 1 : node.end_byte - 1].replace("\n", " ")
        if "#" in text or "\\" in text:
            self.differs("an array")
        try:
            Lexer(
                self._line[: node.start_byte + 1] + text + ")",
                self._expansions_in(node),
            ).words(node.start_byte + 1, node.end_byte - 1)
        except Disagreement as error:
            self.differs(str(error))

    @staticmethod
    def _expansions_in(node: Node) -> dict[int, int]:
        expansions: dict[int, int] = {}
        for child in node.children:
            _mark_expansions(child, expansions)
        return expansions

    def _expansion(self, node: Node, depth: int) -> None:
        text = self._text(node)
        if depth > _DEEPEST:
            self.differs("it is nested too deep")
        elif node.type == "simple_expansion":
            if not _SIMPLE_EXPANSION.fullmatch(text):
                self.differs("an expansion")
        elif node.type == "expansion":
            self._parameter(node, text, depth)
        elif node.type == "arithmetic_expansion":
            start = 3 if text.startswith("$((") else 2
            self._arithmetic(node, node.start_byte + start, node.end_byte - (start - 1), depth)
        elif text.startswith("`"):
            self._backquoted(text, depth)
        else:
            self._substituted(node, depth)

    def _parameter(self, node: Node, text: str, depth: int) -> None:
        """Read `${…}`."""
        if not _PARAMETER.fullmatch(self._blanked(node, 0, len(text))) or _EVALUATED.search(text):
            self.differs(f"the expansion {text[:40]}")
        for child in node.children:
            self._substitutions(child, depth + 1)

    def _substituted(self, node: Node, depth: int) -> None:
        """Read `$(…)`, `<(…)` or `>(…)`."""
        self._check_gaps(node)
        input_ = Input("pipe") if self._text(node).startswith(">") else INHERITED
        for child in node.children:
            if child.type == "file_redirect":  # $(<file)
                self._word_of_redirect(child)
                self._substitutions(child, depth)
            elif child.is_named:
                self._visit(child, input_, depth + 1)
            elif child.type not in _SIGNS and child.type not in ("$(", "<(", ">("):
                self.differs(f"a sign {child.type!r}")

    def _word_of_redirect(self, node: Node) -> None:
        try:
            if self._lexer.command(node.start_byte, node.end_byte).words:
                self.differs("a redirection")
        except Disagreement as error:
            self.differs(str(error))

    def _backquoted(self, text: str, depth: int) -> None:
        inner = text[1:-1]
        if re.search(r"(?<!\\)(?:\\\\)*`", inner) or not text.endswith("`"):
            self.differs("a backquote")
        if HEREDOC in inner:
            self.differs("a here-document in backquotes")
            return
        self.read(re.sub(r"\\([$`\\\"])", r"\1", inner), INHERITED, depth + 1)

    def _arithmetic(self, node: Node, start: int, end: int, depth: int) -> None:
        text = self._blanked(node, start - node.start_byte, end - node.start_byte)
        if not _ARITHMETIC.fullmatch(text):
            self.differs("arithmetic")
        for child in node.children:
            self._substitutions(child, depth + 1)

    def _blanked(self, node: Node, start: int, end: int) -> str:
        """Return a part of a node's text in which each expansion is one sign."""
        text, at, stop = "", node.start_byte + start, node.start_byte + end
        inner = self._expansions_in(node)
        for begin in sorted(inner):
            if at <= begin < stop:
                text += self._line[at:begin] + HOLE
                at = inner[begin]
        return text + self._line[at:stop]

    def _text(self, node: Node) -> str:
        return self._line[node.start_byte : node.end_byte]


_VISITS: Final[dict[str, Callable[[_Reader, Node, Input, int], None]]] = {
    **dict.fromkeys(_SIMPLE, _Reader._simple),
    **dict.fromkeys(_GROUPS, _Reader._group),
    "redirected_statement": _Reader._redirected,
    "function_definition": _Reader._function,
    "test_command": _Reader._test,
    **dict.fromkeys(("for_statement", "case_statement", "case_item"), _Reader._loop_or_case),
    "c_style_for_statement": _Reader._c_style_for,
    "comment": _Reader._comment,
}
"""How each kind of statement is read."""


def _parse(line: str) -> Node:
    # Each character becomes one byte, so that places are the same. For bash, all but those of ASCII are letters.
    return _parser().parse(_NOT_ASCII.sub("Z", line).encode()).root_node


def _end_of(root: Node) -> int:
    """Where the last part of a text ends."""
    return root.children[-1].end_byte if root.children else root.start_byte


def _mark_expansions(node: Node, expansions: dict[int, int]) -> None:
    """Note the outermost expansions of a part, by an own stack: the agent decides how deep it is nested."""
    todo = [node]
    while todo:
        part = todo.pop()
        if part.type in _MARKED:
            expansions[part.start_byte] = part.end_byte
        if part.type not in ("expansion", "arithmetic_expansion"):
            todo.extend(part.children)


# --- here-documents ---

_MOST_HEREDOCS: Final = 32  # of one text, with signs like theirs: people write one or two
_MOST_EXPANSIONS: Final = 600  # beside here-documents: looking at so many takes the grammar some 10 ms


def _without_heredocs(line: str, reader: _Reader) -> tuple[str, Sequence[Input]]:
    """Take the here-documents out of a line, one after another: the text without them, and what they contain."""
    heredocs: list[Input] = []
    while "<<" in line:
        begin = _first_heredoc(line, reader)
        if begin is None:
            break
        operator, dash = begin
        delimiter = DELIMITER.match(line, operator + 2 + dash)
        newline = line.find("\n", delimiter.end()) if delimiter else -1
        if delimiter is None or newline < 0 or is_open(line[delimiter.end() : newline]):
            reader.differs("a here-document")
            break
        quoted = re.search(r"['\"\\]", delimiter[1]) is not None
        body, end = find_body(line, newline + 1, unquoted(delimiter[1]), bool(dash), joins=not quoted)
        if body is None:
            reader.differs("a here-document without its end")
            break
        if not quoted:
            _read_body(body, reader)
        line = f"{line[:operator]}<{HEREDOC}{len(heredocs)} {line[delimiter.end() : newline + 1]}{line[end:]}"
        heredocs.append(Input("text", body, quoted or ("$" not in body and "`" not in body)))
    return line, heredocs


def _first_heredoc(line: str, reader: _Reader) -> tuple[int, int] | None:
    """The place of the first `<<` that begins a here-document, and 1 for `<<-`; None: there is none."""
    if line.count("<<") > _MOST_HEREDOCS or line.count("$") + line.count("`") > _MOST_EXPANSIONS:
        reader.differs("it has too many here-documents, or expansions in them")
        return None
    root = _parse(line)
    for found in re.finditer("<<", line):
        sign = root.descendant_for_byte_range(found.start(), found.end())
        if sign is not None and sign.start_byte == found.start() and sign.type in ("<<", "<<-"):
            after = sign.next_sibling
            if after is not None and after.type == "heredoc_start":
                return found.start(), int(sign.type == "<<-")
    return None


def _read_body(body: str, reader: _Reader) -> None:
    """Read the expansions of a here-document without quotes."""
    if "$" not in body and "`" not in body:
        return
    # In quotes, everything but a quote means the same. Inside of `$(…)` a quote is left alone.
    if '"' not in body:
        reader.read(f': "{body}"', INHERITED, 1)
        return
    for inner in _SUBSTITUTION.findall(body):
        reader.read(inner, INHERITED, 1)
    outside = _SUBSTITUTION.sub("", body)
    reader.read(': "' + outside.replace('"', "'") + '"', INHERITED, 1)
