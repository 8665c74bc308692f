"""`hookproxy connect NAME --url URL`: a stdio server for agents, which reaches a gateway over HTTP.

It judges nothing: the gateway does. The token is in a file, in the environment or a stored login, never in the command
line, which everybody on the machine can read (law 1).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

import anyio

from ..audit.log import Audit
from ..hooks.evaluate import Hooks
from ..model.errors import UserError, file_hint
from ..model.hooks import Session
from ..model.settings import Settings
from ..session.lifecycle import Lifecycle
from ..session.proxy import Proxy
from ..session.remote_server import RemoteOptions, headers, open_remote_server
from ..transports.event_loop import new_loop
from ..transports.http.address import find_proxy, parse
from ..transports.pipe import open_channel
from .common import working_directory
from .run import move_agent_pipes, new_reporter

if TYPE_CHECKING:
    import argparse

    from ..transports.http.address import Address

TOKEN_VARIABLE: Final = "HOOKPROXY_TOKEN"  # its name, not its value
_LONGEST_TOKEN: Final = 16_384  # bytes, as the gateway accepts them
_PREFIX: Final = "/mcp/"


def main(options: argparse.Namespace) -> int:
    """Relay between the agent and the gateway until one of them ends. Returns the exit status. Raises UserError."""
    address = parse(address_of(options.url, options.name), allow_http=options.allow_http)
    find_proxy(address, os.environ)
    remote = RemoteOptions(_headers(options.token_file), options.ca)
    return anyio.run(_serve, address, remote, options.name, backend_options={"loop_factory": new_loop})


def address_of(url: str, name: str) -> str:
    """The address of a server of the gateway: `url` is the gateway's, or already the server's."""
    path = f"{_PREFIX}{name}"
    return url if url.endswith(path) else url.rstrip("/") + path


def _headers(token_file: str | None) -> tuple[tuple[str, str], ...]:
    """The header with the token; none if neither a file nor the environment has one: then a stored login is used."""
    token = _read_token(token_file) if token_file else os.environ.pop(TOKEN_VARIABLE, "")
    return headers([f"Authorization: Bearer {token}"], {}) if token else ()


def _read_token(path: str) -> str:
    """The token in a file that nobody else can read. Raises UserError, which does not contain it."""
    try:
        with open(path, "rb") as file:
            state = os.fstat(file.fileno())
            data = file.read(_LONGEST_TOKEN + 1)
    except OSError as error:
        raise UserError(f"--token-file: {path}: {error.strerror}", file_hint(path, error)) from None
    if state.st_mode & (stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH) and stat.S_ISREG(state.st_mode):
        raise UserError(f"--token-file: {path}: others can read or change it", f"chmod 600 {path}")
    token = data.strip()
    if not token or len(data) > _LONGEST_TOKEN or not token.isascii() or len(token.split()) != 1:
        raise UserError(f"--token-file: {path}: has no token", "it has one line, as hookproxy token new prints it")
    return token.decode()


async def _serve(address: Address, remote: RemoteOptions, name: str) -> int:
    settings, report = Settings(audit_enabled=False), new_reporter()
    agent = open_channel(*move_agent_pipes())
    channel, server_end = open_remote_server(address, remote, settings, os.environ, report)
    cwd = working_directory()
    session = Session(id=name, server=name, cwd=cwd, project_dir=cwd)
    hooks = Hooks((), settings, name, os.environ)
    return await Lifecycle(Proxy(agent, channel, hooks, settings, session, Audit(settings), report), server_end).run()
