"""Reads the secrets of servers from their files, and keeps them out of the audit, the log and the errors of agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ..jsonrpc.known_secrets import NO_SECRETS, KnownSecrets, known_secrets
from ..model.errors import UserError
from ..processes import service
from ..session.remote_server import with_values_redacted

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..model.settings import Settings

_MAX_SECRET_BYTES: Final = 65_536
"""A secret is a token or a small key file; a file that grows without end must not fill memory."""


def secrets_redacted(server: GatewayServer, settings: Settings) -> Settings:
    """The settings so that the audit contains none of the server's secrets. Raises UserError."""
    return with_values_redacted(settings, read_secrets(server.credentials).values())


def secrets_of(server: GatewayServer) -> KnownSecrets:
    """What removes the server's secrets from a text: a server may print what it has. Raises UserError."""
    return known_secrets(read_secrets(server.credentials).values())


def secrets_of_if_any(server: GatewayServer) -> KnownSecrets:
    """As `secrets_of`; a server whose secrets cannot be read has got none of them."""
    try:
        return secrets_of(server)
    except UserError:
        return NO_SECRETS


def report_without_secrets(server: GatewayServer, report: Callable[[str], None]) -> Callable[[str], None]:
    """A function that reports what concerns this server without its secrets, and those that are hidden.

    Raises UserError.
    """
    secrets = secrets_of(server)
    hidden = server.loaded.settings.secrets
    if hidden is None:
        return lambda text: report(secrets.removed_from(text))
    from .finders import masks_for_log  # for such configurations only

    masks = masks_for_log(hidden)
    return lambda text: report(masks.text(secrets.removed_from(text)))


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


def repair(path: str) -> str:
    """How the gateway's administrator makes a secret readable, as a command where that is possible."""
    if os.path.exists(path) and not os.access(path, os.R_OK):
        return service.how_to_let_read(path)
    if "$" in path:
        return "variables are not replaced in paths, except $CREDENTIALS_DIRECTORY at the beginning"
    return f"install -m 600 -o {service.own_account().name} /dev/stdin {path} writes what you type"
