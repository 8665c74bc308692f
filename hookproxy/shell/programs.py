"""What a program starts: the commands in its arguments, by the grammar of its options (`programs.toml`).

A reading of a command line is a place where an option, an operand or the inner command may stand. An option that is not
in the table may or may not take the next word, so both readings are followed, and everything that some reading starts
is returned (law 1). The work grows with the number of words only, because a place is visited once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Final

import msgspec
from msgspec import Struct

from .read import read
from .words import HOLE, SPLIT, UNKNOWN, Command, Input, Word, literal


class Code(Struct, frozen=True):
    """A line of shell that is run."""

    text: str
    whole: bool
    """It is run exactly so; otherwise a part of it is not literal."""


class Foreign(Struct, frozen=True):
    """A program in another language that is run."""

    language: str
    text: str
    whole: bool


class Unreadable(Struct, frozen=True):
    """Something is run of which nothing is known."""

    about: str


Started = Command | Code | Foreign | Unreadable


class _Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of `programs.toml`, which says what each key means."""

    names: tuple[str, ...] = ()
    runs: str = "command"
    operands: int | tuple[int, ...] = 0
    values: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    shell: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    code_flags: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    language: str = ""
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reads: str = ""
    stdin_flags: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()
    expanded: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    bundles: bool = False
    assigns: bool = False
    permutes: bool = False
    appends: bool = False
    replace: tuple[str, ...] = ()
    anywhere: bool = False

    def operand_counts(self) -> tuple[int, ...]:
        """How many words may stand before the command."""
        return (self.operands,) if isinstance(self.operands, int) else self.operands

    def is_inert(self) -> bool:
        """True if nothing is of interest behind the first operand."""
        more = (
            self.permutes,
            self.anywhere,
            self.bundles,
            self.reads,
            self.prefixes,
            self.lists,
            self.shell,
            self.suffixes,
        )
        return self.runs == "nothing" and not any(more) and "--" not in self.commands

    def kinds(self) -> dict[str, frozenset[str]]:
        """What each listed option may be."""
        kinds: dict[str, set[str]] = {}
        for kind in _OPTION_KINDS:
            for option in getattr(self, kind):
                kinds.setdefault(option, set()).add(kind)
        return {option: frozenset(found) for option, found in kinds.items()}


_OPTION_KINDS: Final = (
    "values", "flags", "code", "commands", "shell", "split", "code_flags", "settings", "programs", "modules", "quiet",
    "replace", "stdin_flags", "expanded", "hides", "scripts",
)  # fmt: skip
_VALUED: Final = frozenset(
    {"values", "code", "split", "settings", "programs", "replace", "modules", "commands", "expanded", "scripts"}
)
_EITHER: Final = frozenset({"flags", "values"})
_NOT_IDLE: Final = frozenset({"programs", "modules", "quiet", "code_flags", "scripts"})
"""Kinds of options with which a program does not read what to do from standard input."""


class _Settings(Struct, frozen=True, forbid_unknown_fields=True):
    names: str


class _Variables(Struct, frozen=True, forbid_unknown_fields=True):
    names: str
    hijacks: str


class _Inert(Struct, frozen=True, forbid_unknown_fields=True):
    names: str
    texts: str
    exact: str
    verbs: str


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    program: tuple[_Program, ...]
    inert: _Inert
    settings: _Settings
    variables: _Variables
    options: dict[str, str]


