"""Prints of what was read, by which it is found in the arguments of later calls: keyed hashes, so no text is kept.

What is found again: a whole value, a line and a token of at least eight characters, whatever its case, form of Unicode
and encoding (`spellings`), and what a result has encoded also decoded; a shorter whole value only if it is all of an
argument; the host of an address, also of a name below it; and of a token as keys have them its beginning and its end,
within other letters too. What is changed in other ways is not found: a label that must hold
whatever the model does is `by = "session"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

from ..jsonrpc import normalize
from ..jsonrpc.unicode_text import normalized
from ..secrets.mask import Masking
from ..secrets.placeholders import PLACEHOLDER
from .addresses import domains_above, hosts, is_address
from .spellings import TooMuch, spellings
from .texts import texts_of

SHORTEST: Final = 8
"""Characters: shorter pieces are in texts of any kind."""

MOST_BYTES: Final = 200_000
"""Of a result whose texts are taken apart: a longer one is carried by any text. Prose takes 30 ms, what is encoded all
over 400 ms.
"""

_TOKENS: Final = (re.compile(r"[\w.@+-]{8,}"), re.compile(r"\w{8,}"), re.compile(r"[^\W_]{8,}"))
_AROUND: Final = "\"'`()[]{}<>,;:.!?*_-=+|/\\#"
_RUN: Final = _TOKENS[-1]
_SHORTEST_KEY: Final = 16  # letters and digits in a row: random ones, as words and dates are shorter
_KEY_END: Final = 8
_UNSEEN: Final = re.compile(
    "[\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f"
    "\\u2800\\ufe00-\\ufe0f\\ufeff\\ufff9-\\ufffb\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
"""Characters that are not seen, and could stand within a word."""
_PLACEHOLDER: Final = re.compile(PLACEHOLDER.pattern.encode())
"""Some tools may have the value that it stands for (`[[secrets.restore]]`), so it is one as well."""
_SHORT: Final = "\0"
"""Before a short value, which is no piece of a text."""


def prints_of_output(output: bytes, key: bytes) -> frozenset[int] | None:
    """The prints of all that is read in a result, a JSON value; None: it is too long, or cannot be read."""
    if len(output) > MOST_BYTES:
        return None
    try:
        read = texts_of(output)
    except (ValueError, RecursionError):
        return None
    try:
        texts = {way for text in {*read.texts, *_long(read.names)} for way in spellings(text, rounds=1)}
    except TooMuch:
        return None
    return _hashed({piece for text in texts for piece in _pieces(_folded(text))}, key)


def has_secret(output: bytes) -> bool:
    """True if something in a result looks like a secret, or if it cannot be read."""
    try:
        normal = normalize.normalize(output)  # no word is hidden by escapes
    except (ValueError, RecursionError):
        return True
    return _without_secrets(normal) is not normal


def prints_of_secrets(output: bytes, key: bytes) -> frozenset[int] | None:
    """The prints of what looks like a secret in a result; None: as in `prints_of_output`."""
    try:
        normal = normalize.normalize(output)
    except (ValueError, RecursionError):
        return None
    everything, others = prints_of_output(normal, key), prints_of_output(_without_secrets(normal), key)
    return None if everything is None or others is None else everything - others


def _without_secrets(output: bytes) -> bytes:
    """The output without what looks like a secret, and without placeholders of secrets; itself if it has none."""
    shown = _PLACEHOLDER.sub(b"", output) if b"{{secret:" in output else output
    return Masking().json(shown)


def prints_of_arguments(
    arguments: Iterable[bytes], key: bytes, *, only_addresses: bool = False
) -> frozenset[int] | None:
    """The prints of all that the arguments of a call may stand for; None: they may stand for anything.

    `only_addresses`: of those pieces that name a place or an account.
    """
    pieces: set[str] = set()
    try:
        for raw in arguments:
            read = texts_of(raw, is_call=True)
            for text in {*read.texts, *_long(read.names)}:
                for spelling in spellings(text):
                    folded = _folded(spelling)
                    pieces.update(_pieces(folded))
                    pieces.update(_parts_of_keys(folded))
                    pieces.update(domain for domain in domains_above(folded) if len(domain) >= SHORTEST)
    except (ValueError, RecursionError, TooMuch):
        return None
    return _hashed(filter(is_address, pieces) if only_addresses else pieces, key)


def _long(names: Iterable[str]) -> Iterator[str]:
    """The names that are pieces of a text: a short one is no value."""
    return (name for name in names if len(name) >= SHORTEST)


def _hashed(pieces: Iterable[str], key: bytes) -> frozenset[int]:
    encoded = (piece.encode("utf-8", "surrogatepass") for piece in pieces)
    return frozenset(int.from_bytes(blake2b(piece, digest_size=8, key=key).digest()) for piece in encoded)


def _folded(text: str) -> str:
    """The text without case, forms of Unicode and characters that are not seen."""
    if text.isascii():
        return _UNSEEN.sub("", text).lower()
    return _UNSEEN.sub("", normalized("NFKC", text)).casefold()


def _pieces(text: str) -> Iterator[str]:
    whole = text.strip()
    if len(whole) < SHORTEST:
        if whole:
            yield _SHORT + whole
        return
    yield whole
    for line in text.splitlines():
        if len(line := " ".join(line.split())) >= SHORTEST:
            yield line
    for word in set(text.split()):
        if len(word) >= SHORTEST:
            yield from _tokens(word)
            if "//" in word:
                yield from hosts(word)


def _tokens(word: str) -> Iterator[str]:
    yield word
    token = word.strip(_AROUND)
    if len(token) < SHORTEST or (token.isalpha() and token == word):  # true of most words
        return
    yield token
    if token.isalpha():
        return
    for pattern in _TOKENS:
        yield from pattern.findall(token)
    for run in _RUN.findall(token):
        if len(run) >= _SHORTEST_KEY and _is_mixed(run):
            yield run[:_KEY_END]
            yield run[-_KEY_END:]


def _parts_of_keys(text: str) -> Iterator[str]:
    """All parts of words, as long as the beginnings and ends that are known of keys: these may be letters only."""
    for run in set(_RUN.findall(text)):
        for start in range(len(run) - _KEY_END + 1):
            yield run[start : start + _KEY_END]


def _is_mixed(run: str) -> bool:
    """Whether it has letters and digits, as keys have."""
    return not (run.isalpha() or run.isdecimal())
