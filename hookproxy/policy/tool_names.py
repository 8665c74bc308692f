"""What the name of a tool says: which familiar names it may get. `familiar_names.toml` has the words.

A tool may get a familiar name if one of the name's phrases fits: a verb, and what it acts on. Whether it does the same
as Claude Code's tool, its arguments say: see `familiar_names`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ..model.late_pattern import late_pattern


class Phrase(Struct, frozen=True):
    """Some names of tools, as `familiar_names.toml` explains."""

    verbs: frozenset[str]
    objects: frozenset[str]
    fillers: frozenset[str]
    alone: frozenset[str]
    not_before: frozenset[str]

    def fits(self, words: Sequence[str]) -> bool:
        """Whether a tool with these words in its name is meant; the time grows with their number only."""
        barred = next((at for at, word in enumerate(words) if word in self.not_before), len(words))
        has_object, only_links = False, True  # of the words after the verb
        for at in reversed(range(len(words))):
            word = words[at]
            if word in self.verbs and at <= barred:
                beside = at > 0 and words[at - 1] in self.objects
                if has_object or beside or (word in self.alone and only_links):
                    return True
            if word not in self.objects and word not in self.fillers:
                break
            has_object = has_object or word in self.objects
            only_links = only_links and word in TABLE.links
        return False


class _PhraseTexts(Struct, frozen=True, forbid_unknown_fields=True):
    verbs: str
    objects: str
    fillers: str
    not_before: str
    alone: str = ""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    spellings: dict[str, str]
    words: dict[str, str]
    phrases: dict[str, list[_PhraseTexts]]
    edit: dict[str, str]
    arguments: dict[str, str]


class Table:
    """The content of `familiar_names.toml`."""

    def __init__(self, text: str) -> None:
        """Raise msgspec.DecodeError, or ValueError for a `@word` or a `-word` that stands for nothing."""
        file = msgspec.toml.decode(text, type=_File)
        named = {name: frozenset(map(sys.intern, words.split())) for name, words in file.words.items()}

        def words(text: str) -> frozenset[str]:
            expanded: set[str] = set()
            for word in map(sys.intern, text.split()):  # most words are in several lists
                name = word[1:]
                if word[0] not in "@-":
                    expanded.add(word)
                elif name not in (named if word[0] == "@" else expanded):
                    raise ValueError(f"{text!r}: {word} stands for nothing")
                elif word[0] == "@":
                    expanded |= named[name]
                else:
                    expanded.remove(name)
            return frozenset(expanded)

        self.links: Final = named["link"]
        """Fillers that say nothing."""
        self.phrases: Final[Mapping[str, Sequence[Phrase]]] = {
            name: [Phrase(*map(words, (p.verbs, p.objects, p.fillers, p.alone, p.not_before))) for p in phrases]
            for name, phrases in file.phrases.items()
        }
        self.edit_verbs: Final = words(file.edit["verbs"])
        self.not_edited: Final = words(file.edit["others"])
        self.spellings: Final[Mapping[str, Sequence[str]]] = {
            spelling: known.split() for known, spellings in file.spellings.items() for spelling in spellings.split()
        }
        self.arguments: Final[Mapping[str, tuple[str, ...]]] = {
            meaning: tuple(names.split()) for meaning, names in file.arguments.items()
        }


def read_table() -> Table:
    """Read the table: in 2 ms, so the modules that need it are imported when a tool is first looked up."""
    with open(os.path.join(os.path.dirname(__file__), "familiar_names.toml"), encoding="utf-8") as file:
        return Table(file.read())


TABLE: Final = read_table()

_WORD: Final = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of snake_case, kebab-case, camelCase, dots and spaces. Digits are ignored."""


def words_of(tool: str) -> list[str]:
    """The words of a tool's name, as the table spells them."""
    words: list[str] = []
    for word in _WORD.findall(tool):
        lower = word.lower()
        words += TABLE.spellings.get(lower, (lower,))
    return words


def plain(argument: str) -> str:
    """The name of an argument without case, `_` and `-`, as the table spells it."""
    return argument.lower().replace("_", "").replace("-", "")


def names_for(words: Sequence[str]) -> set[str]:
    """The familiar names that a tool with these words in its name may get, whatever its arguments are."""
    names = {name for name, phrases in TABLE.phrases.items() if any(phrase.fits(words) for phrase in phrases)}
    if not TABLE.edit_verbs.isdisjoint(words) and TABLE.not_edited.isdisjoint(words):
        names |= {"Edit", "MultiEdit"}
        if is_editor(words):
            names |= {"Write", "Read"}
    return names


def writes_a_part(words: Sequence[str]) -> bool:
    """True for a tool that writes a part of a file, without the old text."""
    return any(phrase.fits(words) for phrase in TABLE.phrases["Edit"])


def is_editor(words: Sequence[str]) -> bool:
    """True for one tool that views, creates and edits files, depending on its arguments."""
    return "editor" in words or ("edit" in words and "tool" in words)
