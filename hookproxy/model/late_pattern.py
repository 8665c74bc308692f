"""Patterns that are compiled when they are first used.

To compile one takes as long as to import a small module, and most patterns of the package are about messages, files
and hooks that a run never has: compiled where they are written, they took a tenth of the start of `hookproxy run`.
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, cast


class _LatePattern(Generic[AnyStr]):
    """Stands for the pattern. What is used of it is kept as an attribute, so that it costs no more the next time."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self._text: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # asked for by copying and by inspection, not by users of the pattern
            raise AttributeError(name)
        value: object = getattr(re.compile(self._text, self._flags), name)  # `re` keeps what it has compiled last
        setattr(self, name, value)
        return value


def late_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile` for a module's own pattern: it has all functions of one, and is compiled when one is used."""
    return cast("re.Pattern[AnyStr]", _LatePattern(text, flags))
