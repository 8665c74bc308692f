"""Text in which each character can be seen: what an agent, a server or a hook wrote hides nothing."""

from __future__ import annotations

import contextlib
import re
from typing import Final

import msgspec
from rich.cells import cell_len, chop_cells

from ..jsonrpc import normalize
from ..model.errors import printable

INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Unicode counts as printable, and that no font shows: fillers and selectors of variants."""


def visible(text: str) -> str:
    """The text with an escape for each character that fonts do not show or terminals act on. Line feeds stay."""
    if text.isascii() and text.isprintable():  # nearly all texts
        return text
    return "\n".join(INVISIBLE.sub(_escape, printable(line)) for line in text.split("\n"))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def lines(text: str, width: int) -> list[str]:
    """The visible text in lines of at most so many columns: long lines go on in the next one."""
    return [piece for line in visible(text).split("\n") for piece in _pieces(line, max(width, 2))]


def _pieces(line: str, width: int) -> list[str]:
    if line.isascii():
        return [line[at : at + width] for at in range(0, len(line), width)] or [""]
    return [line] if cell_len(line) <= width else chop_cells(line, width)


def pretty(raw: bytes | str | msgspec.Raw) -> str:
    """JSON over many lines, with numbers as they are spelled and no needless escapes; other text as it is."""
    text = raw.encode(errors="surrogatepass") if isinstance(raw, str) else bytes(raw)
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):  # other text is shown as it is
        text = msgspec.json.format(normalize.normalize(text, lenient=True), indent=2) if text else b""
    return text.decode(errors="backslashreplace")


def editable(raw: bytes | msgspec.Raw) -> str:
    """JSON over many lines for a field in which a person changes it: characters that fonts do not show are escaped."""
    return "".join(map(_json_escape, pretty(raw)))


def _json_escape(character: str) -> str:
    if character == "\n" or (character.isprintable() and INVISIBLE.match(character) is None):
        return character
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
