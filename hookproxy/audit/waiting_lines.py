"""Lines of the audit that are not in its file yet: a full disk fills no memory, and no loss is silent (law 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..model.counts import counted

if TYPE_CHECKING:
    from .append_file import AppendFile

_LIMIT: Final = 1024 * 1024  # bytes


class WaitingLines:
    """The lines in their order. What comes when too many wait is lost; how many that were is a line of its own."""

    def __init__(self, note: Callable[[str], bytes]) -> None:
        """`note` makes a line about the audit itself."""
        self._note = note
        self._lines: list[bytes] = []
        self._size = 0  # bytes in `_lines`
        self._lost = 0
        self._rotation_failed = False  # a note about it is among the lines, or in the file

    def __bool__(self) -> bool:
        return bool(self._lines)

    def keep(self, line: bytes) -> None:
        """Keep the line until it is written."""
        if self._size + len(line) > _LIMIT and self._lines:
            self._lost += 1
        else:
            self._lines.append(line)
            self._size += len(line)

    def write_to(self, file: AppendFile) -> None:
        """Write all lines, none in two writes, so that lines of several writers do not mix. Raises OSError."""
        while self._lines:
            written = file.append_some(self._lines)
            self._size -= sum(map(len, self._lines[:written]))
            del self._lines[:written]
            if not self._lines and (self._lost or file.rotation_error or self._rotation_failed):
                self._add_notes(file)

    def _add_notes(self, file: AppendFile) -> None:
        """Notes about the audit itself, each once: lost lines, and a file that cannot be rotated."""
        texts = [f"{counted(self._lost, 'line')} lost"] if self._lost else []
        if file.rotation_error and not self._rotation_failed:
            texts.append(f"the file is over its limit: {file.rotation_error}")
        self._lost, self._rotation_failed, file.rotation_error = 0, bool(file.rotation_error), ""
        self._lines = [self._note(text) for text in texts]
        self._size = sum(map(len, self._lines))