class Table:
    """All programs, by their names."""

    def __init__(self, raw: bytes) -> None:
        table = msgspec.toml.decode(raw, type=_Table)
        self._programs: Final[dict[tuple[str, ...], list[Grammar]]] = {}
        self.longest: Final[dict[str, int]] = {}
        """How many words the names have that begin with this one."""
        self.beginnings: Final[set[tuple[str, ...]]] = set()
        """Of the names, by words."""
        for program in table.program:
            for name in program.names:
                words = tuple(name.split())
                self._programs.setdefault(words, []).append(Grammar(program))
                self.beginnings.update(words[: at + 1] for at in range(len(words)))
                self.longest[words[0]] = max(len(words), self.longest.get(words[0], 0))
        self._inert: Final = frozenset(table.inert.names.split())
        self._texts: Final = frozenset(table.inert.texts.split())
        self._exact: Final = frozenset(table.inert.exact.split())
        self.verbs: Final = frozenset(table.inert.verbs.split())
        """Subcommands behind which names are data."""
        self.settings: Final = re.compile(table.settings.names)
        self.variables: Final = re.compile(table.variables.names)
        self.options: Final = table.options
        self.hijacks: Final = re.compile(table.variables.hijacks)

    def of(self, name: tuple[str, ...]) -> Sequence[Grammar]:
        """The grammars of a program or a subcommand; none if nothing is known of it."""
        return self._programs.get(name, ())

    def knows(self, name: str) -> bool:
        """True if a program of this name starts others, or has a subcommand that does."""
        return program_name(name) in self.longest

    def run_files(self, words: Sequence[Word]) -> Iterator[tuple[str, str]]:
        """Yield the names of files that a program may run, each with its language; "" is that of a shell."""
        name = program_name(words[0].text)
        for grammar in self.of((name,)):
            program = grammar.program
            language = "" if is_shell(name) or program.reads == "shell" else program.language
            texts = [word.text for word in words[1:]]
            if program.runs != "script":
                texts = list(_values_of(program.scripts, texts))
            yield from ((file, language) for text in texts for file in _FILE.findall(text))
            yield from ((file, language) for file in _RUN_UNNAMED.get(program.language, ()))

    def is_inert(self, name: str) -> bool:
        """True if what a program of this name is given is certainly data for it, or is read by its own table."""
        name = program_name(name)
        return name in self._texts or name in self._exact

    def runs_script(self, name: str) -> bool:
        """True if a program of this name runs a file in a language, which may read anything."""
        return any(
            grammar.program.language and grammar.program.runs == "script" for grammar in self.of((program_name(name),))
        )

    def reads_words(self, name: str) -> bool:
        """True if it is known which of its words a program of this name starts; of longer texts it may not be."""
        name = program_name(name)
        return (name,) in self._programs or name in self._inert

    def has_subcommands(self, name: str) -> bool:
        """True if only subcommands of this program have tables."""
        return program_name(name) in self.longest


_FILE: Final = re.compile(r"[^\s/'\"`=,;:(){}<>|&]+")
_RUN_UNNAMED: Final = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "python": ("sitecustomize.py", "usercustomize.py", "__main__.py"),
}
"""Files that are run without being named, by language."""


