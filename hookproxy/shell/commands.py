"""All commands that a line of shell may run: its own, and those that they start, as deep as they go (law 1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import dropwhile, pairwise
from posixpath import join
from typing import Final

from msgspec import Struct

from . import embedded
from .file_words import from_known_folder
from .files import Files
from .program_table import Known, table
from .programs import Code, Foreign, Started, assigned, runs_command, started
from .statements import LONGEST, read
from .words import HOLE, Command, Word, literal

_DEEPEST: Final = 12  # commands that start commands: people write three
_MOST_COMMANDS: Final = 1024  # of one line, together
_MOST_WORK: Final = 150_000  # characters of all texts that start each other, and eight for each word: some 20 ms
_SPACED: Final = re.compile(r"\s")
_MOST_FOLDERS: Final = 8  # the last ones, below which a line may go on: people change the folder once or twice
_GOES: Final = frozenset({"cd", "pushd", "chdir"})
_GO_OPTIONS: Final = frozenset({"-C", "--directory", "--chdir", "--cwd", "--prefix"})
"""Options of many programs, such as git, tar, make and env, behind which a folder stands."""
_DECLARES: Final = frozenset({"export", "declare", "typeset", "local", "readonly"})
_EVALUATES: Final = frozenset({
    "let", "test", "[", "printf", "read", "unset", "wait", "getopts", *_DECLARES, "mapfile", "readarray", "eval",
})  # fmt: skip
"""Builtins that evaluate subscripts in their arguments, and run what is substituted there."""
_BUILTINS: Final = _EVALUATES | {"alias", "hash"}
_SUBSTITUTES: Final = re.compile(r"\$\(|`")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_NAME: Final = re.compile(r"(?<![\w$])(?<!\$\{)[A-Za-z_]\w*")
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})|\$\{\w+:?[-=+]([^{}$`'\"]*)\}")


class Suspect(Struct, frozen=True):
    """What a program is given that may start it: the program is not known, or its language is not read in full."""

    program: str
    words: tuple[Word, ...]
    """The words behind the program."""
    code: str = ""
    """Text in a language; a command may stand where one begins, or as a list of strings."""
    input: str = ""
    """Text on its standard input: a command may stand anywhere."""


class Line(Struct, frozen=True, dict=True):
    """What a line of shell runs, and what it names."""

    commands: tuple[tuple[Word, ...], ...]
    """The words of each command; the first one is its program."""
    unreadable: str
    """Why there may be others; empty: these are all."""
    text: str = ""
    suspects: tuple[Suspect, ...] = ()
    others: tuple[Word, ...] = ()
    """What it names beside the words of commands: files of redirections, values, and texts on standard input."""
    folders: tuple[str, ...] = ()
    """Those that it may go to, besides the one in which it begins."""
    read_files: tuple[Word, ...] = ()
    written_files: tuple[Word, ...] = ()
    """The files of redirections."""
    values: Mapping[str, tuple[Word, ...]] = {}
    """What variables may be, by what the line sets them to."""

    @cached_property
    def sets(self) -> frozenset[str]:
        """The names of variables that the line may set: all that stand in it otherwise than behind a dollar."""
        texts = (self.text, *(word.text for words in self.commands for word in words))
        return frozenset(name for text in texts for name in _NAME.findall(text))


@lru_cache(maxsize=16)  # a call is judged by many rules, one after another, and texts in it are read as lines, too
def commands_of(line: str) -> Line:
    """Return the commands that a line may run. What is not literal is marked as in `words`."""
    collector = _Collector()
    collector.read(line, 0)
    resolved = _with_variables(line, collector.variables)
    if resolved != line:  # a further reading: it may find what is hidden, and says nothing about what is unreadable
        reason = collector.unreadable
        collector.read(resolved, 0)
        collector.unreadable = reason
    return Line(
        tuple(collector.commands),
        collector.unreadable,
        line,
        tuple(collector.suspects),
        tuple(collector.others),
        tuple(collector.folders),
        tuple(collector.read_files),
        tuple(collector.written_files),
        {name: tuple(values) for name, values in collector.values.items()},
    )


def says_all(line: str) -> bool:
    """True if the commands of a line are those that stand in it: only then may an allow rule cover them.

    A program whose purpose is to run what its operands say (`timeout`, `docker run`) says so itself; one that does it
    for an option (`git -c alias.x=…`, `find -exec`) does not.
    """
    read_line = commands_of(line)
    if read_line.unreadable:
        return False
    own = {command.words for command in read(line).commands}
    for words in own:
        if words and words[0].text == "git" and any(word.text.startswith("--output") for word in words):
            return False  # `git diff` and its kin write a file
    return own.issuperset(read_line.commands) or any(map(runs_command, own))


class _Collector:
    """Collects the commands of a line, each once.

    It owns what the line sets while it runs: variables, aliases and files. Texts and commands that start each other are
    read as far as the budget of work goes, in the order in which they are found; the reading stops where that is spent,
    and then the line is unreadable.
    """

    def __init__(self) -> None:
        self.commands: Final[dict[tuple[Word, ...], None]] = {}
        self.variables: Final[dict[str, str]] = {}
        self.unreadable = ""
        self.suspects: Final[dict[Suspect, None]] = {}
        self.others: Final[dict[Word, None]] = {}
        self.folders: Final[dict[str, None]] = {}
        self.read_files: Final[dict[Word, None]] = {}
        self.written_files: Final[dict[Word, None]] = {}
        self.values: Final[dict[str, dict[Word, None]]] = {}
        self._aliases: Final[dict[str, str]] = {}
        """Other names of commands, as `alias` and `hash -p` give them."""
        self._files: Final = Files()
        self._read: Final[set[str]] = set()
        self._left = _MOST_WORK

    def read(self, text: str, depth: int) -> None:
        """Read a line of shell, and what it starts."""
        if text in self._read:
            return
        self._read.add(text)
        if not self._may_go_on(depth, len(text)):
            return
        script = read(text)
        if script.unreadable:
            self._note(script.unreadable)
        for command in script.commands:
            self._add(command, depth)

    def _note(self, reason: str) -> None:
        self.unreadable = self.unreadable or reason

    def _may_go_on(self, depth: int, work: int) -> bool:
        """Spend some work; False if there is too much of it: the agent decides how long a line is."""
        self._left -= work
        if depth <= _DEEPEST and len(self.commands) <= _MOST_COMMANDS and self._left >= 0:
            return True
        self._note("it has too many commands that start each other")
        return False

    def _add(self, command: Command, depth: int) -> None:
        self._note_others(command, depth)
        words = command.words
        while words and words[0].text == "!":  # behind `time`, it is a word for the grammar, as what follows it
            words = tuple(dropwhile(lambda word: _ASSIGNED.match(word.text), words[1:]))
        if not words or not self._may_go_on(depth, 8 * len(words)):
            return
        before = len(self.commands)
        self.commands[words] = None
        program = _certain_name(words[0])
        if program is None:
            self._note(_without_name(words[0]))
            return
        self._follow(program, words, command, depth)
        if len(self.commands) > before or command.input.kind != "inherited":
            self._add_started(program, words, command, depth)

    def _note_others(self, command: Command, depth: int) -> None:
        """Note what a command names beside its words."""
        for name, value in command.assignments:
            self.others[value] = None
            self._assign(name, value, depth)
        if command.input.text:
            self.others[Word(command.input.text, command.input.text)] = None
        self.others.update((file.word, None) for file in command.opened)
        self.read_files.update((file.word, None) for file in command.opened if file.is_read)
        self.written_files.update((file.word, None) for file in command.opened if file.is_written)

    def _follow(self, program: str, words: tuple[Word, ...], command: Command, depth: int) -> None:
        """Follow what a command changes for later ones, and what it runs of that."""
        if program in _BUILTINS:
            self._follow_builtin(program, words, depth)
        for folder in _folders_of(program, words):
            for before in ("", *list(self.folders)[-_MOST_FOLDERS:]):
                self.folders[join(before, folder)] = None
        if program in self._aliases:
            self._expand_alias(program, command, depth)
        for started_ in self._files.follow(program, command):
            self._start(started_, depth + 1)

    def _add_started(self, program: str, words: tuple[Word, ...], command: Command, depth: int) -> None:
        """Add what a command starts, or may start."""
        known = table().program(program)
        text = command.input.text if command.input.kind in ("text", "pipe") else ""
        if text or not known.is_inert:
            self._suspect(known, program, words, text)
        if known.entry is None:
            return
        if program != command.words[0].text:
            command = Command((literal(program), *words[1:]), command.assignments, command.input)
        for started_ in started(command, known.entry):
            self._start(started_, depth + 1)
            if self._left < 0:
                break

    def _suspect(self, known: Known, program: str, words: tuple[Word, ...], text: str) -> None:
        """Note what a program is given that may start it. All of its arguments are data if it is known for that."""
        given = words[1:]
        if known.is_inert:
            given = ()
            text = text if known.runs_script and _names_script(words) else ""
        elif known.reads_words:
            given = tuple(word for word in given if _SPACED.search(word.text))
        elif known.entry is not None:
            given = () if any(word.text in table().verbs for word in given) else given[1:]
        if given or text:
            self.suspects[Suspect(program, given, input=text)] = None

    def _start(self, started_: Started, depth: int) -> None:
        if isinstance(started_, Command):
            self._add(started_, depth)
        elif isinstance(started_, Code):
            if not started_.whole:
                self._note(f"the line of shell {started_.text[:60]!r} is only known in full when it runs")
            self.read(started_.text, depth)
        elif isinstance(started_, Foreign):
            if depth <= _DEEPEST and self._may_go_on(depth, 400 + 4 * len(started_.text)):
                if started_.language in embedded.READ_BY_NAMES:
                    self.suspects[Suspect(f"a program in {started_.language}", (), started_.text)] = None
                for inner in embedded.commands_in(started_):
                    self._start(inner, depth + 1)
        else:
            self._note(started_.about)

    # --- builtins, aliases and variables ---

    def _follow_builtin(self, program: str, words: tuple[Word, ...], depth: int) -> None:
        """Follow what builtins of the shell set and evaluate."""
        if program in _DECLARES:
            for word in words[1:]:
                name, equals, value = word.text.partition("=")
                if equals:
                    self._assign(name, Word(value, word.source.partition("=")[2]), depth)
        if program in ("alias", "hash"):
            self._note_aliases(program, words)
        if program in _EVALUATES and any("[" in word.text and _SUBSTITUTES.search(word.text) for word in words):
            self._note(f"{program!r} evaluates a subscript in its arguments")

    def _note_aliases(self, program: str, words: tuple[Word, ...]) -> None:
        for at, word in enumerate(words[1:], 1):
            name, equals, value = word.source.partition("=")
            if equals:
                self._aliases[name] = value
            elif program == "hash" and words[at - 1].text == "-p":
                self._aliases.update((other.text, word.source) for other in words[at + 1 :])

    def _expand_alias(self, program: str, command: Command, depth: int) -> None:
        alias = self._aliases.pop(program)  # in what it stands for, its name is not an alias
        body = read(alias).commands
        if body:
            self._add(Command((*body[-1].words, *command.words[1:]), (), command.input), depth + 1)
        self._aliases[program] = alias

    def _assign(self, name: str, value: Word, depth: int) -> None:
        self.values.setdefault(name, {})[value] = None
        if value.literal:
            self.variables[name] = value.text
            if name in table().options:
                self.suspects[Suspect(name, (value,))] = None
            for started_ in self._files.read_by(name, value):
                self._start(started_, depth + 1)
        for started_ in assigned(name, value):
            self._start(started_, depth + 1)


def _folders_of(program: str, words: Sequence[Word]) -> Iterator[str]:
    """The folders to which a command goes, as far as they are certain."""
    if program in _GOES:
        targets = map(from_known_folder, words[1:])
        yield next((word.text for word in targets if word.literal and word.text[:1] != "-"), "~")
    for before, word in pairwise(words):
        name, equals, value = word.text.partition("=")
        if word.literal and before.text in _GO_OPTIONS:
            yield word.text
        elif word.literal and equals and name in _GO_OPTIONS:
            yield value


def _certain_name(word: Word) -> str | None:
    """The program's name without folders; None if another program may run."""
    if word.text.isalnum():  # most are
        return word.text
    if word.splits or (word.text.startswith("~") and "/" not in word.text):  # a home folder may have any name
        return None
    name = word.text.rpartition("/")[2].removeprefix("=")
    if HOLE in name or not name:
        return None
    return name


def _without_name(word: Word) -> str:
    """Why it is not known which program this word names."""
    shown = repr(word.source[:60])
    if word.literal and not word.text.startswith("~"):
        return f"a command has no name ({shown})"
    return f"the name of a command is {shown}, which is only known when it runs"


def _names_script(words: Sequence[Word]) -> bool:
    """True if a program does not read what to do from standard input, so that something else is done with that."""
    return len(words) > 1 and not any(word.text in ("-", "/dev/stdin") for word in words)


def _with_variables(line: str, variables: dict[str, str]) -> str:
    """The line with the values of variables that it sets itself, and with default values of others.

    It stays as it is where that would become too long to be read.
    """
    if "$" not in line or (not variables and "${" not in line):
        return line
    left = LONGEST - len(line)

    def value(part: re.Match[str]) -> str:
        nonlocal left
        text = part[3] if part[3] is not None else variables.get(part[1] or part[2], part[0])
        left -= len(text)
        return text if left >= 0 else ""

    resolved = _VARIABLE.sub(value, line)
    return resolved if left >= 0 else line
