"""What gateway.toml says without the effect that its author expects, or with one that nobody wants, and repairs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..checks.idle_rules import rules_of_nobody, shadowed_rules

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig, GatewayServer

_ONLY_FOR_URL: Final = ("ca", "cert", "key", "allow_http")
_TOKEN: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|npm_|pypi-|sk-|hkp_)[-_A-Za-z0-9]{16,}|AKIA[0-9A-Z]{16}\b|eyJ[-_A-Za-z0-9]{20,}\."
)
"""What well-known services' tokens look like."""
_SECRET: Final = "looks like a secret"
_NAMES_A_SECRET: Final = re.compile(r"(?i)(?:^|_)(?:token|password|passwd|secret|api_?key|access_?key)$")
_REFERENCE: Final = re.compile(r"\$(?:\{\w+\}|[A-Za-z_]\w*)")


def settings_without_effect(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each, that begins with its key, without a full stop."""
    gateway = config.gateway
    listen = gateway.listen or ()
    if gateway.tls is not None and not any(address.startswith("https:") for address in listen):
        yield 'gateway.tls: is not used, because no address of gateway.listen is for HTTPS (add "https://0.0.0.0:8443")'
    if (gateway.tokens or gateway.oidc) and not any(address.startswith("http") for address in listen):
        key = "tokens" if gateway.tokens else "oidc"
        address = '"http://127.0.0.1:8765"'
        yield f"gateway.{key}: no address of gateway.listen is for HTTP, so nobody needs a token (add {address} to it)"
    for number, text in enumerate(gateway.trusted_proxies):
        if _is_everybody(text):
            key = f"gateway.trusted_proxies[{number}]"
            yield f"{key}: {text} is everybody, who may then send tokens unencrypted (name the proxy's own address)"
    if gateway.oidc is not None and "/.well-known/" in gateway.oidc.issuer:
        issuer = gateway.oidc.issuer.partition("/.well-known/")[0]
        yield f'gateway.oidc.issuer: is the address of its metadata (write issuer = "{issuer}")'
    for server in config.servers.values():
        yield from _of_server(server)
        yield from shadowed_rules(server.loaded.settings)
    yield from rules_of_nobody(config.servers)


def _is_everybody(text: str) -> bool:
    try:
        return ipaddress.ip_network(text).prefixlen == 0
    except ValueError:  # it stops the start
        return False


def _of_server(server: GatewayServer) -> Iterator[str]:
    key, table = f"servers.{server.name}", server.table
    if table.users is not None and not table.users:
        yield f'{key}.allow: is empty, so nobody may use the server (write allow = ["@developers"], or remove it)'
    for name in _ONLY_FOR_URL:
        if getattr(table, name) and table.url is None:
            yield f"{key}.{name}: is for a server with a url, and has no effect here (remove it)"
    if table.env and table.url is not None:
        yield f"{key}.env: is for a server with a command, and has no effect here (write headers)"
    yield from _of_values(key, server)


def _of_values(key: str, server: GatewayServer) -> Iterator[str]:
    """Secrets that stand in the file, and variables that nothing replaces."""
    for name, value in server.table.env.items():
        if _is_secret(name, value):
            hint = f'credentials = {{ {name} = "file:/etc/hookproxy/{name}" }}'
            yield f"{key}.env.{name}: {_SECRET}, which whoever reads this file reads (write {hint})"
        elif found := _REFERENCE.search(value):
            yield f"{key}.env.{name}: {found[0]} is not replaced, because there is no shell (write its value)"
    for number, word in enumerate(server.command):
        if _TOKEN.search(word):
            hint = 'credentials = { TOKEN = "file:/etc/hookproxy/TOKEN" } makes it a variable of the server'
            yield f"{key}.command[{number}]: {_SECRET}, which all accounts see in the list of processes ({hint})"
    for name, value in server.table.headers.items():
        if _TOKEN.search(value):
            hint = f'{name} = "Bearer %{{TOKEN}}", and credentials = {{ TOKEN = "file:/etc/hookproxy/TOKEN" }}'
            yield f"{key}.headers.{name}: {_SECRET}, which whoever reads this file reads (write {hint})"


def _is_secret(name: str, value: str) -> bool:
    if _TOKEN.search(value):
        return True
    is_place = value.startswith(("/", "file:", "$", "%"))
    return bool(_NAMES_A_SECRET.search(name)) and bool(value) and not is_place
