"""Which texts hold a secret, or stand for one: none of them may become a rule, or be printed as an example."""

from __future__ import annotations

import re
from typing import Final

from ..model.errors import printable
from ..secrets.mask import Masking

_MARK: Final = re.compile(rb"\[(?:redacted|masked)\b")
"""What the audit writes in the place of a secret."""

_LONGEST: Final = 160  # characters of an example: two lines of a terminal


def is_masked(raw: bytes) -> bool:
    """True if something in it was masked: then it does not say what was called."""
    return _MARK.search(raw) is not None


def may_be_secret(text: str) -> bool:
    """True if something in it looks like a secret."""
    return Masking().text(text) != text


def example(arguments: bytes) -> str:
    """The arguments of a call for people, on one line: without what looks like a secret, and cut."""
    shown = printable(Masking().json(arguments).decode(errors="replace"))
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def cleaned(text: str) -> str:
    """A name for people: without what looks like a secret."""
    return printable(Masking().text(text))
