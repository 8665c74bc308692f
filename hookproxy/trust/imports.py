"""Which files Python would take for the modules that a script imports, as far as texts tell; nothing is run."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

MODULES: Final = (".py", ".pyc", ".so", ".pyd")
"""How the files of modules end."""

_IMPORT: Final = re.compile(r"^[ \t]*(?:import|from)\b(.*)", re.MULTILINE)
_NAME: Final = re.compile(r"\w+")
_LONGEST: Final = 1024 * 1024  # characters of a script in which imports are looked for


def modules(folder: str, names: Collection[str]) -> list[str]:
    """The files in a folder that Python may take for a module of one of these names, and those in packages."""
    found: list[str] = []
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            if entry.name.partition(".")[0] not in names:
                continue
            if entry.name.endswith(MODULES):
                found.append(entry.path)
            elif entry.is_dir() and any(name.startswith("__init__.") for name in os.listdir(entry.path)):
                found += (os.path.join(at, name) for at, _, files in os.walk(entry.path) for name in files)
    return [path for path in found if path.endswith(MODULES) and "/__pycache__/" not in path]


def imported(path: str) -> frozenset[str]:
    """All names that stand in the import statements of a Python file, and some that do not: more do no harm."""
    if not os.path.isfile(path):  # a pipe would be waited for
        return frozenset()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return frozenset(_NAME.findall(" ".join(_IMPORT.findall(file.read(_LONGEST)))))
    except OSError:
        return frozenset()
