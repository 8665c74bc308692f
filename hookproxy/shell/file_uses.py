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
from itertools import islice, takewhile
from posixpath import join
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from .commands import Line, commands_of
from .file_words import FileWords, TooMany
from .program_table import program_name
from .programs import operand_places
from .words import GLOB, Word, literal

__all__ = ["FileUses", "Files", "TooMany", "file_uses"]

_FUNCTION: Final = re.compile(r"([\w.:-]+)\s*\(\s*\)|\bfunction\s+([\w.:-]+)")
_POSITIONS: Final = (*"@*0123456789",)
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_SAY: Final = frozenset({"echo", "printf", "ls"})
"""Programs whose output may be names of files, which are their operands."""
_SUBSCRIPT: Final = re.compile(r"\[[^\]]*\]=")
_NAMED: Final = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename"})
_SENT: Final = ("@", "=<", "file://")
"""What stands before the name of a file that is sent."""
_NOWHERE: Final = literal("")
"""Stands for a file on another machine."""
_WILDCARD: Final = re.compile(r"[*?\[]")
_MOST_HANDED_ON: Final = 256  # names that commands hand on: of more, the later ones are not looked at


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
    of: str = ""
    operands: str
    first: tuple[str, ...] | None = None
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    remote: bool = False


class _File(Struct, frozen=True):
    program: tuple[_Program, ...]


@cache
def _programs() -> Mapping[tuple[str, str], _Program]:
    """The programs by what they are a subcommand of, and by their names."""
    text = resources.files(__package__).joinpath("file_uses.toml").read_text("utf-8")
    programs = msgspec.toml.decode(text, type=_File).program
    return {
        (of, name): program
        for program in programs
        for name in program.names.split()
        for of in program.of.split() or ("",)
    }


@cache
def _with_subcommands() -> frozenset[str]:
    return frozenset(of for of, _ in _programs() if of)


def file_uses(line: str, starts: Sequence[str] = ()) -> FileUses:
    """The files that a line reads and changes, as far as its words say so. Raises TooMany.

    `starts` are folders in which it may begin, besides the one from which all paths start.
    """
    read_line = commands_of(line)
    values, fed = _values(read_line), tuple(islice(_handed_on(read_line), _MOST_HANDED_ON))
    read, written = FileWords(values, fed), FileWords(values, fed)
    for word in read_line.read_files:
        read.add(word)
    for word in read_line.written_files:
        written.add(word)
    for words in read_line.commands:
        for program, behind in _known(words):
            _note(program, behind, read, written)
    folders = [*read_line.folders, *starts, *(join(start, folder) for start in starts for folder in read_line.folders)]
    return FileUses(Files(*read.all(folders)), Files(*written.all(folders)))


def _known(words: Sequence[Word]) -> Iterator[tuple[_Program, Sequence[Word]]]:
    """The program of a command, as far as it is in the table, with the words behind it."""
    if not words[0].literal:
        return
    name = words[0].text.rpartition("/")[2]
    if name in _with_subcommands():
        for place in sorted(operand_places(words) or ()):
            subcommand = _programs().get((name, words[place].text)) if place < len(words) else None
            if subcommand is not None:
                yield subcommand, words[place + 1 :]
        return
    program = _programs().get(("", name)) or _programs().get(("", program_name(words[0].text)))
    if program is not None:
        yield program, words[1:]


# --- what one command hands on to another ---


def _values(line: Line) -> Mapping[str, Sequence[Word]]:
    """What variables may be: what the line sets; as `$1` and further, what `set`, functions and `sh -c` are given."""
    if "$" not in line.text:
        return {}
    functions = {part[1] or part[2] for part in _FUNCTION.finditer(line.text)}
    given: dict[Word, None] = {}
    for words in line.commands:
        name = words[0].text.rpartition("/")[2]
        if name == "set" or name in functions or (name in _SHELLS and any("c" in word.text for word in words[1:3])):
            given.update((word, None) for word in words[1:])
    set_by_line = {name: [*_items(values)] for name, values in line.values.items()}
    set_by_line["_"] = [words[-1] for words in line.commands]
    return {**set_by_line, **(dict.fromkeys(_POSITIONS, tuple(given)) if given else {})}


def _items(values: Sequence[Word]) -> Iterator[Word]:
    """The values of a variable, which is an array if it begins with a parenthesis."""
    for value in values:
        if value.source.startswith("(") and not value.literal:
            yield from (literal(_SUBSCRIPT.sub("", text).strip("'\"")) for text in value.source.strip("()").split())
        else:
            yield value


def _handed_on(line: Line) -> Iterator[Word]:
    """The names that `find -exec`, `xargs` and their like may give to a command."""
    redirected = {*line.read_files, *line.written_files}
    for other in line.others:
        if other not in redirected and other.literal:
            yield from (Word(text, text) for text in other.text.split())
    for words in line.commands:
        name = words[0].text.rpartition("/")[2]
        if name == "find":
            yield from _found(words[1:])
        elif name in _SAY:
            yield from (word for word in words[1:] if word.text[:1] != "-")


