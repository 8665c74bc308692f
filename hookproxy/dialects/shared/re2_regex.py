"""Regular expressions of Go and of Rust, which have the syntax of RE2, translated to Python's.

Syntax that these do not have is an error here as well, even if Python has it: their systems skip the hooks of such a
matcher, and a guard that never runs there must not seem to work here.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Callable
from typing import Final

_ESCAPE: Final = r"""
      \\x\{(?P<code>[0-9A-Fa-f]{1,6})\}        # a character by its number
    | \\(?P<octal>0[0-7]{0,2}|[1-7][0-7]{1,2}) # the same
    | \\(?P<end>z)                             # the end of the text
    | \\(?P<unknown>[CE-PRTUVX-Zceg-mopquy1-9])  # letters and digits without a meaning in RE2 or in Python
    | \\.                                      # the same in both
"""
_TOKEN: Final = re.compile(
    r"""
      \\Q(?P<literal>.*?)(?:\\E|\Z)            # literal text
    | (?P<class>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    | \(\?<(?P<name>\w+)>                      # a named group
    | \(\?(?P<group>:|P<\w+>|[is]*(?:-[is]+)?:)
    | (?P<foreign>\(\?.?.?)                     # look-around, atomic groups, conditions, flags in the middle
    | (?P<possessive>(?:[*+?]|\{\d+(?:,\d*)?\})\+)
    | (?P<brace>\{(?=,))                       # a brace that does not begin a quantifier
    | (?P<dollar>\$)                           # the end, never before a last line feed
    |"""
    + _ESCAPE,
    re.VERBOSE | re.DOTALL,
)
_IN_CLASS: Final = re.compile(
    r"\[:(?P<not>\^?)(?P<posix>\w+):\] | (?P<bracket>\[) |" + _ESCAPE,
    re.VERBOSE | re.DOTALL,
)
_FLAGS: Final = re.compile(r"\(\?([is]+)\)")
"""Flags for the whole pattern, at its beginning. RE2 also allows flags in the middle."""

_REFUSED: Final = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9]|(?:[*+?]|\{\d+(?:,\d*)?\})\+")
"""Look-around, atomic groups, references to groups and possessive quantifiers, which Go refuses."""

UNREADABLE: Final = "cannot be read here, so the hook runs for every tool"
"""The note on a matcher that only Go may be able to read."""

_ASCII: Final = frozenset(map(chr, range(128)))
_POSIX: Final = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, (*range(32), 127))),
    "digit": frozenset(string.digits),
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(string.ascii_uppercase),
    "word": frozenset(string.ascii_letters + string.digits + "_"),
    "xdigit": frozenset(string.hexdigits),
}


def unanchored(pattern: str) -> Callable[[str], bool]:
    """Return the test whether a name contains a match of the pattern. Raises as `compile_pattern`."""
    expression = compile_pattern(pattern)
    return lambda name: expression.search(name) is not None


def unanchored_or_all(pattern: str) -> Callable[[str], bool]:
    """As `unanchored`; a pattern that only Go may be able to read matches all, so that no guard is passed over."""
    if only_elsewhere(pattern):
        return lambda _name: True
    return unanchored(pattern)


def only_elsewhere(pattern: str) -> bool:
    """Whether the pattern cannot be read here, although Go may be able to read it."""
    try:
        compile_pattern(pattern)
    except re.error:
        return False
    except ValueError:
        return _REFUSED.search(pattern) is None
    except OverflowError:
        return False
    return False


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The compiled pattern. Raises ValueError, re.error or OverflowError."""
    flags = re.ASCII
    if leading := _FLAGS.match(pattern):
        pattern = pattern[leading.end() :]
        flags |= (re.IGNORECASE if "i" in leading[1] else 0) | (re.DOTALL if "s" in leading[1] else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # `--` in a class means the same as in RE2 today
        return re.compile(_TOKEN.sub(_translate, pattern), flags)


def _translate(token: re.Match[str]) -> str:
    found = token.groupdict()
    if found["literal"] is not None:
        return re.escape(found["literal"])
    if found["class"]:
        return "[" + _IN_CLASS.sub(_translate_in_class, found["class"][1:-1]) + "]"
    if found["name"]:
        return f"(?P<{found['name']}>"
    if found["foreign"] or found["possessive"]:
        raise _unsupported(token)
    if found["dollar"] or found["end"]:
        return r"\Z"
    return r"\{" if found["brace"] else _escaped(token)


def _translate_in_class(token: re.Match[str]) -> str:
    if token["bracket"]:
        return r"\["
    if token["end"]:
        raise _unsupported(token)
    return _posix(token) if token["posix"] else _escaped(token)


def _posix(token: re.Match[str]) -> str:
    members = _POSIX.get(token["posix"])
    if members is None:
        raise _unsupported(token)
    listed = "".join(f"\\x{ord(character):02x}" for character in sorted(_ASCII - members if token["not"] else members))
    return listed + (r"\x80-\U0010ffff" if token["not"] else "")


def _escaped(token: re.Match[str]) -> str:
    if token["unknown"]:
        raise _unsupported(token)
    if token["code"] or token["octal"]:
        number = int(token["code"], 16) if token["code"] else int(token["octal"], 8)
        return f"\\U{number:08x}"
    return token[0]


def _unsupported(token: re.Match[str]) -> ValueError:
    return ValueError(f"hookproxy does not support {token[0]!r} in regular expressions of Go and Rust")
