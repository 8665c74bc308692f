"""Read, Glob and Grep for the model of a hook of type `agent`: a program of its own, which is started for each call.

It reads `{"root", "tool", "input"}` on standard input and prints a text. Law: nothing outside of the root is opened. No
link is followed, on no level: each folder on the way is opened from the one above it. Names that begin with a dot are
left out: `.env`, `.git` and the like hold secrets. It imports nothing of hookproxy, so that it starts at once.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator

_MOST_CHARACTERS = 50_000  # of an answer: a model reads some of them in its 50 turns
_MOST_LINES = 2000  # of a file at once
_LONGEST_LINE = 500  # characters of a line that is shown
_MOST_MATCHES = 200
_MOST_FILES = 20_000  # that are looked at: a search ends some time
_LARGEST_FILE = 2_000_000  # bytes of a file that is read or searched


class Refused(Exception):
    """What the model asks for is not there, or not for it; the text says why."""


def main() -> None:
    """Answer one call."""
    request = json.load(sys.stdin)
    try:
        text = answer(request["root"], request["tool"], request["input"])
    except (Refused, re.error) as error:
        text = f"error: {error}"
    except OSError as error:
        text = f"error: {error.strerror}"
    sys.stdout.buffer.write(text[:_MOST_CHARACTERS].encode(errors="replace"))


def answer(root: str, tool: str, given: dict[str, object]) -> str:
    """The text of a call. Raises Refused, re.error and OSError."""
    real = os.path.realpath(root) if os.path.isabs(root) else ""
    home = os.path.realpath(os.path.expanduser("~"))
    if not real or home == real or home.startswith(f"{real.rstrip('/')}/"):
        raise Refused("the agent works in no project, so no files can be read")
    top = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if tool == "Read":
            parts = _parts(_text(given, "file_path"), root, real)
            return _numbered(_read_file(top, parts), _number(given, "offset", 1), _number(given, "limit", _MOST_LINES))
        if tool == "Glob":
            names = (name for name, _folder, _leaf in _files(top) if _fits(name, _text(given, "pattern")))
            return _lines(names, "no file matches")
        return _lines(_matches(top, given, root, real), "nothing matches")
    finally:
        os.close(top)


def _text(given: dict[str, object], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise Refused(f"{name} must be a text")
    return value


def _number(given: dict[str, object], name: str, default: int) -> int:
    value = given.get(name, default)
    return value if isinstance(value, int) and value > 0 else default


def _parts(path: str, *roots: str) -> list[str]:
    """The names on the way to a path below the root. Raises Refused."""
    if not path or "\0" in path:
        raise Refused("no file is named")
    if os.path.isabs(path):
        below = [path[len(root) :] for root in roots if path == root or path.startswith(f"{root.rstrip('/')}/")]
        if not below:
            raise Refused("it is outside of the project")
        path = below[0]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused("it is outside of the project")
    if any(part.startswith(".") for part in parts):
        raise Refused("names that begin with a dot are not read")
    return parts


def _open(top: int, parts: list[str], flags: int) -> int:
    """A descriptor of what lies there, through folders that are none of them a link. Raises OSError."""
    folder = os.dup(top)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        name = parts[-1] if parts else "."
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def _content(descriptor: int) -> bytes:
    """What is in an open file, which is closed then. Raises Refused and OSError."""
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise Refused("it is not a file")
        if state.st_size > _LARGEST_FILE:
            raise Refused(f"it has more than {_LARGEST_FILE} bytes")
        return file.read(_LARGEST_FILE)


def _read_file(top: int, parts: list[str]) -> bytes:
    return _content(_open(top, parts, os.O_RDONLY))


def _numbered(content: bytes, first: int, most: int) -> str:
    if b"\0" in content:
        raise Refused("it is not a text file")
    lines = content.decode(errors="replace").splitlines()[first - 1 : first - 1 + min(most, _MOST_LINES)]
    return "\n".join(f"{number}\t{line[:_LONGEST_LINE]}" for number, line in enumerate(lines, first)) or "(empty)"


def _files(top: int) -> Iterator[tuple[str, int, str]]:
    """Each file: its path below the root, a descriptor of its folder while it is looked at, and its name there."""
    seen = 0
    for path, folders, names, folder in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            seen += 1
            if seen > _MOST_FILES:
                return
            yield os.path.normpath(os.path.join(path, name)), folder, name


def _fits(path: str, pattern: str) -> bool:
    """Whether a path matches a glob; `**/` stands for no folder, too. One without a slash is about the name alone."""
    if "/" not in pattern:
        return fnmatch.fnmatchcase(os.path.basename(path), pattern)
    return any(fnmatch.fnmatchcase(path, form) for form in (pattern, pattern.replace("**/", "")))


def _matches(top: int, given: dict[str, object], *roots: str) -> Iterator[str]:
    expression, glob, path = re.compile(_text(given, "pattern")), _text(given, "glob"), _text(given, "path")
    below = "/".join(_parts(path, *roots)) if path else ""
    for path, folder, name in _files(top):
        if (glob and not _fits(path, glob)) or (below and path != below and not path.startswith(f"{below}/")):
            continue
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            content = _content(os.open(name, flags, dir_fd=folder))
        except (Refused, OSError):  # a link, a large file, or one that is gone: a search leaves it out
            continue
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            if expression.search(line):
                yield f"{path}:{number}:{line[:_LONGEST_LINE]}"


def _lines(lines: Iterator[str], none: str) -> str:
    """The first of these lines."""
    shown: list[str] = []
    for line in lines:
        if len(shown) == _MOST_MATCHES:
            shown.append("(there are more)")
            break
        shown.append(line)
    return "\n".join(shown) or none


if __name__ == "__main__":
    main()
