"""Reads most lines of shell without the grammar. It is there for speed alone: to judge one of the lines of
`tests/shell/ordinary_lines.txt` by a rule takes 59 µs with it and 123 µs without, on average.

How it works: one place moves through the line from left to right, and never back. A list of commands is read by a
function that calls itself for what stands in parentheses, loops and conditions, and returns the sign or word that ends
the list. Only what every shell reads alike is read: words of plain characters, quotes, escapes, patterns and usual
expansions; the usual redirections and here-documents; `if`, `while`, `for … in`, `[[` and groups.
Anything else, and anything that is an error, raises `_NotPlain`, and the grammar reads the line from its beginning.

What must hold: the commands are those that the grammar's way finds, in the same order (a property in the tests).
"""

from __future__ import annotations

import re
from typing import Final

from .heredocs import DELIMITER, expanded_texts, find_body, unquoted
from .words import GLOB, HOLE, INHERITED, SPLIT, Command, Input, Opened, Word, echoed, expand_braces, opened

_MOST_COMMANDS: Final = 1200  # reading so many takes some 5 ms
_MOST_WORK: Final = 20_000  # parts of words, lists and redirections, each by what it takes: about one microsecond
_DEEPEST: Final = 20  # lists inside of each other: people write three

RESERVED: Final = frozenset({
    "!", "{", "}", "[[", "]]", "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until",
    "do", "done", "in", "function", "coproc", "time",
})  # fmt: skip
"""Words of the shell's own grammar, where a command may begin."""

_BLANKS: Final = r"(?:[ \t]|(?<=[ \t\n])\\\n)*"
_END: Final = r"(?=[ \t\n;|&)]|\Z)"
_CHARACTERS: Final = "A-Za-z0-9_@%+:,./"
_VARIABLE: Final = (
    r"\$(?P<variable>[A-Za-z_]\w*|[0-9?#@*](?!\w)|\{[!#]?(?:[A-Za-z_]\w*|[0-9?#@*])(?:\[[\w@*+ -]*\])?"
    r"(?:[:=?+\-#%/^,@][^'\"\\{}$`()<>\n\r]*)?(?<!@P)\}|\(\([\w \t+*/%<>=!&|^~?:,.-]*\)\))"
)
"""What is expanded, and holds no command."""
_OTHER_PARTS: Final = rf"{_VARIABLE}|\\(?P<escaped>[^\n\r])|(?P<substitution>\$\((?![(<]))|(?P<quote>\")"

