"""What a program starts: the commands in its arguments, by the grammar of its options (`programs.toml`).

`arguments` finds the places where options, operands and an inner command may stand; everything that some reading of
them starts is returned (law 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from .arguments import Arguments
from .arguments import operand_places as _operand_places
from .program_table import Grammar, Name, Program, grammars_of, table
from .statements import read
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


def started(command: Command, entry: Name) -> Iterable[Started]:
    """Return all that a command of a known program may start, whatever its options mean."""
    words = command.words
    text_read = command.input.text if command.input.kind != "file" else ""
    return [
        started_
        for grammar, at in _grammars(entry, words, 1)
        if not grammar.starts_nothing(words, at, text_read)
        for started_ in _Invocation(grammar, words, at, command).started()
    ]


def _grammars(entry: Name, words: Sequence[Word], at: int) -> list[tuple[Grammar, int]]:
    """The grammars of a program and of its subcommand, each with the place where its options begin."""
    grammars = [(grammar, at) for grammar in entry.grammars]
    if entry.subcommands:
        places: set[int] = set()
        for grammar in entry.grammars or (_UNKNOWN,):
            places |= _operand_places(grammar, words, at)
        for place in sorted(places):
            subcommand = entry.subcommands.get(words[place].text) if place < len(words) else None
            if subcommand is not None:
                grammars += _grammars(subcommand, words, place + 1)
    return grammars


def operand_places(words: Sequence[Word]) -> set[int] | None:
    """The places where a program's first operand, such as a subcommand, may stand; None: nothing is known of it."""
    grammars = grammars_of(words[0].text)
    if not grammars:
        return None
    return set().union(*(_operand_places(grammar, words, 1) for grammar in grammars))


def runs_operands(words: tuple[str, ...]) -> bool:
    """True if what a program runs depends on its operands: then the first words of a call say nothing about others."""
    entry = table().program(words[0]).entry
    grammars = _grammars(entry, [*map(literal, words), Word(HOLE, "…")], 1) if entry else ()
    return any(grammar.program.runs != "nothing" or grammar.program.anywhere for grammar, _ in grammars)


def runs_command(words: tuple[Word, ...]) -> bool:
    """True if a program is there to run what its operands are: a command, a line of shell or a script."""
    entry = table().program(words[0].text).entry if words else None
    grammars = _grammars(entry, words, 1) if entry else ()
    return any(grammar.program.runs not in ("nothing", "actions", "settings", "language") for grammar, _ in grammars)


_UNKNOWN: Final = Grammar(Program())
_IS_STDIN: Final = re.compile(r"-|(?:/dev/|/proc/[^/]*/|)(?:stdin|fd/\d+|tty)|/dev/fd/.*")
_CODE_PREFIX: Final = re.compile(r"""\A\s*(?:exec=|[!|^]+-?|"[^"]*"\s*:)""")
"""What stands before a line of shell in some values: `!` in git's aliases, `|` in LESSOPEN, a key in `bind -x`."""
_ANYWHERE_PREFIX: Final = re.compile(r"\A(?:-[^\s=]*=|(?i:exec|system|shell):|!)")
_MOST_WORDS: Final = 1000  # of a command that starts another one
_UNESCAPED_BLANKS: Final = re.compile(r"(?<!\\)\s+")
_INCLUDES: Final = re.compile(r"(?i)include(?:if\..*)?(?:\.path)?")
_MOST_SETTINGS: Final = 64  # of one variable: people write one or two
_EXEC: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


_NOT_IDLE: Final = frozenset({"programs", "modules", "quiet", "code_flags", "scripts"})
"""Kinds of options with which a program does not read what to do from standard input."""


