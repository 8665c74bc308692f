"""The files that a command line names for programs that are known to read or change files, and for redirections.

It only finds what stands there: a word as its program gets it, also with braces, with a variable that the line sets
itself, or as a pattern of names. It does not find what a program computes, or takes from elsewhere. Nothing here is a
sandbox (law 3: `file_uses.toml` says which programs are known).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from posixpath import join
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from .commands import Line, commands_of
from .program_table import program_name
from .words import GLOB, UNKNOWN, Word

_HOME: Final = re.compile(r"\$(?:HOME\b|\{HOME\})(?=/|\Z)")
_HERE: Final = re.compile(r"\$(?:PWD\b|\{PWD\})/+")
_EXPANDED: Final = re.compile(r"[$`]")
_ONLY_STARS: Final = re.compile(r"(?:(?:\A|/)\*+)+/?\Z")
_MOST: Final = 4096  # files of one line, in all its folders: each is compared with each rule


class TooMany(Exception):
    """The line names more files than can be compared: it may name any."""


class Files(Struct, frozen=True):
    """Files that a line names, as paths from the folder in which it begins, and as patterns of a shell."""

    paths: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class FileUses(Struct, frozen=True):
    """What a line does with files."""

    read: Files = Files()
    written: Files = Files()


class _Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of `file_uses.toml`, which says what each key means."""

    names: str
    operands: str
    first: tuple[str, ...] | None = None
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


class _File(Struct, frozen=True):
    program: tuple[_Program, ...]


@cache
def _programs() -> Mapping[str, _Program]:
    text = resources.files(__package__).joinpath("file_uses.toml").read_text("utf-8")
    programs = msgspec.toml.decode(text, type=_File).program
    return {name: program for program in programs for name in program.names.split()}


def file_uses(line: str) -> FileUses:
    """The files that a line reads and changes, as far as its words say so. Raises TooMany."""
    read_line = commands_of(line)
    read, written = _Words(), _Words()
    for word in read_line.read_files:
        read.add(word)
    for word in read_line.written_files:
        written.add(word)
    for words in read_line.commands:
        program = _program(words[0].text) if words[0].literal else None
        if program is not None:
            _note(program, words[1:], read, written)
    return FileUses(read.files(read_line), written.files(read_line))


class _Given(NamedTuple):
    """What a program is given."""

    operands: list[Word]
    options: set[str]
    values: list[tuple[str, Word]]
    """Those options that name a file, each with it."""


def _program(text: str) -> _Program | None:
    """A program by its name, with or without a version behind it."""
    return _programs().get(text.rpartition("/")[2]) or _programs().get(program_name(text))


def _note(program: _Program, words: Sequence[Word], read: _Words, written: _Words) -> None:
    """Note the files in the words behind a program."""
    operands, options, values = _given(program, words)
    for option, value in values:
        (written if option in program.written else read).add(value)
    for word in words if program.operands == "sent" else ():
        if "@" in word.text:
            read.add(_behind(word, "@"))
    if program.first is not None and options.isdisjoint(program.first):
        del operands[:1]
    changes = not options.isdisjoint(program.changes)
    for number, word in enumerate(operands, 1):
        _note_operand(program, word, read, written, changes=changes, last=number == len(operands))


def _note_operand(program: _Program, word: Word, read: _Words, written: _Words, *, changes: bool, last: bool) -> None:
    use = program.operands
    if use == "copied":
        use = "written" if last else "read"
    if use == "assigned":
        name, _, _ = word.text.partition("=")
        use = "read" if name in program.read else "written" if name in program.written else ""
        word = _behind(word, "=")
    if use in ("read", "moved"):
        read.add(word)
    if use in ("written", "moved") or (changes and use == "read"):
        written.add(word)


def _given(program: _Program, words: Sequence[Word]) -> _Given:
    """The words behind a program, divided. An option that is not in the table may have a value: that is an operand."""
    given = _Given([], set(), [])
    rest = iter(words)
    for word in rest:
        if word.text == "--":
            given.operands.extend(rest)
        elif word.text[:1] != "-" or word.text == "-":
            given.operands.append(word)
        else:
            name, equals, _ = word.text.partition("=")
            given.options.add(name)
            if name in program.read or name in program.written:
                value = _behind(word, "=") if equals else next(rest, None)
                given.values.extend([] if value is None else [(name, value)])
    return given


def _behind(word: Word, sign: str) -> Word:
    return Word(word.text.partition(sign)[2], word.source.partition(sign)[2])


class _Words:
    """Words that are names of files."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._patterns: dict[str, None] = {}

    def add(self, word: Word) -> None:
        """Add a file, if its name is known as far as it needs to be."""
        if word.literal:
            self._paths[word.text] = None
        elif GLOB in word.text and not _EXPANDED.search(word.source):
            self._patterns[word.source] = None
        elif (place := _HOME.match(word.source)) or (place := _HERE.match(word.source)):
            rest = word.source[place.end() :]
            if not _EXPANDED.search(rest):
                of_home = place.re is _HOME
                text = f"~{rest}" if of_home else rest
                (self._patterns if UNKNOWN.search(word.text[1:]) and GLOB in word.text else self._paths)[text] = None

    def files(self, line: Line) -> Files:
        """The files from the folder in which the line begins, and from each other one that it may go to."""
        paths = tuple(dict.fromkeys(_in_folders(filter(None, self._paths), line.folders)))
        patterns = (_ONLY_STARS.sub("", pattern) for pattern in _in_folders(self._patterns, line.folders))
        patterns_ = tuple(dict.fromkeys(filter(None, patterns)))
        if len(paths) + len(patterns_) > _MOST:
            raise TooMany
        return Files(paths, patterns_)


def _in_folders(names: Iterator[str] | Mapping[str, None], folders: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield name
        if not name.startswith(("/", "~")):
            for folder in folders:
                yield join(folder, name)
