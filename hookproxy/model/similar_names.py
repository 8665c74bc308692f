"""What a misspelt name may mean: the name among those that are known that is most like it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

_SIMILAR: Final = 0.8  # of two names of files: a letter or two differ; other files of a folder begin alike as well


def suggestion(word: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """For example `did you mean 'timeout'?`. Empty if no known name has this `similarity`, from 0 to 1."""
    near = nearest(word, known, similarity)
    return f"did you mean {near!r}?" if near else ""


def nearest(word: str, known: Iterable[str], similarity: float) -> str:
    """The known name that is like a word; empty if none has this `similarity`, from 0 to 1.

    Of several such names, one that begins as the word does is meant: `deny` for `denied`, and not `hide_denied`.
    """
    import difflib  # 2 ms, for errors only

    written = word.lower()
    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(written, spelled, n=3, cutoff=similarity)
    begins_alike = [name for name in near if name.lstrip("-")[:2] == written.lstrip("-")[:2]]
    return spelled[(begins_alike or near)[0]] if near else ""


def similar_file(path: str) -> str:
    """For the name of a missing file, the similar one that its folder has: `did you mean 'mcp.json'?`; or empty."""
    try:
        name = os.path.basename(path)
        others = [other for other in os.listdir(os.path.dirname(path) or ".") if other != name]  # a link may dangle
        return suggestion(name, others, _SIMILAR)
    except OSError:
        return ""


def similar_program(word: str, folders: str) -> str:
    """For a program that is in none of these folders, which are as in PATH, the similar one that is; or empty."""
    names: set[str] = set()
    for folder in filter(None, folders.split(os.pathsep)):
        try:
            names.update(os.listdir(folder))
        except OSError:
            continue  # PATH often names folders that are not there
    return suggestion(word, sorted(names), _SIMILAR)
