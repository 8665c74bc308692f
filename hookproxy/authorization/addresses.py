"""Addresses of servers and of authorization servers: which may be used, and how people and the model see them. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from ..model.errors import UserError, printable

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_CHARACTERS: Final = re.compile(r"[!-\[\]-~]+")  # ASCII that is visible; readers differ about what a backslash means
_LOCALHOST: Final = "localhost"


def server_address(url: str) -> str:
    """The address of a server as logins are stored under it: two spellings of the same address give the same text.

    Scheme and host are in lower case; the default port and the fragment are left out; an empty path becomes `/`. Raises
    UserError if it is no http or https address, or if it holds a name or password.
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

    It must be https. Plain http, and any address on this machine or in a private network that is written as a number,
    is accepted only if the server itself is on this machine: otherwise a server far away could send us to services
    that only this machine reaches.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise UserError(f"{name} is no usable address: {shown(url)}", _ASK)
    if is_loopback(server) and is_loopback(url):
        return
    if parts.scheme != "https":
        raise UserError(f"{name} does not use https: {shown(url)}", _ASK)
    if is_loopback(url) or _is_private(parts.hostname):
        raise UserError(f"{name} is in a private network: {shown(url)}", _ASK)


_ASK: Final = "nothing was sent there; tell the operator of the server"


def _is_private(host: str) -> bool:
    """True for a numeric address that is not public, whichever way it is written."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.endswith(f".{_LOCALHOST}") or bool(
            re.fullmatch(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", host)
        )
    mapped = getattr(address, "ipv4_mapped", None)
    return not (mapped or address).is_global


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
