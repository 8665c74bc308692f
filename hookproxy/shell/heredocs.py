"""Where here-documents begin and end, by bash's own rule.

A here-document goes from the line after its operator to the first line that is the delimiter. The grammar ends some of
them otherwise, so `statements` takes them out of a line before the grammar sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

DELIMITER: Final = re.compile(r"[ \t]*((?:[^\s'\"\\$`;&|()<>\ue000-\ue008]|'[^'\n]*'|\"[^\"\\$`\n]*\"|\\[^\n])+)")
_CONTINUED: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_SUBSTITUTION: Final = re.compile(r"\$\(((?:[^()\"]|\"[^\"()]*\")*)\)")
_QUOTED: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"|\\(.)")


def unquoted(delimiter: str) -> str:
    """The delimiter as it stands at the end of the here-document. If it is quoted, nothing is expanded in that."""
    return _QUOTED.sub(lambda part: part[1] or part[2] or part[3] or "", delimiter)


def find_body(line: str, at: int, delimiter: str, without_tabs: bool, *, joins: bool) -> tuple[str | None, int]:
    """The text of a here-document that begins here, and where the line after it begins; None: it has no end.

    With `joins`, a backslash at the end of a line continues it, so that the next line is not the delimiter.
    """
    start, continued = at, False
    while at < len(line):
        newline = line.find("\n", at)
        stop = len(line) if newline < 0 else newline
        text = line[at:stop]
        if (text.lstrip("\t") if without_tabs else text) == delimiter and not continued:
            return line[start:at], min(stop + 1, len(line)) if newline >= 0 else stop
        continued = joins and _CONTINUED.search(text) is not None
        at = stop + 1
    return None, at


def expanded_texts(body: str) -> Iterator[str]:
    """Yield lines of shell that expand what is expanded in a here-document without quotes around its delimiter.

    In quotes, everything but a quote means the same. Inside of `$(…)`, a quote is left alone.
    """
    if "$" not in body and "`" not in body:
        return
    if '"' in body:
        yield from _SUBSTITUTION.findall(body)
        body = _SUBSTITUTION.sub("", body).replace('"', "'")
    yield f': "{body}"'


def is_open(rest: str) -> bool:
    """True if the line may go on, by quotes or parentheses that begin behind a here-document's sign, or a backslash."""
    return (
        _CONTINUED.search(rest) is not None
        or rest.count("'") % 2 + rest.count('"') % 2 + rest.count("`") % 2 > 0
        or rest.count("(") > rest.count(")")
    )
