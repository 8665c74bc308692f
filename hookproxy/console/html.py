"""Pages from templates: what an agent, a server or a hook wrote is text, never markup, and each character is visible.

A template's values are escaped in any place, unless they are `Markup`, which only templates and this file make. What
is not visible becomes an escape such as `\\u202e`; the filter `shown` makes it a label with the character's name
instead, which is markup: for text between elements, never in an attribute.
"""

from __future__ import annotations

import difflib
import unicodedata
from html import escape
from typing import Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..flow.sentences import drawn
from ..model.counts import counted
from . import words
from .call_filter import DECISIONS
from .visible import INVISIBLE, editable, pretty, visible

_LONGEST_CELL: Final = 300  # characters of a text in a table; the page of the call has the whole text
_MOST_COMPARED: Final = 200_000  # characters of both texts: to compare more line by line takes seconds
_CHUNK: Final = 16_384  # characters of a text that a browser lays out at once: it skips chunks that are out of view


def render(template: str, **values: object) -> str:
    """A page, or a part of one that is loaded by itself."""
    return _ENVIRONMENT.get_template(template).render({"live": False, **values})


def prepare() -> None:
    """Compile all templates, so that the first page comes as fast as the next ones. It takes 0.1 s."""
    for template in _ENVIRONMENT.list_templates():
        _ENVIRONMENT.get_template(template)


def part(macro: str, *values: object) -> Markup:
    """A part of the live page: what this macro makes of the values."""
    return Markup(getattr(_ENVIRONMENT.get_template("live_parts.html").module, macro)(*values)).strip()


def shown(value: object) -> Markup:
    """The text, with a label in place of each character that is not visible or reorders others. `\\n` and tab stay."""
    if isinstance(value, Markup):
        return value
    return Markup("\n".join(map(_line, str(value).split("\n"))))


def _line(line: str) -> str:
    if line.isprintable() and not INVISIBLE.search(line):
        return escape(line, quote=False)
    return "".join(
        escape(character, quote=False)
        if (character.isprintable() and not INVISIBLE.match(character)) or character == "\t"
        else _label(character)
        for character in line
    )


def _label(character: str) -> str:
    """A label such as U+202E, with the name of the character."""
    name = unicodedata.name(character, "control character" if ord(character) < 0xA0 else "character without a sign")
    return f'<span class="char" title="{escape(name.lower())}">U+{ord(character):04X}</span>'


def _chunks(value: str) -> list[str]:
    return [value[at : at + _CHUNK] for at in range(0, len(value), _CHUNK)]


def _cut(value: str, longest: int = _LONGEST_CELL) -> str:
    """The text, or the beginning of a long one."""
    return value if len(value) <= longest else f"{value[:longest]}…"


def _difference(before: str, after: str) -> list[tuple[str, str]] | None:
    """What changed from one text to the other: a class and a text for each line. None: they are too long for that."""
    if len(before) + len(after) > _MOST_COMPARED:
        return None
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=3)
    classes = {"-": "removed", "+": "added", " ": "same"}
    return [
        ("gap", "…") if line.startswith("@@") else (classes[line[0]], line)
        for number, line in enumerate(lines)
        if number > 1 and not line.startswith("@@ -1")  # the first two name files
    ]


def _finalized(value: object) -> object:
    """What a template shows of a value, before it is escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return "" if value is None else value


_ENVIRONMENT: Final = Environment(
    autoescape=True,
    auto_reload=False,
    finalize=_finalized,
    loader=PackageLoader(__package__),
    lstrip_blocks=True,
    trim_blocks=True,
    undefined=StrictUndefined,
)
_ENVIRONMENT.filters.update(
    chunks=_chunks,
    clock=words.clock,
    counted=counted,
    cut=_cut,
    duration=words.duration,
    moment=words.moment,
    pretty=pretty,
    editable=editable,
    shown=shown,
    size=words.size,
    thousands="{:,}".format,
)
_ENVIRONMENT.globals.update(decisions=DECISIONS, drawn=drawn, difference=_difference, urlencode=urlencode, words=words)
