"""Names that a person or a model takes for each other, though their characters differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from ..jsonrpc.unicode_text import normalized
from ..model.errors import printable

_DIGITS: Final = {"0": "o", "1": "l", "i": "l", "|": "l"}  # which many fonts show like letters
_SEPARATORS: Final = dict.fromkeys("-. /:", "_")
_UNSEEN: Final = {chr(code): None for code in (*range(32), 127)}
_ASCII: Final = str.maketrans({**_DIGITS, **_SEPARATORS, **_UNSEEN})


@cache
def _look_alikes() -> Mapping[int, str | None]:
    """`_ASCII`, and the characters outside of ASCII that look like one in it."""
    import tomllib  # only for names that most servers do not have

    letters = tomllib.loads(files(__package__).joinpath("look_alikes.toml").read_text("utf-8"))
    return _ASCII | str.maketrans(
        {sign: _DIGITS.get(letter, letter) for letter, signs in letters.items() for sign in signs}
    )


def skeleton(name: str) -> str:
    """The name as it is taken at a glance: names with the same skeleton are taken for each other."""
    if name.isascii():  # nearly every name
        return name.lower().translate(_ASCII).replace("rn", "m").replace("vv", "w")
    folded = normalized("NFKD", normalized("NFKC", name).casefold())
    seen = "".join(character for character in folded if not is_unseen(character))
    return seen.translate(_look_alikes()).replace("rn", "m").replace("vv", "w")


def shown(text: str) -> str:
    """The text on one line, with an escape for each character that is not seen, or that a terminal acts on."""
    text = printable(text)
    if text.isascii():
        return text
    return "".join(_escaped(character) if is_unseen(character) else character for character in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def fold(name: str) -> str:
    """The name as readers take it that ignore case and forms of Unicode."""
    return name.lower() if name.isascii() else normalized("NFKC", name).casefold()


_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # printable for Unicode, and never seen


def is_unseen(character: str) -> bool:
    """True if the character takes no place of its own: control and format characters, marks, fillers, unassigned."""
    return character in _FILLERS or unicodedata.category(character) in (
        "Cc",
        "Cf",
        "Cn",
        "Co",
        "Cs",
        "Mn",
        "Me",
        "Zl",
        "Zp",
    )
