"""`hookproxy console`: a local web page with the calls of all runs, approvals, the audit and the configuration.

It listens on the loopback, or at a Unix socket of this account. Whoever has the address that it prints may use it.
"""

from __future__ import annotations

import contextlib
import html
import os
import socket
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import anyio

from ..config.load import Loaded, load
from ..console.access import Access
from ..console.follow import Follower, Open
from ..console.options import Options
from ..console.web import Pages, serve
from ..model.errors import UserError
from .administration import add_gateway, console_of
from .agent_entry import use_entry
from .common import folder_of_runs, load_named, show, tell, working_directory
from .hook_runtime import redirected_output, run_until_done
from .offline import (
    gateway_environment,
    gateway_named,
    is_gateway_file,
    not_admitted,
    policy_at,
    server_named,
    user_named,
)
from .options import ENTRY_OPTIONS, GATEWAY_OPTIONS, HOOK_OPTIONS, Parser, parse_with_command
from .run import server_name

_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 64  # connections that wait to be accepted: one person has few pages open
_PORTS: Final = 65535


def main(arguments: Sequence[str]) -> int:
    """Serve the pages until a signal. Returns the exit status."""
    options, command = parse_with_command(build_parser(), arguments)
    if options.open and options.socket is not None:
        raise UserError("--open: a browser cannot open a Unix socket", "leave out --socket, or forward it with ssh -L")
    here = cwd = working_directory()
    entry = use_entry(options, cwd)
    if entry is not None:
        cwd, command = entry.cwd, command or list(entry.command)
    audit = options.audit or (entry.audit if entry else None)
    at_gateway = _gateway_server(options, cwd)
    console_options = Options(
        load=partial(_load, options, cwd),
        environ=gateway_environment() if at_gateway else os.environ,
        cwd=cwd,
        only_server=at_gateway,
        audit=os.path.join(here if options.audit else cwd, audit) if audit else "",
        compared={
            file: partial(load, file, options.hooks, None, os.environ, cwd, options.project) for file in options.compare
        },
        command=command,
        server=at_gateway or options.name or (server_name(command) if command else ""),
    )
    for load_configuration in (console_options.load, *console_options.compared.values()):
        load_configuration()  # a configuration that cannot be read is an error here, not only on a page
    listener = _listen(options)
    open_run = console_of(options)
    try:
        run_until_done(partial(_serve, console_options, listener, options.open, open_run))
    finally:
        listener.close()
        if options.socket is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(cwd, options.socket))
    return 0


def _gateway_server(options: Namespace, cwd: str) -> str:
    """The server of a gateway's file whose policy is shown; empty: no such file is named. Raises UserError.

    Hooks that are tried run as its `hooks_user` from then on.
    """
    config = gateway_named(options, cwd)
    if config is None:
        return ""
    from ..gateway import hooks_account

    name = server_named(options, config).name
    hooks_account.use(config)
    return name


def _load(options: Namespace, cwd: str) -> Loaded:
    """The configuration as it is now: a person's own, or a gateway's for one user at one server."""
    if options.config is not None and is_gateway_file(os.path.join(cwd, options.config)):
        config = gateway_named(options, cwd)
        assert config is not None, "as above"
        server, identity = server_named(options, config), user_named(options, config)
        if identity is not None and not server.allows(identity.principal):
            raise not_admitted(config, server, identity)
        return policy_at(server, identity).loaded
    return load_named(options, cwd)


def _listen(options: Namespace) -> socket.socket:
    """Listen on the loopback, or at a path that only this account can connect to. Raises UserError."""
    if options.socket is not None:
        from ..transports import unix_socket

        return unix_socket.listen(os.path.join(working_directory(), options.socket), 0o600, None)
    if not 0 <= options.port <= _PORTS:
        raise UserError(f"--port {options.port} is not a port", f"a number from 1 to {_PORTS}, or none for a free port")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, options.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        hint = "name another port, or none: then a free one is taken"
        raise UserError(f"cannot listen on {_HOST}:{options.port}: {error.strerror}", hint) from None
    listener.setblocking(False)
    return listener


async def _serve(options: Options, listener: socket.socket, opens: bool, open_run: Open | None) -> None:
    """Serve, and print the address as soon as it can be opened. On cancel, what runs for a page is ended."""
    access = Access()
    with contextlib.ExitStack() as until_end:

        async def started() -> None:
            if listener.family == socket.AF_UNIX:
                path = listener.getsockname()
                show(f"the console listens at {path}\n")
                show(f"elsewhere: ssh -L 7800:{path} HOST, then open {access.first_address('http://localhost:7800')}\n")
            else:
                address = access.first_address(f"http://{_HOST}:{listener.getsockname()[1]}")
                show(f"the console: {address}\n")
                if opens:
                    until_end.enter_context(_opened(address))
            until_end.enter_context(redirected_output())  # from now on, hooks that are tried may print

        follower = Follower(folder_of_runs() if open_run is None else "", tell, open_run)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower.follow)
            await serve(Pages(options, access, follower.state, follower.answer), listener, started)


@contextlib.contextmanager
def _opened(address: str) -> Iterator[None]:
    """Open the address in the browser by way of a file: everybody may read the command line of a browser."""
    import webbrowser

    with tempfile.NamedTemporaryFile("w", prefix="hookproxy-console-", suffix=".html") as file:  # its mode is 0600
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}">')
        file.flush()
        if not webbrowser.open(f"file://{file.name}"):
            tell("no browser could be started: open the address yourself")
        yield


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "console",
        "Show a local web page with the calls of all runs of this user, the approvals that wait, the audit and the "
        "configuration. It listens on 127.0.0.1 only; whoever has the address that it prints may use it. With the "
        "COMMAND of a server, the policy page can list its tools.",
        rest="[-- COMMAND [ARG...]]",
    )
    parser.add_argument("--port", metavar="N", type=int, default=0, help="the port (default: a free one)")
    parser.add_argument("--socket", metavar="PATH", help="listen at a Unix socket instead, for ssh -L")
    add_gateway(parser, "show the calls of a running gateway to its auditors, and what waits to its approvers")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    parser.add_argument("--audit", metavar="FILE", help="the audit file (default: the one of the configuration)")
    parser.add_argument(
        "--compare",
        metavar="FILE",
        action="append",
        default=[],
        help="a changed hookproxy.toml, which the page may replay recorded calls through; may be given several times",
    )
    parser.add_common(*HOOK_OPTIONS, *ENTRY_OPTIONS, *GATEWAY_OPTIONS)
    parser.add_argument("--name", help="the name of COMMAND's server as hooks see it (default: derived from COMMAND)")
    return parser