class _Invocation:
    """What the arguments of a program start by one grammar, in every reading of them.

    It owns nothing but what it is given: the words, the grammar, and the places and options that `Arguments` has noted.
    `started` goes through the ways in which a program may be told what to run, one after another: options, words with a
    mark, operands, and at last standard input, which counts only where nothing else has said what to do.
    """

    def __init__(self, grammar: Grammar, words: Sequence[Word], at: int, command: Command) -> None:
        self._program: Final = grammar.program
        self._grammar: Final = grammar
        self._at: Final = at
        self._all_words: Final = words
        lists = grammar.program.lists
        end = next((place for place in range(at, len(words)) if words[place].text in lists), None) if lists else None
        self._words: Final = words[:end]
        """Without what stands behind a sign that ends the command, such as `:::`."""
        self._input: Final = command.input
        self._marks: set[str] = set()
        """What stands in the words for further ones that come from elsewhere, such as `{}`."""

    def started(self) -> Iterator[Started]:  # noqa: C901  # one step for each way
        """Yield what is started."""
        program = self._program
        if len(self._all_words) > _MOST_WORDS:
            yield Unreadable(f"{self._all_words[0].source!r} has too many arguments")
            return
        if program.runs == "actions":
            yield from self._actions()
            return
        arguments = Arguments(self._grammar, self._words, self._at)
        said: list[Started] = [*self._listed()] if program.lists else []
        if arguments.before_command or arguments.perhaps_values or arguments.assigned:
            said += self._noted(arguments)
        if arguments.options:
            said += self._of_options(arguments)
        if self._grammar.has_marks:
            said += self._marked()
        yield from said
        if program.anywhere:
            yield from self._anywhere()
        operands = [self._words[start:] for start in sorted(arguments.starts)]
        for words in operands:
            if words:
                yield from self._of_operands(words, arguments)
        if program.reads == "text" or (program.reads and not said and self._is_idle(operands, arguments.kinds)):
            yield from self._from_input()

    def _is_idle(self, operands: Sequence[Sequence[Word]], kinds: set[str]) -> bool:
        """True if no option and no operand says what to do, so that it is read from standard input."""
        reads = any(not words or _IS_STDIN.fullmatch(words[0].text) for words in operands)
        idle = not operands or reads or "stdin_flags" in kinds or self._program.runs == "nothing"
        return idle and not kinds & (_NOT_IDLE if operands else _NOT_IDLE - {"code_flags"})

    def _listed(self) -> Iterator[Code]:
        """Yield what may be a list of commands, behind the sign that ends the command."""
        behind = self._all_words[len(self._words) + 1 :]
        return (Code(word.source, True) for word in behind if word.literal)

    def _noted(self, arguments: Arguments) -> Iterator[Started]:
        """Yield what words before the command start, or hide."""
        program = self._program
        for word in arguments.before_command:
            yield Unreadable(f"{word.source[:60]!r}, which is only known when it runs, stands before a command")
        for word in arguments.perhaps_values:
            if program.code or program.code_flags:
                yield Code(word.source, word.literal)
            if program.programs:
                yield Foreign(program.language, word.source, word.literal)
        for word in arguments.assigned:
            name, _, value = word.text.partition("=")
            yield from assigned(name, Word(value, word.source.partition("=")[2]))

    def _of_options(self, arguments: Arguments) -> Iterator[Started]:
        for kind, value, _ in arguments.options:
            if kind == "replace":
                self._marks |= {"{}", value.text if value and value.text and value.text[0] != "-" else "{}"}
        for kind, value, at in arguments.options:
            if kind == "hides":
                yield Unreadable(f"{self._words[at].source[:60]!r} takes from elsewhere what is run")
            elif value is not None:
                yield from self._of_value(kind, value, at)

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
                yield Command((value, *self._words[at + 1 :]), (), self._input)
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

    def _marked(self) -> Iterator[Started]:
        """Yield what stands behind `--`, in bundled options without a dash, and in words with a mark."""
        program, words = self._program, self._words
        if program.shell or "--" in program.commands:
            behind = next((at for at in range(self._at, len(words)) if words[at].text in ("--", "==")), len(words))
            if words[behind : behind + 1] and words[behind].text in program.shell:
                yield Command((literal("bash"), *words[behind + 1 :]), (), self._input)
            if words[behind : behind + 1] and words[behind].text in program.commands:
                yield from self._inner(words[behind + 1 :])
        if program.bundles and self._at < len(words):
            bundle = words[self._at].text
            if any("code" in self._grammar.of_option(f"-{letter}") for letter in bundle):
                values = words[self._at + 1 : self._at + 1 + len(bundle)]
                yield from (Code(value.source, value.literal) for value in values)
        if program.prefixes or program.suffixes:
            for word in words[self._at :]:
                yield from self._of_marked_word(word)

    def _of_marked_word(self, word: Word) -> Iterator[Started]:
        source, language = word.source.casefold(), self._program.language
        for prefix in self._program.prefixes:
            if source.startswith(prefix) and language:
                yield Foreign(language, word.source, word.literal)
            elif source.startswith(prefix):
                yield Code(word.source[len(prefix) :].replace("% ", " "), word.literal)
        for suffix in self._program.suffixes:
            if source.endswith(suffix):
                yield Code(word.source.removesuffix(suffix), word.literal)

    def _inner(self, words: Sequence[Word]) -> Iterator[Command]:
        """Yield the command that these words are, if there are any."""
        if words:
            yield Command(self._appended(tuple(words)) if self._program.appends else tuple(words), (), self._input)

    def _appended(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The words of a command that gets further ones."""
        if self._marks or self._program.runs == "nothing":
            marks = self._marks or {"{}"}
            return tuple(_replaced(word, marks) for word in words)
        return (*words, Word(SPLIT, "…"))

    def _of_operands(self, words: Sequence[Word], arguments: Arguments) -> Iterator[Started]:
        """Yield what these words start, which are the operands in one reading."""
        if "code_flags" not in arguments.kinds:
            yield from self._run(words, arguments.kinds)
            return
        yield Code(words[0].source, words[0].literal)
        if len(words) > 2 and re.search(r"\$[@*1-9{]", words[0].source):  # `sh -c '"$@"' NAME WORD…`
            yield Command(tuple(words[2:]))
        if self._program.runs == "command":  # sudo -s: all of its words
            yield Code(" ".join(word.source for word in words), all(word.literal for word in words))

    def _run(self, words: Sequence[Word], kinds: set[str]) -> Iterator[Started]:
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
            case "script" if not (program.reads and _IS_STDIN.fullmatch(first.text)) and not kinds & _NOT_IDLE:
                yield from _script(first, of_shell=program.reads != "language")
                yield from _named_script(words)
            case "language" if not kinds & {"programs", "modules"}:
                yield Foreign(program.language, first.source, first.literal)
            case "definitions":
                yield from (Code(word.source.partition("=")[2], word.literal) for word in words if "=" in word.source)
            case "settings" if len(words) > 1:
                yield from setting(first.source, words[1].source, words[1].literal)
            case _:
                pass

    def _from_input(self, *, certainly: bool = False) -> Iterator[Started]:
        input_ = self._input
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
                    yield Command(tuple(_replaced(inner, {"{}"}) for inner in words[at + 1 : end]))
            elif word.text[:1] in (SPLIT, HOLE) and at > 1 and not words[at - 1].text.startswith("-"):
                yield Unreadable(f"{word.source!r} may be an action of find")


def assigned(name: str, value: Word) -> Iterator[Started]:
    """Yield what a variable that is set for a command, or for all later ones, makes programs run."""
    if table().hijacks.fullmatch(name):
        yield Unreadable(f"{name} changes what programs do")
    elif name in table().options:
        line = f"{table().options[name]} {value.source}"
        unescaped = (word.replace("\\", "") for word in _UNESCAPED_BLANKS.split(line))  # as make reads MAKEFLAGS
        readings = dict.fromkeys((tuple(line.split()), tuple(unescaped)))  # mostly the same
        for command in (*(Command(tuple(map(literal, words))) for words in readings), *read(line).commands[:1]):
            entry = table().program(command.words[0].text).entry
            yield from started(command, entry) if entry else ()
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
