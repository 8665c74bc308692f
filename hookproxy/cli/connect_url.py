"""`hookproxy connect NAME --url URL`: a stdio MCP server for agents, which relays to a gateway over HTTP.

It reads no configuration and judges nothing: the gateway does. The token is never on a command line, where every
account of this machine could read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import anyio

from ..audit.log import Audit
from ..gateway.secrets import read_secrets
from ..hooks.evaluate import Hooks
from ..model.errors import UserError
from ..model.hooks import Session
from ..model.settings import Settings
from ..session.lifecycle import Lifecycle
from ..session.proxy import Proxy
from ..session.remote_server import RemoteOptions, headers, open_remote_server
from ..transports.event_loop import new_loop
from ..transports.http.address import Address, find_proxy, parse
from ..transports.pipe import open_channel
from .common import working_directory
from .run import move_agent_pipes, new_reporter

if TYPE_CHECKING:
    import argparse

TOKEN_VARIABLE: Final = "HOOKPROXY_TOKEN"
"""The environment variable with the token of the gateway's user."""


def main(options: argparse.Namespace, usage: str) -> int:
    """Relay between the agent and the gateway until one of them ends. Returns the exit status. Raises UserError."""
    if not options.url:
        raise UserError(
            "--token-file and --ca are for a gateway at an address, and --url names none", f"usage: {usage}"
        )
    if options.socket:
        raise UserError("both --url and --socket are given", "give one of them")
    address = parse(gateway_url(options.url, options.name))
    if not address.is_tls and options.ca:
        raise UserError("--ca is for https, and the URL is http", "write https://")
    find_proxy(address, os.environ)
    remote = RemoteOptions(_authorization(options.token_file), options.ca)
    return anyio.run(
        _relay,
        options.name,
        address,
        remote,
        move_agent_pipes(),
        new_reporter(),
        backend_options={"loop_factory": new_loop},
    )


def gateway_url(url: str, name: str) -> str:
    """The address of a server of a gateway: below the gateway's address, unless this is the server's already."""
    path = f"/mcp/{quote(name, safe='')}"
    url = url.rstrip("/")
    return url if url.endswith(path) else url + path


def _authorization(token_file: str | None) -> tuple[tuple[str, str], ...]:
    """The header with the token from the file or the environment; none: a stored login is used. Raises UserError."""
    if token_file is not None:
        token = read_secrets({"token": token_file})["token"]
    else:
        token = os.environ.get(TOKEN_VARIABLE, "")
    os.environ.pop(TOKEN_VARIABLE, None)
    if not token:
        return ()
    written = f"Authorization: Bearer ${{{TOKEN_VARIABLE}}}"
    return headers((written,), {TOKEN_VARIABLE: token}, "the token's header")


async def _relay(
    name: str, address: Address, remote: RemoteOptions, agent_pipes: tuple[int, int], report: Callable[[str], None]
) -> int:
    """Relay until one side ends, with a proxy that has no hooks and no rules."""
    settings, cwd = Settings(audit_enabled=False), working_directory()
    channel, server = open_remote_server(address, remote, settings, os.environ, report)
    url = f"{address.origin}{address.target.decode()}"
    session = Session(id="", server=name, cwd=cwd, project_dir=cwd, command=(), url=url)
    hooks = Hooks((), settings, name, os.environ)
    proxy = Proxy(open_channel(*agent_pipes), channel, hooks, settings, session, Audit(settings), report)
    return await Lifecycle(proxy, server).run()
