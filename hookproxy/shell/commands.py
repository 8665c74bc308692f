"""All commands that a line of shell may run: its own, and those that they start, as deep as they go (law 1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import dropwhile
from typing import Final

from msgspec import Struct

from . import embedded
from .programs import Code, Foreign, Started, assigned, program_name, runs_command, started, table
from .read import Script, read
from .words import HOLE, Command, Word, echoed, literal

_DEEPEST: Final = 12  # commands that start commands: people write three
_MOST_COMMANDS: Final = 1024  # of one line, together
_MOST_WORK: Final = 150_000  # characters of all texts that start each other, and eight for each word: some 20 ms
_IN_PLACE: Final = re.compile(r"-[A-Za-z]*i|--in-place|.*(?<!\w)[wW]\s*\S")
_CHANGES: Final = {
    "sed": _IN_PLACE, "perl": _IN_PLACE, "ruby": _IN_PLACE, "awk": re.compile(".*>", re.DOTALL),
    "gawk": re.compile(".*>|-i", re.DOTALL), "mawk": re.compile(".*>", re.DOTALL), "find": re.compile("-fp|-fls"),
    "sort": re.compile("-[A-Za-z]*o|--o"), "patch": re.compile(""), "ed": re.compile(""), "ex": re.compile(""),
    "rsync": re.compile(""), "scp": re.compile(""),
}  # fmt: skip
"""Programs that change the files that their words name, each with a word that is there if it does."""
_COPIES: Final = frozenset({"rsync", "scp"})
"""Programs that write to their last operand."""
_FILE: Final = re.compile(r"[^\s/'\"`=,;:(){}<>|&]+")
_INTERPRETER: Final = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(\S+)")
_BY_ENDING: Final = {
    "py": "python",
    "js": "node",
    "mjs": "node",
    "cjs": "node",
    "ts": "node",
    "pl": "perl",
    "rb": "ruby",
}
_OTHER_ESCAPE: Final = re.compile(r"\\(?![nt\\\n])")
_ESCAPE: Final = re.compile(r"\\([nt\\])")
_FOR_GIT: Final = re.compile(
    r"(?:\A|/)\.git/|\.gitconfig\Z|hooks/|\.config/git/|(?:\A|/)(?:pre|post|commit|prepare|update|applypatch|push)-[a-z-]+\Z"
)
_SPACED: Final = re.compile(r"\s")
_DECLARES: Final = frozenset({"export", "declare", "typeset", "local", "readonly"})
_WRITES: Final = frozenset({"curl", "wget", "tee", "cp", "mv", "ln", "install", "dd", "aria2c", "base64", "xxd"})
_EVALUATES: Final = frozenset({
    "let", "test", "[", "printf", "read", "unset", "wait", "getopts", *_DECLARES, "mapfile", "readarray", "eval",
})  # fmt: skip
"""Builtins that evaluate subscripts in their arguments, and run what is substituted there."""
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
    """What a line of shell runs."""

    commands: tuple[tuple[Word, ...], ...]
    """The words of each command; the first one is its program."""
    unreadable: str
    """Why there may be others; empty: these are all."""
    text: str = ""
    suspects: tuple[Suspect, ...] = ()

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
    return Line(tuple(collector.commands), collector.unreadable, line, tuple(collector.suspects))


def says_all(line: str) -> bool:
    """True if the commands of a line are those that stand in it: only then may an allow rule cover them.

    A program whose purpose is to run what its operands say (`timeout`, `docker run`) says so itself; one that does it
    for an option (`git -c alias.x=…`, `find -exec`) does not.
    """
    read_line = commands_of(line)
    if read_line.unreadable:
        return False
    own = {command.words for command in read(line).commands}
    if any(words and words[0].text == "git" and _writes(words) for words in own):
        return False
    return own.issuperset(read_line.commands) or any(map(runs_command, own))


def _writes(words: Sequence[Word]) -> bool:
    """True if `git diff` and its kin write a file."""
    return any(word.text.startswith("--output") for word in words)


class _Collector:
    """Collects commands, each once."""

    def __init__(self) -> None:
        self.commands: Final[dict[tuple[Word, ...], None]] = {}
        self.variables: Final[dict[str, str]] = {}
        self._aliases: Final[dict[str, str]] = {}
        """Other names of commands, as `alias` and `hash -p` give them."""
        self.unreadable = ""
        self.suspects: Final[dict[Suspect, None]] = {}
        self._files: Final[dict[str, str | None]] = {}
        """The files that the line writes, without folders, with their contents; None: not known."""
        self._read: Final[set[str]] = set()
        self._for_git = False
        """The line writes a file from which git takes commands."""
        self._left = _MOST_WORK

    def read(self, text: str, depth: int) -> None:
        """Read a line of shell, and what it starts."""
        if text in self._read:
            return
        self._read.add(text)
        if not self._may_go_on(depth, len(text)):
            return
        script: Script = read(text)
        if script.unreadable:
            self._note(script.unreadable)
        for command in script.commands:
            self._add(command, depth)

    def _note(self, reason: str) -> None:
        self.unreadable = self.unreadable or reason

    def _add(self, command: Command, depth: int) -> None:
        for name, value in command.assignments:
            self._assign(name, value, depth)
        words = command.words
        while words and words[0].text == "!":  # behind `time`, it is a word for the grammar, as what follows it
            words = tuple(dropwhile(lambda word: _ASSIGNED.match(word.text), words[1:]))
        if words and self._may_go_on(depth, 8 * len(words)):
            self._add_words(words, command, depth)

    def _add_words(self, words: tuple[Word, ...], command: Command, depth: int) -> None:
        known = words in self.commands
        self.commands[words] = None
        program = _certain_name(words[0])
        if program is None:
            self._note(f"the command {words[0].source[:60]!r} is not literal")
            return
        self._builtin(program, words, depth)
        self._expand_alias(program, command, depth)
        self._check_files(program, command, depth)
        if known and command.input.kind == "inherited":
            return
        self._suspect(program, words, command)
        if program != command.words[0].text:
            command = Command((literal(program), *words[1:]), command.assignments, command.input)
        for each in started(command):
            self._start(each, depth + 1)
            if self._left < 0:
                break

    def _suspect(self, program: str, words: tuple[Word, ...], command: Command) -> None:
        """Note what a program is given that may start it. All of its arguments are data if it is known for that."""
        programs = table()
        text = command.input.text if command.input.kind in ("text", "pipe") else ""
        given = words[1:]
        if programs.is_inert(program):
            given = ()
            text = text if programs.runs_script(program) and _names_script(words) else ""
        elif programs.reads_words(program):
            given = tuple(word for word in given if _SPACED.search(word.text))
        elif programs.has_subcommands(program):
            given = () if any(word.text in programs.verbs for word in given) else given[1:]
        if given or text:
            self.suspects[Suspect(program, given, input=text)] = None

    def _may_go_on(self, depth: int, work: int) -> bool:
        """Spend some work; False if there is too much of it: the agent decides how long a line is."""
        self._left -= work
        if depth <= _DEEPEST and len(self.commands) <= _MOST_COMMANDS and self._left >= 0:
            return True
        self._note("too many commands start each other")
        return False

    def _builtin(self, program: str, words: tuple[Word, ...], depth: int) -> None:
        """Follow what builtins of the shell set and evaluate."""
        if program in _DECLARES:
            self._declared(words, depth)
        if program in ("alias", "hash"):
            self._note_aliases(program, words)
        if program in _EVALUATES and any("[" in word.text and _SUBSTITUTES.search(word.text) for word in words):
            self._note("a subscript that is evaluated")

    def _note_aliases(self, program: str, words: tuple[Word, ...]) -> None:
        for at, word in enumerate(words[1:], 1):
            name, equals, value = word.source.partition("=")
            if equals:
                self._aliases[name] = value
            elif program == "hash" and words[at - 1].text == "-p":
                self._aliases.update((other.text, word.source) for other in words[at + 1 :])

    def _expand_alias(self, program: str, command: Command, depth: int) -> None:
        alias = self._aliases.pop(program, None)  # in what it stands for, its name is not an alias
        if alias is None:
            return
        body = read(alias).commands
        if body:
            self._add(Command((*body[-1].words, *command.words[1:]), (), command.input), depth + 1)
        self._aliases[program] = alias

    def _start(self, each: Started, depth: int) -> None:
        if isinstance(each, Command):
            self._add(each, depth)
        elif isinstance(each, Code):
            if not each.whole:
                self._note("a line of shell is not literal")
            self.read(each.text, depth)
        elif isinstance(each, Foreign):
            if depth <= _DEEPEST and self._may_go_on(depth, 200 + 2 * len(each.text)):
                if each.language in embedded.READ_BY_NAMES:
                    self.suspects[Suspect(f"a program in {each.language}", (), each.text)] = None
                for inner in embedded.commands_in(each):
                    self._start(inner, depth + 1)
        else:
            self._note(each.about)

    def _assign(self, name: str, value: Word, depth: int) -> None:
        if value.literal:
            self.variables[name] = value.text
            self._check_value(name, value, depth)
        for each in assigned(name, value):
            self._start(each, depth + 1)

    def _check_value(self, name: str, value: Word, depth: int) -> None:
        """Read a file that the line itself writes, and that a variable such as BASH_ENV names."""
        if name in table().options:
            self.suspects[Suspect(name, (value,))] = None
        if self._files and (
            table().variables.fullmatch(name) or name in table().options or name.startswith("GIT_CONFIG")
        ):
            for word in _FILE.findall(value.text):
                if word in self._files:
                    self.read(self._files[word] or "", depth + 1)
                    self._note(f"{name} names {word!r}, which the line writes")

    def _declared(self, words: tuple[Word, ...], depth: int) -> None:
        for word in words[1:]:
            name, equals, value = word.text.partition("=")
            if equals:
                self._assign(name, Word(value, word.source.partition("=")[2]), depth)

    def _check_files(self, program: str, command: Command, depth: int) -> None:
        """Read the files that the line itself writes and runs; all other scripts are not read."""
        changes = program in _WRITES or _changes(program, command)
        if not (self._files or command.written or changes):
            return
        self._run_files(program, command, depth)
        if changes:
            for name in _named_files(program, command):
                self._files[name] = _written(program, command) if program in _WRITES else None
        for path in command.written:
            name = path.rpartition("/")[2]
            text = _written(program, command)
            if name in self._files and program == "printf":  # it writes no end of a line
                text = None
            if name in self._files:  # whether it is written anew or continued does not matter: both are read
                text = f"{self._files[name]}\n{text}" if text and self._files[name] else None
            self._files[name] = text
            self._for_git |= _FOR_GIT.search(path) is not None

    def _run_files(self, program: str, command: Command, depth: int) -> None:
        if program == "git" and (self._for_git or any(name.startswith("git-") for name in self._files)):
            self._note("git runs what the line has written")
        if not self._files:
            return
        for run, language in [(program, ""), *table().run_files((literal(program), *command.words[1:]))]:
            for name in self._files.keys() & {run, f"{run}.py", f"{run}.js", f"{run}.pm"}:
                text = self._files[name]
                if text is None:
                    self._note(f"it runs {name!r}, which it writes")
                else:
                    language = language or _language_of(name, text)
                    self._start(Foreign(language, text, True) if language else Code(text, True), depth + 1)


def _certain_name(word: Word) -> str | None:
    """The program's name without folders; None if another program may run."""
    if word.splits or (word.text.startswith("~") and "/" not in word.text):  # a home folder may have any name
        return None
    name = word.text.rpartition("/")[2].removeprefix("=")
    if HOLE in name or not name:
        return None
    return name


