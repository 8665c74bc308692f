"""Remove secrets from what is recorded. It works on decoded values, so that no escape hides a secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from . import normalize, raw_json

MARK: Final = "[redacted]"
"""It replaces a secret."""

MAX_SEARCHED: Final = 64 * 1024
"""Characters of the longest text that is searched: a pattern may take quadratic time. Longer texts are removed."""


class Redaction(msgspec.Struct, frozen=True):
    """What is secret: text that a pattern finds, and the values of members with these names."""

    patterns: tuple[re.Pattern[str], ...]
    keys: frozenset[str]
    """Names as `normalized_key` returns them."""

    def json(self, raw: bytes) -> bytes:
        """Remove the secrets from a JSON value. A value that cannot be read is removed: it might hold a secret."""
        try:
            return raw_json.encode(self._value(normalize.decode(raw)))
        except (ValueError, RecursionError):
            return raw_json.encode(MARK)

    def text(self, text: str) -> str:
        """Remove the secrets from a text. A text that is JSON is read as JSON, because of the names of its members."""
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
            return text  # it is not JSON

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Raw):  # a number as spelled
            return value if self.text(number := bytes(value).decode()) == number else MARK
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not isinstance(value, dict):
            return value
        redacted: dict[str, object] = {}
        for key, item in value.items():
            name = self.text(key)
            while name in redacted:  # both names were secrets: keep both members
                name += "'"
            redacted[name] = MARK if normalized_key(key) in self.keys else self._value(item)
        return redacted


def of(patterns: Sequence[str], keys: Sequence[str]) -> Redaction | None:
    """Return what the configuration calls secret; None: nothing. Raises ValueError as `pattern` does."""
    if not patterns and not keys:
        return None
    return Redaction(tuple(map(pattern, patterns)), frozenset(map(normalized_key, keys)))


def pattern(text: str) -> re.Pattern[str]:
    """Compile a Python regular expression. Raises ValueError with the problem in a few words."""
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"not a regular expression: {problem}") from None
    if compiled.search(""):
        raise ValueError("it matches the empty text, and therefore every text")
    return compiled


def normalized_key(key: str) -> str:
    """Return a member's name for comparison: `api_key`, `apiKey` and `API-Key` are equal."""
    return "".join(filter(str.isalnum, key.casefold())) or key
