"""Reads the tables `[policy]` and `[packs]`, and the keys that may sign. Imported only where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..bundles import sources
from ..model.errors import ConfigError, UserError
from ..model.pack_settings import NamedPacks
from ..model.policy_source import PolicySource
from ..signing.keys import ALGORITHM, PublicKey, parse_public, parse_public_file
from ..trust.sources import FileContext
from .models import Packs, Policy

_KEY_HINT = "make one: ssh-keygen -t ed25519 -f policy; the public key is policy.pub"


def policy_source(table: Policy, place: str, folder: str, file_context: FileContext) -> PolicySource:
    """The table at this place, `FILE: KEY`; relative paths start from the folder. Raises ConfigError."""
    try:
        sources.parse(table.source, table.ring)
    except UserError as problem:
        raise ConfigError(f"{place}.source", problem.message, problem.hint) from None
    keys = _lines(table.keys, place, folder, file_context)
    credential = "" if table.credential is None else file_context.find(table.credential.removeprefix("file:"), folder)
    return PolicySource(
        table.source,
        keys,
        table.ring,
        table.min_version,
        table.refresh_seconds,
        table.on_missing,
        table.on_expired,
        file_context.find(table.folder, folder) if table.folder else "",
        file_context.find(table.ca, folder) if table.ca else "",
        credential,
        place,
    )


def named_packs(table: Packs, place: str, folder: str, file_context: FileContext) -> NamedPacks:
    """The table `[packs]` at this place; relative paths start from the folder. Raises ConfigError."""
    if file_context.managed and table.use:
        raise ConfigError(
            f"{place}.use", "is for the files of users", "write hooks into the administrator's file itself"
        )
    twice = [name for name, count in Counter(table.use).items() if count > 1]
    if twice:
        raise ConfigError(f"{place}.use", f"names {twice[0]} twice", "remove one of them")
    keys = None if table.keys is None else _lines(table.keys, place, folder, file_context)
    return NamedPacks(place, tuple(table.use), keys)


def _lines(texts: Sequence[str], place: str, folder: str, file_context: FileContext) -> tuple[str, ...]:
    """The keys that these texts are, or that are in the files that they name: one at least. Raises ConfigError."""
    keys = tuple(key.line for key in _keys(texts, place, folder, file_context))
    if not keys:
        raise ConfigError(f"{place}.keys", "the file has no key", _KEY_HINT)
    return keys


def _keys(texts: Sequence[str], place: str, folder: str, file_context: FileContext) -> Iterator[PublicKey]:
    for number, text in enumerate(texts):
        key = f"{place}.keys[{number}]"
        try:
            if text.startswith((f"{ALGORITHM} ", "ssh-", "sk-", "ecdsa-")):
                yield parse_public(text)
            else:
                yield from parse_public_file(file_context.text(file_context.find(text, folder), key))
        except ValueError as problem:
            raise ConfigError(key, str(problem), _KEY_HINT) from None