def _values_of(options: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """Yield what may be the values of some options."""
    for at, text in enumerate(texts):
        for option in options:
            if text == option:
                yield from texts[at + 1 : at + 2]
            elif text.startswith(option):
                yield text[len(option) :]


class Grammar:
    """The options of one program."""

    def __init__(self, program: _Program) -> None:
        self.program: Final = program
        self._kinds: Final = program.kinds()
        self.signs: Final = {option[0] for option in self._kinds if not option[0].isalnum()} - {"/", "="} | {"-"}
        """What options begin with."""
        self.is_inert: Final = program.is_inert()
        """Behind an operand, nothing more is of interest: at most, a subcommand has a table of its own."""
        self.wordy: Final = [option for option in self._kinds if len(option) > 2 and option[0] == "-" != option[1]]
        """Options of several letters behind one dash."""
        self._long: Final = [option for option in self._kinds if option.startswith("--")]

    def of_option(self, option: str) -> frozenset[str]:
        """What an option may be: `_EITHER` if it is not known."""
        kinds = self._kinds.get(option)
        if kinds is None and option.startswith("--") and len(option) > 2:
            shortened = [self._kinds[each] for each in self._long if each.startswith(option)]
            kinds = frozenset({"flags"}).union(*shortened) if shortened else None  # or it is another one
        return _EITHER if kinds is None else kinds

    def is_listed(self, option: str) -> bool:
        """True if the table has this very option."""
        return option in self._kinds

    def is_operand(self, words: Sequence[Word], at: int) -> bool:
        """True if there is a word at this place, and it is certainly an operand."""
        if at >= len(words):
            return False
        text = words[at].text
        assigns = self.program.assigns and "=" in text
        return text[:1].isalnum() and words[at].literal and not assigns and text not in self._kinds

    def operand_places(self, words: Sequence[Word], at: int) -> set[int]:
        """The places where the first operand may stand, if the options begin at this place."""
        return {at} if self.is_operand(words, at) else _Reading(self, words, at, Command(())).operand_places()


@cache
def table() -> Table:
    """The table of the package; reading it takes some 5 ms."""
    return Table(resources.files(__package__).joinpath("programs.toml").read_bytes())


def program_name(text: str) -> str:
    """The name by which the table knows a program: without folders, and without a version or a variant behind it."""
    name = text.rpartition("/")[2].removeprefix("=").removesuffix(".exe")
    if name in table().longest:
        return name
    if name.startswith(("ld-linux", "ld-musl", "ld-2", "ld64.so")):
        return "ld.so"
    return re.sub(r"[-.]?\d+(?:\.\d+)*$|\.(?:tiny|basic|gtk3|nox|athena|static)$|-static$", "", name) or name


def is_shell(name: str) -> bool:
    """True if a program of this name runs a file of commands of the shell."""
    return name in ("source", ".") or any(grammar.program.reads == "shell" for grammar in table().of((name,)))


def started(command: Command) -> Iterator[Started]:
    """Yield all that a command may start, whatever its options mean."""
    words = command.words
    programs = table()
    name = program_name(words[0].text)
    if name not in programs.longest:
        return
    for grammar, at in _grammars(programs, (name,), words, 1):
        if not (grammar.is_inert and grammar.is_operand(words, at)):
            yield from _Reading(grammar, words, at, command).started()


def _grammars(programs: Table, name: tuple[str, ...], words: Sequence[Word], at: int) -> Iterator[tuple[Grammar, int]]:
    """Yield the grammars of a program and of its subcommand, each with the place where its options begin."""
    known = programs.of(name)
    for grammar in known:
        yield grammar, at
    if len(name) < programs.longest[name[0]]:
        places: set[int] = set()
        for grammar in known or (_UNKNOWN,):
            places |= grammar.operand_places(words, at)
        for place in sorted(places):
            if place < len(words) and (*name, words[place].text) in programs.beginnings:
                yield from _grammars(programs, (*name, words[place].text), words, place + 1)


def operand_places(words: Sequence[Word]) -> set[int] | None:
    """The places where a program's first operand, such as a subcommand, may stand; None: nothing is known of it."""
    programs = table()
    grammars = programs.of((program_name(words[0].text),))
    if not grammars:
        return None
    return set().union(*(grammar.operand_places(words, 1) for grammar in grammars))


def runs_operands(words: tuple[str, ...]) -> bool:
    """True if what a program runs depends on its operands: then the first words of a call say nothing about others."""
    named = (program_name(words[0]),)
    if named[0] not in table().longest:
        return False
    grammars = _grammars(table(), named, [*map(literal, words), Word(HOLE, "…")], 1)
    return any(grammar.program.runs != "nothing" or grammar.program.anywhere for grammar, _ in grammars)


def runs_command(words: tuple[Word, ...]) -> bool:
    """True if a program is there to run what its operands are: a command, a line of shell or a script."""
    named = (program_name(words[0].text),) if words else ("",)
    if named[0] not in table().longest:
        return False
    grammars = _grammars(table(), named, words, 1)
    return any(grammar.program.runs not in ("nothing", "actions", "settings", "language") for grammar, _ in grammars)


_UNKNOWN: Final = Grammar(_Program())
_ASSIGNMENT: Final = re.compile(r"(?!-)[^=]*=", re.DOTALL)
_IS_STDIN: Final = re.compile(r"-|(?:/dev/|/proc/[^/]*/|)(?:stdin|fd/\d+|tty)|/dev/fd/.*")
_CODE_PREFIX: Final = re.compile(r"""\A\s*(?:exec=|[!|^]+-?|"[^"]*"\s*:)""")
"""What stands before a line of shell in some values: `!` in git's aliases, `|` in LESSOPEN, a key in `bind -x`."""
_ANYWHERE_PREFIX: Final = re.compile(r"\A(?:-[^\s=]*=|(?i:exec|system|shell):|!)")
_MOST_WORDS: Final = 1000  # of a command that starts another one
_INCLUDES: Final = re.compile(r"(?i)include(?:if\..*)?(?:\.path)?")
_MOST_SETTINGS: Final = 64  # of one variable: people write one or two
_EXEC: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


class _Reading:
    """Follows every reading of a program's arguments."""

    def __init__(self, grammar: Grammar, words: Sequence[Word], at: int, command: Command) -> None:
        self._grammar = grammar
        self._program = grammar.program
        self._words = words
        self._at = at
        self._command = command
        self._found: list[Started] = []
        self._starts: set[int] = set()
        self._first_operands: set[int] = set()
        self._noted: set[str] = set()
        """The kinds of the options that are there, in some reading."""
        self._replaced: set[str] = set()

    def started(self) -> Iterator[Started]:
        """Yield what is started."""
        if len(self._words) > _MOST_WORDS:
            yield Unreadable("a program has too many arguments")
            return
        if self._program.runs == "actions":
            yield from self._actions()
            return
        self._list()
        self._scan()
        self._written_otherwise()
        yield from self._found
        if self._program.anywhere:
            yield from self._anywhere()
        operands = [self._words[start:] for start in sorted(self._starts)]
        yield from self._by_operands(operands)
        reads = [words for words in operands if not words or _IS_STDIN.fullmatch(words[0].text)]
        idle = not operands or reads or "stdin_flags" in self._noted or self._program.runs == "nothing"
        if self._program.reads == "text" or (self._program.reads and idle and self._is_idle(operands)):
            yield from self._from_input()

    def _is_idle(self, operands: Sequence[Sequence[Word]]) -> bool:
        """True if no option says what to do, so that it is read from standard input."""
        says = _NOT_IDLE if operands else _NOT_IDLE - {"code_flags"}
        return not self._found and not self._noted & says

    def _list(self) -> None:
        """Take away what stands behind a sign that ends the command, such as `:::`. It may be a list of commands."""
        ends = [at for at, word in enumerate(self._words) if at >= self._at and word.text in self._program.lists]
        if ends:
            self._found.extend(Code(word.source, True) for word in self._words[ends[0] + 1 :] if word.literal)
            self._words = self._words[: ends[0]]

    def operand_places(self) -> set[int]:
        """The places where the first operand may stand."""
        self._scan()
        return self._first_operands

    def _scan(self) -> None:
        todo, seen = [(self._at, 0)], set[tuple[int, int]]()
        while todo:
            state = todo.pop()
            if state in seen or state[0] >= len(self._words):
                continue
            seen.add(state)
            todo += self._next(*state)

    def _next(self, at: int, operands: int) -> Iterator[tuple[int, int]]:
        """Follow the word at a place, behind so many operands."""
        program, word = self._program, self._words[at]
        text, runs = word.text, program.runs != "nothing"
        if word.splits and SPLIT in text and runs and not text.startswith("-"):
            self._found.append(Unreadable(f"{word.source!r} stands before a command"))
        if text == "--":
            yield from self._operand(self._behind_assignments(at + 1), operands, last=True)
            return
        if not word.literal and text[:1] in (HOLE, SPLIT) and runs:
            self._perhaps_option(at)
            yield at + 1, operands
            yield at + 2, operands
        if program.assigns and _ASSIGNMENT.match(text):
            self._assigned(word)
            yield at + 1, operands
        elif self._is_option(text):
            yield from ((place, operands) for place in self._option(word, at))
        else:
            yield from self._operand(at, operands, last=False)

    def _behind_assignments(self, at: int) -> int:
        """The place of the first word from here on that is not an assignment, if there may be any."""
        while self._program.assigns and at < len(self._words) and _ASSIGNMENT.match(self._words[at].text):
            self._assigned(self._words[at])
            at += 1
        return at

    def _perhaps_option(self, at: int) -> None:
        """Read the word behind one that may be any option."""
        behind = self._word(at + 1)
        if behind is None:
            return
        if self._program.code or self._program.code_flags:
            self._found.append(Code(behind.source, behind.literal))
        if self._program.programs:
            self._found.append(Foreign(self._program.language, behind.source, behind.literal))

    def _is_option(self, text: str) -> bool:
        return (text[:1] in self._grammar.signs and len(text) > 1) or self._grammar.is_listed(text)

    def _operand(self, at: int, operands: int, last: bool) -> Iterator[tuple[int, int]]:
        counts = self._program.operand_counts()
        if not operands:
            self._first_operands.add(at)
        if self._program.runs == "nothing":
            if self._program.permutes and not last:
                yield at + 1, operands
            return
        if operands in counts:
            self._starts.add(at)
        if operands < max(counts):
            if self._program.permutes and not last:
                yield at + 1, operands + 1
            else:
                self._starts.update(at + count - operands for count in counts if count > operands)

    def _option(self, word: Word, at: int) -> Iterator[int]:
        """Follow an option; yield where the next word may stand."""
        text = word.text
        if not self._grammar.is_listed(text) and not text.startswith("--"):
            yield from self._joined(word, at)
            return
        name, equals, value = text.partition("=")
        for kind in sorted(self._grammar.of_option(text if self._grammar.is_listed(text) else name)):
            if kind not in _VALUED or equals:
                self._take(kind, Word(value, word.source.partition("=")[2]) if equals else None, at)
                yield at + 1
            else:
                self._take(kind, self._word(at + 1), at + 1)
                yield at + 2

    def _joined(self, word: Word, at: int) -> Iterator[int]:
        """Follow short options in one word, of which the last one may have its value there, too."""
        text = word.text
        self._wordy(word, at)
        for place in range(1, len(text)):
            kinds = self._grammar.of_option(text[0] + text[place])
            rest = text[place + 1 :]
            for kind in sorted(kinds & _VALUED):
                value = Word(rest, _tail(word, place + 1)) if rest else self._word(at + 1)
                self._take(kind, value, at if rest else at + 1)
                yield at + 1 if rest else at + 2
                if self._program.code_flags:  # shells take the values of joined options from the words behind them
                    yield at + 2
            for kind in sorted(kinds - _VALUED):
                self._take(kind, None, at)
            if kinds <= _VALUED and not self._program.code_flags:
                return
        yield at + 1

    def _wordy(self, word: Word, at: int) -> None:
        """Take the value that is joined to an option of several letters behind one dash, such as `-TTrm` of zip."""
        for option in self._grammar.wordy:
            if word.text.startswith(option):
                for kind in self._grammar.of_option(option) & _VALUED:
                    self._take(kind, Word(word.text[len(option) :], _tail(word, len(option))), at)

    def _word(self, at: int) -> Word | None:
        return self._words[at] if at < len(self._words) else None

    def _take(self, kind: str, value: Word | None, at: int) -> None:
        """Note what an option says."""
        self._noted.add(kind)
        if kind == "replace":
            self._replaced.add(value.text if value and value.text and not value.text.startswith("-") else "{}")
            self._replaced.add("{}")
        elif kind == "hides":
            self._found.append(Unreadable(f"{self._words[at].source!r} says what is run"))
        elif value is not None:
            self._found.extend(self._of_value(kind, value, at))

    def _of_value(self, kind: str, value: Word, at: int) -> Iterator[Started]:
        """Yield what the value of an option starts. The value ends with the word at this place."""
        match kind:
            case "code":
                yield Code(_CODE_PREFIX.sub("", value.source), value.literal)
            case "expanded":
                yield Code(f": {value.source}", value.literal)
            case "programs":
                yield Foreign(self._program.language, value.source, value.literal)
            case "settings":
                yield from self._setting(value, at)
            case "scripts":
                yield from self._script_option(value)
            case "modules":
                yield Command((value, *self._words[at + 1 :]), (), self._command.input)
            case "split" | "commands":
                yield from self._begins_command(kind, value, at)
            case _:
                pass

    def _begins_command(self, kind: str, value: Word, at: int) -> Iterator[Started]:
        """Yield what a value starts that is the beginning of a command, or several words of it."""
        if kind == "split":
            rest = [_quoted(word) for word in self._words[at + 1 :]]
            yield Code(" ".join(["env", re.sub(r"\\[_tvnfr]", " ", value.source), *rest]), value.literal)
            return
        yield from self._inner((value, *self._words[at + 1 :]))
        yield Code(value.source, value.literal) if " " in value.source else Command((value,))

    def _setting(self, value: Word, at: int) -> Iterator[Started]:
        """Yield what `NAME=VALUE` makes the program run. An alias of git gets the words behind it, too."""
        name, rest = re.split(r"[=\s]", f"{value.source}=", maxsplit=1)
        text = rest.removesuffix("=").lstrip(" \t=")
        yield from setting(name, text, value.literal)
        if name.casefold().startswith("alias."):
            behind = " ".join(map(_quoted, self._words[at + 1 :]))
            yield Code(f"{text[1:] if text[:1] == '!' else f'git {text}'} {behind}", value.literal)

    def _script_option(self, value: Word) -> Iterator[Started]:
        """Yield what a file with a program starts: it is read if it is standard input."""
        if _IS_STDIN.fullmatch(value.text):
            yield from self._from_input(certainly=True)
        elif value.source.startswith("<("):
            yield Unreadable(f"the program {value.source[:60]!r} is not literal")

    def _written_otherwise(self) -> None:
        """Note what stands behind `--`, in bundled options without a dash, and behind a prefix in a word."""
        program = self._program
        behind = [at for at, word in enumerate(self._words) if at >= self._at and word.text in ("--", "==")]
        if behind and self._words[behind[0]].text in program.shell:
            self._found.append(Command((literal("bash"), *self._words[behind[0] + 1 :]), (), self._command.input))
        if behind and self._words[behind[0]].text in program.commands:
            self._found.extend(self._inner(self._words[behind[0] + 1 :]))
        if program.bundles and self._at < len(self._words):
            self._bundled()
        self._marked_words()

    def _bundled(self) -> None:
        bundle = self._words[self._at].text
        if any("code" in self._grammar.of_option(f"-{letter}") for letter in bundle):
            values = self._words[self._at + 1 : self._at + 1 + len(bundle)]
            self._found.extend(Code(value.source, value.literal) for value in values)

    def _marked_words(self) -> None:
        """Note words that begin or end with what marks a line of shell."""
        for word in self._words[self._at :]:
            source = word.source.casefold()
            self._found.extend(
                self._prefixed(word, prefix) for prefix in self._program.prefixes if source.startswith(prefix)
            )
            for suffix in self._program.suffixes:
                if source.endswith(suffix):
                    self._found.append(Code(word.source.removesuffix(suffix), word.literal))

    def _prefixed(self, word: Word, prefix: str) -> Started:
        """What a word is: a program in the language of the table, or a line of shell behind the prefix."""
        if self._program.language:
            return Foreign(self._program.language, word.source, word.literal)
        return Code(word.source[len(prefix) :].replace("% ", " "), word.literal)

    def _assigned(self, word: Word) -> None:
        name, _, value = word.text.partition("=")
        self._found.extend(assigned(name, Word(value, word.source.partition("=")[2])))

    def _inner(self, words: Sequence[Word]) -> Iterator[Command]:
        """Yield the command that these words are, if there are any."""
        if words:
            yield Command(
                self._appended(tuple(words)) if self._program.appends else tuple(words), (), self._command.input
            )

    def _appended(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The words of a command that gets further ones."""
        if self._replaced or self._program.runs == "nothing":
            marks = self._replaced or {"{}"}
            return tuple(_replaced(word, marks) for word in words)
        return (*words, Word(SPLIT, "…"))

    def _by_operands(self, operands: Sequence[Sequence[Word]]) -> Iterator[Started]:
        for words in operands:
            if not words:
                continue
            if "code_flags" in self._noted:
                yield Code(words[0].source, words[0].literal)
                yield from self._parameters(words)
                if self._program.runs == "command":  # sudo -s: all of its words
                    yield Code(" ".join(word.source for word in words), all(word.literal for word in words))
            else:
                yield from self._run(words)

    def _run(self, words: Sequence[Word]) -> Iterator[Started]:
        """Yield what the operands start, as the program's table says what they are."""
        program, first = self._program, words[0]
        match program.runs:
            case "command":
                yield from self._inner(words)
            case "code":
                yield Code(" ".join(word.source for word in words), all(word.literal for word in words))
            case "line" | "lines":
                yield from (
                    Code(word.source, word.literal) for word in (words if program.runs == "lines" else words[:1])
                )
            case "script" if not (program.reads and _IS_STDIN.fullmatch(first.text)) and not self._noted & _NOT_IDLE:
                yield from _script(first, of_shell=program.reads != "language")
                yield from _named_script(words)
            case "language" if not self._noted & {"programs", "modules"}:
                yield Foreign(program.language, first.source, first.literal)
            case "definitions":
                yield from (Code(word.source.partition("=")[2], word.literal) for word in words if "=" in word.source)
            case "settings" if len(words) > 1:
                yield from setting(first.source, words[1].source, words[1].literal)
            case _:
                pass

    def _parameters(self, words: Sequence[Word]) -> Iterator[Started]:
        """`sh -c CODE NAME WORD…`: the code may run its parameters (`"$@"`)."""
        if len(words) > 2 and re.search(r"\$[@*1-9{]", words[0].source):
            yield Command(tuple(words[2:]))

    def _from_input(self, *, certainly: bool = False) -> Iterator[Started]:
        input_ = self._command.input
        if self._program.reads not in ("shell", "remote") or certainly:
            yield from self._program_from(input_, certainly=certainly or self._program.reads == "language")
            return
        if self._program.reads == "remote" and input_.kind == "inherited":
            return
        if input_.text and input_.kind != "file":
            yield Code(input_.text, True)
        if input_.kind != "text" or not input_.whole:
            yield Unreadable("a shell reads its commands from standard input")

    def _program_from(self, input_: Input, *, certainly: bool) -> Iterator[Started]:
        """Yield what a program in another language starts that comes from standard input; a file is not read."""
        if input_.text and input_.kind != "file":
            yield Foreign(self._program.language, input_.text, input_.whole or input_.kind == "pipe")
        if certainly and (input_.kind == "pipe" or (input_.kind == "file" and UNKNOWN.search(input_.text))):
            yield Unreadable("a program is read from standard input")

    def _anywhere(self) -> Iterator[Started]:
        for at in range(self._at, len(self._words)):
            word = self._words[at]
            source = _ANYWHERE_PREFIX.sub("", word.source)
            if re.search(r"\s", source):
                yield Code(source, word.literal)
            name = _ANYWHERE_PREFIX.sub("", word.text)
            yield Command((literal(name) if name != word.text else word, *self._words[at + 1 :]))

    def _actions(self) -> Iterator[Started]:
        words = self._words
        for at, word in enumerate(words):
            if word.text in _EXEC:
                end = next((n for n in range(at + 1, len(words)) if words[n].text in (";", "+")), len(words))
                if end > at + 1:
                    yield Command(tuple(_replaced(each, {"{}"}) for each in words[at + 1 : end]))
            elif word.text[:1] in (SPLIT, HOLE) and at > 1 and not words[at - 1].text.startswith("-"):
                yield Unreadable(f"{word.source!r} may be an action of find")


def assigned(name: str, value: Word) -> Iterator[Started]:
    """Yield what a variable that is set for a command, or for all later ones, makes programs run."""
    if table().hijacks.fullmatch(name):
        yield Unreadable(f"{name} changes what programs do")
    elif name in table().options:
        words = tuple(map(literal, f"{table().options[name]} {value.source}".split()))
        for command in (Command(words), *read(f"{table().options[name]} {value.source}").commands[:1]):
            yield from started(command)
    elif name == "GIT_CONFIG_PARAMETERS":
        yield from _settings(value)
    elif table().variables.fullmatch(name):
        yield Code(_CODE_PREFIX.sub("", value.source), value.literal)
    if "$(" in value.text or "`" in value.text:  # it is run where the variable is evaluated
        for part in re.findall(r"\$\(([^()]*)\)|`([^`]*)`", value.text):
            yield Code(part[0] or part[1], True)


def _settings(value: Word) -> Iterator[Started]:
    """What git runs by settings in a variable: each is `'NAME=VALUE'` or `'NAME'='VALUE'`."""
    pairs = re.findall(r"'([^']*)'(?:='([^']*)')?", value.source)
    if len(pairs) > _MOST_SETTINGS:
        yield Unreadable("there are too many settings")
    for pair in pairs[:_MOST_SETTINGS]:
        name, _, text = "=".join(filter(None, pair)).partition("=")
        yield from setting(name, text, whole=value.literal)


def setting(name: str, value: str, whole: bool) -> Iterator[Started]:
    """What a setting of a program makes it run."""
    if value.startswith("ext::"):
        yield Code(value.removeprefix("ext::").replace("% ", " "), whole)
    elif _INCLUDES.fullmatch(name):
        yield Unreadable(f"the setting {name!r} names further settings")
    elif name.casefold().startswith("alias.") and not value.startswith("!"):
        yield Code(f"git {value}", whole)
    elif table().settings.fullmatch(name):
        yield Code(value.removeprefix("!"), whole)
    elif not whole and not re.fullmatch(r"[\w.-]+", name):
        yield Unreadable(f"the setting {name!r} is not literal")


def _script(word: Word, of_shell: bool) -> Iterator[Started]:
    """What a file of commands may be: a script that is started by name is not read."""
    name = word.text.rpartition("/")[2]
    if of_shell and not word.literal and (word.splits or not name or name[0] in (HOLE, SPLIT)):
        yield Unreadable(f"the script {word.source!r} is not literal")
    elif _IS_STDIN.fullmatch(word.text) or re.fullmatch(r"(?:stdin|\d+)", name):
        yield Unreadable("a shell reads its commands from elsewhere")


def _named_script(words: Sequence[Word]) -> Iterator[Command]:
    """A file of commands may be a program that a rule names."""
    if words[0].literal and words[0].text and not _IS_STDIN.fullmatch(words[0].text):
        yield Command(tuple(words))


def _replaced(word: Word, marks: set[str]) -> Word:
    text = word.text
    for mark in marks:
        text = text.replace(mark, HOLE)
    return word if text == word.text else Word(text, word.source)


def _quoted(word: Word) -> str:
    return "'" + word.source.replace("'", "'\\''") + "'"


def _tail(word: Word, start: int) -> str:
    """The source of a word from this place of its text, before which all is literal."""
    return word.source[start:] if word.source.startswith(word.text[:start]) else word.source
