"""`hookproxy login`: log in at a remote server by the browser, or as a machine; and list the logins."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from ..authorization import addresses
from ..authorization.login_store import LoginStore
from ..authorization.stored_login import StoredLogin
from ..model.errors import EXIT_FINDINGS, ConfigError, UserError
from ..trust.sources import FileContext, logins_folder
from .common import has_input, show_line, working_directory
from .layout import shortened
from .options import Parser

if TYPE_CHECKING:
    from ..authorization.log_in import LoginOptions
    from ..authorization.redirect import Redirects

_TIMEOUT: Final = 300.0  # seconds: a second factor and a consent page take a minute or two
_MAX_LINE: Final = 65_536  # bytes of a pasted address


def main(arguments: Sequence[str]) -> int:
    """Do what the options require. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    store = open_store()
    if options.list:
        if options.url:
            raise UserError("--list does not take an address", "hookproxy login --list")
        return _list(store, verbose=options.verbose)
    if not options.url:
        raise build_parser().wrong("no address is named")
    before = _options_before(options, store)
    if before:
        show_line(f"as before, with: {shlex.join(before)}")
        options = build_parser().parse_args([*before, *arguments])
    anyio.run(_log_in, options, store)
    return 0


def _options_before(options: Namespace, store: LoginStore) -> tuple[str, ...]:
    """The options of the stored login at this server, if none of this kind are given now."""
    if any(_repeated(options)):
        return ()
    try:
        login = store.read_without_secrets(addresses.server_address(options.url))
    except ConfigError:  # what cannot be read is replaced by this login
        return ()
    return login.options if login else ()


def open_store() -> LoginStore:
    """The logins of this user. Raises UserError."""
    context = FileContext(os.environ, working_directory())
    return LoginStore(logins_folder(context.environ, context.home))


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "login",
        "Log in at a remote server, by OAuth in the browser. hookproxy run uses the stored tokens, and renews them.",
    )
    parser.add_argument(
        "url", metavar="URL", nargs="?", help="the address of the server, as hookproxy run --url has it"
    )
    parser.add_argument("--list", action="store_true", help="show all logins, without their tokens")
    parser.add_common("--verbose")
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="print the address to open; when the login is done, paste the address that the browser shows",
    )
    parser.add_argument(
        "--scope", metavar="SCOPES", help="ask for these scopes, with blanks between them, and no others"
    )
    parser.add_argument("--port", metavar="PORT", type=int, default=0, help="the port of the redirect (default: any)")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=_TIMEOUT,
        help="how long to wait for the person (default: 300)",
    )
    parser.add_argument("--ca", metavar="FILE", help="trust the certificates in this file as well")
    parser.add_argument(
        "--no-keyring", action="store_true", help="store the tokens in a file, even if there is a keyring"
    )
    _add_client_options(parser)
    return parser


def _add_client_options(parser: Parser) -> None:
    parser.add_argument(
        "--issuer", metavar="URL", help="log in only at this authorization server; a secret requires it"
    )
    parser.add_argument(
        "--client-id",
        metavar="ID",
        help="a client that is registered already (default: register a new one)",
    )
    parser.add_argument(
        "--client-metadata-url",
        metavar="URL",
        help="the address of a document that describes the client, for authorization servers that support it",
    )
    parser.add_argument(
        "--client-credentials", action="store_true", help="log in as the client itself, for machines: no browser"
    )
    secret = parser.add_mutually_exclusive_group()
    secret.add_argument("--client-secret-file", metavar="FILE", help="the file with the client's secret")
    secret.add_argument("--client-secret-env", metavar="NAME", help="the variable with the client's secret")
    secret.add_argument("--private-key-file", metavar="FILE", help="the file with the client's private key, as PEM")
    secret.add_argument("--private-key-env", metavar="NAME", help="the variable with this key")


async def _log_in(options: Namespace, store: LoginStore) -> None:
    from ..authorization.log_in import log_in  # takes 500 ms: not for --list

    login_options = _login_options(options)
    server = addresses.server_address(login_options.url)
    async with store.lock(server):  # before the person is asked: what cannot be stored is not begun
        pass

    async def present(address: str, redirects: Redirects) -> None:
        await _present(address, redirects, browser=not options.no_browser)

    login = await log_in(login_options, os.environ, present)
    async with store.lock(server):
        await store.write(login, keyring=not options.no_keyring)
    show_line(f"logged in at {addresses.shown(server)}")
    stored = store.read_without_secrets(server)
    _show(store.path(server), login, in_keyring=stored is not None and stored.secrets is None)


