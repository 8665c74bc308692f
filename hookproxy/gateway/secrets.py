"""Reads the secrets of servers from their files, and keeps them out of the audit and the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ..jsonrpc.redact import MARK
from ..model.errors import UserError
from ..session.remote_server import with_values_redacted

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..model.settings import Settings

_SHORTEST_SECRET: Final = 8  # characters, as in the audit: shorter values, such as `1`, would redact ordinary text
_MARK: Final = MARK.encode()
_MAX_SEARCHED: Final = 1024 * 1024  # bytes: they take some milliseconds
_MAX_SECRET_BYTES: Final = 65_536
"""A secret is a token or a small key file; a file that grows without end must not fill memory."""


def secrets_redacted(server: GatewayServer, settings: Settings) -> Settings:
    """The settings so that the audit contains none of the server's secrets. Raises UserError."""
    return with_values_redacted(settings, read_secrets(server.credentials).values())


class Remover:
    """Removes secrets from what a server prints before it is in the log: a server may print what it has."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lines = {line for one in secrets for line in one.splitlines() if len(line) >= _SHORTEST_SECRET}
        found = sorted((line.encode() for line in self._lines), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, found))) if found else None
        self.longest = len(found[0]) if found else 0
        """Bytes of the longest secret: whoever cuts a text cuts none in two."""

    def and_of(self, secrets: Iterable[str]) -> Remover:
        """One that removes these secrets, too: a running server still has those that it was started with."""
        return Remover((*self._lines, *secrets))

    def __call__(self, data: bytes) -> bytes:
        """The bytes without any of the secrets. Many bytes are removed as a whole, which takes no time."""
        if self._pattern is None:
            return data
        return self._pattern.sub(_MARK, data) if len(data) <= _MAX_SEARCHED else _MARK

    def text(self, text: str) -> str:
        """The text without any of the secrets."""
        return self(text.encode(errors="replace")).decode(errors="replace") if self._pattern is not None else text


def read_secrets(files: Mapping[str, str]) -> dict[str, str]:
    """The secrets in these files, by name, without a line end. Raises UserError, which contains no secret."""
    found = {}
    for name, path in files.items():
        try:
            with open(path, "rb") as file:
                data = file.read(_MAX_SECRET_BYTES + 1)
            text = data.decode().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UserError(f"the credential {name} cannot be read from {path}: {why}", "correct the file") from None
        if len(data) > _MAX_SECRET_BYTES or not text or "\0" in text:
            raise UserError(f"the credential {name} in {path} is no secret", "it is empty, or longer than 64 KiB")
        found[name] = text
    return found
