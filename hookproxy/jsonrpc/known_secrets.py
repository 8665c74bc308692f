"""Removes secrets whose values are known from texts for people and agents: whole, in parts, and in other spellings.

A text that quotes a secret often has not all of it: whoever wrote it has cut it, or split it over two lines. So what is
looked for is each run of `PART` characters of a secret, in each of its spellings: as it is, percent-encoded, escaped
as in JSON, in base64 and in hexadecimal. Where several runs overlap, they are one.

Law: a text is cleaned before it is cut (`shortened`): the beginning of a secret at the end of a text is a secret, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

MARK: Final = "[redacted]"
"""It replaces a secret."""

MAX_SEARCHED: Final = 64 * 1024
"""Characters of the longest text that is searched, which takes 6 ms. Longer texts are removed."""

PART: Final = 8
"""Characters of the shortest part that is removed, and of the shortest secret: shorter ones are in ordinary texts."""

_LONG: Final = 4096  # characters of a secret: base64 and hexadecimal of 64 KiB would take 20 MB


class KnownSecrets:
    """What must not be in a text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {text for secret in secrets for text in _spellings(secret)}
        self._parts = frozenset(text[at : at + PART] for text in found for at in range(len(text) - PART + 1))

    def removed_from(self, text: str) -> str:
        """The text with a mark in the place of each secret, and of each part of one."""
        parts = self._parts
        if not parts or len(text) < PART:
            return text
        if len(text) > MAX_SEARCHED:
            return f"[redacted: {len(text)} characters, too many to be searched]"
        pieces: list[str] = []
        kept = hidden = 0  # the text is kept from the first on; what lies before the second is hidden
        for at in range(len(text) - PART + 1):
            if text[at : at + PART] in parts:
                if at > hidden or not pieces:
                    pieces += (text[kept:at], MARK)
                kept = hidden = at + PART
        return "".join((*pieces, text[kept:])) if pieces else text

    def shortened(self, text: str, longest: int) -> str:
        """The first characters of the text, at most so many, without secrets."""
        if not self._parts:
            return text[:longest]
        searched = text[: longest + 2 * PART]
        cleaned = self.removed_from(searched)
        if len(searched) < len(text):  # a part at its end may be too short to be found
            cleaned = cleaned[: 1 - PART]
        return cleaned[:longest]

    def removed_from_bytes(self, data: bytes) -> bytes:
        """As `removed_from` for text that may not be UTF-8."""
        if not self._parts:
            return data
        return self.removed_from(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


NO_SECRETS: Final = KnownSecrets(())


@lru_cache(maxsize=64)  # servers with credentials; each session of one needs the same
def _known(secrets: frozenset[str]) -> KnownSecrets:
    return KnownSecrets(secrets)


def known_secrets(secrets: Iterable[str]) -> KnownSecrets:
    """What removes these secrets."""
    return _known(frozenset(secrets))


def spellings(secret: str) -> set[str]:
    """How a text may quote a secret. A secret of several lines is quoted line by line, too."""
    return set(_spellings(secret))


def _spellings(secret: str) -> Iterator[str]:
    for text in {secret, *secret.splitlines()}:
        if len(text) >= PART:
            yield from _spellings_of_line(text)


def _spellings_of_line(text: str) -> Iterator[str]:
    import base64
    import json
    from urllib.parse import quote

    yield text
    data = text.encode(errors="surrogateescape")
    for safe in ("", "/", ":/?#[]@!$&'+,;=*()"):
        percent = quote(data, safe=safe)
        yield percent
        yield percent.replace("%20", "+")
        yield _with_small_digits(percent, "%", 2)
    escaped = json.dumps(text)[1:-1]
    for one in (escaped, json.dumps(text, ensure_ascii=False)[1:-1]):
        yield one
        yield one.replace("/", "\\/")
    yield _with_large_digits(escaped)
    if len(text) <= _LONG:
        for before in range(3):  # bytes before it in what is encoded, such as the name of a user
            whole = base64.b64encode(b"\0" * before + data).rstrip(b"=").decode()
            inner = whole[(0, 2, 3)[before] : len(whole) - (1 if (before + len(data)) % 3 else 0)]
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
        yield data.hex()
        yield data.hex().upper()


def _with_small_digits(text: str, mark: str, digits: int) -> str:
    first, *others = text.split(mark)
    return first + "".join(mark + other[:digits].lower() + other[digits:] for other in others)


def _with_large_digits(text: str) -> str:
    first, *others = text.split("\\u")
    return first + "".join("\\u" + other[:4].upper() + other[4:] for other in others)
