"""The addresses at which the gateway speaks HTTP: loopback, with a certificate, or behind proxies that encrypt."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import resource
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..config.gateway import about_key
from ..config.gateway_limits import sessions_per_user
from ..model.errors import ConfigError, UserError
from ..network.spare_descriptors import SPARE
from ..processes import service
from ..transports.http.listener_limits import ListenerLimits
from ..transports.lines import LONG_BYTES
from . import certificates

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig
    from ..transports.http.request_reader import Request

_ADDRESS: Final = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\[\]/:]+):([0-9]{1,5})/?")
_PUBLIC_URL: Final = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")
_SERVER_PATH: Final = re.compile(r"/mcp/[^/]*\Z")
_BACKLOG: Final = 1024  # connections that wait to be accepted: all agents after a restart
_FEWEST: Final = 32  # connections of agents, where descriptors are so few that hardly anything works
_MOST_PROXIES: Final = 8  # one behind another: whoever sends the request may write as many before them as it likes

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class HttpAddress(Struct, frozen=True):
    """One address to listen at."""

    host: str
    port: int
    tls: bool

    @property
    def is_loopback(self) -> bool:
        """Only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """The address as agents on this machine write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def http_addresses(config: GatewayConfig) -> list[HttpAddress]:
    """The addresses for HTTP in `listen`. Raises ConfigError for one that would put users at risk."""
    gateway, addresses = config.gateway, []
    for number, text in enumerate(gateway.listen or ()):
        if not text.startswith("http"):
            continue
        key = f"gateway.listen[{number}]"
        address = _address(config, key, text, "http://127.0.0.1:8765")
        if gateway.tokens is None and gateway.oidc is None:
            hint = "set gateway.tokens (hookproxy token new USER --file FILE makes the file) or [gateway.oidc]"
            raise ConfigError(config.path, f"{key}: over HTTP nobody knows who calls", hint)
        if address.tls and gateway.tls is None:
            hint = 'add [gateway.tls] with certificate = "cert.pem" and key = "key.pem"'
            raise ConfigError(config.path, f"{key}: there is no certificate", hint)
        if address in addresses:
            raise ConfigError(config.path, f"{key}: {text} stands there twice", "remove one of both")
        if not address.tls and not address.is_loopback and not gateway.trusted_proxies:
            hint = "write https:// with [gateway.tls], or name the reverse proxy in gateway.trusted_proxies"
            raise ConfigError(config.path, f"{key}: everybody on the network could read tokens and calls", hint)
        addresses.append(address)
    if addresses:
        _check_public_url(config)
    return addresses


def _check_public_url(config: GatewayConfig) -> None:
    """Raise ConfigError if `public_url` is not the beginning of the servers' addresses."""
    url = config.gateway.public_url
    if url is not None and (not _PUBLIC_URL.fullmatch(url) or _SERVER_PATH.search(url)):
        hint = "write it without /mcp/NAME, such as https://mcp.example.com"
        raise ConfigError(config.path, f"gateway.public_url: {url} is not the address of a gateway", hint)


def _address(config: GatewayConfig, key: str, text: str, example: str) -> HttpAddress:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[3]) < 65536:
        without_path = re.match(r"(https?://(?:\[[^\]]*\]|[^/:@]+))(:[1-9][0-9]{0,4})?(?=/|\Z)", text)
        if without_path is not None and 0 < int((without_path[2] or ":8765")[1:]) < 65536:
            example = f"{without_path[1]}{without_path[2] or ':8765'}"
        raise ConfigError(config.path, f"{key}: {text} is not an address", f'write "{example}"')
    return HttpAddress(match[2].strip("[]"), int(match[3]), match[1] == "https")


def probes_address(config: GatewayConfig) -> HttpAddress | None:
    """The address for probes. Raises ConfigError."""
    text = config.gateway.probes
    if text is None and config.gateway.probe_hosts:
        problem = "gateway.probe_hosts: there is no address for probes"
        raise ConfigError(config.path, problem, 'add probes = "http://127.0.0.1:9090"')
    return None if text is None else _address(config, "gateway.probes", text, "http://127.0.0.1:9090")


def networks(config: GatewayConfig) -> tuple[Network, ...]:
    """The trusted proxies. Raises ConfigError."""
    found = []
    for number, text in enumerate(config.gateway.trusted_proxies):
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as problem:
            key = f"gateway.trusted_proxies[{number}]"
            raise ConfigError(config.path, f"{key}: {problem}", _network_meant(text)) from None
    return tuple(found)


def _network_meant(text: str) -> str:
    """The repair for a text that is not a network."""
    try:
        return f'write "{ipaddress.ip_network(text, strict=False)}"'
    except ValueError:
        return 'write addresses: ["10.0.0.5", "10.1.0.0/24"]'


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    """Whether this peer is a proxy that encrypts, or on this machine."""
    try:
        peer = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(peer, "ipv4_mapped", None) or peer
    return mapped.is_loopback or is_proxy(address, trusted)


