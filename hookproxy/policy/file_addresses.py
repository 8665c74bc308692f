"""Which folders a `file:` address may mean to some reader: where a place must be allowed, each must be."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 4096  # characters: no system has a longer path
_DECODINGS: Final = 3  # of percent signs: a reader may decode twice, and what changes once more is nobody's folder

_ADDRESS: Final = re.compile(r"file:(?://(?P<host>[^/\\?#]*))?(?P<path>[/\\][^?#]*)\Z", re.IGNORECASE)

_STRUCTURE: Final = re.compile(r"%(?:2[ef5]|5c)", re.IGNORECASE)  # an escaped dot, slash, percent sign or backslash


def meant_paths(address: str) -> frozenset[str]:
    """All absolute paths that readers of this `file:` address may mean; empty: it is unclear, or not on this machine.

    They are as spelled: `..` and links are still in them.
    """
    if len(address) > _LONGEST or not address.isprintable() or address != address.strip():
        return frozenset()
    match = _ADDRESS.match(address)
    if match is None or (match["host"] or "").casefold() not in ("", "localhost"):
        return frozenset()
    path = match["path"]
    # a reader that decodes nothing finds the same folders, except where an escape hides a part of the path
    paths = {path} if _STRUCTURE.search(path) else set[str]()
    for _ in range(_DECODINGS):
        decoded = _unquoted(path)
        paths.add(decoded)
        if decoded == path:
            break
        path = decoded
    else:
        return frozenset()
    if not all(map(str.isprintable, paths)):  # some readers stop at a NUL, or remove line ends
        return frozenset()
    paths |= {path.replace("\\", "/") for path in paths}
    return frozenset(paths)


def _unquoted(path: str) -> str:
    from urllib.parse import unquote  # 5 ms, only for runs with such rules

    return unquote(path, errors="surrogateescape")
