"""Numbers with their nouns, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final


def counted(number: float, word: str) -> str:
    """A number with its noun, in the singular only for 1: `no hooks`, `1 hook`, `1.5 seconds`."""
    return f"{f'{number:.12g}' if number else 'no'} {word}{'' if number == 1 else 's'}"


MOST_NAMED: Final = 8
"""Names in a sentence: more are only counted, since nobody reads them there."""


def some_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Names for a sentence: the first ones, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
