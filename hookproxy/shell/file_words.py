"""The paths and patterns that a word may name, as far as the line says so.

A word may have variables that the line sets, and be what another command hands on (`find -exec`, `xargs`, `sh -c … x`).
Where only the run decides about a part, the folder before it and what stands behind it are known: `secrets/$X` is in
`secrets`, and `$X/.env` is named `.env`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from posixpath import join
from typing import Final

from .words import GLOB, HOLE, SPLIT, UNKNOWN, Word

_HOME: Final = re.compile(r"\$(?:HOME\b|\{HOME\})(?=/|\Z)")
_HERE: Final = re.compile(r"(?:\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`)(?:/+|\Z)")
_HERE_PREFIX: Final = "~+/"
_EXPANDED: Final = re.compile(r"[$`]")
_DECIDED_LATER: Final = re.compile(f"[{HOLE}{SPLIT}]")
_VARIABLE: Final = re.compile(r"\$(?:(\w+|[@*])|\{(\w+|[@*])(?:\[[^\]{}$`]*\])?\})")
_BRACED: Final = re.compile(r"[{},]")
_ONLY_STARS: Final = re.compile(r"(?:(?:\A|/)\*+)+/?\Z")
_DEEPEST: Final = 4  # values that have values in them: people write two
_MOST: Final = 4096  # files of one line, in all its folders: each is compared with each rule


class TooMany(Exception):
    """The line names more files than can be compared: it may name any."""


class FileWords:
    """Words that are names of files. `values` has what variables may be, and `fed` what commands hand on."""

    def __init__(self, values: Mapping[str, Collection[Word]], fed: Collection[Word]) -> None:
        self._values: Final = values
        self._fed: Final = fed
        self._paths: Final[dict[str, None]] = {}
        self._patterns: Final[dict[str, None]] = {}
        self._unknown: Final[set[tuple[str, str]]] = set()
        self._has_fed = False
        self._left = _MOST  # words, with each value of their variables: adding so many takes some 40 ms

    def add(self, word: Word, depth: int = 0) -> None:
        """Add a file, as far as its name is known. Raises TooMany."""
        self._left -= 1
        if self._left < 0:
            raise TooMany
        if word.literal:
            self._paths[word.text.removeprefix(_HERE_PREFIX)] = None
        elif (word.text, word.source) not in self._unknown:
            self._unknown.add((word.text, word.source))
            self._add_unknown(from_known_folder(word), depth)

    def _add_unknown(self, word: Word, depth: int) -> None:
        if word.literal:
            self._paths[word.text] = None
        elif _DECIDED_LATER.search(word.text) is None:
            self._patterns[word.source] = None
        else:
            if depth < _DEEPEST:
                self._add_values(word, depth)
            self._add_known_parts(word)

    def _add_values(self, word: Word, depth: int) -> None:
        resolved = self._resolved(word) if _EXPANDED.search(word.source) else self._handed_on(word)
        is_computed = True
        for other in resolved:
            is_computed = False
            self.add(other, depth + 1)
        if is_computed and word.text in (HOLE, SPLIT) and not self._has_fed:  # it may be any that the line says
            self._has_fed = True
            for other in self._fed:
                self.add(other, depth + 1)

    def _handed_on(self, word: Word) -> Iterator[Word]:
        """The words that one is, of which another command hands on a part, or that has too many braces."""
        if "," in word.source and "{" in word.source:
            yield from (Word(piece, piece) for piece in _BRACED.split(word.source))
        for fed in self._fed:
            yield _filled(word, [fed] * len(_DECIDED_LATER.findall(word.text)))

    def _resolved(self, word: Word) -> Iterator[Word]:
        """The words that one is by the values of its variables, if nothing else is expanded in it."""
        variables = [part[1] or part[2] for part in _VARIABLE.finditer(word.source)]
        if len(variables) != len(_EXPANDED.findall(word.source)) or len(variables) > _DEEPEST:
            return
        if len(variables) == len(_DECIDED_LATER.findall(word.text)):
            values = [self._values.get(name, ()) or (Word(HOLE, f"${{{name}}}"),) for name in variables]
            if any(name in self._values for name in variables):
                yield from (_filled(word, chosen) for chosen in product(*values))

    def _add_known_parts(self, word: Word) -> None:
        """Add the folder before the first part that is not known, and the name behind the last one."""
        before = UNKNOWN.split(word.text, maxsplit=1)[0].rpartition("/")[0]
        if before.strip("/~."):
            self._patterns[f"{before}/*"] = None
        behind = _DECIDED_LATER.split(word.text)[-1].partition("/")[2].lstrip("/")
        if GLOB in behind:
            self._patterns["/".join(word.source.split("/")[-1 - behind.count("/") :])] = None
        elif behind:
            self._patterns[behind] = None  # in whichever folder: not below the root, as a path may be

    def all(self, folders: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The paths and the patterns, from the folder in which the line begins and from the others. Raises TooMany."""
        if (len(self._paths) + len(self._patterns)) * (1 + len(folders)) > _MOST:
            raise TooMany
        paths = dict.fromkeys(_in_folders(filter(None, self._paths), folders))
        patterns = (_ONLY_STARS.sub("", pattern) for pattern in _in_folders(self._patterns, folders))
        return tuple(paths), tuple(dict.fromkeys(filter(None, patterns)))


def from_known_folder(word: Word) -> Word:
    """The word without a variable that certainly is the home folder, or the one in which the line begins."""
    if _DECIDED_LATER.match(word.text):
        if place := _HOME.match(word.source):
            return Word(f"~{word.text[1:]}", f"~{word.source[place.end() :]}")
        if place := _HERE.match(word.source):
            return Word(word.text[1:].lstrip("/"), word.source[place.end() :])
    return word


def _filled(word: Word, values: Sequence[Word]) -> Word:
    """The word with these values in its unknown parts."""
    text, source = iter(values), iter(values)
    filled = _DECIDED_LATER.sub(lambda _: next(text).text, word.text)
    if _EXPANDED.search(word.source):
        return Word(filled, _VARIABLE.sub(lambda _: next(source).source, word.source))
    return Word(filled, filled if UNKNOWN.search(filled) is None else values[0].source)


def _in_folders(names: Iterable[str], folders: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield name
        if not name.startswith(("/", "~")):
            for folder in folders:
                yield join(folder, name)
