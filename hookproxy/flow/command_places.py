"""The paths and hosts that a command line names, as its shell reads it (`shell.commands`).

Words count as programs get them: without quotes, with braces and with variables that the line sets itself, in each
folder that it goes to; also the files of redirections and the words of loops. In a word, and in the line itself, each
part between signs counts, too: a program may take it for a path (`-F f=@x`, `host:x`), and a text for code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import join, normpath
from typing import Final, NamedTuple

from ..shell.commands import commands_of
from ..shell.words import GLOB, UNKNOWN

_QUOTES: Final = str.maketrans("", "", "\"'\\")
"""Shells take them away."""
_BETWEEN_WORDS: Final = re.compile(r"[\s;|&<>(){}=,:`$@\"']+")
_ABOVE: Final = re.compile(r"(?:\.\.(?:/|$))+")
"""Which folder that is, only the shell knows."""
_MOST: Final = 20_000  # texts of one line: each is compared with each path of an entry, in two microseconds


class TooMany(Exception):
    """The line names more than can be compared: it may name anything."""


class Places(NamedTuple):
    """What a line names."""

    paths: set[str]
    patterns: set[str]
    """Names of files as patterns of a shell."""
    words: str
    """All words, in which hosts may stand."""


def places_in(line: str) -> Places:
    """What a line names. Raises TooMany."""
    read = commands_of(line)
    words = {word for words in (*read.commands, read.others) for word in words}
    sources = {word.source if word.literal else UNKNOWN.sub(" ", word.text) for word in words if GLOB not in word.text}
    texts = {part for text in {line.translate(_QUOTES), line.replace("\\", "/"), *sources} for part in _parts(text)}
    patterns = {part for word in words if GLOB in word.text for part in (word.source, *_parts(word.source))}
    folders = ("", *map(normpath, read.folders))
    if (len(texts) + len(patterns)) * len(folders) > _MOST:
        raise TooMany
    named = set(_in_folders(texts, folders))
    paths = {path for word in named for path in (word, f"{word}/", f"/{word}")}
    return Places(paths, set(_in_folders(patterns, folders)), " ".join(sources))


def _parts(text: str) -> Iterator[str]:
    """The text itself, and all between signs in it."""
    yield text
    yield from filter(None, _BETWEEN_WORDS.split(text))


def _in_folders(words: set[str], folders: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        for folder in folders[:1] if word.startswith(("/", "~")) else folders:
            yield _ABOVE.sub("", normpath(join(folder, word)))
