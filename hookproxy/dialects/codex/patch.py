"""Reads a patch of Codex's `apply_patch` into the writes and edits of files that it consists of.

Law 1: a patch that cannot be read completely is an error, so that no hook judges only a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_ADD: Final = "*** Add File: "
_UPDATE: Final = "*** Update File: "
_DELETE: Final = "*** Delete File: "
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"


class FileChange(Struct, frozen=True):
    """What a patch does to one file, as a call of one of Claude Code's tools."""

    tool: str
    """Write, Edit or MultiEdit."""
    arguments: dict[str, object]


def changes(text: str) -> list[FileChange]:
    """The changes of a patch, in its order, at least one. Raises ValueError."""
    lines = text.strip().split("\n")
    if lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        raise ValueError("the patch does not begin and end as Codex's patches do")
    found = [change for section in _sections(lines[1:-1]) for change in _of_section(section)]
    if not found:
        raise ValueError("the patch changes no file")
    return found


def _sections(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines about each file, the one with its name first."""
    section: list[str] = []
    for line in lines:
        if line.startswith((_ADD, _UPDATE, _DELETE)):
            if section:
                yield section
            section = [line]
        elif section:
            section.append(line)
        elif line.strip():
            raise ValueError(f"the patch has a line outside of its files: {line[:80]!r}")
    if section:
        yield section


def _of_section(section: Sequence[str]) -> Iterator[FileChange]:
    head, body = section[0], section[1:]
    path = head.partition(": ")[2].strip()
    if head.startswith(_ADD):
        yield _write(path, [_added(line) for line in body])
    elif head.startswith(_DELETE):
        if any(line.strip() for line in body):
            raise ValueError("the patch has lines after the name of a file that it deletes")
        yield _write(path, [])
    else:
        moved = body[0].removeprefix(_MOVE).strip() if body and body[0].startswith(_MOVE) else ""
        edits = list(_edits(body[1:] if moved else body))
        if edits or not moved:
            yield _edit(path, edits)
        if moved:  # the old file goes, and a new one is written
            yield _write(path, [])
            yield _write(moved, [str(edit["new_string"]) for edit in edits])


def _added(line: str) -> str:
    if not line.startswith("+"):
        raise ValueError(f"the patch has a line of a new file that does not begin with +: {line[:80]!r}")
    return line[1:]


def _write(path: str, lines: Sequence[str]) -> FileChange:
    return FileChange("Write", {"file_path": path, "content": "".join(f"{line}\n" for line in lines)})


def _edit(path: str, edits: Sequence[dict[str, object]]) -> FileChange:
    if len(edits) == 1:
        return FileChange("Edit", {"file_path": path, **edits[0]})
    return FileChange("MultiEdit", {"file_path": path, "edits": list(edits)})


def _edits(lines: Sequence[str]) -> Iterator[dict[str, object]]:
    """The edit of each hunk: its lines before and after."""
    old: list[str] = []
    new: list[str] = []
    for line in (*lines, "@@"):
        if line.startswith("@@"):
            if old or new:
                yield {"old_string": "\n".join(old), "new_string": "\n".join(new)}
            old, new = [], []
        elif line.strip() != _END_OF_FILE:
            before, after = _sides(line)
            old += [line[1:]] if before else []
            new += [line[1:]] if after else []


def _sides(line: str) -> tuple[bool, bool]:
    """Whether a line of a hunk is in the file before the change, and after it. Raises ValueError."""
    if line.startswith(("-", "+")):
        return line[0] == "-", line[0] == "+"
    # Codex may take an indented marker for the name of another file; some editors remove the blank of an empty line
    if line[:1] not in (" ", "") or line.lstrip().startswith("*** "):
        raise ValueError(f"the patch has a line that is not part of a change: {line[:80]!r}")
    return True, True
