"""What is known of programs that start others: `programs.toml`, by the names of programs and of their subcommands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Final

import msgspec
from msgspec import Struct

from .options import LOADING
from .words import Word


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


_OPTION_KINDS: Final = (
    "values", "flags", "code", "commands", "shell", "split", "code_flags", "settings", "programs", "modules", "quiet",
    "replace", "stdin_flags", "expanded", "hides", "scripts",
)  # fmt: skip
VALUED: Final = frozenset(
    {"values", "code", "split", "settings", "programs", "replace", "modules", "commands", "expanded", "scripts"}
)
"""Kinds of options that have a value."""
_STARTING: Final = frozenset(
    {"code", "commands", "split", "settings", "programs", "modules", "expanded", "hides", "scripts"}
)
"""Kinds of options with which something is started, or may be."""
_EITHER: Final = frozenset({"flags", "values"})


class Grammar:
    """The options and operands of one program."""

    def __init__(self, program: Program) -> None:
        self.program: Final = program
        self.operand_counts: Final = (program.operands,) if isinstance(program.operands, int) else program.operands
        """How many words may stand before the command."""
        self._kinds: Final = _kinds_of_options(program)
        self.signs: Final = {option[0] for option in self._kinds if not option[0].isalnum()} - {"/", "="} | {"-"}
        """What options begin with."""
        self.wordy: Final = [option for option in self._kinds if len(option) > 2 and option[0] == "-" != option[1]]
        """Options of several letters behind one dash."""
        self._long: Final = [option for option in self._kinds if option.startswith("--")]
        starting = [option for option, kinds in self._kinds.items() if kinds & _STARTING]
        self._starting: Final = frozenset(starting)
        self._starting_letters: Final = {option[1] for option in starting if len(option) == 2}
        self._starting_words: Final = tuple(option for option in starting if option in self.wordy)
        self._starting_long: Final = [option for option in starting if option.startswith("--")]
        self.has_marks: Final = bool(
            program.shell or "--" in program.commands or program.bundles or program.prefixes or program.suffixes
        )
        """Words are of interest that are neither options nor operands."""
        of_rest = (program.anywhere, program.bundles, program.lists, program.shell, program.suffixes)
        self._only_options: Final = program.runs == "nothing" and program.reads in ("", "text") and not any(of_rest)
        """Nothing is started but by options, by words with a prefix, by assignments and by what is read."""
        behind_operands = (program.permutes, program.reads, program.prefixes, "--" in starting)
        self._first_only: Final = self._only_options and not any(behind_operands)
        """Nothing is of interest behind an operand; at most, a subcommand has a table of its own."""

    def of_option(self, option: str) -> frozenset[str]:
        """What an option may be: with a value and without if it is not known."""
        kinds = self._kinds.get(option)
        if kinds is None and option.startswith("--") and len(option) > 2:
            shortened = [self._kinds[long] for long in self._long if long.startswith(option)]
            kinds = frozenset({"flags"}).union(*shortened) if shortened else None  # or it is another one
        return _EITHER if kinds is None else kinds

    def is_listed(self, option: str) -> bool:
        """True if the table has this very option."""
        return option in self._kinds

    def options(self) -> Iterable[str]:
        """The listed options."""
        return self._kinds

    def is_operand(self, words: Sequence[Word], at: int) -> bool:
        """True if there is a word at this place, and it is certainly an operand."""
        if at >= len(words):
            return False
        text = words[at].text
        assigns = self.program.assigns and "=" in text
        return text[:1].isalnum() and text not in self._kinds and not assigns and words[at].literal

    def starts_nothing(self, words: Sequence[Word], at: int, text_read: str) -> bool:
        """True if it is certain at a glance that words from this place on, and what is read, start nothing."""
        if self._first_only and self.is_operand(words, at):
            return True
        program = self.program
        if not self._only_options or (program.reads and text_read):
            return False
        assigns, prefixes = program.assigns, program.prefixes
        for word in words[at:]:  # `any` with a generator would cost more than the loop
            if self._may_start(word.text) or (assigns and "=" in word.text):
                return False
            if prefixes and word.source.casefold().startswith(prefixes):
                return False
        return True

    def _may_start(self, text: str) -> bool:
        """True if a word may be an option with which something is started."""
        if text[:1] not in self.signs:
            return text in self._starting
        if text.startswith("--"):
            name = text.partition("=")[0]
            return any(long.startswith(name) for long in self._starting_long)
        return (
            text in self._starting
            or not self._starting_letters.isdisjoint(text[1:])
            or text.startswith(self._starting_words)
            or text.partition("=")[0] in self._starting
        )


def _kinds_of_options(program: Program) -> dict[str, frozenset[str]]:
    kinds: dict[str, set[str]] = {}
    for kind in _OPTION_KINDS:
        for option in getattr(program, kind):
            kinds.setdefault(option, set()).add(kind)
    return {option: frozenset(of_option) for option, of_option in kinds.items()}


class Name(Struct):
    """A program or a subcommand: its grammars, and its own subcommands."""

    grammars: list[Grammar]
    subcommands: dict[str, Name]


class Known(Struct, frozen=True):
    """What is known of a program by its name."""

    name: str
    """The name in the table: without a version or a variant behind it."""
    entry: Name | None
    """What it starts; None: that is not known."""
    is_inert: bool
    """What it is given is certainly data for it, or is read by its own table."""
    reads_words: bool
    """It is known which of its words it starts; of longer texts it may not be."""
    runs_script: bool
    """It runs a file in a language, which may read anything."""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    program: tuple[Program, ...]
    inert: dict[str, str]
    settings: dict[str, str]
    variables: dict[str, str]
    options: dict[str, str]


_FILE: Final = re.compile(r"[^\s/'\"`=,;:(){}<>|&]+")
_RUN_UNNAMED: Final = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "python": ("sitecustomize.py", "usercustomize.py", "__main__.py"),
}
"""Files that are run without being named, by language."""
UNNAMED: Final = frozenset(file for files in _RUN_UNNAMED.values() for file in files)
_VERSION: Final = re.compile(r"[-.]?\d+(?:\.\d+)*$|\.(?:tiny|basic|gtk3|nox|athena|static)$|-static$")
_LONGEST_NAME: Final = 64  # of those that are kept: the agent chooses names


class Table:
    """All programs, by their names."""

    def __init__(self, raw: bytes) -> None:
        table = msgspec.toml.decode(raw, type=_File)
        self.names: Final[dict[str, Name]] = {}
        """The programs."""
        for program in table.program:
            for name in program.names:
                self._add(name.split(), Grammar(program))
        self._read: Final = frozenset(table.inert["names"].split())
        self._inert: Final = frozenset((table.inert["texts"] + table.inert["exact"]).split())
        self.verbs: Final = frozenset(table.inert["verbs"].split())
        """Subcommands behind which names are data."""
        self.settings: Final = re.compile(table.settings["names"])
        self.variables: Final = re.compile(table.variables["names"])
        self.options: Final[Mapping[str, str]] = table.options
        """Variables whose value is further arguments, with the program that gets them."""
        self.hijacks: Final = re.compile(table.variables["hijacks"])
        self._known: Final = lru_cache(maxsize=1024)(self._look_up)

    def _add(self, words: Sequence[str], grammar: Grammar) -> None:
        names = self.names
        for word in words:
            entry = names.setdefault(word, Name([], {}))
            names = entry.subcommands
        entry.grammars.append(grammar)

    def program(self, text: str) -> Known:
        """What is known of the program with this name or path."""
        name = text.rpartition("/")[2]
        return self._known(name) if len(name) <= _LONGEST_NAME else self._look_up(name)

    def _look_up(self, text: str) -> Known:
        name = text.removeprefix("=").removesuffix(".exe")
        if name.startswith(("ld-linux", "ld-musl", "ld-2", "ld64.so")):
            name = name if name in self.names else "ld.so"
        elif name not in self.names:
            name = _VERSION.sub("", name) or name
        entry = self.names.get(name)
        grammars = entry.grammars if entry else ()
        return Known(
            name=name,
            entry=entry,
            is_inert=name in self._inert,
            reads_words=bool(grammars) or name in self._read,
            runs_script=any(grammar.program.language and grammar.program.runs == "script" for grammar in grammars),
        )

    def run_files(self, words: Sequence[Word]) -> Iterator[tuple[str, str]]:
        """Yield the names of files that a program may run, each with its language; "" is that of a shell."""
        name = program_name(words[0].text)
        for grammar in grammars_of(name):
            program = grammar.program
            language = "" if is_shell(name) or program.reads == "shell" else program.language
            texts = [word.text for word in words[1:]]
            if program.runs != "script":
                texts = list(_values_of(program.scripts, texts))
            yield from ((file, language) for text in texts for file in _FILE.findall(text))
            yield from ((file, language) for file in _RUN_UNNAMED.get(program.language, ()))


def _values_of(options: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """Yield what may be the values of some options."""
    for at, text in enumerate(texts):
        for option in options:
            if text == option:
                yield from texts[at + 1 : at + 2]
            elif text.startswith(option):
                yield text[len(option) :]


@cache
def table() -> Table:
    """The table of the package; reading it takes some 5 ms."""
    with LOADING:
        return Table(resources.files(__package__).joinpath("programs.toml").read_bytes())


def program_name(text: str) -> str:
    """The name by which the table knows a program: without folders, and without a version or a variant behind it."""
    return table().program(text).name


def grammars_of(name: str) -> Sequence[Grammar]:
    """The grammars of a program; none if nothing is known of it, or only of its subcommands."""
    entry = table().program(name).entry
    return entry.grammars if entry else ()


def is_shell(name: str) -> bool:
    """True if a program of this name runs a file of commands of the shell."""
    return name in ("source", ".") or any(grammar.program.reads == "shell" for grammar in grammars_of(name))