_LITERALS: Final = rf"(?:[ \t]+(?:(?:(?>[{_CHARACTERS}=-]+)|\{{\}})+|!=?|\[|\]|'[^'\r]*'|\"[^\"\\$`\r]*\"){_END})"
_WORDS: Final = re.compile(f"{_LITERALS}+")
"""Words of plain characters, or in quotes and with nothing else than text: most of all words."""
_WORD: Final = re.compile(r"[ \t]+(?:'([^']*)'|\"([^\"]*)\"|([^ \t]+))")
_SEPARATORS: Final = r"&&|\|\|?(?![&|])|;(?![;&])|&(?![>&])|\n|\)|\Z"
_COMMAND: Final = re.compile(rf"[ \t]*((?>[{_CHARACTERS}-]+)|\[){_END}({_LITERALS}*)(?:[ \t]*({_SEPARATORS}))?")
"""A command that begins with such words; if it is nothing else, with what separates it from the next one."""
_BRACED: Final = re.compile(rf"[ \t]{_BLANKS}([{_CHARACTERS}=*?-]*\{{[{_CHARACTERS}=*?{{}}-]*){_END}")
"""A word with braces, and nothing else that is not plain."""
_PART: Final = re.compile(
    rf"(?P<plain>(?:[{_CHARACTERS}=-]|\{{\}}|(?<=[\w/])[~^#]|(?<![^\s=])~(?=/))+)|(?P<pattern>[*?])"
    r"|'(?P<single>[^'\r]*)'|\"(?P<double>[^\"\\$`\r]*)\""
    rf"|{_OTHER_PARTS}",
    re.ASCII,
)
_QUOTED_PART: Final = re.compile(rf"(?P<plain>[^\"\\$`\r]+)|(?P<continued>(?<![$\\])\\\n)|{_OTHER_PARTS}", re.ASCII)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_REDIRECTION: Final = re.compile(
    rf"{_BLANKS}(?:[12]?>&[12]{_END}|<<(?P<tabs>-?)(?![<-])|"
    rf"(?:[12]?(?P<output>>>|>\||>(?!&))|(?P<input><<<|<(?![<&>(]))){_BLANKS}(?=[^\s<>&;|()]))"
)
_REST_OF_LINE: Final = re.compile(r"[^'\"\\`()<#{}\[\]!\n\r]*(?=\n)")
"""What may follow a here-document's delimiter: nothing that could go on behind the end of the line."""
_COMMAND_ENDS: Final = re.compile(rf"{_BLANKS}(?:[\n;|&)]|\Z)")
_SEPARATOR: Final = re.compile(rf"{_BLANKS}(?:(?<=[ \t])#[^\n\r]*(?=\n|\Z))?({_SEPARATORS})")
_TO_COMMAND: Final = re.compile(r"(?:[ \t\n]|#[^\n\r]*(?=\n|\Z))*")
_TO_END_OF_LINE: Final = re.compile(r"[ \t]*(?:#[^\n\r]*(?=\n|\Z))?")
_TO_WORD: Final = re.compile(rf"[ \t]{_BLANKS}")
_KEYWORD: Final = re.compile(rf"(?:[a-z]+|[{{}}]|\[\[){_END}")
_FOR: Final = re.compile(r"[ \t]+([A-Za-z_]\w*)[ \t]+in(?=[ \t])", re.ASCII)
_NEGATED: Final = re.compile(r"[ \t]+!(?=[ \t])")
_TEST_ENDS: Final = re.compile(rf"[ \t]+\]\]{_END}")
_BEGINS: Final = ("(", "{", "if", "while", "until")
_ENDS: Final[dict[str, tuple[str, ...]]] = {
    "(": (")",), "{": ("}",), "if": ("then",), "then": ("elif", "else", "fi"), "elif": ("then",), "else": ("fi",),
    "while": ("do",), "until": ("do",), "do": ("done",),
}  # fmt: skip
"""What ends the list of commands behind each sign or word of a statement."""
_FEEDING: Final = ("&&", "||", "|")
"""Separators behind which a command must follow."""
_CLOSING: Final = ("", ")")
"""Signs that end a list right behind a command."""


def _literal_words(text: str) -> list[Word]:
    """The words of a text that `_WORDS` matches."""
    if "'" not in text and '"' not in text:
        return [Word(word, word, True) for word in text.split()]
    parts = _WORD.findall(text)
    return [Word(word := plain or single or double, word, plain != "") for single, double, plain in parts]


class _NotPlain(Exception):
    """The line is not one that this file reads."""


def read_plain(line: str) -> tuple[Command, ...] | None:
    """Return the commands of a line; None if it must be read with the grammar."""
    reader = _PlainReader(line)
    try:
        reader.read_list(INHERITED, ("",))
    except _NotPlain:
        return None
    return tuple(reader.commands)


