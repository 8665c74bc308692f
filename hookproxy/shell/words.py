"""The words of one simple command, read as bash reads them: quotes, escapes, braces and redirections.

The grammar (`statements`) says where a command begins and ends and which of its parts are expansions; this file reads
the text between these itself. Each checks the other: a sign that would end the command for bash, but did not for the
grammar, is a `Disagreement`, and then the line is unreadable (law 1).

A word is kept as text in which three signs stand for what only the run decides: HOLE for a part of one word, SPLIT for
a part that may become several words or none (an expansion without quotes), GLOB for a pattern of file names. They are
private characters of Unicode; a line that has one of them itself is never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct

HOLE: Final = "\ue001"
SPLIT: Final = "\ue002"
GLOB: Final = "\ue003"
HEREDOC: Final = "\ue004"
"""Stands before the number of a here-document that has been taken out of the text."""
_OPEN: Final = "\ue005"
_CLOSE: Final = "\ue006"
_COMMA: Final = "\ue007"
_DOTS: Final = "\ue008"
"""A brace, comma and `..` without quotes, while braces are expanded."""
PRIVATE: Final = re.compile("[\ue000-\ue008]")

UNKNOWN: Final = re.compile(f"[{HOLE}{SPLIT}{GLOB}]")
_MOST_BRACED: Final = 64  # words that braces of one word may become: people write two to ten

_MOST_WORDS: Final = 4000  # of one command: reading so many takes some 20 ms

_ESCAPES: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI_C: Final = re.compile(
    r"\\(?:([0-7]{1,3})|x\{([0-9A-Fa-f]*)\}?|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(\\\\|.)|(.))",
    re.DOTALL,
)
"""An escape of `$'…'`. `\\x{…}` is read, although no manual of bash has it."""

_PLAIN: Final = re.compile(r"[^\s\\'\"$`;|&()<>{}*?\[\],.#\x00-\x1f\x7f]+")
"""Characters that stand for themselves wherever they are."""

_BARE: Final = re.compile(r"[A-Za-z0-9_@%+:./-]+(?=[ \t]|\Z)")
"""A whole word that means what it says: most are."""
_REDIRECTION: Final = re.compile(r"(?P<fd>\d+|\{[A-Za-z_]\w*\})?(?P<operator><<<|<&|>&|&>>|&>|<>|>\||>>|<|>)")
_ELSEWHERE: Final = "\0"
"""Stands before the operator of a redirection that reads another descriptor than standard input."""
_BRACKET: Final = re.compile(r"\[[^\s;|&<>()]")
"""A bracket that may begin a pattern, if another one ends it: `[` alone is a command."""
_EXPANSION_NAME: Final = re.compile(r"\$(?:\w|[@*#?$!({\['\"-])")


class Disagreement(Exception):
    """The text cannot be read, or bash reads it otherwise than the grammar. The argument says what it is about."""


class Word(Struct, frozen=True):
    """One word as a program gets it, as far as that is certain."""

    text: str
    """With `HOLE`, `SPLIT` and `GLOB` for what is not."""
    source: str
    """The word without quotes, with expansions and patterns as they are written."""
    bare: bool = False
    """It is written without quotes and escapes, so that a shell may take it for a reserved word."""

    @property
    def literal(self) -> bool:
        """True if the program certainly gets `text`."""
        return self.text.isascii() or UNKNOWN.search(self.text) is None

    @property
    def splits(self) -> bool:
        """True if it may become several words, or none."""
        return SPLIT in self.text or GLOB in self.text

    @property
    def parts(self) -> list[str]:
        """The certain parts of the text, in order; anything may stand between two of them."""
        return UNKNOWN.split(self.text)


def literal(text: str) -> Word:
    """Return a word that a program certainly gets."""
    return Word(text, text)


class Input(NamedTuple):
    """What a command reads on its standard input."""

    kind: str
    """"inherited", "pipe", "file" or "text"."""
    text: str = ""
    """The text of a here-document or here-string, or what a literal `echo` writes into a pipe."""
    whole: bool = False
    """The text is literal, and nothing else is read."""


INHERITED: Final = Input("inherited")


class Opened(NamedTuple):
    """A file that a redirection opens, at whichever descriptor."""

    word: Word
    operator: str
    """Without the descriptor."""

    @property
    def is_read(self) -> bool:
        """True if it is opened for reading."""
        return self.operator in ("<", "<>")

    @property
    def is_written(self) -> bool:
        """True if it is opened for writing."""
        return self.operator != "<"


def opened(operator: str, target: Word) -> tuple[Opened, ...]:
    """The file that a redirection opens; none if it is another descriptor, or nothing at all."""
    of_descriptor = operator in ("<&", ">&") and (target.text.isdecimal() or target.text == "-")
    is_text = operator == "<<<" or target.text.startswith(HEREDOC)
    return () if of_descriptor or is_text or target.text == "/dev/null" else (Opened(target, operator),)


class Command(Struct, frozen=True):
    """A simple command, and what it reads; without words, only what is set or redirected there, as by a loop."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    input: Input = INHERITED
    opened: tuple[Opened, ...] = ()

    @property
    def written(self) -> tuple[str, ...]:
        """The files that its output goes to, as far as they are certain."""
        return tuple(file.word.text for file in self.opened if file.is_written and file.word.literal)


