"""The files that a signing verb names on its command line."""

from __future__ import annotations

from typing import Final

from ..model.errors import ConfigError, file_hint
from ..signing.keys import PrivateKey, PublicKey, parse_private, parse_public_file

_LARGEST_KEY: Final = 64 * 1024  # bytes of a file with keys


def private_key(path: str) -> PrivateKey:
    """The key in this file. Raises ConfigError and UserError."""
    return parse_private(read(path, _LARGEST_KEY), path)


def public_keys(path: str) -> list[PublicKey]:
    """The keys in this file: at least one. Raises ConfigError."""
    try:
        keys = list(parse_public_file(read(path, _LARGEST_KEY).decode("utf-8", "replace")))
    except ValueError as problem:
        raise ConfigError(path, str(problem), "ssh-keygen -t ed25519 writes such a key into FILE.pub") from None
    if not keys:
        raise ConfigError(path, "has no key", "ssh-keygen -t ed25519 writes one into FILE.pub")
    return keys


def read(path: str, limit: int) -> bytes:
    """All that is in a file of at most `limit` bytes. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    if len(data) > limit:
        raise ConfigError(path, f"has more than {limit} bytes", "name the right file")
    return data