class _PlainReader:
    """One line, and the place up to which it has been read.

    It is one class although it is long: lists, statements, commands and words call each other (a word may hold a list),
    and all move the one place. It owns the place, the commands so far, the depth, the work that is left, and where
    the here-documents end whose line has not been passed yet: the end of that line leads behind them.
    What must hold: `commands` has a command behind those inside of its expansions; each function leaves the place right
    behind what it has read, and raises `_NotPlain` rather than to guess.
    """

    __slots__ = ("_at", "_bodies", "_depth", "_line", "commands", "left")

    def __init__(self, line: str, depth: int = 0, left: int = _MOST_WORK) -> None:
        self._line: Final = line
        self._at = 0
        self._depth = depth
        self.left = left  # how much work may still be done: the agent decides how long a line is
        self._bodies: Final[dict[int, int]] = {}
        """Where the here-documents end, by the end of the line before each."""
        self.commands: Final[list[Command]] = []

    # --- lists of commands ---

    def read_list(self, input_: Input, ends: tuple[str, ...]) -> str:  # noqa: C901  # one branch for each sign
        """Read commands up to one of these signs or words, and return it; "" is the end of the line."""
        line, fed, separator = self._line, input_, "&&"
        self._depth += 1
        self._spend(5)
        if self._depth > _DEEPEST:
            raise _NotPlain
        while True:
            sign = None
            plain = _COMMAND.match(line, self._at)
            if plain is None or plain[1] in RESERVED:
                end = self._other_command(fed, separator, ends)
                if end is not None:
                    break
            else:  # most begin so
                self._at, sign = plain.end(), plain[3]
                words = [Word(plain[1], plain[1], True), *_literal_words(plain[2])]
                if sign is None:
                    self._simple(fed, words)
                else:
                    self.commands.append(Command(tuple(words), (), fed))
            separator = self._separator() if sign is None else sign
            if separator in _CLOSING:
                end = separator
                break
            if separator == "\n":
                self._at -= 1
            if len(self.commands) > _MOST_COMMANDS:
                raise _NotPlain
            fed = input_
            if separator == "|":
                fed = Input("pipe", echoed(self.commands[-1]) if self.commands else "")
        if end not in ends:
            raise _NotPlain
        self._depth -= 1
        return end

    def _other_command(self, fed: Input, separator: str, ends: tuple[str, ...]) -> str | None:
        """Read a command that does not begin with a plain word. Returns the end of the list; None: there was one."""
        self._go_to_command()
        end = self._end_of_list(ends)
        if end is not None:
            if separator in _FEEDING:
                raise _NotPlain
        elif self._line.startswith(("! ", "!\t"), self._at) and separator != "|":
            self._at += 2
            self._go_to_command()
            self._simple(fed, [])
        else:
            self._statement(fed)
        return end

    def _separator(self) -> str:
        match = _SEPARATOR.match(self._line, self._at)
        if match is None:
            raise _NotPlain
        self._at = match.end()
        return match[1]

    def _spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise _NotPlain

    def _go_to_command(self) -> None:
        """Skip blanks, comments, ends of lines and here-documents."""
        line = self._line
        if not self._bodies:
            self._at = _TO_COMMAND.match(line, self._at).end()  # type: ignore[union-attr]  # it matches nothing, too
            return
        while True:
            at = _TO_END_OF_LINE.match(line, self._at).end()  # type: ignore[union-attr]  # as above
            if not line.startswith("\n", at):
                self._at = at
                return
            self._at = self._bodies.get(at, at + 1)

    def _end_of_list(self, ends: tuple[str, ...]) -> str | None:
        """The sign or word that ends the list, and goes past it; None: a command begins here."""
        if self._at == len(self._line):
            return ""
        if self._line[self._at] == ")":
            self._at += 1
            return ")"
        if ends[0] not in ("", ")"):
            keyword = _KEYWORD.match(self._line, self._at)
            if keyword is not None and keyword[0] in ends:
                self._at = keyword.end()
                return keyword[0]
        return None

    def _statement(self, fed: Input) -> None:
        line, at, before = self._line, self._at, len(self.commands)
        keyword = _KEYWORD.match(line, at)
        is_group = line[at] == "(" and not line.startswith("(", at + 1)
        if not is_group and (keyword is None or keyword[0] not in RESERVED or keyword[0] == "time"):
            self._simple(fed, [])
            return
        if fed is INHERITED:
            fed = Input(INHERITED.kind)  # so that commands inside of expansions can be told from the group's own
        sign = keyword[0] if keyword and not is_group else "("
        self._at = at + len(sign)
        if sign == "for":
            sign = self._loop_head()
        elif sign == "[[":
            self._test(fed)
        elif sign not in _BEGINS:
            raise _NotPlain
        while (ends := _ENDS.get(sign)) is not None:
            sign = self.read_list(fed, ends)
        self._redirect_group(before, fed)

    def _redirect_group(self, before: int, fed: Input) -> None:
        """Read the redirections behind a group, which are those of all commands from this one on."""
        files: list[Opened] = []
        input_: Input | None = None
        after = len(self.commands)
        while (redirection := _REDIRECTION.match(self._line, self._at)) is not None:
            input_ = self._redirected(redirection, files) or input_
        if len(self.commands) > after or (input_ and fed.kind == "pipe"):
            raise _NotPlain
        if files or input_:
            for at in range(before, after):
                command = self.commands[at]
                own = input_ if input_ and command.input is fed else command.input
                self.commands[at] = Command(command.words, command.assignments, own, (*command.opened, *files))

    def _test(self, fed: Input) -> None:
        """Read `[[ … ]]`. For dash, it is a command; what it tests is read as one, too, as the grammar's way does."""
        before = len(self.commands)
        words: list[Word] = []
        if negated := _NEGATED.match(self._line, self._at):
            self._at = negated.end()
        while (word := self._next_word()) is not None:
            words.append(word)
        ends = _TEST_ENDS.match(self._line, self._at)
        if ends is None or not words or "#" in words[0].text or len(self.commands) > before or fed.kind == "pipe":
            raise _NotPlain
        self._at = ends.end()
        if any("[" in word.source for word in words):  # `-v` and `-eq` evaluate a subscript
            raise _NotPlain
        self._check_first(words)
        if words[0].literal:
            self.commands.append(Command(tuple(words)))

    def _loop_head(self) -> str:
        """Read from behind `for` to behind `do`: the loop sets its variable to each of its words."""
        line = self._line
        head = _FOR.match(line, self._at)
        if head is None:
            raise _NotPlain
        self._at = head.end()
        words: list[Word] = []
        while self._add_next(words):
            pass
        separator = _SEPARATOR.match(line, self._at)
        if separator is None or separator[1] not in (";", "\n") or not words:
            raise _NotPlain
        self.commands.append(Command((), tuple((head[1], word) for word in words)))
        self._at = separator.end()
        self._go_to_command()
        keyword = _KEYWORD.match(line, self._at)
        if keyword is None or keyword[0] != "do":
            raise _NotPlain
        self._at = keyword.end()
        return "do"

    # --- simple commands ---

    def _simple(self, fed: Input, words: list[Word]) -> None:
        """Read a simple command, of which the first words may be read already."""
        assignments: list[tuple[str, Word]] = []
        files: list[Opened] = []
        if not words and (first := self._first_word(assignments)) is not None:
            words.append(first)
        if words:
            while (redirection := self._read_words(words)) is not None:
                fed = self._redirected(redirection, files) or fed
            self._check_first(words)
        elif not assignments:
            raise _NotPlain
        self.commands.append(Command(tuple(words), tuple(assignments), fed, tuple(files)))

    def _read_words(self, words: list[Word]) -> re.Match[str] | None:
        """Read the words that follow. Returns the redirection behind them; None: there is none."""
        line = self._line
        while True:
            plain = _WORDS.match(line, self._at)
            if plain is not None:
                words += _literal_words(plain[0])
                self._at = plain.end()
            elif _COMMAND_ENDS.match(line, self._at) is not None:
                return None
            elif (redirection := _REDIRECTION.match(line, self._at)) is not None:
                return redirection
            elif not self._add_next(words):
                return None

    def _add_next(self, words: list[Word]) -> bool:
        """Add the next word, or the words for which one with braces stands. False: there is none."""
        if (braced := _BRACED.match(self._line, self._at)) is not None:
            self._spend(10 + len(braced[1]))
            words.extend(expand_braces(braced[1]))
            self._at = braced.end()
        elif (word := self._next_word()) is not None:
            words.append(word)
        else:
            return False
        return True

    def _first_word(self, assignments: list[tuple[str, Word]]) -> Word | None:
        """Read the assignments that stand here, and the first word."""
        line = self._line
        while True:
            name = _ASSIGNMENT.match(line, self._at)
            if name is None:
                break
            self._at = name.end()
            value = self._word()
            assignments.append((name[1], Word("", "") if value is None else Word(value.text, value.source)))
            blanks = _TO_WORD.match(line, self._at)
            if blanks is None:
                return None
            self._at = blanks.end()
        return self._word()

    @staticmethod
    def _check_first(words: list[Word]) -> None:
        """Raise _NotPlain where the grammar may see something else than a command of these words."""
        first = words[0]
        if first.bare and first.text in RESERVED:
            if first.text != "time" or len(words) == 1 or words[1].text in RESERVED:
                raise _NotPlain
        elif "=" in first.text or "{" in first.text or (len(words) == 1 and first.text == "]]"):
            raise _NotPlain

    def _redirected(self, redirection: re.Match[str], files: list[Opened]) -> Input | None:
        """Read the target of a redirection: the input that it gives; None: it is one of output."""
        self._at = redirection.end()
        self._spend(3)
        if redirection["tabs"] is not None:
            return self._heredoc(without_tabs=redirection["tabs"] != "")
        if redirection["output"] is redirection["input"] is None:
            return None
        target = self._word()
        if target is None:
            raise _NotPlain
        if redirection["input"] == "<<<":
            return Input("text", target.source, target.literal)
        files += opened(redirection["input"] or redirection["output"], Word(target.text, target.source))
        return Input("file", target.text) if redirection["input"] else None

    def _heredoc(self, *, without_tabs: bool) -> Input:
        line = self._line
        delimiter = DELIMITER.match(line, self._at)
        rest = _REST_OF_LINE.match(line, delimiter.end()) if delimiter else None
        mark = unquoted(delimiter[1]) if delimiter else ""
        if delimiter is None or rest is None or not mark or rest.end() in self._bodies:
            raise _NotPlain
        is_quoted = mark != delimiter[1]
        body, end = find_body(line, rest.end() + 1, mark, without_tabs, joins=not is_quoted)
        if body is None:
            raise _NotPlain
        is_literal = is_quoted or ("$" not in body and "`" not in body)
        if not is_literal:
            for text in expanded_texts(body):
                self._read_inside(text)
        self._bodies[rest.end()] = end
        self._at = delimiter.end()
        return Input("text", body, is_literal)

    def _read_inside(self, text: str) -> None:
        reader = _PlainReader(text, self._depth, self.left)
        reader.read_list(INHERITED, ("",))
        self.left = reader.left
        self.commands.extend(reader.commands)

    # --- words ---

    def _next_word(self) -> Word | None:
        """Read a word behind blanks; None: there is none."""
        before = self._at
        blanks = _TO_WORD.match(self._line, before)
        if blanks is None:
            return None
        self._at = blanks.end()
        word = self._word()
        if word is None:
            self._at = before
        return word

    def _word(self) -> Word | None:
        """Read the word that begins here; None: there is none."""
        line, start = self._line, self._at
        texts: list[str] = []
        sources: list[str] = []
        bare = self._parts(_PART, texts, sources)
        if self._at == start:
            return None
        if self._at < len(line) and line[self._at] not in " \t\n;|&)":
            raise _NotPlain
        return Word("".join(texts), "".join(sources), bare)

    def _parts(self, pattern: re.Pattern[str], texts: list[str], sources: list[str]) -> bool:  # noqa: C901  # one branch for each
        """Read the parts of a word, or what stands in its double quotes; True: nothing in it is quoted or expanded."""
        line, in_quotes, bare = self._line, pattern is _QUOTED_PART, True
        while (part := pattern.match(line, self._at)) is not None:
            self._at = part.end()
            self._spend(2)
            kind, text = part.lastgroup, part[0]
            if kind in ("plain", "pattern"):
                texts.append(text if kind == "plain" else GLOB)
                sources.append(text)
                continue
            bare = False
            match kind:
                case "single" | "double":
                    texts.append(part[kind])
                    sources.append(part[kind])
                    continue
                case "escaped":
                    escaped = part[kind]
                    texts.append(escaped if not in_quotes or escaped in '$`"\\' else text)
                    sources.append(texts[-1])
                    continue
                case "continued":
                    continue
                case "quote" if in_quotes:
                    return False
                case "quote":
                    self._parts(_QUOTED_PART, texts, sources)
                    continue
                case "substitution":
                    text = self._substitution(part.start())
                case _:  # a variable
                    pass
            texts.append(SPLIT if not in_quotes or "@" in text else HOLE)
            sources.append(text)
        if in_quotes:  # they do not end
            raise _NotPlain
        return bare

    def _substitution(self, start: int) -> str:
        """Read from behind `$(` to behind its end: its text without here-documents."""
        self.read_list(INHERITED, (")",))
        line, at, text = self._line, start, ""
        for end_of_line, end in self._bodies.items():
            if at <= end_of_line < self._at:
                text += line[at : end_of_line + 1]
                at = end
        return text + line[at : self._at]
