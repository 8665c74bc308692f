"""Parses TOML that others may have written: packs, policies and hook files are delivered, and read before anybody has
looked at them.

`tomllib` takes a time that grows with the square of the parts of a dotted key: 400 kB of `a.a.a…` hold it for more
than ten minutes. Such a text is refused before it is parsed; for any other, the time grows with its length.
"""

from __future__ import annotations

import tomllib
from typing import Final

from .late_pattern import late_pattern

MOST_CHARACTERS: Final = 1024 * 1024
"""Of a text: `tomllib` takes a second for so many, and five at the worst. `pack.toml` with as many files as a pack may
have, all with the longest names, has 600,000."""

MOST_PARTS: Final = 40
"""Of a dotted key: no key of ours needs more than six. The search does not know where strings are, and the longest
dotted text that they have a use for is the name of an IPv6 address in the DNS, with 34 parts."""

_PART: Final = r"""(?:[\w-]++|"(?>(?:[^"\\\n]|\\.)*)"|'[^'\n]*+')"""
_LONG_KEY: Final = late_pattern(rf"(?<![\w\\-])(?>(?:{_PART}[ \t]*+\.[ \t]*+){{{MOST_PARTS}}})")
"""More than `MOST_PARTS` parts with dots between them. It begins nowhere within a word or behind a backslash, so that
the search looks at each character a limited number of times; so does tomllib at what it lets pass."""


class NotToml(ValueError):
    """A text that is not TOML, or none that can be parsed in a sensible time; says why, and where if that is known."""

    def __init__(self, message: str, *, line: int = 0, hint: str = "") -> None:
        super().__init__(f"{message} (at line {line}, column 1)" if line else message)
        self.hint = hint
        """The repair; empty: `toml_repairs` may know it."""


def parse_toml(text: str) -> dict[str, object]:
    """The tables of the text. Raises NotToml."""
    if len(text) > MOST_CHARACTERS:
        raise NotToml(f"more than {MOST_CHARACTERS} characters", hint="make it shorter: it would take too long to read")
    if long_key := _LONG_KEY.search(text):
        line = text.count("\n", 0, long_key.start()) + 1
        raise NotToml(
            f"a key has more than {MOST_PARTS} parts", line=line, hint="no key needs more than six: shorten it"
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise NotToml(str(problem)) from None
    except RecursionError:
        raise NotToml("nested too deeply", hint="remove brackets: no key needs more than a few") from None
    except ValueError:  # Python reads no number with more than 4300 digits
        raise NotToml("a number has too many digits", hint="put it in quotes, if it is a name") from None
