"""Takes secrets out of what is to be recorded: on values, not on their spelling, so that no escape hides one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from . import normalize, raw_json

MARK: Final = "[redacted]"
"""What stands in a secret's place."""

MAX_SEARCHED: Final = 64 * 1024
"""Characters of the longest text that is searched: a pattern's work may grow with the square. Longer ones go whole."""


class Redaction(msgspec.Struct, frozen=True):
    """What is secret: texts that a pattern finds, and values whose member has one of these names."""

    patterns: tuple[re.Pattern[str], ...]
    keys: frozenset[str]
    """As `folded` gives them."""

    def json(self, raw: bytes) -> bytes:
        """A JSON value without its secrets. What cannot be read goes whole: a secret might be in it."""
        try:
            return raw_json.encode(self._value(normalize.decode(raw)))
        except (ValueError, RecursionError):
            return raw_json.encode(MARK)

    def text(self, text: str) -> str:
        """A text without its secrets. JSON in it is read as JSON, for the names of its members."""
        if self.keys and text.lstrip()[:1] in ("{", "["):
            text = self._document(text)
        if self.patterns and len(text) > MAX_SEARCHED:
            return f"[redacted: {len(text)} characters, too many to be searched]"
        for pattern in self.patterns:
            text = pattern.sub(MARK, text)
        return text

    def _document(self, text: str) -> str:
        try:
            value = normalize.decode(text.encode())
            redacted = self._value(value)
            return text if redacted == value else raw_json.encode(redacted).decode()
        except (ValueError, RecursionError):
            return text  # no JSON: a text like any other

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Raw):  # a number, as it was spelled
            return value if self.text(number := bytes(value).decode()) == number else MARK
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not isinstance(value, dict):
            return value
        redacted: dict[str, object] = {}
        for key, item in value.items():
            name = self.text(key)
            while name in redacted:  # two names that were secrets: neither member is lost
                name += "'"
            redacted[name] = MARK if normalized_key(key) in self.keys else self._value(item)
        return redacted


def of(patterns: Sequence[str], keys: Sequence[str]) -> Redaction | None:
    """What the configuration calls secret; None: nothing. Raises ValueError as `pattern` does."""
    if not patterns and not keys:
        return None
    return Redaction(tuple(map(pattern, patterns)), frozenset(map(normalized_key, keys)))


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression of Python's. Raises ValueError with what is wrong, in a few words."""
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"no regular expression: {problem}") from None
    if compiled.search(""):
        raise ValueError("it finds something in an empty text, and would in every other")
    return compiled


def normalized_key(key: str) -> str:
    """A member's name as it is compared: `api_key`, `apiKey` and `API-Key` are one."""
    return "".join(filter(str.isalnum, key.casefold())) or key
