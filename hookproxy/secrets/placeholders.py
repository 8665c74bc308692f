"""What stands in the place of a secret, and which value it stands for: `{{secret:RULE:TAG}}`.

How it works. The tag is the beginning of a keyed digest (HMAC-SHA-256 with the session's key) of the rule and the
value: the same value has the same placeholder within a session, another one under another key, and whoever has no key
learns nothing from it, not even by trying values. Eight digits are shown, and more where two values would share them,
so that one placeholder never stands for two values.

A placeholder is only a text, and servers write texts: one that this session has not made stands for nothing and stays a
text. What a session has made can be written by any server that has seen it, so this table does not say who may have a
value: the rule that restores it does.

At most `MAX_VALUES` values of together `MAX_BYTES` bytes are kept. The one that was unused for longest is forgotten
first: its placeholder stays a text from then on (fails closed), and the secret is masked again wherever it is found.

It does no I/O, and no value is in a `repr`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

MAX_VALUES: Final = 10_000
"""A session that works all day meets some hundreds; those of a hostile server cost at most this many entries."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of all values that are kept: private keys have 4 kB, tokens 200 bytes."""

_SHOWN: Final = 8
"""Digits of a tag. A server that writes placeholders at random must write a billion to meet one."""

_RULE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
PLACEHOLDER: Final = re.compile(r"\{\{secret:([A-Za-z0-9][A-Za-z0-9_.-]{0,63}):([0-9a-f]{8,64})\}\}")
"""What looks like a placeholder."""


def is_rule_id(text: str) -> bool:
    """True for what may be the id of a rule, a detector or a value."""
    return _RULE.fullmatch(text) is not None


class Restored(Struct, frozen=True):
    """What a placeholder of this session stands for."""

    rule: str
    value: bytes

    def __repr__(self) -> str:
        return f"Restored(rule={self.rule!r}, value=…)"


class Placeholders:
    """The placeholders of one session."""

    def __init__(self, key: bytes, *, max_values: int = MAX_VALUES, max_bytes: int = MAX_BYTES) -> None:
        """`key` is random, at least 16 bytes, and secret. Raises ValueError for a shorter one."""
        if len(key) < 16:
            raise ValueError("the key of placeholders has at least 16 bytes")
        self._key = key
        self._max_values = max_values
        self._max_bytes = max_bytes
        self._size = 0
        self._tags: dict[tuple[str, bytes], str] = {}
        self._restored: dict[str, Restored] = {}
        """By placeholder; the one that was unused for longest is the first."""

    def __len__(self) -> int:
        return len(self._restored)

    def __repr__(self) -> str:
        return f"Placeholders({len(self)} values)"

    def for_value(self, rule: str, value: bytes) -> str:
        """The placeholder of what this rule has found; `value` is the text that it replaces.

        Raises ValueError if `rule` is not an id (`is_rule_id`).
        """
        known = self._tags.get((rule, value))
        if known is not None:
            self._use(known)
            return known
        if not is_rule_id(rule):
            raise ValueError(f"{rule!r} is not an id of a rule")
        placeholder = next(text for text in self._candidates(rule, value) if text not in self._restored)
        self._keep(placeholder, rule, value)
        return placeholder

    def _keep(self, placeholder: str, rule: str, value: bytes) -> None:
        self._tags[rule, value] = placeholder
        self._restored[placeholder] = Restored(rule, value)
        self._size += len(value)
        while len(self._restored) > self._max_values or (self._size > self._max_bytes and self._restored):
            self._forget()

    def value_of(self, placeholder: str) -> Restored | None:
        """What the placeholder stands for; None: this session has not made it, or has forgotten it."""
        restored = self._restored.get(placeholder)
        if restored is not None:
            self._use(placeholder)
        return restored

    def adopt(self, placeholder: str, value: bytes) -> None:
        """Let a placeholder that another run of the session has made stand for its value here, too.

        The value has this placeholder from now on, unless it has one already, or the placeholder stands for another.
        """
        match = PLACEHOLDER.fullmatch(placeholder)
        if match is not None and placeholder not in self._restored and (match[1], value) not in self._tags:
            self._keep(placeholder, match[1], value)

    def _candidates(self, rule: str, value: bytes) -> Iterator[str]:
        """From the shortest tag on. No two values are known that share a whole digest."""
        digits = hmac.new(self._key, rule.encode() + b"\0" + value, hashlib.sha256).hexdigest()
        for length in range(_SHOWN, len(digits) + 1):
            yield f"{{{{secret:{rule}:{digits[:length]}}}}}"

    def _use(self, placeholder: str) -> None:
        self._restored[placeholder] = self._restored.pop(placeholder)

    def _forget(self) -> None:
        placeholder = next(iter(self._restored))
        restored = self._restored.pop(placeholder)
        del self._tags[restored.rule, restored.value]
        self._size -= len(restored.value)
