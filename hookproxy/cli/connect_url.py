"""`hookproxy connect NAME --url URL`: a stdio server for agents, which reaches a gateway over HTTP.

It judges nothing: the gateway does. The token is in a file, in the environment or a stored login, never in the command
line, which everybody on the machine can read (law 1).
"""

from __future__ import annotations

import os
import stat
from argparse import Namespace
from typing import TYPE_CHECKING, Final

import anyio

from ..audit.log import Audit
from ..authorization.gateway_credentials import GivenToken, LoginOrToken
from ..hooks.evaluate import Hooks
from ..model.env_references import TOKEN_VARIABLE
from ..model.errors import UserError, file_hint
from ..model.hooks import Session
from ..model.settings import Settings
from ..network.address import find_proxy, parse
from ..session.lifecycle import Lifecycle
from ..session.proxy import Proxy
from ..session.remote_server import RemoteOptions, open_remote_server, stored_credentials
from ..transports.event_loop import new_loop
from ..transports.pipe import open_channel
from .common import working_directory
from .run import move_agent_pipes, new_reporter

if TYPE_CHECKING:
    from ..model.credentials import Credentials
    from ..network.address import Address
    from ..session.proxy import Report

_LONGEST_TOKEN: Final = 16_384  # bytes, as the gateway accepts them
_PREFIX: Final = "/mcp/"
_FORM: Final = "write the gateway's address, https://HOST[:PORT]; the token is for --token-file"


def main(options: Namespace) -> int:
    """Relay between the agent and the gateway until one of them ends. Returns the exit status. Raises UserError."""
    address = _address(options)
    find_proxy(address, os.environ)
    report = new_reporter()
    remote = RemoteOptions((), options.ca)
    credentials = _credentials(address, options.token_file, remote, report)
    return anyio.run(
        _serve, address, remote, credentials, options.name, report, backend_options={"loop_factory": new_loop}
    )


def _address(options: Namespace) -> Address:
    """The server's address. Raises UserError, about what the user has written."""
    try:
        parse(options.url, allow_http=options.allow_http)
        return parse(address_of(options.url, options.name), allow_http=options.allow_http)
    except UserError as problem:
        hint = problem.hint if "--allow-http" in problem.hint else _FORM
        raise UserError(problem.message, hint) from None


def address_of(url: str, name: str) -> str:
    """The address of a server of the gateway: `url` is the gateway's, or already the server's."""
    path = f"{_PREFIX}{name}"
    return url if url.endswith(path) else url.rstrip("/") + path


def _credentials(address: Address, token_file: str | None, remote: RemoteOptions, report: Report) -> Credentials:
    """The token of the file or of the environment, else a stored login. Raises UserError."""
    gateway = address.origin
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if token_file:
        token = _read_token(token_file)
        if not os.path.isfile(token_file):  # a pipe, which has been read
            return GivenToken(gateway, token_file, lambda: token)
        return GivenToken(gateway, token_file, lambda: _read_token(token_file))
    if token:
        _check_token(TOKEN_VARIABLE, token.encode(errors="surrogateescape"))
        return GivenToken(gateway, TOKEN_VARIABLE, lambda: token.strip())
    return LoginOrToken(gateway, stored_credentials(address, remote, os.environ, report))


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
    _check_token(f"--token-file: {path}:", data)
    return data.strip().decode()


def _check_token(where: str, data: bytes) -> None:
    """Raise UserError if this cannot be a token."""
    is_word = data.isascii() and len(data.split()) == 1 and data.strip().decode().isprintable()
    if not is_word or len(data) > _LONGEST_TOKEN:
        raise UserError(f"{where} has no token", "it has one line, as hookproxy token new prints it")


async def _serve(address: Address, remote: RemoteOptions, credentials: Credentials, name: str, report: Report) -> int:
    settings = Settings(audit_enabled=False)
    agent = open_channel(*move_agent_pipes())
    channel, server_end = open_remote_server(address, remote, settings, os.environ, report, credentials)
    cwd = working_directory()
    session = Session(id=name, server=name, cwd=cwd, project_dir=cwd)
    hooks = Hooks((), settings, name, os.environ)
    return await Lifecycle(
        Proxy(agent, channel, hooks, settings, session, Audit(settings), report), server_end
    ).run_to_end()
