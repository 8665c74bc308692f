"""`hookproxy run --url URL`: the server is reached at its address, and the agent speaks to it over stdio."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..jsonrpc.known_secrets import known_secrets
from ..model.env_references import REFERENCE, expand, is_of_wrap
from ..model.errors import UserError
from ..network.address import Address, find_proxy, parse
from ..session.remote_server import RemoteOptions, headers, open_remote_server, with_values_redacted

if TYPE_CHECKING:
    from ..config.load import Loaded
    from ..model.settings import Settings
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel


def check(options: Namespace) -> None:
    """Check all that the options say of the server, before anything is read from the agent. Raises UserError."""
    address = address_of(options, os.environ)
    find_proxy(address, os.environ)
    headers(options.header, os.environ)
    if options.key and not options.cert:
        raise UserError("--key is given without --cert", "name the certificate that the key belongs to")
    if not address.is_tls and (options.ca or options.cert):
        raise UserError("--ca and --cert are for https, and the URL is http", "write https://")
    options.name = options.name or server_name(address)


def address_of(options: Namespace, environ: Mapping[str, str]) -> Address:
    """The server's address, with the values of its variables. Raises UserError."""
    return parse(expand("--url", options.url, environ), allow_http=options.allow_http)


def server_name(address: Address) -> str:
    """The server's name if none is given: its host, without what most hosts of servers begin with."""
    for beginning in ("mcp.", "www.", "api."):
        if address.host.startswith(beginning) and address.host.count(".") > 1:
            return address.host.removeprefix(beginning)
    return address.host


def with_secrets_redacted(loaded: Loaded, options: Namespace) -> Loaded:
    """Return the configuration so that the audit never contains a header's value, even if the server sends it back."""
    values = _secret_values(options, os.environ)
    return replace(loaded, settings=with_values_redacted(loaded.settings, values))


def _secret_values(options: Namespace, environ: Mapping[str, str]) -> list[str]:
    values = [value for _, value in headers(options.header, environ)]
    return values + [environ.get(name, "") for name in REFERENCE.findall(options.url)]


def open_server(options: Namespace, loaded: Loaded, report: Callable[[str], None]) -> tuple[Channel, ServerEnd]:
    """Open the channel to the server. Nothing is sent yet. Raises UserError."""
    opened = open_at(options, loaded.settings, os.environ, report)
    for variable in filter(is_of_wrap, list(os.environ)):  # their values are in the channel, and no hook's business
        del os.environ[variable]
    return opened


def open_at(
    options: Namespace, settings: Settings, environ: Mapping[str, str], report: Callable[[str], None]
) -> tuple[Channel, ServerEnd]:
    """As `open_server`, with the variables of this environment."""
    secrets = known_secrets(_secret_values(options, environ))
    remote = RemoteOptions(headers(options.header, environ), options.ca, options.cert, options.key, secrets)
    return open_remote_server(address_of(options, environ), remote, settings, environ, report)