def _login_options(options: Namespace) -> LoginOptions:
    from ..authorization.log_in import LoginOptions

    key_file, key_variable = options.private_key_file, options.private_key_env
    file, variable = options.client_secret_file or key_file, options.client_secret_env or key_variable
    if options.timeout <= 0 or not 0 <= options.port <= 65_535:
        raise UserError("--timeout or --port is out of range", "seconds above 0; a port from 0 to 65535")
    return LoginOptions(
        url=options.url,
        scope=" ".join((options.scope or "").split()),
        issuer=options.issuer or "",
        client_id=options.client_id or "",
        client_metadata_url=options.client_metadata_url or "",
        secret_file=os.path.abspath(file) if file else "",
        secret_variable=variable or "",
        method="private_key_jwt" if key_file or key_variable else "client_secret" if file or variable else "",
        machine=options.client_credentials,
        port=options.port,
        timeout=options.timeout,
        ca_file=os.path.abspath(options.ca) if options.ca else "",
        repeated=tuple(_repeated(options)),
    )


def _repeated(options: Namespace) -> Iterator[str]:
    """The options that another login uses again: files by their absolute paths, and nothing secret."""
    for name, value in vars(options).items():
        option = f"--{name.replace('_', '-')}"
        if name in ("url", "list", "scope", "timeout", "no_browser") or not value:
            continue
        yield option
        if value is not True:
            yield os.path.abspath(value) if name == "ca" or name.endswith("_file") else str(value)


# --- the person ---


async def _present(address: str, redirects: Redirects, *, browser: bool) -> None:
    """Show the login in the browser; if there is none, print its address, and take the redirect's address instead."""
    if browser and _has_browser():
        show_line(f"the browser shows the login; if it does not, open: {address}")
        if await _open_browser(address):
            return
    else:
        show_line(f"open this address in a browser, on any machine: {address}")
    show_line(f"then, if the browser cannot show {redirects.address}, paste the address that it has here:")
    async for line in _input_lines():
        if redirects.offer(line):
            return
        if line.strip():
            show_line(f"this is not the address: it begins with {redirects.address}? and belongs to this login")


def _has_browser() -> bool:
    """False if there is no browser, or only one that would take the terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))


async def _open_browser(address: str) -> bool:
    """Open the person's browser. False: that was not possible.

    Some browsers return only when they are closed. So it waits in a thread that ends with the program.
    """
    import threading
    import webbrowser

    loop, ended, opened = current_token(), anyio.Event(), False

    def open_and_report() -> None:
        nonlocal opened
        opened = webbrowser.open(address)
        with contextlib.suppress(anyio.RunFinishedError):  # the login has ended before the browser
            anyio.from_thread.run_sync(ended.set, token=loop)

    threading.Thread(target=open_and_report, daemon=True).start()
    await ended.wait()
    return opened


async def _input_lines() -> AsyncIterator[str]:
    """The lines of standard input until its end, without blocking the event loop."""
    kept = b""
    while has_input() and len(kept) <= _MAX_LINE:
        try:
            await anyio.wait_readable(0)
        except PermissionError:  # a file, which can always be read, but not waited for
            pass
        except OSError:  # it is closed
            return
        try:
            piece = os.read(0, _MAX_LINE)
        except OSError:
            return
        if not piece:
            return
        *lines, kept = (kept + piece).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


# --- the list ---


def _list(store: LoginStore, *, verbose: bool) -> int:
    found, unusable = store.all()
    if not found and not unusable:
        show_line("there are no logins")
    with shortened(verbose=verbose, end=0):
        for path, login in found:
            show_line(addresses.shown(login.server))
            _show(path, login, in_keyring=login.secrets is None)
    for _, error in unusable:
        show_line(f"{error.message}; {error.hint}")
    return EXIT_FINDINGS if unusable else 0


def _show(path: str, login: StoredLogin, *, in_keyring: bool) -> None:
    """Print the details of a login, without anything secret."""
    for name, text in (
        ("issuer", addresses.shown(login.issuer)),
        ("scopes", login.scope or "not named"),
        ("expires", _expiry(login)),
        ("stored in", f"the system's keyring, and {path}" if in_keyring else path),
    ):
        show_line(f"  {name:9}  {text}")


def _expiry(login: StoredLogin) -> str:
    """When the token ends, in local time, and what happens then."""
    if login.expires_at is None:
        return "unknown"
    ends = datetime.fromtimestamp(login.expires_at).astimezone().isoformat(" ", "minutes")
    if login.secrets is None:
        return ends
    renewed = login.grant == "client_credentials" or login.secrets.refresh_token
    return f"{ends}, and is renewed then" if renewed else f"{ends}; then another login is needed"