def _found(words: Sequence[Word]) -> Iterator[Word]:
    """The folders in which `find` searches, and the names for which it does."""
    folders = [*takewhile(lambda word: word.text[:1] not in "-!(", words)]
    yield from folders
    for at, word in enumerate(words[:-1]):
        excluded = words[at - 1].text in ("!", "-not") or "-prune" in [later.text for later in words[at + 2 : at + 5]]
        if word.text in _NAMED and not excluded:
            name = words[at + 1].source
            names = (name, f".{name}") if _WILDCARD.match(name) else (name,)  # a wildcard of `find` may be a dot
            for folder in ("", *(folder.text for folder in folders if folder.literal)):
                for path in (join(folder, name) for name in names):
                    yield Word(_WILDCARD.sub(GLOB, path), path)


# --- the words of one command ---


class _Given(NamedTuple):
    """What a program is given."""

    operands: list[Word]
    options: set[str]
    values: list[tuple[str, Word]]
    """Those options that name a file, each with it."""


def _note(program: _Program, words: Sequence[Word], read: FileWords, written: FileWords) -> None:
    """Note the files in the words behind a program."""
    operands, options, values = _given(program, words)
    for option, value in values:
        (written if option in program.written else read).add(value)
    if program.operands in ("copied", "carried"):
        _note_copies(program, operands, values, read, written)
        return
    changes = not options.isdisjoint(program.changes)
    for word in words if program.operands == "sent" else _files_among(program, operands, options):
        _note_operand(program, word, read, written, changes=changes)


def _files_among(program: _Program, operands: Sequence[Word], options: set[str]) -> Sequence[Word]:
    """The operands without a first one that is not a file."""
    if program.first is None:
        return operands
    says_otherwise = not options.isdisjoint(program.first)
    if program.operands == "script":
        return () if says_otherwise else operands[:1]
    return operands if says_otherwise else operands[1:]


def _note_copies(
    program: _Program, operands: Sequence[Word], values: Sequence[tuple[str, Word]], read: FileWords, written: FileWords
) -> None:
    """Note files that are copied to a place, which may be a folder."""
    if program.remote:
        operands = [_NOWHERE if ":" in word.text.partition("/")[0] else word for word in operands]
    targets = [value for option, value in values if option in program.written]
    sources, targets = (operands, targets) if targets else (operands[:-1], [*operands[-1:]])
    for source in sources:
        read.add(source)
        if program.operands == "carried":
            written.add(source)
    for target in targets:
        written.add(target)
        if target.text and target.literal:
            names = (source.text.rstrip("/").rpartition("/")[2] for source in sources if source.literal)
            for name in filter(None, names):
                written.add(literal(join(target.text, name)))


def _note_operand(program: _Program, word: Word, read: FileWords, written: FileWords, *, changes: bool) -> None:
    use = program.operands
    if use == "assigned":
        name, _, _ = word.text.partition("=")
        use = "read" if name in program.read else "written" if name in program.written else ""
        word = _behind(word, "=")
    if use == "sent":
        for sign in filter(word.text.__contains__, _SENT):
            read.add(_behind(word, sign))
    if use in ("read", "script", "moved"):
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
            for option, value in _options(program, word):
                given.options.add(option)
                if option in program.ends:
                    return given
                if _has_value(program, option):
                    if option in program.pairs:
                        next(rest, None)
                    given.values.extend(_named(program, option, next(rest, None) if value is None else value))
    return given


def _named(program: _Program, option: str, value: Word | None) -> list[tuple[str, Word]]:
    """The option with its value, if that is a file."""
    return [] if value is None or option in program.values else [(option, value)]


def _has_value(program: _Program, option: str) -> bool:
    return option in program.read or option in program.written or option in program.values


def _options(program: _Program, word: Word) -> list[tuple[str, Word | None]]:
    """The options that one word is, each with its value if that is in the word, too."""
    name, equals, _ = word.text.partition("=")
    value = _behind(word, "=") if equals else None
    if name.startswith("--"):
        return [(_in_full(program, name), value)]
    if len(name) > 2 and (_has_value(program, name) or name in program.changes):
        return [(name, value)]
    options: list[tuple[str, Word | None]] = []
    for at, letter in enumerate(word.text[1:], 2):
        option = f"-{letter}"
        if _has_value(program, option):
            options.append((option, Word(word.text[at:], word.source[at:]) if at < len(word.text) else None))
            break
        options.append((option, None))
    return options


def _in_full(program: _Program, name: str) -> str:
    """A long option that may be shortened; one that names a file if it may be several."""
    kept = (*program.read, *program.written, *program.changes, *program.values, *program.ends)
    return name if name in kept else next((option for option in kept if option.startswith(name)), name)


def _behind(word: Word, sign: str) -> Word:
    return Word(word.text.partition(sign)[2], word.source.partition(sign)[2])