def listener_limits(config: GatewayConfig, most_message_bytes: int) -> ListenerLimits:
    """What agents over HTTP may take. Of the descriptors, half are for their connections, the rest is for servers."""
    gateway = config.gateway
    body = min(most_message_bytes, gateway.max_request_bytes)
    usual = ListenerLimits()
    each = max(usual.held_bytes_each, 2 * body)
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = max(_FEWEST, min(usual.connections, (descriptors - 2 * SPARE) // 2))
    strangers = min(usual.strangers, connections // 2)
    return ListenerLimits(
        connections=connections,
        strangers=strangers,
        strangers_of_network=min(usual.strangers_of_network, strangers // 4),
        connections_of_user=max(usual.connections_of_user, sessions_per_user(gateway) + gateway.max_requests),
        body_bytes=body,
        long_bytes=LONG_BYTES,
        held_bytes=max(usual.held_bytes, 4 * each),
        held_bytes_each=each,
    )


def is_proxy(address: str, trusted: Sequence[Network]) -> bool:
    """Whether this peer is one of the proxies that `trusted_proxies` names: it sends the requests of many."""
    try:
        peer = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(peer, "ipv4_mapped", None) or peer
    return any(mapped in network for network in trusted if network.version == mapped.version)


def client_address(request: Request, trusted: Sequence[Network]) -> str:
    """Who has sent a request: the peer, or the last whom trusted proxies name and who is not such a proxy itself."""
    address = request.peer.address
    if not trusted or not is_proxy(address, trusted):
        return address
    forwarded = b",".join(value for name, value in request.headers if name == b"x-forwarded-for").decode("latin-1")
    for named in reversed([part.strip() for part in forwarded.split(",")][-_MOST_PROXIES:]):
        try:
            ipaddress.ip_address(named)
        except ValueError:
            break
        address = named
        if not is_proxy(named, trusted):
            break
    return address


def listen_at_all(config: GatewayConfig) -> Iterator[tuple[HttpAddress, socket.socket]]:
    """Listen at the addresses for HTTP. Raises ConfigError."""
    for key, address in _with_keys(config):
        with about_key(config.path, key):
            yield address, listen(address)


def listen_for_probes(config: GatewayConfig) -> socket.socket | None:
    """Listen at the address for probes; None: there is none. Raises ConfigError."""
    address = probes_address(config)
    if address is None:
        return None
    with about_key(config.path, "gateway.probes"):
        return listen(address)


def _with_keys(config: GatewayConfig) -> Iterator[tuple[str, HttpAddress]]:
    numbers = [number for number, text in enumerate(config.gateway.listen or ()) if text.startswith("http")]
    yield from ((f"gateway.listen[{at}]", address) for at, address in zip(numbers, http_addresses(config), strict=True))


def check_hosts(config: GatewayConfig) -> None:
    """Raise ConfigError for an address that is not this machine's, or whose port this account may not use."""
    for key, address in _with_keys(config):
        with about_key(config.path, key):
            _bound(address, in_use_too=True).close()


def addresses_in_use(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each address at which something listens now: it may be this gateway."""
    for key, address in _with_keys(config):
        try:
            _bound(address).close()
        except UserError as problem:
            yield f"{config.path}: {key}: {problem.message}, unless that is this gateway ({problem.hint})"


def listen(address: HttpAddress) -> socket.socket:
    """Listen at an address. Raises UserError."""
    listener = _bound(address)
    try:
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _not_possible(address, error) from None
    listener.setblocking(False)
    return listener


def _bound(address: HttpAddress, *, in_use_too: bool = False) -> socket.socket:
    """A socket with this address. With `in_use_too` it may be without, where another one has it. Raises UserError."""
    listener = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except OSError as error:
        if listener is not None and in_use_too and error.errno == errno.EADDRINUSE:
            return listener
        if listener is not None:
            listener.close()
        raise _not_possible(address, error) from None
    return listener


_REPAIRS: Final = {
    errno.EADDRINUSE: "ss -ltnp sport = :{port} shows who listens there: end it, or name another port",
    errno.EADDRNOTAVAIL: "this machine does not have it: ip -brief address shows those that it has; 0.0.0.0 is all",
    errno.EACCES: "ports below 1024 need AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit: or name a higher one",
}
"""What to do about an address that cannot be had, by the error."""


def _not_possible(address: HttpAddress, error: OSError) -> UserError:
    repair = _REPAIRS.get(error.errno or 0, "name another address or port").format(port=address.port)
    if isinstance(error, socket.gaierror):
        repair = "write an address of this machine in place of the name: 0.0.0.0 is all that it has"
    return UserError(f"cannot listen at {address.host}:{address.port}: {error.strerror}", repair)


def tls_context(config: GatewayConfig) -> ssl.SSLContext | None:
    """The context for `https://` addresses; None: there is no certificate. Raises ConfigError."""
    table = config.gateway.tls
    if table is None:
        return None
    folder = os.path.dirname(config.path)
    certificate, key = (os.path.join(folder, name) for name in (table.certificate, table.key))
    for name, file in (("certificate", certificate), ("key", key)):
        _check_readable(config.path, f"gateway.tls.{name}", file)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # else OpenSSL would ask on the terminal
    except (OSError, ssl.SSLError) as error:
        what, hint = certificates.why_not_together(certificate, key, error)
        raise ConfigError(config.path, f"gateway.tls.{what}", hint) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _check_readable(path: str, key: str, file: str) -> None:
    """Raise ConfigError if a file cannot be read: `ssl` does not say which one of two it is."""
    try:
        with open(file, "rb"):
            pass
    except PermissionError as error:
        hint = f"the gateway's account must be able to read it: {service.how_to_let_read(file)}"
        raise ConfigError(path, f"{key}: {file} cannot be read: {error.strerror}", hint) from None
    except OSError as error:
        hint = "name a file that exists; a relative path starts from the folder of gateway.toml"
        raise ConfigError(path, f"{key}: {file} cannot be read: {error.strerror}", hint) from None
