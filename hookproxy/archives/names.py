"""The names of files in an archive: such that every file system means the same by them. Pure.

Only ASCII letters, digits and `. _ - + @ =`, so that no two names differ in nothing but their Unicode form; and no two
that differ in nothing but their case, of folders neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..model.errors import printable

LONGEST: Final = 200
"""Characters of a name: with the folder before it, it stays far below what any file system takes."""

_PART: Final = re.compile(r"[A-Za-z0-9._+@=\-]{1,100}")  # 100: the field of a tar header
_SHOWN: Final = 80  # characters of a wrong name in an error


class BadName(ValueError):
    """A name that no file may have; the text is a sentence without a full stop."""


def check(name: str) -> None:
    """Raise BadName unless the name is one of a file below its folder."""
    shown = printable(name[:_SHOWN])
    if len(name) > LONGEST:
        raise BadName(f"the name {shown}… is longer than {LONGEST} characters")
    for part in name.split("/"):
        if part in ("", ".", ".."):
            raise BadName(f"the name {shown or '(empty)'} leads out of its folder, or is not in its shortest form")
        if not _PART.fullmatch(part):
            raise BadName(f"the name {shown} has other characters than letters, digits and . _ - + @ =")


def check_all(names: Iterable[str]) -> None:
    """Raise BadName for the first name that is wrong, or that a file system could take for another one."""
    files: set[str] = set()
    folders: dict[str, str] = {}
    for name in names:
        check(name)
        if name.casefold() in files:
            raise BadName(f"there are two files {name}, or their names differ only in their case")
        files.add(name.casefold())
        parts = name.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if folders.setdefault(folder.casefold(), folder) != folder:
                raise BadName(f"there are two folders {folder} whose names differ only in their case")
    if both := files & folders.keys():
        raise BadName(f"{min(both)} is a file and a folder")