def _written(program: str, command: Command) -> str | None:
    """What a command writes into a file; None if that is not known."""
    if program in ("cat", "tee"):
        return command.input.text if command.input.whole else None
    text = echoed(command) if all(word.literal for word in command.words) else ""
    if program == "printf" and len(command.words) == 2 and "%" not in text and not _OTHER_ESCAPE.search(text):
        return _ESCAPE.sub(lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), command.words[1].source)
    options = any(word.text.startswith("-") for word in command.words)
    return text if text and "%" not in text and "\\" not in text and not options else None


def _names_script(words: Sequence[Word]) -> bool:
    """True if a program does not read what to do from standard input, so that something else is done with that."""
    return len(words) > 1 and not any(word.text in ("-", "/dev/stdin") for word in words)


def _language_of(file: str, text: str) -> str:
    """The language of a file that is run by its name; "" is that of a shell."""
    interpreter = _INTERPRETER.match(text)
    program = program_name(interpreter[1]) if interpreter else _BY_ENDING.get(file.rpartition(".")[2], "sh")
    return next((language for _, language in table().run_files((literal(program), literal(file)))), "")


def _changes(program: str, command: Command) -> bool:
    """True if a program may change files that its words name."""
    changes = _CHANGES.get(program)
    return changes is not None and any(changes.match(word.text) for word in command.words[1:])


def _named_files(program: str, command: Command) -> set[str]:
    """The names of files, without folders, that may stand in the words behind a program."""
    texts = [word.text for word in command.words[1:]]
    if program in _COPIES:
        texts = texts[-1:]
    texts += [text[2:] for text in texts if text[:1] == "-"]
    return {name for text in texts for name in _FILE.findall(text)}


def _with_variables(line: str, variables: dict[str, str]) -> str:
    """The line with the values of variables that it sets itself, and with default values of others."""
    if "$" not in line:
        return line

    def value(part: re.Match[str]) -> str:
        if part[3] is not None:
            return part[3]
        return variables.get(part[1] or part[2], part[0])

    return _VARIABLE.sub(value, line)
