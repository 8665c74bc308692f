"""Regular expressions in time linear in the text, whatever the pattern: RE2. The only module that imports the package.

All patterns and texts are bytes, and a byte is a character: a text need not be UTF-8, and offsets are those of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Final, Protocol, cast

from ..model.errors import not_installed

_MEMORY: Final = 8 * 1024 * 1024
"""Bytes of the states of one pattern, made while texts are read, and made anew once there are too many."""

_MEMORY_OF_SET: Final = 64 * 1024 * 1024
"""Bytes of the states of a set of patterns: more, as a set reads every text, and making states anew takes time."""


class Match(Protocol):
    """As the class of this name in `re`."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Where the group is; (-1, -1) if it takes no part."""

    def start(self, group: int = 0, /) -> int:
        """Where it begins."""

    def end(self, group: int = 0, /) -> int:
        """Where it ends."""


class Pattern(Protocol):
    """As the class of this name in `re`."""

    @property
    def groups(self) -> int:
        """How many groups it has."""

    def search(self, text: bytes, pos: int | None = None, endpos: int | None = None, /) -> Match | None:
        """The first match."""

    def fullmatch(self, text: bytes, /) -> Match | None:
        """A match of all of the text."""

    def finditer(self, text: bytes, pos: int | None = None, endpos: int | None = None, /) -> Iterator[Match]:
        """All matches that do not overlap."""


class _Set(Protocol):
    def Add(self, pattern: bytes, /) -> int: ...
    def Compile(self) -> None: ...
    def Match(self, text: bytes, /) -> list[int] | None: ...


class _Sets(Protocol):
    def SearchSet(self, options: object, /) -> _Set: ...


class _Encoding(Protocol):
    @property
    def LATIN1(self) -> object: ...


class _Options(Protocol):
    encoding: object
    max_mem: int
    log_errors: bool
    never_capture: bool

    @property
    def Encoding(self) -> _Encoding: ...


class _Package(Protocol):
    """What is used of the package, which has no types."""

    @property
    def Options(self) -> Callable[[], _Options]: ...

    @property
    def Set(self) -> _Sets: ...

    @property
    def error(self) -> type[Exception]: ...

    def compile(self, pattern: bytes, options: object, /) -> Pattern: ...
    def escape(self, text: bytes, /) -> bytes: ...


class PatternError(ValueError):
    """A pattern that cannot be used; the text says why."""


class PatternSet:
    """Which of many patterns match a text, in one pass over it."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        """Raises PatternError."""
        engine = _engine()
        self._set = engine.Set.SearchSet(_options(capture=False))
        self._size = len(patterns)
        for number, pattern in enumerate(patterns):
            try:
                self._set.Add(pattern)
            except engine.error:
                raise PatternError(f"pattern {number} cannot be compiled") from None
        self._set.Add(b"")  # it always matches: where it does not, the engine had no memory
        try:
            self._set.Compile()
        except engine.error:
            raise PatternError("all patterns together are too large") from None

    def matching(self, text: bytes) -> Sequence[int]:
        """The numbers of the patterns that match somewhere; all of them if the engine cannot say (fails closed)."""
        numbers = self._set.Match(text)
        if numbers == [self._size]:
            return ()
        if not numbers:
            return range(self._size)
        return sorted(number for number in numbers if number < self._size)


def check_installed() -> None:
    """Raise UserError if the package is missing."""
    _engine()


def compiled(pattern: bytes) -> Pattern:
    """The pattern. Raises PatternError, whose text says what is wrong, and UserError if the package is missing."""
    engine = _engine()
    try:
        return engine.compile(pattern, _options(capture=True))
    except engine.error as error:
        reason: object = error.args[0] if error.args else b""
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None


def quoted(text: bytes) -> bytes:
    """A pattern that matches this text only."""
    return _engine().escape(text)


@cache
def _engine() -> _Package:
    try:
        return cast("_Package", import_module("re2"))
    except ModuleNotFoundError:
        raise not_installed("[secrets]", "google-re2", "secrets") from None


@cache
def _options(*, capture: bool) -> object:
    options = _engine().Options()
    options.encoding = options.Encoding.LATIN1
    options.max_mem = _MEMORY if capture else _MEMORY_OF_SET
    options.log_errors = False  # it would print patterns, and so values
    options.never_capture = not capture
    return options
