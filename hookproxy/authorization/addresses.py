"""Addresses of servers and of authorization servers: which may be used, and how people and the model see them. Pure."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from ..model.errors import UserError, printable

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_CHARACTERS: Final = re.compile(r"[!-\[\]-~]+")  # ASCII that is visible; readers differ about what a backslash means
_LOCALHOST: Final = "localhost"
_UNUSUAL: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?")  # what inet_aton also reads


def server_address(url: str) -> str:
    """The address of a server as logins are stored under it: two spellings of the same address give the same text.

    Scheme and host are in lower case; the default port and the fragment are left out; an empty path becomes `/`. Raises
    UserError if it is not an http or https address, or if it holds a name or password.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise UserError(f"{shown(url)}: is not the address of a server", "it has the form https://HOST/PATH")
    if "@" in parts.netloc:
        raise UserError("the address holds a name or password", "leave out what is before the @, and log in")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port
    netloc = host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    return urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))


def shown(url: str) -> str:
    """The address as messages show it: without its query, which may hold a key."""
    address, question_mark, _ = url.partition("?")
    return printable(address) + (question_mark and "?…")


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port. Raises ValueError."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)


def is_loopback(url: str) -> bool:
    """True if the address is on this machine by its text: nothing is resolved."""
    parts = _split(url)
    host = parts.hostname if parts else None
    if not host:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == _LOCALHOST


def check_endpoint(name: str, url: str, server: str) -> None:
    """Raise UserError if `url`, which `server` or its authorization server names as `name`, must not be contacted.

    It must be https, or http on this machine if the server is on this machine too. An address in a private network that
    is written as a number is accepted only if the server's own is such: otherwise a server far away could send us to
    services that only this machine reaches.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise UserError(f"{name} is not a usable address: {shown(url)}", _ASK)
    if is_loopback(server) and is_loopback(url):
        return
    if parts.scheme != "https":
        raise UserError(f"{name} does not use https: {shown(url)}", _ASK)
    near, ours = parts.hostname, urlsplit(server).hostname or ""
    if near != ours and (_is_never_meant(near) or (_is_private(near) and not _is_private(ours))):
        raise UserError(f"{name} is in a private network: {shown(url)}", _ASK)


_NAT64: Final = IPv6Network("64:ff9b::/96")
"""IPv4 addresses that a gateway of the network translates (RFC 6052)."""

_ASK: Final = "nothing was sent there; tell the operator of the server"


def _is_never_meant(host: str) -> bool:
    """True for an unusual spelling of a number, and for a link-local address, where clouds give out credentials."""
    address = _numeric(host)
    return bool(_UNUSUAL.fullmatch(host)) if address is None else address.is_link_local


def _is_private(host: str) -> bool:
    """True for a name of this machine and for a numeric address that is not public."""
    address = _numeric(host)
    return host.rstrip(".").split(".")[-1] == _LOCALHOST if address is None else not address.is_global


def _numeric(host: str) -> IPv4Address | IPv6Address | None:
    """The address that is written as a number, an IPv4 address also inside an IPv6 address; None: it is a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return address
    translated = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return address.ipv4_mapped or address.sixtofour or translated or address


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None if readers could take it differently, or if it has no valid port."""
    if not _CHARACTERS.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading it checks it
    except ValueError:
        return None
    return parts
