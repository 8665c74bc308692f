"""Permission rules about paths as agents' settings files have them: patterns of gitignore that start from a folder.

If a call cannot be judged, deny and ask rules apply to it, and allow rules do not (law 3). Links are not followed, so
such a rule is not a sandbox. A server may ignore the case of paths: deny and ask rules ignore it, allow rules do not.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.late_pattern import late_pattern
from .matchers import folded, names_nothing_else, unquoted

_LONGEST_PATH: Final = 4096  # characters: no system has a longer one

_UNKNOWN_FOLDER: Final = late_pattern(r"\s*(?:\$|%|~[^/])")
"""The beginning of a path in a folder that only the server knows: a variable, or the home folder of somebody else."""

_WORD: Final = late_pattern(r"[a-z0-9]+")
_SHORT: Final = 1024  # characters: together with a folder it is no longer than a path may be

_OTHER_ARGUMENTS: Final = frozenset({
    "content", "old_string", "new_string", "edits", "replace_all", "offset", "limit",
})  # fmt: skip
"""The arguments of Claude Code's tools for files that are not paths: an allow rule does not judge them."""


class PathPattern(Struct, frozen=True):
    """A pattern of gitignore, compiled segment by segment: `None` stands for `**`."""

    bases: tuple[tuple[str, ...], ...]
    """The segments of the folder that it starts from, as it is written and without links."""
    segments: tuple[re.Pattern[str] | None, ...]
    folders: tuple[str, ...]
    """The folders that a relative path of a call may start from."""
    home: str
    fold: bool
    """It ignores the case of paths."""
    word: str = ""
    """What every path that matches has in itself, however its case is, unless it is decoded first; empty: not known."""

    @staticmethod
    def of(bases: Sequence[str], pattern: str, folders: Sequence[str], home: str, *, fold: bool) -> PathPattern:
        """Compile a pattern that starts from a folder, such as `src/**/*.ts`; a single name is for any depth."""
        names: list[str] = []
        for name in pattern.split("/"):
            if name == ".." and names:
                del names[-1]
            elif name == "..":
                bases = [posixpath.dirname(base) for base in bases]
            elif name not in ("", "."):
                names.append(name)
        if len(names) == 1 and not pattern.startswith(("/", "./", "../")):
            names.insert(0, "**")
        while fold and names[-1:] == ["**"]:
            del names[-1]  # the folder itself, too: a tool may list it
        segments = tuple(None if name == "**" else _segment(name, fold) for name in names)
        starts = tuple(dict.fromkeys(_names(_folded(base, fold)) for base in bases))
        return PathPattern(starts, segments, tuple(folders), home, fold, _word(names, (*folders, home)))

    def may_match(self, text: str) -> bool:
        """True if a text may be a path that the pattern is about, however it is spelled."""
        if not self.may_be_near(text):
            return False
        if "\0" in text or _UNKNOWN_FOLDER.match(text):  # only the server knows what it reads
            return True
        return any(
            len(path) > _LONGEST_PATH or self._matches(path)
            for spelled in {text, text.replace("\\", "/")}
            for path in self._absolute(_file_path(spelled.strip()))
        )

    def may_be_near(self, text: str) -> bool:
        """False if a text is certainly not such a path, because it does not have the pattern's word: nearly all."""
        has_word = self.word in folded(text) or len(text) > _SHORT
        return has_word or "%" in text or "\0" in text or _UNKNOWN_FOLDER.match(text) is not None

    def must_match(self, text: str) -> bool:
        """True if a text certainly is a path that the pattern is about."""
        if len(text) > _LONGEST_PATH or text != text.strip() or "\\" in text or "\0" in text or "%" in text:
            return False
        return ".." not in text.split("/") and ":" not in text and all(map(self._matches, self._absolute(text)))

    def _absolute(self, path: str) -> list[str]:
        """The absolute paths that a text may mean."""
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        folders = ["/"] if path.startswith("/") else self.folders
        return [re.sub("^//", "/", posixpath.normpath(posixpath.join(folder, path))) for folder in folders]

    def _matches(self, path: str) -> bool:
        """Whether the pattern matches the path, or a folder that it is in."""
        names = _names(_folded(path, self.fold))
        return any(names[: len(base)] == base and self._matches_below(names[len(base) :]) for base in self.bases)

    def _matches_below(self, names: Sequence[str]) -> bool:
        last = len(self.segments)
        states = self._reached({0})
        for name in names:
            if last in states:
                return True
            following = set[int]()
            for state in states:
                segment = self.segments[state]
                if segment is None:
                    following.add(state)
                elif segment.fullmatch(name):
                    following.add(state + 1)
            states = self._reached(following)
        return last in states and self.segments[-1:] != (None,)

    def _reached(self, states: set[int]) -> set[int]:
        """The states with those that follow without a name, because `**` stands for nothing as well."""
        reached = set(states)
        for state in sorted(states):
            while state < len(self.segments) and self.segments[state] is None:
                state += 1
                reached.add(state)
        return reached


def allows(pattern: PathPattern, judged: str, arguments: bytes) -> bool:
    """True if the path in the argument `judged` matches, and no other argument may be a path. Never raises."""
    try:
        members = {key: bytes(raw) for key, raw in raw_json.fields(arguments).items()}
    except ValueError:
        return False
    path = raw_json.text(members.pop(judged, b""))
    others = [raw for name, raw in members.items() if name not in _OTHER_ARGUMENTS or not names_nothing_else(raw)]
    return path is not None and pattern.must_match(path) and not any(raw[:1] in (b'"', b"[", b"{") for raw in others)


def _word(names: Sequence[str], folders: Sequence[str]) -> str:
    """The longest word of a pattern, as `folded` has it; empty if a path may match without having it in itself."""
    pattern = folded("/".join(names))
    word = max(_WORD.findall(pattern), key=len, default="")
    return "" if "[" in pattern or any(word in folded(folder) for folder in folders) else word


def _segment(name: str, fold: bool) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(_folded(name, fold).replace("[^", "[!").replace("**", "*")))


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


def _folded(text: str, fold: bool) -> str:
    return folded(text) if fold else text


def _file_path(text: str) -> str:
    """The path of a `file:` address; any other text as it is."""
    if text[:5].casefold() != "file:":
        return text
    return re.sub("^/+", "/", unquoted(text[5:]))
