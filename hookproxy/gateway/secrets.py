"""Reads the secrets of servers from their files, and keeps them out of the audit and the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ..jsonrpc.redact import MARK
from ..model.errors import UserError
from ..session.remote_server import with_values_redacted

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..model.settings import Settings

_SHORTEST_SECRET: Final = 8  # characters, as in the audit: shorter values, such as `1`, would redact ordinary text
_MAX_SECRET_BYTES: Final = 65_536
"""A secret is a token or a small key file; a file that grows without end must not fill memory."""


def secrets_redacted(server: GatewayServer, settings: Settings) -> Settings:
    """The settings so that the audit contains none of the server's secrets. Raises UserError."""
    return with_values_redacted(settings, read_secrets(server.credentials).values())


def remover(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that removes these secrets from a line of the log: a server may print what it has."""
    lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= _SHORTEST_SECRET}
    if not lines:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(line) for line in sorted(lines, key=len, reverse=True)))
    return lambda text: pattern.sub(MARK, text)


def report_without_secrets(server: GatewayServer, report: Callable[[str], None]) -> Callable[[str], None]:
    """A function that reports what concerns this server without its secrets. Raises UserError."""
    without_secrets = remover(read_secrets(server.credentials).values())
    return lambda text: report(without_secrets(text))


def bytes_remover(secrets: Iterable[str]) -> Callable[[bytes], bytes]:
    """The same as `remover` for what a server prints, before it is cut."""
    remove = remover(secrets)
    return lambda data: remove(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def read_secrets(files: Mapping[str, str]) -> dict[str, str]:
    """The secrets in these files, by name, without a line end. Raises UserError, which contains no secret."""
    secrets = {}
    for name, path in files.items():
        try:
            with open(path, "rb") as file:
                data = file.read(_MAX_SECRET_BYTES + 1)
            text = data.decode().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            problem = f"the credential {name} cannot be read from {path}: {why}"
            raise UserError(problem, "the gateway's administrator must correct the file") from None
        if len(data) > _MAX_SECRET_BYTES or not text or "\0" in text:
            raise UserError(f"the credential {name} in {path} is not a secret", "it is empty, or longer than 64 KiB")
        secrets[name] = text
    return secrets
