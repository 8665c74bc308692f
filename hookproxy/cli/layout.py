"""How verbs format output: for people, lines with labels, as wide and as many as a terminal shows; for programs, JSON.

On a terminal, no word is broken, and a page has at most MOST_LINES lines, unless more is asked for: details are left
out first, then what stands in the middle, and a line says how many that are. What is not a terminal gets everything.

rich would take a third of the time of `check` and `try`: what they print needs only bold and colours.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ..jsonrpc import normalize, raw_json
from ..model.aliases import Alias
from . import common
from .words import CONTINUED, WORD, columns, wrap

Part: TypeAlias = tuple[str, str]
"""A text and its style: words of `_STYLES`, or nothing."""

Rows: TypeAlias = Iterator[tuple[str, str]]
"""Labels, each with the text beside it."""

MOST_LINES: Final = 20
"""Of a page on a terminal: the smallest terminals have 24, and the command and the next prompt stand there too."""

MORE_OF_TOML: Final = "# {} more lines: --verbose shows them, and --output FILE writes all of it"
"""The line for `shortened` that stands in a TOML document."""

MARGIN: Final = 11
"""The columns of a label and the blanks around it."""

_MORE: Final = "{} more lines: --verbose shows them"
_STYLES: Final = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
_MIN_TEXT_WIDTH: Final = 30  # columns for the text beside a label, however narrow the terminal is
_PROSE_WIDTH: Final = 80  # columns, where there is no terminal: as in `server_table`
_MAX_COMPARED_BYTES: Final = 1_000_000  # to compare more line by line takes seconds, and nobody reads it
_NON_ASCII: Final = re.compile(r"[^\x00-\x7f]")


class _Weight(Enum):
    """What a line is worth where there is no room for all."""

    DETAIL = "detail"
    USUAL = "usual"
    END = "end"


class _Line(NamedTuple):
    text: str
    weight: _Weight
    group: int


class Page:
    """Lines for people. Anybody may have written a hook: nothing of a text reaches the terminal raw."""

    def __init__(self, width: int = 0, encoding: str = "utf-8", coloured: bool = False, most: int = 0) -> None:
        self.most: Final = most
        """Lines that are shown at most; 0: all."""
        self.width: Final = width
        """The columns of the terminal; 0: there is none, and lines may have any length."""
        self.encoding: Final = encoding
        self._coloured = coloured
        self._lines: list[_Line] = []
        self._weight = _Weight.USUAL
        self._group = 0

    @property
    def text(self) -> str:
        """The lines so far: as many as are shown."""
        lines = self._lines
        if self.most and len(lines) > self.most:
            return "".join(self._shortened(lines))
        return "".join(line.text for line in lines)

    @property
    def count(self) -> int:
        """How many lines there are so far."""
        return len(self._lines)

    @contextlib.contextmanager
    def details(self) -> Iterator[None]:
        """What is added in the block is left out first, and whole, where there is no room for all."""
        before, self._weight = self._weight, _Weight.DETAIL
        self._group += 1
        try:
            yield
        finally:
            self._weight = before
            self._group += 1

    def begin_end(self) -> None:
        """What is added from now on says what it all means: it is left out last."""
        self._weight = _Weight.END

    def _shortened(self, lines: Sequence[_Line]) -> list[str]:
        """The lines that there is room for, with one that says how many there are not."""
        ends = [number for number, line in enumerate(lines) if line.weight is _Weight.END][: self.most - 1]
        usual = [number for number, line in enumerate(lines) if line.weight is _Weight.USUAL]
        kept = {*ends, *usual[: self.most - 1 - len(ends)]}
        for group in dict.fromkeys(line.group for line in lines if line.weight is _Weight.DETAIL):
            numbers = [number for number, line in enumerate(lines) if line.group == group]
            if len(kept) + len(numbers) < self.most:
                kept.update(numbers)
        if kept == {*ends}:  # no group fits: a part of the first one says more than none
            kept.update(number for number in range(len(lines)) if number < self.most - 1 - len(ends))
        shown = [lines[number].text for number in sorted(kept - {*ends})]
        left_out = len(lines) - len(kept)
        shown = _without_double_blanks(shown)
        while shown and shown[-1] == "\n":
            del shown[-1]
        more = self._painted(_MORE.format(left_out), "dim")
        return [*shown, f"{more}\n", *(lines[number].text for number in ends)]

    def visible(self, text: str) -> str:
        """The text as this terminal can show it."""
        return common.visible(text, self.encoding)

    def line(self, *parts: Part | str) -> None:
        """Add a line, without blanks at its end. On a terminal, what does not fit follows on further lines."""
        texts = [(part, "") if isinstance(part, str) else part for part in parts]
        if self.width and columns(self.visible("".join(text for text, _ in texts)).rstrip()) > self.width:
            for line_parts in _filled(texts, self.width, self.visible):
                self._add(line_parts)
        else:
            self._add(texts)

    def verbatim(self, text: str, style: str = "") -> None:
        """Add a line that is not broken, however long: one of a diff, or a command, which a person copies whole."""
        self._add([(text, style)])

    def _add(self, texts: Sequence[Part]) -> None:
        end = len(self.visible("".join(text for text, _ in texts)).rstrip())
        line = ""
        for text, style in texts:
            shown = self.visible(text)[:end]
            end -= len(shown)
            line += self._painted(shown, style)
        self._lines.append(_Line(f"{line}\n", self._weight, self._group))

    def row(self, before: Part, text: str, style: str = "", *, prose: bool = False) -> None:
        """Add the lines of a text beside a label. On a terminal they are broken between words, to fit its width.

        `prose`: elsewhere, too, since nobody looks for a whole line of it.
        """
        width = self.width or (_PROSE_WIDTH if prose else 0)
        for line in text.strip("\n").split("\n"):
            shown = self.visible(line)
            room = max(width - len(before[0]), _MIN_TEXT_WIDTH)
            for piece in wrap(shown, room) if width else [shown]:
                self._add([before, (piece, style)])  # a word that is longer than the line stays whole, for copying
                before = (" " * len(before[0]), "")

    def section(self, heading: str, rows: Rows) -> None:
        """Add a heading, the rows with their labels, and an empty line; nothing if there are no rows."""
        texts = list(rows)
        if not texts:
            return
        self._group += self._weight is _Weight.DETAIL
        self.line((heading, "bold"))
        for name, text in texts:
            self.row(label(name), text)
        self.line()

    def _painted(self, text: str, style: str) -> str:
        words = text.rstrip()
        if not (self._coloured and style and words):
            return text
        codes = ";".join(str(_STYLES[name]) for name in style.split())
        return f"\x1b[{codes}m{words}\x1b[0m{text[len(words) :]}"


def new_page(*, short: bool = False) -> Page:
    """A page for standard output. One that is `short` has at most MOST_LINES on a terminal."""
    width, encoding, coloured = common.terminal()
    return Page(width, encoding, coloured, MOST_LINES if width and short else 0)


@contextlib.contextmanager
def shortened(*, verbose: bool, most: int = MOST_LINES, end: int = 1, more: str = _MORE) -> Iterator[None]:
    """What the block writes to a terminal has at most so many lines, and one says how many more there are: `more`.

    The last lines, as many as `end`, say what it all means, and are left out last. The block must not ask anything.
    """
    width, encoding, _ = common.terminal()
    if verbose or not width:
        yield
        return
    written = io.BytesIO()
    held = _Held(written, encoding, "backslashreplace", newline="\n", write_through=True)
    try:
        with contextlib.redirect_stdout(held):
            yield
    finally:
        lines = written.getvalue().decode(encoding).splitlines(keepends=True)
        if len(lines) > most:
            end = min(end, most - 2)
            page = new_page()
            page.line((more.format(len(lines) - most + 1), "dim"))
            lines[most - 1 - end : len(lines) - end] = [page.text]
        common.show("".join(lines))


def show_table(rows: Sequence[Sequence[str]], *, verbose: bool) -> None:
    """Print rows with their cells below each other; the first row is the header. On a terminal, `verbose`: all rows."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    with shortened(verbose=verbose, end=0):
        for row in rows:
            common.show_line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


