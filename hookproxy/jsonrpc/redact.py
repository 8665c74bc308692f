"""Remove secrets from what is recorded. It works on decoded values, so that no escape hides a secret."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from . import normalize, raw_json
from .known_secrets import MARK, MAX_SEARCHED, NO_SECRETS, KnownSecrets

SHORTEST: Final = 4
"""Characters of the shortest value of a secret member that is removed wherever it occurs."""

_MOST_VALUES: Final = 300  # secret values, each in up to three spellings


class Redaction(msgspec.Struct, frozen=True):
    """What is secret: text that a pattern finds, and the values of members with these names."""

    patterns: tuple[re.Pattern[str], ...]
    keys: frozenset[str]
    """Names as `normalized_key` returns them."""
    values: tuple[str, ...] = ()
    """Texts that are secret wherever they occur, the longest first."""
    secrets: KnownSecrets = NO_SECRETS
    """What is removed however it is encoded."""

    def with_values_of(self, documents: Iterable[bytes | bytearray]) -> Redaction:
        """The same, and values of secret members of these documents are secret everywhere (from SHORTEST on)."""
        if not self.keys:
            return self
        values: set[str] = set()
        for document in documents:
            with contextlib.suppress(ValueError, RecursionError):  # it is not JSON, so it has no members
                self._collect(normalize.decode(bytes(document)), values, secret=False)
        spellings = {text for value in values for text in (value, _in_json(value), json.dumps(value)[1:-1])}
        return replace(self, values=tuple(sorted(spellings, key=lambda text: (-len(text), text))))

    def _collect(self, value: object, found: set[str], *, secret: bool) -> None:
        """Add the texts and numbers in a value; unless it is `secret` itself, only those of its secret members."""
        if isinstance(value, list):
            for item in value:
                self._collect(item, found, secret=secret)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._collect(item, found, secret=secret or normalized_key(key) in self.keys)
        elif isinstance(value, str) and not secret and value.lstrip()[:1] in ("{", "["):
            with contextlib.suppress(ValueError, RecursionError):  # it is not JSON
                self._collect(normalize.decode(value.encode()), found, secret=False)
        elif secret and isinstance(value, str | msgspec.Raw):
            text = value if isinstance(value, str) else bytes(value).decode()
            if len(text) >= SHORTEST:
                found.add(text)

    def known_values(self, text: str) -> str:
        """Remove the secret values from a text, and nothing else."""
        if len(self.values) > _MOST_VALUES:  # each costs a search, and the agent chooses how many there are
            return MARK
        for value in self.values:
            text = text.replace(value, MARK)
        return text

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
        text = self.secrets.removed_from(text)
        return self.known_values(text) if self.values else text

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


def of(patterns: Sequence[str], keys: Sequence[str], secrets: Sequence[str] = ()) -> Redaction | None:
    """Return what the configuration calls secret, and secret values; None: nothing. Raises ValueError as `pattern`."""
    if not patterns and not keys and not secrets:
        return None
    known = KnownSecrets(secrets, whole=True)
    return Redaction(tuple(map(pattern, patterns)), frozenset(map(normalized_key, keys)), secrets=known)


def pattern(text: str) -> re.Pattern[str]:
    """Compile a Python regular expression. Raises ValueError with the problem in a few words."""
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"not a regular expression: {problem}") from None
    if compiled.search(""):
        raise ValueError("it matches the empty text, and therefore every text")
    return compiled


def _in_json(text: str) -> str:
    return raw_json.encode(text.encode(errors="replace").decode()).decode()[1:-1]


def normalized_key(key: str) -> str:
    """Return a member's name for comparison: `api_key`, `apiKey` and `API-Key` are equal."""
    return "".join(filter(str.isalnum, key.casefold())) or key