def echoed(command: Command) -> str:
    """What a literal `echo` or `printf`, or a `cat` of a here-document writes; empty if it is another command."""
    words = command.words
    if len(words) == 1 and words[0].text == "cat" and command.input.whole:
        return command.input.text
    if not words or words[0].text not in ("echo", "printf"):
        return ""
    return " ".join(word.source for word in words[1:] if not word.text.startswith("-")).replace("\\n", "\n")


class Lexed(Struct, frozen=True):
    """A simple command in its parts."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...]
    """The variables that are set before the command."""
    input: Input | None
    """A redirected standard input."""
    opened: tuple[Opened, ...]
    behind: tuple[Word, ...] = ()
    """The words behind `&>`: for dash, they are another command."""


_ASSIGNMENT: Final = re.compile(rf"([A-Za-z_]\w*)({GLOB}\[[^\]]*\])?\+?=")
_PLAIN_SUBSCRIPT: Final = re.compile(rf"{GLOB}\[[\w{HOLE}{SPLIT}@ +-]*\]")
"""Any other may run commands: bash evaluates it."""


class Lexer:
    """Reads the words between two places of a line."""

    def __init__(self, line: str, expansions: Mapping[int, int], heredocs: Sequence[Input] = ()) -> None:
        """`expansions` has the end of each expansion by its beginning, as the grammar says."""
        self._line: Final = line
        self._expansions: Final = expansions
        self._heredocs: Final = heredocs

    def command(self, start: int, end: int) -> Lexed:
        """Read a simple command. Raises Disagreement."""
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        files: list[Opened] = []
        input_: Input | None = None
        first_behind: int | None = None
        for operator, raw, source, bare in self._tokens(start, end):
            if operator:
                input_ = self._redirected(operator, raw, source, files) or input_
                if operator.startswith("&>") and first_behind is None:
                    first_behind = len(words)
                continue
            name = None if words else _ASSIGNMENT.match(raw)
            if name is not None:
                if name[2] and not _PLAIN_SUBSCRIPT.fullmatch(name[2]):
                    raise Disagreement("a subscript")
                assignments.append((name[1], Word(_without_marks(raw[name.end() :]), source.partition("=")[2])))
            else:
                words.extend(_words(raw, source, bare))
            if len(words) + len(assignments) > _MOST_WORDS:
                raise Disagreement("too many words")
        behind = () if first_behind is None else tuple(words[first_behind:])
        return Lexed(tuple(words), tuple(assignments), input_, tuple(files), behind)

    def words(self, start: int, end: int) -> list[Word]:
        """Read words without redirections, such as those after `for x in`. Raises Disagreement."""
        lexed = self.command(start, end)
        if lexed.input or lexed.opened:
            raise Disagreement("a redirection")
        return [*(value for _, value in lexed.assignments), *lexed.words]

    def _redirected(self, operator: str, raw: str, source: str, files: list[Opened]) -> Input | None:
        target = _without_marks(raw)
        if operator == "<<<":
            return Input("text", source, UNKNOWN.search(target) is None)
        if operator.startswith(("<", "0<")):
            if target.startswith(HEREDOC):
                if not target[1:].isdecimal() or int(target[1:]) >= len(self._heredocs):
                    raise Disagreement("a here-document")
                return self._heredocs[int(target[1:])]
            files += opened(operator, Word(target, source))
            return Input("file", target)
        files += opened(operator.removeprefix(_ELSEWHERE), Word(target, source))
        return None

    def _tokens(self, at: int, end: int) -> Iterator[tuple[str, str, str, bool]]:
        """Yield the words, each with the redirection before it, the text with marks, the source, and `Word.bare`."""
        line, operator = self._line, ""
        while (at := self._skip_blanks(at, end)) < end:
            plain = _BARE.match(line, at, end)
            if plain:
                yield operator, plain[0], plain[0], True
                at, operator = plain.end(), ""
                continue
            redirection = _REDIRECTION.match(line, at, end)
            if redirection and at not in self._expansions:
                if operator:
                    raise Disagreement("a redirection without a target")
                operator = self._operator(redirection)
                at = redirection.end()
                if operator.endswith("&") and line.startswith("-", at):  # `>&-` is a whole redirection
                    at += 1
                    yield operator, "-", "-", False
                    operator = ""
                continue
            raw, source, bare, stop = self.word(at, end)
            if stop == at:
                raise Disagreement(f"{line[at]!r} in a command")
            at = stop
            yield operator, raw, source, bare
            operator = ""
        if operator:
            raise Disagreement("a redirection without a target")

    def _operator(self, redirection: re.Match[str]) -> str:
        """The operator of a redirection, behind a mark if it reads another descriptor than standard input."""
        operator = redirection["operator"]
        if self._line.startswith("<<", redirection.start("operator")) and operator != "<<<":
            raise Disagreement("a here-document")
        of_other = redirection["fd"] and redirection["fd"] != "0" and operator.startswith("<")
        return _ELSEWHERE + operator if of_other else operator

    def _skip_blanks(self, at: int, end: int) -> int:
        line = self._line
        while at < end:
            if line[at] in " \t":
                at += 1
            elif line.startswith("\\\n", at):
                at += 2
            elif line[at] == "\r" and (at + 1 >= end or line[at + 1] == "\n"):
                at += 1
            elif line[at] == "#":
                newline = line.find("\n", at, end)
                at = end if newline < 0 else newline
                if at < end:
                    raise Disagreement("a comment")
            else:
                break
        return at

    def word(self, at: int, end: int) -> tuple[str, str, bool, int]:  # noqa: C901 - one branch for each sign of bash
        """Read the word that begins here: its text with marks, its source, whether it is bare, and its end."""
        line, raw, source, bare = self._line, [], [], True
        while at < end:
            plain = _PLAIN.match(line, at, end)
            if plain:
                raw.append(plain[0])
                source.append(plain[0])
                at = plain.end()
                continue
            char = line[at]
            if char in " \t\n" or (char == "\r" and (at + 1 >= end or line[at + 1] == "\n")):
                break
            if at in self._expansions:
                stop = self._expansions[at]
                raw.append(SPLIT)
                source.append(line[at:stop])
                at = stop
                bare = False
                continue
            if char == "\\":
                at = self._escape(at, end, raw, source)
            elif char == "'":
                at = self._single(at, end, raw, source)
            elif char == '"':
                at = self._double(at + 1, end, raw, source)
            elif char == "$":
                at = self._dollar(at, end, raw, source)
                continue
            elif char in "<>" or line.startswith("&>", at):
                break
            elif char in ";|&()`\x7f" or char < " ":
                raise Disagreement(f"{char!r} in a word")
            else:
                at = self._mark(at, end, raw, source)
                continue
            bare = False
        return "".join(raw), "".join(source), bare, at

    def _escape(self, at: int, end: int, raw: list[str], source: list[str]) -> int:
        if at + 1 >= end:
            raise Disagreement("a backslash at the end")
        if self._line[at + 1] != "\n":
            raw.append(self._line[at + 1])
            source.append(self._line[at + 1])
        return at + 2

    def _single(self, at: int, end: int, raw: list[str], source: list[str]) -> int:
        stop = self._line.find("'", at + 1, end)
        if stop < 0:
            raise Disagreement("a quote that does not end")
        raw.append(self._line[at + 1 : stop])
        source.append(self._line[at + 1 : stop])
        return stop + 1

    def _double(self, at: int, end: int, raw: list[str], source: list[str]) -> int:
        """Read from behind the quote to behind the one that ends it."""
        line = self._line
        while at < end:
            char = line[at]
            if char == '"':
                return at + 1
            if at in self._expansions:
                stop = self._expansions[at]
                raw.append(SPLIT if "@" in line[at:stop] else HOLE)
                source.append(line[at:stop])
                at = stop
            elif char == "\\":
                after = line[at + 1 : at + 2]
                kept = "" if after == "\n" else after if after in '$`"\\' and after else char + after
                raw.append(kept)
                source.append(kept)
                if after == "\n" and line[at - 1] in "$\\":
                    raise Disagreement("a sign before a continued line")
                at += 2
            elif char == "`" or (char == "$" and _EXPANSION_NAME.match(line, at) and line[at + 1] not in "'\""):
                raise Disagreement("an expansion that the grammar does not see")
            else:
                raw.append(char)
                source.append(char)
                at += 1
        raise Disagreement("a quote that does not end")

    def _dollar(self, at: int, end: int, raw: list[str], source: list[str]) -> int:
        """Read `$'…'`, `$"…"` or a plain dollar."""
        after = self._line[at + 1 : min(at + 2, end)]
        if after == "'":
            return self._ansi_c(at + 2, end, raw, source)
        if after == '"':
            return self._double(at + 2, end, raw, source)
        if after == "\\" or _EXPANSION_NAME.match(self._line, at):
            raise Disagreement("an expansion that the grammar does not see")
        raw.append("$")
        source.append("$")
        return at + 1

    def _ansi_c(self, at: int, end: int, raw: list[str], source: list[str]) -> int:
        line, stop = self._line, at
        while stop < end and line[stop] != "'":
            stop += 2 if line[stop] == "\\" else 1
        if stop >= end:
            raise Disagreement("a quote that does not end")
        text = _ANSI_C.sub(_unescaped, line[at:stop]).partition("\0")[0]
        if PRIVATE.search(text):
            raise Disagreement("a private character")
        raw.append(text)
        source.append(text)
        return stop + 1

    def _mark(self, at: int, end: int, raw: list[str], source: list[str]) -> int:
        """Read a sign that means something only without quotes: braces, commas, dots, patterns."""
        char = self._line[at]
        if self._line.startswith("..", at):
            raw.append(_DOTS)
            source.append("..")
            return at + 2
        if char in "*?" or (char == "[" and _BRACKET.match(self._line, at, end)):
            raw.append(GLOB + char)
        else:
            raw.append({"{": _OPEN, "}": _CLOSE, ",": _COMMA}.get(char, char))
        source.append(char)
        return at + 1


_PATTERN: Final = re.compile(rf"{GLOB}(?:\[.*|.)", re.DOTALL)
"""Behind a bracket nothing is certain: it may hold what follows."""


def _unescaped(escape: re.Match[str]) -> str:
    octal, braced, hexadecimal, short, long, control, other = escape.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if braced is not None:
        return chr(int(braced or "0", 16) & 0xFF)
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    if short or long:
        return chr(min(int(short or long, 16), 0x10FFFF))
    if control:
        return chr(ord(control[-1]) & 0x1F)
    return _ESCAPES.get(other, escape[0])


def _without_marks(raw: str) -> str:
    """The text where braces and commas have no meaning. A pattern is one hole; what it was stays in the source."""
    if raw.isascii():  # the marks are not
        return raw
    for mark, char in ((_OPEN, "{"), (_CLOSE, "}"), (_COMMA, ","), (_DOTS, "..")):
        raw = raw.replace(mark, char)
    return _PATTERN.sub(GLOB, raw) if GLOB in raw else raw


def _words(raw: str, source: str, bare: bool) -> Iterator[Word]:
    """Yield the words that one word becomes by its braces."""
    if _OPEN not in raw or not (_COMMA in raw or _DOTS in raw):
        yield Word(_without_marks(raw), source, bare)
        return
    if SPLIT + _OPEN in raw:  # `$a{b,c}` is `$ab $ac`
        yield Word(SPLIT, source)
        return
    braced = _expand(raw)
    if len(braced) > _MOST_BRACED:
        yield Word(SPLIT, source)
    elif len(braced) == 1:
        yield Word(_without_marks(braced[0]), source, bare)
    else:
        for raw_word in braced:
            text = _without_marks(raw_word)
            if text:  # without quotes, an empty word is none; with quotes it might be one, which changes no name
                yield Word(text, text)


def expand_braces(text: str) -> Iterator[Word]:
    """Yield the words of a text of plain characters, patterns and braces."""
    raw, source, bare, _ = Lexer(text, {}).word(0, len(text))
    return _words(raw, source, bare)


def _expand(raw: str) -> list[str]:
    """Expand the braces from the left, as bash does."""
    if raw.count(_OPEN) > _MOST_BRACED:
        return [SPLIT] * (_MOST_BRACED + 1)
    start = raw.find(_OPEN)
    while start >= 0:
        cuts = _cuts(raw, start)
        if len(cuts) > _MOST_BRACED:
            return [SPLIT] * (_MOST_BRACED + 1)
        if len(cuts) > 2 or (cuts and _DOTS in raw[start : cuts[-1]]):
            inner = [raw[begin + 1 : end] for begin, end in pairwise(cuts)] if len(cuts) > 2 else [SPLIT]
            heads = [text for piece in inner for text in _expand(piece)]
            tails = _expand(raw[cuts[-1] + 1 :])
            if len(heads) * len(tails) > _MOST_BRACED:
                return [SPLIT] * (_MOST_BRACED + 1)
            return [raw[:start] + head + tail for head in heads for tail in tails]
        start = raw.find(_OPEN, start + 1)
    return [raw]


def _cuts(raw: str, start: int) -> list[int]:
    """The places of an opening brace, of its own commas and of the brace that closes it; none if nothing closes it."""
    depth, cuts = 0, [start]
    for sign in re.finditer(f"[{_OPEN}{_COMMA}{_CLOSE}]", raw[start:]):
        depth += {_OPEN: 1, _CLOSE: -1}.get(sign[0], 0)
        if depth == 0 or (depth == 1 and sign[0] == _COMMA):
            cuts.append(start + sign.start())
        if depth == 0:
            return cuts
    return []
