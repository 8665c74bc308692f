"""Makes variables fit for a process: cuts them to the system's limit, and encodes them (law 3)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

VARIABLE_LIMIT: Final = 131_072  # bytes of NAME=value and its NUL: Linux starts no program with more (MAX_ARG_STRLEN)


def fit(env: Mapping[str, str]) -> Mapping[str, str]:
    """The same variables as a process can take them: in UTF-8, NUL replaced, and cut at VARIABLE_LIMIT.

    If one was cut, HOOK_TRUNCATED=1 is added. An environment that fits is returned as it is.
    """
    if all(_fits(name, value) for name, value in env.items()):
        return env
    whole = {name: _encode(value) for name, value in env.items()}
    fitted = {name: os.fsdecode(_cut(value, VARIABLE_LIMIT - len(name) - 2)) for name, value in whole.items()}
    if any(len(name) + len(value) + 2 > VARIABLE_LIMIT for name, value in whole.items()):
        fitted["HOOK_TRUNCATED"] = "1"
    return fitted


def cuts(env: Mapping[str, str]) -> bool:
    """Whether `fit` would cut off the end of a variable."""
    return any(len(name) + len(_encode(value)) + 2 > VARIABLE_LIMIT for name, value in env.items())


def entries(env: Mapping[str, str]) -> tuple[bytes, ...]:
    """Each variable as `NAME=value`. Raises ValueError for a name that is empty or holds `=`."""
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"{name!r} cannot be the name of an environment variable")
    return tuple(os.fsencode(f"{name}={value}") for name, value in env.items())


def _fits(name: str, value: str) -> bool:
    return value.isascii() and len(name) + len(value) + 2 <= VARIABLE_LIMIT and "\0" not in value


def _encode(value: str) -> bytes:
    value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        return value.encode("utf-8", "surrogateescape")  # bytes that were not UTF-8 when we inherited them
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell and UTF-8 cannot
        return value.encode("utf-8", "replace")


def _cut(value: bytes, limit: int) -> bytes:
    """At most `limit` bytes, ending with a whole UTF-8 character."""
    if len(value) <= limit:
        return value
    while limit > 0 and value[limit] & 0xC0 == 0x80:  # a byte that continues a character
        limit -= 1
    return value[:limit]
