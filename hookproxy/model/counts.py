"""Numbers with their nouns, for messages."""

from __future__ import annotations


def counted(number: float, word: str) -> str:
    """A number with its noun, in the singular only for 1: `no hooks`, `1 hook`, `1.5 seconds`."""
    return f"{f'{number:.12g}' if number else 'no'} {word}{'' if number == 1 else 's'}"
