"""The simple commands of a line of shell: `plain` reads most lines, a grammar of bash (tree-sitter-bash) the others.

What is not read: the value of a variable, an alias that is defined elsewhere, a script that is started by name.

How it works where `plain` gives up: the grammar divides the line into commands, and says where expansions are. `words`
reads each command again by the rules of bash's manual. What stands between two commands must be what bash takes for a
separator. Where both differ, where the grammar finds an error, and where a part is of a kind that is not in the tables
below, the line is *unreadable*, and the commands found so far still count (law 1: in any reading).

Here-documents are taken out of the line first, by bash's own rule (from the line after the operator to the first line
that is the delimiter), because the grammar ends them otherwise now and then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from .expansions import ARITHMETIC, DEEPEST, Expansions
from .grammar import MARKED, Found, Source, parse
from .heredocs import DELIMITER, expanded_texts, find_body, is_open, unquoted
from .plain import RESERVED, read_plain
from .words import HEREDOC, INHERITED, PRIVATE, Command, Disagreement, Input, Lexed, Word, echoed

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST: Final = 65_536
"""Characters of a line: ten times the longest that an agent writes by hand; reading it takes some 20 ms."""
_MOST_SIGNS: Final = 1200  # that separate, quote or expand: reading them takes some 20 ms
_MOST_OF: Final = {" ": 8000, "'": 8000, "*": 4000, "?": 4000}  # reading so many words or parts takes some 15 ms
_MOST_ROUGH: Final = 200  # words of a command that cannot be read for certain
_COMPLEX: Final = re.compile(r"[;|&(){}<>$`\n'\"\\\[]")
_SINGLE_QUOTED: Final = re.compile(r"'[^']*'")

_TAKES_COMMAND: Final = frozenset(["!", "{", "if", "then", "elif", "else", "while", "until", "do"])
"""Reserved words behind which a command begins."""

_GAP: Final = re.compile(r"(?:[ \t\n]|\\\n|\r(?=\n|\Z))*")
_AFTER_RESERVED: Final = re.compile(r"(?:\\\n)*(?:[\s;|&()<>]|\Z)")
"""What ends a reserved word: for bash, `{rm` is a word."""
_DESCRIPTOR: Final = re.compile(r"[ \t](\{[A-Za-z_]\w*\})\Z")
_COMMENT_START: Final = re.compile(r"(?:\A|[\s;&|()])\Z")
_GROUPS: Final = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause",
    "while_statement", "do_group", "negated_command",
})  # fmt: skip
"""Parts that are made of commands and signs between them."""
_SIMPLE: Final = frozenset(
    {"command", "declaration_command", "unset_command", "variable_assignment", "variable_assignments"}
)
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
    return Script(plain) if plain is not None else read_with_grammar(line)


def read_with_grammar(line: str) -> Script:
    """Return what `read` does, but slower."""
    found = Found()
    _read_text(line, INHERITED, 0, found)
    return Script(tuple(found.commands), found.unreadable)


def _read_text(line: str, input_: Input, depth: int, found: Found) -> None:
    """Read a whole text: the line, or one inside of it."""
    line, heredocs = _without_heredocs(line, found)
    signs = len(_COMPLEX.findall(_SINGLE_QUOTED.sub("", line))) if len(line) > _MOST_SIGNS else 0
    if signs > _MOST_SIGNS or any(line.count(sign) > most for sign, most in _MOST_OF.items()):
        found.differs("", "it is too long")
        return
    _Statements(Source(line, heredocs, found)).read(input_, depth)


class _Statements:
    """Reads the statements of one text. What is found is in `Source.found`, which all texts of a line share."""

    def __init__(self, source: Source) -> None:
        self._source: Final = source
        self._line: Final = source.line
        self._found: Final = source.found
        self._expansions: Final = Expansions(source, self._substituted, self._text_inside)

    def read(self, input_: Input, depth: int) -> None:
        """Read the text from its root on."""
        root = self._source.root
        end = root.children[-1].end_byte if root.children else root.start_byte
        if not (_GAP.fullmatch(self._line[: root.start_byte]) and _GAP.fullmatch(self._line[end:])):
            self._found.differs(self._line, "a sign at its beginning or end that the grammar does not see")
        self._visit(root, input_, depth)

    def _text_inside(self, text: str, depth: int) -> None:
        _read_text(text, INHERITED, depth, self._found)

    def _visit(self, node: Node, input_: Input, depth: int) -> None:
        if depth > DEEPEST:
            self._source.differs(node, "it is nested too deep")
        else:
            _VISITS.get(node.type, _Statements._anything)(self, node, input_, depth)

    def _anything(self, node: Node, _input: Input, depth: int) -> None:
        """Collect what commands there are in a part that cannot be read for certain."""
        if node.type != "ERROR":
            self._source.differs(node, f"no rule of bash is known for this ({node.type.replace('_', ' ')})")
        for child in node.children:
            if child.is_named:
                self._visit(child, INHERITED, depth + 1)

    def _group(self, node: Node, input_: Input, depth: int) -> None:
        if node.type == "compound_statement" and node.children and node.children[0].type == "((":
            self._expansions.arithmetic(node, node.start_byte + 2, node.end_byte - 2, depth)
            self._as_dash(node, depth)
            return
        self._check_gaps(node)
        fed = input_
        for child in node.children:
            if child.type in ("|", "|&"):
                fed = Input("pipe", echoed(self._found.commands[-1]) if self._found.commands else "")
            elif child.is_named and child.type != "word":
                self._visit(child, fed, depth + 1)
            elif child.type == "word":
                self._function_name(node, child)
            elif child.type not in _SIGNS and not child.is_missing:
                self._source.differs(node, f"a {child.type!r} where none is expected")

    def _function_name(self, node: Node, child: Node) -> None:
        if node.type != "function_definition" or not re.fullmatch(r"[\w.:-]+", self._source.of(child)):
            self._source.differs(child, "a word where a command should be")

    def _check_gaps(self, node: Node) -> None:
        """Make sure that only blanks, or the end of a line between two commands, stand between the parts."""
        before: Node | None = None
        for child in node.children:
            if child.type in RESERVED and not _AFTER_RESERVED.match(self._line, child.end_byte):
                self._found.differs(self._line[child.start_byte :], f"a word that begins with {child.type!r}")
            if before is not None:
                gap = self._line[before.end_byte : child.start_byte]
                if not _GAP.fullmatch(gap):
                    self._found.differs(
                        self._line[before.end_byte :], "this sign between two commands may be read in two ways"
                    )
                separate = before.type in _SIGNS or child.type in _BEGIN_PARTS or "\n" in gap.replace("\\\n", "")
                if not separate and "comment" not in (before.type, child.type) and before.type != "word":
                    self._source.differs(child, "no separator stands before this command")
            before = child

    def _function(self, node: Node, _input: Input, depth: int) -> None:
        self._group(node, INHERITED, depth)

    def _simple(self, node: Node, input_: Input, depth: int) -> None:
        start, end = node.start_byte, node.end_byte
        try:
            lexed = self._source.lexer.command(start, end)
        except Disagreement as error:
            self._source.differs(node, str(error))
            lexed = Lexed(tuple(self._rough_words(start, end)), (), None, ())
        self._expansions.read(node, depth)
        self._add(lexed, input_)

    def _rough_words(self, start: int, end: int) -> Iterator[Word]:
        """The words of a command that cannot be read, as far as the grammar tells."""
        for text in self._line[start:end].split(maxsplit=_MOST_ROUGH)[:_MOST_ROUGH]:
            yield Word(text, text)

    def _add(self, lexed: Lexed, input_: Input) -> None:
        words = lexed.words
        if words and words[0].bare and words[0].text in RESERVED - {"time", "coproc", "[["}:
            self._found.differs(words[0].text, "this word stands where a command should be")
            while words and words[0].text in _TAKES_COMMAND:
                words = words[1:]
        if lexed.behind:
            self._found.commands.append(Command(lexed.behind))
        if words or lexed.assignments or lexed.opened or lexed.input is not None:
            self._found.commands.append(Command(words, lexed.assignments, lexed.input or input_, lexed.opened))

    def _redirected(self, node: Node, input_: Input, depth: int) -> None:
        body = node.child_by_field_name("body")
        if body is None or body.type in _SIMPLE:
            self._simple(node, input_, depth)
            return
        try:
            lexed = self._source.lexer.command(body.end_byte, node.end_byte)
        except Disagreement as error:
            self._source.differs(node, str(error))
            lexed = Lexed((), (), None, ())
        if lexed.words or lexed.assignments or node.children[0].start_byte != body.start_byte:
            self._source.differs(node, "a word stands behind a group of commands")
            self._add(lexed, input_)
        for child in node.children:
            if child != body:
                self._expansions.read(child, depth)
        last_only = body.type in ("pipeline", "list")  # the redirection belongs to the last command of these
        before = len(self._found.commands)
        self._visit(body, input_ if lexed.input is None or last_only else lexed.input, depth + 1)
        self._take_descriptor(self._line[: body.end_byte], before)
        for at in range(max(before, len(self._found.commands) - 1) if last_only else before, len(self._found.commands)):
            command = self._found.commands[at]
            input_ = lexed.input or command.input if last_only else command.input
            self._found.commands[at] = replace(command, input=input_, opened=command.opened + lexed.opened)

    def _take_descriptor(self, text: str, before: int) -> None:
        """Take `{fd}` away from the last command: right before a redirection, it is the name of its descriptor."""
        commands = self._found.commands
        descriptor = _DESCRIPTOR.search(text)
        if (
            descriptor
            and len(commands) > before
            and commands[-1].words[-1:] == (Word(descriptor[1], descriptor[1], True),)
        ):
            commands[-1] = replace(commands[-1], words=commands[-1].words[:-1])

    def _test(self, node: Node, input_: Input, depth: int) -> None:
        """Read `[ … ]`, which is a simple command, or `[[ … ]]` and `(( … ))`, which are not."""
        opening = node.children[0].type
        if opening == "[":
            self._simple(node, input_, depth)
            return
        self._as_dash(node, depth)
        if opening == "((":
            self._expansions.arithmetic(node, node.start_byte + 2, node.end_byte - 2, depth)
            return
        if opening != "[[" or self._line[node.end_byte - 2 : node.end_byte] != "]]":
            self._source.differs(node, "this test does not end")
        self._check_words(node)
        self._expansions.read(node, depth)

    def _as_dash(self, node: Node, depth: int) -> None:
        """Read `[[ … ]]` and `(( … ))` as shells do that do not have them: as commands between `&&` and `||`."""
        found = self._found
        if found.in_dash:
            return
        found.in_dash = True
        reason, before = found.unreadable, len(found.commands)
        self._text_inside(self._line[node.start_byte + 2 : node.end_byte - 2], depth + 1)
        found.commands[before:] = [
            command for command in found.commands[before:] if command.words and command.words[0].literal
        ]
        found.unreadable, found.in_dash = reason, False

    def _check_words(self, node: Node) -> None:
        """Make sure that nothing in a test can be a command for bash: each part is a sign, or one word."""
        for child in node.children:
            if child.type in ("regex", "extglob_pattern", "word"):
                if re.search(r"[`;\n]|[$<>]\(|\$[{\[]", self._source.of(child)):
                    self._source.differs(child, "this pattern in a test may hold a command")
            elif child.type in MARKED or child.type in ("string", "raw_string", "ansi_c_string", "concatenation"):
                self._source.words(child)
                if child.type != "string" and re.search(r"\[.*(?:\$\(|`)", self._source.of(child), re.DOTALL):
                    self._source.differs(child, "this subscript in a test is evaluated")  # `-v` and `-eq` evaluate it
            elif child.is_named:
                self._check_words(child)
            elif (
                ";" in child.type or child.type in ("`", "\n") or self._line.startswith(("<(", ">("), child.start_byte)
            ):
                self._source.differs(node, f"a {child.type!r} in a test")

    def _loop_or_case(self, node: Node, input_: Input, depth: int) -> None:
        self._check_gaps_of_words(node)
        variable, words = "", list[Word]()
        for child in node.children:
            if child.type in _VISITS or child.type == "ERROR":
                if variable and words:
                    self._found.commands.append(Command((), tuple((variable, word) for word in words)))
                    words = []
                self._visit(child, input_, depth + 1)
            elif child.type == "variable_name":
                variable = self._source.of(child)
            elif child.is_named and child.type != "extglob_pattern":
                words += self._source.words(child)
                self._expansions.read(child, depth)
            elif child.type == "extglob_pattern" and not re.fullmatch(r"[^\s'\"\\$`;&|()<>]+", self._source.of(child)):
                self._source.differs(child, "this pattern may be read in two ways")
            elif not child.is_named and child.type not in _SIGNS and not child.is_missing:
                self._source.differs(node, f"a {child.type!r} where none is expected")

    def _check_gaps_of_words(self, node: Node) -> None:
        for before, child in zip(node.children, node.children[1:], strict=False):
            gap = self._line[before.end_byte : child.start_byte]
            if not _GAP.fullmatch(gap):
                self._found.differs(
                    self._line[before.end_byte :], "this sign between two words may be read in two ways"
                )

    def _c_style_for(self, node: Node, input_: Input, depth: int) -> None:
        body = node.child_by_field_name("body")
        end = body.start_byte if body else node.end_byte
        head = re.fullmatch(r"for\s*\(\((.*)\)\)\s*;?\s*", self._line[node.start_byte : end], re.DOTALL)
        if head is None or not ARITHMETIC.fullmatch(
            self._source.blanked(node, head.start(1), head.end(1)).replace(";", " ")
        ):
            self._source.differs(node, "this loop with arithmetic may be read in two ways")
        for child in node.children:
            if child == body:
                self._visit(child, input_, depth + 1)
            else:
                self._expansions.read(child, depth)

    def _comment(self, node: Node, _input: Input, _depth: int) -> None:
        if not _COMMENT_START.search(
            self._line[max(0, node.start_byte - 1) : node.start_byte]
        ) or "\n" in self._source.of(node):
            self._source.differs(node, "it is not certain where this comment begins or ends")

    def _substituted(self, node: Node, input_: Input, depth: int) -> None:
        """Read the commands in `$(…)`, `<(…)` or `>(…)`."""
        self._check_gaps(node)
        for child in node.children:
            if child.type == "file_redirect":  # $(<file)
                self._expansions.read(child, depth)
                self._found.commands.append(self._source.redirection(child))
            elif child.is_named:
                self._visit(child, input_, depth + 1)
            elif child.type not in _SIGNS:
                self._source.differs(node, f"a {child.type!r} where none is expected")


_VISITS: Final[dict[str, Callable[[_Statements, Node, Input, int], None]]] = {
    **dict.fromkeys(_SIMPLE, _Statements._simple),
    **dict.fromkeys(_GROUPS, _Statements._group),
    "redirected_statement": _Statements._redirected,
    "function_definition": _Statements._function,
    "test_command": _Statements._test,
    **dict.fromkeys(("for_statement", "case_statement", "case_item"), _Statements._loop_or_case),
    "c_style_for_statement": _Statements._c_style_for,
    "comment": _Statements._comment,
}
"""How each kind of statement is read."""


# --- here-documents ---

_MOST_HEREDOCS: Final = 32  # of one text, with signs like theirs: people write one or two
_MOST_EXPANSIONS: Final = 600  # beside here-documents: looking at so many takes the grammar some 10 ms


def _without_heredocs(line: str, found: Found) -> tuple[str, Sequence[Input]]:
    """Take the here-documents out of a line, one after another: the text without them, and what they contain."""
    heredocs: list[Input] = []
    while "<<" in line:
        begin = _first_heredoc(line, found)
        if begin is None:
            break
        operator, dash = begin
        delimiter = DELIMITER.match(line, operator + 2 + dash)
        newline = line.find("\n", delimiter.end()) if delimiter else -1
        if delimiter is None or newline < 0 or is_open(line[delimiter.end() : newline]):
            found.differs(line[operator:], "it is not certain where this here-document begins")
            break
        quoted = re.search(r"['\"\\]", delimiter[1]) is not None
        body, end = find_body(line, newline + 1, unquoted(delimiter[1]), bool(dash), joins=not quoted)
        if body is None:
            found.differs(line[operator:], "this here-document does not end")
            break
        for text in () if quoted else expanded_texts(body):
            _read_text(text, INHERITED, 1, found)
        line = f"{line[:operator]}<{HEREDOC}{len(heredocs)} {line[delimiter.end() : newline + 1]}{line[end:]}"
        heredocs.append(Input("text", body, quoted or ("$" not in body and "`" not in body)))
    return line, heredocs


def _first_heredoc(line: str, found: Found) -> tuple[int, int] | None:
    """The place of the first `<<` that begins a here-document, and 1 for `<<-`; None: there is none."""
    if line.count("<<") > _MOST_HEREDOCS or line.count("$") + line.count("`") > _MOST_EXPANSIONS:
        found.differs("", "it has too many here-documents, or expansions beside them")
        return None
    root = parse(line)
    for operator in re.finditer("<<", line):
        sign = root.descendant_for_byte_range(operator.start(), operator.end())
        if sign is not None and sign.start_byte == operator.start() and sign.type in ("<<", "<<-"):
            after = sign.next_sibling
            if after is not None and after.type == "heredoc_start":
                return operator.start(), int(sign.type == "<<-")
    return None
