"""How what stands in records is shown: no text of theirs reaches a terminal raw, and every line fits its width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from ...model.errors import printable

_ELLIPSIS: Final = "…"


class Screen(msgspec.Struct, frozen=True):
    """Where something is shown."""

    width: int
    """Columns; 0: lines may be as long as they are, for nothing wraps or cuts them."""
    encoding: str
    paint: Callable[[str, str], str]
    """A text in a style, as the screen has it; the text itself where there is no colour."""

    def visible(self, text: str) -> str:
        """The text on one line, without anything that a terminal would obey: whoever calls a tool may choose it."""
        return printable(text).encode(self.encoding, "backslashreplace").decode(self.encoding)

    def drawn(self, sign: str, instead: str) -> str:
        """A sign that not every terminal has, or what stands for it there."""
        try:
            sign.encode(self.encoding)
        except UnicodeEncodeError:
            return instead
        return sign

    def fitted(self, text: str, width: int) -> str:
        """The visible text in exactly so many columns, its end left out where it has more."""
        return set_cell_size(self.cut(text, width), width)

    def cut(self, text: str, width: int) -> str:
        """The visible text in so many columns at most."""
        shown = self.visible(text)
        if cell_len(shown) <= width:
            return shown
        end = self.drawn(_ELLIPSIS, "...")
        return set_cell_size(shown, max(width - len(end), 0)).rstrip() + end


def screen() -> Screen:
    """Our standard output: its width and colours where it is a terminal, as the person wants them (NO_COLOR)."""
    console = Console(highlight=False)
    coloured = console.is_terminal and console.color_system is not None and not console.no_color

    def paint(text: str, style: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if coloured and style else text

    return Screen(console.width if console.is_terminal else 0, console.encoding, paint)
