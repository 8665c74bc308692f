"""`hookproxy run --url URL`: the server is reached at its address, and the agent speaks to it over stdio."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..model.credentials import Credentials, NoCredentials
from ..model.env_references import REFERENCE, expand, is_of_wrap
from ..model.errors import UserError
from ..session.relay import MAX_UNREAD_BYTES
from ..session.server_end import RemoteServer, ServerEnd
from ..transports.http.address import Address, find_proxy, parse
from ..transports.http.channel import HttpChannel, Remote

if TYPE_CHECKING:
    import argparse
    import ssl

    from ..config.load import Loaded
    from ..transports.channel import Channel

_SHORTEST_SECRET: Final = 8  # characters: shorter values, such as `1`, would redact ordinary text
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_OWN_HEADERS: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "content-type",
        "accept",
        "accept-encoding",
        "last-event-id",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "proxy-authorization",
        "keep-alive",
    }
)
"""Headers that hookproxy sets itself, or that would change how a message is framed."""


def check(options: argparse.Namespace) -> None:
    """Check all that the options say of the server, before anything is read from the agent. Raises UserError."""
    address = _address(options)
    find_proxy(address, os.environ)
    headers(options.header, os.environ)
    if options.key and not options.cert:
        raise UserError("--key is given without --cert", "name the certificate that the key belongs to")
    if not address.is_tls and (options.ca or options.cert):
        raise UserError("--ca and --cert are for https, and the URL is http", "write https://")
    options.name = options.name or server_name(address)


def _address(options: argparse.Namespace) -> Address:
    """The server's address, with the values of its variables. Raises UserError."""
    return parse(expand("--url", options.url, os.environ), allow_http=options.allow_http)


def server_name(address: Address) -> str:
    """The server's name if none is given: its host, without what most hosts of servers begin with."""
    for beginning in ("mcp.", "www.", "api."):
        if address.host.startswith(beginning) and address.host.count(".") > 1:
            return address.host.removeprefix(beginning)
    return address.host


def headers(written: list[str], env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers with the values of their variables. Raises UserError, without any value in its text."""
    return tuple(_header(one, env) for one in written)


def _header(written: str, env: Mapping[str, str]) -> tuple[str, str]:
    name, colon, value = written.partition(":")
    name = name.strip()
    if not colon or not _NAME.fullmatch(name):
        shown = f"--header {name}" if colon and name.isprintable() else "a --header"
        raise UserError(f"{shown} is no header", "write --header 'Name: value'")
    if name.lower() in _OWN_HEADERS or name.lower().startswith("mcp-"):
        raise UserError(f"--header {name} cannot be set, because hookproxy sets it itself", "leave it out")
    for variable in REFERENCE.findall(value):
        if not env.get(variable):
            hint = "set it in the environment of hookproxy: the agent's configuration has a place for it (env)"
            raise UserError(f"--header {name}: the environment variable {variable} is not set", hint)
    value = REFERENCE.sub(lambda found: env[found[1]], value.strip(" \t")).strip(" \t")
    if not value.isascii() or not value.isprintable():
        raise UserError(f"--header {name}: its value has characters that a header cannot contain", "check the variable")
    return name, value


def with_secrets_redacted(loaded: Loaded, options: argparse.Namespace) -> Loaded:
    """Return the configuration so that the audit never contains a header's value, even if the server sends it back."""
    values = [value for _, value in headers(options.header, os.environ)]
    values += [os.environ.get(name, "") for name in REFERENCE.findall(options.url)]
    values += [word for value in values for word in value.split()]  # of `Bearer TOKEN` also the token alone
    patterns = {re.escape(value) for value in values if len(value) >= _SHORTEST_SECRET}
    settings = replace(loaded.settings, audit_redact=(*loaded.settings.audit_redact, *sorted(patterns)))
    return replace(loaded, settings=settings)


def _credentials(address: Address, options: argparse.Namespace, report: Callable[[str], None]) -> Credentials:
    """The stored login of this server; none if `--header` has credentials, or if there is no place for logins."""
    if any(name.lower() == "authorization" for name, _ in headers(options.header, os.environ)):
        return NoCredentials()
    from ..authorization.credentials import StoredCredentials
    from ..authorization.login_store import LoginStore
    from ..transports.http.post import poster
    from ..trust.sources import FileContext, logins_folder

    context = FileContext(os.environ, "/")
    try:
        store = LoginStore(logins_folder(context.environ, context.home))
    except UserError as error:
        return NoCredentials(f"There is no place for logins: {error.message} ({error.hint}).")

    def tls() -> ssl.SSLContext:
        """As for the server, but the system's certificates count too: the authorization server may be a public one."""
        import ssl

        found = ssl.create_default_context()
        if options.ca:
            found.load_verify_locations(options.ca)
        return found

    url = f"{address.origin}{address.target.decode()}"
    return StoredCredentials(url, store, poster(os.environ, tls), os.environ, report=report)


def open_server(
    options: argparse.Namespace, loaded: Loaded, report: Callable[[str], None]
) -> tuple[Channel, ServerEnd]:
    """Open the channel to the server. Nothing is sent yet. Raises UserError."""
    address = _address(options)
    tls = None
    if address.is_tls:
        from ..transports.http.connect import tls_context

        tls = tls_context(options.ca, options.cert, options.key)
    settings = loaded.settings
    limit = max(settings.max_message_bytes, MAX_UNREAD_BYTES)
    remote = Remote(
        address=address,
        credentials=_credentials(address, options, report),
        headers=headers(options.header, os.environ),
        proxy=find_proxy(address, os.environ),
        tls=tls,
        connect_seconds=settings.remote_connect_seconds,
        silence_seconds=settings.remote_silence_seconds,
        max_connections=settings.remote_connections,
        max_bytes=limit,
    )
    for variable in filter(is_of_wrap, list(os.environ)):  # their values are in `remote` now, and no hook's business
        del os.environ[variable]
    channel = HttpChannel(remote, report)
    return channel, RemoteServer(channel)
