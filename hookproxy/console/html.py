"""Text as HTML: what an agent, a server or a hook wrote is text, never markup, and each character of it is visible.

A `str` is escaped wherever it goes into an element; only `Html`, which is made here, is taken as it is.
"""

from __future__ import annotations

import contextlib
import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import msgspec

from ..jsonrpc import normalize
from .visible import INVISIBLE

LONGEST_CELL: Final = 300  # characters of a text in a table; the page of the call has the whole text
_MOST_COMPARED: Final = 200_000  # characters of both texts: to compare more line by line takes seconds
_CHUNK: Final = 16_384  # characters of a text that a browser lays out at once: it skips chunks that are out of view

_VOID: Final = frozenset({"input", "link", "meta", "br", "hr"})


class Html(str):
    """Markup that is right as it stands."""

    __slots__ = ()


Content = str | None
"""Text, which is escaped; or Html; or nothing."""


def text(value: str) -> Html:
    """The text, with a label in place of each character that is not visible or reorders others. `\\n` and tab stay."""
    if value.isprintable() and not INVISIBLE.search(value):
        return Html(escape(value, quote=False))
    return Html("\n".join(map(_line, value.split("\n"))))


def _line(line: str) -> str:
    if line.isprintable() and not INVISIBLE.search(line):
        return escape(line, quote=False)
    return "".join(
        escape(one, quote=False) if (one.isprintable() and not INVISIBLE.match(one)) or one == "\t" else _label(one)
        for one in line
    )


def _label(character: str) -> str:
    """A label such as U+202E, with the name of the character."""
    name = unicodedata.name(character, "control character" if ord(character) < 0xA0 else "character without a sign")
    return f'<span class="char" title="{escape(name.lower())}">U+{ord(character):04X}</span>'


def _attribute(value: str) -> str:
    """A text in an attribute: escapes stand for what is not visible, and for half of a surrogate pair."""
    if not value.isprintable():
        value = "".join(
            one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode() for one in value
        )
    return escape(value)


def join(parts: Iterable[Content]) -> Html:
    """The parts one after another; texts among them are escaped."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts if part))


def el(tag: str, *content: Content, **attributes: str | int | bool | None) -> Html:
    """An element. `class_` and `for_` stand for `class` and `for`, other `_` for `-`; None and False leave one out."""
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_attribute(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{join(content)}</{tag}>")


def cut(value: str, longest: int = LONGEST_CELL) -> str:
    """The text, or the beginning of a long one."""
    return value if len(value) <= longest else f"{value[:longest]}…"


def pretty(raw: bytes) -> str:
    """JSON over many lines, with numbers as they are spelled and no needless escapes; other text as it is."""
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):  # other text is shown as it is
        raw = msgspec.json.format(normalize.normalize(raw, lenient=True), indent=2) if raw else b""
    return raw.decode(errors="backslashreplace")


def block(value: str, label: str) -> Html:
    """A text of any length in a box that scrolls, whole, and that the keyboard reaches; `label` is its name."""
    chunks = [value[at : at + _CHUNK] for at in range(0, len(value), _CHUNK)]
    inner = text(value) if len(chunks) <= 1 else join(el("span", text(one), class_="chunk") for one in chunks)
    return el("pre", inner, tabindex="0", role="group", aria_label=label, dir="ltr")


def difference(before: str, after: str, label: str) -> Html:
    """What changed from one text to the other, line by line; of very long texts, both."""
    if len(before) + len(after) > _MOST_COMPARED:
        return join([block(before, f"{label}, before"), block(after, f"{label}, after")])
    lines: list[Html] = []
    for number, line in enumerate(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=3)):
        if number < 2:
            continue
        if line.startswith("@@"):
            lines += [] if line.startswith("@@ -1") else [el("span", "…", class_="gap")]
        else:
            kind = {"-": "removed", "+": "added"}.get(line[0], "same")
            lines.append(el("span", line, class_=kind))
    inner = join(lines) if lines else text(after)
    return el("pre", inner, class_="diff", tabindex="0", role="group", aria_label=label, dir="ltr")


def facts(rows: Iterable[tuple[str, Content]]) -> Html:
    """Names with their values; rows without a value are left out."""
    return el("dl", *(join([el("dt", name), el("dd", value)]) for name, value in rows if value), class_="facts")


def table(heads: Sequence[str], rows: Iterable[Html], caption: str, kind: str = "", **attributes: str) -> Html:
    """A table with rows that are made already, in a box that scrolls sideways by itself.

    `kind` "cards" makes a card of each row on a narrow screen.
    """
    head = el("thead", el("tr", *(el("th", name, scope="col") for name in heads)))
    body = el("tbody", *rows, **attributes)
    return el("div", el("table", el("caption", caption, class_="quiet"), head, body), class_=f"scroll {kind}".strip())


def page(title: str, current: str, main: Html, *, live: bool = False) -> bytes:
    """A whole page. `current` is the address of its place in the navigation."""
    links = [
        el("a", name, href=href, aria_current="page" if href == current else None)
        for href, name in (("./", "Live"), ("history", "History"), ("policy", "Policy"), ("try", "Try"))
    ]
    document = join(
        [
            Html("<!doctype html>\n"),
            Html('<html lang="en">'),
            el(
                "head",
                el("meta", charset="utf-8"),
                el("meta", name="viewport", content="width=device-width, initial-scale=1"),
                el("meta", name="color-scheme", content="light dark"),
                el("title", f"{title} · hookproxy"),
                el("link", rel="stylesheet", href="static/console.css"),
                el("link", rel="icon", href="static/icon.svg", type="image/svg+xml"),
                el("script", src="static/console.js", defer=True),
            ),
            el(
                "body",
                el("a", "Skip to the content", href="#main", class_="skip"),
                el(
                    "header",
                    el("a", "hookproxy", href="./", class_="brand"),
                    el("nav", *links, aria_label="Pages"),
                    el("a", "", href="./#approvals", id="waiting", class_="waiting", hidden=True),
                ),
                el("main", el("h1", title), main, id="main", tabindex="-1"),
                data_title=title,
                data_live="true" if live else None,
            ),
            Html("</html>\n"),
        ]
    )
    return document.encode("utf-8", "backslashreplace")
