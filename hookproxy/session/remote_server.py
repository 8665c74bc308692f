"""Opens the channel to a server at an address, with its headers, its login and its certificates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc.known_secrets import NO_SECRETS, KnownSecrets
from ..model.credentials import Credentials, NoCredentials
from ..model.env_references import REFERENCE
from ..model.errors import UserError
from ..model.settings import Settings
from ..network.address import Address, find_proxy
from ..transports.http.channel import HttpChannel
from ..transports.http.pool import Remote
from .relay import MAX_UNREAD_BYTES
from .server_end import RemoteServer, ServerEnd

if TYPE_CHECKING:
    import ssl

    from ..transports.channel import Channel

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept", "accept-encoding"}
    | {"last-event-id", "te", "trailer", "upgrade", "expect", "proxy-authorization", "keep-alive"}
)
"""Headers that hookproxy sets itself, or that would change how a message is framed."""


class RemoteOptions(Struct, frozen=True):
    """How to reach a server, besides its address."""

    headers: tuple[tuple[str, str], ...] = ()
    """With the values of their variables."""
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    """Paths of files."""
    secrets: KnownSecrets = NO_SECRETS
    """What must not be in our own texts about the server, although it may send it back: values in the headers."""


def open_remote_server(
    address: Address,
    options: RemoteOptions,
    settings: Settings,
    environ: Mapping[str, str],
    report: Callable[[str], None],
    credentials: Credentials | None = None,
) -> tuple[Channel, ServerEnd]:
    """Open the channel, and send nothing yet. Without `credentials`, a stored login counts. Raises UserError."""
    tls = None
    if address.is_tls:
        from ..network.connect import tls_context

        tls = tls_context(options.ca, options.cert, options.key)
    remote = Remote(
        address=address,
        credentials=credentials or stored_credentials(address, options, environ, report),
        headers=options.headers,
        proxy=find_proxy(address, environ),
        tls=tls,
        connect_seconds=settings.remote_connect_seconds,
        silence_seconds=settings.remote_silence_seconds,
        max_connections=settings.remote_connections,
        max_bytes=max(settings.max_message_bytes, MAX_UNREAD_BYTES),
        secrets=options.secrets,
    )
    channel = HttpChannel(remote, report)
    return channel, RemoteServer(channel)


def headers(written: Iterable[str], env: Mapping[str, str], option: str = "--header") -> tuple[tuple[str, str], ...]:
    """Return `Name: value` texts with the values of their variables. Raises UserError, without values in its text."""
    return tuple(_header(text, env, option) for text in written)


def _header(written: str, env: Mapping[str, str], option: str) -> tuple[str, str]:
    name, colon, value = written.partition(":")
    name = name.strip()
    if not colon or not _NAME.fullmatch(name):
        shown = f"{option} {name}" if colon and name.isprintable() else f"a {option}"
        raise UserError(f"{shown} is not a header", "write --header 'Name: value'")
    if name.lower() in _OWN_HEADERS or name.lower().startswith("mcp-"):
        raise UserError(f"{option} {name} cannot be set, because hookproxy sets it itself", "leave it out")
    for variable in REFERENCE.findall(value):
        if not env.get(variable):
            hint = "set it in the environment of hookproxy: the agent's configuration has a place for it (env)"
            raise UserError(f"{option} {name}: the environment variable {variable} is not set", hint)
    value = REFERENCE.sub(lambda match: env[match[1]], value.strip(" \t")).strip(" \t")
    if not value.isascii() or not value.isprintable():
        raise UserError(f"{option} {name}: its value has characters that a header cannot contain", "check the variable")
    return name, value


def with_values_redacted(settings: Settings, values: Iterable[str]) -> Settings:
    """The settings so that the audit never contains one of these values, even if the server sends it back."""
    secrets = list(values)
    secrets += [word for value in secrets for word in value.split()]  # of `Bearer TOKEN` also the token alone
    return replace(settings, audit_secrets=(*settings.audit_secrets, *sorted(set(secrets))))


def stored_credentials(
    address: Address, options: RemoteOptions, environ: Mapping[str, str], report: Callable[[str], None]
) -> Credentials:
    """The stored login of this server; none if a header has credentials, or if there is no place for logins."""
    if any(name.lower() == "authorization" for name, _ in options.headers):
        return NoCredentials()
    from ..authorization.credentials import StoredCredentials
    from ..authorization.login_store import LoginStore
    from ..network.post import poster
    from ..trust.sources import FileContext, logins_folder

    files = FileContext(environ, "/")
    try:
        store = LoginStore(logins_folder(files.environ, files.home))
    except UserError as error:
        return NoCredentials(f"There is no place for logins: {error.message} ({error.hint}).")

    def tls() -> ssl.SSLContext:
        """As for the server, but the system's certificates count too: the authorization server may be a public one."""
        import ssl

        context = ssl.create_default_context()
        if options.ca:
            context.load_verify_locations(options.ca)
        return context

    url = f"{address.origin}{address.target.decode()}"
    return StoredCredentials(url, store, poster(environ, tls), environ, report=report)
