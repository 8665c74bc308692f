"""Reads the table `[model]`: the endpoint that hooks of type `prompt` and `agent` ask. It reads no key."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..dialects.shared.handler_types import is_loopback
from ..model.errors import ConfigError
from ..model.model_endpoint import ModelEndpoint
from ..trust.sources import FileContext
from .secret_source import source_of

if TYPE_CHECKING:
    from .models import Model

_EXAMPLE = 'write url = "https://host/v1", to which the paths of the interface are added'


def model_endpoint(table: Model, where: str, folder: str, file_context: FileContext) -> ModelEndpoint:
    """The endpoint of a table in a file in this folder; `where` is the table, for people. Raises ConfigError."""
    key = None if table.key is None else source_of(table.key, f"{where}.key", folder, file_context, ("env", "file"))
    return ModelEndpoint(
        table.api, _checked_url(table.url, f"{where}.url"), table.name, key, tuple(table.aliases.items())
    )


def _checked_url(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        host, port_is_valid = parts.hostname or "", parts.port is None or parts.port > 0
    except ValueError:
        parts, host, port_is_valid = urlsplit(""), "", False
    if parts.scheme not in ("https", "http") or not host or not port_is_valid or not url.isascii() or "\\" in url:
        raise ConfigError(where, "is not the address of an endpoint", _EXAMPLE)
    if not url.isprintable() or " " in url:
        raise ConfigError(where, "contains blanks or line ends", _EXAMPLE)
    if "@" in parts.netloc:
        raise ConfigError(where, "contains a user name or a password", 'name the key: key = "env:NAME"')
    if parts.query or parts.fragment:
        raise ConfigError(where, "has more than a path", _EXAMPLE)
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(
            where, "would send events and the key unencrypted", "write https://; http:// is only for localhost"
        )
    return url.rstrip("/")
