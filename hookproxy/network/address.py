"""The address of a remote server, and how it is reached: checked once, before anything is sent."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from msgspec import Struct

from ..model.errors import UserError

_PORTS: Final = {"https": 443, "http": 80}


class Proxy(Struct, frozen=True):
    """An HTTP proxy through which the server is reached."""

    host: str
    port: int
    authorization: bytes = b""
    """The value of `Proxy-Authorization`; empty: it needs none."""


class Address(Struct, frozen=True):
    """Where messages are posted."""

    scheme: str
    host: str
    """As it is looked up: without brackets, in lower case."""
    port: int
    target: bytes
    """Path and query."""

    @property
    def is_tls(self) -> bool:
        """It is an https address."""
        return self.scheme == "https"

    @property
    def host_header(self) -> bytes:
        """The value of `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}").encode()

    @property
    def origin(self) -> str:
        """Scheme, host and port, for people and for comparison."""
        return f"{self.scheme}://{self.host_header.decode()}"

    def same_origin_target(self, base: bytes, location: str) -> bytes | None:
        """Return path and query of an address that may be relative to `base`; None: it is of another origin."""
        try:
            parts = urlsplit(urljoin(f"{self.origin}{(base or self.target).decode()}", location))
            if parts.scheme != self.scheme:
                return None
            other = _parse(parts)
        except (ValueError, UserError):
            return None
        return other.target if other.origin == self.origin and "@" not in parts.netloc else None


def parse(url: str, *, allow_http: bool = False) -> Address:
    """Return the address that the URL names. Raises UserError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise UserError(f"--url {_without_secret(url)}: {problem}", "write https://host/path") from None
    if parts.scheme not in _PORTS and "://" in url:
        text = f"--url {_without_secret(url)} is not an address of a server: it begins with {parts.scheme}://"
        raise UserError(text, "write https://host/path")
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise UserError(f"--url {_without_secret(url)} is not an address of a server", "write https://host/path")
    if "@" in parts.netloc:
        hint = "give credentials with --header 'Authorization: …', where they are not logged"
        raise UserError(f"--url {parts.scheme}://…@{parts.hostname} contains credentials", hint)
    address = _parse(parts)
    if not address.is_tls and not allow_http and not is_loopback(address.host):
        hint = "use https, or --allow-http if everybody on the way may read and change what is sent"
        raise UserError(f"--url {address.origin} would send everything unencrypted", hint)
    return address


def _without_secret(url: str) -> str:
    """The URL for a message: without what may be credentials."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url


def _parse(parts: SplitResult) -> Address:
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise UserError(f"the host name {host} cannot be looked up", "write it as it is registered") from None
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    if any(char <= " " or char == "\x7f" for char in f"{host}{target}"):
        raise UserError("the URL contains a blank or a control character", "encode it, as in %20")
    if not target.isascii():
        from urllib.parse import quote

        target = quote(target, safe="%/:=&?~#+!$,;'@()*[]")
    return Address(parts.scheme, host, parts.port or _PORTS.get(parts.scheme, 0), target.encode())


def is_loopback(host: str) -> bool:
    """True if the host is this machine, whatever a name server says."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_proxy(address: Address, env: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment names for this address, as curl reads it. Raises UserError.

    `HTTP_PROXY` in capitals is not read, because a web server's request headers can set it.
    """
    names = ("https_proxy", "HTTPS_PROXY") if address.is_tls else ("http_proxy",)
    url = next((value for name in (*names, "all_proxy", "ALL_PROXY") if (value := env.get(name))), "")
    if not url or is_loopback(address.host) or _is_exempt(address, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port or 3128 if parts.scheme == "http" else None
    except ValueError:
        port = None
    if port is None or not parts.hostname:
        hint = "write http://host:port, or add the server's host to NO_PROXY"
        raise UserError(f"the proxy variable for {address.scheme} names no HTTP proxy", hint)
    authorization = b""
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = b"Basic " + base64.b64encode(credentials.encode())
    return Proxy(parts.hostname, port, authorization)


def _is_exempt(address: Address, no_proxy: str) -> bool:
    """Whether `NO_PROXY` names the host, a domain above it, or a network of its address."""
    for entry in no_proxy.replace(",", " ").lower().split():
        name, _, port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
        if port and port != str(address.port):
            continue
        name = (name or entry).removeprefix("*.").lstrip(".").strip("[]")
        if entry == "*" or address.host == name or address.host.endswith(f".{name}") or _in_network(address.host, name):
            return True
    return False


def _in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