class _Held(io.TextIOWrapper):
    """What would be on the terminal that standard output is."""

    def isatty(self) -> bool:
        return True


def fitted(text: str) -> str:
    """The lines of a text as a page has them. A command that is too long goes on as it can be copied: behind `\\`."""
    page = new_page()
    for line in text.removesuffix("\n").split("\n"):
        is_command = line.startswith(("next: ", "then: "))
        if page.width and is_command and columns(line) > page.width:
            begin, _, end = line.rpartition(" --")
            page.line(f"{begin} \\")
            line = f"{CONTINUED}--{end}"
        page.line(line)
    return page.text


def _without_double_blanks(lines: Sequence[str]) -> list[str]:
    return [line for number, line in enumerate(lines) if line != "\n" or (number and lines[number - 1] != "\n")]


def _filled(parts: Sequence[Part], width: int, visible: Callable[[str], str]) -> Iterator[list[Part]]:
    """The parts in lines that are at most so wide, broken between words; each goes on with its style."""
    line: list[Part] = []
    used = 0
    for text, style in parts:
        for word in WORD.findall(visible(text)) or [visible(text)]:
            if used > len(CONTINUED) and used + columns(word.rstrip()) > width:
                yield line
                line, used = [(CONTINUED, "")], len(CONTINUED)
                word = word.lstrip()
            line.append((word, style))
            used += columns(word)
    yield line


