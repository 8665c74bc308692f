"""Text in a form of Unicode, without the time that a peer could make it take.

Sorting a run of combining marks takes time in the square of its length: 64 kB of them take a second, and both peers
choose texts and names. No language has more than a few marks in a row, so after each 30 a character is put in that is
not seen and ends the run, as Unicode's own "stream-safe" format does. All other texts are what `unicodedata` makes.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from typing import Final, Literal
from unicodedata import combining, normalize

_LONGEST_RUN: Final = 30  # marks in a row, as in Unicode's stream-safe text format (UAX 15)
_JOINER: Final = "\u034f"  # the combining grapheme joiner: it ends a run

Form = Literal["NFC", "NFKC", "NFKD"]


def normalized(form: Form, text: str) -> str:
    """Return the text in this form, in time that is linear in its length."""
    if text.isascii():
        return text
    return normalize(form, _stream_safe(text) if _has_long_run(text) else text)


def _has_long_run(text: str) -> bool:
    """Of a run that is too long, one of every 30 characters is a part."""
    for at in range(_LONGEST_RUN, len(text), _LONGEST_RUN):
        if _is_mark(text[at]):
            before, after = text[at - _LONGEST_RUN : at][::-1], text[at : at + _LONGEST_RUN]
            if sum(1 for around in (before, after) for _ in takewhile(_is_mark, around)) > _LONGEST_RUN:
                return True
    return False


def _stream_safe(text: str) -> str:
    parts, run = [], 0
    for character in text:
        run = run + 1 if _is_mark(character) else 0
        if run > _LONGEST_RUN:
            parts.append(_JOINER)
            run = 1
        parts.append(character)
    return "".join(parts)


@lru_cache(maxsize=4096)  # a text has few different characters
def _is_mark(character: str) -> bool:
    """True if the character is a combining mark, or begins with one when it is taken apart."""
    return not character.isascii() and combining(normalize("NFKD", character)[0]) != 0
