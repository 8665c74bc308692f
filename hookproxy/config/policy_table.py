"""Reads the table `[policy]`: its source, and the keys that may sign. Imported only where there is one."""

from __future__ import annotations

from collections.abc import Iterator

from ..bundles import sources
from ..model.errors import ConfigError, UserError
from ..model.policy_source import PolicySource
from ..signing.keys import ALGORITHM, PublicKey, parse_public, parse_public_file
from ..trust.sources import FileContext
from .models import Policy

_KEY_HINT = "make one: ssh-keygen -t ed25519 -f policy; the public key is policy.pub"


def policy_source(table: Policy, place: str, folder: str, file_context: FileContext) -> PolicySource:
    """The table at this place, `FILE: KEY`; relative paths start from the folder. Raises ConfigError."""
    try:
        sources.parse(table.source, table.ring)
    except UserError as problem:
        raise ConfigError(f"{place}.source", problem.message, problem.hint) from None
    keys = tuple(key.line for key in _keys(table, place, folder, file_context))
    if not keys:
        raise ConfigError(f"{place}.keys", "the file has no key", _KEY_HINT)
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


def _keys(table: Policy, place: str, folder: str, file_context: FileContext) -> Iterator[PublicKey]:
    for number, text in enumerate(table.keys):
        key = f"{place}.keys[{number}]"
        try:
            if text.startswith((f"{ALGORITHM} ", "ssh-", "sk-", "ecdsa-")):
                yield parse_public(text)
            else:
                yield from parse_public_file(file_context.text(file_context.find(text, folder), key))
        except ValueError as problem:
            raise ConfigError(key, str(problem), _KEY_HINT) from None