def label(name: str) -> Part:
    """The label of a row."""
    return f"  {name} ".ljust(MARGIN), "dim"


def diff(page: Page, name: str, before: bytes, after: bytes) -> None:
    """Add the differences between two JSON values, line by line."""
    lines = _diff_lines(before, after)
    page.line((name, "bold"), "" if lines else ": unchanged")
    for line in lines:
        page.row(("  ", ""), line, {"-": "red", "+": "green"}.get(line[0], ""))
    page.line()


def _diff_lines(before: bytes, after: bytes) -> list[str]:
    """The lines of the diff; none if there is no difference."""
    import difflib

    old, new = _pretty(before), _pretty(after)
    if old == new:
        return []
    if len(before) + len(after) > _MAX_COMPARED_BYTES:
        return [f"{len(before)} bytes before, {len(after)} after: too long to compare here; --json shows both"]
    return list(difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _pretty(raw: bytes) -> list[str]:
    with contextlib.suppress(ValueError, RecursionError):  # a value with duplicate keys stays as it is
        raw = msgspec.json.format(normalize.normalize(raw, lenient=True), indent=2)
    return raw.decode(errors="replace").split("\n")


def short_path(file: str, cwd: str) -> str:
    """The path relative to the working directory, if the file is below it."""
    return file.removeprefix(cwd.rstrip("/") + "/")


def alias_text(alias: Alias) -> str:
    """The names that hooks use for a tool and its arguments, with the server's names for the arguments."""
    if not (alias.name or alias.arguments):
        return "has no other name"
    arguments = dict(alias.arguments)
    if alias.parts is not None and len(parts := (*alias.parts.commands, *(alias.parts.words or ()))) > 1:
        arguments[alias.line] = " + ".join(parts)
    renamed = ", ".join(f"{server_name} as {hook_name}" for hook_name, server_name in arguments.items())
    names = " ".join(
        part for part in (f"as {alias.name}" if alias.name else "", f"({renamed})" if renamed else "") if part
    )
    if alias.preset:
        return f"{names}, by the preset {alias.preset}"
    return f"{names}, by its name and arguments" if alias.automatic else names


def document(members: object) -> str:
    """A JSON document for programs, in ASCII, since the output may have any encoding. Invalid UTF-8 is escaped."""
    text = msgspec.json.format(raw_json.encode(_encodable(members)), indent=2).decode() + "\n"
    return _NON_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def as_json(raw: bytes | None) -> object:
    """Raw JSON as a part of a document, spelled as it is. Empty: None; invalid JSON: a string."""
    if not raw:
        return None
    try:
        return msgspec.Raw(normalize.normalize(raw))
    except ValueError:
        return raw.decode(errors="backslashreplace")


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
