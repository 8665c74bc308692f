"""`hookproxy logout`: remove a login from this machine, and make its tokens invalid where that is possible."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import anyio

from ..authorization import addresses, token_requests
from ..authorization.login_store import LoginStore
from ..authorization.stored_login import StoredLogin, client_secret
from ..model.errors import UserError, not_written
from .common import show_line
from .login import open_store
from .options import Parser
from .progress import waiting


def main(arguments: Sequence[str]) -> int:
    """Do what the options require. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    if bool(options.url) is options.all:
        raise build_parser().wrong("name one address, or --all")
    store = open_store()
    with waiting("the authorization server"):
        if options.all:
            _log_out_everywhere(store, options.ca or "")
            return 0
        had_login = anyio.run(_log_out, addresses.server_address(options.url), store, options.ca or "")
    if not had_login:
        raise UserError(f"{addresses.shown(options.url)}: there is no login", "hookproxy login --list shows all logins")
    return 0


def _log_out_everywhere(store: LoginStore, ca_file: str) -> None:
    """Remove all logins, also the files that cannot be read. Raises UserError."""
    found, unusable = store.all()
    for _, login in found:
        anyio.run(_log_out, login.server, store, ca_file)
    for path, error in unusable:
        try:
            os.unlink(path)
        except OSError as problem:
            raise not_written(path, problem, "cannot be removed") from None
        show_line(f"removed {error.message}")
    if not found and not unusable:
        show_line("there are no logins")


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser("logout", "Remove a login, and tell its authorization server that the tokens are no longer valid.")
    parser.add_argument("url", metavar="URL", nargs="?", help="the address of the server")
    parser.add_argument("--all", action="store_true", help="remove all logins")
    parser.add_argument("--ca", metavar="FILE", help="trust the certificates in this file as well")
    return parser


async def _log_out(server: str, store: LoginStore, ca_file: str) -> bool:
    """Remove the login here, then there. False: there was none."""
    login, why = None, ""
    async with store.lock(server):
        try:
            login = await store.read(server)
        except UserError as error:  # it is removed all the same
            why = error.message
        if not await store.delete(server):
            return False
    show_line(f"logged out of {addresses.shown(server)}")
    try:
        why = await _revoke(login, ca_file) if login else why
    except UserError as error:
        why = error.message
    if why:
        show_line(f"  its tokens may stay valid until they expire: {why}")
    return True


async def _revoke(login: StoredLogin, ca_file: str) -> str:
    """Make the login's tokens invalid. Returns why that was not possible; empty: it was. Raises UserError."""
    from ..authorization.fetch import fetching  # takes 70 ms

    request = token_requests.revocation_request(login, client_secret(login.client, os.environ), time.time())
    issuer = addresses.shown(login.issuer)
    if request is None:
        return f"{issuer} does not offer to revoke them"
    async with fetching(login.server, ca_file) as fetch:
        status, _ = await fetch.post(request.url, request.headers, request.body)
    return "" if status == 200 else f"{issuer} answers with status {status}"
