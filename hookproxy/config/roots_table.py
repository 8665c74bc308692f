"""Reads `[roots]`, and the list of roots of a server of gateway.toml: which folders a server learns of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from ..model.errors import ConfigError
from ..model.settings import ROOTS_OF_AGENT, RootsRule
from ..trust.sources import FileContext
from .errors import place_of
from .validate import dotted

if TYPE_CHECKING:
    from .models import Roots

_ROOTS_OF_AGENTS: Final = "*"
"""The only entry of a list where the agents' own reach the server."""

_HINT: Final = "write the path of a folder, or its file:// address"


def roots_rule(
    roots: Roots | Sequence[str] | None, path: str, text: str, file_context: FileContext, within: tuple[str, ...]
) -> RootsRule:
    """What a table of a file with this text says of roots; `within` are the names on the way to it.

    Raises ConfigError.
    """
    key = (*within, "roots")
    if roots is None:
        return ROOTS_OF_AGENT
    if isinstance(roots, Sequence):
        if list(roots) == [_ROOTS_OF_AGENTS]:
            return ROOTS_OF_AGENT
        hint = f'{_HINT}, or ["{_ROOTS_OF_AGENTS}"] alone for what agents say'
        return RootsRule(_given(roots, path, text, key, file_context, hint))
    problem = _contradiction(roots)
    if problem:
        where = place_of(path, text, key)
        raise ConfigError(where, f"{dotted(key)}: {problem[0]}", problem[1])
    if roots.give is not None:
        return RootsRule(_given(roots.give, path, text, (*key, "give"), file_context, _HINT))
    if roots.allow is not None:
        folders = _folders(roots.allow, path, text, (*key, "allow"), file_context, _HINT)
        return RootsRule(None, (folders,))
    return ROOTS_OF_AGENT if roots.passes else RootsRule(())


def missing_folders(rule: RootsRule, where: str) -> Iterator[str]:
    """A note on each folder of the rule that is not there; `where` is the table, for people."""
    for address, _name in rule.given or ():
        folder = unquote(urlsplit(address).path)
        if not os.path.isdir(folder):
            yield f"{where}.give: there is no folder {folder}, which servers are given"
    for folder in (folder for folders in rule.allowed for folder in folders):
        if not os.path.isdir(folder):
            yield f"{where}.allow: there is no folder {folder}, so no root of an agent is in it"


def _contradiction(roots: Roots) -> tuple[str, str] | None:
    """Why the keys of the table do not go together, and what to do; None: they do."""
    if roots.passes is None and roots.give is None and roots.allow is None:
        return "the table is empty", "write pass = true, pass = false, give = [...] or allow = [...]"
    if roots.give is not None and roots.allow is not None:
        return "give and allow contradict each other", "give is the whole list: remove allow"
    if roots.passes and roots.give is not None:
        return "pass = true and give contradict each other", "give stands in place of the agent's roots: remove pass"
    if roots.passes is False and roots.allow is not None:
        return "pass = false and allow contradict each other", "allow lets roots of the agent pass: remove pass"
    return None


def _given(
    roots: Sequence[str], path: str, text: str, key: tuple[str, ...], file_context: FileContext, hint: str
) -> tuple[tuple[str, str], ...]:
    folders = _folders(roots, path, text, key, file_context, hint)
    return tuple((f"file://{quote(folder)}", os.path.basename(folder) or folder) for folder in folders)


def _folders(
    roots: Sequence[str], path: str, text: str, key: tuple[str, ...], file_context: FileContext, hint: str
) -> tuple[str, ...]:
    """The absolute paths. Raises ConfigError."""
    return tuple(_folder(root, path, text, (*key, number), file_context, hint) for number, root in enumerate(roots))


def _folder(root: str, path: str, text: str, key: tuple[str | int, ...], file_context: FileContext, hint: str) -> str:
    folder = root
    if "://" in root:
        address = urlsplit(root)
        is_file = address.scheme == "file" and address.netloc in ("", "localhost") and address.path.startswith("/")
        folder = unquote(address.path) if is_file and not (address.query or address.fragment) else ""
    if not folder or not folder.isprintable() or "*" in folder:
        where = place_of(path, text, key)
        raise ConfigError(where, f"{dotted(key)}: {root!r} is not a folder", hint)
    return os.path.normpath(file_context.find(folder, os.path.dirname(path)))
